# Station cpu: its states, findings and evidence, and what brings them about.

state-cpu-ok = { $count ->
    [1] Core { $cores } was { $share } % busy.
   *[other] Cores { $cores } were { $share } % busy.
}
state-cpu-near = { $count ->
    [1] Core { $cores } was { $share } % busy: little is left.
   *[other] Cores { $cores } were { $share } % busy: little is left.
}
state-cpu-saturated = { $count ->
    [1] core { $cores }, the only one that the servers may use, was { $share } % busy.
   *[other] cores { $cores }, all that the servers may use, were { $share } % busy.
}
state-cpu-crowded = { $count ->
    [1] core { $cores } was { $share } % busy, and { $waiting } threads waited for it on average: it has next to nothing left.
   *[other] cores { $cores } were { $share } % busy, and { $waiting } threads waited for them on average: they have next to nothing left.
}
state-cpu-others = { $count ->
    [1] Core { $cores } was { $share } % busy, { $others } % with other programs: the servers waited for something else.
   *[other] Cores { $cores } were { $share } % busy, { $others } % with other programs: the servers waited for something else.
}
state-cpu-threads = { $threads ->
    [1] the one thread of { $tier } that serves was running or ready to run all the time, and can use one core; { $count } cores ({ $cores }) were { $share } % busy in all.
   *[other] the { $threads } threads of { $tier } that serve were running or ready to run all the time, and can use { $threads } cores; { $count } ({ $cores }) were { $share } % busy in all.
}
state-cpu-polling = { $count ->
    [1] Core { $cores } was { $share } % busy, which says nothing: { $tier } asks again and again whether something came, and kept { $ran } cores busy whether it served or not.
   *[other] Cores { $cores } were { $share } % busy, which says nothing: { $tier } asks again and again whether something came, and kept { $ran } cores busy whether it served or not.
}
state-cpu-unknown = The CPU times could not be read.
