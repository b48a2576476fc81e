# `chokepoint explain disk-limit`: the pages of the station and of its finding, with the same five sections.

page-disk-limit-title = The limit of a control group for a disk
page-disk-limit-limits =
    What the processes of a control group may read and write in a second on each disk: bytes, and operations (io.max of version 2, which IOReadBandwidthMax= and the like of a unit set; blkio.throttle of version 1; --device-read-bps and the like of a container).
page-disk-limit-shows =
    What was read or written in a second, of the limit that is closest.
page-disk-limit-sure =
    The kernel's counters are exact. What a disk itself can do is not known, and no station. Weights (io.weight, blkio.weight) and delays that protect others (io.latency, io.cost) are not read.
page-disk-limit-remedies =
    See disk-limited: a higher limit, or fewer reads and writes for each request.
page-disk-limit-sources =
    Documentation/admin-guide/cgroup-v1/blkio-controller.rst; Documentation/admin-guide/cgroup-v2.rst, "IO Interface Files"; systemd.resource-control(5).

page-disk-limited-title = A control group gets no more from the disk
page-disk-limited-limits =
    Servers that read what is not in the page cache, or write and wait until it is on the disk (fsync).
page-disk-limited-shows =
    At least nine tenths of a limit are used over the whole window, requests stand at the server, and where it was seen what its threads wait for, it is the disk.
page-disk-limited-sure =
    High if threads were found waiting for the disk; medium if what they wait for was not seen. Silent if they wait for something else, if hardly a request stands, and without a limit: that a disk is slow is told by what threads wait for (waits-inside).
page-disk-limited-remedies =
    A higher limit, if others on the same disk can spare it. More memory for the page cache, or fewer reads and fsyncs for each request, cost others nothing.
page-disk-limited-sources =
    As for station disk-limit; /proc/PID/task/TID/syscall (proc(5)).
