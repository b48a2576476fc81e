# What remedies let-go-on and let-it-detach do, and their risk.

remedy-let-go-on-text = Let { $tier } go on (kill -CONT { $pids }), end the debugger that holds it, or restart it.
remedy-let-go-on-risk = Whoever stopped it may have meant to. It first serves the clients that wait, of which some have given up.

remedy-let-it-detach-text = Let { $name } (pid { $tracer }) detach from { $tier }: Ctrl-C in strace ("kill -INT { $tracer }" from elsewhere), "detach" in gdb. If it started { $tier }, start { $tier } without it.
remedy-let-it-detach-risk = The trace ends. If somebody else started it, ask first.
