# What remedy raise-conntrack-max does, and its risk.

remedy-raise-conntrack-max-text = Raise the limit of the table from { $from } to { $to } entries: room for the rate at which connections came, for as long as an entry stays.
remedy-raise-conntrack-max-risk = Takes up to { $mib } MiB of kernel memory when the table fills; holds for every network namespace of the host.
