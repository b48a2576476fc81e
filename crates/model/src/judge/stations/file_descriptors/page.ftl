# `chokepoint explain file-descriptors`: the pages of the station and of its findings, with the same five sections.

page-file-descriptors-title = File descriptors
page-file-descriptors-limits =
    The files, sockets and pipes that one process may have open at once: the soft limit of RLIMIT_NOFILE. It is each process's own; the host's limit (fs.file-max) is another one.
page-file-descriptors-shows =
    Open descriptors of the process that is nearest to its limit.
page-file-descriptors-sure =
    Descriptors are counted about once a second, for a pool of more than eight processes in turns. The limit is the one in force, whatever a configuration says.
page-file-descriptors-remedies =
    See file-descriptors-exhausted.
page-file-descriptors-sources =
    getrlimit(2); /proc/PID/fd and /proc/PID/limits (proc(5)).

page-file-descriptors-exhausted-title = A process has no file descriptor left
page-file-descriptors-exhausted-limits =
    New connections: accept() fails and they stand in the accept queue. Or answers: the upstream or the file cannot be opened, and the client gets a 500.
page-file-descriptors-exhausted-shows =
    Errno 24 (EMFILE) in the server's error log, or a process that stays at its limit while connections wait for it. Clients wait half a second and longer, time out, or get errors. nginx says "accept4() failed (24: Too many open files)" and stops to accept for half a second each time.
page-file-descriptors-exhausted-sure =
    High where the error log has the errno and the failures or pauses are large enough to explain what this load suffered; medium where only the number of open files, the queue and the failures tell, as for any program without a log that is known. Silent where a process has just as many files as it needs, and where nobody suffers. An accept queue that overflows before such a process is its symptom.
page-file-descriptors-exhausted-remedies =
    nginx: worker_rlimit_nofile, in force after a reload; a master that runs as root may give its workers any number up to fs.nr_open. php-fpm: rlimit_files. Other programs: LimitNOFILE= of the unit that starts them, and prlimit(1) for those that run. A program that leaks descriptors needs mending, not a higher limit.
page-file-descriptors-exhausted-sources =
    As for station file-descriptors; accept(2), socket(2), open(2); nginx: ngx_event_accept.c (accept_mutex_delay).
