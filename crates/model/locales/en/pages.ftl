# The pages of `chokepoint explain`: headings, and the finding that several stations make. The others lie beside their stations.

heading-limits = What it limits
heading-shows = How it shows
heading-sure = How sure
heading-remedies = Remedies and their risk
heading-sources = Sources

page-setting-not-in-force-title = A configured value is not in force
page-setting-not-in-force-limits =
    A listener whose accept queue is shorter than its configuration says, or a pool with fewer workers: somebody fixed it already, but only in the file.
page-setting-not-in-force-shows =
    An accept queue that overflows (accept-queue-full) at a limit below both the configured backlog and the present net.core.somaxconn; or an exhausted php-fpm pool (worker-pool-exhausted) with fewer workers than pm.max_children in a file that was changed after the workers had started.
page-setting-not-in-force-sure =
    As certain as the finding that it causes: the kernel or the number of processes gives the value in force, the file gives the configured one. Silent if no client is affected; if the configured value would not be large enough for the requests in flight at once (for a pool: neither for those that wait nor twice the workers); if net.core.somaxconn itself is too small; if a file was touched but not changed; in front of an exhausted pool; and if the workers wait for another server. A file that was put in place with an older time counts as read.
page-setting-not-in-force-remedies =
    A higher backlog or net.core.somaxconn counts from the next listen() on. nginx calls listen() on a reload only if the value of backlog= changed, php-fpm only when it starts (chokepoint calls it on a duplicate of the socket). A file that was edited but not read must be reloaded by its owner, because nobody else knows what else changed in it. On a reload php-fpm ends the requests in service, unless process_control_timeout gives them time.
page-setting-not-in-force-sources =
    listen(2); sock_diag(7) for the limit in force; time of the last change of the configuration's files (stat(2)), start of the workers (/proc/PID/stat) and of the kernel (btime of /proc/stat); ngx_cycle.c (ngx_init_cycle, ngx_open_listening_sockets); fpm_sockets.c.
