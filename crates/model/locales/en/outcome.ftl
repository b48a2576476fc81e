# What limits a server, in a few words, and short names of settings, for tables. Short names of stations are beside their code.

limit-station = { $station } of { $tier }
limit-client = load generator
limit-unknown = not known
limit-cpu-all = CPU
limit-core = CPU (core { $cpu }, { $share } %)
limit-cores = CPU (cores { $cpu }, { $share } %)
# Other programs use a part of these cores.
limit-core-shared = CPU (core { $cpu }, { $share } % beside other programs)
limit-cores-shared = CPU (cores { $cpu }, { $share } % beside other programs)
limit-link = link
limit-demand = offered load
limit-none = none reached

setting-net-netfilter-nf-conntrack-max = conntrack table
setting-net-netfilter-nf-conntrack-buckets = conntrack buckets
setting-net-netfilter-nf-conntrack-tcp-timeout-time-wait = conntrack TIME_WAIT
setting-net-ipv4-ip-local-port-range = local ports
setting-net-ipv4-tcp-tw-reuse = tcp_tw_reuse
setting-net-core-somaxconn = somaxconn
setting-net-ipv4-tcp-max-syn-backlog = SYN backlog
setting-net-ipv4-tcp-syncookies = SYN cookies
setting-net-ipv4-tcp-wmem = send buffers, most
setting-cpu-cfs-quota-us = CPU quota
setting-cpu-max = CPU quota
setting-nginx-listen-backlog = nginx backlog
setting-nginx-worker-connections = worker_connections
setting-nginx-worker-rlimit-nofile = nginx open files
setting-nginx-fastcgi-reuse = kept connections
setting-nginx-error-log-levels = error_log level
setting-nginx-tls-session-cache = TLS session cache
setting-php-fpm-max-children = php-fpm workers
setting-php-fpm-backlog = php-fpm backlog
setting-php-fpm-listen = php-fpm listen
setting-nginx-fastcgi-address = fastcgi_pass

# Values of settings as one reads them. A no-break space keeps a number and its unit on one line.
value-number = { $n }
value-ports = { $n ->
    [one] { $n }{ "\u00A0" }port
   *[other] { $n }{ "\u00A0" }ports
}
value-cores = { $n ->
    [one] { $n }{ "\u00A0" }core
   *[other] { $n }{ "\u00A0" }cores
}
value-connections = { $n ->
    [one] { $n }{ "\u00A0" }connection
   *[other] { $n }{ "\u00A0" }connections
}
value-requests-each = { $n ->
    [one] { $n }{ "\u00A0" }request each
   *[other] { $n }{ "\u00A0" }requests each
}
value-none = none
value-kept = { $n }, { $requests }{ "\u00A0" }requests each
value-kib = { $n }{ "\u00A0" }KiB
value-seconds = { $n }{ "\u00A0" }s
value-us = { $n }{ "\u00A0" }µs
value-net-ipv4-tcp-tw-reuse-0 = off
value-net-ipv4-tcp-tw-reuse-1 = on
value-net-ipv4-tcp-tw-reuse-2 = loopback only
value-net-ipv4-tcp-syncookies-0 = off
value-net-ipv4-tcp-syncookies-1 = on
value-net-ipv4-tcp-syncookies-2 = always
