#!/usr/bin/env python3
"""Measures servers with `chokepoint bench` and with another client in turn, and prints the pairs as a table: vegeta at a rate, wrk as a closed loop, connections
kept and not. Usage: benches/beside/run.py [--rounds 5] [--seconds 4] [--rate 200] [--connections 40] [SERVER...]

Needs wrk, and vegeta (`go install github.com/tsenart/vegeta/v12@latest`); a server whose programs are missing is skipped and named. BINARY, VEGETA, GUNICORN and
PORT replace the defaults. A pair agrees if the medians of its rounds differ by 3 % or, for times, by a millisecond at most; or the median lies between the other
client's fastest and slowest round, which is what the machine's noise allows."""
import argparse, json, os, re, shutil, signal, statistics, subprocess, sys, tempfile, time, urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from servers import PHP_FPM, program, written
BINARY = os.environ.get("BINARY", os.path.join(HERE, "../../target/release/chokepoint"))
VEGETA = os.environ.get("VEGETA", "vegeta")
GUNICORN = os.environ.get("GUNICORN", "gunicorn")
PORT = int(os.environ.get("PORT", "18700"))
SECONDS, WORKERS, MANY = "0.02", "6", "120"
ENV = dict(os.environ, SECONDS=SECONDS)

APACHE = """ServerRoot {scratch}
PidFile {scratch}/apache.pid
Listen 127.0.0.1:{port}
ServerName localhost
ErrorLog {scratch}/apache.log
{user}KeepAlive On
KeepAliveTimeout 5
MaxKeepAliveRequests 0
DocumentRoot {scratch}
DirectoryIndex page.txt
SetOutputFilter RATE_LIMIT
SetEnv rate-limit 10
LoadModule mpm_{mpm}_module {modules}/mod_mpm_{mpm}.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule env_module {modules}/mod_env.so
LoadModule dir_module {modules}/mod_dir.so
LoadModule ratelimit_module {modules}/mod_ratelimit.so
<IfModule mpm_prefork_module>
StartServers {many}
MinSpareServers {many}
MaxSpareServers {many}
ServerLimit {many}
MaxRequestWorkers {many}
</IfModule>
<IfModule mpm_event_module>
StartServers 2
ServerLimit 2
ThreadsPerChild 60
ThreadLimit 60
MaxRequestWorkers 120
MinSpareThreads 120
MaxSpareThreads 120
</IfModule>
"""
NGINX = """pid {scratch}/nginx.pid;
error_log {scratch}/nginx.log;
worker_processes 1;
daemon off;
events {{ worker_connections 2048; }}
http {{
    access_log off;
    keepalive_requests 1000000;
    client_body_temp_path {scratch}/body; fastcgi_temp_path {scratch}/fastcgi; proxy_temp_path {scratch}/proxy; scgi_temp_path {scratch}/scgi; uwsgi_temp_path {scratch}/uwsgi;
    server {{
        listen 127.0.0.1:{port};
        location / {{ fastcgi_pass unix:{scratch}/php.sock; fastcgi_param SCRIPT_FILENAME {here}/page.php; fastcgi_param REQUEST_METHOD GET; }}
    }}
}}
"""


def apache(mpm, port, scratch):
    # Two pieces of 2 KiB, the second 200 ms after the first.
    written(scratch, "page.txt", "a" * 3000)
    user = "User www-data\nGroup www-data\n" if os.getuid() == 0 else ""
    text = APACHE.format(user=user, mpm=mpm, port=port, scratch=scratch, many=MANY, modules="/usr/lib/apache2/modules")
    return [[program("apache2", "httpd"), "-DFOREGROUND", "-f", written(scratch, "apache.conf", text)]]


def nginx_php(port, scratch):
    user = "user = www-data\ngroup = www-data\n" if os.getuid() == 0 else ""
    pool = PHP_FPM.format(scratch=scratch, workers=WORKERS, seconds=SECONDS, user=user)
    front = NGINX.format(scratch=scratch, port=port, here=HERE)
    return [
        [program("php-fpm", "php-fpm8.4", "php-fpm8.3", "php-fpm8.2"), "-F", "-y", written(scratch, "php-fpm.conf", pool)],
        [program("nginx"), "-c", written(scratch, "nginx.conf", front)],
    ]


def go(port, scratch):
    path = os.path.join(scratch, "page")
    subprocess.run([program("go"), "build", "-o", path, os.path.join(HERE, "page.go")], check=True, env=dict(os.environ, GOFLAGS="-mod=mod"))
    return [[path, str(port), WORKERS, SECONDS]]


def gunicorn(port, *more):
    return [[program(GUNICORN), "--log-level", "error", "--chdir", HERE, "-b", f"127.0.0.1:{port}", *more, "wsgi:application"]]


def own(name, *more):
    return lambda port, _: [[program({"py": "python3", "pl": "perl", "js": "node"}[name.rsplit(".")[-1]]), os.path.join(HERE, name), str(port), *more]]


# What it is, its language, how it is started.
SERVERS = {
    "linger.py": ("processes that end first and linger", "Python", own("linger.py", WORKERS, SECONDS)),
    "gunicorn-sync": ("gunicorn, sync workers", "Python", lambda port, _: gunicorn(port, "-w", WORKERS)),
    "gunicorn-threads": ("gunicorn, 2 workers of 8 threads", "Python", lambda port, _: gunicorn(port, "-w", "2", "-k", "gthread", "--threads", "8")),
    "http.server": ("http.server, a thread a connection", "Python", own("threads.py", SECONDS)),
    "apache-prefork": ("Apache, prefork", "C", lambda port, scratch: apache("prefork", port, scratch)),
    "apache-event": ("Apache, event", "C", lambda port, scratch: apache("event", port, scratch)),
    "nginx-php": ("nginx before php-fpm", "C, PHP", nginx_php),
    "go": ("net/http", "Go", go),
    "node": ("http", "JavaScript", own("page.js", SECONDS)),
    "second.pl": ("processes that keep a connection until the client ends it", "Perl", own("second.pl", MANY, SECONDS)),
}


class Running:
    """The programs of a server, each with its children in a process group of its own."""

    def __init__(self, name, port):
        self.scratch, self.programs = tempfile.mkdtemp(prefix="chokepoint-beside-"), []
        os.chmod(self.scratch, 0o755)
        for words in SERVERS[name][2](port, self.scratch):
            env = dict(ENV, PHP_CLI_SERVER_WORKERS=WORKERS)
            self.programs.append(subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True))
            time.sleep(0.3)
        for _ in range(100):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                time.sleep(0.1)
        self.end()
        raise FileNotFoundError(f"{name} does not answer")

    def end(self):
        for program in self.programs:
            try:
                os.killpg(program.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            program.wait()
        shutil.rmtree(self.scratch, ignore_errors=True)


def output(words, **more):
    return subprocess.run(words, capture_output=True, text=True, check=True, **more).stdout


def ours(url, kept, flags):
    words = [BINARY, "bench", "--json", "--no-keep", *flags, *([] if kept else ["--disable-keepalive"]), url]
    load = json.loads(output(words))["load"]
    # vegeta counts what it sent in the time, wrk what was answered in it.
    rate = load["status"].get("200", 0) / load["duration_s"] if "-q" in flags else load["goodput_rps"]
    return rate, load["latency_us"]["p50"] / 1e3, load["latency_us"]["p99"] / 1e3


def vegeta(url, kept, rate, seconds):
    words = [VEGETA, "attack", f"-rate={rate}", f"-duration={seconds}s", "-timeout=10s", f"-keepalive={'true' if kept else 'false'}"]
    found = subprocess.run(words, input=f"GET {url}\n".encode(), capture_output=True, check=True).stdout
    report = json.loads(subprocess.run([VEGETA, "report", "-type=json"], input=found, capture_output=True, check=True).stdout)
    return report["success"] * report["requests"] / (report["duration"] / 1e9), report["latencies"]["50th"] / 1e6, report["latencies"]["99th"] / 1e6


def wrk(url, kept, connections, seconds):
    close = [] if kept else ["-H", "Connection: close"]
    text = output(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "--timeout", "10s", *close, url])
    unit = {"us": 1e-3, "ms": 1, "s": 1e3, "m": 6e4}

    def share(percent):
        number, name = re.search(rf"^ +{percent}%\s+([\d.]+)(us|ms|s|m)$", text, re.M).groups()
        return float(number) * unit[name]

    return float(re.search(r"Requests/sec: +([\d.]+)", text).group(1)), share("50"), share("99")


def agrees(one, other, slack):
    return abs(one - other) <= max(0.03 * other, slack)


def pair(name, kind, kept, asked):
    url = f"http://127.0.0.1:{PORT}/"
    flags = ["-q", str(asked.rate)] if kind == "open" else ["-c", str(asked.connections)]
    other = (lambda: vegeta(url, kept, asked.rate, asked.seconds)) if kind == "open" else (lambda: wrk(url, kept, asked.connections, asked.seconds))
    own_runs, other_runs = [], []
    for turn in range(asked.rounds):
        both = [lambda: own_runs.append(ours(url, kept, [*flags, "-z", f"{asked.seconds}s"])), lambda: other_runs.append(other())]
        for run in both if turn % 2 == 0 else both[::-1]:
            run()
            time.sleep(1)
    own_medians, other_medians = ([statistics.median(column) for column in zip(*runs)] for runs in (own_runs, other_runs))
    slacks = (0, 1, 1)
    is_equal = all(agrees(one, other, slack) for one, other, slack in zip(own_medians, other_medians, slacks))
    spreads = [(min(column), max(column)) for column in zip(*other_runs)]
    columns = zip(own_medians, other_medians, slacks, spreads)
    is_noise = all(agrees(one, other, slack) or low <= one <= high for one, other, slack, (low, high) in columns)
    verdict = "yes" if is_equal else "within its spread" if is_noise else "no"
    cells = [f"{one:.4g} / {other:.4g}" for one, other in zip(own_medians, other_medians)]
    loop = f"{asked.rate}/s, vegeta" if kind == "open" else f"{asked.connections} connections, wrk"
    print(f"| {name} ({SERVERS[name][1]}) | {'kept' if kept else 'not kept'} | {loop} | {' | '.join(cells)} | {verdict} |", flush=True)
    return verdict


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--connections", type=int, default=40)
    parser.add_argument("--no-head", action="store_true", help="print the lines of the table alone")
    parser.add_argument("servers", nargs="*", default=[])
    asked = parser.parse_args()
    if not asked.no_head:
        print("| server | connections | load | answers/s, chokepoint / other | p50, ms | p99, ms | agree |\n|---|---|---|---|---|---|---|")
    equal = []
    for name in asked.servers or SERVERS:
        try:
            server = Running(name, PORT)
        except FileNotFoundError as error:
            print(f"skipped: {name}: {error}", file=sys.stderr)
            continue
        try:
            equal += [pair(name, kind, kept, asked) for kept in (False, True) for kind in ("open", "closed")]
        finally:
            server.end()
    print(f"{equal.count('yes')} of {len(equal)} pairs agree, {equal.count('within its spread')} more differ by less than the rounds of the other client", file=sys.stderr)
    return 1 if "no" in equal else 0


sys.exit(main())
