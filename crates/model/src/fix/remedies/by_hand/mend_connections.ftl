# What remedy mend-connections does, and its risk.

remedy-find-lossy-link-text = Find where packets are lost. On each host on the way, check errors and drops of the interface (ip -s -s link, ethtool -S), drops of its queue (tc -s qdisc: a shaper or policer may have too short a queue for bursts), and rules that drop at random or above a rate (nft list ruleset). Then check the cable, the duplex setting and the counters of the switch. A capture at both ends (chokepoint streams) shows between which two points packets vanish.
remedy-find-lossy-link-risk = Looking changes nothing. Do not raise retransmission limits or lower timeouts instead: that hides the loss and sends more packets that will be lost.
remedy-keep-idle-longer-text = Let the client side close idle connections first. { $kind ->
    [nginx] In nginx's upstream block, set keepalive_timeout at least a second shorter than the time for which { $remote } keeps idle connections (nginx 1.15.3 or later; default 60 s).
   *[other] Let the connections of { $tier } end when they were idle for at least a second less than the time for which { $remote } keeps them.
} Or make { $remote } keep them for longer: keepalive_timeout of nginx, KeepAliveTimeout of Apache httpd (default 5 s), server.keepAliveTimeout of Node.js (5 s), --keep-alive of gunicorn (2 s).
remedy-keep-idle-longer-risk = If the server gives each connection its own worker (prefork, php-fpm), idle connections kept for longer occupy workers for longer. A retry by proxy_next_upstream non_idempotent hides the race, but may execute a request twice.
