# `chokepoint explain link`: the pages of the station and of its findings, with the same five sections.

page-link-title = Link
page-link-limits =
    The network interface through which the answers leave, at the device's speed or at the rate of the shaper on it, whichever is lower.
page-link-shows =
    Bits per second at 95 % or more of that rate. Then the server is healthy and limited by the link: fewer bytes per answer or a faster link are the only gain.
page-link-sure =
    Bytes are counted by the interface on the wire. veth and virtio devices know no speed: without a shaper such a link has no limit to compare with, and none is invented.
page-link-remedies =
    Compression, caching, smaller answers; raising the shaper's rate where it is yours.
page-link-sources =
    rtnetlink(7) IFLA_STATS64 and TCA_STATS2; ethtool link settings; tc(8).
