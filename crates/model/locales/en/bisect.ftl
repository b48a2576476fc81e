# Tiers loaded by themselves.

bisect-none = No tier could be loaded by itself, so that nothing explains the whole.
bisect-tier = The whole gives { $rate } good answers/s, and { $tier } alone, with all that it calls itself, gives no more than { $alone }/s: it explains the whole.
bisect-demand = The whole was asked for no more than the { $rate }/s that it gave; the slowest part by itself, { $tier }, gives { $alone }/s.
bisect-cores = The parts share cores that are full. Alone a good answer costs { $each } of CPU time, { $own } µs together; the whole takes { $cost } µs. The other { $rest } µs go into passing requests on, and into what else the first one does with them.
bisect-cores-untold = The parts share cores that are full: the slowest by itself, { $tier }, gives { $alone }/s, the whole { $rate }/s. What each costs of their time could not be read.
bisect-series = Nothing is full: with so few connections a request spends its time in one part after the other, which together would give about { $series }/s; the whole gives { $rate }/s.
bisect-between = The parts do not explain the whole: the slowest by itself, { $tier }, gives { $alone }/s, and the whole { $rate }/s. What holds it back lies between them: connections, queues and ports on the way from one to the other, or what the first one does with a request before it passes it on.
bisect-left = Not loaded by itself: { $tiers }, which may hold the whole back as well.
bisect-no-configuration = What { $tier } answers itself stands in no configuration that is read.
bisect-no-own = The configuration of { $tier } names no file or page that it answers by itself for this host.
bisect-unasked = No configuration that was read tells what { $front } asks of { $tier } for this request.
bisect-unknown = What it is asked for cannot be told: { $unknown }.
bisect-tls = It is reached over TLS, which no load of this version speaks.
bisect-protocol = It is asked by { $kind }, which no load speaks.
bisect-failed = It could not be loaded by itself: { $why }.
bisect-beyond = The whole gives { $rate }/s, more than { $tier } alone with { $alone }/s: not every request reaches it, as where answers are cached, or it was loaded by fewer connections. So it is not what limits the whole.
bisect-left-behind = Not loaded by itself: { $tiers }, for which it may wait.
bisect-name = It is named by a name that only the resolver knows ({ $at }).
bisect-guard = Its load was stopped by the guard { $guard }.
bisect-another = Another server than { $tier } answered there: the address or the socket's path leads elsewhere from here.
bisect-interrupted = Its load was interrupted.
