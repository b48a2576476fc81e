# `chokepoint explain shaper`: the pages of the station and of its findings, with the same five sections.

page-shaper-title = Shaper
page-shaper-limits =
    Bytes a second that a queueing discipline with a rate lets out of an interface: tbf, cake, and each class of htb. A root class of htb is limited by its rate, any other by its ceiling. The rate divided by bytes per good answer is the most that the path can give.
page-shaper-shows =
    For each interface that connections of the path leave through, in the namespaces of client, servers and translation, the fullest shaper: bits passed a second against its rate, packets waiting, and packets dropped. The interface through which the answers leave the first tier is station link's.
page-shaper-sure =
    The kernel counts bytes, queue and drops itself; only growth in the window counts. An interface counts if a connection of the path has its address. So a shaper on a port of a bridge or on a router that translates nothing is not seen. Left out are netem, whose queue waits for its delay as well, and fq, whose maxrate holds for each connection by itself.
page-shaper-remedies =
    See egress-shaped: words, because the rate belongs to whoever set it.
page-shaper-sources =
    rtnetlink(7) RTM_GETQDISC, RTM_GETTCLASS, TCA_STATS2; tc(8), tc-tbf(8), tc-htb(8), tc-cake(8).

page-egress-shaped-title = A shaper holds traffic of the path back
page-egress-shaped-limits =
    All requests with bytes that leave through the interface: requests on their way to a server, or its answers.
page-egress-shaped-shows =
    The shaper passes 95 % of its rate or more and puts sending off, with packets waiting at every second look or with drops. Goodput stays at its rate divided by the bytes of an answer, while cores have room. Workers and connections in front fill up.
page-egress-shaped-sure =
    High with load of our own and a standing queue; medium where it only drops, or with traffic that is only watched. Clients must lose by it: in a closed loop the wait in the queue, or, where cores have room, all time beyond that of a single request; in an open loop the requests that had no good answer, or that took longer by that wait. Silent where a shaper passes its rate and nobody waits for it, and where its queue or its drops are of an earlier time.
page-egress-shaped-remedies =
    Words: a higher rate, with the tc command for this kind of shaper; fewer bytes (compression, smaller answers, a cache before the shaper); or another way for this traffic. The rate may have been set on purpose: ask who set it.
page-egress-shaped-sources =
    As for station shaper; net/sched/sch_tbf.c, net/sched/sch_htb.c.
