# Station ephemeral-ports: its states, findings and evidence, and what brings them about.

short-ephemeral-ports = local ports

state-ports-ok = { $used } of { $usable } local ports towards { $remote } were in use.
state-ports-near = { $used } of { $usable } local ports towards { $remote } were in use: almost at the limit.
state-ports-refusing = { $used } of { $usable } local ports towards { $remote } were in use, and new connections failed.
state-ports-searching = { $waiting } of { $usable } local ports towards { $remote } are in TIME_WAIT and cannot be reused: each new connection searches through them for a free one.

finding-ephemeral-ports-exhausted-title = { $tier } has no local port left towards { $remote } ({ $usable } in all)
finding-ephemeral-ports-exhausted-explanation = Each connection from { $tier } to { $remote } needs a local port while it is open, and { $reuses ->
    [yes] at least a second longer (TIME_WAIT)
   *[no] for another minute (TIME_WAIT)
} if { $tier } closes it first. All { $usable } ports that it may use are taken, so connect() fails with "Cannot assign requested address" and the client gets an error at once. Connections that are kept for further requests need few ports.
finding-time-wait-port-search-title = the search for a free local port on { $edge } uses up the CPU
finding-time-wait-port-search-explanation-sampled = For each new connection to { $remote }, { $tier } tries one port after the other until it finds a free one: of { $usable } ports, { $live } carry a connection and { $waiting } are in TIME_WAIT. No error shows this; the profile shows that it uses up the CPU.
finding-time-wait-port-search-explanation = { $tier } closes its connections to { $remote } first, so their ports stay in TIME_WAIT for a minute and cannot be reused. Half of the { $usable } ports are in TIME_WAIT: all those of the parity that connect() tries first. Every new connection checks each of them before it finds a free one. No error shows this; throughput falls by a factor of ten to a hundred.

evidence-ports-used = At most { $live } open connections and { $waiting } sockets in TIME_WAIT on the connecting side towards { $remote }.
evidence-ports-range = The range is { $low } to { $high }: { $usable } ports for each remote address and port.
evidence-ports-gateway = The gateway answered { $count } of { $requests } requests with an error (500, 502 or 503).
evidence-ports-no-reuse = Ports in TIME_WAIT towards this remote address cannot be taken over: tcp_tw_reuse is { $value }{ $why ->
    [off] {" "}(off)
    [loopback] {" "}(loopback only, the kernel's default)
   *[timestamps] , but TCP timestamps are off, which it needs
}.

coupling-ports-table = Connections to the upstream are dropped on the way and hang, and each keeps its port until it times out. If the table were not full, the ports would be a cause of their own.
