//! Whether a plan makes sense, checked before anything is sent.

use std::net::IpAddr;
use std::time::Duration;

use chokepoint_model::load::Loop;
use http::{HeaderName, HeaderValue, Method};

use crate::plan::{Options, Plan, Protocol};
use crate::protocol::fastcgi;
use crate::results::series::SLICE_NS;
use crate::targets::Targets;

/// Maximum duration of a load.
const DURATION_MAX: Duration = Duration::from_secs(24 * 3600);
/// Maximum timeout of a request: the top of the latency histogram.
const TIMEOUT_MAX: Duration = Duration::from_secs(3600);
/// Maximum rate of an open loop, requests a second.
const RATE_PER_S_MAX: f64 = 10_000_000.0;
/// Maximum number of generator threads.
const THREADS_MAX: u32 = 1024;
/// Maximum number of connections; the limit on file descriptors is checked separately.
const CONNECTIONS_MAX: u32 = 10_000_000;
/// Maximum bytes of a request's head.
const HEAD_BYTES_MAX: usize = 1024 * 1024;
/// Maximum bytes of a request's body.
const BODY_BYTES_MAX: usize = 1024 * 1024 * 1024;
/// Maximum number of source addresses.
const BIND_MAX: usize = 1024;
/// Maximum warm-up.
const WARM_UP_MAX: Duration = Duration::from_secs(3600);
/// Maximum number of targets.
const TARGETS_MAX: usize = 1_000_000;
/// Maximum bytes of all rendered requests together.
const PREPARED_BYTES_MAX: usize = 256 << 20;

/// Why a plan makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum PlanError {
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    #[error("{what} must be at most {max}")]
    TooLarge { what: &'static str, max: String },
    #[error("the rate must be above 0 and at most 10000000 requests per second, not {0}")]
    Rate(String),
    #[error("the load needs an end: a duration or a number of requests")]
    NoEnd,
    #[error("{0:?} is not an HTTP method")]
    Method(String),
    #[error("the method CONNECT opens a tunnel, so it cannot be used as a load")]
    Connect,
    #[error("the path {0:?} must begin with / (or be * for OPTIONS)")]
    PathStart(String),
    #[error("the path {path:?} contains {what}: percent-encode it")]
    PathByte { path: String, what: String },
    #[error("{0:?} is not a header name")]
    HeaderName(String),
    #[error("the value of header {0} contains a control character, such as a line break")]
    HeaderValue(String),
    #[error("{0:?} is not a value for the Host header")]
    Host(String),
    #[error("header Host is given {0} times")]
    Hosts(usize),
    #[error("header {0} is computed from the body and cannot be set")]
    Framing(String),
    #[error("header Connection cannot be set if each request has its own connection")]
    ConnectionHeader,
    #[error("{0:?} is not the name of a FastCGI parameter")]
    ParamName(String),
    #[error("the FastCGI parameter {0} contains a NUL byte, which no server accepts")]
    ParamValue(String),
    #[error("no expected status is given")]
    NoExpect,
    #[error("{0}-{1} is not a range of statuses within 100-999")]
    Expect(u16, u16),
    #[error("the list of cores is empty")]
    NoCpus,
    #[error("core {0} is above 1023, the highest that can be chosen")]
    Cpu(u32),
    #[error("the warm-up must be a multiple of 100 ms and at most an hour, not {0:?}")]
    WarmUp(Duration),
    #[error("header Connection cannot be set if the number of requests per connection is set")]
    ConnectionCount,
    #[error("stages set the rate of an open loop, but this load is a closed loop")]
    StagesClosed,
    #[error("the load ends with its last stage, so a duration of {0:?} cannot be set as well")]
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
    /// The methods that are actually sent: those of the targets, if any; with FastCGI those that the parameters name.
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

    /// Checks everything that can be known before opening a socket. [`crate::run`] does so too.
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
            ("the number of threads", self.threads == Some(0)),
            ("the number of requests", self.requests == Some(0)),
            ("the duration in nanoseconds", self.duration == Some(Duration::ZERO)),
            ("the timeout in microseconds", self.timeout < Duration::from_micros(1)),
        ];
        if let Some((what, _)) = zero.into_iter().find(|(_, is_zero)| *is_zero) {
            return Err(PlanError::Zero(what));
        }
        let too_large = [
            ("the number of connections", self.connections() > CONNECTIONS_MAX, CONNECTIONS_MAX.to_string()),
            ("the number of threads", self.threads.is_some_and(|threads| threads > THREADS_MAX), THREADS_MAX.to_string()),
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

    /// Checks the FastCGI parameters and returns their size, bytes.
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
        // Servers answer a second Host with 400 (RFC 9112 section 3.2).
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

impl Targets {
    /// The plan of each target.
    pub(crate) fn plans<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = Plan> + 'a {
        let rest = Plan { options: Options { targets: None, ..plan.options.clone() }, ..plan.clone() };
        self.targets.iter().map(move |target| Plan {
            method: target.method.clone(),
            path_and_query: target.path_and_query.clone(),
            ..rest.clone()
        })
    }

    /// Checks each target.
    pub(crate) fn check(&self, plan: &Plan) -> Result<(), PlanError> {
        if self.targets.is_empty() {
            return Err(PlanError::Zero("the number of targets"));
        }
        if self.targets.len() > TARGETS_MAX {
            return Err(PlanError::TooLarge { what: "the number of targets", max: TARGETS_MAX.to_string() });
        }
        let headers: usize = plan.headers.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
        let copies = 1 + usize::from(plan.options.requests_per_connection.is_some());
        let mut bytes = 0usize;
        for (place, plan) in self.plans(plan).enumerate() {
            plan.check_target().map_err(|error| PlanError::Target(place + 1, Box::new(error)))?;
            // A head has a few lines of ours besides; FastCGI sends the path three times.
            bytes = bytes.saturating_add(copies * (plan.body.len() + headers + 3 * plan.path_and_query.len() + 256));
            if bytes > PREPARED_BYTES_MAX {
                return Err(PlanError::TooLarge { what: "the requests of all targets together", max: "256 MiB".to_owned() });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::address::Address;
    use crate::plan::tests::plan;

    fn error(change: impl FnOnce(&mut Plan)) -> String {
        let mut plan = plan();
        change(&mut plan);
        plan.check().map_or_else(|error| error.to_string(), |()| "no error".to_owned())
    }

    #[test]
    fn a_valid_plan_passes() {
        assert_eq!(plan().check(), Ok(()));
        assert_eq!(
            error(|plan| plan.headers = vec![("X-Name".into(), "J\u{fc}rgen".into()), ("Connection".into(), "close".into())]),
            "no error"
        );
        assert_eq!(error(|plan| (plan.method, plan.path_and_query) = ("OPTIONS".into(), "*".into())), "no error");
        assert_eq!(error(|plan| plan.host_header = "[::1]:80".into()), "no error");
    }

    #[test]
    fn invalid_plans_are_refused_with_the_reason() {
        let header = |name: &str, value: &str| error(|plan| plan.headers = vec![(name.into(), value.into())]);
        assert!(header("X", "a\r\nEvil: b").contains("line break"));
        assert!(header("X", "a\0b").contains("control character"));
        assert!(header("X\r\nEvil", "a").contains("not a header name"));
        assert!(header("", "a").contains("not a header name"));
        assert!(header("X:", "a").contains("not a header name"));
        assert!(header("content-Length", "5").contains("computed from the body"));
        assert!(header("Transfer-Encoding", "chunked").contains("computed from the body"));
        assert!(header("Host", "a b").contains("not a value for the Host header"));
        assert!(error(|plan| plan.headers = vec![("Host".into(), "a".into()), ("host".into(), "b".into())]).contains("2 times"));
        assert!(error(|plan| plan.host_header = "a\r\nEvil: b".into()).contains("Host"));
        for method in ["", "GE T", "GET\r\n", "G\u{e9}T"] {
            assert!(error(|plan| plan.method = method.into()).contains("not an HTTP method"), "{method:?}");
        }
        assert!(error(|plan| plan.method = "CONNECT".into()).contains("tunnel"));
        assert!(error(|plan| plan.path_and_query = String::new()).contains("must begin with /"));
        assert!(error(|plan| plan.path_and_query = "*".into()).contains("must begin with /"));
        for path in ["/a b", "/a\r\nEvil: b", "/\u{e4}", "/a#b", "/\u{7f}"] {
            assert!(error(|plan| plan.path_and_query = path.into()).contains("percent-encode"), "{path:?}");
        }
        assert!(error(|plan| plan.shape = Loop::Closed { connections: 0 }).contains("connections must be at least 1"));
        for rate_per_s in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert!(error(|plan| plan.shape = Loop::Open { rate_per_s, connections: 1 }).contains("rate"), "{rate_per_s}");
        }
        assert!(error(|plan| plan.address = Address::Tcp(([127, 0, 0, 1], 0).into())).contains("port must be"));
        let param = |name: &str, value: &str| error(|plan| plan.protocol = Protocol::FastCgi { params: vec![(name.into(), value.into())] });
        assert_eq!(param("APP_ENV", "\u{e4} =\n"), "no error");
        assert!(["", "A=B", "A B", "\u{e4}"].iter().all(|name| param(name, "").contains("not the name of a FastCGI")));
        assert!(param("A", "\0").contains("NUL") && param("A", &"v".repeat(2_000_000)).contains("1 MiB"));
        let script = |path: &str| error(|plan| (plan.protocol, plan.path_and_query) = (Protocol::FastCgi { params: vec![] }, path.into()));
        assert!(script("/a%00b").contains("NUL") && script("*").contains("must begin"));
        assert!(error(|plan| plan.threads = Some(0)).contains("threads"));
        assert!(error(|plan| plan.threads = Some(5000)).contains("at most 1024"));
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
        assert!(error(close).contains("Connection cannot be set"));
        assert!(error(|plan| plan.options.warm_up = Duration::from_millis(150)).contains("multiple of 100 ms"));
        assert!(error(|plan| plan.options.warm_up = Duration::from_secs(7200)).contains("an hour"));
        assert!(error(|plan| plan.options.requests_per_connection = Some(0)).contains("requests of a connection must be at least 1"));
        let counted = |plan: &mut Plan| {
            (plan.options.requests_per_connection, plan.headers) = (Some(2), vec![("Connection".into(), "keep-alive".into())]);
        };
        assert!(error(counted).contains("requests per connection"));
    }
}
