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
    More than half of all requests in flight stand inside one program that neither computes nor waits for a server, and one of these shows that they need not. What the threads wait for is named where the kernel says it and it explains the requests: a lock on a file, with who holds it, a semaphore, a lock in memory that processes share (where each process serves one request, with what the one that has it waits for meanwhile), a lock that another session of MariaDB or MySQL has (its threads wait until a time, and were woken before it), the disk, a full pipe or datagram socket, what others write to a pipe, a name server, a process that was started, a timer. Beside it other servers that run the same program answer the same caller as often, and each request takes less than half as long there. With a load: even after subtracting what would stand there if each request took as long as a single one, more than half of all wait. Or: all connections of the program to one address are in use in nearly every sample, or always the same number of them and never more, fewer than the requests, and each was answered meanwhile. Connections on which no answer came at all are told beside the finding: what serves their requests serves nothing else. Or, watching: most of them were found waiting for a lock on a file or for one of another session; or the one thread that serves all was found waiting for the same kind of thing most of the time; or requests of the usual length stood unread in more samples than the program's threads ran or were ready to, all of them together; or the number of requests differs between parts of the window, and the more there are, the longer each takes.
page-waits-inside-sure =
    High with a load, or if connections show it; medium if it only shows by times that grow. It is a cause only if no other station found one and neither cores nor links are full: without that wait, nothing more would pass. Silent if clients have few requests in flight; if a single request takes as long as one under load, however long that is; if each takes as long whatever their number; if a pause makes all requests old at once; if too many connections carry several requests at once; and for one request at a time. If watched clients ask again as soon as they have an answer, the number of requests never changes. Unless the program leaves requests unread while it does not run, nothing then tells a limit from slow work, however evenly responses come, and the verdict is unknown: a load (-c) tells.
page-waits-inside-remedies =
    More connections to the server behind, if these are the limit and that server is not at its own. Otherwise look at what the threads wait for: chokepoint profile --off-cpu --pid PID shows the stacks where they stop.
page-waits-inside-sources =
    As for station waiting. proc_pid_syscall(5), /proc/PID/fd, proc_locks(5), /proc/PID/task/PID/children and /proc/PID/net/udp for what threads wait for; futex(2) and lock waits of MariaDB (storage/innobase/lock/lock0lock.cc, sql/mdl.cc). Queues in closed networks: Denning and Buzen 1978. Response time and number: Little 1961.

page-collects-garbage-title = Garbage is collected too often
page-collects-garbage-limits =
    Throughput and response time of a program whose runtime gives unused memory back by itself: its other threads stand still for that, or have fewer cores.
page-collects-garbage-shows =
    Threads with the names of collectors (HotSpot's GC Thread#, G1 Conc#, VM Thread where nobody else collects, ZWorker, Shenandoah; .NET's server GC; JavaScriptCore's HeapHelper), and how long each ran or was ready to. Where the cores are full their part of what the servers used is lost, else the time of the busiest thread that makes the others stand still. A cause if a tenth more requests would pass with one part in thirteen, the goal of Java's virtual machine. Where no thread has such a name, the functions in the samples of a profile (Go's runtime.gcBgMarkWorker, scanobject and their like; V8, Ruby, CPython and PHP where their functions have names), as the lower end of their interval, where the cores are full; a cause beyond a quarter, which Go's runtime gives to it while it marks.
page-collects-garbage-sure =
    High with a load, medium when watching; silent while watched requests are seen not to wait for each other. Names are given by the program and can be anything. Collectors without threads of their own are seen only by functions with names, while cores are full: not in programs without symbols, and not .NET without server GC. With more than 256 threads no times are read.
page-collects-garbage-remedies =
    A larger heap (java -Xmx; in a container -XX:MaxRAMPercentage, whose default is 25; .NET: DOTNET_GCHeapHardLimit), or less that is kept and thrown away: jcmd PID GC.class_histogram shows what fills it. Go: a larger GOGC, or GOMEMLIMIT.
page-collects-garbage-sources =
    proc_pid_comm(5); HotSpot: src/hotspot/share/gc, Hotspot Virtual Machine Garbage Collection Tuning Guide (GCTimeRatio); Go: runtime/mgcpacer.go (gcBackgroundUtilization).

page-answers-none-title = A server answers nothing
page-answers-none-limits =
    The requests that are passed to this server: they take their callers' time until somebody gives up, and fail.
page-answers-none-shows =
    Of all requests in flight most wait for one server. Its end of each connection that was sampled received a request and sent nothing, in no sample of the window, and one of these shows that this is its fault. Requests fail because there is no answer (status 502, 503 or 504 of a gateway, or clients that gave up), while another server behind the same caller answers, or nothing is answered at all. Or its caller passes the same requests to another server (the configuration names both for them, or both run the same program with the same words), packets showed responses of that one and none of this one, and at least three connections were seen to end without an answer.
page-answers-none-sure =
    Medium: a connection that ends with its answer is seldom sampled after it, so a server that is too slow for its callers may answer a few. Silent if an answer of the server was sampled or seen in packets, and over TLS, where a handshake looks like an answer. Without another server that does the same work it is silent, too, if requests do not fail, if something is answered and no other server behind the same caller is seen to do so, and if the cores are full. It is a symptom where the server is stopped, throttled, or has no free worker.
page-answers-none-remedies =
    Look at where the threads of the server stop, then restart it. Until then take it out of its caller's list of servers; health checks do that by themselves.
page-answers-none-sources =
    As for station waiting; RFC 9110, 15.6.5 (504 Gateway Timeout).

page-answers-errors-title = A server answers with errors
page-answers-errors-limits =
    Requests that get a response, but one with status 5xx: to their clients they have failed.
page-answers-errors-shows =
    At least a hundredth of the requests are answered with a server error, as the load, the access log or packets show. From the first server on, the path is followed to the innermost one whose responses have them: where the servers behind a server send less than half as many errors as it does, it makes them itself; so it does where they send nothing, though their responses to its checks can be read. Statuses are read from the first bytes of responses over HTTP/1, FastCGI and SCGI in plain text.
page-answers-errors-sure =
    High if no server is behind the one that makes the errors, or if the responses of those behind were read and had fewer. Medium if these are not read: databases, TLS, HTTP/2. Silent if the server's configuration passes requests to one that was not read, or if it asks a server through a unix socket, unless the status is one that only a gateway makes (502, 504). It is a symptom wherever another station refuses requests or holds them back in the same server or behind it.
page-answers-errors-remedies =
    Read the error log of that server: it is the only place that has the reason. Of HAProxy with a command socket (stats socket, a unix socket) the report says which servers it has taken out of service, since when, and what its checks found.
page-answers-errors-sources =
    RFC 9110, 15.6; RFC 9112, 4; RFC 3875, 6.3.3; packet(7).
