# What remedy raise-max-children does, and its risk.

remedy-raise-max-children-text = Let the pool of { $tier } have { $to } workers instead of { $from }: as many as were asked for at once, as far as cores and memory carry them.
remedy-raise-max-children-text-other = Give { $tier } { $to } workers instead of { $from } (how, its own documentation says): as many as were asked for at once, as far as cores and memory carry them.
remedy-raise-max-children-text-loops = Let { $tier } hold { $to } connections at once instead of { $from } (its own limit, as maxconn or max connections: its documentation says how): as many as came at once.
remedy-raise-max-children-risk = Takes up to { $mib } MiB of memory more.
remedy-raise-max-children-risk-loops = Each connection takes a file, memory, and perhaps one to the server behind it: what comes next is limited there.
remedy-raise-max-children-risk-other = Takes up to { $mib } MiB of memory more. Where the workers wait for another server, more of them load that one more.
