//! Effective directives of one level by nginx's rule of inheritance: a level that sets a directive replaces it completely, other levels inherit it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::directives::default_of;
use super::version::Version;
use crate::{Setting, SourceLine, quantity};

/// One use of a directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// Its arguments.
    pub args: Vec<String>,
    /// Its position.
    pub place: SourceLine,
}

impl Occurrence {
    /// The argument at `index`, or "" if there is none.
    pub fn arg(&self, index: usize) -> &str {
        self.args.get(index).map_or("", String::as_str)
    }

    /// The value of a `name=value` argument.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.args.iter().find_map(|arg| arg.strip_prefix(name)?.strip_prefix('='))
    }

    /// Whether an argument equals this word.
    pub fn has(&self, word: &str) -> bool {
        self.args.iter().any(|arg| arg == word)
    }
}

/// The effective simple directives of one block: its own, and the inherited ones.
///
/// The rule holds for single values (`keepalive_timeout`) and for lists (`access_log`, `proxy_set_header`, `limit_req`) alike. It does not hold for
/// directives that belong to one block only. For those use [`Settings::own`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    level: Arc<Level>,
    version: Version,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Level {
    own: BTreeMap<String, Vec<Occurrence>>,
    outer: Option<Arc<Level>>,
}

impl Settings {
    pub(crate) fn new(own: BTreeMap<String, Vec<Occurrence>>, outer: Option<&Self>, version: Version) -> Self {
        let outer = outer.map(|settings| Arc::clone(&settings.level));
        Self { level: Arc::new(Level { own, outer }), version }
    }

    /// The version whose defaults apply.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Every use of a directive in the innermost block that uses it.
    pub fn all(&self, name: &str) -> &[Occurrence] {
        let mut level = Some(&self.level);
        while let Some(current) = level {
            if let Some(found) = current.own.get(name) {
                return found;
            }
            level = current.outer.as_ref();
        }
        &[]
    }

    /// The uses of a directive in this block itself.
    pub fn own(&self, name: &str) -> &[Occurrence] {
        self.level.own.get(name).map_or(&[], Vec::as_slice)
    }

    /// The first use of any of these directives in the innermost block that uses one: its name, the use, and whether it is in this block itself.
    /// For alternative directives (`root`, `alias`).
    pub(crate) fn nearest(&self, names: &[&'static str]) -> Option<(&'static str, &Occurrence, bool)> {
        let mut level = Some(&self.level);
        while let Some(current) = level {
            let found = names.iter().find_map(|name| Some((*name, current.own.get(*name)?.first()?)));
            if let Some((name, occurrence)) = found {
                return Some((name, occurrence, Arc::ptr_eq(current, &self.level)));
            }
            level = current.outer.as_ref();
        }
        None
    }

    /// The first effective use. nginx refuses a second one of a directive with a single value.
    pub fn one(&self, name: &str) -> Option<&Occurrence> {
        self.all(name).first()
    }

    /// The first effective argument, else nginx's default; `None` without either.
    pub fn word(&self, name: &str) -> Option<Setting<String>> {
        match self.one(name) {
            Some(found) => Some(Setting::set(found.arg(0).to_owned(), found.place.clone())),
            None => default_of(name, self.version).map(|value| Setting::default_of(value.split(' ').next().unwrap_or_default().to_owned())),
        }
    }

    /// All effective arguments, else nginx's default; `None` without either.
    pub fn words(&self, name: &str) -> Option<Setting<Vec<String>>> {
        match self.one(name) {
            Some(found) => Some(Setting::set(found.args.clone(), found.place.clone())),
            None => default_of(name, self.version).map(|value| Setting::default_of(value.split(' ').map(str::to_owned).collect())),
        }
    }

    /// An `on`/`off` directive; `None` also if the value is another word (`ssl_stapling`, `gzip_static always`).
    pub fn flag(&self, name: &str) -> Option<Setting<bool>> {
        read(self.word(name)?, quantity::flag)
    }

    /// A plain number; `None` if it is another word (`worker_processes auto`).
    pub fn number(&self, name: &str) -> Option<Setting<u64>> {
        read(self.word(name)?, quantity::number)
    }

    /// A size in bytes.
    pub fn bytes(&self, name: &str) -> Option<Setting<u64>> {
        read(self.word(name)?, quantity::size_bytes)
    }

    /// A time in milliseconds.
    pub fn time_ms(&self, name: &str) -> Option<Setting<u64>> {
        read(self.word(name)?, quantity::time_ms)
    }

    /// Number and size of buffers, as `proxy_buffers 8 4k`.
    pub fn buffers(&self, name: &str) -> Option<Setting<(u64, u64)>> {
        read(self.words(name)?, |words: &Vec<String>| match words.as_slice() {
            [count, size] => Some((quantity::number(count)?, quantity::size_bytes(size)?)),
            _ => None,
        })
    }

    /// `keepalive_timeout` towards clients in milliseconds; 0 means that connections are not kept.
    pub fn keepalive_timeout_ms(&self) -> Option<Setting<u64>> {
        self.time_ms("keepalive_timeout")
    }

    /// `ssl_session_cache`: whether sessions are kept in memory that all workers share, and its bytes.
    pub fn ssl_session_cache_shared_bytes(&self) -> Option<Setting<Option<u64>>> {
        let words = self.words("ssl_session_cache")?;
        let shared = words.value.iter().find_map(|word| word.strip_prefix("shared:")?.rsplit_once(':'));
        let bytes = shared.and_then(|(_, size)| quantity::size_bytes(size));
        Some(words.map(|_| bytes))
    }
}

fn read<T: std::borrow::Borrow<B>, B: ?Sized, U>(setting: Setting<T>, form: impl Fn(&B) -> Option<U>) -> Option<Setting<U>> {
    let value = form(setting.value.borrow())?;
    Some(Setting { value, origin: setting.origin })
}
