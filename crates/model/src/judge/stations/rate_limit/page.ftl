# `chokepoint explain rate-limit`: the pages of the station and of its findings, with the same five sections.

page-rate-limit-title = Rate limit
page-rate-limit-limits =
    What the configuration itself lets one client have where this request goes: requests a second (limit_req of nginx) or connections at once (limit_conn). Limits of other places are not counted.
page-rate-limit-shows =
    The rate of the zone against the goodput. The limit that holds this traffic is shown, else the lowest one on its way.
page-rate-limit-sure =
    Where a request goes is followed through the configuration as nginx does: address, name, location. Where files, conditions or expressions decide, only the log can tell. A dry run limits nothing.
page-rate-limit-remedies =
    See rate-limited-by-config.
page-rate-limit-sources =
    nginx: ngx_http_limit_req_module, ngx_http_limit_conn_module.

page-rate-limited-by-config-title = The configuration limits this traffic
page-rate-limited-by-config-limits =
    Requests of one client (one value of the zone's key, mostly the address) above the rate, or beyond so many connections at once.
page-rate-limited-by-config-shows =
    Answers with the limit's status (503, or limit_req_status, limit_conn_status) and lines "limiting requests" or "limiting connections" with the zone's name in the error log. With burst and without nodelay nothing fails at first: requests wait, and goodput is the rate to the digit. Without any burst it is less than the rate: nginx counts in whole milliseconds, so that of 314 a second, a turn of 3.2 ms, one in 4 ms passes, and never more than 1,000 a second.
page-rate-limited-by-config-sure =
    High where the zone's own lines in the error log are as many as half of those answers or delays; medium where the log does not tell, but the limit is surely on the request's way and goodput is just what it lets through. Silent where the rate is not reached, where the limit belongs to another location, and where answers with that status come from elsewhere. A load generator is one address: real clients, each with its own, may never meet the limit.
page-rate-limited-by-config-remedies =
    Ask its owner: the lines are shown, and nothing is changed from here. A test may be let through by a key that is empty for its address (geo and map).
page-rate-limited-by-config-sources =
    As for station rate-limit.
