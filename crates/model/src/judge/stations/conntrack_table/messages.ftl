# Station conntrack-table: its states, findings and evidence, and what brings them about.

short-conntrack-table = conntrack table

state-conntrack-ok = At most { $peak } of { $max } entries.
state-conntrack-near = At most { $peak } of { $max } entries ({ $share } %); nothing was dropped yet.
state-conntrack-unlimited = At most { $peak } entries; no limit is set.
state-conntrack-early-drop = Full with { $max } entries; the kernel evicted { $early } old entries and dropped no packet.
state-conntrack-harmless = Full with { $max } entries, and { $drops } packets were dropped; too few requests were affected to count as harm.
state-conntrack-refusing = Full: { $peak } of { $max } entries, and { $drops } packets of new connections were dropped.

finding-conntrack-table-full-title = the connection tracking table of { $netns } is full ({ $max } entries)
finding-conntrack-table-full-explanation = The firewall tracks every connection in a table of { $max } entries. When the table is full, the kernel drops every packet that would start a new connection. The client's SYN is lost, and the client retries { $again }, so requests time out although the server is idle. An entry stays for a while after its connection is closed (TIME_WAIT, 120 s by default), so a high rate of short connections fills the table even with few clients.

evidence-conntrack-drops = The kernel dropped { $drops } packets of new connections in { $seconds } s because no entry was free.
evidence-conntrack-count = The table held { $peak } of { $max } entries.
evidence-conntrack-time-to-full = It was full { $ms } ms after the load began.
evidence-conntrack-log = { $lines ->
    [one] The kernel logged "table full, dropping packet" (it limits how often it says so).
   *[other] The kernel logged "table full, dropping packet" { $lines } times (it limits how often it says so).
}
evidence-conntrack-states = Its entries: { $mix }.
evidence-load-timeouts = Of { $requests } requests, { $connect } timed out while connecting and { $response } while waiting for the response.

coupling-table-cut = The server closed connections too early and clients opened new ones; each closed connection keeps an entry for a while. Without these closes the table would not be full. If the server closed none, the table would be the cause.
