# What remedy raise-accept-backlog does, and its risk.

remedy-raise-accept-backlog-text = Let { $to } connections wait at { $listener } instead of { $from }, while { $tier } accepts them one by one: { $sum }.
remedy-raise-accept-backlog-text-other = Let { $to } connections wait at { $listener } instead of { $from } ({ $sum }): raise the backlog that { $tier } passes to listen() and net.core.somaxconn, then restart it.
remedy-raise-accept-backlog-risk = A longer queue helps only against bursts: if the server falls behind permanently, requests wait longer before they fail. Each waiting connection uses a few KiB of kernel memory.
