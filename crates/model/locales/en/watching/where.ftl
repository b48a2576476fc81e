# `chokepoint where`: where requests stand now. A terminal may have 40 columns.

where-no-listener = Nothing on this host listens at { $address } for this client.
where-no-sample = The connections of { $tier } were not sampled.

where-title = Requests in flight at { $url }
where-title-at = { $time } UTC: requests in flight at { $url }, last { $seconds }{ "\u00A0" }s
where-stale = Nothing was measured for { $seconds } s. What follows is old.
where-starting = finding the path and taking the first samples
where-window = mean of the last { $seconds }{ "\u00A0" }s, updated every { $interval }
where-head = { $number } in flight
where-head-rate = { $number } in flight, { $rate }/s, { $duration } each
where-none = No request is in flight.
where-tier-others = in other tiers
where-tier-client = client
where-clients = Clients with most requests in flight
where-clients-none = No client with an address has a request in flight.
where-clients-others = others
where-lacking = Not read: { $sources }: { $why }
where-lacking-help = Some sources could not be read: see ?

where-keys = q quit  t tier  p place  c client  ? help
where-keys-short = q quit  ? help
where-keys-none = Ctrl-C ends it
where-mode-tier = tier: { $tier }
where-mode-order-size = places, most requests first
where-mode-order-tier = places summed by tier

where-help-what = Every request in flight is at one place at any moment. Sockets and threads show at which. No load is sent.
where-help-number = The number is the mean count of requests at that place over the window. All numbers, with unaccounted, add up to the total.
where-help-unaccounted = unaccounted: in flight, but not seen at any place.
where-help-each = Time each: requests in flight divided by requests per second (Little's law).
where-help-t = t  next tier, then all tiers
where-help-p = p  order of places: path, most first, by tier
where-help-c = c  clients with most requests in flight
where-help-q = q  quit (also Ctrl-C)
where-help-back = any key goes back
