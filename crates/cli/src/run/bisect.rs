//! `--bisect`: drives the model's session in which each tier is loaded alone, live or from a recording.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use chokepoint_load::{Address, Options, Plan, Protocol};
use chokepoint_model::bisect::{Part, Session};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::load::Loop;
use chokepoint_model::observation::Observation;
use chokepoint_model::observation::Request;
use chokepoint_model::report::{Diagnosis, PartKind};
use chokepoint_model::surroundings::{Surroundings, surroundings};
use chokepoint_sources::{Root, listening_socket, netns};

use crate::run::measure::{self, Setup};
use crate::run::plan::CONNECTIONS_DEFAULT;
use crate::run::recordings::Event;
use crate::run::route::Route;
use crate::run::settings::Target;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output;

/// The most directory entries that are searched for a file to request.
const NAMES_MAX: usize = 1_000;
/// The largest file to request, bytes: a larger one would measure the link.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Measures the whole and its parts.
pub(crate) trait BisectDriver {
    /// Measures the whole under load.
    fn whole(&mut self) -> Result<Observation>;
    /// Measures a part under load; the inner error says why it could not be loaded.
    fn part(&mut self, part: &Part) -> Result<std::result::Result<Observation, String>>;
}

/// Measures the whole, then each part that can be loaded alone.
pub(crate) fn drive(driver: &mut dyn BisectDriver, words: &Catalogue) -> Result<Diagnosis> {
    let mut session = Session::new(&driver.whole()?, words);
    while let Some(part) = session.next_part() {
        match driver.part(&part)? {
            Ok(observation) => session.measured(&part, &observation),
            Err(why) => session.failed(&part, &why),
        }
    }
    Ok(session.report())
}

/// True for the recording of a bisection.
pub(crate) fn is_recorded(events: &[Event]) -> bool {
    events.iter().any(|event| matches!(event, Event::Bisected))
}

/// A live run on this host.
pub(crate) struct LiveBisect<'a> {
    setup: &'a Setup,
    interrupt: &'a Interrupt,
    keep: bool,
    /// The events so far, if the run is recorded.
    pub(crate) events: Vec<Event>,
    /// What the whole was measured on.
    pub(crate) surroundings: Surroundings,
}

impl<'a> LiveBisect<'a> {
    pub(crate) fn new(setup: &'a Setup, interrupt: &'a Interrupt, keep: bool) -> Self {
        Self { setup, interrupt, keep, events: Vec::new(), surroundings: Surroundings::new() }
    }

    fn load(&self, part: &Part) -> Result<Vec<chokepoint_recording::Entry>> {
        if self.interrupt.is_set() {
            bail!("interrupted");
        }
        let base = self.setup.plan.as_ref().context("there is no load")?;
        let setup = setup(part, self.setup, base)?;
        let plan = setup.plan.as_ref().context("there is no load")?;
        measure::permit(&setup)?;
        check_answer(plan, part, self.interrupt)?;
        measure::settle(&setup, self.interrupt)?;
        Ok(measure::measure(&setup, &format!("loading {} alone", part.tier), self.interrupt)?.0)
    }
}

impl BisectDriver for LiveBisect<'_> {
    fn whole(&mut self) -> Result<Observation> {
        let (entries, _) = measure::measure(self.setup, "loading", self.interrupt)?;
        let observation = measure::observation(&entries);
        self.surroundings = surroundings(&observation);
        if self.keep {
            self.events.extend([Event::Bisected, Event::Measured(entries)]);
        }
        Ok(observation)
    }

    fn part(&mut self, part: &Part) -> Result<std::result::Result<Observation, String>> {
        let read = self.load(part).map_err(|error| output::once(&error));
        let observation = read.as_ref().map(|entries| measure::observation(entries)).map_err(Clone::clone);
        if self.keep {
            self.events.push(Event::Part { id: part.id(), read });
        }
        Ok(observation)
    }
}

/// A recorded run: the same session with the recorded events.
pub(crate) struct BisectReplay {
    pub(crate) events: VecDeque<Event>,
}

impl BisectDriver for BisectReplay {
    fn whole(&mut self) -> Result<Observation> {
        while let Some(event) = self.events.pop_front() {
            if let Event::Measured(entries) = event {
                return measure::recorded(&entries);
            }
        }
        bail!("the recording has no measurement of all tiers together")
    }

    fn part(&mut self, part: &Part) -> Result<std::result::Result<Observation, String>> {
        let wanted = part.id();
        match self.events.pop_front_if(|event| matches!(event, Event::Part { id, .. } if *id == wanted)) {
            Some(Event::Part { read: Ok(entries), .. }) => Ok(Ok(measure::recorded(&entries)?)),
            Some(Event::Part { read: Err(why), .. }) => Ok(Err(why)),
            _ => Ok(Err("the recording does not contain it".to_owned())),
        }
    }
}

/// The setup for a part: the load of the whole, with another address and request.
fn setup(part: &Part, whole: &Setup, base: &Plan) -> Result<Setup> {
    let url = match &part.directory {
        Some(directory) => format!("{}{}", part.url, file_in(&path_of_process(part.pid, directory), part)?),
        None => part.url.clone(),
    };
    // What the front answers by itself is asked of the same address as the whole.
    let target = match part.kind {
        PartKind::Own => Target::parse_routed(&url, &Route::to(&whole.request.addresses))?,
        PartKind::Direct => Target::parse(&url)?,
    };
    let (address, bound) = place(part, &target)?;
    // Only the front is asked over TLS: servers behind it that are asked over TLS are left out.
    let tls = base.options.tls.clone().filter(|_| target.scheme == "https");
    let request = Request {
        client_netns: part.netns,
        loaded: true,
        in_clear: whole.request.in_clear,
        machine: whole.request.machine.clone(),
        started_s: whole.request.started_s,
        server_netns: whole.request.server_netns.filter(|_| part.kind == PartKind::Own),
        sent_host: Some(part.host.clone()),
        expect: whole.request.expect.clone(),
        unix: target.unix.first().cloned().into_iter().chain(bound).collect(),
        ..target.request()
    };
    let connections = match base.shape {
        // A closed loop shows the capacity of a part.
        Loop::Open { connections, .. } => connections.min(CONNECTIONS_DEFAULT),
        Loop::Closed { connections } => connections,
    };
    let shape = Loop::Closed { connections };
    let own = part.kind == PartKind::Own;
    let is_set = |name: &str| !target.is_fastcgi() && part.fields.iter().any(|(field, _)| field.eq_ignore_ascii_case(name));
    let stays = |(name, _): &&(String, String)| own || !(name.eq_ignore_ascii_case("host") || is_set(name));
    let headers = base.headers.iter().filter(stays).cloned();
    let fields = part.fields.iter().filter(|(_, value)| !target.is_fastcgi() && !value.is_empty()).cloned();
    let plan = Plan {
        address,
        protocol: match target.is_fastcgi() {
            true => Protocol::FastCgi { params: part.fields.clone() },
            false => Protocol::Http,
        },
        host_header: part.host.clone(),
        path_and_query: target.path_and_query.clone(),
        method: if own { "GET".to_owned() } else { base.method.clone() },
        body: if own { Vec::new() } else { base.body.clone() },
        headers: headers.chain(fields).collect(),
        shape,
        keep_alive: part.keep_alive.unwrap_or(base.keep_alive),
        netns: namespace(part)?,
        options: Options { tls, ..base.options.clone() },
        ..base.clone()
    };
    plan.check()?;
    Ok(Setup { plan: Some(plan), foreign: whole.foreign, profile: whole.profile, ..Setup::new(request, whole.duration) })
}

/// Where to connect, and the path to which a unix socket was bound. The user named that of the front; any other is named by a configuration, and its path may lead elsewhere at
/// any time: each connection goes to the very socket on which a server of this path listens, or nowhere.
fn place(part: &Part, target: &Target) -> Result<(Address, Option<String>)> {
    match (part.kind, target.unix.first()) {
        (PartKind::Direct, Some(path)) => {
            let seen_by = part.pid.with_context(|| format!("no process is known that connects to {path}"))?;
            let (socket, bound) = listening_socket(&Root::default(), seen_by, path, &part.holders)?;
            Ok((Address::Listening { path: path.as_str().into(), socket: Arc::new(socket) }, bound.filter(|bound| bound != path)))
        }
        _ => Ok((target.address()?, target.unix.get(1).cloned())),
    }
}

/// The namespace from which to reach the part; nothing if this process is in it.
fn namespace(part: &Part) -> Result<Option<PathBuf>> {
    if netns::own()? == part.netns {
        return Ok(None);
    }
    let all = netns::list(&Root::default())?;
    Ok(Some(all.get(part.netns).context("its network namespace no longer exists")?.path.clone()))
}

/// Sends one request. An error if the answer is not as expected: a load would show nothing.
fn check_answer(plan: &Plan, part: &Part, interrupt: &Interrupt) -> Result<()> {
    let one = Plan { shape: Loop::Closed { connections: 1 }, threads: Some(1), requests: Some(1), ..plan.clone() };
    let result = measure::load(&one, &format!("asking {} alone", part.tier), interrupt)?;
    match result.status.keys().next() {
        _ if result.good > 0 => Ok(()),
        Some(status) => bail!("{} was answered with status {status}", plan.path_and_query),
        None => bail!("{} was not answered", plan.path_and_query),
    }
}

/// A path in the file system of a process.
fn path_of_process(pid: Option<u32>, path: &str) -> PathBuf {
    let root = pid.map(|pid| PathBuf::from(format!("/proc/{pid}/root"))).unwrap_or_else(|| PathBuf::from("/"));
    root.join(path.trim_start_matches('/'))
}

/// The name of a static file in the directory of a part: the file whose size is closest to the answer of the whole.
fn file_in(directory: &Path, part: &Part) -> Result<String> {
    let entries = fs::read_dir(directory).with_context(|| format!("{} cannot be read", directory.display()))?;
    let file = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let is_static = Path::new(&name)
            .extension()
            .and_then(|ending| ending.to_str())
            .is_some_and(|ending| part.endings.iter().any(|known| known == ending));
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) && !name.starts_with('.');
        let metadata = fs::metadata(entry.path()).ok()?;
        (is_static && is_plain && metadata.is_file() && (1..=FILE_BYTES_MAX).contains(&metadata.len()))
            .then(|| (metadata.len().abs_diff(part.answer_bytes), name))
    };
    let nearest = entries.flatten().take(NAMES_MAX).filter_map(file).min();
    nearest.map(|(_, name)| name).with_context(|| format!("{} contains no file that nginx sends unchanged", directory.display()))
}
