# `chokepoint explain waiting`: the pages of the station and of its findings, with the same five sections.

page-waiting-title = Waiting inside a program
page-waiting-limits =
    What a program does between reading a request and answering it, other than computing or asking another server: waiting for a lock, for one of a limited number of places, for a connection from its pool, for a timer or an event.
page-waiting-shows =
    Requests that a tier has read and not answered, minus those on a CPU, ready for one or throttled (scheduler statistics of its threads), and minus those for which one of its connections waits for another server. Sampled about five times a second.
page-waiting-sure =
    As certain as the account of where requests stood. Connections that carry several requests at once (HTTP/2) or send data without being asked (events) are left out. Not shown if requests were not sampled.
page-waiting-remedies =
    See the finding: waits-inside.
page-waiting-sources =
    struct tcp_info (linux/tcp.h) by sock_diag(7); /proc/PID/task/TID/schedstat; Little 1961 (the mean number at a place is the time spent there each second).

page-waits-inside-title = Requests wait inside a program
page-waits-inside-limits =
    Throughput and response time, while cores, links and the servers behind are idle: requests wait for each other where nothing outside the program shows it.
page-waits-inside-shows =
    More than half of all requests in flight stand inside one program that neither computes nor waits for a server, and one of three things shows that they wait for each other. With a load: even after subtracting what would stand there if each request took as long as a single one, more than half of all wait. Or: all connections of the program to one address are in use in nearly every sample. Or, watching: clients keep their connections and send the next request on them at once, so that most of the time none is free, and the ages of the requests are spread more evenly than chance spreads them in 39 of 40 cases, as happens if something lets them pass one at a time.
page-waits-inside-sure =
    High with a load, or if connections show it; medium if only the even ages do. It is a cause only if no other station found one and neither cores nor links are full. Silent if clients have few requests in flight; if a single request takes as long as one under load, however long that is; for long polling, timers and events, each of which ends by itself (the verdict of watching is then unknown, not healthy); if too many connections carry several requests at once; and for one request at a time. Watching alone cannot tell these from such waiting either, so the verdict is unknown: a limit whose service times vary at random, clients that open a connection per request, and more than some hundred connections, of which only a share is sampled.
page-waits-inside-remedies =
    More connections to the server behind, if these are the limit and that server is not at its own. Otherwise look at what the threads wait for: chokepoint profile --off-cpu --pid PID shows the stacks where they stop.
page-waits-inside-sources =
    As for station waiting. Queues in closed networks: Denning and Buzen 1978. Evenness: Watson's U² (1961), with Stephens' correction for small numbers (1970).
