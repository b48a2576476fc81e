# `chokepoint explain file-descriptors`: the pages of the station and of its findings, with the same five sections.

page-file-descriptors-title = File descriptors
page-file-descriptors-limits =
    The files, sockets and pipes that one process may have open at once: its soft limit RLIMIT_NOFILE (1024 by default). The limit of the whole host (fs.file-max) is another one.
page-file-descriptors-shows =
    Open descriptors of the process that is closest to its limit.
page-file-descriptors-sure =
    Descriptors are counted about once a second, in turns for a pool of more than eight processes. The limit is the one in force, whatever a configuration says.
page-file-descriptors-remedies =
    See file-descriptors-exhausted.
page-file-descriptors-sources =
    getrlimit(2); /proc/PID/fd and /proc/PID/limits (proc(5)).

page-file-descriptors-exhausted-title = A process has no file descriptor left
page-file-descriptors-exhausted-limits =
    New connections: accept() fails and they wait in the accept queue. Or responses: the upstream connection or the file cannot be opened, and the client gets a 500.
page-file-descriptors-exhausted-shows =
    Errno 24 (EMFILE) in the server's error log, or a process that stays at its limit while connections wait for it. Clients wait half a second or longer, time out, or get errors. nginx logs "accept4() failed (24: Too many open files)" and stops accepting for half a second each time.
page-file-descriptors-exhausted-sure =
    High if the error log has the errno and the failures or pauses are large enough to explain the harm to this load. Medium if only the number of open files, the queue and the failures show it, as for any program whose log is not known. Silent if a process has just as many files open as it needs, and if no client is affected. An accept queue that overflows in front of such a process is its symptom.
page-file-descriptors-exhausted-remedies =
    nginx: worker_rlimit_nofile, in force after a reload; a master that runs as root may give its workers any number up to fs.nr_open. php-fpm: rlimit_files. Other programs: LimitNOFILE= of the unit that starts them, and prlimit(1) for running ones. A program that leaks descriptors needs a fix, not a higher limit.
page-file-descriptors-exhausted-sources =
    As for station file-descriptors; accept(2), socket(2), open(2); nginx: ngx_event_accept.c (accept_mutex_delay).
