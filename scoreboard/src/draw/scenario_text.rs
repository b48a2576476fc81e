//! A drawn stack as the text of a scenario file, which `chokepoint lab run FILE` can run again.

use super::limits::{Limits, PORTS_AMPLE, RateLimit};
use super::stack::{AccessLog, DrawnPage, Edge, Network, Servers, Stack, Transport};

/// Starts connections at a fixed rate and drops each after a while; the server keeps waiting for the last packet of the handshake.
const CALLERS: &str = r#"
import collections, socket, time

calls, begin, made = collections.deque(), time.monotonic(), 0
print("calling", flush=True)
while True:
    while made < @calls@ * (time.monotonic() - begin):
        call = socket.socket(socket.@family@)
        call.setblocking(False)
        call.connect_ex(("@server@", 80))
        calls.append(call)
        made += 1
    while len(calls) > 50:
        calls.popleft().close()
    time.sleep(0.01)
"#;

/// Answers every request after a delay, a fixed number at once.
const ASKED: &str = r#"
import socket, threading, time

def serve(listener):
    while True:
        connection, _ = listener.accept()
        with connection:
            try:
                connection.recv(4096)
                time.sleep(@seconds@)
                connection.sendall(b"HTTP/1.0 200 OK\\r\\nContent-Length: 6\\r\\n\\r\\nanswer")
            except OSError:
                pass

listener = socket.create_server(("0.0.0.0", 8080), backlog=1024)
for _ in range(@at_once@):
    threading.Thread(target=serve, args=(listener,)).start()
"#;

/// Finds the first prime numbers by trial division.
const PRIMES: &str =
    "for ($i = 2, $n = 0; $n < @primes@; $i++) { for ($j = 2; $j * $j <= $i; $j++) { if ($i % $j == 0) continue 2; } $n++; } echo $n;";

/// Seconds before a configuration file is edited, so that it is newer than the workers that read it: their start time has whole seconds.
const EDIT_AFTER_S: u32 = 4;

/// Control group of the server with a CPU quota.
const CGROUP: &str = "served";
/// Port of the upstream.
const PORT_BEHIND: u16 = 9_000;
/// Port of the server on another host that a page asks.
const PORT_ASKED: u16 = 8_080;

/// The head and the expectations of a scenario file.
pub(crate) struct Head<'h> {
    pub(crate) name: &'h str,
    pub(crate) title: &'h str,
    pub(crate) description: &'h str,
    /// Seconds of the load.
    pub(crate) load_s: u16,
    /// The table `[expect]`.
    pub(crate) expect: &'h str,
}

/// Replaces each `@key@`.
fn fill(template: &str, values: &[(&str, String)]) -> String {
    values.iter().fold(template.to_owned(), |text, (key, value)| text.replace(&format!("@{key}@"), value))
}

/// A text as a basic string of TOML.
fn quoted(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|character| match character {
            '"' | '\\' => format!("\\{character}"),
            '\n' => "\\n".to_owned(),
            control if control.is_control() => format!("\\u{:04x}", u32::from(control)),
            other => other.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}

/// The whole file.
pub(crate) fn scenario(stack: &Stack, limits: &Limits, head: &Head<'_>) -> String {
    let Head { name, title, description, load_s, expect } = head;
    let mut text = format!("schema = 1\nname = {}\ntitle = {}\ndescription = {}\n", quoted(name), quoted(title), quoted(description));
    if let Some(max) = limits.table.and_then(|table| table.max) {
        text.push_str(&format!("\n[host_sysctls]\n\"net.netfilter.nf_conntrack_max\" = {max}\n"));
    }
    let writer = Writer { stack, limits };
    for part in [writer.hosts(), writer.links(), writer.cgroups(), writer.files(), writer.servers(), writer.prefill(), writer.load(*load_s)]
    {
        text.push_str(&part);
    }
    text.push_str("\n[expect]\n");
    text.push_str(expect);
    text
}

/// One file of a scenario.
fn file(path: &str, content: &str) -> String {
    format!("\n[[file]]\npath = \"{path}\"\ncontent = \"\"\"\n{}\n\"\"\"\n", content.trim())
}

struct Writer<'w> {
    stack: &'w Stack,
    limits: &'w Limits,
}

impl Writer<'_> {
    fn is_nat(&self) -> bool {
        self.stack.network == Network::NatBridge
    }

    /// The host of nginx.
    fn web(&self) -> &'static str {
        if self.is_nat() { "web" } else { "server" }
    }

    /// The host of the upstream: its own on a bridge, nginx's where they share a unix socket.
    fn behind(&self) -> &'static str {
        if self.is_nat() && self.stack.transport == Transport::Tcp { "behind" } else { self.web() }
    }

    fn asks(&self) -> Option<u32> {
        if let DrawnPage::Asking { ms } = self.stack.page { Some(ms) } else { None }
    }

    /// The upstream's address.
    fn address_behind(&self) -> String {
        let ip = match (self.is_nat(), self.stack.ip) {
            (false, 6) => "[::1]",
            (false, _) => "127.0.0.1",
            (true, 6) => "[fd20::3]",
            (true, _) => "172.20.0.3",
        };
        format!("{ip}:{PORT_BEHIND}")
    }

    fn address_asked(&self) -> String {
        format!("{}:{PORT_ASKED}", if self.is_nat() { "172.20.0.4" } else { "10.78.2.2" })
    }

    fn hosts(&self) -> String {
        let client = format!("sysctls = {{ \"net.ipv4.ip_local_port_range\" = \"{} {}\" }}\n", PORTS_AMPLE.0, PORTS_AMPLE.1);
        let mut text = format!("\n[[host]]\nname = \"client\"\n{client}");
        if self.limits.calls_per_s.is_some() {
            text.push_str(&format!("\n[[host]]\nname = \"far\"\n{client}{}", FAR_RULES));
        }
        if self.is_nat() {
            text.push_str(ROUTER);
        }
        let (low, high) = self.limits.ports;
        let mut sysctls = format!(
            "\"net.core.somaxconn\" = {}, \"net.ipv4.tcp_max_syn_backlog\" = {}, \"net.ipv4.tcp_syncookies\" = {}, \"net.ipv4.ip_local_port_range\" = \"{low} {high}\", \"net.ipv4.tcp_tw_reuse\" = {}",
            self.limits.somaxconn,
            self.limits.syn_backlog,
            u32::from(self.limits.syn_cookies),
            u32::from(self.limits.tw_reuse),
        );
        if self.limits.calls_per_s.is_some() {
            // Without saved metrics the kernel knows no client, as on a public server, where most clients are new.
            sysctls.push_str(", \"net.ipv4.tcp_no_metrics_save\" = 1");
        }
        let table = self.limits.table.filter(|_| !self.is_nat());
        if table.is_some_and(|table| table.prefill > 0) {
            sysctls.push_str(", \"net.netfilter.nf_conntrack_udp_timeout\" = 3600");
        }
        let rules = table.map(|table| if table.loopback { TRACKING.to_owned() } else { format!("{UNTRACKED_LOOPBACK}{TRACKING}") });
        let rules = rules.map(|rules| format!("nftables = \"\"\"\n{rules}\"\"\"\n")).unwrap_or_default();
        let route = if self.is_nat() { BRIDGE_ROUTES } else { "" };
        text.push_str(&format!("\n[[host]]\nname = \"{}\"\nsysctls = {{ {sysctls} }}\n{rules}{route}", self.web()));
        if self.behind() != self.web() {
            let sysctls = "\"net.core.somaxconn\" = 65535, \"net.ipv4.tcp_max_syn_backlog\" = 65535";
            text.push_str(&format!("\n[[host]]\nname = \"{}\"\nsysctls = {{ {sysctls} }}\n{route}", self.behind()));
        }
        if self.asks().is_some() {
            text.push_str(&format!("\n[[host]]\nname = \"asked\"\n{route}"));
        }
        text
    }

    fn links(&self) -> String {
        let link = |a: &str, a_at: &str, b: &str, b_at: &str| {
            let end = |host: &str, at: &str| {
                if at.is_empty() { format!("{{ host = \"{host}\" }}") } else { format!("{{ host = \"{host}\", addresses = [{at}] }}") }
            };
            format!("\n[[link]]\na = {}\nb = {}\n", end(a, a_at), end(b, b_at))
        };
        let mut text = String::new();
        let first = if self.is_nat() { "router" } else { "server" };
        text.push_str(&link("client", "\"10.78.0.1/24\", \"fd78::1/64\"", first, "\"10.78.0.2/24\", \"fd78::2/64\""));
        if self.is_nat() {
            text.push_str(&link("router", "\"172.20.0.1/24\", \"fd20::1/64\"", "bridge", ""));
            text.push_str(&link("web", "\"172.20.0.2/24\", \"fd20::2/64\"", "bridge", ""));
            if self.behind() != self.web() {
                text.push_str(&link("behind", "\"172.20.0.3/24\", \"fd20::3/64\"", "bridge", ""));
            }
        }
        if self.limits.calls_per_s.is_some() {
            text.push_str(&link("far", "\"10.78.1.1/24\", \"fd78:0:0:1::1/64\"", "server", "\"10.78.1.2/24\", \"fd78:0:0:1::2/64\""));
        }
        if self.asks().is_some() {
            text.push_str(&match self.is_nat() {
                true => link("asked", "\"172.20.0.4/24\", \"fd20::4/64\"", "bridge", ""),
                false => link("server", "\"10.78.2.1/24\"", "asked", "\"10.78.2.2/24\""),
            });
        }
        text
    }

    fn cgroups(&self) -> String {
        let cgroup = |percent| format!("\n[[cgroup]]\nname = \"{CGROUP}\"\ncores = {}.{:02}\n", percent / 100, percent % 100);
        self.limits.quota_percent.map(cgroup).unwrap_or_default()
    }

    fn files(&self) -> String {
        let mut text = match self.stack.servers {
            Servers::NginxPhpFpm => file("www/index.php", &format!("<?php {}", self.php()).replace('\\', "\\\\").replace('"', "\\\"")),
            Servers::Nginx | Servers::NginxNginx => {
                let kib = if let DrawnPage::Static { kib } | DrawnPage::Large { kib } = self.stack.page { kib } else { 1 };
                format!("\n[[file]]\npath = \"www/index.html\"\nsize = \"{kib}KiB\"\n")
            }
        };
        if let Some(calls) = self.limits.calls_per_s {
            let (family, server) = if self.stack.ip == 6 { ("AF_INET6", "fd78:0:0:1::2") } else { ("AF_INET", "10.78.1.2") };
            let values = [("calls", calls.to_string()), ("family", family.to_owned()), ("server", server.to_owned())];
            text.push_str(&file("callers.py", &fill(CALLERS, &values)));
        }
        if let Some(ms) = self.asks() {
            let values = [("seconds", format!("{}.{:03}", ms / 1000, ms % 1000)), ("at_once", self.limits.served_at_once.to_string())];
            text.push_str(&file("asked.py", &fill(ASKED, &values)));
        }
        text
    }

    /// The page of php.
    fn php(&self) -> String {
        let primes = |primes: u32| fill(PRIMES, &[("primes", primes.to_string())]);
        match self.stack.page {
            DrawnPage::Static { .. } => "echo \"Hello World!\";".to_owned(),
            DrawnPage::Cpu { primes: count } => primes(count),
            DrawnPage::Waiting { ms } => format!("usleep({}); echo \"Hello World!\";", ms * 1000),
            DrawnPage::Mixed { ms, primes: count } => format!("usleep({}); {}", ms * 1000, primes(count)),
            DrawnPage::Large { kib } => format!("echo str_repeat(\"0123456789abcdef\", {});", kib * 64),
            DrawnPage::Asking { .. } => {
                format!(
                    "echo file_get_contents(\"http://{}/\") === \"answer\" ? \"Hello World!\" : http_response_code(502);",
                    self.address_asked()
                )
            }
        }
    }

    fn servers(&self) -> String {
        let mut text = String::new();
        if self.asks().is_some() {
            text.push_str("\n[[server]]\nname = \"asked\"\nhost = \"asked\"\nkind = \"command\"\ncommand = [\"python3\", \"{run}/asked.py\"]\nready = { listening = true }\n");
        }
        match self.stack.servers {
            Servers::Nginx => {}
            Servers::NginxPhpFpm => text.push_str(&self.php_fpm()),
            Servers::NginxNginx => text.push_str(&self.server("backend", self.behind(), "nginx", &self.ready_behind(), &self.backend())),
        }
        text.push_str(&self.server("nginx", self.web(), "nginx", "{ tcp = \"0.0.0.0:80\" }", &self.nginx()));
        if self.limits.somaxconn_raised_late {
            // As an operator would do it, while the servers listen.
            text.push_str(&command(
                "raise",
                self.web(),
                "\"sysctl\", \"-w\", \"net.core.somaxconn=65535\"",
                "ready = { finished = true }\n",
            ));
        }
        if let Some(written) = self.limits.children_written {
            let edit =
                format!("sleep {EDIT_AFTER_S} && sed -i 's/^pm.max_children = .*/pm.max_children = {written}/' {{run}}/php-fpm.conf");
            text.push_str(&command("edit", self.behind(), &format!("\"sh\", \"-c\", {}", quoted(&edit)), "ready = { finished = true }\n"));
        }
        if self.limits.calls_per_s.is_some() {
            text.push_str(&command("callers", "far", "\"python3\", \"{run}/callers.py\"", "cpus = [0]\n"));
        }
        if let Some(nice) = self.limits.neighbour_nice {
            let words = format!("\"nice\", \"-n\", \"{nice}\", \"sh\", \"-c\", \"while :; do :; done\"");
            text.push_str(&command("neighbour", self.web(), &words, "cpus = [1]\n"));
        }
        text
    }

    fn server(&self, name: &str, host: &str, kind: &str, ready: &str, config: &str) -> String {
        let is_last = name != "nginx" || self.stack.servers == Servers::Nginx;
        let cgroup = self.limits.quota_percent.filter(|_| is_last).map(|_| format!("cgroup = \"{CGROUP}\"\n")).unwrap_or_default();
        let head = format!(
            "\n[[server]]\nname = \"{name}\"\nhost = \"{host}\"\nkind = \"{kind}\"\ncpus = [1]\nnofile = 16384\nready = {ready}\n{cgroup}"
        );
        format!("{head}config = \"\"\"\n{}\n\"\"\"\n", config.trim())
    }

    fn ready_behind(&self) -> String {
        match self.stack.transport {
            Transport::Unix => "{ unix = \"{run}/behind.sock\" }".to_owned(),
            Transport::Tcp | Transport::None => format!("{{ tcp = \"{}\" }}", self.address_behind()),
        }
    }

    fn listen_behind(&self) -> String {
        if self.stack.transport == Transport::Unix { "{run}/behind.sock".to_owned() } else { self.address_behind() }
    }

    fn php_fpm(&self) -> String {
        let owner = if self.stack.transport == Transport::Unix { "listen.owner = {user}\nlisten.group = {group}\n" } else { "" };
        let config = fill(
            PHP_FPM,
            &[
                ("listen", self.listen_behind()),
                ("owner", owner.to_owned()),
                ("backlog", self.limits.backlog_behind.to_string()),
                ("children", self.limits.children.to_string()),
            ],
        );
        self.server("php-fpm", self.behind(), "php-fpm", &self.ready_behind(), &config)
    }

    fn backend(&self) -> String {
        let unix = if self.stack.transport == Transport::Unix { "unix:" } else { "" };
        let listen = format!("listen {unix}{} backlog={};", self.listen_behind(), self.limits.backlog_behind);
        fill(
            NGINX,
            &[
                ("workers", "2".to_owned()),
                ("nofile", "16384".to_owned()),
                ("connections", "8192".to_owned()),
                ("log", "access_log off;".to_owned()),
                ("more", "    keepalive_timeout 300;\n    keepalive_requests 100000;\n".to_owned()),
                ("listens", listen),
                ("way", "root {run}/www;".to_owned()),
                ("name", "backend".to_owned()),
            ],
        )
    }

    /// The front nginx.
    fn nginx(&self) -> String {
        let backlog = self.limits.backlog;
        let log = match self.stack.access_log {
            AccessLog::Timed => "access_log {run}/nginx-access.log timed;",
            AccessLog::Combined => "access_log {run}/nginx-access.log;",
            AccessLog::Off => "access_log off;",
        };
        fill(
            NGINX,
            &[
                ("workers", self.stack.nginx_workers.to_string()),
                ("nofile", self.limits.nofile.to_string()),
                ("connections", self.limits.worker_connections.to_string()),
                ("log", log.to_owned()),
                ("more", self.http_settings()),
                ("listens", format!("listen 80 backlog={backlog};\n        listen [::]:80 backlog={backlog};")),
                ("way", self.way()),
                ("name", "nginx".to_owned()),
            ],
        )
    }

    fn http_settings(&self) -> String {
        let mut text = String::new();
        if self.limits.table.is_some_and(|table| table.prefill > 0) {
            text.push_str("    keepalive_requests 100000000;\n");
        }
        if let Some(RateLimit { per_s, .. }) = self.limits.rate {
            text.push_str(&format!("    limit_req_zone $binary_remote_addr zone=page:1m rate={per_s}r/s;\n"));
        }
        if self.limits.rate_elsewhere {
            text.push_str("    limit_req_zone $binary_remote_addr zone=login:1m rate=5r/s;\n");
        }
        if self.stack.edge == Edge::Kept {
            let unix = if self.stack.transport == Transport::Unix { "unix:" } else { "" };
            // One for each client.
            text.push_str(&format!(
                "    upstream behind {{\n        server {unix}{};\n        keepalive {};\n    }}\n",
                self.listen_behind(),
                self.stack.connections
            ));
        }
        text
    }

    /// The locations of the front nginx.
    fn way(&self) -> String {
        let limit = self.limits.rate.map(|RateLimit { burst, nodelay, .. }| {
            let burst = if burst > 0 { format!(" burst={burst}") } else { String::new() };
            format!(" limit_req zone=page{burst}{};", if nodelay && !burst.is_empty() { " nodelay" } else { "" })
        });
        let unix = if self.stack.transport == Transport::Unix { "unix:" } else { "" };
        let pass = match (self.stack.servers, self.stack.edge) {
            (Servers::Nginx, _) => "root {run}/www;".to_owned(),
            (Servers::NginxPhpFpm, _) => fill(FASTCGI, &[("to", format!("{unix}{}", self.listen_behind()))]),
            (Servers::NginxNginx, Edge::Kept) => format!("proxy_pass http://behind;{KEEP_OPEN}"),
            (Servers::NginxNginx, edge) => {
                let open = if edge == Edge::ClosedBefore { KEEP_OPEN } else { "" };
                format!("proxy_pass http://{unix}{};{open}", self.listen_behind())
            }
        };
        let login = if self.limits.rate_elsewhere { "\n        location /login { limit_req zone=login; return 204; }" } else { "" };
        format!("location / {{{}\n            {pass}\n        }}{login}", limit.unwrap_or_default())
    }

    fn prefill(&self) -> String {
        let flows = self.limits.table.map_or(0, |table| table.prefill);
        if flows == 0 { String::new() } else { format!("\n[[prefill]]\nhost = \"client\"\nto = \"10.78.0.2:9\"\nflows = {flows}\n") }
    }

    fn load(&self, load_s: u16) -> String {
        let ip = if self.stack.ip == 6 { "[fd78::2]" } else { "10.78.0.2" };
        let port = if self.is_nat() { ":8080" } else { "" };
        let path = if self.stack.servers == Servers::NginxPhpFpm { "" } else { "index.html" };
        let rate = self.stack.rate.map(|rate| format!("rate = {rate}\n")).unwrap_or_default();
        format!(
            "\n[client]\nhost = \"client\"\ncpus = [0]\n\n[load]\nurl = \"http://{ip}{port}/{path}\"\nconnections = {}\n{rate}duration = \"{load_s}s\"\ntimeout = \"2s\"\nkeep_alive = {}\n",
            self.stack.connections, self.stack.keep_alive
        )
    }
}

fn command(name: &str, host: &str, words: &str, more: &str) -> String {
    format!("\n[[server]]\nname = \"{name}\"\nhost = \"{host}\"\nkind = \"command\"\ncommand = [{words}]\n{more}")
}

/// HTTP/1.1 without the header that asks the upstream to close: nginx closes what it does not keep.
const KEEP_OPEN: &str = "\n            proxy_http_version 1.1;\n            proxy_set_header Connection '';";

const FAR_RULES: &str = r#"nftables = """
table inet path {
    chain input {
        type filter hook input priority filter; policy accept;
        tcp flags & (syn | ack) == (syn | ack) drop
    }
}
"""
"#;

const BRIDGE_ROUTES: &str = "routes = [{ to = \"default\", via = \"172.20.0.1\" }, { to = \"default\", via = \"fd20::1\" }]\n";

const ROUTER: &str = r#"
[[host]]
name = "router"
sysctls = { "net.ipv4.ip_forward" = 1, "net.ipv6.conf.all.forwarding" = 1 }
nftables = """
table inet nat {
    chain prerouting {
        type nat hook prerouting priority dstnat;
        meta nfproto ipv4 tcp dport 8080 dnat ip to 172.20.0.2:80
        meta nfproto ipv6 tcp dport 8080 dnat ip6 to [fd20::2]:80
    }
    chain postrouting {
        type nat hook postrouting priority srcnat;
        oifname "to-bridge" masquerade
    }
}
"""

[[host]]
name = "bridge"
bridge = true
"#;

const TRACKING: &str = "\
table inet filter {
    chain input {
        type filter hook input priority filter; policy accept;
        ct state established,related accept
        ct state invalid drop
    }
}
";

const UNTRACKED_LOOPBACK: &str = "\
table inet raw {
    chain prerouting {
        type filter hook prerouting priority raw; policy accept;
        iif \"lo\" notrack
    }
    chain output {
        type filter hook output priority raw; policy accept;
        oif \"lo\" notrack
    }
}
";

const PHP_FPM: &str = "
[global]
error_log = {run}/php-fpm-error.log

[www]
user = {user}
group = {group}
listen = @listen@
@owner@listen.backlog = @backlog@
pm = static
pm.max_children = @children@
";

const NGINX: &str = "
user {user};
worker_processes @workers@;
worker_rlimit_nofile @nofile@;
error_log {run}/@name@-error.log;
events {
    worker_connections @connections@;
}
http {
    {nginx_temp_paths}
    log_format timed '$remote_addr [$time_iso8601] \"$request\" $status $body_bytes_sent $request_time $upstream_response_time';
    @log@
@more@    server {
        @listens@
        @way@
    }
}
";

const FASTCGI: &str = "fastcgi_pass @to@;
            fastcgi_param SCRIPT_FILENAME {run}/www/index.php;
            fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param QUERY_STRING $query_string;";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_text_reads_back_as_toml() {
        for text in ["", "a \"b\" \\ c\nd\te\u{7f}", "{run} 'x'"] {
            let read: toml::Table = toml::from_str(&format!("x = {}", quoted(text))).unwrap();
            assert_eq!(read["x"].as_str(), Some(text));
        }
    }
}
