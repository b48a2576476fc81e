# What remedy raise-nofile-by-hand does, and its risk.

remedy-raise-nofile-by-hand-text = Let each process of { $tier } open { $to } files instead of { $from }: { $sum }. chokepoint does not change this: how the limit is set depends on what starts the program.
remedy-raise-nofile-by-hand-risk = prlimit(1) changes running processes until they end, but not those that start later. A program that uses select(2) cannot use descriptors above 1023. A program that leaks descriptors will use up any number.
