# `chokepoint explain cpu`: the pages of the station and of its findings, with the same five sections.

page-cpu-title = CPU
page-cpu-limits =
    The cores on which the servers of the path may run. The most that they can serve is the number of cores divided by the CPU-seconds of a good response.
page-cpu-shows =
    All of these cores are at least 95 % busy, or at least 90 % busy while on average at least as many threads waited for a core as there are cores. The server is then healthy and limited by CPU. That is no fault. Where other programs use most of them, they limit the servers only if more than half of the requests are not waiting inside these for something else.
page-cpu-sure =
    Busy time is counted in clock ticks per core, and is at least the CPU time of the servers themselves: ticks miss work that the clock itself starts. An average over all cores would hide one hot core, so only the cores that the servers may use are counted, each on its own. Programs that poll use 100 % without doing work. The cost of a response falls by a fifth to three fifths as load rises, and the ceiling accounts for that; it leaves out the cost of failed responses and of other programs.
page-cpu-remedies =
    Cheaper responses (profile first), more cores, fewer other programs on them.
page-cpu-sources =
    proc(5) /proc/stat, /proc/PID/stat, /proc/PID/schedstat; Denning and Buzen 1978, operational analysis.
