# Station rate-limit: its states, findings and evidence, and what brings them about.

short-rate-limit = rate limit

state-rate-limit-ok = { $directive } with zone { $zone } ({ $place }) did not limit this traffic.
state-rate-limit-exceeded = { $directive } with zone { $zone } ({ $place }) would let { $rate } requests per second pass, but more were answered: it is not in force, does not count these, or counts them under several values of { $key }.
state-rate-limit-harmless = { $directive } with zone { $zone } ({ $place }) refused { $count } requests: too few to count as harm.
state-rate-limit-refusing = { $directive } with zone { $zone } ({ $place }) refused requests with status { $status }.
state-rate-limit-delaying = { $directive } with zone { $zone } ({ $place }) delays requests, so that { $rate } per second pass.
state-rate-limit-pacing = { $directive } ({ $place }) lets each response leave at { $pace } kB/s, and they take as long as that.
state-rate-limit-pace-ok = { $directive } ({ $place }) lets each response leave at { $pace } kB/s, which was not what these waited for.
state-rate-limit-too-many = { $count } of { $requests } requests were answered with status 429 (Too Many Requests).

finding-rate-limited-by-config-title-pace = { $tier } sends each response at { $pace } kB/s at most, by configuration
finding-rate-limited-by-config-explanation-pace = The configuration of { $tier } lets each response leave at { $pace } kB/s ({ $directive }, { $place }). The server waits meanwhile, and its clients with it. The limit was set on purpose, but it is what these responses take their time for. It counts for each response: more connections get more at once.
finding-rate-limited-by-config-title-too-many = { $tier } refuses { $count } of { $requests } requests as too many (status 429)
finding-rate-limited-by-config-explanation-too-many = Who answers "429 Too Many Requests" counts the requests of each client and refuses those above a rate or a number that somebody chose. { $has_rule ->
    [yes] The configuration of { $tier } has a rule that answers with status 429 ({ $rule }, { $place }). Its condition says what it counts.
   *[no] { $behind ->
        [yes] That is { $tier } or a server behind it; their configurations, as far as they were read, have no such limit.
       *[no] The configuration of { $tier }, as far as it was read, has no such limit.
    }
} A load generator, or a proxy in front, has one address, so it counts as one client.

finding-rate-limited-by-config-title = { $tier } limits requests by configuration to { $rate } per second (zone { $zone })
finding-rate-limited-by-config-explanation = The configuration of { $tier } allows { $rate } requests per second for each value of { $key } ({ $directive }, zone { $zone }, { $place }). Requests above that rate are refused with status { $status }. The limit was set on purpose and works as configured, but it is what limits this traffic. A load generator, or a proxy in front, has one address, so the limit counts it as one client.
finding-rate-limited-by-config-title-delay = { $tier } delays requests by configuration to { $rate } per second (zone { $zone })
finding-rate-limited-by-config-explanation-delay = The configuration of { $tier } lets { $rate } requests per second pass for each value of { $key } ({ $directive }, zone { $zone }, { $place }) and makes up to { $burst } more of them wait. No request fails, but responses leave at exactly that rate, even if the server is idle. The limit was set on purpose. A load generator, or a proxy in front, has one address, so the limit counts it as one client.
finding-rate-limited-by-config-title-connections = { $tier } limits connections by configuration to { $connections } (zone { $zone })
finding-rate-limited-by-config-explanation-connections = The configuration of { $tier } allows { $connections } connections with a request in service at once for each value of { $key } ({ $directive }, zone { $zone }, { $place }). More are refused with status { $status }. The limit was set on purpose and works as configured, but it is what limits this traffic. A load generator, or a proxy in front, has one address, so the limit counts it as one client.

evidence-rate-limit-rate = The configuration allows { $rate } requests per second for each { $key }, { $burst ->
    [0] without a burst. nginx counts in whole milliseconds and loses the remainder, so fewer pass (zone { $zone }).
   *[other] with a burst of { $burst } (zone { $zone }).
}
evidence-rate-limit-connections = The configuration allows { $connections } connections at once for each { $key } (zone { $zone }).
evidence-rate-limit-answers = { $count } of { $requests } requests were answered with status { $status }; { $goodput } per second were answered as expected.
evidence-rate-limit-answers-watched = { $count } of { $requests } responses had status { $status }. { $tier } made them itself, and nothing else in its configuration that counts requests answers so.
evidence-rate-limit-pace = A response of { $bytes } kB took { $took } ms (median); at that pace it takes { $paced } ms at least.
evidence-rate-limit-pace-connections = { $count ->
    [1] One connection
   *[other] { $count } connections
} got { $each } kB/s each, for as long as they were watched; { $share } % of all bytes left there.
evidence-rate-limit-pace-configured = The configuration allows each response { $pace } kB/s.
evidence-rate-limit-too-many = { $count } of { $requests } requests were answered with status 429.
evidence-rate-limit-rule = A rule of the configuration answers with status 429 ({ $rule }).
evidence-rate-limit-waits = { $goodput } requests per second were answered as expected, and half of them took { $count } ms or longer.
