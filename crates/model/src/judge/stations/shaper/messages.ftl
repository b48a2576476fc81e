# Station shaper: its states, findings and evidence, and what brings them about.

short-shaper = shaper

state-shaper-ok = The shaper ({ $kind }) of { $link } in { $netns } passed { $megabits } of { $rate } Mbit/s.
state-shaper-near = The shaper ({ $kind }) of { $link } in { $netns } passed { $megabits } of { $rate } Mbit/s: almost at its limit.
state-shaper-harmless = The shaper ({ $kind }) of { $link } in { $netns } passed { $megabits } of { $rate } Mbit/s: it is full, but hardly any request was affected.
state-shaper-full = The shaper ({ $kind }) of { $link } in { $netns } passed { $megabits } of { $rate } Mbit/s: it is full.
state-shaper-unknown = The shaper ({ $kind }) of { $link } in { $netns } lets { $rate } Mbit/s pass; how much it passed could not be read.

finding-egress-shaped-title = A shaper ({ $kind }) on { $link } in { $netns } is full: it lets { $rate } Mbit/s pass
finding-egress-shaped-explanation = A queueing discipline on { $link } sends at most { $rate } Mbit/s, and there is more to send. Packets wait in its queue, or are dropped and sent again, while cores and servers have idle time. Nothing else on the path can raise the number of responses, because the bytes of each one must pass here.

evidence-shaper-passed = It passed { $megabits } of { $rate } Mbit/s ({ $share } %) and delayed packets { $overlimits } times because its rate was used up.
evidence-shaper-queue = { $waiting } of { $looks } samples found packets waiting: { $packets } on average ({ $kib } KiB), which takes { $wait } ms at this rate.
evidence-shaper-drops = It dropped { $drops ->
    [one] one packet
   *[other] { $drops } packets
} in that time.
evidence-shaper-time = Clients spend { $share } % of their time waiting for it.
evidence-shaper-requests = { $share } % of the requests had no good response or waited for it.

coupling-shaper-pool = The tier sends through a shaper that is full, so its workers wait to send. If the shaper had capacity, they would wait for something of their own.
coupling-shaper-blocked = A shaper between the two servers is full, and each response of the other server waits there. If the shaper had capacity, that server would be the place to look.
coupling-shaper-held = A shaper towards the other server is full, and each request holds its connections until its bytes have passed. If the shaper had capacity, fewer connections would be held at once.
coupling-shaper-buffer = The tier sends through a shaper that is full, so acknowledgements come late and send buffers fill up. If the shaper had capacity, the buffers would be the place to look.
