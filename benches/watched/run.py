#!/usr/bin/env python3
"""What `chokepoint diagnose URL` says of traffic that it only watches: healthy servers under an open loop at a tenth, a third and two thirds of what they can, real limits at
1.2 times theirs, and closed loops of both. Prints a table of verdicts, the shares that are right, and for each server the share of requests that stays undecided.
Usage: benches/watched/run.py [--runs 1] [--seconds 5] [--at-once 1] [--loops open,over,closed] [--keep DIR] [SERVER...]

Needs vegeta (`go install github.com/tsenart/vegeta/v12@latest`) and, for closed loops, wrk; a server whose programs are missing is skipped and named. BINARY, VEGETA, GUNICORN,
UVICORN, WAITRESS and PORT replace the defaults; --keep leaves each recording whose verdict is not right. Exit status 0: 95 % of the healthy servers in an open loop are healthy, nothing healthy is choked, no limit is
healthy, and 90 % of the limits are found at their place."""
import argparse, collections, concurrent.futures, json, os, random, shutil, signal, socket, subprocess, sys, tempfile, time, urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from servers import PHP_FPM, program, written
BESIDE = os.path.join(HERE, "../beside")
BINARY = os.environ.get("BINARY", os.path.join(HERE, "../../target/release/chokepoint"))
VEGETA = os.environ.get("VEGETA", "vegeta")
PORT = int(os.environ.get("PORT", "18800"))
SHARES = (("10 %", 0.1), ("33 %", 1 / 3), ("67 %", 2 / 3))
OVER = 1.2
# The traffic begins before the watching, and goes on after it.
BEFORE_S, AFTER_S = 1.5, 3
NGINX = """pid {scratch}/nginx.pid;
error_log {scratch}/nginx.log;
worker_processes 1;
daemon off;
events {{ worker_connections 2048; }}
http {{
    access_log off;
    keepalive_requests 1000000;
    client_body_temp_path {scratch}/body; fastcgi_temp_path {scratch}/fastcgi; proxy_temp_path {scratch}/proxy; scgi_temp_path {scratch}/scgi; uwsgi_temp_path {scratch}/uwsgi;
    upstream behind {{ server 127.0.0.1:{behind}; keepalive 64; }}
    server {{
        listen 127.0.0.1:{port} backlog=1024;
        location / {{ {what} }}
    }}
}}
"""


def go(mode, places, ms):
    """One program for all pages in Go, built once a run."""
    path = os.path.join(tempfile.gettempdir(), f"chokepoint-watched-page-{os.getuid()}")
    source = os.path.join(HERE, "page.go")
    if not os.path.exists(path) or os.path.getmtime(path) < os.path.getmtime(source):
        subprocess.run([program("go"), "build", "-o", f"{path}.{os.getpid()}", source], check=True, env=dict(os.environ, GOFLAGS="-mod=mod"))
        os.replace(f"{path}.{os.getpid()}", path)
    return lambda port: [path, str(port), mode, str(places), str(ms), str(port + 1)]


def page(mode, places, ms):
    return lambda port: [program("python3"), os.path.join(HERE, "page.py"), str(port), mode, str(places), str(ms)]


def node(mode, ms):
    return lambda port: [program("node"), os.path.join(HERE, "page.js"), str(port), mode, str(ms), str(port + 1)]


def java(threads, ms):
    return lambda port: [program("java"), "-Xmx256m", os.path.join(HERE, "Page.java"), str(port), str(threads), str(ms)]


def gunicorn(ms, *more):
    name = os.environ.get("GUNICORN", "gunicorn")
    return lambda port: ["env", f"SECONDS={ms / 1e3}", program(name), "--log-level", "error", "--chdir", BESIDE, "-b", f"127.0.0.1:{port}", *more, "wsgi:application"]


def uvicorn(ms):
    name = os.environ.get("UVICORN", "uvicorn")
    return lambda port: ["env", f"SECONDS={ms / 1e3}", program(name), "--log-level", "error", "--app-dir", HERE, "--port", str(port), "asgi:application"]


def waitress(threads, ms):
    name = os.environ.get("WAITRESS", "waitress-serve")
    return lambda port: ["env", f"SECONDS={ms / 1e3}", f"PYTHONPATH={BESIDE}", program(name), f"--listen=127.0.0.1:{port}", f"--threads={threads}", "wsgi:application"]


def php_itself(workers, ms):
    words = lambda port: [program("php"), "-S", f"127.0.0.1:{port}", os.path.join(BESIDE, "page.php")]
    return lambda port: ["env", f"SECONDS={ms / 1e3}", f"PHP_CLI_SERVER_WORKERS={workers}", *words(port)]


def nginx(what):
    def start(port, scratch):
        text = NGINX.format(scratch=scratch, port=port, behind=port + 1, what=what.format(scratch=scratch, beside=BESIDE))
        shutil.copyfile(os.path.join(BESIDE, "page.php"), os.path.join(scratch, "page.php"))
        return [program("nginx"), "-c", written(scratch, "nginx.conf", text)]

    return start


def php_fpm(workers, ms):
    def start(_, scratch):
        user = "user = www-data\ngroup = www-data\n" if os.getuid() == 0 else ""
        pool = PHP_FPM.format(scratch=scratch, workers=workers, seconds=ms / 1e3, user=user)
        return [program("php-fpm", "php-fpm8.4", "php-fpm8.3", "php-fpm8.2"), "-F", "-y", written(scratch, "php-fpm.conf", pool)]

    return start


def redis(port):
    return [program("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", tempfile.gettempdir()]


TO_PHP = "fastcgi_pass unix:{scratch}/php.sock; fastcgi_param SCRIPT_FILENAME {scratch}/page.php; fastcgi_param REQUEST_METHOD GET;"
TO_PROXY = 'proxy_pass http://behind; proxy_http_version 1.1; proxy_set_header Connection "";'
BOTH, CLOSED = (True, False), (False,)


def alone(start):
    return [lambda port, scratch: start(port)]


def behind(start, *front):
    return [lambda port, scratch: start(port + 1), *front]


# For each: how its programs are started, those in front last; what it can, answers a second on two cores (places divided by their time, or what a core gives);
# and whether its connections can be kept.
HEALTHY = {
    "go-timer": (lambda: alone(go("timer", 0, 12)), 2000, BOTH),
    "go-scatter": (lambda: alone(go("scatter", 0, 15)), 1500, BOTH),
    "go-workers": (lambda: alone(go("workers", 10, 15)), 650, BOTH),
    "go-semaphore": (lambda: alone(go("semaphore", 8, 20)), 390, BOTH),
    "go-lock": (lambda: alone(go("lock", 0, 2)), 450, BOTH),
    "go-compute": (lambda: alone(go("compute", 0, 3)), 400, BOTH),
    "go-before-go": (lambda: behind(go("timer", 0, 15), lambda port, _: go("proxy", 0, 0)(port)), 800, BOTH),
    "go-before-python": (lambda: behind(page("async", 0, 10), lambda port, _: go("proxy", 0, 0)(port)), 400, BOTH),
    "node-timer": (lambda: alone(node("timer", 10)), 1200, BOTH),
    "node-compute": (lambda: alone(node("compute", 2)), 400, BOTH),
    "node-before-redis": (lambda: behind(redis, lambda port, _: node("redis", 10)(port)), 1000, BOTH),
    "java-threads": (lambda: alone(java(20, 12)), 1200, BOTH),
    "python-threads": (lambda: alone(page("threads", 0, 20)), 500, BOTH),
    "python-async": (lambda: alone(page("async", 0, 10)), 900, BOTH),
    "python-prefork": (lambda: alone(page("prefork", 8, 20)), 380, CLOSED),
    "python-pool": (lambda: alone(page("pool", 8, 15)), 500, CLOSED),
    "gunicorn-sync": (lambda: alone(gunicorn(20, "-w", "8")), 370, CLOSED),
    "gunicorn-threads": (lambda: alone(gunicorn(20, "-w", "2", "-k", "gthread", "--threads", "8")), 600, BOTH),
    "uvicorn": (lambda: alone(uvicorn(20)), 600, BOTH),
    "waitress": (lambda: alone(waitress(8, 20)), 380, BOTH),
    "php-itself": (lambda: alone(php_itself(8, 20)), 370, CLOSED),
    "nginx-file": (lambda: [nginx("root {beside}; try_files /page.php =404;")], 4000, BOTH),
    "nginx-php": (lambda: [php_fpm(20, 12), nginx(TO_PHP)], 1000, BOTH),
    "nginx-node": (lambda: behind(node("timer", 10), nginx(TO_PROXY)), 1000, BOTH),
    "nginx-gunicorn": (lambda: behind(gunicorn(20, "-w", "1", "-k", "gthread", "--threads", "16"), nginx(TO_PROXY)), 450, BOTH),
}
INSIDE = ("waits-inside", "worker-pool-exhausted")
# The same; what it can is its limit; and the findings that name it.
LIMITS = {
    "go-semaphore": (lambda: alone(go("semaphore", 4, 20)), 197, BOTH, INSIDE),
    "go-workers": (lambda: alone(go("workers", 6, 25)), 238, BOTH, INSIDE),
    "go-lock": (lambda: alone(go("lock", 0, 5)), 190, BOTH, INSIDE),
    "go-connections": (lambda: behind(go("timer", 0, 20), lambda port, _: go("proxy", 4, 0)(port)), 195, BOTH, ("connection-pool-exhausted", "waits-inside")),
    "python-semaphore": (lambda: alone(page("threads", 4, 20)), 195, BOTH, INSIDE),
    "python-async-semaphore": (lambda: alone(page("async", 4, 20)), 195, BOTH, INSIDE),
    "python-prefork": (lambda: alone(page("prefork", 4, 20)), 197, CLOSED, INSIDE),
    "python-pool": (lambda: alone(page("pool", 4, 20)), 197, CLOSED, INSIDE),
    "gunicorn-sync": (lambda: alone(gunicorn(20, "-w", "4")), 190, CLOSED, INSIDE),
    "gunicorn-threads": (lambda: alone(gunicorn(20, "-w", "1", "-k", "gthread", "--threads", "4")), 195, BOTH, INSIDE),
    "java-threads": (lambda: alone(java(4, 20)), 195, BOTH, INSIDE),
    "nginx-php": (lambda: [php_fpm(4, 20), nginx(TO_PHP)], 190, BOTH, INSIDE),
}
# Clients that ask again at once. Those of a limit are more than its places.
CLOSED_HEALTHY = {"go-timer": (5, 20, 100, 200), "go-scatter": (5, 50), "node-timer": (5, 20), "python-async": (5, 20), "python-threads": (20,), "go-before-go": (20,)}
CLOSED_LIMITS = {"go-semaphore": (60,), "python-semaphore": (60,), "go-workers": (60,), "python-async-semaphore": (60,)}

Case = collections.namedtuple("Case", "name start is_limit loop kept rate clients right")


def cases(asked):
    """Every case once."""
    wanted = lambda name: not asked.servers or name in asked.servers
    for name, (start, can, kinds) in HEALTHY.items():
        for loop, share in SHARES if "open" in asked.loops and wanted(name) else ():
            yield from (Case(name, start, False, loop, kept, max(1, round(can * share)), None, ()) for kept in kinds)
    for name, (start, can, kinds, right) in LIMITS.items():
        if "over" in asked.loops and wanted(name):
            yield from (Case(name, start, True, "120 %", kept, round(can * OVER), None, right) for kept in kinds)
    for is_limit, all_clients, servers in ((False, CLOSED_HEALTHY, HEALTHY), (True, CLOSED_LIMITS, LIMITS)):
        for name, numbers in all_clients.items() if "closed" in asked.loops else ():
            if wanted(name):
                right = servers[name][3] if is_limit else ()
                yield from (Case(name, servers[name][0], is_limit, f"{clients} clients", True, None, clients, right) for clients in numbers)


class Running:
    """The programs of a server, each with its children in a process group of its own."""

    def __init__(self, case, port):
        self.scratch, self.programs = tempfile.mkdtemp(prefix="chokepoint-watched-"), []
        os.chmod(self.scratch, 0o755)
        starts = case.start()
        try:
            for number, start in enumerate(starts):
                words = start(port, self.scratch)
                self.programs.append(subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True))
                is_front = number + 1 == len(starts)
                # php-fpm listens at a path and not at the port behind.
                if is_front or "php-fpm" not in words[0]:
                    self.listens(port if is_front else port + 1)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
                answer.read()
        except OSError as error:
            self.end()
            raise FileNotFoundError(f"it does not answer: {error}")
        except BaseException:
            self.end()
            raise

    def listens(self, port):
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise FileNotFoundError("it does not answer")

    def end(self):
        for program in self.programs:
            try:
                os.killpg(program.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            program.wait()
        shutil.rmtree(self.scratch, ignore_errors=True)


def offered(case, url, seconds):
    if case.clients is not None:
        return subprocess.Popen([program("wrk"), "-t1", f"-c{case.clients}", f"-d{seconds}s", url], stdout=subprocess.DEVNULL, start_new_session=True)
    kept = "true" if case.kept else "false"
    words = [program(VEGETA), "attack", f"-rate={case.rate}", f"-duration={seconds}s", f"-keepalive={kept}", "-timeout=30s", "-output=/dev/null"]
    load = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)
    load.stdin.write(f"GET {url}\n".encode())
    load.stdin.close()
    return load


def measured(case, port, asked):
    """The verdict about one case, its causes, and its first sentence."""
    server = Running(case, port)
    try:
        url = f"http://127.0.0.1:{port}/"
        load = offered(case, url, asked.seconds + BEFORE_S + AFTER_S)
        try:
            time.sleep(BEFORE_S)
            record = os.path.join(server.scratch, "record")
            words = [BINARY, "diagnose", url, "-z", f"{asked.seconds}s", "--json", "--record", record]
            done = subprocess.run(words, capture_output=True, text=True)
            told = json.loads(done.stdout or '{"verdict": "none", "findings": [], "summary": ""}')
            causes = [found["id"] for found in told["findings"] if found["role"] == "cause"]
            summary = told["summary"] or done.stderr.strip()[-200:]
            if asked.keep and not is_right(case, told["verdict"], causes):
                os.makedirs(asked.keep, exist_ok=True)
                loop = case.loop.replace(" ", "").replace("%", "")
                shutil.copy(record, os.path.join(asked.keep, f"{'limit-' if case.is_limit else ''}{case.name}-{loop}-{'kept' if case.kept else 'new'}-{port}.rec"))
            return told["verdict"], causes, summary, undecided(told)
        finally:
            try:
                os.killpg(load.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            load.wait()
    finally:
        server.end()


def undecided(told):
    """Share of the requests in flight of which it is not known whether they are any; None if hardly any was in flight."""
    ledger = told.get("ledger")
    if not ledger or ledger["under_way"] < 1:
        return None
    return sum(place["mean"] for place in ledger["places"] if place["place"] == "undecided") / ledger["under_way"]


def is_right(case, verdict, causes):
    if case.is_limit:
        # Nothing tells a full place from an ample one while as many wait there all the time.
        return (verdict == "choked" and causes[0] in case.right) or (case.clients is not None and verdict == "unknown")
    return verdict == "healthy" or (case.clients is not None and verdict == "unknown")


def row(case):
    return f"{'limit' if case.is_limit else 'healthy'} | {case.name} | {'kept' if case.kept else 'new'}"


def table(results):
    """A line for each server and each way of keeping connections, a column for each loop."""
    cells = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
    for case, (verdict, causes, *_) in results:
        cells[row(case)][case.loop][verdict + (f" ({causes[0]})" if causes else "")] += 1
    print("| | server | connections | verdicts |\n|---|---|---|---|")
    for name, loops in cells.items():
        told = (f"{loop}: " + ", ".join(f"{count} {verdict}" for verdict, count in found.items()) for loop, found in loops.items())
        print(f"| {name} | {'; '.join(told)} |", flush=True)


def shares(results):
    """Prints how many verdicts are right. True if they are enough."""
    is_enough = True
    for title, wanted, least in (
        ("healthy servers, open loop", lambda case: not case.is_limit and case.clients is None, 0.95),
        ("limits at 1.2 times what they can", lambda case: case.is_limit and case.clients is None, 0.9),
        ("healthy, closed loop (healthy or unknown)", lambda case: not case.is_limit and case.clients is not None, 1),
        ("limits, closed loop (choked or unknown)", lambda case: case.is_limit and case.clients is not None, 1),
    ):
        group = [(case, found) for case, found in results if wanted(case)]
        if group:
            right = sum(is_right(case, *found[:2]) for case, found in group)
            verdicts = collections.Counter(found[0] for _, found in group)
            never = verdicts["healthy" if group[0][0].is_limit else "choked"]
            print(f"{title}: {right} of {len(group)} right ({100 * right / len(group):.0f} %); {dict(verdicts)}")
            is_enough &= right >= least * len(group) and never == 0
    # What stays undecided is below a twentieth of the requests, for each server.
    shares_of = collections.defaultdict(list)
    for case, (*_, share) in results:
        if share is not None:
            shares_of[case.name].append(share)
    means = sorted(((sum(found) / len(found), name) for name, found in shares_of.items()), reverse=True)
    if means:
        told = ", ".join(f"{name} {100 * mean:.1f} %" for mean, name in means if mean >= 0.005)
        print(f"connections that may be idle, of the requests in flight: {told or 'none'}; the other of {len(means)} servers below 0.5 %")
    return is_enough


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1, help="how often each case is measured")
    parser.add_argument("--seconds", type=int, default=5, help="how long each is watched")
    parser.add_argument("--at-once", type=int, default=1, help="how many at a time, each with its own server and load")
    parser.add_argument("--loops", default="open,over,closed", help="which of the three kinds of traffic")
    parser.add_argument("--sample", type=int, help="this many cases, chosen at random")
    parser.add_argument("--keep", help="leave recordings of what is not right in this folder")
    parser.add_argument("servers", nargs="*", default=[])
    asked = parser.parse_args()
    asked.loops = asked.loops.split(",")
    every = [case for case in cases(asked) for _ in range(asked.runs)]
    if asked.sample:
        every = random.Random(45).sample(every, min(asked.sample, len(every)))
    missing, results = {}, []

    def one(number_and_case):
        number, case = number_and_case
        if case.name in missing:
            return
        try:
            # Each has ports of its own: what the last one left in TIME_WAIT is not its.
            results.append((case, measured(case, PORT + 2 * number % 8000, asked)))
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            missing[case.name] = error

    with concurrent.futures.ThreadPoolExecutor(asked.at_once) as several:
        list(several.map(one, enumerate(every)))
    table(results)
    for case, (verdict, causes, summary, _) in results:
        if not is_right(case, verdict, causes):
            print(f"not right: {row(case)} | {case.loop}: {verdict} {causes}: {summary}")
    for name, error in missing.items():
        print(f"skipped: {name}: {error}", file=sys.stderr)
    return 0 if shares(results) else 1


sys.exit(main())
