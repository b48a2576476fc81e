# `chokepoint explain link`: the pages of the station and of its findings, with the same five sections.

page-link-title = Link
page-link-limits =
    The network interface through which the responses leave, at the device's speed or at the rate of its shaper, whichever is lower.
page-link-shows =
    At least 95 % of that rate in use; or a shaper that puts packets off and whose queue is never empty, or that passes 80 % of its rate and drops one packet in a hundred. A server whose interface is at its speed is healthy and limited by the link; only fewer bytes per response or a faster link can help. A shaper that is full is a limit that somebody set: egress-shaped.
page-link-sure =
    The interface counts the bytes on the wire. veth and virtio devices have no speed: without a shaper such a link has no known limit, and none is invented.
page-link-remedies =
    Compression, caching, smaller responses; a higher shaper rate if the shaper is yours.
page-link-sources =
    rtnetlink(7) IFLA_STATS64 and TCA_STATS2; ethtool link settings; tc(8).
