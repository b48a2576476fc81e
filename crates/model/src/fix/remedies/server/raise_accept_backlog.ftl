# What remedy raise-accept-backlog does, and its risk.

remedy-raise-accept-backlog-text = Let { $to } connections wait at { $listener } instead of { $from }: room for all that can come at once, while { $tier } accepts them one after the other.
remedy-raise-accept-backlog-text-other = Let { $to } connections wait at { $listener } instead of { $from }: raise the backlog that { $tier } gives to listen() and net.core.somaxconn, then start it anew.
remedy-raise-accept-backlog-risk = A longer queue hides nothing but a burst: were the server to fall behind for good, requests would wait longer before they fail. Each waiting connection takes a few KiB of kernel memory.
