# `chokepoint explain ephemeral-ports`: the pages of the station and of its findings, with the same five sections.

page-ephemeral-ports-title = Ephemeral ports
page-ephemeral-ports-limits =
    How many connections a tier can have at once from one local address to one upstream address and port: the ports of net.ipv4.ip_local_port_range without the reserved ones (32768 to 60999 by default). Divided by the time that a request occupies a port, this is the most that can pass. If the upstream closes first, that time is the life of the connection. If the connecting side closes first, TIME_WAIT is added: 60 s, or net.ipv4.tcp_tw_reuse_delay where ports may be reused.
page-ephemeral-ports-shows =
    Open connections and, on the connecting side, sockets in TIME_WAIT towards that address and port, against the number of ports.
page-ephemeral-ports-sure =
    Only the connecting side needs ports: TIME_WAIT on the accepting side is harmless, however much there is, and so is a high number of TIME_WAIT sockets on the host. If the upstream closes first, its TIME_WAIT does not occupy the connecting side's port. The range is per network namespace. So is net.ipv4.tcp_max_tw_buckets, the most sockets that stay in TIME_WAIT; beyond it a connection closes without TIME_WAIT. Its default depends on memory: half the buckets of the TCP hash table (one per 128 KiB of memory, rounded up to a power of two), for example 131,072 with 24 GiB, and at most 262,144.
page-ephemeral-ports-remedies =
    See ephemeral-ports-exhausted and time-wait-port-search.
page-ephemeral-ports-sources =
    sock_diag(7), all states; Linux Documentation/networking/ip-sysctl.rst (https://docs.kernel.org/networking/ip-sysctl.html); net/ipv4/inet_hashtables.c; for tcp_max_tw_buckets tcp_init() in net/ipv4/tcp.c and tcp_sk_init() in net/ipv4/tcp_ipv4.c.

page-ephemeral-ports-exhausted-title = No local port is left towards an upstream
page-ephemeral-ports-exhausted-limits =
    New connections of this tier to this upstream: connect() fails at once with EADDRNOTAVAIL (99), and the client gets a 502.
page-ephemeral-ports-exhausted-shows =
    At least 90 % of the usable ports are in use towards one address and port, and the gateway answers with errors.
page-ephemeral-ports-exhausted-sure =
    Medium with 502s and all ports in use. High if the server's error log names errno 99, which no kernel counter does; then half of the ports seen in use are enough, and no load is needed. Silent at 80 % use, if all ports are in use but nothing failed, and if nginx's error log was read and does not name errno 99.
page-ephemeral-ports-exhausted-remedies =
    The best remedy is to need fewer ports: reuse connections to the upstream (keepalive). Then a wider range, more addresses on either side, or tcp_tw_reuse if the connecting side closes first. A wide range may collide with services that start later; reserve their ports.
page-ephemeral-ports-exhausted-sources =
    As for station ephemeral-ports.

page-time-wait-port-search-title = The search for a free port uses up the CPU
page-time-wait-port-search-limits =
    New connections of this tier to this upstream: each checks all ports in TIME_WAIT before it finds a free one.
page-time-wait-port-search-shows =
    With a profile: the port search takes so much of the CPU time that throughput would rise by at least a tenth without it. Without a profile: the sockets in TIME_WAIT on the connecting side towards one address and port are close to half of the usable range (connect() prefers one parity), reuse is not in force, and the tier's cores are busy. No error is counted anywhere. Reproduced: 13,000 requests/s fall to 140.
page-time-wait-port-search-sure =
    High if a profile shows more CPU time in the search than noise could hide; medium without a profile, because the mechanism is certain but its share is not measured. Silent if a profile shows that the search is too cheap to matter, if reuse is in force for the remote address, if TIME_WAIT is on the accepting side, if the cores have idle time, and if the connecting tier spends less than a tenth of them in the kernel: then the application uses the CPU. Kernels differ in the cost of the search.
page-time-wait-port-search-remedies =
    The best remedy is to reuse connections to the upstream. Then tcp_tw_reuse 1 (2, the default, covers loopback only; 0 is off): it helps only the connecting side, needs timestamps, and reuses a port after one second. tcp_tw_recycle no longer exists.
page-time-wait-port-search-sources =
    As for station ephemeral-ports; `__inet_hash_connect`, `__inet_check_established`, `tcp_twsk_unique` in the kernel's source.
