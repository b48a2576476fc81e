# `chokepoint explain shaper`: the pages of the station and of its findings, with the same five sections.

page-shaper-title = Shaper
page-shaper-limits =
    The bytes per second that a queueing discipline with a rate lets out of an interface: tbf, cake, and each class of htb. A root class of htb is limited by its rate, any other class by its ceiling. The rate divided by the bytes of a good response is the most that can pass.
page-shaper-shows =
    For each interface that connections of the path leave through, in the namespaces of client, servers and address translation, the fullest shaper: bits passed per second against its rate, packets waiting, and packets dropped. Station link covers the interface through which the responses leave the first tier; its shaper stands here as well once it is full.
page-shaper-sure =
    The kernel counts bytes, queue and drops itself; only growth during the measurement counts. An interface counts if a connection of the path has its address, so a shaper on a bridge port or on a router without address translation is not seen. Left out are netem, whose queue also waits for its delay, and fq, whose maxrate applies to each connection on its own.
page-shaper-remedies =
    See egress-shaped: advice only, because the rate belongs to whoever set it.
page-shaper-sources =
    rtnetlink(7) RTM_GETQDISC, RTM_GETTCLASS, TCA_STATS2; tc(8), tc-tbf(8), tc-htb(8), tc-cake(8).

page-egress-shaped-title = A shaper limits traffic of the path
page-egress-shaped-limits =
    All requests with bytes that leave through the interface: requests on their way to a server, or its responses.
page-egress-shaped-shows =
    The shaper delays packets and is full: it passes at least 95 % of its rate, with packets waiting in at least half of the samples, or with drops; or packets wait in each sample; or it passes 80 % of its rate and drops one packet in a hundred. Goodput stays at its rate divided by the bytes of a response, while cores have idle time. Workers and connections in front fill up.
page-egress-shaped-sure =
    High with a load and a standing queue; medium if it only drops, or if traffic is only watched. Clients must lose by it. In a closed loop that is the wait in the queue or, if cores have idle time, all time beyond that of a single request. In an open loop it is the requests without a good response, or those that took longer by that wait. In watched traffic it is the requests in the queue, or the connections whose data is not acknowledged, of all under way. Silent if a shaper passes its rate and nobody waits for it, and if its queue or its drops are from an earlier time.
page-egress-shaped-remedies =
    Advice only: a higher rate, with the tc command for this kind of shaper; fewer bytes (compression, smaller responses, a cache before the shaper); or another way for this traffic. The rate may have been set on purpose: ask who set it.
page-egress-shaped-sources =
    As for station shaper; net/sched/sch_tbf.c, net/sched/sch_htb.c.
