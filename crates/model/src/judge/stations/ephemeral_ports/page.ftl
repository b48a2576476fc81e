# `chokepoint explain ephemeral-ports`: the pages of the station and of its findings, with the same five sections.

page-ephemeral-ports-title = Ephemeral ports
page-ephemeral-ports-limits =
    How many connections a tier can have at once to one upstream address and port from one local address: the ports of net.ipv4.ip_local_port_range without the reserved ones. Divided by the time that a request keeps one taken they are the most that can pass: the life of the connection where the upstream closes first, and its TIME_WAIT (60 s, or net.ipv4.tcp_tw_reuse_delay where it may be taken over) where the dialling side does.
page-ephemeral-ports-shows =
    Live connections and, on the dialling side, sockets in TIME_WAIT towards that address and port, against the number of ports.
page-ephemeral-ports-sure =
    Only the dialling side takes ports: TIME_WAIT on the accepting side is harmless, however many there are, and so is a host-wide number of TIME_WAIT sockets. Where the upstream closes first, its TIME_WAIT does not hold the dialling side's port. The range is a namespace's own.
page-ephemeral-ports-remedies =
    See ephemeral-ports-exhausted and time-wait-port-search.
page-ephemeral-ports-sources =
    sock_diag(7), all states; Linux Documentation/networking/ip-sysctl.rst; net/ipv4/inet_hashtables.c.

page-ephemeral-ports-exhausted-title = No local port is left towards an upstream
page-ephemeral-ports-exhausted-limits =
    New connections of this tier to this upstream: connect() fails at once with EADDRNOTAVAIL (99), and the client gets a 502.
page-ephemeral-ports-exhausted-shows =
    Nine tenths or more of the usable ports taken towards one address and port, and error answers of the gateway.
page-ephemeral-ports-exhausted-sure =
    Medium from 502s and full ports; high where the server's error log names errno 99, which no counter does; then half of the ports seen taken are enough, and no load is needed. Silent at 80 % use, where ports are full but nothing failed, and where nginx's error log was read and does not name errno 99.
page-ephemeral-ports-exhausted-remedies =
    Best is to need fewer: reuse connections to the upstream (keepalive). Then a wider range, more addresses on either side, tcp_tw_reuse where the dialling side closes first. A wide range may collide with services that start later; reserve their ports.
page-ephemeral-ports-exhausted-sources =
    As for station ephemeral-ports.

page-time-wait-port-search-title = The search for a free port burns the CPU
page-time-wait-port-search-limits =
    New connections of this tier to this upstream: each walks all ports in TIME_WAIT before it finds a free one.
page-time-wait-port-search-shows =
    A profile in which the search for a port takes so much of the CPU time that limits the dialling tier that throughput would rise by a tenth or more without it. Without a profile: on the dialling side, sockets in TIME_WAIT towards one address and port near half of the usable range (connect() prefers one parity), no reuse in force, the tier's cores busy. No error is counted anywhere. Reproduced: 13,000 requests/s fall to 140.
page-time-wait-port-search-sure =
    High where a profile shows the search in more of the CPU time than noise could hide, medium without one: the mechanism is certain, its share is not measured then. Silent where a profile shows that the search is too cheap to matter, where reuse is in force for the remote address, where TIME_WAIT is on the accepting side, where the cores have time to spare, and where the dialling tier itself takes less than a tenth of them in the kernel: then it is the pages that compute. Kernels differ in the cost of the search.
page-time-wait-port-search-remedies =
    Best is to reuse connections to the upstream. Then tcp_tw_reuse 1: it helps the dialling side alone, needs timestamps, and takes a port over after one second. tcp_tw_recycle no longer exists.
page-time-wait-port-search-sources =
    As for station ephemeral-ports; `__inet_hash_connect`, `__inet_check_established`, `tcp_twsk_unique` in the kernel's source.
