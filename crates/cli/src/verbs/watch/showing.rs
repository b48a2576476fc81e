//! Shows what is watched to other programs: metrics and a JSON API, over HTTP.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use chokepoint_dashboard::{Archive, Board, Listen, Place, Profiles, Seen, Server, UserOf};
use chokepoint_foreign::Holder;
use chokepoint_model::catalogue::Catalogue;
use chokepoint_recorder::Sample;
use chokepoint_recorder::incident::{Incident, State};
use chokepoint_runs::{Filter, History, KeptProfiles, Run, RunsError, SamplePlace, Store};
use chokepoint_sources::TcpUsers;
use serde_json::json;

use super::config::Settings;
use super::saying;
use super::seconds::{Look, LookedTarget};
use crate::Usage;
use crate::report::page::{comparison, flame};
use crate::run::keeping;
use crate::terminal::output;
use crate::verbs::incidents::kept_list;
use crate::verbs::runs::with_earlier;

/// Where it listens if nothing else is asked for: the port that OpenTelemetry's Prometheus exporters use.
const LISTEN: &str = "127.0.0.1:9464";
/// Time between two deliveries to a collector.
const EXPORT_PERIOD: Duration = Duration::from_secs(10);
/// Most runs of the list.
const RUNS_MAX: u32 = 200;
/// Begins the name of a unix socket.
const UNIX: &str = "unix:";
/// Listens nowhere.
const OFF: &str = "off";

/// What is shown.
pub(super) struct Showing {
    board: Arc<Board>,
    kept: Arc<Kept>,
    server: Option<Server>,
    exporter: Option<Exporter>,
}

/// Whose the clients of loopback are. Where the kernel does not tell, nobody is trusted.
fn users() -> Arc<UserOf> {
    let users = TcpUsers::open().ok().map(Mutex::new);
    Arc::new(move |client, own| {
        let uid = users.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).of(client, own)?;
        Some(charged(uid, Holder::of_user(uid)))
    })
}

/// The user id under which a client has its share: user ids that were granted to somebody share one, which is never root's or that of this program.
fn charged(uid: u32, holder: Holder) -> u32 {
    let shared = match holder {
        Holder::User(user) | Holder::Granted(user) => user,
        Holder::Namespace(_) | Holder::Unknown => uid,
    };
    if Holder::User(shared).is_own() { uid } else { shared }
}

/// Posts metrics to a collector in a thread of its own, until it is dropped. Nobody waits for the thread: the collector may hang.
struct Exporter {
    _stop: Sender<()>,
}

impl Exporter {
    fn start(url: String, board: Arc<Board>) -> Self {
        let (stop, stopped) = channel();
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let now_ns = || u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()).unwrap_or(u64::MAX);
        let started_ns = now_ns();
        let export = move || {
            let mut failed = None;
            while stopped.recv_timeout(EXPORT_PERIOD) == Err(RecvTimeoutError::Timeout) {
                let why = chokepoint_dashboard::deliver(&url, &board, &host, (started_ns, now_ns())).err().map(|error| error.to_string());
                // A failure is told when it begins.
                if let Some(why) = why.as_ref().filter(|why| failed.as_ref() != Some(*why)) {
                    output::note(&format!("note: metrics were not delivered to {url}: {why}"));
                }
                failed = why;
            }
        };
        if let Err(error) = std::thread::Builder::new().name("exporter".to_owned()).spawn(export) {
            output::note(&format!("note: metrics are not delivered: {error}"));
        }
        Self { _stop: stop }
    }
}

impl Showing {
    /// Begins to listen.
    pub(super) fn begin(settings: &Settings, board: Arc<Board>, directory: PathBuf, words: &Catalogue) -> Result<Self> {
        let mut showing = Self {
            board,
            kept: Arc::new(Kept { history: directory, runs: keeping::directory(words).ok(), words: Catalogue::english() }),
            server: None,
            exporter: None,
        };
        showing.board.about(&saying::about(&rustix::system::uname().nodename().to_string_lossy(), words));
        showing.server = showing.listen(settings)?;
        showing.exporter = showing.export(settings);
        Ok(showing)
    }

    /// Where the page is in a browser; nothing at a unix socket.
    pub(super) fn address(&self) -> Option<String> {
        self.server.as_ref().and_then(address_of)
    }

    /// Takes other settings. The old address is closed once the new one is open.
    pub(super) fn again(&mut self, before: &Settings, now: &Settings) -> Result<()> {
        if before.file.listen != now.file.listen || before.file.protection()? != now.file.protection()? {
            if before.file.listen == now.file.listen {
                // The address is the same: it must be free first.
                self.server = None;
            }
            self.server = self.listen(now)?;
        } else if let (Some(server), Some(files)) = (&self.server, now.file.protection()?) {
            // The files may have been renewed.
            server.renew(&files)?;
        }
        if before.file.otlp != now.file.otlp {
            self.exporter = self.export(now);
        }
        Ok(())
    }

    /// An address that was not asked for may be taken: then it is a note.
    fn listen(&self, settings: &Settings) -> Result<Option<Server>> {
        let asked = settings.file.listen.as_deref();
        let Some(listen) = parse(asked.unwrap_or(LISTEN))? else { return Ok(None) };
        let protection = settings.file.protection()?;
        let archive = Arc::clone(&self.kept) as Arc<dyn Archive>;
        match Server::start_among(&listen, protection.as_ref(), Some(users()), Arc::clone(&self.board), archive) {
            Ok(server) => {
                if let (Some(address), Some(token)) = (address_of(&server), server.token()) {
                    output::note(&format!("note: users other than root and the one who started this open {address}?token={token} once"));
                }
                match (address_of(&server), &listen) {
                    (Some(address), _) => output::note(&format!("note: the page is at {address}, metrics at {address}metrics")),
                    (None, Listen::Unix(path)) => {
                        output::note(&format!("note: the page and metrics are at the unix socket {}", path.display()))
                    }
                    (None, Listen::Tcp(_)) => {}
                }
                Ok(Some(server))
            }
            Err(error) if asked.is_none() => {
                output::note(&format!("note: no metrics are served: {error}"));
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn export(&self, settings: &Settings) -> Option<Exporter> {
        settings.file.otlp.clone().map(|url| Exporter::start(url, Arc::clone(&self.board)))
    }

    /// Shows a second.
    pub(super) fn second(&self, look: &Look, sample: &Sample, said: String) {
        let nginx: BTreeMap<_, _> =
            look.targets.iter().filter_map(|target| Some((target.sample.target.clone(), target.nginx.clone()?))).collect();
        let of = |target: &LookedTarget| target.sample.target.clone();
        let fpm = look.targets.iter().filter(|target| !target.fpm.is_empty()).map(|target| (of(target), target.fpm.clone())).collect();
        let amplify = look.targets.iter().map(|target| (of(target), target.amplify.clone())).collect();
        let values = look.targets.iter().map(|target| (of(target), target.values.clone())).collect();
        let ages = look.targets.iter().filter_map(|target| Some((of(target), target.age?))).collect();
        self.board.see(Seen { sample: sample.clone(), said, nginx, fpm, amplify, values, age: look.age(), ages });
    }

    /// Shows what was found at the paths of the servers.
    pub(super) fn looked(&self, document: &str) {
        self.board.looked(document);
    }

    /// Shows a minute.
    pub(super) fn minute(&self, minute: &Sample) {
        self.board.see_minute(minute);
    }

    /// Counts an incident when it is told, and when it is over.
    pub(super) fn incident(&self, incident: &Incident) {
        self.board.incident(&incident.drop.target, incident.state != State::Over);
    }
}

fn address_of(server: &Server) -> Option<String> {
    let scheme = if server.is_protected() { "https" } else { "http" };
    server.address().map(|address| format!("{scheme}://{address}/"))
}

/// Nothing: it is not to listen.
pub(super) fn parse(text: &str) -> Result<Option<Listen>> {
    if text == OFF {
        return Ok(None);
    }
    if let Some(path) = text.strip_prefix(UNIX) {
        return Ok(Some(Listen::Unix(path.into())));
    }
    let address = text
        .parse()
        .map_err(|_| Usage(format!("\"{text}\" is no address to listen at: write 127.0.0.1:9464, unix:/run/chokepoint.sock or off")))?;
    Ok(Some(Listen::Tcp(address)))
}

/// What is kept in two directories, opened anew for each request: it is read rarely.
struct Kept {
    history: PathBuf,
    /// None without a directory for the state of this user.
    runs: Option<PathBuf>,
    words: Catalogue,
}

impl Kept {
    fn history(&self) -> Result<History, String> {
        let history = History::open_existing(&self.history).map_err(|error| error.to_string())?;
        history.ok_or_else(|| "nothing is kept yet".to_owned())
    }

    fn runs(&self) -> Result<Option<Store>, String> {
        let Some(directory) = &self.runs else { return Ok(None) };
        Store::open_existing(directory).map_err(|error| error.to_string())
    }

    /// A run and where it is kept; nothing if there is none.
    fn kept_run(&self, id: i64) -> Result<Option<(Store, Run)>, String> {
        let Some(store) = self.runs()? else { return Ok(None) };
        match store.get(id) {
            Ok(run) => Ok(Some((store, run))),
            Err(RunsError::NoRun { .. }) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Archive for Kept {
    fn begin(&self, span_s: u32, from_s: u64, to_s: u64, most: u32) -> Result<Place, String> {
        let place = self.history()?.begin_of_samples(span_s, from_s, to_s, most).map_err(|error| error.to_string())?;
        Ok((place.at, place.id))
    }

    fn samples(&self, span_s: u32, (at, id): Place, to_s: u64, give: &mut dyn FnMut(Place, String) -> bool) -> Result<(), String> {
        let give = |next: SamplePlace, sample| give((next.at, next.id), sample);
        self.history()?.visit_samples(span_s, SamplePlace { at, id }, to_s, give).map_err(|error| error.to_string())
    }

    fn incidents(&self) -> Result<String, String> {
        kept_list(&self.history()?, false, u32::MAX).map(|(list, _)| list.to_string()).map_err(|error| output::once(&error))
    }

    fn incident(&self, id: i64) -> Result<Option<String>, String> {
        match self.history()?.incident(id) {
            Ok(incident) => Ok(Some(incident.json)),
            Err(RunsError::NoIncident { .. }) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    fn runs(&self) -> Result<String, String> {
        let filter = Filter { limit: Some(RUNS_MAX), ..Filter::default() };
        let runs = self.runs()?.map(|store| store.list(&filter)).transpose().map_err(|error| error.to_string())?.unwrap_or_default();
        Ok(json!({ "runs": runs }).to_string())
    }

    fn run(&self, id: i64) -> Result<Option<String>, String> {
        let Some((_, Run { run, .. })) = self.kept_run(id)? else { return Ok(None) };
        // The document is the verb's own, kept as it was printed.
        let (document, page) = keeping::parts(&run.document);
        // Of a profile both would be large.
        let page = page.or_else(|| flame::of_document(&document));
        let (kind, began, target, headline) = (run.kind, run.began, run.target, run.headline);
        let run =
            json!({ "id": id, "kind": kind, "began": began, "target": target, "headline": headline, "document": document, "page": page });
        Ok(Some(run.to_string()))
    }

    fn comparison(&self, id: i64) -> Result<Option<String>, String> {
        let Some((store, run)) = self.kept_run(id)? else { return Ok(None) };
        let comparison = with_earlier(&store, &run, &self.words).map_err(|error| output::once(&error))?;
        Ok(Some(comparison::page(&comparison, &self.words).json().to_string()))
    }

    fn profiles(&self, id: i64) -> Result<Option<Profiles>, String> {
        match self.history()?.profiles(id) {
            Ok(profiles) => Ok(profiles.map(|KeptProfiles { before, during }| Profiles { before, during })),
            Err(RunsError::NoIncident { .. }) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    fn flame(&self, id: i64) -> Result<Option<String>, String> {
        let history = self.history()?;
        let (profiles, incident) = match (history.profiles(id), history.incident(id)) {
            (Ok(Some(profiles)), Ok(incident)) => (profiles, incident),
            (Ok(None) | Err(RunsError::NoIncident { .. }), _) => return Ok(None),
            (Err(error), _) | (_, Err(error)) => return Err(error.to_string()),
        };
        let incident: Incident = serde_json::from_str(&incident.json).map_err(|error| error.to_string())?;
        let page = flame::of_incident(&profiles, &Incident { id, ..incident }, &self.words).map_err(|error| error.to_string())?;
        Ok(Some(page.json().to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_a_socket_or_nothing() {
        assert_eq!(parse("off").unwrap(), None);
        assert_eq!(parse("unix:/run/x.sock").unwrap(), Some(Listen::Unix("/run/x.sock".into())));
        assert_eq!(parse("[::1]:0").unwrap(), Some(Listen::Tcp("[::1]:0".parse().unwrap())));
        for text in ["localhost:9464", "9464", ":9464", ""] {
            assert!(parse(text).unwrap_err().to_string().contains("is no address"), "{text}");
        }
    }
    #[test]
    fn granted_user_ids_have_one_share_and_nobody_becomes_root() {
        let own = rustix::process::getuid().as_raw();
        assert_eq!(charged(100_007, Holder::User(4001)), 4001);
        assert_eq!([100_007, 100_008].map(|uid| charged(uid, Holder::Granted(100_000))), [100_000; 2]);
        for shared in [Holder::Granted(0), Holder::User(own), Holder::Unknown] {
            assert_eq!(charged(100_007, shared), 100_007, "{shared}");
        }
        assert_eq!(charged(0, Holder::User(0)), 0);
    }
}
