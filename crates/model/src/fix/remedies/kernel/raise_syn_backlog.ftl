# What remedy raise-syn-backlog does, and its risk.

remedy-raise-syn-backlog-text = Raise tcp_max_syn_backlog from { $from } to { $to }: { $sum }. Then only the listener's own backlog ({ $limit }) limits the queue. This is enough for a burst or slow handshakes; a flood fills a queue of any length.
remedy-raise-syn-backlog-risk = Each open handshake uses about 300 bytes of kernel memory. The setting applies to every listener of the namespace.
