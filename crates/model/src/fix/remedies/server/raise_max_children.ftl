# What remedy raise-max-children does, and its risk.

remedy-raise-max-children-text = Give the pool of { $tier } { $to } workers instead of { $from }: { $sum }.
remedy-raise-max-children-text-common = Let the pools of php-fpm have { $more } workers more than the { $common } that process.max ({ $where }) gives all of them together: { $sum }. A larger pm.max_children changes nothing.
remedy-raise-max-children-text-other = Give { $tier } { $to } { $unit ->
    [threads] threads
   *[workers] workers
} instead of { $from } ({ $setting }): { $sum }.
remedy-raise-max-children-setting = { $processes ->
    [1] { $name } { $value }
   *[other] { $name } { $value } in each of its { $processes } processes
}
remedy-raise-max-children-setting-unknown = see its documentation
remedy-raise-max-children-text-loops = Let { $tier } hold { $to } connections at once instead of { $from }: { $sum }. The limit is its own (often called maxconn or max connections; see its documentation).
remedy-raise-max-children-text-loops-behind = If a single request to { $upstream }, timed by hand, takes as long as now: let { $tier } hold { $to } connections at once instead of { $from }: { $sum }. The limit is its own (often called maxconn or max connections; see its documentation).
sum-workers-rate = { $rate }/s x { $ms } ms = { $at_once } at once, plus reserve: { $workers }
sum-workers-watched = { $rate }/s x { $ms } ms = { $at_once } at once, plus reserve: { $workers }, and then measure again, for those that wait may ask for more
sum-workers-cores = the cores have time for { $rate }/s, and { $rate }/s x { $ms } ms = { $at_once } at once, plus reserve: { $workers }
sum-workers-share-own = { $taken } workers use { $share } % of the cores, so { $workers } fill them
sum-workers-share = with { $taken } workers { $share } % of the cores are used, so { $workers } fill them
sum-workers-clients = { $clients } clients ask at once
sum-workers-standing = { $taken } requests were in service at once and { $waiting } waited
sum-workers-streaming = { $sum }; { $streaming } more hold responses that do not end
sum-workers-memory = as many as there is memory for
sum-workers-most = as many as are ever proposed at once
sum-workers-unknown = how many are needed is not known, so twice as many, and then measure again
remedy-raise-max-children-risk = { $measure ->
    [private] Uses up to { $mib } MiB more memory: { $each } MiB each, which the largest worker has to itself.
    [resident] Uses up to { $mib } MiB more memory: { $each } MiB each, which the largest worker has in memory, what it shares included.
   *[unread] Uses more memory; how much a worker takes was not read.
}
remedy-raise-max-children-risk-loops = Each connection uses a file descriptor, memory, and perhaps a connection to the server behind it, where the next limit may be.
remedy-raise-max-children-risk-threads = Each thread uses a stack, and memory for its request. If the threads wait for another server, more threads put more load on it.
remedy-raise-max-children-risk-other = { $measure ->
    [private] Uses up to { $mib } MiB more memory: { $each } MiB each, which the largest worker has to itself.
    [resident] Uses up to { $mib } MiB more memory: { $each } MiB each, which the largest worker has in memory, what it shares included.
   *[unread] Uses more memory; how much a worker takes was not read.
} If the workers wait for another server, more workers put more load on it.
