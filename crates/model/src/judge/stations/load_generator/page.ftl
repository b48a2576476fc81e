# `chokepoint explain load-generator`: the pages of the station and of its findings, with the same five sections.

page-load-generator-title = Load generator
page-load-generator-limits =
    The client that sends the load. If it is itself the limit, all figures are about the client and none about the server.
page-load-generator-shows =
    Its threads, with the soft interrupts attributed to them, use at least 90 % of the CPUs they may run on; or an open loop sends late while the generator is busy; or it runs out of ports, file descriptors or socket memory.
page-load-generator-sure =
    CPU time comes from the clock of each thread. Without exact accounting the kernel charges soft interrupts to whatever runs, so that clock includes most of them; the time of ksoftirqd on the generator's core is added. On a veth link about half a core of the server's receive work can run on the client's core.
page-load-generator-remedies =
    More threads (--threads), more cores, another host. Sharing cores with the server is a warning, not this finding.
page-load-generator-sources =
    clock_gettime(2) CLOCK_THREAD_CPUTIME_ID; /proc/PID/schedstat of ksoftirqd; the generator's own outcome counts.

page-load-generator-limited-title = The load generator was the limit
page-load-generator-limited-limits =
    The measurement itself: the server may be able to do more than it was asked.
page-load-generator-limited-shows =
    The verdict is client-limited and no rate verdict about the server is given. Refusals that the server counted are still findings.
page-load-generator-limited-sure =
    High if CPU time or local errors show it. A server at its limit makes requests wait and leaves the generator idle; a generator at its limit is busy.
page-load-generator-limited-remedies =
    Give the generator more threads or cores, spread it over hosts, or widen its own limits (port range, open files).
page-load-generator-limited-sources =
    As for station load-generator.
