# `chokepoint explain waiting`: the pages of the station and of its findings, with the same five sections.

page-waiting-title = Waiting inside a program
page-waiting-limits =
    What a program does between reading a request and answering it, other than computing or asking another server: waiting for a lock, for one of a limited number of places, for a connection of its pool, for a timer or an event.
page-waiting-shows =
    Requests that a tier has read and not answered, less those on a CPU, ready for one or stopped by a quota (its threads' scheduler statistics), and less those for which one of its connections waits for another server. Sampled about five times a second.
page-waiting-sure =
    As sure as the account of where requests stood. Connections that carry several requests at once (HTTP/2) or send without being asked (events) are left out. Not shown where requests were not sampled.
page-waiting-remedies =
    See the finding: waits-inside.
page-waiting-sources =
    struct tcp_info (linux/tcp.h) by sock_diag(7); /proc/PID/task/TID/schedstat; Little 1961 (the mean number at a place is the time spent there each second).

page-waits-inside-title = Requests wait inside a program
page-waits-inside-limits =
    Throughput and response time, with cores, links and servers behind at rest: requests wait for each other where nothing outside the program shows it.
page-waits-inside-shows =
    Surely more than half of all requests under way stand inside one program that neither computes nor waits for a server, and one of three things shows that they wait for each other. With load: taken away what would stand there if each took as long as one alone, still more than half of all wait. All connections of the program to one address are in use in nearly every sample. Or, watched: the clients keep their connections and ask again on them at once, so that most of the time none is free, and the ages of the requests are spread more evenly than chance spreads them in thirty-nine of forty cases, as where something lets them pass one by one.
page-waits-inside-sure =
    High with load, or where connections show it; medium where only the evenness of the answers does. A cause only where no other station found one and neither cores nor links are full. Silent where clients have little under way; where an answer takes as long alone as under load, however long that is; for long polling, timers and events, each of which ends by itself (watched, the verdict is then unknown, not healthy); where more connections carry several requests at once than make the difference; for a single request at a time. A limit whose service times vary as much as chance does, clients that open a connection for each request, and a crowd of more than some hundred connections, of which only a share is sampled, cannot be told from such waiting while watching: unknown as well.
page-waits-inside-remedies =
    More connections to the server behind, where these are the limit and that server has room. Else look at what the threads wait for: chokepoint profile --off-cpu --pid PID shows the stacks at which they stop.
page-waits-inside-sources =
    As for station waiting. Queues in closed networks: Denning and Buzen 1978. Evenness: Watson's U² (1961), with Stephens' correction for small numbers (1970).
