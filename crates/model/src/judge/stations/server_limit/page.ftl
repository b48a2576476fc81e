# `chokepoint explain server-limit`: the pages of the station and of its findings, with the same five sections.

page-server-limit-title = Limit of a server
page-server-limit-limits =
    The requests or connections that a server's configuration allows at a time: at one server behind it, at a listener, or in all; and the new connections that it allows in a second. What exceeds it waits. HAProxy: maxconn of a server line, of a frontend, of a bind line and in global; rate-limit sessions of a frontend, and maxsessrate in global. PostgreSQL: max_connections, beyond which it refuses. nginx and php-fpm have stations of their own for theirs.
page-server-limit-shows =
    For each server with such a limit, the limit that holds requests back, else the one that is used most: what is in use on average, and how many wait. For a limit of new connections, how many were accepted in a second.
page-server-limit-sure =
    The limit is read from the configuration, its use from the sockets; HAProxy's own count of the requests that wait is evidence where it has a command socket. If two lines name one address, their use cannot be told apart and neither is judged. Names of servers are not resolved, and their limits are not judged.
page-server-limit-remedies =
    See server-limit-reached.
page-server-limit-sources =
    PostgreSQL manual, 20.3 (max_connections, superuser_reserved_connections); HAProxy Configuration Manual 2.6, sections 3 (maxconn), 4.2 (maxconn, timeout queue), 5.1 and 5.2 (maxconn); sock_diag(7).

page-server-limit-reached-title = A limit in the configuration of a server is reached
page-server-limit-reached-limits =
    All requests that pass the limit. Those in excess wait until one ends, or until the server gives up and answers with an error (HAProxy: 503 after timeout queue).
page-server-limit-reached-shows =
    As many requests as allowed wait for the server behind, all the time, and more have been read and stand inside; or as many connections as allowed are accepted (at a time, or within a tenth in a second), and more stand in the accept queue in most samples. Cores are idle. Of a server that refuses what exceeds its limit: at least twice all connections that every client can have were found taken, by all its sockets together, and half of them on average; connections come and go, or the server has closed some; and at least a hundredth of the requests are answered with a server error.
page-server-limit-reached-sure =
    High with load, if the server behind takes no longer for a request than for a single one before. Medium if traffic is only watched, since the server behind may not be as fast with more, and if the file was changed after it was read. Silent if fewer are in use than allowed; if what waits costs less than a tenth of the time; if the cores have no time for more; if requests wait unread at the server behind; and if that server takes twice as long as alone, because then it is the place.
page-server-limit-reached-remedies =
    A higher number in the line of the limit, its file and what puts it in force. The number follows from the demand: the rate that is asked for times the time of a request, and a reserve; the load's connections in a closed loop; twice the limit if the demand is not known, and for a limit of new connections, whose demand nothing shows. --fix changes it for HAProxy with a master process (-W): the value in the section or line that has the limit, or a value of its own there if it comes from defaults or default-server, which stay as they are. HAProxy tests the files (-c), the master is told to read them again (SIGUSR2), and a new worker must run; if none starts, the file is put back. Undo restores the file byte for byte. For PostgreSQL, for HAProxy without a master, and where the value is computed from its environment, the report says what to write: only a restart puts it in force.
page-server-limit-reached-sources =
    As for station server-limit.
