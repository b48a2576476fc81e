# `chokepoint explain cpu`: the pages of the station and of its findings, with the same five sections.

page-cpu-title = CPU
page-cpu-limits =
    The cores on which the servers of the path may run: cores divided by CPU-seconds per good answer is the most they can give.
page-cpu-shows =
    All of those cores busy 95 % of the time or more, or 90 % where on average at least as many threads waited for a core as there are cores. Then the server is healthy and limited by CPU; that is no fault but physics.
page-cpu-sure =
    Busy time is counted in clock ticks per core, and is at least what the servers' own clocks tell: ticks miss work that the same clock sets off. An average over cores hides one hot core, so only the cores that the servers may use are counted, and each is read apart. Programs that poll burn 100 % doing nothing. The cost of an answer falls by a fifth to three fifths as load rises, which the ceiling allows for; what failed answers cost and what other programs took is left out of it.
page-cpu-remedies =
    Cheaper answers (profile first), more cores, fewer other programs on them.
page-cpu-sources =
    proc(5) /proc/stat, /proc/PID/stat, /proc/PID/schedstat; Denning and Buzen 1978, operational analysis.
