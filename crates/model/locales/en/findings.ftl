# Findings: title, explanation, evidence, remedies.

finding-conntrack-table-full-title = the connection tracking table of { $netns } is full ({ $max } entries)
finding-conntrack-table-full-explanation = The firewall tracks every connection in a table of { $max } entries. When it is full, the kernel drops each packet that would begin a new connection: the client's SYN is lost and sent again after 1, 3 and 7 seconds, so requests time out although the server is idle. Entries stay after a connection is closed (TIME_WAIT, 120 s by default), so a high rate of short connections fills the table even with few clients.

evidence-conntrack-drops = { $drops } packets were dropped for want of an entry in { $seconds } s.
evidence-conntrack-count = The table held { $peak } entries of { $max }.
evidence-conntrack-time-to-full = It was full { $ms } ms after the load began.
evidence-conntrack-log = { $lines ->
    [one] The kernel logged "table full, dropping packet" (it limits how often it says so).
   *[other] The kernel logged "table full, dropping packet" { $lines } times (it limits how often it says so).
}
evidence-conntrack-states = What fills it: { $mix }.
evidence-load-timeouts = Of { $requests } requests, { $connect } timed out connecting and { $response } waiting for the answer.

remedy-raise-conntrack-max-text = Raise the limit of the table from { $from } to { $to } entries: room for the rate at which connections came, for as long as an entry stays.
remedy-raise-conntrack-max-risk = Takes up to { $mib } MiB of kernel memory when the table fills; holds for every network namespace of the host.

remedy-shorten-conntrack-time-wait-text = Keep entries of closed connections for { $to } s instead of { $from } s: { $share } % of the entries are of that kind.
remedy-shorten-conntrack-time-wait-risk = A segment that arrives after 30 s would be taken for a new connection's; none does on today's paths.

finding-load-generator-limited-title = the load generator was the limit
finding-load-generator-limited-explanation = The generator could not offer more, so what was measured is its own speed and not the server's. Give it more threads or cores, or another host.

evidence-generator-cpu = Its busiest thread used { $share } % of its CPU, soft interrupts included.
evidence-generator-late = { $count } of { $of } requests were sent late or not at all.
evidence-generator-local = Its own limits refused: { $ports } times no local port, { $files } times no file descriptor, { $memory } times no socket memory.
