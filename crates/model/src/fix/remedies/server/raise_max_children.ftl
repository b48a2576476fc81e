# What remedy raise-max-children does, and its risk.

remedy-raise-max-children-text = Give the pool of { $tier } { $to } workers instead of { $from }: as many as were needed at once, as far as cores and memory allow.
remedy-raise-max-children-text-other = Give { $tier } { $to } workers instead of { $from } (see its documentation): as many as were needed at once, as far as cores and memory allow.
remedy-raise-max-children-text-loops = Let { $tier } hold { $to } connections at once instead of { $from }, as many as arrived at once. The limit is its own (often called maxconn or max connections; see its documentation).
remedy-raise-max-children-risk = Uses up to { $mib } MiB more memory.
remedy-raise-max-children-risk-loops = Each connection uses a file descriptor, memory, and perhaps a connection to the server behind it, where the next limit may be.
remedy-raise-max-children-risk-other = Uses up to { $mib } MiB more memory. If the workers wait for another server, more workers put more load on it.
