# `chokepoint explain load-generator`: the pages of the station and of its findings, with the same five sections.

page-load-generator-title = Load generator
page-load-generator-limits =
    The client that offers the load. Where it is itself the limit, every figure is about the client and none about the server.
page-load-generator-shows =
    Its threads, with the soft interrupts attributed to them, use 90 % or more of the CPUs they may run on; or sends of an open loop go out late while it is busy; or its own ports, file descriptors or socket memory run out.
page-load-generator-sure =
    CPU time is the threads' own clock. Without exact accounting the kernel charges soft interrupts to whatever ran, so that clock has most of them in it; what ran in ksoftirqd on the generator's core is added. On a veth link about half a core of the server's receive work can run on the client's core.
page-load-generator-remedies =
    More threads (--threads), more cores, another host. Sharing cores with the server is a warning, not this finding.
page-load-generator-sources =
    clock_gettime(2) CLOCK_THREAD_CPUTIME_ID; /proc/PID/schedstat of ksoftirqd; the generator's own outcome counts.

page-load-generator-limited-title = The load generator was the limit
page-load-generator-limited-limits =
    The measurement itself: the server may have room that was never asked for.
page-load-generator-limited-shows =
    The verdict is client-limited and no rate verdict about the server is given. Refusals that the server counted are still findings.
page-load-generator-limited-sure =
    High where CPU or local errors show it. A server at its limit makes requests wait and the generator idle; a generator at its limit is busy.
page-load-generator-limited-remedies =
    Give the generator more threads or cores, spread it over hosts, or widen its own limits (port range, open files).
page-load-generator-limited-sources =
    As for station load-generator.
