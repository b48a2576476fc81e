# Station ephemeral-ports: its states, findings and evidence, and what brings them about.

state-ports-ok = { $used } of { $usable } ports towards { $remote } were taken.
state-ports-near = { $used } of { $usable } ports towards { $remote } were taken: little is left.
state-ports-refusing = { $used } of { $usable } ports towards { $remote } were taken, and connections to it failed.
state-ports-searching = { $waiting } of { $usable } ports towards { $remote } are in TIME_WAIT and cannot be taken over: each new connection searches them for a free one.

finding-ephemeral-ports-exhausted-title = { $tier } has no local port left towards { $remote } ({ $usable } in all)
finding-ephemeral-ports-exhausted-explanation = Each connection from { $tier } to { $remote } needs a local port of its own for as long as it lives, and where { $tier } closes first for a minute longer (TIME_WAIT). All { $usable } ports that it may use are taken, so connect() fails with "Cannot assign requested address" and the client gets an error answer at once.
finding-time-wait-port-search-title = the search for a free local port on { $edge } burns the CPU
finding-time-wait-port-search-explanation-sampled = { $tier } looks at port after port for each new connection to { $remote }, until it finds a free one: of { $usable } ports, { $live } carry a connection and { $waiting } are in TIME_WAIT. No error shows this; the profile shows that it takes the CPU.
finding-time-wait-port-search-explanation = { $tier } closes its connections to { $remote } first, so their ports stay in TIME_WAIT for a minute and may not be taken over. Half of the { $usable } ports are, all those of the parity that connect() prefers: every new connection looks at each of them before it finds a free one. No error shows; throughput falls by a factor of ten to a hundred.

evidence-ports-used = { $live } live connections and { $waiting } sockets in TIME_WAIT on the dialling side towards { $remote } at the most.
evidence-ports-range = The range is { $low } to { $high }: { $usable } ports for each remote address and port.
evidence-ports-gateway = { $count } of { $requests } requests got an error answer of the gateway (500, 502 or 503).
evidence-ports-no-reuse = Taking over ports in TIME_WAIT is not in force for this remote address (tcp_tw_reuse 2, the default, covers loopback alone; timestamps are needed).

coupling-ports-table = Connections towards the upstream are dropped on the way and hang, and each keeps its port until it is given up. With the table not full it would be a cause by itself.
