# What advice bound-retries says.

remedy-bound-retries-text = Let { $tier } ask again seldom: at most once, after a random pause that grows, and only while few calls fail (a retry budget: at most a tenth of all calls). { $kind ->
    [nginx] In nginx: proxy_next_upstream_tries 2 and proxy_next_upstream_timeout, or proxy_next_upstream off (fastcgi_, uwsgi_, scgi_, grpc_ instead of proxy_ where these pass it on).
   *[other] HAProxy: retries 1, and retry-on with nothing but conn-failure. Envoy: num_retries and retry_budget. A program: the settings of its HTTP client (total and backoff_factor of urllib3's Retry), or its own loop.
} Where calls are given up, make their time limit longer than { $asked } takes under load.
remedy-bound-retries-risk = Fewer tries hide fewer errors: until { $asked } is well, more requests fail at once instead of late.
