# What remedy raise-conntrack-max does, and its risk.

remedy-raise-conntrack-max-text = Raise the limit of the table from { $from } to { $to } entries: { $sum }.
remedy-raise-conntrack-max-risk = A full table uses up to { $mib } MiB of kernel memory. The limit applies to every network namespace of the host.
