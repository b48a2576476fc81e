# The arithmetic of advised numbers. Each phrase ends with the number.

sum-at-once-clients = { $number } { $number ->
    [one] client
   *[other] clients
}
sum-at-once-seen = { $number } requests at once
sum-at-once-rate = { $rate }/s x { $ms } ms = { $in_service } at once, plus reserve: { $number }
sum-twice = twice the present { $now } = { $needed }
sum-power-of-two = { $sum }, rounded up to a power of two: { $to }
sum-files = { $at_once } x 2 files each = { $needed }
sum-connection-files = { $connections } connections x 2 files each = { $needed }
sum-nr-open = as many files as a process may open (fs.nr_open, or its hard limit): { $needed }
sum-nr-open-half = half as many as a process may open files (fs.nr_open, or its hard limit): { $needed }
sum-connections = { $at_once } x { $each } { $each ->
    [one] connection
   *[other] connections
} each x 1.25 in reserve = { $needed }
sum-connections-uneven = { $at_once } x { $each } { $each ->
    [one] connection
   *[other] connections
} each x 2 / { $workers } workers, for they share unevenly, x 1.25 in reserve = { $needed }
sum-backlog = { $at_once } x 2, for those who give up and come again, = { $needed }
sum-backlog-waiting = { $waiting } that waited x 2 = { $needed }
sum-backlog-default = the kernel's own default: { $needed }
sum-backlog-most = the most that every kernel takes: { $needed }
sum-handshakes = 2 x { $limit } (the kernel gives unknown peers three quarters) = { $needed }
sum-handshakes-most = the most that the kernel's number takes: { $needed }
sum-ports = { $high } - { $low } + 1 = { $needed }
sum-ports-reserved = { $high } - { $low } + 1 - { $reserved } reserved = { $needed }
sum-entries = { $rate } new entries a second at most x { $life } s x 4 in reserve = { $needed }
sum-entries-four-times = four times the present { $now } = { $needed }
sum-entries-buckets = one for each bucket of the table = { $needed }
sum-entries-memory = as many as fit into a sixteenth of the memory: { $needed }
sum-entries-one-more = no room in a sixteenth of the memory for more than { $needed }
sum-entries-most = the most that is ever proposed: { $needed }
sum-kept = ({ $children } workers of the pool - { $free } for others) / { $workers } = { $needed }
sum-kept-grown = 8 x { $workers } x 5 / 4 = { $needed }
sum-buffer-default = the kernel's own default: { $needed } KiB
sum-buffer-twice = twice the present { $now } KiB = { $needed } KiB
sum-cores-asked = ({ $used } used + { $waiting } waited for) x 1.2 in reserve = { $needed }
sum-cores-offered = { $used } used x { $rate }/s asked for / { $goodput }/s answered x 1.2 in reserve = { $needed }
sum-cores-processes = one for each of the processes, which may all ask at once = { $needed }
sum-cores-most = as many as these servers may use on this host = { $needed }
