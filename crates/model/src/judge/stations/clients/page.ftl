# `chokepoint explain clients`: the pages of the station and of its findings, with the same five sections.

page-clients-title = Clients
page-clients-limits =
    The demand: a fixed number of connections with one request under way each can be answered no more often than one answer takes, and a fixed rate gives no more than itself.
page-clients-shows =
    Connections and their peak use. The ceiling of a closed loop is its connections over the time of an answer without any queue: the time for which it holds a worker, and its CPU. That of an open loop is its rate.
page-clients-sure =
    It is never a fault. Where it is the lowest ceiling the server is healthy and limited by demand, and a prediction that names it says that more connections would show the next limit. Without a worker pool on the path, the time of an answer has queues in it that cannot be told apart, and no ceiling is given for a closed loop.
page-clients-remedies =
    More connections (-c) or a higher rate (-q), to see what the server can do beyond.
page-clients-sources =
    The load's own shape and outcome counts; the sockets and processes of worker pools for the time of service.
