//! A pool on a unix socket: a second pool with the same settings, which serves while requests move there, and the move of the pool itself.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use thiserror::Error;

use super::{EditError, Editor};
use crate::Node;
use crate::edit::{Replacement, line_end, line_ending, line_start};
use crate::php_fpm::effective::{Fpm, Pool};
use crate::php_fpm::file::Kind;
use crate::php_fpm::listen::Listen;

/// Prefix of the name of a second pool.
const SECOND_PREFIX: &str = "chokepoint_";
/// The rights on the socket: its owner, and the owner's group.
const MODE: &str = "0660";
/// Keys of a pool that a second pool must not share: it has its own address, and two pools cannot both have the address of a status page.
const OWN_KEYS: &[&str] = &[
    "listen",
    "listen.acl_groups",
    "listen.acl_users",
    "listen.allowed_clients",
    "listen.group",
    "listen.mode",
    "listen.owner",
    "pm.status_listen",
];
/// Keys in force for a socket that take the place of its owner and mode.
const ACCESS_LISTS: &[&str] = &["listen.acl_users", "listen.acl_groups"];

/// A unix socket of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolSocket {
    /// Its path, absolute.
    pub path: String,
    /// The user that may connect (`listen.owner`).
    pub owner: String,
}

impl fmt::Display for PoolSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unix:{} owner={}", self.path, self.owner)
    }
}

/// The text is not of the form "unix:/run/php/www.sock owner=www-data".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("it does not look like \"unix:/run/php/www.sock owner=www-data\"")]
pub struct NoPoolSocket;

impl FromStr for PoolSocket {
    type Err = NoPoolSocket;

    fn from_str(text: &str) -> Result<Self, NoPoolSocket> {
        let mut words = text.split(' ');
        let mut word =
            |name: &str| words.next().and_then(|word| word.strip_prefix(name)).filter(|rest| !rest.is_empty()).ok_or(NoPoolSocket);
        let (path, owner) = (word("unix:")?, word("owner=")?);
        let fits = path.starts_with('/') && words.next().is_none();
        if fits { Ok(Self { path: path.to_owned(), owner: owner.to_owned() }) } else { Err(NoPoolSocket) }
    }
}

impl PoolSocket {
    fn of(pool: &Pool) -> Option<Self> {
        let Listen::Unix(path) = pool.listen()?.value else { return None };
        let owner = pool.text("listen.owner").map(|owner| owner.value).unwrap_or_default();
        Some(Self { path, owner })
    }

    fn keys(&self) -> [(&'static str, String); 3] {
        [("listen", self.path.clone()), ("listen.owner", self.owner.clone()), ("listen.mode", MODE.to_owned())]
    }
}

/// The name of the second pool of a pool.
pub fn second_pool_name(pool: &str) -> String {
    format!("{SECOND_PREFIX}{pool}")
}

/// The socket of the second pool of a pool, if it has one; `None` if there is no such pool.
pub fn second_pool(fpm: &Fpm, pool: &str) -> Option<Option<PoolSocket>> {
    let pool = fpm.pool(pool)?;
    Some(fpm.pool(&second_pool_name(&pool.name)).and_then(PoolSocket::of))
}

/// Where a pool listens: its address, or its socket with its owner.
pub fn pool_listen(fpm: &Fpm, pool: &str) -> Option<String> {
    let pool = fpm.pool(pool)?;
    PoolSocket::of(pool).map(|socket| socket.to_string()).or_else(|| pool.listen().map(|listen| listen.value.to_string()))
}

impl Editor<'_> {
    /// Adds a pool on a unix socket with the other settings of a pool, below it.
    pub fn add_second_pool(&mut self, fpm: &Fpm, pool: &str, socket: &PoolSocket) -> Result<(), EditError> {
        let lines = self.whole_section(fpm, pool)?;
        let name = second_pool_name(pool);
        if fpm.pool(&name).is_some() {
            return Err(self.unfit(pool, &format!("there is a pool [{name}] already")));
        }
        if fpm.global.number("process.max").is_some_and(|most| most.value > 0) {
            return Err(self.unfit(pool, "process.max may leave no room for the workers of a second pool"));
        }
        let Some(last) = lines.last() else { return Err(EditError::NoSection(pool.to_owned())) };
        let text = self.tree.files()[last.file].text();
        let (at, ending) = (line_end(text, self.tree.entry(*last).span.end), line_ending(text, self.tree.entry(*last).span.start));
        let copied = lines.iter().filter_map(|node| {
            let Kind::Set { key, index, value_span, .. } = &self.tree.entry(*node).kind else { return None };
            let lower = key.to_ascii_lowercase();
            let is_own = OWN_KEYS.contains(&lower.as_str());
            let bracket = index.as_ref().map_or_else(String::new, |index| format!("[{index}]"));
            // Without the comments, which a recording does not keep.
            let line = format!("{key}{bracket} = {}", text[value_span.clone()].replace("$pool", pool));
            (!is_own).then(|| line.trim_end().to_owned())
        });
        let own = socket.keys().into_iter().map(|(key, value)| format!("{key} = {}", super::quoted(&value)));
        let all = std::iter::once(format!("[{name}]")).chain(copied).chain(own);
        let mut added: String = if text[..at].ends_with('\n') { String::new() } else { ending.to_owned() };
        added.push_str(ending);
        all.for_each(|line| added.extend([line.as_str(), ending]));
        self.push(last.file, Replacement { span: at..at, text: added });
        Ok(())
    }

    /// Moves a pool to a unix socket, and removes its second pool.
    pub fn move_to_socket(&mut self, fpm: &Fpm, pool: &str, socket: &PoolSocket) -> Result<(), EditError> {
        self.whole_section(fpm, pool)?;
        for (key, value) in socket.keys() {
            self.set(pool, key, &value)?;
        }
        let name = second_pool_name(pool);
        if fpm.pool(&name).is_none() {
            return Ok(());
        }
        let lines = self.whole_section(fpm, &name)?;
        if let (Some(first), Some(last)) = (lines.first(), lines.last()) {
            let span = self.lines_with_blank_before(*first, *last);
            self.push(first.file, Replacement { span, text: String::new() });
        }
        Ok(())
    }

    /// The whole lines from one entry to another, and the blank line before them.
    fn lines_with_blank_before(&self, first: Node, last: Node) -> Range<usize> {
        let text = self.tree.files()[first.file].text();
        let start = line_start(text, self.tree.entry(first).span.start);
        let before = line_start(text, start.saturating_sub(1));
        let is_blank = start > 0 && text[before..start].trim().is_empty();
        (if is_blank { before } else { start })..line_end(text, self.tree.entry(last).span.end)
    }

    /// The lines of a pool that has one heading, in one file, without an `include`.
    fn whole_section(&self, fpm: &Fpm, pool: &str) -> Result<Vec<Node>, EditError> {
        let lines = self.section(pool)?;
        for node in &lines {
            self.check_editable(*node)?;
        }
        let is_heading = |node: &&Node| matches!(self.tree.entry(**node).kind, Kind::Section(_));
        let is_next = |pair: &[Node]| pair[0].file == pair[1].file && pair[0].entry + 1 == pair[1].entry;
        if lines.iter().filter(is_heading).count() != 1 || !lines.windows(2).all(is_next) {
            return Err(self.unfit(pool, "its lines are in several places"));
        }
        let lists = |key: &&&str| fpm.pool(pool).and_then(|pool| pool.text(key)).is_some_and(|list| !list.value.is_empty());
        if let Some(list) = ACCESS_LISTS.iter().find(lists) {
            return Err(self.unfit(pool, &format!("{list} says who may connect")));
        }
        Ok(lines)
    }

    fn unfit(&self, pool: &str, why: &str) -> EditError {
        EditError::Unfit { pool: pool.to_owned(), why: why.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::php_fpm::Version;
    use crate::php_fpm::tree::Tree;

    const TEXT: &str = "[global]\npid = /run/x.pid\n\n[www]\nuser = a ; b\nlisten = 127.0.0.1:9000\n;listen.owner = x\nlisten.allowed_clients = 127.0.0.1\nlisten.backlog = 7\nslowlog = /var/$pool.slow\npm.status_listen = 9001\nenv[A] = \"b c\"\npm = static\npm.max_children = 5\n\n; the end\n[other]\nlisten = 9002\npm = ondemand\npm.max_children = 1\n";

    fn tree(text: &str) -> Tree {
        let mut all = String::new();
        crate::dump::add(&mut all, "/f.conf", text);
        Tree::from_dump(&all, None).unwrap()
    }

    fn socket() -> PoolSocket {
        "unix:/run/www.sock owner=web".parse().unwrap()
    }

    fn edited(text: &str, edit: impl Fn(&mut Editor<'_>, &Fpm) -> Result<(), EditError>) -> Result<String, String> {
        let tree = tree(text);
        let mut editor = Editor::new(&tree);
        let done = edit(&mut editor, &Fpm::of(&tree, Version::FALLBACK)).and_then(|()| editor.finish());
        done.map(|mut files| files.pop().map_or_else(|| text.to_owned(), |file| file.after)).map_err(|error| error.to_string())
    }

    fn second(text: &str) -> Result<String, String> {
        edited(text, |editor, fpm| editor.add_second_pool(fpm, "www", &socket()))
    }

    fn moved(text: &str) -> Result<String, String> {
        edited(text, |editor, fpm| editor.move_to_socket(fpm, "www", &socket()))
    }

    #[test]
    fn a_second_pool_has_all_settings_but_the_addresses_and_ends_with_the_move() {
        let with = second(TEXT).unwrap();
        let added = "\n[chokepoint_www]\nuser = a\nlisten.backlog = 7\nslowlog = /var/www.slow\nenv[A] = \"b c\"\npm = static\npm.max_children = 5\n\
                     listen = /run/www.sock\nlisten.owner = web\nlisten.mode = 0660\n";
        assert_eq!(with, TEXT.replacen("\n\n; the end", &format!("\n{added}\n; the end"), 1));
        let fpm = Fpm::of(&tree(&with), Version::FALLBACK);
        assert_eq!((second_pool(&fpm, "www"), fpm.problems.len()), (Some(Some(socket())), 0));
        assert_eq!((second_pool(&fpm, "other"), second_pool(&fpm, "none")), (Some(None), None));
        assert_eq!(pool_listen(&fpm, "www").as_deref(), Some("127.0.0.1:9000"));
        let after = moved(&with).unwrap();
        assert_eq!(after, moved(TEXT).unwrap(), "the second pool leaves nothing");
        let fpm = Fpm::of(&tree(&after), Version::FALLBACK);
        assert_eq!((pool_listen(&fpm, "www"), second_pool(&fpm, "www")), (Some(socket().to_string()), Some(None)));
        assert!(after.contains("listen = /run/www.sock\n") && after.contains(";listen.owner = x\nlisten.owner = web\n"), "{after}");
    }

    #[test]
    fn a_file_without_a_last_line_feed_gets_one() {
        let text = TEXT.split("\n\n; the end").next().unwrap();
        let with = second(text).unwrap();
        assert!(with.starts_with(&format!("{text}\n\n[chokepoint_www]\n")) && with.ends_with("listen.mode = 0660\n"), "{with}");
    }

    #[test]
    fn a_pool_that_cannot_run_twice_or_be_reached_is_not_moved() {
        let global = |line: &str| TEXT.replace("pid = /run/x.pid", line);
        let own = |line: &str| TEXT.replace("pm = static", line);
        for (text, why) in [
            (global("process.max = 9"), "process.max"),
            (own("pm = static\nlisten.acl_users = a"), "listen.acl_users says who may connect"),
            (own("pm = static\n[www]"), "several places"),
            (own("pm = static\ninclude = /none/*.conf"), "several places"),
            (format!("{TEXT}[chokepoint_www]\nlisten = 1\npm = ondemand\npm.max_children = 1\n"), "a pool [chokepoint_www] already"),
            (TEXT.replace("[www]", "[web]"), "no section [www]"),
        ] {
            let told = second(&text).unwrap_err();
            assert!(told.contains(why), "{told}\n{text}");
        }
        assert!(second(&global("process.max = 0")).is_ok());
        for wrong in ["", "unix:/x", "unix:x owner=a", "unix:/x owner=", "unix:/x owner=a ", "/x owner=a"] {
            assert_eq!(wrong.parse::<PoolSocket>(), Err(NoPoolSocket), "{wrong}");
        }
    }
}
