# Station shaper: its states, findings and evidence, and what brings them about.

state-shaper-ok = The shaper ({ $kind }) of { $link } in { $netns } passed { $megabits } of { $rate } Mbit/s.
state-shaper-near = The shaper ({ $kind }) of { $link } in { $netns } passed { $megabits } of { $rate } Mbit/s: little is left.
state-shaper-harmless = The shaper ({ $kind }) of { $link } in { $netns } passed { $megabits } of { $rate } Mbit/s: it is full, and clients lose hardly anything by it.
state-shaper-full = The shaper ({ $kind }) of { $link } in { $netns } passed { $megabits } of { $rate } Mbit/s: it is full.
state-shaper-unknown = The shaper ({ $kind }) of { $link } in { $netns } lets { $rate } Mbit/s pass; how much it passed could not be read.

finding-egress-shaped-title = A shaper ({ $kind }) on { $link } in { $netns } is full: it lets { $rate } Mbit/s pass
finding-egress-shaped-explanation = A queueing discipline on { $link } sends no more than { $rate } Mbit/s, and more is there to send. Packets wait in its queue, or are dropped and sent again, while cores and servers have room. Nothing else on the path raises the number of answers: each of them has bytes that must pass here.

evidence-shaper-passed = It passed { $megabits } of { $rate } Mbit/s ({ $share } %) and put sending off { $overlimits } times because its rate was used up.
evidence-shaper-queue = { $waiting } of { $looks } looks found packets waiting: { $packets } on average ({ $kib } KiB), which takes { $wait } ms at this rate.
evidence-shaper-drops = It dropped { $drops ->
    [one] one packet
   *[other] { $drops } packets
} meanwhile.
evidence-shaper-time = Clients spend { $share } % of their time waiting for it.
evidence-shaper-requests = { $share } % of the requests had no good answer or waited for it.

coupling-shaper-pool = What the tier sends leaves through a shaper that is full, so that its workers wait to send. With room in the shaper they would wait for something of their own.
coupling-shaper-blocked = A shaper between the two is full, and each answer of the other server waits for its turn there. With room in the shaper that server would be the place to look.
coupling-shaper-held = A shaper towards the other server is full, and each request holds its connections until its bytes have passed. With room in the shaper fewer connections would be held at once.
coupling-shaper-buffer = What the tier sends waits in a shaper that is full, so that acknowledgements come late and send buffers fill up. With room in the shaper the buffers would be the place to look.
