# Station link: its states, findings and evidence, and what brings them about.

short-link = link

state-link-no-rate = { $link } carried { $megabits } Mbit/s; it reports no speed and has no shaper, so its limit is not known.
state-link-ok = { $link } carried { $megabits } of { $rate } Mbit/s.
state-link-near = { $link } carried { $megabits } of { $rate } Mbit/s: almost at its limit.
state-link-full = { $link } carried { $megabits } of { $rate } Mbit/s: it is full.
state-link-holds = { $link } carried { $megabits } of { $rate } Mbit/s: its shaper is full. It dropped { $drops } packets, and at { $waiting } of { $looks } looks packets waited.
