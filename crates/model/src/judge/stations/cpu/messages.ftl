# Station cpu: its states, findings and evidence, and what brings them about.

short-cpu = CPU

state-cpu-ok = { $count ->
    [1] Core { $cores } was { $share } % busy.
   *[other] Cores { $cores } were { $share } % busy.
}
state-cpu-near = { $count ->
    [1] Core { $cores } was { $share } % busy: almost at its limit.
   *[other] Cores { $cores } were { $share } % busy: almost at their limit.
}
state-cpu-saturated = { $count ->
    [1] core { $cores }, the only one that the servers may use, was { $share } % busy.
   *[other] cores { $cores }, all that the servers may use, were { $share } % busy.
}
state-cpu-most = { $why } { $tier } used { $share } % of what these servers did{ $kind ->
    [each] : { $ms } ms for each request.
   *[share] .
}
state-cpu-kept-on = { $why } The servers may not use the host's other cores, of which { $idle } were idle: CPU affinity (taskset; CPUAffinity= of a unit; worker_cpu_affinity of nginx) or the cpuset of a container keeps them there.
state-cpu-crowded = { $count ->
    [1] core { $cores } was { $share } % busy, and { $waiting } threads waited for it on average.
   *[other] cores { $cores } were { $share } % busy, and { $waiting } threads waited for them on average.
}
state-cpu-others = { $count ->
    [1] Core { $cores } was { $share } % busy, { $others } % of it with other programs; the servers waited for something else.
   *[other] Cores { $cores } were { $share } % busy, { $others } % of it with other programs; the servers waited for something else.
}
state-cpu-threads = { $threads ->
    [1] the one serving thread of { $tier } was running or ready to run all the time, and can use one core; { $count } cores ({ $cores }) were { $share } % busy in total.
   *[other] the { $threads } serving threads of { $tier } were running or ready to run all the time, and can use { $threads } cores; { $count } ({ $cores }) were { $share } % busy in total.
}
state-cpu-turns = the { $turns } threads of { $tier } take turns and kept one core busy all the time{ $by ->
    [interpreter] : the lock of its interpreter lets one thread run at a time
   *[untold] , and never more
}; { $count } cores ({ $cores }) were { $share } % busy in total.
state-cpu-polling = { $count ->
    [1] Core { $cores } was { $share } % busy, but that says nothing: { $tier } polls for work all the time and keeps { $ran } cores busy with or without requests.
   *[other] Cores { $cores } were { $share } % busy, but that says nothing: { $tier } polls for work all the time and keeps { $ran } cores busy with or without requests.
}
state-cpu-whose = { $count ->
    [1] core { $cores } was { $share } % busy, and it is not known with what: the processes of the servers could not be read.
   *[other] cores { $cores } were { $share } % busy, and it is not known with what: the processes of the servers could not be read.
}
state-cpu-delays-unread = { $count ->
    [1] Core { $cores } was { $share } % busy, mostly with other programs; { $inside } requests waited inside the servers, and whether for the core could not be read.
   *[other] Cores { $cores } were { $share } % busy, mostly with other programs; { $inside } requests waited inside the servers, and whether for a core could not be read.
}
state-cpu-unknown = The CPU times could not be read.
