#!/bin/bash
# Response times from the sockets alone against wrk's own, for five kinds of servers: scripts/watch/passive-times.sh OUT [ROUNDS]
# Prints a row for each run: server, p50 and mean of wrk and of `chokepoint watch`, and their ratios. CHOKEPOINT names the program. It needs root, wrk, nginx, php-fpm,
# gunicorn, Tomcat's classes and java, openssl, jq and curl. Everything listens on loopback.
set -euo pipefail

out=$(realpath -m "$1")
rounds=${2:-4}
ulimit -n 8192
program=${CHOKEPOINT:-target/debug/chokepoint}
seconds=${SECONDS_EACH:-45}
run=$out/run
mkdir -p "$run/www" "$run/tomcat/conf" "$run/tomcat/webapps/ROOT"
chmod 0755 "$out" "$run"
pids=()
# shellcheck disable=SC2329  # the trap calls it
clean() { kill "${pids[@]}" 2>/dev/null || true; wait 2>/dev/null || true; }
trap clean EXIT

start() { "$@" >>"$run/servers.log" 2>&1 & pids+=($!); }
listening() { for _ in $(seq 300); do curl -sko "$run/answer" "$1" && return 0; sleep 0.1; done; echo "nothing answers at $1" >&2; return 1; }

openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -days 2 -keyout "$run/key.pem" -out "$run/cert.pem" 2>/dev/null
head -c 4096 /dev/urandom | base64 -w 76 >"$run/www/page.txt"
# wrk adds answers of its own wherever one takes twice the mean (against coordinated omission), so times vary by less than that.
echo '<?php usleep(random_int(5000, 35000)); echo "Hello";' >"$run/www/index.php"
cat >"$run/php-fpm.conf" <<END
[global]
error_log = $run/php-fpm.log
daemonize = no
[www]
user = www-data
group = www-data
listen = 127.0.0.1:18900
listen.backlog = 4096
pm = static
pm.max_children = 12
END
cat >"$run/nginx.conf" <<END
user www-data;
worker_processes 1;
worker_rlimit_nofile 8192;
daemon off;
pid $run/nginx.pid;
error_log $run/nginx.log;
events { worker_connections 4096; }
http {
    access_log off;
    keepalive_requests 1000000;
    client_body_temp_path $run/t1; proxy_temp_path $run/t2; fastcgi_temp_path $run/t3; uwsgi_temp_path $run/t4; scgi_temp_path $run/t5;
    root $run/www;
    server { listen 127.0.0.1:18800 backlog=4096; }
    server { listen 127.0.0.1:18801 backlog=4096 ssl; ssl_certificate $run/cert.pem; ssl_certificate_key $run/key.pem; }
    server {
        listen 127.0.0.1:18802 backlog=4096;
        location / {
            fastcgi_pass 127.0.0.1:18900;
            fastcgi_param SCRIPT_FILENAME $run/www/index.php;
            fastcgi_param REQUEST_METHOD \$request_method;
        }
    }
}
END
cat >"$run/app.py" <<'END'
import random
import time


def app(environ, start_response):
    time.sleep(random.uniform(0.01, 0.03))
    start_response("200 OK", [("Content-Length", "5")])
    return [b"Hello"]
END
cat >"$run/tomcat/conf/server.xml" <<'END'
<Server port="-1">
  <Service name="Catalina">
    <Connector port="18804" address="127.0.0.1" protocol="HTTP/1.1" maxThreads="40" acceptCount="1000" maxKeepAliveRequests="-1" />
    <Engine name="Catalina" defaultHost="localhost"><Host name="localhost" appBase="webapps" autoDeploy="false" /></Engine>
  </Service>
</Server>
END
cat >"$run/tomcat/conf/web.xml" <<'END'
<web-app xmlns="https://jakarta.ee/xml/ns/jakartaee" version="6.0">
  <servlet><servlet-name>jsp</servlet-name><servlet-class>org.apache.jasper.servlet.JspServlet</servlet-class></servlet>
  <servlet-mapping><servlet-name>jsp</servlet-name><url-pattern>*.jsp</url-pattern></servlet-mapping>
</web-app>
END
echo '<%@ page session="false" %><% Thread.sleep(10 + (long) (20 * Math.random())); %>Hello' >"$run/tomcat/webapps/ROOT/index.jsp"

start "$(find /usr/sbin -name 'php-fpm*' | head -n 1)" --nodaemonize --fpm-config "$run/php-fpm.conf"
start nginx -c "$run/nginx.conf"
start gunicorn --workers 2 --threads 16 --worker-class gthread --keep-alive 60 --backlog 2048 --bind 127.0.0.1:18803 --chdir "$run" app:app
start java -Xmx256m "-Djava.io.tmpdir=$run" -Dcatalina.home=/usr/share/tomcat10 "-Dcatalina.base=$run/tomcat" \
    -classpath /usr/share/tomcat10/bin/bootstrap.jar:/usr/share/tomcat10/bin/tomcat-juli.jar org.apache.catalina.startup.Bootstrap start

declare -A urls=(
    [nginx]=http://127.0.0.1:18800/page.txt
    [nginx-tls]=https://127.0.0.1:18801/page.txt
    [php-fpm]=http://127.0.0.1:18802/
    [gunicorn]=http://127.0.0.1:18803/
    [tomcat]=http://127.0.0.1:18804/index.jsp
)
# Response times must be ten times as long as it takes to read the sockets, about a millisecond.
declare -A connections=([nginx]=2000 [nginx-tls]=2000 [php-fpm]=20 [gunicorn]=24 [tomcat]=30)
for url in "${urls[@]}"; do listening "$url"; done

# Times of wrk in microseconds.
micros() { awk '{ v = $1; if (v ~ /us$/) f = 1; else if (v ~ /ms$/) f = 1000; else f = 1000000; sub(/[a-z]+$/, "", v); print v * f }'; }

: >"$out/table"
echo '| server | wrk p50 ms | watch p50 ms | ratio | wrk mean ms | watch mean ms | ratio |' | tee -a "$out/table"
echo '|---|--:|--:|--:|--:|--:|--:|' | tee -a "$out/table"
for round in $(seq "$rounds"); do
    for server in ${SERVERS:-nginx nginx-tls php-fpm gunicorn tomcat}; do
        url=${urls[$server]}
        "$program" watch --headless --listen 127.0.0.1:18899 --data-dir "$run/data-$server-$round" "$url" 2>>"$run/watch.log" &
        watch=$!
        pids+=("$watch")
        sleep 6
        # The account needs some seconds of traffic until it knows the path.
        wrk --threads 1 --connections "${connections[$server]}" --duration 8s "$url" >"$run/warm-up"
        wrk --threads 1 --connections "${connections[$server]}" --duration "$((seconds + 6))s" --latency "$url" >"$run/wrk-$server-$round" &
        load=$!
        sleep $((seconds + 4))
        curl -s "http://127.0.0.1:18899/api/v1/sum?ago_s=$((seconds + 1))" >"$run/sum-$server-$round.json"
        wait "$load"
        kill "$watch"
        wait "$watch" || true
        read -r p50 mean < <(jq -r '.samples[0].targets[0].response // {} | "\(.p50_us // 0) \(.mean_us // 0)"' "$run/sum-$server-$round.json")
        wrk_p50=$(awk '$1 == "50%" { print $2 }' "$run/wrk-$server-$round" | micros)
        wrk_mean=$(awk '$1 == "Latency" && $2 != "Distribution" { print $2 }' "$run/wrk-$server-$round" | micros)
        awk -v s="$server" -v wp="$wrk_p50" -v wm="$wrk_mean" -v p="$p50" -v m="$mean" \
            'BEGIN { printf "| %s | %.2f | %.2f | %.3f | %.2f | %.2f | %.3f |\n", s, wp / 1e3, p / 1e3, p / wp, wm / 1e3, m / 1e3, m / wm }' | tee -a "$out/table"
    done
done
awk -F'|' 'NR > 2 { n++; if ($5 > 0.9 && $5 < 1.1 && $8 > 0.9 && $8 < 1.1) ok++ } END { printf "%d of %d within a tenth in both\n", ok, n }' "$out/table" | tee -a "$out/table"
