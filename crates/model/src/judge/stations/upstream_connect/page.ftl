# `chokepoint explain upstream-connect`: the pages of the station and of its findings, with the same five sections.

page-upstream-connect-title = Connections to an upstream
page-upstream-connect-limits =
    How often a tier waits for a handshake, and how much CPU both ends spend on opening, accepting and closing connections: once per request, or once for many.
page-upstream-connect-shows =
    Connections opened per second in the namespace of the connecting tier, and what its configuration says about reuse.
page-upstream-connect-sure =
    The configuration shows the intention, the counter what happens. Nothing counts connections to unix sockets. The counter includes connections that other programs of the namespace open: it can show that requests have no connection of their own, but not for which edge they have one.
page-upstream-connect-remedies =
    See upstream-connection-churn, idle-close-race, upstream-unreachable and calls-repeated.
page-upstream-connect-sources =
    Tcp.ActiveOpens in /proc/net/snmp (RFC 4022); sock_diag(7) for connections in SYN-SENT; nginx: ngx_http_upstream_module (keepalive, keepalive_requests), ngx_http_fastcgi_module (fastcgi_keep_conn).

page-upstream-connection-churn-title = A connection is opened for each request
page-upstream-connection-churn-limits =
    Throughput if pages are cheap, because opening a connection is then a large part of their CPU time; response time if the upstream is far away, because each request first waits for a round trip.
page-upstream-connection-churn-shows =
    No reuse in the configuration and about one connection opened per request. It is a cause if the cores are the limit, nothing else is a cause, and a profile shows that throughput would rise by at least a tenth without opening and closing these connections (lower end of the interval). Where clients speak plain HTTP and the proxy spends time on TLS, their handshakes count: what both ends spend on TLS and neither the bytes of the namespace nor the records of the requests explain. If that is not certain, or no profile was taken and a connection is at least a tenth of a request's CPU time, it is listed under "Could be faster". It is also a cause if requests wait for their connection at least a third of their time, the cores are idle and no SYN was lost.
page-upstream-connection-churn-sure =
    High if the counter shows it, medium for unix sockets, where only the configuration does. The gain is measured, not promised. Silent if pages cost much more than a connection, if the load does not reach the upstream, if connections are kept, if cores are idle and connecting is quick, while anything else is a cause, and if an open loop gets all of its responses.
page-upstream-connection-churn-remedies =
    First a unix socket, where both are on this host: opening a connection there costs a fraction of one over TCP, takes no local port and holds no worker. On one core with 1,000 clients, a connection each took 6,000 to 6,500/s over TCP (p99 188 to 272 ms) and 9,000 to 9,900/s over a unix socket (p99 117 to 164 ms). It is offered for nginx and php-fpm if the pool listens on loopback, nobody but nginx was seen to use its address, both see the same files and may be edited; otherwise the report says in words what is missing. The pool first runs a second time, on the socket; then nginx passes to the socket, and a connection is tried with its workers' rights before; when its old workers have ended and no worker of the old pool was woken for two seconds, the pool itself moves to the socket. Undo goes the same way back. Elsewhere limited reuse. A kept connection occupies a worker that serves one connection at a time (php-fpm, prefork). Unlimited reuse doubles the throughput of some connections while the others starve (p99 from 96 ms to 1.5 s, and timeouts, at 1,000 clients and 20 workers). So the kept connections of all nginx workers together stay below four fifths of the pool, and each is closed after 5, 20 or 100 requests (keepalive_requests, since nginx 1.15.3). With --fix, after another fix was kept, the three are measured one after the other, and the best one within the objective is kept: by default a p99 below half of the request's timeout and no more failures. A literal address in fastcgi_pass gets an upstream block of its own; undo restores the file byte for byte.
page-upstream-connection-churn-sources =
    As for station upstream-connect.

page-idle-close-race-title = Kept connections are closed while a request is sent
page-idle-close-race-limits =
    Correct responses: requests that may not be sent twice fail with 502, now and then and at any load, most often if connections are idle for about as long as the upstream keeps them.
page-idle-close-race-shows =
    A configuration that keeps connections; lines in nginx's error log that the upstream closed or reset the connection before it answered; 502 for at least one request in a thousand; and resets sent by the upstream's namespace for at least half of those lines.
page-idle-close-race-sure =
    High if the upstream is on this host, where its resets are counted. Medium if it is elsewhere; then only log lines that say "reset" count. Silent if no request failed (nginx retries where it may), if connections are not kept, and if the upstream refused connections, ran out of connections, overflowed its accept queue, or if one of its processes started or ended in that time: all of these end connections too. So does a program that crashes during a request, but it sends no reset.
page-idle-close-race-remedies =
    Advice only: the idle timeout of the connecting side must be the shorter one. Which of the two to change depends on who owns them.
page-idle-close-race-sources =
    nginx error log; Tcp.OutRsts of /proc/net/snmp (RFC 4022); RFC 9293, section 3.10.7.1 (a segment that comes to a closed socket is answered by a reset); RFC 9112, section 9.6; ngx_http_upstream_module (keepalive_timeout), ngx_http_proxy_module (proxy_next_upstream).

page-upstream-unreachable-title = An upstream answers no connection
page-upstream-unreachable-limits =
    The requests that are passed to this server: each waits until its caller gives up connecting, and then fails or goes to another server. With two servers, one of which is not there, half of all requests wait so.
page-upstream-unreachable-shows =
    Connections to one address stand in SYN-SENT. At least 12 of them were seen, and none was established; none has ended in TIME_WAIT; packets showed no response from there. The program that connects has at least half as many requests that are as old as these connections. Or: the configuration passes the requests to an address of this host, no socket listens there, and the kernel counts refused connections, as many as requests wait inside the caller or fail. Requests must wait for it for a tenth of the throughput, or a hundredth of them fail with status 502, 503, 504 or without an answer.
page-upstream-unreachable-sure =
    High. A connection that carries a request and its answer is established for at least as long as its SYN takes, so 12 that are seen without an established one come from a server that answers once in four thousand times. Medium for refused connections if other programs of the namespace connect as well. Refused connections to another host are over too soon to be seen: the errors that follow are told as answers-errors. Silent if a server behind the same caller is asked instead without a wait, and where a program tries to reach what no request waits for, such as a collector of its logs. Of a program whose configuration is not read the address is not known: more than half of the requests end with an error or without an answer, at least as many connections are refused in its namespace, and it is the only such program of the path; medium, for another program may have made them.
page-upstream-unreachable-remedies =
    Start the server, or take it out of the list. Health checks, or limits of failed connections, do that by themselves: max_fails and fail_timeout of nginx, check and option redispatch of HAProxy. Until then a short timeout for connecting bounds what each request loses.
page-upstream-unreachable-sources =
    sock_diag(7), SYN-SENT; tcp(7), tcp_syn_retries; Tcp.AttemptFails and Tcp.OutRsts in /proc/net/snmp (RFC 4022); RFC 9293, 3.10.7.1; ngx_http_upstream_module (max_fails, fail_timeout); HAProxy configuration manual (timeout connect, retries, option redispatch).

page-calls-repeated-title = Failed calls are made again
page-calls-repeated-limits =
    The server that is asked: it gets a multiple of the requests, and may stay overloaded by that when what made it slow at first is over. The response time: each request takes the time of all its calls.
page-calls-repeated-shows =
    More calls than requests, of which many fail: with an error (5xx or 429, counted on the wire at the server), because the caller closes the connection before the response (seen at both ends of the sockets), or because the connection ends without one (connections opened, less responses). More calls fail than requests fail in front by a quarter and more, and the failed calls take a tenth of the throughput. It is a cause where the server that is asked answers at least as many calls as there are requests, so that it would keep up if each request asked once; where its errors hurt no client (otherwise answers-errors tells them, with the number of the calls); and where its connections end without a response while no requests wait inside it. Elsewhere it is a note.
page-calls-repeated-sure =
    High if calls and requests are counted in the same packets, or a load counts the requests; medium otherwise. The numbers are least ones: of calls that are given up those that a sample met are counted. Silent where calls are answered (a page that asks several things), where each failed call fails its request or is its only one, where several calls of a request stand at once, where one of several things that a request asks fails and the request does without it, and where responses cannot be read and nothing is given up (TLS, HTTP/2). A request that asks several things at one server, most of which fail and which it does without, looks the same.
page-calls-repeated-remedies =
    Advice only: few tries, a growing and random pause between them, and a budget (retries are at most a tenth of all calls), so that a server that fails gets hardly more calls than one that does not. The time limit of a call must be longer than the server takes under load.
page-calls-repeated-sources =
    sock_diag(7), CLOSE-WAIT and FIN-WAIT; packet(7); Tcp.ActiveOpens in /proc/net/snmp (RFC 4022); Bronson et al., Metastable Failures in Distributed Systems (HotOS 2021); RFC 9110, sections 9.2.2 and 15.6; ngx_http_proxy_module (proxy_next_upstream_tries); HAProxy configuration manual (retries, retry-on).
