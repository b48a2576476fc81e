# What remedy raise-syn-backlog does, and its risk.

remedy-raise-syn-backlog-text = Raise tcp_max_syn_backlog from { $from } to { $to }: then the listener's own backlog ({ $limit }) is the bound. Enough for a burst or slow handshakes; a flood fills any queue.
remedy-raise-syn-backlog-risk = Each open handshake takes about 300 bytes of kernel memory; holds for every listener of the namespace.
