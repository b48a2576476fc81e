//! A real Prometheus (Debian's) scrapes `watch`: what it stores, and whether it takes the alert rules and the queries that come with the program.
//!
//! Live: servers on loopback, load, and a scraper with its own clock.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Chokepoint, OK, Running, Server, free_address, has_programs, repository, wait_until};

/// A Prometheus with the alert rules of the program, that scrapes one address every second and keeps its data in the test's directory.
struct Prometheus {
    address: SocketAddr,
    _running: Running,
}

impl Prometheus {
    fn start(chokepoint: &Chokepoint, scraped: SocketAddr) -> Self {
        let rules = repository("packaging/monitoring/alerts.yml");
        // JSON is YAML.
        let config = serde_json::json!({
            "global": { "scrape_interval": "1s", "evaluation_interval": "1s" },
            "rule_files": [std::fs::canonicalize(rules).unwrap()],
            "scrape_configs": [{ "job_name": "chokepoint", "static_configs": [{ "targets": [scraped] }] }],
        });
        let (config, address) = (chokepoint.write("prometheus.yml", config.to_string().as_bytes()), free_address());
        let mut command = Command::new("prometheus");
        command.args([format!("--config.file={config}"), format!("--storage.tsdb.path={}", chokepoint.path("prometheus"))]);
        // Its directory for queries is below the working directory.
        command.arg(format!("--web.listen-address={address}")).current_dir(chokepoint.dir.path());
        let running = Self { address, _running: Running::start(&mut command).unwrap() };
        wait_until("prometheus does not answer", || running.get("/api/v1/status/runtimeinfo").is_some());
        running
    }

    /// What its HTTP API answers; nothing if it does not, or if it refuses.
    fn get(&self, path: &str) -> Option<Value> {
        let answer = http_get(self.address, path, "")?;
        let document: Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
        (document["status"] == "success").then(|| document["data"].clone())
    }

    /// The values of an instant query; nothing if it is refused.
    fn values(&self, query: &str) -> Option<Vec<f64>> {
        let found = self.get(&format!("/api/v1/query?query={}", percent_encoded(query)))?;
        let value = |series: &Value| series["value"][1].as_str()?.parse().ok();
        found["result"].as_array()?.iter().map(value).collect()
    }
}

/// The whole answer. By HTTP/1.0 its body ends with the connection and is in one piece.
fn http_get(address: SocketAddr, path: &str, headers: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n{headers}\r\n").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

fn percent_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// A server with four requests under way, watched by a program that listens at the address.
fn watched(chokepoint: &Chokepoint) -> (Server, [Running; 2], SocketAddr) {
    let server = Server::serving(|connection| {
        std::thread::sleep(Duration::from_millis(10));
        connection.write_all(OK).is_ok()
    });
    let (url, address) = (server.url(), free_address());
    let load = Running::start(&mut chokepoint.command(&["bench", "-c", "4", "-z", "300s", &url])).unwrap();
    let args = ["watch", "--headless", "--data-dir", &chokepoint.path("data"), "--listen", &address.to_string(), &url];
    let watch = Running::start(&mut chokepoint.command(&args)).unwrap();
    wait_until("watch does not listen", || TcpStream::connect(address).is_ok());
    (server, [load, watch], address)
}

#[test]
fn a_prometheus_stores_what_watch_serves() {
    if !has_programs(&["prometheus"]) {
        return;
    }
    let chokepoint = Chokepoint::new();
    let (server, _running, scraped) = watched(&chokepoint);
    let prometheus = Prometheus::start(&chokepoint, scraped);
    let target = format!("{{job=\"chokepoint\",target=\"{}\"}}", server.url());
    wait_until("nothing was scraped", || prometheus.values("up{job=\"chokepoint\"}").as_deref() == Some(&[1.0]));
    wait_until("the server is not up", || prometheus.values(&format!("chokepoint_up{target}")).as_deref() == Some(&[1.0]));
    let in_flight = || prometheus.values(&format!("chokepoint_requests_in_flight{target}")).unwrap_or_default();
    wait_until("the requests are not in flight", || matches!(*in_flight(), [value] if (1.0..=5.0).contains(&value)));
    let rate = || prometheus.values(&format!("rate(chokepoint_requests_total{target}[10s])")).unwrap_or_default();
    wait_until("no answers were counted", || matches!(*rate(), [value] if value > 0.0));
    let targets = prometheus.get("/api/v1/targets").unwrap();
    assert_eq!(
        (&targets["activeTargets"][0]["lastError"], &targets["activeTargets"][0]["health"]),
        (&"".into(), &"up".into()),
        "{targets:#}"
    );

    // It evaluates the alert rules, and takes every query of the dashboard.
    let rules = || prometheus.get("/api/v1/rules").unwrap()["groups"][0]["rules"].as_array().cloned().unwrap_or_default();
    let written = std::fs::read_to_string(repository("packaging/monitoring/alerts.yml")).unwrap().matches("- alert: ").count();
    wait_until("the rules are not evaluated", || rules().len() == written && rules().iter().all(|rule| rule["health"] == "ok"));
    let dashboard: Value = serde_json::from_slice(&std::fs::read(repository("packaging/monitoring/grafana.json")).unwrap()).unwrap();
    let queries = dashboard["panels"].as_array().unwrap().iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    for query in queries.chain(dashboard["annotations"]["list"].as_array().unwrap()) {
        let query = query["expr"].as_str().unwrap();
        let filled = query.replace("$__rate_interval", "10s").replace("$instance", ".*").replace("$target", ".*");
        assert!(prometheus.values(&filled).is_some(), "{filled}");
    }
}

/// A server whose workers have a socket each, all of one address (SO_REUSEPORT).
struct ManySockets(Vec<std::os::fd::OwnedFd>, SocketAddr);

impl ManySockets {
    fn listen() -> Self {
        use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket, sockopt};
        let mut address: SocketAddr = ([127, 0, 0, 1], 0).into();
        let mut sockets = Vec::new();
        for backlog in [4, 5, 6, 7] {
            let one = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
            sockopt::set_socket_reuseport(&one, true).unwrap();
            bind(&one, &address).unwrap();
            listen(&one, backlog).unwrap();
            address = getsockname(&one).unwrap().try_into().unwrap();
            sockets.push(one);
        }
        Self(sockets, address)
    }
}

#[test]
fn a_prometheus_takes_the_metrics_of_a_server_with_several_sockets_of_one_address() {
    if !has_programs(&["prometheus"]) {
        return;
    }
    let (chokepoint, server, scraped) = (Chokepoint::new(), ManySockets::listen(), free_address());
    let ManySockets(sockets, address) = &server;
    assert_eq!(sockets.len(), 4);
    let (url, path) = (format!("http://{address}/"), chokepoint.path("data"));
    // The same server twice: two targets of one name.
    let args = ["watch", "--headless", "--data-dir", &path, "--listen", &scraped.to_string(), &format!("{url}?a=1"), &format!("{url}?a=2")];
    let _watch = Running::start(&mut chokepoint.command(&args)).unwrap();
    wait_until("watch does not listen", || TcpStream::connect(scraped).is_ok());
    let prometheus = Prometheus::start(&chokepoint, scraped);
    let limits = || prometheus.values("chokepoint_accept_queue_limit{job=\"chokepoint\"}").unwrap_or_default();
    wait_until("no queue was scraped for each target", || limits().len() == 2);
    assert_eq!(prometheus.values("up{job=\"chokepoint\"}").as_deref(), Some(&[1.0][..]));
}

#[test]
fn promtool_finds_no_fault_in_the_metrics_of_a_run() {
    if !has_programs(&["promtool"]) {
        return;
    }
    let chokepoint = Chokepoint::new();
    let (_server, _running, scraped) = watched(&chokepoint);
    let mut metrics = String::new();
    wait_until("there are no requests in the metrics", || {
        let answer = http_get(scraped, "/metrics", "Accept: text/plain;version=0.0.4\r\n").unwrap_or_default();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        metrics = body.to_owned();
        head.contains("text/plain; version=0.0.4") && body.contains("\nchokepoint_requests_standing{")
    });
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = promtool.spawn().unwrap();
    running.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let output = running.wait_with_output().unwrap();
    assert!(output.status.success(), "{}\n{metrics}", String::from_utf8_lossy(&output.stderr));
}
