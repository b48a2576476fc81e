# Tiers loaded by themselves.

bisect-none = No tier could be loaded on its own, so nothing is known about the parts.
bisect-tier = { $tier } explains the limit: on its own, with everything it calls, it serves { $alone }/s at most. All tiers together serve { $rate }/s.
bisect-demand = The load asked for no more than the { $rate }/s that were served. The slowest tier on its own, { $tier }, serves { $alone }/s.
bisect-cores = The tiers share cores, and these are full. On its own, each tier needs this CPU time per good response: { $each }; { $own } µs in all. Together they need { $cost } µs. The other { $rest } µs are spent on passing requests on, and on other work of the first tier.
bisect-cores-untold = The tiers share cores, and these are full. The slowest tier on its own, { $tier }, serves { $alone }/s; all together serve { $rate }/s. The CPU time per response of each tier could not be read.
bisect-series = Nothing is full. With so few connections, a request passes through the tiers one after the other: their times added up allow about { $series }/s, and { $rate }/s were served.
bisect-between = No tier explains the limit: the slowest on its own, { $tier }, serves { $alone }/s, and all together serve { $rate }/s. The limit lies between the tiers (connections, queues, ports), or in what the first tier does with a request before it passes it on.
bisect-left = Not loaded on their own: { $tiers }. The limit may also be there.
bisect-no-configuration = No configuration that was read shows what { $tier } answers itself.
bisect-no-own = The configuration of { $tier } has no file or page for this host that it answers itself.
bisect-unasked = No configuration that was read shows what { $front } requests from { $tier }.
bisect-of-another-user = Only the configuration of { $front } names it, which is another user's, and no connection to it was seen. Nothing is asked there in that user's place.
bisect-unknown = The request that it gets is unknown: { $unknown }.
bisect-tls = It is reached over TLS, which this load does not support.
bisect-protocol = It is reached over { $kind }, which this load does not support.
bisect-failed = It could not be loaded on its own: { $why }.
bisect-beyond = { $tier } on its own serves { $alone }/s, less than the { $rate }/s of all together: some requests never reach it, for example because responses are cached, or it was loaded with fewer connections. So { $tier } is not the limit.
bisect-left-behind = Not loaded on their own: { $tiers }. This tier may wait for them.
bisect-name = It is addressed by a host name that only the resolver knows ({ $at }).
bisect-guard = The guard { $guard } stopped its load.
bisect-another = A server other than { $tier } answered there: the address or socket path leads elsewhere from here.
bisect-interrupted = Its load was interrupted.
