# What remedy let-go-on does, and its risk.

remedy-let-go-on-text = Let { $tier } go on (kill -CONT { $pids }), end the debugger that holds it, or restart it.
remedy-let-go-on-risk = Whoever stopped it may have meant to. It first serves the clients that wait, of which some have given up.
