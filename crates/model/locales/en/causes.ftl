# The cause graph: sentences of several stations, where cause and symptom are, and why several causes are mended in this order.

coupling-held-table = Connections to the upstream are dropped on the way and hang, and each keeps what it holds until it times out. If the table were not full, this would be a cause of its own.
coupling-place-path = anywhere on the path
coupling-place-behind = in the same tier or one behind it
coupling-place-tier = in the same tier
coupling-place-station = at the same station
coupling-place-listener = at the same listener
coupling-place-awaited = in a tier that is waited for
coupling-place-cores = on the same busy cores
coupling-place-edge = on the way to an upstream

order-starves = Before { $other }: while packets are dropped here, little traffic reaches what lies behind, and nothing there is seen under its load. So few requests succeed now that removing this limit can lose nothing.
order-inner = Before { $other }: this one is closer to the backend. Fixing the other one first would send more requests here than can pass, to fail or to wait.
order-more = Before { $other }: both are equally close to the backend, and this one refuses more.
order-beside = Before { $other }: both are equally close to the backend, and either may be fixed first.
order-last-beside = Last: { $other } is as close to the backend, and either may be fixed first.
order-last = Last: fixing it before { $other } would only overload that one.
