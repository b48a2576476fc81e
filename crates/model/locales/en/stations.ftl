# One line a station's state.

state-generator-ok = The generator used { $share } % of its CPU.
state-generator-near = The generator used { $share } % of its CPU: little is left.
state-generator-cpu = The generator used { $share } % of its CPU and was itself the limit.
state-generator-late = { $count } requests were sent late although their time had come.
state-generator-local = { $count } requests failed for want of the generator's own ports, files or memory.

state-clients-closed = { $connections } connections, each with one request under way at a time.
state-clients-open = { $rate } requests/s were offered over at most { $connections } connections.

state-link-no-rate = { $link } carried { $megabits } Mbit/s; it knows no speed and has no shaper, so it has no limit to compare with.
state-link-ok = { $link } carried { $megabits } of { $rate } Mbit/s.
state-link-near = { $link } carried { $megabits } of { $rate } Mbit/s: little is left.
state-link-full = { $link } carried { $megabits } of { $rate } Mbit/s: it is full.

state-conntrack-ok = { $peak } of { $max } entries at the most.
state-conntrack-near = { $peak } of { $max } entries at the most ({ $share } %): nothing was dropped yet.
state-conntrack-unlimited = { $peak } entries at the most; no limit is set.
state-conntrack-early-drop = Full with { $max } entries, but it made room by evicting { $early } old entries and dropped nothing.
state-conntrack-harmless = Full with { $max } entries and { $drops } packets were dropped; too few requests suffered from it to count as harm.
state-conntrack-refusing = Full: { $peak } of { $max } entries, and { $drops } packets that would have begun a new one were dropped.

state-syn-queue-ok = At most { $peak } of { $limit } handshakes were open at { $listener }; none was refused.
state-syn-queue-unseen = No SYN for { $listener } was refused; how many handshakes were open could not be read.
state-syn-queue-unknown = Whether SYNs for { $listener } were refused could not be read.
state-syn-queue-near = { $peak } of { $limit } handshakes were open at { $listener }; none was refused yet.
state-syn-queue-cookies = { $peak } handshakes were open at { $listener } with room for { $limit }; what found no room was answered with SYN cookies ({ $sent }), and nothing was refused.
state-syn-queue-harmless = { $count } SYNs found no room at { $listener } ({ $peak } of { $limit }); too few requests suffered from it to count as harm.
state-syn-queue-refusing = { $count } SYNs found no room at { $listener } ({ $peak } of { $limit } handshakes open).

state-accept-queue-ok = At most { $peak } of { $limit } connections waited at { $listener }; none was refused.
state-accept-queue-near = { $peak } of { $limit } connections waited at { $listener }; none was refused yet.
state-accept-queue-harmless = { $count } connections found the queue of { $listener } full ({ $peak } of { $limit }); too few requests suffered from it to count as harm.
state-accept-queue-start = { $count } connections found the queue of { $listener } full ({ $peak } of { $limit }) when the load began and all came at once, none after that.
state-accept-queue-refusing = { $count } connections found the queue of { $listener } full ({ $peak } of { $limit }).

state-worker-connections-ok = A worker held { $peak } of its { $limit } connections at the most.
state-worker-connections-near = A worker held { $peak } of its { $limit } connections at the most: little is left.
state-worker-connections-unknown = A worker may hold { $limit } connections; how many it held could not be read.
state-worker-connections-harmless = { $count } connections were turned away for want of room among a worker's { $limit }; too few requests suffered from it to count as harm.
state-worker-connections-refusing = { $count } connections were turned away: a worker may hold { $limit }, and they were used up.
state-worker-connections-drained = A worker may hold { $limit } connections and closed some unanswered to make room for others.

state-file-descriptors-ok = Process { $pid } had { $peak } of { $limit } files open at the most.
state-file-descriptors-near = Process { $pid } had { $peak } of { $limit } files open at the most: little is left.
state-file-descriptors-harmless = The server logged { $count } times that it could not open a file or socket; too few requests suffered from it to count as harm.
state-file-descriptors-logged = The server logged { $count } times that it could not open a file or socket: a process may have { $limit }.
state-file-descriptors-full = Process { $pid } stayed at its limit of { $limit } open files.

state-rate-limit-ok = { $directive } with zone { $zone } ({ $place }) did not hold this traffic back.
state-rate-limit-harmless = { $directive } with zone { $zone } ({ $place }) refused { $count } requests: too few of this traffic to count as harm.
state-rate-limit-refusing = { $directive } with zone { $zone } ({ $place }) refused requests with status { $status }.
state-rate-limit-delaying = { $directive } with zone { $zone } ({ $place }) lets requests wait, so that { $rate } a second pass.

state-ports-ok = { $used } of { $usable } ports towards { $remote } were taken.
state-ports-near = { $used } of { $usable } ports towards { $remote } were taken: little is left.
state-ports-refusing = { $used } of { $usable } ports towards { $remote } were taken, and connections to it failed.
state-ports-searching = { $waiting } of { $usable } ports towards { $remote } are in TIME_WAIT and cannot be taken over: each new connection searches them for a free one.

state-upstream-connect-each = { $tier } opens a connection to { $remote } for each request (opened a request: { $opened }).
state-upstream-connect-each-configured = { $tier } opens a connection to { $remote } for each request: so it is configured.
state-upstream-connect-kept = { $tier } keeps connections to { $remote } for further requests (opened a request: { $opened }).
state-upstream-connect-kept-configured = { $tier } keeps connections to { $remote } for further requests: so it is configured.

state-worker-pool-ok = { $busy } of { $workers } workers were busy on average.
state-worker-pool-near = { $busy } of { $workers } workers were busy on average: little is left.
state-worker-pool-full = { $busy } of { $workers } workers were busy on average, and in { $share } % of the samples connections waited for one, { $waiting } on average.

state-waiting-ok = { $number } of { $under_way } requests waited inside { $tier } on average, for nothing that was seen.
state-waiting-most = { $number } of { $under_way } requests waited inside { $tier } on average, and for each other.

state-cpu-quota-ok = { $used } of the { $limit } cores that cgroup { $cgroup } may use were used; it was never stopped.
state-cpu-quota-near = { $used } of the { $limit } cores that cgroup { $cgroup } may use were used: little is left.
state-cpu-quota-harmless = Cgroup { $cgroup } may use { $limit } cores, used { $used }, and was stopped in { $periods } of { $of } periods: not enough to hold this traffic back, or its cores had nothing more to give.
state-cpu-quota-throttled = Cgroup { $cgroup } may use { $limit } cores and was stopped in { $periods } of { $of } periods.
state-cpu-quota-unknown = Cgroup { $cgroup } may use { $limit } cores; how many it used, or how often it was stopped, could not be read.

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

state-transport-none = Of { $segments } TCP segments that { $netns } sent none was lost, as far as its counters tell.
state-sending-ok = Of { $sockets } connections of { $tier } at { $name } that were sampled, { $sending } had something to send at a time; of that time { $buffer } % passed with a full send buffer, { $window } % with the peer's window full.
state-transport-again = Of { $segments } TCP segments that { $netns } sent { $lost } were lost and sent again ({ $share } %); senders waited { $waits } times for a timeout or a probe.

state-upstream-connect-race = { $met } requests of { $tier } met a kept connection that { $remote } was just closing.
