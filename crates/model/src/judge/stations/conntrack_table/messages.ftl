# Station conntrack-table: its states, findings and evidence, and what brings them about.

state-conntrack-ok = { $peak } of { $max } entries at the most.
state-conntrack-near = { $peak } of { $max } entries at the most ({ $share } %): nothing was dropped yet.
state-conntrack-unlimited = { $peak } entries at the most; no limit is set.
state-conntrack-early-drop = Full with { $max } entries, but it made room by evicting { $early } old entries and dropped nothing.
state-conntrack-harmless = Full with { $max } entries and { $drops } packets were dropped; too few requests suffered from it to count as harm.
state-conntrack-refusing = Full: { $peak } of { $max } entries, and { $drops } packets that would have begun a new one were dropped.

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

coupling-table-cut = Connections that the server cut off were opened again, and each takes an entry for as long as a closed one stays: without them there would have been room. With nothing cut off the table would be the cause.
