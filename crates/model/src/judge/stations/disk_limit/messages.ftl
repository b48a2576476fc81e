# Station disk-limit: its states, finding and evidence, and what brings them about.

short-disk-limit = disk limit

disk-limit-amount = { $kind ->
    [read-bytes] read { $number } MB/s
    [written-bytes] write { $number } MB/s
    [reads] make { $number } reads/s
   *[writes] make { $number } writes/s
}

state-disk-limit-ok = Control group { $whose } may { $may } on disk { $disk }, and did { $did }.
state-disk-limit-near = Control group { $whose } may { $may } on disk { $disk }, and did { $did }: almost at the limit.
state-disk-limit-harmless = Control group { $whose } may { $may } on disk { $disk }, and did { $did }; hardly a request waited for that.
state-disk-limit-reached = Control group { $whose } may { $may } on disk { $disk }, and did so all the time.

finding-disk-limited-title = { $tier } gets no more from the disk: its control group { $whose } may { $may }
finding-disk-limited-explanation = The control group { $whose } may { $may } on disk { $disk }, and { $tier } wants more (blkio.throttle.* or io.max; IOReadBandwidthMax and the like of a unit, --device-read-bps and the like of a container). Beyond that the kernel lets each read and write wait, and the requests that need them wait in { $tier }. What is in the page cache is read without the disk, and does not count.

evidence-disk-limit = Control group { $whose } may { $may } on disk { $disk }, and did { $did } on average.
evidence-disk-limit-standing = { $standing } of { $under_way } requests stood at { $tier } on average without being worked on.
evidence-disk-limit-waits = In { $seen } of { $looks } looks, threads of { $tier } were found waiting for { $what }.

coupling-disk-limit = These requests wait for a disk of which their server gets no more. If it got more, the other finding would be the cause.
