# `chokepoint explain clients`: the pages of the station and of its findings, with the same five sections.

page-clients-title = Clients
page-clients-limits =
    The demand. A fixed number of connections with one request each completes no more requests than the time of a response allows, and a fixed rate offers no more than itself.
page-clients-shows =
    Connections and their peak use. The ceiling of a closed loop is its connections divided by the time of a response without queueing: the time that it occupies a worker, and its CPU time. The ceiling of an open loop is its rate.
page-clients-sure =
    It is never a fault. If it is the lowest ceiling, the server is healthy and limited by demand; a prediction that names it says that more connections would show the next limit. Without a worker pool on the path the time of a response includes queues that cannot be separated, and a closed loop has no ceiling.
page-clients-remedies =
    More connections (-c) or a higher rate (-q) show what the server can do beyond that.
page-clients-sources =
    The load's own shape and outcome counts; the sockets and processes of worker pools for the time of service.
