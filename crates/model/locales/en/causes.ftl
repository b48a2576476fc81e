# The cause graph: what tells cause from symptom, where the two are, and why several causes are mended in this order.

coupling-queue-pool = All workers of the tier are taken, so that none comes to accept, and a longer queue would only add waiting. With a worker free the queue would be the cause.
coupling-queue-files = accept() fails for want of a file descriptor, and who waits stays in the queue. With descriptors to spare the queue would be the cause.
coupling-queue-connections = Workers without a free connection put off accepting, and the queue stands. One that overflows only in bursts would be a cause beside them.
coupling-queue-search = The search for a free port takes the cores on which this tier runs, so that it comes to accept too late. Without the search the queue would be the cause.
coupling-queue-unforced = The room that is written for this very listener would be enough, and less is in force. With as much in force the queue would be the cause.
coupling-queue-cores = The cores that the tier may use are all busy, so that it comes to accept too late, and a longer queue would only add waiting. With cores idle something else would keep it from accepting.
coupling-syn-queue-accept = Handshakes stay open at this listener because the accept queue has no room for their connections. With room there the SYN queue would be the cause.
coupling-unforced-files = Without a file descriptor nothing can be accepted, however much room the queue has. With descriptors to spare the setting would be the cause.
coupling-pool-blocked = The workers are taken because most of them wait for another server. If they waited for a timer or a disk, the pool would be the cause.
coupling-pool-files = A process without a file descriptor takes no further connection, however many it could serve. With descriptors to spare the pool would be the cause.
coupling-pool-unforced = The workers that are written for this very pool would be enough, and fewer run. With as many running the pool would be the cause.
coupling-pool-link = The link through which the tier's answers leave is full, so that its workers wait to send. With room on the link they would wait for something of their own.
coupling-table-cut = Connections that the server cut off were opened again, and each takes an entry for as long as a closed one stays: without them there would have been room. With nothing cut off the table would be the cause.
coupling-held-table = Connections towards the upstream are dropped on the way and hang, and each keeps what it holds until it is given up. With the table not full it would be a cause by itself.
coupling-ports-table = Connections towards the upstream are dropped on the way and hang, and each keeps its port until it is given up. With the table not full it would be a cause by itself.
coupling-blocked-loss = Packets between the two are lost on the way, and each loss keeps a worker waiting until they are sent again. With nothing lost the other server would be the place to look.
coupling-pool-buffer = The tier's send buffers are full of what was sent and is not acknowledged, and its workers wait for room in them. With room they would be free as soon as the answer is written.
coupling-pool-receiver = The clients take answers no faster than their windows allow, and workers wait until they have. With clients that take more at once they would be free.
coupling-pool-first-window = Answers leave in more round trips than they need, and workers wait meanwhile. With a usual first window they would be free sooner.
coupling-pool-loss = Packets of the tier's answers are lost on the way, and its workers wait until they were sent again. With nothing lost they would wait for something of their own.
coupling-blocked-table = Connections towards the other server are dropped on the way and hang. With the table not full that server would be the place to look.
coupling-blocked-awaited = The server that the workers wait for, or one behind it, has a cause of its own. If it had none, it would be the place to look.
coupling-blocked-cores = The server that the workers wait for, or one behind it, computes on cores that are all busy. With cores idle it would be the place to look.
coupling-generator-asks-again = Most requests were turned away at once, and a closed loop sends the next one at once: that kept the generator's cores busy. With most requests answered well its own limit would hide the server's.
coupling-queue-quota = A CPU quota stops the processes that should accept for most of the time, and a longer queue would only add waiting. With CPU time left the queue would be the cause.
coupling-unforced-quota = A CPU quota stops the servers, so that what is written would be filled up as well. With CPU time left the setting would be the cause.
coupling-held-quota = A CPU quota stops the workers, and each connection is held for as much longer. With CPU time left their number would be the cause.
coupling-pool-quota = A CPU quota stops the workers in the middle of what they serve, and more of them would share the same CPU time. With CPU time left the pool would be the cause.
coupling-quota-search = The search for a free port uses the CPU time up. Without it the quota would be the cause.

coupling-inside-found = A station found what holds requests back, and those that stand inside the program may wait for just that. With nothing else found the program would be the place to look.
coupling-inside-cores = The cores are all busy, so that whatever the requests wait for inside the program comes to run too late. With cores idle the program would be the place to look.
coupling-inside-link = The link is full, so that answers cannot leave, and what stands inside the program may wait for that. With room on the link the program would be the place to look.

coupling-place-path = anywhere on the path
coupling-place-behind = in the same tier or one behind it
coupling-place-tier = in the same tier
coupling-place-station = at the same station
coupling-place-listener = at the same listener
coupling-place-awaited = in a tier that is waited for
coupling-place-cores = on the same busy cores
coupling-place-edge = on the way to an upstream

order-starves = Before { $other }: while packets are dropped here, little gets through to what lies behind, and nothing there is seen at its load. So little is answered meanwhile that lifting it can lose nothing.
order-inner = Before { $other }: it lies nearer to the answer. Were the other one lifted first, more requests would get here than pass, to fail or to wait.
order-more = Before { $other }: it lies as near to the answer, and turns away more.
order-beside = Before { $other }: it lies as near to the answer, and either may be first.
order-last = Last: lifted before { $other }, it would only send more requests there than pass.
