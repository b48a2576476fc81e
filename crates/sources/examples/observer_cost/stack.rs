//! The lab with its servers, its idle connections and its load.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use chokepoint_lab::{Lab, Scenario, inside, run_root};
use chokepoint_load::{Address, Control, Plan, Protocol};
use chokepoint_model::load::{LoadResult, Loop};

use crate::{Failure, Options};

/// Both stacks load this address.
const TARGET: &str = "10.78.0.2:80";
/// Time limit for the first response on an idle connection.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Files of this process besides its connections.
const FILES_BESIDE: u64 = 200;

pub(crate) struct Stack {
    lab: Lab,
    target: SocketAddr,
    held: Vec<TcpStream>,
}

impl Stack {
    /// Builds the lab and opens the idle connections. Each is kept open by its server after one request.
    pub(crate) fn up(options: &Options) -> Result<Self, Failure> {
        let text = match options.stack.as_str() {
            "static" => include_str!("static.toml"),
            "php" => include_str!("php.toml"),
            other => return Err(format!("there is no stack \"{other}\": static or php").into()),
        };
        let scenario = Scenario::parse(text, &options.stack)?;
        let mut quiet = |_: &str| {};
        let lab_options =
            chokepoint_lab::Options { run_root: run_root(), outlive: false, within: None, cancelled: None, on_step: &mut quiet };
        let lab = Lab::up(&scenario, lab_options)?;
        lab.notes().iter().for_each(|note| eprintln!("note: {note}"));
        let target: SocketAddr = TARGET.parse()?;
        let idle = options.connections.saturating_sub(options.active);
        allow_files(u64::from(options.connections) + FILES_BESIDE)?;
        let held = inside(&lab.client_netns_path(), || hold(target, idle))??;
        Ok(Self { lab, target, held })
    }

    pub(crate) fn target(&self) -> SocketAddr {
        self.target
    }

    pub(crate) fn client_netns(&self) -> String {
        self.lab.client_netns_path().display().to_string()
    }

    pub(crate) fn at_rate(&self, connections: u32, rate_per_s: u32, seconds: u32) -> Plan {
        self.plan(Loop::Open { rate_per_s: f64::from(rate_per_s), connections }, Duration::from_secs(seconds.into()))
    }

    pub(crate) fn closed(&self, connections: u32, duration: Duration) -> Plan {
        self.plan(Loop::Closed { connections }, duration)
    }

    fn plan(&self, shape: Loop, duration: Duration) -> Plan {
        Plan {
            address: Address::Tcp(self.target),
            protocol: Protocol::Http,
            host_header: self.target.ip().to_string(),
            path_and_query: "/".to_owned(),
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            shape,
            duration: Some(duration),
            requests: None,
            timeout: Duration::from_secs(2),
            keep_alive: true,
            expect: vec![(200, 399)],
            netns: Some(self.lab.client_netns_path()),
            cpus: self.lab.client_cpus().map(<[u32]>::to_vec),
            threads: Some(1),
            guards: Vec::new(),
            options: chokepoint_load::Options::default(),
        }
    }

    /// Offers a load. It measures nothing unless all its responses were good.
    pub(crate) fn offer(&self, plan: Plan) -> Result<LoadResult, Failure> {
        let result = chokepoint_load::run(&plan, &Control::new())?;
        let failed = result.requests - result.good;
        if result.good == 0 || failed * 100 > result.requests {
            return Err(format!("{failed} of {} requests failed: {:?}", result.requests, result.error_samples).into());
        }
        Ok(result)
    }

    pub(crate) fn down(self) -> Result<(), Failure> {
        drop(self.held);
        let report = self.lab.down()?;
        if report.is_clean() { Ok(()) } else { Err(report.to_string().into()) }
    }
}

fn hold(target: SocketAddr, count: u32) -> std::io::Result<Vec<TcpStream>> {
    let request = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", target.ip());
    let mut answer = [0; 4096];
    let mut held = Vec::new();
    for _ in 0..count {
        let mut stream = TcpStream::connect_timeout(&target, ANSWER_MAX)?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        stream.write_all(request.as_bytes())?;
        if stream.read(&mut answer)? == 0 {
            return Err(std::io::Error::other("the server closed a connection that was to be held"));
        }
        held.push(stream);
    }
    Ok(held)
}

fn allow_files(files: u64) -> Result<(), Failure> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < files) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum: limit.maximum })?;
    }
    Ok(())
}
