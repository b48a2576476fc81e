//! What load to offer, and whether the plan makes sense before anything is sent.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use chokepoint_model::load::Loop;
use http::{HeaderName, HeaderValue, Method};

use crate::engine::stages::Stages;
use crate::host::address::Address;
use crate::limits::guard::Guard;
use crate::protocol::fastcgi;
use crate::protocol::tls::Tls;
use crate::results::tally::SLICE_NS;
use crate::targets::Targets;

/// Longest duration of a load.
const DURATION_MAX: Duration = Duration::from_secs(24 * 3600);
/// Longest timeout of a request, the top of the latency histogram.
const TIMEOUT_MAX: Duration = Duration::from_secs(3600);
/// Highest rate of an open loop, requests a second.
const RATE_PER_S_MAX: f64 = 10_000_000.0;
/// Most generator threads.
const THREADS_MAX: u32 = 1024;
/// Most connections; the limit on file descriptors is checked apart.
const CONNECTIONS_MAX: u32 = 10_000_000;
/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of a request's body.
const BODY_BYTES_MAX: usize = 1024 * 1024 * 1024;
/// Most addresses to connect from.
const BIND_MAX: usize = 1024;
/// Longest warm-up.
const WARM_UP_MAX: Duration = Duration::from_secs(3600);

/// What is spoken on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 (RFC 9112).
    Http,
    /// FastCGI 1.0, to a responder. The parameters are those that a web server gives; the path names the script (SCRIPT_FILENAME and
    /// SCRIPT_NAME) unless `params` does.
    FastCgi {
        /// More parameters, and others in the place of those made of the plan: name and value.
        params: Vec<(String, String)>,
    },
}

/// A load: where to, what, how much and for how long.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where to connect.
    pub address: Address,
    /// What is spoken there.
    pub protocol: Protocol,
    /// Value of the Host header, unless `headers` has one.
    pub host_header: String,
    /// Request target in origin form, such as `/index.php?a=b`.
    pub path_and_query: String,
    /// Method, such as `GET`; any but CONNECT.
    pub method: String,
    /// More header fields, sent in this order. Content-Length and Transfer-Encoding follow from `body` and may not be among them.
    pub headers: Vec<(String, String)>,
    /// Body of each request.
    pub body: Vec<u8>,
    /// Closed loop (concurrency) or open loop (rate).
    pub shape: Loop,
    /// Load is offered for this long. This or `requests` must be given; whichever is reached first ends it.
    pub duration: Option<Duration>,
    /// Requests in all.
    pub requests: Option<u64>,
    /// A request, connecting included, ends after this.
    pub timeout: Duration,
    /// Connections are reused (FastCGI: FCGI_KEEP_CONN); otherwise each request says `Connection: close` and has a connection of its own.
    pub keep_alive: bool,
    /// Expected statuses, as ranges with both ends in them.
    pub expect: Vec<(u16, u16)>,
    /// Network namespace to send from, such as `/run/netns/client` or `/proc/PID/ns/net`. Entering it needs CAP_SYS_ADMIN.
    pub netns: Option<PathBuf>,
    /// Cores on which every generator thread may run; all that the process may use where this is `None`.
    pub cpus: Option<Vec<u32>>,
    /// Generator threads; at most one for each connection is started.
    pub threads: u32,
    /// Conditions that stop the load.
    pub guards: Vec<Guard>,
    /// What goes beyond the ordinary load.
    pub options: Options,
}

/// What a load may do beyond the ordinary; by default nothing of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Load is offered for this long before anything is counted, on the same connections. The duration and the number of requests count from
    /// its end; a request that was to start before it is in no figure. A multiple of 100 ms.
    pub warm_up: Duration,
    /// A kept connection carries this many requests; the last of them asks the server to close it (HTTP: `Connection: close`, FastCGI: without
    /// FCGI_KEEP_CONN).
    pub requests_per_connection: Option<u32>,
    /// TLS is spoken on each connection, over TCP alone.
    pub tls: Option<Tls>,
    /// The rate of an open loop changes, in the place of the one rate of its shape, which is then told only. A warm-up before has the rate of
    /// their start. The plan's duration is theirs.
    pub stages: Option<Stages>,
    /// What is asked for, in the place of the plan's method and path.
    pub targets: Option<Targets>,
    /// An answer that takes longer is of no use to who asked ([`chokepoint_model::load::patience_us`]): the objective, where there is one.
    pub objective: Option<Duration>,
    /// Addresses of this host to connect from: the connections have them in turn. The kernel's choice where there is none.
    pub bind: Vec<IpAddr>,
}

/// Why a plan makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum PlanError {
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    #[error("{what} must be at most {max}")]
    TooLarge { what: &'static str, max: String },
    #[error("the rate must be a number of requests a second over 0 and at most 10000000, not {0}")]
    Rate(String),
    #[error("the load needs an end: a duration or a number of requests")]
    NoEnd,
    #[error("{0:?} is no HTTP method")]
    Method(String),
    #[error("the method CONNECT opens a tunnel and cannot be a load")]
    Connect,
    #[error("the path {0:?} must begin with / (or be * for OPTIONS)")]
    PathStart(String),
    #[error("the path {path:?} holds {what}; write it percent-encoded")]
    PathByte { path: String, what: String },
    #[error("{0:?} is no header name")]
    HeaderName(String),
    #[error("the value of header {0} holds a control character, such as a line break")]
    HeaderValue(String),
    #[error("{0:?} is no value for the Host header")]
    Host(String),
    #[error("header Host is given {0} times")]
    Hosts(usize),
    #[error("header {0} follows from the body and cannot be given")]
    Framing(String),
    #[error("header Connection cannot be given where each request has a connection of its own")]
    ConnectionHeader,
    #[error("{0:?} is no name of a FastCGI parameter")]
    ParamName(String),
    #[error("the FastCGI parameter {0} holds a NUL, which no server takes")]
    ParamValue(String),
    #[error("no expected status is given")]
    NoExpect,
    #[error("{0}-{1} is no range of statuses within 100-999")]
    Expect(u16, u16),
    #[error("the list of cores is empty")]
    NoCpus,
    #[error("core {0} is over 1023, the highest that can be chosen")]
    Cpu(u32),
    #[error("the warm-up must be a multiple of 100 ms and at most an hour, not {0:?}")]
    WarmUp(Duration),
    #[error("header Connection cannot be given where a connection carries a number of requests")]
    ConnectionCount,
    #[error("stages are rates of an open loop, which this load is none of")]
    StagesClosed,
    #[error("stages end a load themselves: a duration of {0:?} cannot be given beside them")]
    StagesDuration(Duration),
    #[error("a warm-up before stages needs a rate at their start (-q)")]
    StagesWarmUp,
    #[error("there are more than {BIND_MAX} addresses to connect from")]
    Binds,
    #[error("connections to {1} cannot come from {0}")]
    Bind(IpAddr, String),
    #[error("target {0}: {1}")]
    Target(usize, Box<PlanError>),
}

impl Plan {
    /// Connections, at most, of all threads together.
    pub fn connections(&self) -> u32 {
        match self.shape {
            Loop::Closed { connections } | Loop::Open { connections, .. } => connections,
        }
    }

    /// The methods that are really sent: those of the targets where there are any, and in their place the one that a FastCGI parameter names.
    pub fn methods(&self) -> Vec<String> {
        let targets = self.options.targets.iter().flat_map(|targets| &targets.targets);
        let own = self.options.targets.is_none().then_some(&self.method);
        let asked = targets.map(|target| &target.method).chain(own);
        match &self.protocol {
            Protocol::Http => asked.cloned().collect(),
            Protocol::FastCgi { params } => {
                asked.flat_map(|method| fastcgi::methods(&Self { method: method.clone(), ..self.clone() }, params)).collect()
            }
        }
    }

    /// Checks everything that can be known before a socket is made. [`crate::engine::run`] does it too.
    pub fn check(&self) -> Result<(), PlanError> {
        self.check_amounts()?;
        self.check_target()?;
        self.check_headers()?;
        self.check_options()?;
        if self.expect.is_empty() {
            return Err(PlanError::NoExpect);
        }
        if let Some(&(low, high)) = self.expect.iter().find(|(low, high)| !(100 <= *low && low <= high && *high <= 999)) {
            return Err(PlanError::Expect(low, high));
        }
        match &self.cpus {
            Some(cpus) if cpus.is_empty() => Err(PlanError::NoCpus),
            Some(cpus) => cpus.iter().find(|cpu| **cpu >= 1024).map_or(Ok(()), |cpu| Err(PlanError::Cpu(*cpu))),
            None => Ok(()),
        }
    }

    fn check_amounts(&self) -> Result<(), PlanError> {
        let zero = [
            ("the port", self.address.tcp().is_some_and(|address| address.port() == 0)),
            ("the number of connections", self.connections() == 0),
            ("the number of threads", self.threads == 0),
            ("the number of requests", self.requests == Some(0)),
            ("the duration in nanoseconds", self.duration == Some(Duration::ZERO)),
            ("the timeout in microseconds", self.timeout < Duration::from_micros(1)),
        ];
        if let Some((what, _)) = zero.into_iter().find(|(_, is_zero)| *is_zero) {
            return Err(PlanError::Zero(what));
        }
        let too_large = [
            ("the number of connections", self.connections() > CONNECTIONS_MAX, CONNECTIONS_MAX.to_string()),
            ("the number of threads", self.threads > THREADS_MAX, THREADS_MAX.to_string()),
            ("the duration", self.duration > Some(DURATION_MAX), "24 h".to_owned()),
            ("the timeout", self.timeout > TIMEOUT_MAX, "1 h".to_owned()),
            ("the body", self.body.len() > BODY_BYTES_MAX, "1 GiB".to_owned()),
        ];
        if let Some((what, _, max)) = too_large.into_iter().find(|(_, is_too_large, _)| *is_too_large) {
            return Err(PlanError::TooLarge { what, max });
        }
        if let Loop::Open { rate_per_s, .. } = self.shape
            && !(rate_per_s > 0.0 && rate_per_s <= RATE_PER_S_MAX)
        {
            return Err(PlanError::Rate(rate_per_s.to_string()));
        }
        if self.duration.is_none() && self.requests.is_none() { Err(PlanError::NoEnd) } else { Ok(()) }
    }

    pub(crate) fn check_target(&self) -> Result<(), PlanError> {
        if Method::from_bytes(self.method.as_bytes()).is_err() {
            return Err(PlanError::Method(self.method.clone()));
        }
        if self.method == "CONNECT" {
            return Err(PlanError::Connect);
        }
        let path = &self.path_and_query;
        let is_asterisk = path == "*" && self.method == "OPTIONS" && self.protocol == Protocol::Http;
        if !path.starts_with('/') && !is_asterisk {
            return Err(PlanError::PathStart(path.clone()));
        }
        if let Some(bad) = path.chars().find(|char| !char.is_ascii_graphic() || *char == '#') {
            return Err(PlanError::PathByte { path: path.clone(), what: format!("{bad:?}") });
        }
        Ok(())
    }

    fn check_options(&self) -> Result<(), PlanError> {
        let warm_up = self.options.warm_up;
        if !warm_up.as_nanos().is_multiple_of(u128::from(SLICE_NS)) || warm_up > WARM_UP_MAX {
            return Err(PlanError::WarmUp(warm_up));
        }
        self.check_stages()?;
        self.check_bind()?;
        if let Some(targets) = &self.options.targets {
            targets.check(self)?;
        }
        match self.options.requests_per_connection {
            Some(0) => Err(PlanError::Zero("the number of requests of a connection")),
            Some(_) if self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("connection")) => Err(PlanError::ConnectionCount),
            _ => Ok(()),
        }
    }

    fn check_bind(&self) -> Result<(), PlanError> {
        let bind = &self.options.bind;
        if bind.len() > BIND_MAX {
            return Err(PlanError::Binds);
        }
        let fits = |from: &IpAddr| self.address.tcp().is_some_and(|to| to.is_ipv4() == from.is_ipv4());
        bind.iter().find(|from| !fits(from)).map_or(Ok(()), |from| Err(PlanError::Bind(*from, self.address.to_string())))
    }

    fn check_stages(&self) -> Result<(), PlanError> {
        let Some(stages) = &self.options.stages else { return Ok(()) };
        if !matches!(self.shape, Loop::Open { .. }) {
            return Err(PlanError::StagesClosed);
        }
        let rates = std::iter::once(stages.start_per_s).chain(stages.stages.iter().map(|stage| stage.rate_per_s));
        if let Some(rate) = rates.into_iter().find(|rate| !(0.0..=RATE_PER_S_MAX).contains(rate)) {
            return Err(PlanError::Rate(rate.to_string()));
        }
        if self.duration != Some(stages.duration()) {
            return Err(PlanError::StagesDuration(self.duration.unwrap_or_default()));
        }
        if !self.options.warm_up.is_zero() && stages.start_per_s <= 0.0 {
            return Err(PlanError::StagesWarmUp);
        }
        Ok(())
    }

    /// Checks the parameters of FastCGI; their bytes.
    fn check_params(&self) -> Result<usize, PlanError> {
        let Protocol::FastCgi { params } = &self.protocol else { return Ok(0) };
        if fastcgi::script(&self.path_and_query).contains(&0) {
            return Err(PlanError::ParamValue("SCRIPT_FILENAME".to_owned()));
        }
        for (name, value) in params {
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'=') {
                return Err(PlanError::ParamName(name.clone()));
            }
            if value.contains('\0') {
                return Err(PlanError::ParamValue(name.clone()));
            }
        }
        Ok(params.iter().map(|(name, value)| name.len() + value.len() + 8).sum())
    }

    fn check_headers(&self) -> Result<(), PlanError> {
        let mut head_bytes = self.path_and_query.len();
        let mut hosts = Vec::new();
        for (name, value) in &self.headers {
            if HeaderName::from_bytes(name.as_bytes()).is_err() {
                return Err(PlanError::HeaderName(name.clone()));
            }
            if HeaderValue::from_bytes(value.as_bytes()).is_err() {
                return Err(PlanError::HeaderValue(name.clone()));
            }
            match name.to_ascii_lowercase().as_str() {
                "content-length" | "transfer-encoding" => return Err(PlanError::Framing(name.clone())),
                "connection" if !self.keep_alive => return Err(PlanError::ConnectionHeader),
                "host" => hosts.push(value),
                _ => {}
            }
            head_bytes += name.len() + value.len() + 4;
        }
        head_bytes += self.check_params()?;
        // A server answers more than one Host with 400 (RFC 9112 section 3.2).
        if hosts.len() > 1 {
            return Err(PlanError::Hosts(hosts.len()));
        }
        let host = hosts.first().map_or(self.host_header.as_str(), |host| host);
        if !host.bytes().all(|byte| byte.is_ascii_graphic() || byte >= 0x80) {
            return Err(PlanError::Host(host.to_owned()));
        }
        if head_bytes > HEAD_BYTES_MAX {
            return Err(PlanError::TooLarge { what: "the request's head", max: "1 MiB".to_owned() });
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::protocol::request::render;

    pub(crate) fn plan() -> Plan {
        Plan {
            address: Address::Tcp(([127, 0, 0, 1], 80).into()),
            protocol: Protocol::Http,
            host_header: "example.org:8080".to_owned(),
            path_and_query: "/a?b=c".to_owned(),
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            shape: Loop::Closed { connections: 1 },
            duration: Some(Duration::from_secs(1)),
            requests: None,
            timeout: Duration::from_secs(2),
            keep_alive: true,
            expect: vec![(200, 399)],
            netns: None,
            cpus: None,
            threads: 1,
            guards: Vec::new(),
            options: Options::default(),
        }
    }

    fn error(change: impl FnOnce(&mut Plan)) -> String {
        let mut plan = plan();
        change(&mut plan);
        plan.check().map_or_else(|error| error.to_string(), |()| "no error".to_owned())
    }

    #[test]
    fn a_good_plan_passes() {
        assert_eq!(plan().check(), Ok(()));
        assert_eq!(
            error(|plan| plan.headers = vec![("X-Name".into(), "J\u{fc}rgen".into()), ("Connection".into(), "close".into())]),
            "no error"
        );
        assert_eq!(error(|plan| (plan.method, plan.path_and_query) = ("OPTIONS".into(), "*".into())), "no error");
        assert_eq!(error(|plan| plan.host_header = "[::1]:80".into()), "no error");
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_reason() {
        let header = |name: &str, value: &str| error(|plan| plan.headers = vec![(name.into(), value.into())]);
        assert!(header("X", "a\r\nEvil: b").contains("line break"));
        assert!(header("X", "a\0b").contains("control character"));
        assert!(header("X\r\nEvil", "a").contains("no header name"));
        assert!(header("", "a").contains("no header name"));
        assert!(header("X:", "a").contains("no header name"));
        assert!(header("content-Length", "5").contains("follows from the body"));
        assert!(header("Transfer-Encoding", "chunked").contains("follows from the body"));
        assert!(header("Host", "a b").contains("no value for the Host header"));
        assert!(error(|plan| plan.headers = vec![("Host".into(), "a".into()), ("host".into(), "b".into())]).contains("2 times"));
        assert!(error(|plan| plan.host_header = "a\r\nEvil: b".into()).contains("Host"));
        for method in ["", "GE T", "GET\r\n", "G\u{e9}T"] {
            assert!(error(|plan| plan.method = method.into()).contains("no HTTP method"), "{method:?}");
        }
        assert!(error(|plan| plan.method = "CONNECT".into()).contains("tunnel"));
        assert!(error(|plan| plan.path_and_query = String::new()).contains("must begin with /"));
        assert!(error(|plan| plan.path_and_query = "*".into()).contains("must begin with /"));
        for path in ["/a b", "/a\r\nEvil: b", "/\u{e4}", "/a#b", "/\u{7f}"] {
            assert!(error(|plan| plan.path_and_query = path.into()).contains("percent-encoded"), "{path:?}");
        }
        assert!(error(|plan| plan.shape = Loop::Closed { connections: 0 }).contains("connections must be at least 1"));
        for rate_per_s in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert!(error(|plan| plan.shape = Loop::Open { rate_per_s, connections: 1 }).contains("rate"), "{rate_per_s}");
        }
        assert!(error(|plan| plan.address = Address::Tcp(([127, 0, 0, 1], 0).into())).contains("port must be"));
        let param = |name: &str, value: &str| error(|plan| plan.protocol = Protocol::FastCgi { params: vec![(name.into(), value.into())] });
        assert_eq!(param("APP_ENV", "\u{e4} =\n"), "no error");
        assert!(["", "A=B", "A B", "\u{e4}"].iter().all(|name| param(name, "").contains("no name of a FastCGI")));
        assert!(param("A", "\0").contains("NUL") && param("A", &"v".repeat(2_000_000)).contains("1 MiB"));
        let script = |path: &str| error(|plan| (plan.protocol, plan.path_and_query) = (Protocol::FastCgi { params: vec![] }, path.into()));
        assert!(script("/a%00b").contains("NUL") && script("*").contains("must begin"));
        assert!(error(|plan| plan.threads = 0).contains("threads"));
        assert!(error(|plan| plan.threads = 5000).contains("at most 1024"));
        assert!(error(|plan| plan.requests = Some(0)).contains("requests"));
        assert!(error(|plan| plan.duration = Some(Duration::ZERO)).contains("duration"));
        assert!(error(|plan| plan.duration = Some(Duration::MAX)).contains("24 h"));
        assert!(error(|plan| plan.timeout = Duration::ZERO).contains("timeout"));
        assert!(error(|plan| plan.timeout = Duration::MAX).contains("1 h"));
        assert!(error(|plan| plan.duration = None).contains("needs an end"));
        assert!(error(|plan| plan.expect = Vec::new()).contains("expected status"));
        assert!(error(|plan| plan.expect = vec![(300, 200)]).contains("300-200"));
        assert!(error(|plan| plan.expect = vec![(0, 200)]).contains("0-200"));
        assert!(error(|plan| plan.cpus = Some(Vec::new())).contains("empty"));
        assert!(error(|plan| plan.cpus = Some(vec![0, 4000])).contains("core 4000"));
        let close = |plan: &mut Plan| (plan.keep_alive, plan.headers) = (false, vec![("connection".into(), "keep-alive".into())]);
        assert!(error(close).contains("Connection cannot be given"));
        assert!(error(|plan| plan.options.warm_up = Duration::from_millis(150)).contains("multiple of 100 ms"));
        assert!(error(|plan| plan.options.warm_up = Duration::from_secs(7200)).contains("an hour"));
        assert!(error(|plan| plan.options.requests_per_connection = Some(0)).contains("requests of a connection must be at least 1"));
        let counted = |plan: &mut Plan| {
            (plan.options.requests_per_connection, plan.headers) = (Some(2), vec![("Connection".into(), "keep-alive".into())]);
        };
        assert!(error(counted).contains("carries a number of requests"));
    }

    #[test]
    fn the_request_is_rendered_once_and_right() {
        let text = |plan: &Plan| String::from_utf8(render(plan, plan.keep_alive)).expect("ASCII");
        let agent = concat!("User-Agent: chokepoint/", env!("CARGO_PKG_VERSION"), "\r\n");
        assert_eq!(text(&plan()), format!("GET /a?b=c HTTP/1.1\r\nHost: example.org:8080\r\n{agent}\r\n"));
        let mut post = plan();
        post.method = "POST".into();
        post.body = b"a=b".to_vec();
        post.keep_alive = false;
        post.headers = vec![("host".into(), "other".into()), ("user-agent".into(), "x".into())];
        assert_eq!(
            text(&post),
            "POST /a?b=c HTTP/1.1\r\nhost: other\r\nuser-agent: x\r\nContent-Length: 3\r\nConnection: close\r\n\r\na=b"
        );
        post.body.clear();
        assert!(text(&post).contains("Content-Length: 0\r\n"));
    }
}
