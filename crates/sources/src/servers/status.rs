//! Source `server_status`: the status page or command socket of a master of a known kind, if its configuration enables one.

mod proxied;

use std::io;
use std::time::{Duration, Instant};

use chokepoint_foreign::{Files, SocketAtPath};
use chokepoint_model::observation::{ListenerAddress, NginxStatus, Observation, PhpFpmStatus, ServerStatus};
use chokepoint_recording::{Entry, Outcome};
use serde::{Deserialize, Serialize};

use super::access::{Access, files};
use super::ask::{self, AskError, Place};
use super::config::{collect, parsed};
use super::held::Held;
use super::logs::asked;
use super::master::master;
use super::pages::{ITEM_NGINX, ITEM_OWN_POOL, ITEM_PROXY, MARK, StatusPage, pages};
use crate::reduction::Reduction;
use crate::root::{Root, WHY_DENIED, reading_of};
use crate::scope::server_view;
use crate::table::{Cadence, Items, Phase, ReadContext, Redact, ScopeKind, Source};

const NAME: &str = "server_status";
/// Time limits for one page and for all pages of one turn.
const PAGE_TIME_MAX: Duration = Duration::from_millis(500);
const TURN_TIME_MAX: Duration = Duration::from_secs(2);
/// Needed to enter the server's network namespace.
const NEEDS: &str = "CAP_SYS_ADMIN";

/// At most once a second, by a thread of its own inside the server's network namespace, since it waits for a response. A refused page is not requested again.
/// A pool that serves its page itself is polled only while no connection waits for it.
pub(crate) const SERVER_STATUS: Source =
    Source { name: NAME, scope: ScopeKind::Server, cadence: Cadence::Slow, needs: Some(NEEDS), read, put, redact: Redact::Reduced };

fn key(pid: u32) -> String {
    format!("{NAME} {pid}")
}

fn read(context: &ReadContext<'_>) -> Items {
    let Some(pid) = context.pid() else { return Vec::new() };
    let kept = || serde_json::from_slice::<Enabled>(&context.notes.get(&key(pid))?).ok();
    let enabled = if context.phase == Phase::First { enabled(context.root, pid) } else { kept() };
    let Some(mut enabled) = enabled.filter(|enabled| !enabled.pages.is_empty()) else { return Vec::new() };
    // A worker may see other files than the master that opened the sockets.
    let Ok(files) = files(context.root, enabled.master) else { return Vec::new() };
    let until = Instant::now() + TURN_TIME_MAX;
    let mut items = Vec::new();
    // Sockets are held before the lists are read with which they are compared: their paths may lead elsewhere at any time.
    let sockets: Vec<_> = enabled.pages.iter().map(|page| socket_of(page, &files, &enabled.access)).collect();
    let (held, uid, mut sockets) = (Held::read(context), enabled.uid, sockets.into_iter());
    enabled.pages.retain(|page| {
        let found = Found { held: held.as_ref(), socket: sockets.next().flatten(), uid };
        let (outcome, again) = ask(context, found, page, until);
        items.push((page.item(), outcome));
        again
    });
    note(context, pid, &enabled);
    items
}

fn note(context: &ReadContext<'_>, pid: u32, enabled: &Enabled) {
    if let Ok(json) = serde_json::to_vec(enabled) {
        context.notes.set(&key(pid), json);
    }
}

/// The unix socket at which a page is, as its path leads there now.
fn socket_of(page: &StatusPage, files: &Files, access: &Access) -> Option<io::Result<SocketAtPath>> {
    match page {
        StatusPage::Nginx { at: ListenerAddress::Unix(path), .. }
        | StatusPage::PhpFpm { at: ListenerAddress::Unix(path), .. }
        | StatusPage::Haproxy { path } => Some(access.locate_socket(files, path)),
        _ => None,
    }
}

/// What was found of the place of a page: the listeners, the unix socket there, and the user of the server.
struct Found<'a> {
    held: Option<&'a Held>,
    socket: Option<io::Result<SocketAtPath>>,
    uid: u32,
}

impl Found<'_> {
    /// Where to ask: at an address, or at the very socket on which the server itself listens.
    fn place(self, at: &ListenerAddress) -> io::Result<Place> {
        const ANOTHER: &str = "the path leads to another socket than the one on which the server listens, so it is not asked";
        let Some(socket) = self.socket else {
            let ListenerAddress::Tcp(ip, port) = at else { return Err(io::Error::other(ANOTHER)) };
            return Ok(Place::Tcp(*ip, *port));
        };
        let socket = socket?;
        let file = socket.file()?;
        match self.held.is_some_and(|held| held.listens_at(file)) {
            true => Ok(Place::Unix(socket.of_listener(file, vec![self.uid])?)),
            false => Err(io::Error::other(ANOTHER)),
        }
    }
}

/// The pages of a master, and the access to its sockets.
#[derive(Serialize, Deserialize)]
struct Enabled {
    pages: Vec<StatusPage>,
    access: Access,
    /// The master and its user.
    master: u32,
    uid: u32,
}

/// Nothing for other processes, and if the configuration cannot be read, which `server_config` reports.
fn enabled(root: &Root, pid: u32) -> Option<Enabled> {
    let master = master(root, pid).ok()??;
    let collected = collect(&files(root, master.pid).ok()?, &master);
    let Outcome::Ok(dump) = &collected.outcome else { return None };
    let (_, parsed) = parsed(&String::from_utf8_lossy(dump)).ok()?;
    let uid = chokepoint_foreign::Identity::of(&root.path("proc"), master.pid).ok()?.uid();
    Some(Enabled { pages: pages(&parsed), access: collected.access_of_all(), master: master.pid, uid })
}

/// Makes the request for a target at a place.
type Request<'a> = dyn Fn(&Place, &str) -> Result<Vec<u8>, AskError> + 'a;

/// Requests a page from the server itself, and from nobody else. Returns the outcome, and whether to request it again later.
fn ask(context: &ReadContext<'_>, found: Found<'_>, page: &StatusPage, until: Instant) -> (Outcome, bool) {
    let absent = |why: &str| Outcome::Absent(why.to_owned(), None);
    let time = until.saturating_duration_since(Instant::now()).min(PAGE_TIME_MAX);
    if time.is_zero() {
        return (absent("there was no time left to read it"), true);
    }
    let held = found.held;
    let (at, target, request): (_, String, &Request) = match page {
        StatusPage::Barred { why, .. } => return (absent(why), false),
        page if context.netns.is_none() && page.needs_netns() => {
            return (Outcome::Absent("its network namespace cannot be entered".to_owned(), Some(NEEDS.to_owned())), false);
        }
        StatusPage::Nginx { at, .. } | StatusPage::PhpFpm { at, .. } if let Some(why) = refused(held, at) => {
            return (Outcome::Absent(why, None), true);
        }
        // HAProxy binds under another name and renames the file: only the file itself tells whose socket it is. It logs no command.
        StatusPage::Haproxy { path } => {
            let at = ListenerAddress::Unix(path.clone());
            return match found.place(&at).map_err(AskError::from).and_then(|place| ask::command(&place, proxied::COMMAND, time)) {
                Ok(answer) => (Outcome::Ok(answer), true),
                Err(error) => lack(page, &at, &error),
            };
        }
        StatusPage::Nginx { at, host, path } => (at, format!("{path}?{MARK}"), &move |place, target| ask::http(place, host, target, time)),
        StatusPage::PhpFpm { at, own: true, .. } if held.and_then(|held| held.queued(at)) != Some(0) => {
            return (absent("connections wait for the pool's workers, and the page would need one of them"), true);
        }
        StatusPage::PhpFpm { at, path, .. } => {
            (at, format!("{path}?json&{MARK}"), &move |place, _| ask::fastcgi(place, path, &format!("json&{MARK}"), time))
        }
    };
    let answer = found.place(at).map_err(AskError::from);
    match answer.and_then(|place| counted(context, page, &target, || request(&place, &target))) {
        Ok(body) => (Outcome::Ok(body), true),
        Err(error) => lack(page, at, &error),
    }
}

/// Makes a request for a page, which is counted: the server may log it.
fn counted<T>(
    context: &ReadContext<'_>,
    page: &StatusPage,
    target: &str,
    ask: impl FnOnce() -> Result<T, AskError>,
) -> Result<T, AskError> {
    let pid = context.pid().unwrap_or_default();
    asked::ask(pid, page.item(), target);
    let answer = ask();
    let has_asked = match &answer {
        Err(AskError::Closed) => false,
        Err(AskError::System(error)) => matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock),
        _ => true,
    };
    if !has_asked {
        asked::take_back(pid, page.item());
    }
    answer
}

/// Why a page at this address is not asked for.
fn refused(held: Option<&Held>, at: &ListenerAddress) -> Option<String> {
    let unread = || Some("whether the server itself listens there cannot be read, so it is not asked".to_owned());
    held.map_or_else(unread, |held| held.refuses(at))
}

fn lack(page: &StatusPage, at: &ListenerAddress, error: &AskError) -> (Outcome, bool) {
    let is_pool = matches!(page, StatusPage::PhpFpm { .. });
    let (why, again) = match error {
        // After an error of the client, further requests would fail too and add lines to the server's log.
        AskError::Status(status) => (error.to_string(), *status >= 500),
        AskError::Broken(_) => (error.to_string(), false),
        // nginx closes if it has no free connection, php-fpm if this client is not in listen.allowed_clients.
        AskError::Closed => (error.to_string(), !is_pool),
        AskError::System(system) => match system.kind() {
            io::ErrorKind::PermissionDenied => {
                return (Outcome::Absent(format!("{at}: {WHY_DENIED}"), Some("CAP_DAC_OVERRIDE".to_owned())), false);
            }
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                let whose = if is_pool { "no worker was free" } else { "no answer" };
                (format!("{whose} for {} ms", PAGE_TIME_MAX.as_millis()), true)
            }
            _ => (system.to_string(), true),
        },
    };
    (Outcome::Absent(format!("{at}: {why}"), None), again)
}

fn put(observation: &mut Observation, entry: &Entry) {
    let (is_nginx, is_proxy) = (entry.item == ITEM_NGINX, entry.item == ITEM_PROXY);
    let own = entry.item.starts_with(ITEM_OWN_POOL);
    let reading = reading_of(&entry.outcome, |bytes| {
        if is_proxy {
            proxied::parse(bytes).map(ServerStatus::Proxied)
        } else if is_nginx {
            nginx(&String::from_utf8_lossy(bytes)).map(ServerStatus::Nginx)
        } else {
            php_fpm(bytes, own).map(ServerStatus::PhpFpm)
        }
    });
    if let Some(server) = server_view(observation, entry) {
        server.status.entry(entry.item.clone()).or_default().push(entry.at_us, reading);
    }
}

/// Reduces a status page to the parsed figures. A page of another form becomes a failure without its text.
pub(crate) fn reduced(item: &str, bytes: &[u8], reduction: &mut Reduction) -> Outcome {
    if item == ITEM_PROXY {
        return proxied::reduced(bytes, reduction);
    }
    let other = || Outcome::Failed("the page has an unknown format; its text is not recorded".to_owned(), None);
    if item == ITEM_NGINX {
        let Ok(page) = nginx(&String::from_utf8_lossy(bytes)) else { return other() };
        let [accepts, handled, requests] = [page.accepts, page.handled, page.requests];
        let text = format!(
            "Active connections: {} \nserver accepts handled requests\n {accepts} {handled} {requests} \nReading: {} Writing: {} Waiting: {} \n",
            page.active, page.reading, page.writing, page.waiting
        );
        return Outcome::Ok(text.into_bytes());
    }
    let Ok(mut page) = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(bytes) else { return other() };
    let all = page.len();
    page.retain(|name, _| POOL_FIELDS.contains(&name.as_str()));
    reduction.page_values += all - page.len();
    serde_json::to_vec(&page).map_or_else(|_| other(), Outcome::Ok)
}

/// The parsed keys of the page. All are numbers except the pool's name.
const POOL_FIELDS: [&str; 11] = [
    "pool",
    "accepted conn",
    "listen queue",
    "max listen queue",
    "listen queue len",
    "idle processes",
    "active processes",
    "total processes",
    "max active processes",
    "max children reached",
    "slow requests",
];

/// Parses the page of `stub_status`: four lines, the last ending with a line feed. Extra columns of forks (Tengine's request_time) are ignored.
fn nginx(text: &str) -> Result<NginxStatus, String> {
    let wrong = |what: &str| format!("expected {what} of stub_status, found {:?}", text.chars().take(80).collect::<String>());
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let ([connections, names, counts, states, ..], true) = (lines.as_slice(), text.ends_with('\n')) else {
        return Err(wrong("four lines"));
    };
    let number = |text: &str| text.parse::<u64>().map_err(|_| wrong("a number"));
    let active = connections.strip_prefix("Active connections: ").ok_or_else(|| wrong("\"Active connections\""))?;
    if !names.starts_with("server accepts handled requests") {
        return Err(wrong("\"server accepts handled requests\""));
    }
    let counts: Vec<&str> = counts.split_ascii_whitespace().collect();
    let [accepts, handled, requests, ..] = counts[..] else { return Err(wrong("three counts")) };
    let words: Vec<&str> = states.split_ascii_whitespace().collect();
    let ["Reading:", reading, "Writing:", writing, "Waiting:", waiting, ..] = words[..] else { return Err(wrong("\"Reading\"")) };
    Ok(NginxStatus {
        active: number(active.trim())?,
        accepts: number(accepts)?,
        handled: number(handled)?,
        requests: number(requests)?,
        reading: number(reading)?,
        writing: number(writing)?,
        waiting: number(waiting)?,
    })
}

/// The page's JSON. Other keys, which differ by version, are ignored.
#[derive(Deserialize)]
struct Pool {
    pool: String,
    #[serde(rename = "accepted conn")]
    accepted: u64,
    #[serde(rename = "listen queue")]
    listen_queue: u64,
    #[serde(rename = "max listen queue")]
    max_listen_queue: u64,
    #[serde(rename = "listen queue len")]
    listen_queue_len: u64,
    #[serde(rename = "idle processes")]
    idle: u64,
    #[serde(rename = "active processes")]
    active: u64,
    #[serde(rename = "total processes")]
    total: u64,
    #[serde(rename = "max active processes")]
    max_active: u64,
    #[serde(rename = "max children reached")]
    max_children_reached: u64,
    #[serde(rename = "slow requests")]
    slow_requests: u64,
}

/// Parses the page of a pool. If a worker of the pool served it, that worker counts as active on the page and is subtracted.
fn php_fpm(bytes: &[u8], own: bool) -> Result<PhpFpmStatus, String> {
    let pool: Pool = serde_json::from_slice(bytes).map_err(|error| format!("the page of pm.status_path: {error}"))?;
    let ours = u64::from(own && pool.active > 0);
    Ok(PhpFpmStatus {
        pool: pool.pool,
        accepted: pool.accepted,
        listen_queue: pool.listen_queue,
        max_listen_queue: pool.max_listen_queue,
        listen_queue_len: pool.listen_queue_len,
        idle: pool.idle.saturating_add(ours),
        active: pool.active - ours,
        total: pool.total,
        max_active: pool.max_active,
        max_children_reached: pool.max_children_reached,
        slow_requests: pool.slow_requests,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use chokepoint_recording::Scope;
    use proptest::prelude::*;

    /// Captured from nginx 1.22.1 and PHP 8.2.
    const NGINX: &str = include_str!("../../tests/data/status/nginx-1.22.txt");
    const PHP_FPM: &str = include_str!("../../tests/data/status/php-fpm-8.2.json");

    #[test]
    fn captured_pages_are_parsed() {
        let found = nginx(NGINX).unwrap();
        assert_eq!((found.active, found.accepts, found.handled, found.requests), (3, 24, 7, 7));
        assert_eq!((found.reading, found.writing, found.waiting), (2, 1, 0));
        let apart = php_fpm(PHP_FPM.as_bytes(), false).unwrap();
        assert_eq!((apart.pool.as_str(), apart.accepted, apart.active, apart.idle, apart.total), ("www", 13, 3, 0, 3));
        assert_eq!((apart.listen_queue, apart.max_listen_queue, apart.listen_queue_len), (6, 6, 128));
        assert_eq!((apart.max_children_reached, apart.max_active, apart.slow_requests), (1, 3, 0));
        let own = php_fpm(PHP_FPM.as_bytes(), true).unwrap();
        assert_eq!((own.active, own.idle, own.total), (2, 1, 3), "without the worker that answered");
    }

    #[test]
    fn pages_of_forks_and_other_versions_are_parsed() {
        let tengine = NGINX.replace("requests", "requests request_time").replace(" 7 7 ", " 7 7 881 ");
        assert_eq!(nginx(&tengine).unwrap(), nginx(NGINX).unwrap());
        let newer = PHP_FPM.replace("\"pool\"", "\"memory peak\":2097152,\"pool\"");
        assert_eq!(php_fpm(newer.as_bytes(), false), php_fpm(PHP_FPM.as_bytes(), false));
    }

    #[test]
    fn other_pages_and_cut_pages_are_errors() {
        for text in
            ["", "\n\n\n\n", "<html>\n<h1>Welcome\n\n\n", &NGINX.replace(": 3", ": -3"), &NGINX.replace("24", "99999999999999999999")]
        {
            assert!(nginx(text).is_err(), "{text}");
        }
        for end in 0..NGINX.len() {
            assert!(nginx(&NGINX[..end]).is_err(), "{end}");
        }
        for end in 0..PHP_FPM.trim_end().len() {
            assert!(php_fpm(&PHP_FPM.as_bytes()[..end], true).is_err(), "{end}");
        }
        assert!(php_fpm(PHP_FPM.replace("\"idle processes\"", "\"idle\"").as_bytes(), true).unwrap_err().contains("idle processes"));
    }

    #[test]
    fn a_missing_page_is_absent_and_not_zero() {
        let mut observation = Observation::default();
        let mut add = |at_us, item: &str, outcome| {
            put(&mut observation, &Entry { at_us, source: NAME.into(), scope: Scope::Process(7), item: item.into(), outcome });
        };
        add(1, "own pool www", Outcome::Absent("no worker was free".into(), None));
        add(2, "own pool www", Outcome::Ok(PHP_FPM.into()));
        add(3, "nginx", Outcome::Ok(b"Forbidden".to_vec()));
        let server = &observation.servers[&7];
        assert_eq!(server.pool_status("www").unwrap().0.points().len(), 1);
        assert!(server.nginx_status().unwrap().last().is_none() && server.pool_status("other").is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in "(Active connections: |[0-9]{1,22}|server accepts handled requests|Reading:| Writing: |\n|\\{\"pool\":){0,12}", own: bool) {
            let _ = (nginx(&String::from_utf8_lossy(&bytes)), nginx(&text), php_fpm(&bytes, own), php_fpm(text.as_bytes(), own));
        }
    }
}
