# The report as a page and in Markdown. What they share with the text report is in report.ftl.

html-title = { $verdict }: { $url }
html-brand = chokepoint diagnosis
html-verdict-choked = Choked
html-verdict-healthy = Healthy
html-verdict-overloaded = Overloaded
html-verdict-client-limited = Client-limited
html-verdict-unknown = Unknown
html-as-found = As found
html-after-fix = After the fix

html-goodput = goodput
html-p99 = p99
html-failed = failed
html-requests = requests
html-per-second = { $rate }/s
html-load = The load and its results
html-change = { $before } → { $after }

html-column-tier = tier
html-column-station = station
html-column-use = use
html-column-notes = notes
html-legend = A piece is as wide as the most requests a second that its station can pass, where that is known, and filled as far as the station is used. Red refuses; a mark stands above the choke point. A click on a piece tells more.

html-chain-note = An arrow leads from a cause to its symptom. Causes are fixed in this order.


# A trial without one change: it was missed and put back, or it was not.
round-put-back = put back
round-left-out = left out

html-column-number = round
html-column-before = goodput before
html-column-found = found
html-column-changed = changed
html-column-predicted = predicted
html-column-after = goodput after
html-column-outcome = kept or taken back
html-predicted = { $rate }/s ({ $low } to { $high })
html-predicted-held = { $rate }/s ({ $low } to { $high }): met
html-predicted-missed = { $rate }/s ({ $low } to { $high }): missed
html-not-predicted = not predicted: { $why }
html-goodput-of-rounds = Goodput, requests/s
html-p99-of-rounds = p99 response time
html-chart-note = Bracket: the prediction, low to high.

