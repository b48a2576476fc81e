//! The requests for status pages that this program makes, and which lines of a log are theirs: those for the page as it asks for it, and no more than it asked for. Anybody
//! may ask for a page in the same way; what they ask counts as everybody's.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use memchr::memmem;
use serde::{Deserialize, Serialize};

use crate::servers::pages::{ITEM_NGINX, ITEM_OWN_POOL, ITEM_POOL};

/// Most pages whose requests are remembered. Lines of those of further ones count as requests.
const PAGES_MAX: usize = 256;
/// Most requests whose lines have not come yet. A page is asked for at most once a second, and what was not answered for a minute is not logged any more.
const MISSING_MAX: u64 = 60;

/// A page: the process id of its master, and the item of its readings.
type Page = (u32, String);

/// The requests since this program started.
static ASKED: LazyLock<Mutex<BTreeMap<Page, Requests>>> = LazyLock::new(Mutex::default);

#[derive(Debug, Clone)]
struct Requests {
    /// Path and query.
    target: String,
    count: u64,
}

fn all() -> MutexGuard<'static, BTreeMap<Page, Requests>> {
    ASKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a request for a page, before it is made: its line may be read at once.
pub(in crate::servers) fn ask(pid: u32, item: String, target: &str) {
    let mut all = all();
    while all.len() >= PAGES_MAX {
        all.pop_first();
    }
    let requests = all.entry((pid, item)).or_insert_with(|| Requests { target: String::new(), count: 0 });
    target.clone_into(&mut requests.target);
    requests.count += 1;
}

/// Takes back a request that did not reach the server.
pub(in crate::servers) fn take_back(pid: u32, item: String) {
    if let Some(requests) = all().get_mut(&(pid, item)) {
        requests.count = requests.count.saturating_sub(1);
    }
}

/// The requests whose lines a log may have, and how many of them were found there or were made before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::servers) struct OwnRequests {
    /// The master; none if it is not known, as for a log that the user names.
    pid: Option<u32>,
    /// The pools of php-fpm that write the log; none for nginx.
    pools: Vec<String>,
    found: Vec<(Page, u64)>,
}

impl OwnRequests {
    /// Those that are made from now on.
    pub(in crate::servers) fn from_now(pid: Option<u32>, pools: Vec<String>) -> Self {
        let mut own = Self { pid, pools, found: Vec::new() };
        own.found = all().iter().filter(|(page, _)| own.may_have(page)).map(|(page, requests)| (page.clone(), requests.count)).collect();
        own
    }

    /// The lines that are to be expected now.
    pub(in crate::servers) fn lines(&self) -> OwnLines {
        let all = all();
        let expected = all.iter().filter(|(page, _)| self.may_have(page)).map(|(page, requests)| {
            let found = self.found.iter().find(|(known, _)| known == page).map_or(0, |(_, count)| *count);
            let missing = requests.count.saturating_sub(found).min(MISSING_MAX);
            OwnLine { page: page.clone(), target: requests.target.clone(), count: requests.count, missing }
        });
        OwnLines(expected.collect())
    }

    /// Notes which of them were found.
    pub(in crate::servers) fn note(&mut self, lines: &OwnLines) {
        self.found = lines.0.iter().map(|line| (line.page.clone(), line.count - line.missing)).collect();
    }

    fn may_have(&self, (pid, item): &Page) -> bool {
        if self.pid.is_some_and(|own| own != *pid) {
            return false;
        }
        let pool = item.strip_prefix(ITEM_POOL).or_else(|| item.strip_prefix(ITEM_OWN_POOL));
        if self.pools.is_empty() { item == ITEM_NGINX } else { pool.is_some_and(|pool| self.pools.iter().any(|own| own == pool)) }
    }
}

/// Lines of own requests that are expected in a log.
#[derive(Debug, Clone, Default)]
pub(in crate::servers) struct OwnLines(Vec<OwnLine>);

#[derive(Debug, Clone)]
struct OwnLine {
    page: Page,
    target: String,
    /// The requests so far, and those whose lines were not found yet.
    count: u64,
    missing: u64,
}

impl OwnLines {
    /// True if none is expected any more.
    pub(in crate::servers) fn are_all_found(&self) -> bool {
        self.0.iter().all(|line| line.missing == 0)
    }

    /// True for the line of an own request: of this target, path and query. A line that does not tell its target may be any.
    pub(in crate::servers) fn take(&mut self, target: Option<&[u8]>) -> bool {
        self.take_if(|line| target.is_none_or(|target| target == line.target.as_bytes()))
    }

    /// True for the line of an own request for this URI, in a log that may have no queries.
    pub(in crate::servers) fn take_uri(&mut self, uri: &[u8]) -> bool {
        let whole = |line: &OwnLine| uri == line.target.as_bytes();
        let path = |line: &OwnLine| line.target.split('?').next().is_some_and(|path| uri == path.as_bytes());
        self.take_if(|line| whole(line) || path(line))
    }

    /// True for a line of an error log about an own request.
    pub(in crate::servers) fn take_error(&mut self, line: &[u8]) -> bool {
        self.take_if(|own| memmem::find(line, format!("request: \"GET {} HTTP/1.0\"", own.target).as_bytes()).is_some())
    }

    fn take_if(&mut self, is_its: impl Fn(&OwnLine) -> bool) -> bool {
        let found = self.0.iter_mut().find(|line| line.missing > 0 && is_its(line));
        found.map(|line| line.missing -= 1).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_lines_are_own_as_requests_were_made() {
        const PID: u32 = 4_000_001;
        let target = "/status?chokepoint-status";
        ask(PID, ITEM_NGINX.to_owned(), target);
        let mut own = OwnRequests::from_now(Some(PID), Vec::new());
        assert!(own.lines().are_all_found(), "what was asked before is not in the new lines");
        (0..3).for_each(|_| ask(PID, ITEM_NGINX.to_owned(), target));
        take_back(PID, ITEM_NGINX.to_owned());
        let mut lines = own.lines();
        for other in ["/nope?chokepoint-status", "/status", "/status?chokepoint-status&x", "/status?x&chokepoint-status"] {
            assert!(!lines.take(Some(other.as_bytes())), "{other}");
        }
        assert_eq!([(); 3].map(|()| lines.take(Some(target.as_bytes()))), [true, true, false]);
        own.note(&lines);
        assert!(own.lines().are_all_found() && OwnRequests::from_now(Some(PID + 1), Vec::new()).lines().are_all_found());
        ask(PID, ITEM_NGINX.to_owned(), target);
        assert_eq!([None, None].map(|target| own.lines().take(target)), [true, true], "each reading has its own count");
        let text = |target: &str| format!("1#1: *5 access forbidden by rule, client: ::1, server: , request: \"GET {target} HTTP/1.0\"");
        let mut lines = own.lines();
        let errors = [text("/x?chokepoint-status"), text(target), text(target)];
        assert_eq!(errors.map(|line| lines.take_error(line.as_bytes())), [false, true, false]);
        (0..100).for_each(|_| ask(PID, ITEM_NGINX.to_owned(), target));
        let mut lines = own.lines();
        assert_eq!((0..100).filter(|_| lines.take(None)).count() as u64, MISSING_MAX, "old ones are not expected for ever");
    }

    #[test]
    fn a_pool_s_log_has_the_requests_for_its_own_page() {
        const PID: u32 = 4_000_002;
        let own = OwnRequests::from_now(Some(PID), vec!["www".to_owned()]);
        ask(PID, format!("{ITEM_OWN_POOL}www"), "/fpm-status?json&chokepoint-status");
        ask(PID, format!("{ITEM_POOL}other"), "/other?json&chokepoint-status");
        ask(PID, ITEM_NGINX.to_owned(), "/nginx?chokepoint-status");
        let mut lines = own.lines();
        let uris = ["/other", "/nginx", "/fpm-status?full", "/fpm-status", "/fpm-status"];
        assert_eq!(uris.map(|uri| lines.take_uri(uri.as_bytes())), [false, false, false, true, false]);
        assert!(own.lines().take_uri(b"/fpm-status?json&chokepoint-status"));
    }
}
