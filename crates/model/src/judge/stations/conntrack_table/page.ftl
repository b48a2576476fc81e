# `chokepoint explain conntrack-table`: the pages of the station and of its findings, with the same five sections.

page-conntrack-table-title = Connection tracking table
page-conntrack-table-limits =
    How many connections the firewall can follow at once, closed ones included until their entries expire. It is a cliff: harmless until full, then nothing new gets through.
page-conntrack-table-shows =
    nf_conntrack_count against nf_conntrack_max, and the column "drop" of /proc/net/stat/nf_conntrack.
page-conntrack-table-sure =
    "drop" alone proves nothing, for it also counts clashes that could not be resolved; a table near its limit alone harms nobody; "early_drop" means that the kernel made room. Only all together count: entries at 95 % or more of the limit, drops that grow, and requests that time out or take as long as a lost SYN takes. The count is kept per network namespace; on most kernels the limit is the host's and read-only elsewhere.
page-conntrack-table-remedies =
    See conntrack-table-full.
page-conntrack-table-sources =
    Linux Documentation/networking/nf_conntrack-sysctl.rst; net/netfilter/nf_conntrack_core.c; /proc/sys/net/netfilter; /proc/net/stat/nf_conntrack (read by its header, columns differ by kernel); /proc/net/nf_conntrack.

page-conntrack-table-full-title = The connection tracking table is full
page-conntrack-table-full-limits =
    Every new connection through this network namespace, also those between the servers on it over loopback where the firewall tracks them.
page-conntrack-table-full-shows =
    Clients time out connecting while the server idles; goodput falls to nearly nothing; the kernel log says "nf_conntrack: table full, dropping packet", rate limited. Expired entries still count until they are collected, 15 to 90 s later.
page-conntrack-table-full-sure =
    High: entries at the limit, drops counted and time-outs seen by the client or told by the kernel log. Medium or low where one of these could not be read. Silent where the table is nearly full and nothing is dropped, where drops come from clashes in an empty table, where early eviction makes room, and where less than one request in a thousand suffered or all pages are as slow as a lost SYN makes them: then it is somebody else's packets that are dropped.
page-conntrack-table-full-remedies =
    Best is to need fewer entries: reuse connections (keep-alive), shorter time-outs for closed connections, or no tracking of this flow (notrack) where no rule needs its state. Raising the limit works at once and costs about 320 bytes of kernel memory an entry when used; buckets are raised with it where chains would grow long. It holds for the whole host. Undo sets the old value back, and entries above it stay until they expire.
page-conntrack-table-full-sources =
    As for station conntrack-table, and the kernel log (/dev/kmsg).
