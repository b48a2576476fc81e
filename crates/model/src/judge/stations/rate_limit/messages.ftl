# Station rate-limit: its states, findings and evidence, and what brings them about.

state-rate-limit-ok = { $directive } with zone { $zone } ({ $place }) did not hold this traffic back.
state-rate-limit-harmless = { $directive } with zone { $zone } ({ $place }) refused { $count } requests: too few of this traffic to count as harm.
state-rate-limit-refusing = { $directive } with zone { $zone } ({ $place }) refused requests with status { $status }.
state-rate-limit-delaying = { $directive } with zone { $zone } ({ $place }) lets requests wait, so that { $rate } a second pass.

finding-rate-limited-by-config-title = { $tier } limits requests by configuration to { $rate } a second (zone { $zone })
finding-rate-limited-by-config-explanation = The configuration of { $tier } allows { $rate } requests a second for each value of { $key } ({ $directive }, zone { $zone }, { $place }). What comes faster is refused with status { $status }. Somebody set this on purpose, and the server does as it was told; for this traffic it is what holds it back. One load generator, or one proxy in front, is one address and so one client to the limit.
finding-rate-limited-by-config-title-delay = { $tier } delays requests by configuration to { $rate } a second (zone { $zone })
finding-rate-limited-by-config-explanation-delay = The configuration of { $tier } lets { $rate } requests a second pass for each value of { $key } ({ $directive }, zone { $zone }, { $place }) and makes up to { $burst } more of them wait their turn. No request fails, but answers come exactly at that rate, however idle the server is. Somebody set this on purpose. One load generator, or one proxy in front, is one address and so one client to the limit.
finding-rate-limited-by-config-title-connections = { $tier } limits connections by configuration to { $connections } (zone { $zone })
finding-rate-limited-by-config-explanation-connections = The configuration of { $tier } allows { $connections } connections with a request in service at once for each value of { $key } ({ $directive }, zone { $zone }, { $place }). Further ones are refused with status { $status }. Somebody set this on purpose, and the server does as it was told; for this traffic it is what holds it back. One load generator, or one proxy in front, is one address and so one client to the limit.

evidence-rate-limit-rate = The configuration allows { $rate } requests a second for each { $key }, { $burst ->
    [0] and no burst: what a turn leaves over in whole milliseconds is lost, and fewer pass (zone { $zone }).
   *[other] and { $burst } more at once (zone { $zone }).
}
evidence-rate-limit-connections = The configuration allows { $connections } connections at once for each { $key } (zone { $zone }).
evidence-rate-limit-answers = { $count } of { $requests } requests were answered with status { $status }; { $goodput } a second were answered as expected.
evidence-rate-limit-waits = { $goodput } requests a second were answered as expected, and half of them took { $count } ms or longer.
