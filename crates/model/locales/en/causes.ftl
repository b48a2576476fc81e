# The cause graph: sentences of several stations, where cause and symptom are, and why several causes are mended in this order.

coupling-held-table = Connections towards the upstream are dropped on the way and hang, and each keeps what it holds until it is given up. With the table not full it would be a cause by itself.
coupling-place-path = anywhere on the path
coupling-place-behind = in the same tier or one behind it
coupling-place-tier = in the same tier
coupling-place-station = at the same station
coupling-place-listener = at the same listener
coupling-place-awaited = in a tier that is waited for
coupling-place-cores = on the same busy cores
coupling-place-edge = on the way to an upstream

order-starves = Before { $other }: while packets are dropped here, little gets through to what lies behind, and nothing there is seen at its load. So little is answered meanwhile that lifting it can lose nothing.
order-inner = Before { $other }: it is closer to the backend. Fixing the other first would only send more requests here, to fail or to wait.
order-more = Before { $other }: it is as close to the backend, and refuses more.
order-beside = Before { $other }: it is as close to the backend, and either may be first.
order-last = Last: fixing it first would only overload { $other }.
