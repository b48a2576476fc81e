# Station link: its states, findings and evidence, and what brings them about.

state-link-no-rate = { $link } carried { $megabits } Mbit/s; it knows no speed and has no shaper, so it has no limit to compare with.
state-link-ok = { $link } carried { $megabits } of { $rate } Mbit/s.
state-link-near = { $link } carried { $megabits } of { $rate } Mbit/s: little is left.
state-link-full = { $link } carried { $megabits } of { $rate } Mbit/s: it is full.
