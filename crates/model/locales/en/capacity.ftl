# `chokepoint capacity`: what watched traffic leaves in reserve.

capacity-first = { $rate } requests per second now; { $headroom } more per second until the first station is full: { $station } of { $tier } at { $full }/s.
capacity-full = { $rate } requests per second now, and nothing in reserve: { $station } of { $tier } is full.
capacity-no-server = No server of this host was found for this URL.
capacity-no-rate = The rate of requests is not known, so it is not known either how many more there may be.
capacity-no-traffic = No request was seen, so it is not known how much a request takes.
capacity-none-known = { $rate } requests per second now. It is not known of any station when it is full.
capacity-by-ceiling = full at { $full }/s, { $headroom }/s more
capacity-by-proportion = full at { $full }/s if each request takes as much of it as now, { $headroom }/s more
capacity-not-read = unknown: { $why }
capacity-station-no-rate = unknown: the rate of requests is not known
capacity-not-used = unknown: none of it, or too little to tell, was used in this time
capacity-queue = { $share } % used at most; a queue fills once what is behind it is full, not in proportion to the requests
capacity-window = Only { $seconds } s were watched: the peak of the day may be higher.
capacity-unknown = Of { $count } of { $of } stations it is not known when they are full. They may fill first.
capacity-growth = At { $percent } % a { $period } that is in { $days } days ({ $weeks } weeks): { $station } of { $tier }.
capacity-growth-unknown = At { $percent } % a { $period } it is not known when a station is full.

capacity-column-station = station
capacity-column-used = used
capacity-column-full = full at
capacity-column-headroom = headroom
capacity-stations = In reserve
capacity-unknowns = Not known
capacity-rate = { $rate }/s
