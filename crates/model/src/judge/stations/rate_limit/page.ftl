# `chokepoint explain rate-limit`: the pages of the station and of its findings, with the same five sections.

page-rate-limit-title = Rate limit
page-rate-limit-limits =
    What the configuration allows where this request goes: requests per second of one client (nginx's limit_req), its connections at once (limit_conn), or bytes per second of one response (limit_rate). Limits of other locations do not count.
page-rate-limit-shows =
    The rate of the zone against the goodput. The limit that holds this traffic is shown, else the lowest one on its way.
page-rate-limit-sure =
    The request is followed through the configuration as nginx does it: address, server name, location. Where files, conditions or expressions decide, only the log can tell. A dry run limits nothing.
page-rate-limit-remedies =
    See rate-limited-by-config.
page-rate-limit-sources =
    nginx: ngx_http_limit_req_module, ngx_http_limit_conn_module. Status 429: RFC 6585, section 4.

page-rate-limited-by-config-title = The configuration limits this traffic
page-rate-limited-by-config-limits =
    Requests of one client (one value of the zone's key, usually the address) above the rate, or above the number of connections at once.
page-rate-limited-by-config-shows =
    Of any server: responses with status 429 (Too Many Requests). Of nginx: responses with the limit's status (503, or limit_req_status, limit_conn_status), and "limiting requests" or "limiting connections" with the zone's name in the error log. With burst and without nodelay nothing fails at first: requests wait, and goodput equals the rate. Without burst it is below the rate, because nginx counts in whole milliseconds: of 314 per second, one in 3.2 ms, it passes one in 4 ms, and it never passes more than 1,000 per second.
page-rate-limited-by-config-sure =
    High if the zone's own lines in the error log account for at least half of those responses or delays. Medium if the log does not show it, but the limit is certainly on the request's way and goodput is exactly what it allows. Silent if the rate is not reached, if the limit belongs to another location, and if responses with that status come from elsewhere. A load generator has one address: real clients, each with their own, may never reach the limit.
page-rate-limited-by-config-remedies =
    Ask the owner of the configuration: the lines are shown, and chokepoint does not change them. A key that is empty for the test's address (geo and map) exempts a test.
page-rate-limited-by-config-sources =
    As for station rate-limit.
