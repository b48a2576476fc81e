# Station tasks: its states, finding and evidence, and what brings them about.

short-tasks = processes and threads

state-tasks-ok = At most { $peak } of { $limit } processes and threads.
state-tasks-near = At most { $peak } of { $limit } processes and threads: almost at the limit.
state-tasks-harmless = { $refused } times no process or thread could be started ({ $limit } allowed); too few requests were affected to count as harm.
state-tasks-refused = There were { $peak } of { $limit } processes and threads, and no more could be started.

finding-tasks-exhausted-title = { $tier } cannot start processes or threads: { $scope ->
    [cgroup] its cgroup { $whose } may have { $limit }
   *[user] user { $whose } may have { $limit }
  }
finding-tasks-exhausted-explanation = { $scope ->
    [cgroup] All processes and threads in this cgroup and below it count, and there may be { $limit } (pids.max, TasksMax of a unit, --pids-limit of a container).
   *[user] All processes and threads of this user on the whole machine count, and there may be { $limit } (RLIMIT_NPROC, ulimit -u).
  } Beyond that fork(2) and clone(2) fail with "Resource temporarily unavailable" (EAGAIN, 11): a server that starts a process or thread for a connection closes it, answers with an error, or leaves it waiting.

evidence-tasks = There were { $peak } of { $limit } processes and threads{ $is_counted ->
    [yes] {"; "}{ $refused } times the kernel refused to start one.
   *[no] {"; "}at the limit in { $full } of { $samples } samples.
  }
evidence-tasks-lost = { $lost } of { $requests } requests had no good response.
evidence-tasks-standing = On average { $standing } requests stood at { $tier } without being worked on.

coupling-tasks = No process or thread could be started to serve these requests. If there were room for more, the other finding would be the cause.
