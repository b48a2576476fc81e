# Station tasks: its states, finding and evidence, and what brings them about.

short-tasks = processes and threads

state-tasks-ok = At most { $peak } of { $limit } { $scope ->
    [mappings] mappings of memory
   *[other] processes and threads
  }.
state-tasks-near = At most { $peak } of { $limit } { $scope ->
    [mappings] mappings of memory
   *[other] processes and threads
  }: almost at the limit.
state-tasks-harmless = { $refused } times no process or thread could be started ({ $limit } allowed); too few requests were affected to count as harm.
state-tasks-refused = There were { $peak } of { $limit } { $scope ->
    [mappings] mappings of memory, and no thread could be started
   *[other] processes and threads, and no more could be started
  }.

finding-tasks-exhausted-title = { $scope ->
    [mappings] { $tier } cannot start threads: process { $whose } may have { $limit } mappings of memory
   *[other] { $tier } cannot start processes or threads: { $scope ->
        [cgroup] its cgroup { $whose } may have { $limit }
        [host] the whole host may have { $limit }
        [ids] there are { $limit } process ids
       *[user] user { $whose } may have { $limit }
      }
  }
finding-tasks-exhausted-explanation = { $scope ->
    [cgroup] All processes and threads in this cgroup and below it count, and there may be { $limit } (pids.max, TasksMax of a unit, --pids-limit of a container).
    [host] All processes and threads of the host count, in all containers, and there may be { $limit } (kernel.threads-max).
    [ids] Each process and thread has an id of its own, below { $limit } (kernel.pid_max). The kernel gives those below 300 only once.
    [mappings] Each thread has a stack, which takes one or two mappings, and a process may have { $limit } of them (vm.max_map_count).
   *[user] All processes and threads of this user on the whole machine count, and there may be { $limit } (RLIMIT_NPROC, ulimit -u).
  } { $scope ->
    [mappings] Beyond that mmap(2) fails with "Cannot allocate memory" (ENOMEM, 12), and no thread is started
   *[other] Beyond that fork(2) and clone(2) fail with "Resource temporarily unavailable" (EAGAIN, 11)
  }: a server that starts a process or thread for a connection closes it, answers with an error, or leaves it waiting.

evidence-tasks = There were { $peak } of { $limit } { $scope ->
    [mappings] mappings of memory
   *[other] processes and threads
  }{ $is_counted ->
    [yes] {"; "}{ $refused } times the kernel refused to start one.
   *[no] {"; "}at the limit in { $full } of { $samples } samples.
  }
evidence-tasks-lost = { $lost } of { $requests } requests had no good response.
evidence-tasks-standing = On average { $standing } requests stood at { $tier } without being worked on.

coupling-tasks = No process or thread could be started to serve these requests. If there were room for more, the other finding would be the cause.
