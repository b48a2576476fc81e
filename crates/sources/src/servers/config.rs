//! Source `server_config`: the files of a master's configuration, in one text like the output of `nginx -T`.

mod reload;
mod stated;

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use chokepoint_config::server_setting::DumpedFiles;
use chokepoint_config::{Resolve, Resolved, dump, haproxy, nginx, php_fpm, postgresql, text};
use chokepoint_foreign::{FileId, Files, Rights, path_of, printable, read_bounded};
use chokepoint_model::change::ServerKind;
use chokepoint_model::observation::{ConfigurationFiles, MasterProcess, NginxConfig, Observation, ServerConfig, ServerFiles};
use chokepoint_recording::{Entry, Outcome};
use chokepoint_servers::{ConfigurationPlace, Dialect, MasterDef, masters};

use reload::LastReading;

use super::access::{Access, NEEDS, files};
use super::master::{Master, master, stat_of};
use super::room::ConfigRoom;
use crate::reduction::Reduction;
use crate::root::{Root, outcome_of, reading_of};
use crate::scope::server_view;
use crate::table::{Cadence, Items, Phase, ReadContext, Redact, ScopeKind, Source, only_item};

const NAME: &str = "server_config";
/// The fact who may change program and files, and its value if nobody else may.
const WRITERS: &str = "others_write";
const NOBODY: &str = "nothing";
/// The fact which process the master is, where another one stands for it.
const MASTER: &str = "master";
/// Most bytes of one file and of all files, and most files. A larger configuration fails with a reason.
const FILE_BYTES_MAX: usize = 1 << 20;
const ALL_BYTES_MAX: usize = 8 << 20;
const FILES_MAX: usize = 1_000;
/// Most files that all includes bring in, a file once for each: reading one costs a third of a millisecond.
const INCLUSIONS_MAX: usize = 10_000;
/// Most names of directories that all patterns lead through: a million cost about a second.
const NAMES_MAX: usize = 500_000;
/// How many times these bytes the files may have in a recording: the replacement of a hidden word can be longer than the word.
const HIDDEN_RATIO_MAX: usize = 2;
/// Longest path, bytes (PATH_MAX).
const PATH_BYTES_MAX: usize = 4096;
/// Most lines of facts before the files: the time of change and the real path of each file, unreadable files, and facts about the master.
const FACTS_MAX: usize = 3 * FILES_MAX + 16 + GIVEN_MAX;
/// Most settings of a command line.
const GIVEN_MAX: usize = 64;

/// Once for each master of a known kind, or for each worker where only these listen; nothing for other processes. In an observation without an end it is read again after a reload, and gives nothing if the
/// server has not read its files since or they say the same (`observer/reloads.rs`). The text begins with facts, one per line. The files follow as `nginx -T` prints them,
/// read from the process's view of the file system. A master with ten files costs about a millisecond.
pub(crate) const SERVER_CONFIG: Source =
    Source { name: NAME, scope: ScopeKind::Process, cadence: Cadence::Once, needs: Some(NEEDS), read, put, redact: Redact::Reduced };

fn read(context: &ReadContext<'_>) -> Items {
    let Some(pid) = context.pid() else { return Vec::new() };
    let mut before = LastReading::noted(context.notes, pid).filter(|_| context.phase == Phase::Running);
    if let Some(before) = &mut before
        && !before.is_over(context.root, pid)
    {
        before.note(context.notes, pid);
        return Vec::new();
    }
    let found = match master(context.root, pid) {
        Ok(Some(found)) => found,
        Ok(None) => return Vec::new(),
        Err(lack) => return only_item(lack),
    };
    let (now, outcome) = LastReading::of(context.root, pid, found.def.dialect, || text_of(context.root, pid, &found));
    now.note(context.notes, pid);
    let is_known = matches!(outcome, Outcome::Ok(_)) && before.is_some_and(|before| before.says_the_same_as(&now));
    if is_known { Vec::new() } else { only_item(outcome) }
}

/// The facts and the files of a master, for which this process may stand.
fn text_of(root: &Root, pid: u32, found: &Master) -> Outcome {
    let files = match files(root, found.pid) {
        Ok(files) => files,
        Err(lack) => return lack,
    };
    let CollectedConfig { outcome, by_file, .. } = collect(&files, found);
    match outcome {
        Outcome::Ok(text) => {
            let (place, writers) = (fact_of_place(root, &files, &found.place.main), fact_of_writers(root, found.pid, by_file.keys()));
            let master = if found.pid == pid { String::new() } else { fact_of_master(root, found.pid) };
            Outcome::Ok([place.into_bytes(), writers.into_bytes(), master.into_bytes(), text].concat())
        }
        lack => lack,
    }
}

/// The fact whether the main file's path names the same file for the server and for this program; empty if that cannot be told.
fn fact_of_place(root: &Root, theirs: &Files, main: &str) -> String {
    let id = |files: &Files| files.locate(main).and_then(|file| file.metadata()).map(|meta| FileId::of(&meta));
    let Ok(ours) = Files::of_directory(&root.path("")) else { return String::new() };
    match (root.is_live(), id(theirs)) {
        (true, Ok(file)) => format!("files {}\n", if id(&ours).is_ok_and(|own| own == file) { "here" } else { "elsewhere" }),
        _ => String::new(),
    }
}

/// The fact who except root and the master's user may change its program, one of its files, or what leads to them, on this host; empty for a copy of a host.
fn fact_of_writers<'a>(root: &Root, pid: u32, files: impl Iterator<Item = &'a String>) -> String {
    if !root.is_live() {
        return String::new();
    }
    let program = match root.link_process(pid, "exe", Some(NEEDS)) {
        Outcome::Ok(target) => Some(String::from_utf8_lossy(&target).trim_end_matches(" (deleted)").to_owned()),
        // No command names a program that is not known.
        _ => None,
    };
    let rights = Rights::of_process(&root.path("proc"), pid).and_then(|rights| Ok((rights.uid(), Files::of_directory(&root.path(""))?)));
    let why = match rights {
        Ok((uid, ours)) => others_write(&ours, uid, program.iter()).or_else(|| others_write(&ours, uid, files)),
        Err(error) => Some(error.to_string()),
    };
    format!("{WRITERS} {}\n", why.map_or_else(|| NOBODY.to_owned(), |why| printable(&why).into_owned()))
}

/// Why others than root and this user may have written one of these files; `None` if they cannot.
pub(super) fn others_write<'a>(files: &Files, uid: u32, paths: impl Iterator<Item = &'a String>) -> Option<String> {
    paths.map(|path| files.trusted(path, uid)).find_map(Result::err).map(|why| why.to_string())
}

/// The fact which process the master is, when it started, its parent and its user; empty if that cannot be read.
fn fact_of_master(root: &Root, pid: u32) -> String {
    let (stat, rights) = (stat_of(root, pid), Rights::of_process(&root.path("proc"), pid));
    let Some((stat, rights)) = stat.zip(rights.ok()) else { return String::new() };
    format!("{MASTER} {pid} {} {} {}\n", stat.start_ticks, stat.parent, rights.uid())
}

/// The master of such a fact.
fn master_of(fact: &str) -> Option<MasterProcess> {
    let mut numbers = fact.split(' ').map(str::parse::<u64>);
    let mut next = || numbers.next()?.ok();
    let (pid, start_ticks, parent, uid) = (next()?, next()?, next()?, next()?);
    let number = |number: u64| u32::try_from(number).ok();
    // A signal to 0 is one to a whole group of processes (kill(2)).
    Some(MasterProcess { pid: number(pid).filter(|pid| *pid > 0)?, start_ticks, parent: number(parent)?, uid: number(uid)? })
}

/// A master's configuration.
pub(super) struct CollectedConfig {
    /// Its text. One inaccessible file makes all of it absent: half a configuration misleads.
    pub(super) outcome: Outcome,
    /// The access to what each file names. The master's access applies to files that are not listed.
    by_file: BTreeMap<String, Access>,
    master: Access,
}

impl CollectedConfig {
    /// The access to something that each of these files names. The widest one counts, since that file's owner alone can name it.
    pub(super) fn access<'a>(&self, files: impl Iterator<Item = &'a String>) -> Access {
        let all = files.map(|file| self.by_file.get(file).unwrap_or(&self.master));
        all.reduce(|one, other| if other.is_wider_than(one) { other } else { one }).unwrap_or(&self.master).clone()
    }

    /// The access of all users who influence the configuration.
    pub(super) fn access_of_all(&self) -> Access {
        let all = self.by_file.values().cloned();
        all.fold(self.master.clone(), |all, one| all.narrowed(one.into_rights()))
    }
}

/// Reads a master's configuration. Each file is read with the rights of the master and of the users who influence which file that is: the owners of the files
/// that include it and of the directories and links that lead to it. So nobody can have a file read that their own rights do not allow.
pub(super) fn collect(files: &Files, master: &Master) -> CollectedConfig {
    let mut collection = ConfigCollector {
        files,
        master,
        head: head_of(master),
        dump: String::new(),
        paths: BTreeMap::new(),
        denied: None,
        inclusions: 0,
        names_left: NAMES_MAX,
        is_full: false,
    };
    // Only the files matter here. The parser reports errors in them later.
    let ConfigurationPlace { main, also, prefix, .. } = &master.place;
    match master.def.dialect {
        Dialect::Nginx => drop(nginx::Tree::load(main, None, &mut collection)),
        Dialect::PhpFpm => drop(php_fpm::Tree::load(main, Some(prefix), &mut collection)),
        Dialect::Haproxy => {
            let mains: Vec<&str> = [main].into_iter().chain(also).map(String::as_str).collect();
            drop(haproxy::Tree::load(&mains, &mut collection));
        }
        Dialect::Postgresql => drop(postgresql::Tree::load(main, also, &mut collection)),
    }
    let ConfigCollector { head, dump, paths, denied, .. } = collection;
    let outcome = match denied {
        Some((path, access)) => {
            let needs = access.is_own().then(|| NEEDS.to_owned());
            Outcome::Absent(format!("permission denied: {path}{}", access.remark()), needs)
        }
        None if paths.is_empty() => Outcome::Failed(format!("{}: the main file could not be read", master.place.main), None),
        None => Outcome::Ok((head + &dump).into_bytes()),
    };
    CollectedConfig { outcome, by_file: paths, master: master.access.clone() }
}

fn head_of(master: &Master) -> String {
    let ConfigurationPlace { prefix, version, access_log, error_log, also, given, .. } = &master.place;
    let server = master.def.dialect.name().to_owned();
    let facts = [("server", &server), ("prefix", prefix), ("version", version), ("access_log", access_log), ("error_log", error_log)];
    let mut lines: Vec<(&str, String)> = facts.iter().map(|(name, value)| (*name, (*value).clone())).collect();
    if master.def.dialect == Dialect::Haproxy {
        lines.push(("main", master.place.main.clone()));
    }
    if matches!(master.def.dialect, Dialect::Postgresql | Dialect::Haproxy) {
        lines.extend(also.iter().map(|path| ("also", path.clone())));
        let is_read = |(name, _): &&(String, String)| postgresql::READ.contains(&name.as_str());
        lines.extend(given.iter().filter(is_read).take(GIVEN_MAX).map(|(name, value)| ("given", format!("{name}={value}"))));
    }
    lines.iter().map(|(name, value)| format!("{name} {}\n", value.replace(['\n', '\r'], " "))).collect()
}

struct ConfigCollector<'a> {
    files: &'a Files,
    master: &'a Master,
    head: String,
    dump: String,
    /// The files that were read, each with the access to what it names.
    paths: BTreeMap<String, Access>,
    denied: Option<(String, Access)>,
    /// Files that includes brought in.
    inclusions: usize,
    names_left: usize,
    /// A bound was reached: the configuration is not whole, so nothing more is read.
    is_full: bool,
}

impl Resolve for ConfigCollector<'_> {
    fn resolve(&mut self, pattern: &str, from: Option<&str>) -> Vec<Resolved> {
        let access = from.and_then(|file| self.paths.get(file)).unwrap_or(&self.master.access).clone();
        if self.is_full {
            return Vec::new();
        }
        match self.matching(pattern, &access) {
            Ok(paths) => {
                let mut found = Vec::new();
                for path in paths {
                    found.extend(self.read(path, &access));
                    if self.is_full {
                        break;
                    }
                }
                found
            }
            Err(error) => {
                self.is_full = matches!(error.kind(), io::ErrorKind::Other | io::ErrorKind::TimedOut);
                self.note(pattern, &error, access);
                Vec::new()
            }
        }
    }
}

impl ConfigCollector<'_> {
    fn matching(&mut self, pattern: &str, access: &Access) -> io::Result<Vec<String>> {
        let (mut left, named) = (self.names_left, pattern.to_owned());
        let match_all = move |files: &Files, access: &Access| (access.matching(files, &named, FILES_MAX + 1, &mut left), left);
        let (matched, left) = access.within_budget(self.files, pattern, match_all)?;
        self.names_left = left;
        matched
    }

    fn read(&mut self, path: String, access: &Access) -> Option<Resolved> {
        let left = ALL_BYTES_MAX.saturating_sub(self.dump.len());
        self.inclusions += 1;
        let bound = if self.paths.len() >= FILES_MAX && !self.paths.contains_key(&path) {
            Some(format!("more than {FILES_MAX} files"))
        } else if self.inclusions > INCLUSIONS_MAX {
            Some(format!("more than {INCLUSIONS_MAX} files are included, each counted as often as it is"))
        } else if left == 0 {
            Some(format!("all files together have more than {ALL_BYTES_MAX} bytes"))
        } else {
            None
        };
        self.is_full = bound.is_some();
        let (read, narrowed) = if let Some(bound) = bound {
            (Err(io::Error::other(bound)), access.clone())
        } else {
            let (named, bytes_max) = (path.clone(), FILE_BYTES_MAX.min(left));
            let read = move |files: &Files, access: &Access| read_file(files, &named, access, bytes_max);
            access.within_budget(self.files, &path, read).unwrap_or_else(|late| (Err(late), access.clone()))
        };
        // After one that takes too long the configuration is not whole either.
        self.is_full |= matches!(&read, Err(error) if error.kind() == io::ErrorKind::TimedOut);
        match read {
            Ok((bytes, changed, real)) => {
                let text = text::decode(&bytes);
                if let Some(known) = self.paths.get_mut(&path) {
                    // It is included again: the rights of all includers apply to what it names.
                    *known = known.narrowed(narrowed.into_rights());
                } else {
                    self.head.push_str(&format!("changed {changed} {path}\n"));
                    // A file behind a link: patch(1) edits only the file itself.
                    if let Some(real) = real.filter(|real| *real != path && !real.contains('\n')) {
                        self.head.push_str(&format!("real {real}\n"));
                    }
                    dump::add(&mut self.dump, &path, &text);
                    self.paths.insert(path.clone(), narrowed);
                }
                Some((path, Ok(text)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && !self.paths.is_empty() => None,
            Err(error) => {
                self.note(&path, &error, narrowed);
                Some((path, Err(error.to_string())))
            }
        }
    }

    fn note(&mut self, path: &str, error: &io::Error, access: Access) {
        match outcome_of(error, Some(NEEDS)) {
            Outcome::Absent(_, Some(_)) => self.denied = self.denied.take().or_else(|| Some((path.to_owned(), access))),
            _ => self.head.push_str(&format!("unreadable {path}: {error}\n")),
        }
    }
}

/// Bytes of a file, the time of its last change, and its path behind all links.
type FileRead = (Vec<u8>, i64, Option<String>);

/// Reads a file, and gives the access to what it names.
fn read_file(files: &Files, path: &str, access: &Access, bytes_max: usize) -> (io::Result<FileRead>, Access) {
    let mut narrowed = access.clone();
    let read = files.owners(path).and_then(|owners| {
        narrowed = access.narrowed(owners);
        let file = narrowed.open(files, path)?;
        let about = file.metadata()?;
        // The file may have been replaced since its owners were read.
        narrowed = narrowed.narrowed(vec![Rights::of_owner(&about)]);
        let real = path_of(&file).ok().and_then(|real| real.into_os_string().into_string().ok());
        Ok((read_bounded(file, bytes_max)?, about.mtime(), real))
    });
    (read, narrowed)
}

/// A parsed configuration.
pub(super) enum ParsedConfig {
    Nginx(Box<nginx::Nginx>),
    PhpFpm(Box<php_fpm::Fpm>),
    Haproxy(Box<haproxy::Haproxy>),
    Postgresql(Box<postgresql::Postgresql>),
}

/// The facts before the files.
pub(super) struct ConfigHead {
    pub(super) prefix: String,
    pub(super) access_log: String,
    pub(super) error_log: String,
    /// Files with the time of their last change.
    pub(super) files: Vec<(String, i64)>,
    /// The files behind paths that are links, by path.
    real_paths: Vec<(String, String)>,
    are_elsewhere: Option<bool>,
    others_write: Option<String>,
    master: Option<MasterProcess>,
    main: Option<String>,
    server: &'static MasterDef,
    version: String,
    unreadable: Vec<String>,
    /// More files that are read behind the main one, and settings of the command line.
    also: Vec<String>,
    given: Vec<(String, String)>,
}

impl ConfigHead {
    fn known_prefix(&self) -> Option<&str> {
        Some(self.prefix.as_str()).filter(|prefix| !prefix.is_empty())
    }
}

fn head(dump: &str) -> Result<ConfigHead, String> {
    let facts: Vec<(&str, &str)> = dump::head(dump).lines().filter_map(|line| line.split_once(' ')).collect();
    let fact = |name: &str| facts.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    let server = fact("server").and_then(|name| masters().find(|def| def.dialect.name() == name));
    let server = server.ok_or("the text does not say whose configuration it is")?;
    let changed = facts.iter().filter(|(name, _)| *name == "changed");
    let linked = facts.windows(2).filter_map(|pair| match pair {
        [("changed", changed), ("real", real)] => Some((changed.split_once(' ')?.1.to_owned(), (*real).to_owned())),
        _ => None,
    });
    let text = |name: &str| fact(name).unwrap_or_default().to_owned();
    Ok(ConfigHead {
        prefix: text("prefix"),
        access_log: text("access_log"),
        error_log: text("error_log"),
        files: changed
            .filter_map(|(_, value)| value.split_once(' '))
            .filter_map(|(at, path)| Some((path.to_owned(), at.parse().ok()?)))
            .collect(),
        real_paths: linked.collect(),
        are_elsewhere: fact("files").map(|place| place == "elsewhere"),
        master: fact(MASTER).and_then(master_of),
        main: fact("main").map(str::to_owned),
        others_write: fact(WRITERS).filter(|why| *why != NOBODY).map(str::to_owned),
        server,
        version: text("version"),
        also: facts.iter().filter(|(name, _)| *name == "also").map(|(_, value)| (*value).to_owned()).collect(),
        given: facts
            .iter()
            .filter(|(name, _)| *name == "given")
            .filter_map(|(_, value)| value.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        unreadable: facts.iter().filter(|(name, _)| *name == "unreadable").map(|(_, value)| (*value).to_owned()).collect(),
    })
}

/// Refuses a text that is larger than that of any running server, before it is parsed.
fn within_bounds(dump: &str) -> Result<(), String> {
    let (mut files, mut all) = (0, 0);
    for (path, bytes) in dump::sizes(dump) {
        (files, all) = (files + 1, all + bytes);
        if path.len() > PATH_BYTES_MAX {
            return Err(format!("a path has more than {PATH_BYTES_MAX} bytes"));
        }
        if files > FILES_MAX {
            return Err(format!("more than {FILES_MAX} files"));
        }
        if bytes > HIDDEN_RATIO_MAX * FILE_BYTES_MAX {
            return Err(format!("{path}: more than {FILE_BYTES_MAX} bytes"));
        }
        if all > HIDDEN_RATIO_MAX * ALL_BYTES_MAX {
            return Err(format!("all files together have more than {ALL_BYTES_MAX} bytes"));
        }
    }
    let facts = dump::head(dump);
    if facts.lines().nth(FACTS_MAX).is_some() || facts.len() > FACTS_MAX * PATH_BYTES_MAX {
        return Err(format!("more than {FACTS_MAX} lines about the files"));
    }
    Ok(())
}

/// Parses the text of [`collect`]. The error names file and line if it has one.
pub(super) fn parsed(dump: &str) -> Result<(ConfigHead, ParsedConfig), String> {
    within_bounds(dump)?;
    let head = head(dump)?;
    let parsed = match head.server.dialect {
        Dialect::Nginx => {
            let tree = nginx::Tree::from_dump(dump).map_err(|error| error.to_string())?;
            complete(&head, &tree.gaps)?;
            let version = nginx::Version::parse(&head.version).unwrap_or(nginx::Version::FALLBACK);
            ParsedConfig::Nginx(Box::new(nginx::Nginx::of(&tree, version)))
        }
        Dialect::PhpFpm => {
            let tree = php_fpm::Tree::from_dump(dump, head.known_prefix()).map_err(|error| error.to_string())?;
            complete(&head, &tree.gaps)?;
            let numbers: Vec<u16> = head.version.split('.').filter_map(|number| number.parse().ok()).collect();
            let version = match numbers[..] {
                [major, minor, ..] => php_fpm::Version(major, minor),
                _ => php_fpm::Version::FALLBACK,
            };
            ParsedConfig::PhpFpm(Box::new(php_fpm::Fpm::of(&tree, version)))
        }
        Dialect::Haproxy => {
            complete(&head, &[])?;
            let read = haproxy::Tree::from_dump(dump).and_then(|tree| haproxy::Haproxy::of(&tree));
            ParsedConfig::Haproxy(Box::new(read.map_err(|error| error.to_string())?))
        }
        Dialect::Postgresql => {
            let tree = postgresql::Tree::from_dump(dump, &head.also).map_err(|error| error.to_string())?;
            complete(&head, &tree.gaps)?;
            ParsedConfig::Postgresql(Box::new(postgresql::Postgresql::of(&tree, &head.given)))
        }
    };
    Ok((head, parsed))
}

/// Hides all values that the model does not read. A malformed text becomes the failure of its parser.
pub(crate) fn reduced(dump: &str, reduction: &mut Reduction) -> Outcome {
    const FACTS: [&str; 14] = [
        "files",
        "main",
        WRITERS,
        MASTER,
        "server",
        "prefix",
        "version",
        "access_log",
        "error_log",
        "also",
        "given",
        "changed",
        "real",
        "unreadable",
    ];
    let head = match parsed(dump) {
        Ok((head, _)) => head,
        Err(why) => return Outcome::Failed(why, None),
    };
    let hidden = match head.server.dialect {
        Dialect::Nginx => nginx::hide(dump).map_err(|error| error.to_string()),
        Dialect::PhpFpm => php_fpm::hide(dump, head.known_prefix()).map_err(|error| error.to_string()),
        Dialect::Haproxy => haproxy::hide(dump).map_err(|error| error.to_string()),
        Dialect::Postgresql => postgresql::hide(dump, &head.also).map_err(|error| error.to_string()),
    };
    let hidden = match hidden {
        Ok(hidden) => hidden,
        Err(why) => return Outcome::Failed(why, None),
    };
    reduction.configurations += hidden.files;
    reduction.directives += hidden.directives;
    reduction.values += hidden.values;
    reduction.comments += hidden.comments;
    let is_fact = |line: &&str| line.split_once(' ').is_some_and(|(name, _)| FACTS.contains(&name));
    let facts: String = dump::head(dump).lines().filter(is_fact).map(|line| format!("{line}\n")).collect();
    Outcome::Ok((facts + &hidden.text).into_bytes())
}

/// Refuses a configuration with a missing part: the rest does not show what is in force.
fn complete(head: &ConfigHead, gaps: &[chokepoint_config::Gap]) -> Result<(), String> {
    if let Some(gap) = gaps.first() {
        let why = head.unreadable.iter().find(|text| text.starts_with(&gap.path));
        return Err(format!("{}: {}", gap.place, why.map_or_else(|| format!("{}: {}", gap.path, gap.why), Clone::clone)));
    }
    // A pattern that failed, or one of the files that it matched.
    head.unreadable.first().map_or(Ok(()), |why| Err(why.clone()))
}

fn put(observation: &mut Observation, entry: &Entry) {
    let cores = observation.kernel.last().map_or(1, |kernel| kernel.cores);
    let request = observation.request.clone();
    let room = ConfigRoom::of(observation);
    let mut files = ServerFiles::default();
    let parse = |bytes: &[u8]| -> Result<ServerConfig, String> {
        let mut room = room?;
        if bytes.len() > 4 * ALL_BYTES_MAX {
            return Err(format!("all files together have more than {ALL_BYTES_MAX} bytes"));
        }
        let dump = String::from_utf8_lossy(bytes);
        let (head, parsed) = parsed(&dump)?;
        files = files_of(&head, &dump);
        Ok(match parsed {
            ParsedConfig::Nginx(nginx) => {
                let version = nginx::Version::parse(&head.version).map(|nginx::Version(major, minor, patch)| (major, minor, patch));
                ServerConfig::Nginx(NginxConfig { version, ..super::nginx::config(&nginx, head.files, cores, &request, &mut room)? })
            }
            ParsedConfig::PhpFpm(fpm) => ServerConfig::PhpFpm(super::php_fpm::config(&fpm, head.files, &mut room)?),
            ParsedConfig::Haproxy(haproxy) => ServerConfig::Stated(stated::haproxy::config(&haproxy, head.files, &request, &mut room)?),
            ParsedConfig::Postgresql(read) => ServerConfig::Stated(stated::postgresql::config(&read, head.files, &mut room)?),
        })
    };
    let reading = reading_of(&entry.outcome, parse);
    if let Some(server) = server_view(observation, entry) {
        server.config.push(entry.at_us, reading);
        server.files = files;
    }
}

/// The files in a form that can be edited. They take as many bytes as the entry has.
fn files_of(head: &ConfigHead, dump: &str) -> ServerFiles {
    let prefix = head.known_prefix().map(str::to_owned);
    let edited = |server: ServerKind| DumpedFiles { server, dump: dump.to_owned(), prefix, real_paths: head.real_paths.clone() };
    // Without a master nobody makes such a server read its files again.
    let is_reloaded = !head.server.is_apart || head.master.is_some();
    let text = head.server.kind.filter(|_| is_reloaded).map(|server| Arc::new(edited(server)) as Arc<dyn ConfigurationFiles>);
    let (are_elsewhere, others_write) = (head.are_elsewhere, head.others_write.clone());
    ServerFiles {
        text,
        prefix: head.prefix.clone(),
        are_elsewhere,
        others_write,
        master: head.master,
        main: head.main.clone(),
        also: head.also.clone(),
    }
}
