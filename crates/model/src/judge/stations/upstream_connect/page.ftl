# `chokepoint explain upstream-connect`: the pages of the station and of its findings, with the same five sections.

page-upstream-connect-title = Connections towards an upstream
page-upstream-connect-limits =
    How often a tier waits for a handshake, and how much CPU both ends spend on opening, accepting and closing: once a request, or once for many.
page-upstream-connect-shows =
    Connections opened a second, in the namespace of the tier that dials, and what its configuration says of reuse.
page-upstream-connect-sure =
    The configuration tells what is meant, the counter what happens. For unix sockets nothing counts. Connections that another program of the same namespace opens are in the counter too: it can show that a request has no connection of its own, and not for which edge it has one.
page-upstream-connect-remedies =
    See upstream-connection-churn.
page-upstream-connect-sources =
    Tcp.ActiveOpens in /proc/net/snmp (RFC 4022); sock_diag(7) for connections in SYN-SENT; nginx: ngx_http_upstream_module (keepalive, keepalive_requests), ngx_http_fastcgi_module (fastcgi_keep_conn).

page-upstream-connection-churn-title = A connection is opened for each request
page-upstream-connection-churn-limits =
    Throughput where pages are cheap, since opening a connection is a large part of their CPU; response time where the upstream is far, since each request waits a round trip first.
page-upstream-connection-churn-shows =
    No reuse in the configuration and about one connection opened a request. A cause where the cores are the limit, nothing else is a cause, and a profile shows that opening and closing these connections takes so much of their time that throughput would rise by a tenth or more without it, by the lower end of the interval; told under "Could be faster" where that is not sure, or where no profile was taken and a connection is a tenth or more of the CPU that a request costs. A cause, too, where requests wait for their connection in a third or more of their time, the cores are idle and no SYN was lost.
page-upstream-connection-churn-sure =
    High where the counter shows it, medium for unix sockets, of which only the configuration tells. What it would give is measured, not promised. Silent where pages cost much more than a connection, where the load does not reach the upstream, where connections are kept, where cores are idle and connecting is quick, while anything else is a cause, and where an open loop gets all of its answers.
page-upstream-connection-churn-remedies =
    Reuse with a bound. A kept connection holds a worker that serves one connection at a time (php-fpm, prefork): unbounded reuse doubles the throughput of some connections while the others starve (p99 96 ms to 1.5 s, and timeouts, at 1,000 clients and 20 workers). So the connections that are kept over all of nginx's workers stay below four fifths of the pool, and each is closed after 5, 20 or 100 requests (keepalive_requests, from nginx 1.15.3 on). With --fix, once something else was mended, the three are measured one after the other, and the best within the objective is kept: by default a p99 below half of the request's timeout and no more failures. A literal address in fastcgi_pass gets an upstream block of its own; undo puts the file back byte for byte.
page-upstream-connection-churn-sources =
    As for station upstream-connect.

page-idle-close-race-title = Kept connections are closed under a request
page-idle-close-race-limits =
    Correct answers: requests that may not be sent twice fail with 502, now and then and at any load, most where connections are idle for about as long as the upstream keeps them.
page-idle-close-race-shows =
    A configuration that keeps connections; lines in nginx's error log that the upstream closed or reset the connection before it answered; answers with 502, at least one of a thousand requests; and resets that the upstream's own namespace sent for at least half of those lines.
page-idle-close-race-sure =
    High where the upstream is on this host, so that its resets are counted; medium where it is elsewhere, and there only lines that say "reset" count. Silent where no request failed (nginx asks again where it may), where connections are not kept, where the upstream refused connections, ran out of connections, overflowed its accept queue, or where one of its processes was started or ended meanwhile: all of these end connections as well, and so does a program that dies within a request, but that sends no reset.
page-idle-close-race-remedies =
    Words alone: the idle timeout of the side that dials must be the shorter one. Which of both is to change depends on who owns them.
page-idle-close-race-sources =
    nginx error log; Tcp.OutRsts of /proc/net/snmp (RFC 4022); RFC 9293, section 3.10.7.1 (a segment that comes to a closed socket is answered by a reset); RFC 9112, section 9.6; ngx_http_upstream_module (keepalive_timeout), ngx_http_proxy_module (proxy_next_upstream).
