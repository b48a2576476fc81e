# What remedy look-inside does, and its risk.

remedy-allow-more-connections-text = Let { $tier } use more than { $connections } { $connections ->
    [one] connection
   *[other] connections
} to { $remote }: maxconn of the server line (HAProxy), max_conns of the upstream's server (nginx), the size of the connection pool (a program). First see whether the server behind has room: a limit that protects it is right.
remedy-allow-more-connections-risk = The server behind gets more at once. Where it has no room, requests wait there instead, or fail.
remedy-look-inside-text = See what the threads of { $tier } wait for: the stacks at which they stop running, and how often they call what waits. Stacks that most threads share name the lock, the queue or the pool. The program's own documentation names its limits.
remedy-look-inside-risk = Sampling takes a few per cent of a core while it lasts.
