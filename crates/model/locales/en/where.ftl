# `chokepoint where`: where requests stand now. A terminal may have 40 columns.

where-no-listener = Nothing on this host listens at { $address } for this client.
where-no-sample = The connections of { $tier } were not sampled.

where-title = Where requests stand at { $url }
where-title-at = { $time } UTC: where requests stood at { $url } in the last { $seconds }{ "\u00A0" }s
where-starting = finding the path and taking the first samples
where-window = mean of the last { $seconds }{ "\u00A0" }s, anew every { $interval }
where-head = { $number } under way
where-head-rate = { $number } under way, { $rate }/s, { $duration } each
where-none = No request is under way.
where-tier-others = at other tiers
where-tier-client = client
where-clients = Clients with most requests under way
where-clients-none = No connection with an address has a request under way.
where-clients-others = others
where-lacking = Not read: { $sources }: { $why }
where-lacking-help = Some readings are missing: ? tells which

where-keys = q quit  t tier  p place  c client  ? help
where-keys-short = q quit  ? help
where-keys-none = Ctrl-C ends it
where-mode-tier = tier: { $tier }
where-mode-order-size = places, most requests first
where-mode-order-tier = places summed up by tier

where-help-what = A request under way stands at one place at any moment. Sockets and threads tell at which; no load is offered.
where-help-number = The number is the mean of requests at the place over the window; with what is unaccounted they add up to all.
where-help-unaccounted = unaccounted: under way, and not seen at any place.
where-help-each = Time each: requests under way divided by requests a second (Little's law).
where-help-t = t  next tier, then all of them
where-help-p = p  order of the places: path, most first, by tier
where-help-c = c  clients with most requests under way
where-help-q = q  quit; so does Ctrl-C
where-help-back = any key leads back
