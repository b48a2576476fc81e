# Station upstream-connect: its states, findings and evidence, and what brings them about.

short-upstream-connect = upstream connections

state-upstream-connect-each = { $tier } opens a connection to { $remote } for each request (connections per request: { $opened }).
state-upstream-connect-each-configured = { $tier } is configured to open a connection to { $remote } for each request.
state-upstream-connect-kept = { $tier } reuses connections to { $remote } (connections per request: { $opened }).
state-upstream-connect-kept-configured = { $tier } is configured to reuse connections to { $remote }.
state-upstream-connect-race = { $met } requests of { $tier } were sent on a kept connection that { $remote } was closing.

state-upstream-connect-unreachable = { $kind ->
    [refused] Nothing listens at { $remote }, and the kernel refused { $tried } connections.
    [absent] The kernel refused { $tried } connections to addresses of this host at which nothing listens.
   *[unanswered] Nobody answered the { $tried } connections of { $tier } to { $remote } that were seen.
}

state-upstream-connect-repeated = { $tier } makes { $calls } calls to { $asked } for each request; { $failed_calls } of them fail.

finding-upstream-connection-churn-title = { $tier } opens a connection to { $remote } for each request
finding-upstream-connection-churn-explanation-far = Before each request { $tier } waits for a new connection to { $remote }: one round trip in which nothing else happens. The cores are idle while the clients wait. A connection that is reused needs this only once.

evidence-churn-configured = { $kind }_pass to { $remote } does not reuse connections: an upstream block with keepalive, or what its protocol needs in addition, is missing.
evidence-churn-opened = Connections opened per request: { $opened }.
evidence-churn-time = For { $share } % of its time a request waited for its upstream connection (connections in SYN-SENT among all requests in flight), and hardly any SYN was sent twice.

finding-idle-close-race-title = { $remote } closes kept connections just as { $tier } sends a request on them
finding-idle-close-race-explanation = { $tier } keeps connections to { $remote } for further requests, and { $remote } closes connections that were idle for a while. A request that is sent before { $tier } learns of the close reaches a closed socket: the answer is a reset, and the client gets a 502 if { $tier } may not retry (a POST, or retries turned off). Nothing is overloaded; more workers or longer queues change nothing.

evidence-race-failed = { $failed ->
    [one] One request was
   *[other] { $failed } requests were
} answered with 502; { $met } were sent on a connection that was being closed.
evidence-race-resets = { $netns } answered { $resets } segments with a reset, as it does when a request reaches a closed socket. A program that crashes during a request has read the request before.
evidence-race-kept = Each worker keeps up to { $kept } idle connections to { $remote }.

finding-upstream-unreachable-title = { $kind ->
    [refused] { $tier } passes requests to { $remote }, where nothing listens
    [absent] { $tier } connects to a server of this host that is not there: { $tried } connections were refused
   *[unanswered] { $tier } passes requests to { $remote }, which answers none of its connections
}
finding-upstream-unreachable-explanation = { $kind ->
    [absent] Most requests end with an error, and as many connections are refused: nothing listens where { $tier } connects to. Which address that is, its configuration and its log say. More workers or longer queues change nothing.
    [refused] The kernel refuses each connection at once. { $tier } waits before it tries again, or answers with an error, and its requests lose that time. More workers or longer queues change nothing.
   *[unanswered] No server is there, or a packet filter drops what is sent to it. { $tier } waits for each connection until its timeout for connecting, and only then asks another server or answers with an error. More workers or longer queues change nothing.
}
coupling-unreachable = Nobody answers the connections. If somebody did, opening one for each request would be the place to look.

evidence-unreachable-unanswered = { $tried } connections to { $remote } were seen waiting for an answer to their SYN, and none was seen to be established.
evidence-unreachable-refused = { $kind ->
    [absent] The kernel counted { $tried } connections that it refused, because no socket listens at their address, and whose makers are in the same namespace.
   *[refused] The configuration of { $tier } names { $remote }, no socket listens there, and the kernel counted { $tried } connections that were refused.
}
evidence-unreachable-waiting = { $kind ->
    [refused] { $waiting } of { $under_way } requests in flight wait inside { $tier }.
    [absent] { $waiting } of { $under_way } requests in flight wait inside { $tier }.
   *[unanswered] { $waiting } of { $under_way } requests in flight wait for such a connection.
}
evidence-unreachable-failed = { $kind ->
    [absent] { $failed } of { $requests } requests got an error for an answer, or none.
   *[other] { $failed } of { $requests } requests failed because no server answered them.
}

finding-calls-repeated-title = { $tier } asks { $asked } { $calls } times for each request: { $kind ->
    [given-up] it gives up { $failed_calls } of these calls before the answer
    [unanswered] { $failed_calls } of these calls end without an answer
   *[error] { $failing } % of these calls fail with an error
}
finding-calls-repeated-explanation = { $kind ->
    [given-up] { $tier } waits for a time, closes the connection and asks again. The calls that it gave up are still worked on behind it, so each new call waits for longer and is given up as well: the repetition keeps up the overload. More workers or a longer queue there would serve more calls that nobody waits for.
    [unanswered] The connections to { $asked } end without a response, and { $tier } asks again. Either they are ended there (a crash, a limit), or { $tier } gives up too soon; the logs say which. Each further try is more work there.
   *[error] When a call fails, { $tier } asks again, and most requests get their response from a later call. So the clients see few of the errors, but each request takes the time of all its calls, and all of them are work for { $asked }. If calls fail there because of overload, the repetition keeps it up.
}

evidence-calls-repeated-given-up = { $seen } connections of { $tier } to { $asked } were seen closed by { $tier } with a request on them and no response: at least { $failed_calls } for each of its requests.
evidence-calls-repeated-keeps-up = { $asked } sent { $answered } responses for each request of { $tier }, in time or too late: as many calls as each request needs could be answered if { $tier } asked once.
evidence-calls-repeated-unanswered = { $tier } opened { $opened } connections for each of its requests, and { $asked } sent { $answered } responses: about { $seen } connections carried none.
evidence-calls-repeated-in-turn = On average { $in_use } calls waited for a response while { $under_way } requests were in flight: a request makes its calls one after another.
coupling-repeated = The server spends its time on calls that were given up, so its responses come too late. Whether it answers in time shows once each request asks it only once.
