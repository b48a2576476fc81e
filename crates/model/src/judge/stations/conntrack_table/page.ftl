# `chokepoint explain conntrack-table`: the pages of the station and of its findings, with the same five sections.

page-conntrack-table-title = Connection tracking table
page-conntrack-table-limits =
    The number of connections that the firewall can track at once. Closed connections count until their entries expire. It is a cliff: harmless until full, and then no new connection gets through.
page-conntrack-table-shows =
    nf_conntrack_count against nf_conntrack_max, and the column "drop" of /proc/net/stat/nf_conntrack.
page-conntrack-table-sure =
    The "drop" counter alone proves nothing, because it also counts clashes between entries. A nearly full table alone harms nobody, and "early_drop" means that the kernel freed space. Only all of these together count: 95 % or more of the entries in use, a growing drop counter, and requests that time out or take as long as a lost SYN. The number of entries is per network namespace. On most kernels the limit is for the whole host and read-only elsewhere.
page-conntrack-table-remedies =
    See conntrack-table-full.
page-conntrack-table-sources =
    Linux Documentation/networking/nf_conntrack-sysctl.rst; net/netfilter/nf_conntrack_core.c; /proc/sys/net/netfilter; /proc/net/stat/nf_conntrack (read by its header, columns differ by kernel); /proc/net/nf_conntrack.

page-conntrack-table-full-title = The connection tracking table is full
page-conntrack-table-full-limits =
    Every new connection through this network namespace, including those between its servers over loopback if the firewall tracks them.
page-conntrack-table-full-shows =
    Clients time out while connecting, the server is idle, and goodput falls to nearly nothing. A client sends a lost SYN again after 1, 2, 3, 4, 5, 7 and 11 s (net.ipv4.tcp_syn_linear_timeouts is 4 by default since Linux 6.5; before, and with 0, after 1, 3, 7 and 15 s). The kernel logs "nf_conntrack: table full, dropping packet", with a rate limit. Expired entries count until they are collected, 15 to 90 s later.
page-conntrack-table-full-sure =
    High: the entries are at the limit, drops are counted, and the client or the kernel log shows timeouts. Medium or low if one of these could not be read. Silent if the table is nearly full and nothing is dropped, if the drops are clashes in an empty table, if early eviction frees space, and if the load lost too little to count as harm: then somebody else's packets are dropped.
page-conntrack-table-full-remedies =
    The best remedy is to need fewer entries: reuse connections (keep-alive), shorten the timeouts of closed connections, or do not track this flow (notrack) if no rule needs its state. Raising the limit works at once and costs about 320 bytes of kernel memory per used entry; the number of buckets is raised with it if chains would become long. The limit is for the whole host. Undo restores the old value; entries above it stay until they expire.
page-conntrack-table-full-sources =
    As for station conntrack-table, and the kernel log (/dev/kmsg).
