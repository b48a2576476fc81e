#!/bin/bash
# What `chokepoint size` recommends against the whole matrix of workers and connections, in the lab: lab/size-matrix.sh SERVER PAGE OUT
# SERVER: php-fpm, gunicorn or tomcat. PAGE: cpu (it computes) or wait (it waits). Writes the table of the matrix and the comparison below OUT.
# Needs root. On a machine with other programs the servers need priority over them for the comparison (NICE=-20): more processes would get a larger share of a
# contended core, whatever they do for each request. Each step takes a lock (LOCK), so that another lab can run in between.
set -euo pipefail

server=$1 page=$2 out=$3
program=${CHOKEPOINT:-target/debug/chokepoint}
lock=${LOCK:-/tmp/lab.lock}
workers_all=${WORKERS:-1 2 4 8 16 32 64 128}
connections_all=${CONNECTIONS:-1 2 4 8 16 32 64 128}
first=${FIRST:-4}
mkdir -p "$out"
name="$server-$page"

# The scenario with this many workers.
scenario() {
    local file=$1 workers=$2
    cat <<END >"$file"
schema = 1
name = "size-$name"
title = "$server with $workers workers before a page of kind $page."

[[host]]
name = "client"
sysctls = { "net.ipv4.ip_local_port_range" = "10000 65535" }

[[host]]
name = "server"
sysctls = { "net.core.somaxconn" = 65535, "net.ipv4.tcp_max_syn_backlog" = 65535, "net.ipv4.ip_local_port_range" = "10000 65535", "net.ipv4.tcp_tw_reuse" = 1 }

[[link]]
a = { host = "client", addresses = ["10.79.0.1/24", "fd79::1/64"] }
b = { host = "server", addresses = ["10.79.0.2/24", "fd79::2/64"] }

[client]
host = "client"
cpus = [0]

[expect]
verdict = "healthy"
finding = "none"

END
    "$server" "$workers" >>"$file"
}

php-fpm() {
    local code='usleep(20000); echo "Hello";'
    # shellcheck disable=SC2016
    [ "$page" = wait ] || code='for ($i = 2, $n = 0; $n < 1000; $i++) { for ($j = 2; $j * $j <= $i; $j++) { if ($i % $j == 0) continue 2; } $n++; } echo $n;'
    cat <<END
[load]
url = "http://10.79.0.2/"
connections = 8
duration = "3s"

[[file]]
path = "www/index.php"
content = '<?php $code'

[[server]]
name = "php-fpm"
host = "server"
kind = "php-fpm"
cpus = [1]
ready = { tcp = "127.0.0.1:9000" }
config = """
[global]
error_log = {run}/php-fpm-error.log
[www]
user = {user}
group = {group}
listen = 127.0.0.1:9000
listen.backlog = 4096
pm = static
pm.max_children = $1
"""

[[server]]
name = "nginx"
host = "server"
kind = "nginx"
cpus = [1]
nofile = 16384
ready = { tcp = "0.0.0.0:80" }
config = """
user {user};
worker_processes 1;
worker_rlimit_nofile 16384;
error_log {run}/nginx-error.log warn;
events { worker_connections 8192; }
http {
    {nginx_temp_paths}
    access_log off;
    keepalive_requests 1000000;
    server {
        listen 80 backlog=4096;
        location / {
            fastcgi_pass 127.0.0.1:9000;
            fastcgi_param SCRIPT_FILENAME {run}/www/index.php;
            fastcgi_param REQUEST_METHOD \$request_method;
        }
    }
}
"""
END
}

gunicorn() {
    local code="time.sleep(0.02)"
    [ "$page" = wait ] || code="primes(300)"
    cat <<END
[load]
url = "http://10.79.0.2:8000/"
connections = 8
duration = "3s"
keep_alive = false

[[file]]
path = "app.py"
content = '''
import time

def primes(number):
    found, candidate = 0, 2
    while found < number:
        if all(candidate % divisor for divisor in range(2, int(candidate ** 0.5) + 1)):
            found += 1
        candidate += 1

def app(environ, start_response):
    $code
    start_response("200 OK", [("Content-Length", "5")])
    return [b"Hello"]
'''

[[server]]
name = "gunicorn"
host = "server"
kind = "command"
cpus = [1]
nofile = 16384
command = ["gunicorn", "--workers", "$1", "--backlog", "4096", "--bind", "0.0.0.0:8000", "--chdir", "{run}", "app:app"]
ready = { http = "http://127.0.0.1:8000/", timeout = "60s" }
END
}

tomcat() {
    local code="Thread.sleep(100);"
    [ "$page" = wait ] || code="int n = 0; for (int i = 2; n < 1000; i++) { boolean prime = true; for (int j = 2; j * j <= i; j++) if (i % j == 0) { prime = false; break; } if (prime) n++; } out.print(n);"
    cat <<END
[load]
url = "http://10.79.0.2:8080/index.jsp"
connections = 8
duration = "3s"

[[file]]
path = "tomcat/conf/server.xml"
content = """
<Server port="-1">
  <Service name="Catalina">
    <Connector port="8080" address="0.0.0.0" protocol="HTTP/1.1" maxThreads="$1" minSpareThreads="1" acceptCount="1000" maxKeepAliveRequests="-1" />
    <Engine name="Catalina" defaultHost="localhost">
      <Host name="localhost" appBase="webapps" autoDeploy="false" />
    </Engine>
  </Service>
</Server>
"""

[[file]]
path = "tomcat/conf/web.xml"
content = """
<web-app xmlns="https://jakarta.ee/xml/ns/jakartaee" version="6.0">
  <servlet>
    <servlet-name>jsp</servlet-name>
    <servlet-class>org.apache.jasper.servlet.JspServlet</servlet-class>
  </servlet>
  <servlet-mapping>
    <servlet-name>jsp</servlet-name>
    <url-pattern>*.jsp</url-pattern>
  </servlet-mapping>
</web-app>
"""

[[file]]
path = "tomcat/webapps/ROOT/index.jsp"
content = '<%@ page session="false" %><% $code %>Hello'

[[server]]
name = "tomcat"
host = "server"
kind = "command"
cpus = [1]
nofile = 16384
env = { JAVA_TOOL_OPTIONS = "-Xmx512m" }
command = [
    "java", "-Djava.io.tmpdir={run}", "-Dcatalina.home=/usr/share/tomcat10", "-Dcatalina.base={run}/tomcat",
    "-classpath", "/usr/share/tomcat10/bin/bootstrap.jar:/usr/share/tomcat10/bin/tomcat-juli.jar",
    "org.apache.catalina.startup.Bootstrap", "start",
]
ready = { http = "http://127.0.0.1:8080/index.jsp", timeout = "60s" }
END
}

# up WORKERS: builds the scenario, sets url and netns.
up() {
    scenario "$out/$name.toml" "$1"
    "$program" lab up "$out/$name.toml" >"$out/$name.up" 2>&1 || { cat "$out/$name.up" >&2; return 1; }
    url=$(grep -oE 'http://10\.79[^ ]*' "$out/$name.up" | head -1)
    netns=$(grep -oE 'cp-size-[a-z-]*-client' "$out/$name.up" | head -1)
    # A program that compiles itself needs some ten thousand requests until it is as fast as it gets.
    if [ "$server" = tomcat ]; then goodput 32 "${WARM:-8s}" >/dev/null; else goodput 32 "${WARM:-3s}" >/dev/null; fi
}

down() {
    "$program" lab down "size-$name" >/dev/null 2>&1 || true
}

keepalive() {
    if [ "$server" = gunicorn ]; then echo --disable-keepalive; fi
}

# goodput CONNECTIONS TIME: expected answers per second.
goodput() {
    # shellcheck disable=SC2046
    "$program" bench --json --client-netns "$netns" --cpus 0 -y -c "$1" -z "$2" -t 10s --warm-up 500ms $(keepalive) "$url" | jq -r '.load.goodput_rps'
}

recommend() {
    up "$first"
    # shellcheck disable=SC2046
    "$program" size --json --budget "${BUDGET:-80s}" --client-netns "$netns" --cpus 0 $(keepalive) "$url" >"$out/$name.size.json" || true
    down
}

row() {
    up "$1"
    local cells="$1"
    for connections in $connections_all; do
        cells="$cells $(goodput "$connections" "${CELL:-1s}")"
    done
    down
    echo "$cells" >>"$out/$name.matrix"
}

rows() {
    local workers
    for workers in "$@"; do
        row "$workers"
    done
}

# measure WORKERS CONNECTIONS FILE: one longer measurement.
measure() {
    up "$1"
    goodput "$2" 4s >>"$3"
    down
}

# The best of many noisy cells is best by chance as well: both are measured again, in turns.
pairs() {
    for _ in 1 2 3; do
        measure "$1" "$2" "$out/$name.best"
        measure "$3" "$4" "$out/$name.advised"
    done
}

# Bash starts itself again with the lock for each step.
case ${4-} in
'') ;;
*) "${@:4}"; exit ;;
esac

locked() {
    nice -n "${NICE:-0}" flock -w 1800 "$lock" "$0" "$server" "$page" "$out" "$@"
}

rm -f "$out/$name".{matrix,best,advised}
locked recommend
advised=$(jq -r '[.tiers[] | select(.workers != null)][0].workers' "$out/$name.size.json")
echo "$name: $advised workers are recommended"
half=$(($(wc -w <<<"$workers_all") / 2))
# shellcheck disable=SC2046
locked rows $(cut -d ' ' -f "1-$half" <<<"$workers_all")
# shellcheck disable=SC2046
locked rows $(cut -d ' ' -f "$((half + 1))-" <<<"$workers_all")
[ "$(awk -v w="$advised" '$1 == w' "$out/$name.matrix" | wc -l)" -gt 0 ] || locked row "$advised"
# shellcheck disable=SC2016
best=$(awk -v c="$connections_all" 'BEGIN { split(c, of) } { for (i = 2; i <= NF; i++) if ($i > most) { most = $i; at = $1 " " of[i - 1] } } END { print at }' "$out/$name.matrix")
# shellcheck disable=SC2016
own=$(awk -v w="$advised" -v c="$connections_all" 'BEGIN { split(c, of) } $1 == w { for (i = 2; i <= NF; i++) if ($i > most) { most = $i; at = of[i - 1] } } END { print at }' "$out/$name.matrix")
# shellcheck disable=SC2086
locked pairs $best "$advised" "$own"
median() { sort -n "$1" | sed -n 2p; }
echo "$name: best $best ($(median "$out/$name.best")/s), recommended $advised $own ($(median "$out/$name.advised")/s)" | tee "$out/$name.result"
awk -v a="$(median "$out/$name.advised")" -v b="$(median "$out/$name.best")" 'BEGIN { printf "share %.3f\n", a / b }' | tee -a "$out/$name.result"
