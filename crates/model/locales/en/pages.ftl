# The pages of `chokepoint explain`: headings, and the finding that several stations make. The others lie beside their stations.

heading-limits = What it limits
heading-shows = How it shows
heading-sure = How sure
heading-remedies = Remedies and their risk
heading-sources = Sources

page-setting-not-in-force-title = What is written is not in force
page-setting-not-in-force-limits =
    A listener whose accept queue is shorter than its configuration says, or a pool with fewer workers: somebody has mended it already, but only on paper.
page-setting-not-in-force-shows =
    An accept queue that overflows (accept-queue-full) at a limit below both the backlog in the server's configuration and net.core.somaxconn as it is now; or a pool of php-fpm that is exhausted (worker-pool-exhausted) with fewer workers than pm.max_children in a file which was changed after the workers had been started.
page-setting-not-in-force-sure =
    As sure as the finding that it is the cause of: the limit in force is the kernel's own word or the number of processes, what is written is read from the file. Silent where nobody suffers; where what is written would not have room for the requests that are under way at once (for a pool: neither for those that wait nor twice the workers); where net.core.somaxconn itself is what is too small; where a file was only touched; before a pool that is exhausted, and where the workers wait for another server. A file that was put in its place with an older time counts as read.
page-setting-not-in-force-remedies =
    A raised backlog or net.core.somaxconn counts only from the next listen() on: nginx calls it at a reload only where the value of backlog= is another, php-fpm only when it is started (chokepoint calls it on a duplicate of the socket). A file that was edited and not read is reloaded by its owner, because nobody else knows what else was changed in it. php-fpm ends the requests in service at a reload, unless process_control_timeout gives them time.
page-setting-not-in-force-sources =
    listen(2); sock_diag(7) for the limit in force; time of the last change of the configuration's files (stat(2)), start of the workers (/proc/PID/stat) and of the kernel (btime of /proc/stat); ngx_cycle.c (ngx_init_cycle, ngx_open_listening_sockets); fpm_sockets.c.
