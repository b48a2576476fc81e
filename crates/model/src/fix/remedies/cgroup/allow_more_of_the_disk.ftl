# What remedy allow-more-of-the-disk says, and its risk.

remedy-allow-more-of-the-disk-text = Let control group { $whose } { $to } on disk { $disk }: twice as much as now, to see whether that helps. chokepoint does not change this: the limit may protect others on the same disk.
remedy-allow-more-of-the-disk-risk = Others on the same disk wait longer.
step-unit-disk = in the unit that starts the server (systemctl edit), or { $option } of its container:
