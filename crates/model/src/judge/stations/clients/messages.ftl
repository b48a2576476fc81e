# Station clients: its states, findings and evidence, and what brings them about.

short-clients = clients

state-clients-closed = { $connections } connections, each with one request at a time.
state-clients-open = { $rate } requests/s were offered over at most { $connections } connections.
