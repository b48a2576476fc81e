# What remedies let-go-on and let-it-detach do, and their risk.

remedy-let-go-on-text = { $kind ->
    [again] Find what stops { $tier } again and again, and end it or let it take less: look among all programs (ps axf) for cpulimit, a debugger, and scripts that send signals. strace -e trace=none -p PID of the server shows who sends SIGSTOP, as si_pid.
    [thawed-again] Find what freezes { $tier } again and again: docker pause, a backup or snapshot of its container, a script that writes { $file }. Let it run at another time, or freeze for less long.
    [frozen] Let { $tier } go on: write { $thawed } to { $file } (docker unpause, systemctl thaw, where one of these froze it).
   *[stopped] Let { $tier } go on (kill -CONT { $pids }), end the debugger that holds it, or restart it.
}
remedy-let-go-on-risk = Whoever stopped it may have meant to. It first serves the clients that wait, of which some have given up.

remedy-let-it-detach-text = Let { $name } (pid { $tracer }) detach from { $tier }: Ctrl-C in strace ("kill -INT { $tracer }" from elsewhere), "detach" in gdb. If it started { $tier }, start { $tier } without it.
remedy-let-it-detach-risk = The trace ends. If somebody else started it, ask first.
