# Station server-limit: its states, findings and evidence, and what brings them about.

short-server-limit = server limit

counted-requests = requests at a time
counted-connections = connections at a time
counted-new-connections = new connections a second

state-server-limit-ok = { $setting }{ $is_named ->
    [no] {""}
   *[yes] {" "}of { $owner }
} ({ $place }) allows { $limit } { $counted }; { $used } were in use on average.
state-server-limit-harmless = All { $allowed } { $counted } that { $setting } ({ $place }) allows were in use, but hardly any request waited for it, or the cores have no time for more.
state-server-limit-slow = All { $limit } { $counted } that { $setting } of { $owner } ({ $place }) allows were in use, because the server at { $address } is slow by itself.
state-server-limit-reached = All { $allowed } { $counted } that { $setting }{ $is_named ->
    [no] {""}
   *[yes] {" "}of { $owner }
} ({ $place }) allows were in use, and { $waiting } more waited.

finding-server-limit-reached-title = { $waiting } of { $under_way } requests wait inside { $tier } for { $setting } of { $owner }: it allows { $limit } at a time
finding-server-limit-reached-explanation = { $tier } has at most { $limit } { $counted } at { $address }{ $is_seen ->
    [no] {""}
   *[yes] {" "}({ $behind })
}, because its configuration says so ({ $setting }, { $place }). All of them are taken all the time. The other requests wait in a queue of { $tier } itself, while neither its threads nor the server behind it have more to do. Somebody set the limit on purpose, perhaps to protect that server.
finding-server-limit-reached-refused = { $count } of { $requests } requests were answered with status { $status }: { $tier } does so when one has waited for { $ms } ms.
finding-server-limit-reached-watched = Watching does not show whether the server at { $address } would answer as fast with more at a time. If it is slow by itself, a higher limit moves the queue there.
finding-server-limit-reached-changed = The file was changed after { $tier } read it, so another number may be in force.
finding-server-limit-reached-title-connections = { $tier } accepts { $limit } connections at a time by configuration ({ $setting }{ $is_named ->
    [no] {""}
   *[yes] {" "}of { $owner }
}), and { $waiting } more wait
finding-server-limit-reached-explanation-connections = The configuration of { $tier } allows { $limit } connections of clients at a time ({ $setting }, { $place }). All of them are taken. { $tier } leaves the others in the accept queue until one ends, while it has little to do: clients see a server that does not answer. Kept connections without a request count as well.
finding-server-limit-reached-title-rate = { $tier } accepts { $limit } connections a second by configuration ({ $setting }{ $is_named ->
    [no] {""}
   *[yes] {" "}of { $owner }
}), and { $waiting } more wait
finding-server-limit-reached-explanation-rate = The configuration of { $tier } allows { $limit } new connections of clients a second ({ $setting }, { $place }). { $tier } leaves those beyond in the accept queue, while it has little to do. Connections that are kept for further requests are not held back. Somebody set the limit on purpose, perhaps against floods.
finding-server-limit-reached-title-refused = { $tier } has { $has_kept ->
    [yes] all { $allowed } connections for ordinary users taken ({ $setting } is { $limit }, and { $kept } are kept for administrators)
   *[no] all its { $limit } connections taken ({ $setting })
}, and refuses more
finding-server-limit-reached-explanation-refused = The configuration of { $tier } allows { $limit } connections at a time ({ $setting }, { $place }){ $has_kept ->
    [yes] , of which it keeps { $kept } for administrators and gives { $allowed } to all others. These { $allowed } are taken
   *[no] . They are all taken
}, by whichever clients. { $tier } refuses each further one at once, and the requests that need it fail. Connections that are kept without a query count as well.

evidence-server-limit-errors = { $count } of { $requests } requests were answered with a server error.
evidence-server-limit-stated = The configuration allows { $limit } { $counted } ({ $setting }).
evidence-server-limit-rate = { $tier } accepted { $used } connections a second.
evidence-server-limit-calls = On average { $used } requests of { $tier } waited for an answer of { $address }, and never many more.
evidence-server-limit-inside = Of { $under_way } requests in flight, { $range } had been read by { $tier } and not answered, while no thread of it computed for them, and none of its connections waited for them.
evidence-server-limit-accepted = { $tier } had { $used } accepted connections on average.
evidence-server-limit-queued = { $waiting } connections on average waited to be accepted.
evidence-server-limit-counted = { $tier } itself counts { $queued } requests that wait for { $owner }, on average.
evidence-server-limit-held = The server behind takes { $held } ms for a request; a single one was answered after { $alone } ms in all. So it is as fast as ever.

coupling-server-limit-accepts = The configuration allows no more connections, so those that come are not accepted. If it allowed more, the queue would be the place to look.
coupling-server-limit-pool = The number of connections at a time is the one that the configuration states.
