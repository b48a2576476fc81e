//! Which processes are masters of a server of a known kind, and where their configuration begins.

use std::io::Read;

use chokepoint_foreign::open_link;
use chokepoint_model::change::ServerKind;
use chokepoint_recording::Outcome;
use serde::{Deserialize, Serialize};

use super::access::{Access, NEEDS, files};
use crate::root::Root;
use crate::text::error::TextLine;
use crate::text::process::stat::{self, Stat};

/// Most bytes of a command line to read.
const CMDLINE_BYTES_MAX: usize = 16 << 10;
/// Most bytes of an executable to search for its build options: nginx has 1 to 20 MB.
const EXE_BYTES_MAX: u64 = 32 << 20;
/// Most bytes of one text of the executable.
const TEXT_BYTES_MAX: usize = 8 << 10;

/// A kind of server with known configuration and logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum MasterKind {
    Nginx,
    PhpFpm,
}

/// A master and where its configuration begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Master {
    pub(super) kind: MasterKind,
    /// The main file.
    pub(super) main: String,
    /// The base of relative paths: of logs for nginx, of includes for php-fpm.
    pub(super) prefix: String,
    /// The program's version in its own words; empty if unknown.
    pub(super) version: String,
    /// Its built-in access log; empty if unknown.
    pub(super) access_log: String,
    /// Its built-in error log; empty if unknown.
    pub(super) error_log: String,
    /// The access to the files that it names.
    pub(super) access: Access,
}

/// The master with this pid; nothing for any other process.
pub(super) fn master(root: &Root, pid: u32) -> Result<Option<Master>, Outcome> {
    let Some(comm) = text(root, &format!("proc/{pid}/comm")) else { return Ok(None) };
    let exe = match root.link_process(pid, "exe", Some(NEEDS)) {
        Outcome::Ok(target) => String::from_utf8_lossy(&target).trim_end_matches(" (deleted)").to_owned(),
        _ => String::new(),
    };
    let Some(kind) = kind(&comm, &exe) else { return Ok(None) };
    let start = || stat_of(root, pid).map(|stat| stat.start_ticks);
    let began = start();
    let words = words(root, pid);
    if !is_master(root, pid, &comm, &words) {
        return Ok(None);
    }
    let (files, access) = (files(root, pid)?, Access::of_process(root, pid)?);
    let cwd = match root.link_process(pid, "cwd", None) {
        Outcome::Ok(target) => String::from_utf8_lossy(&target).into_owned(),
        _ => "/".to_owned(),
    };
    let mut master = match kind {
        MasterKind::Nginx => nginx(&words, &exe, &built_in(root, pid), &|path| files.exists(path)),
        MasterKind::PhpFpm => php_fpm(&words, &exe, &|path| files.exists(path)),
    };
    // A relative prefix is relative to the directory in which the server was started. Neither server changes its directory.
    master.prefix = absolute(&cwd, &master.prefix);
    master.main = main_file(&master, &cwd, &|path| files.exists(path));
    master.access = access;
    // If another process got the pid meanwhile, the command line of one must not be combined with the rights of the other.
    Ok((start() == began).then_some(master))
}

/// The main file, absolute. nginx takes a relative one from its prefix (ngx_conf_full_name); php-fpm opens it as it was given (fpm_conf_init_main), from the directory in
/// which it was started.
fn main_file(master: &Master, cwd: &str, exists: &dyn Fn(&str) -> bool) -> String {
    let [of_prefix, of_cwd] = [&master.prefix, cwd].map(|directory| absolute(directory, &master.main));
    match master.kind {
        MasterKind::PhpFpm if exists(&of_cwd) || !exists(&of_prefix) => of_cwd,
        MasterKind::PhpFpm | MasterKind::Nginx => of_prefix,
    }
}

fn kind(comm: &str, exe: &str) -> Option<MasterKind> {
    let name = exe.rsplit('/').next().unwrap_or_default();
    let kinds = [comm, name].map(ServerKind::of_program);
    match kinds {
        _ if kinds.contains(&Some(ServerKind::Nginx)) => Some(MasterKind::Nginx),
        [None, None] => None,
        _ => Some(MasterKind::PhpFpm),
    }
}

/// A worker's title says that it is a worker. Without titles, a master is a process whose parent is another program. A new worker still has its master's
/// title. A new master that takes over from another one, as in an upgrade of nginx's binary, has executed its program itself.
fn is_master(root: &Root, pid: u32, comm: &str, words: &[String]) -> bool {
    let title: Vec<&str> = words.iter().take(3).map(String::as_str).collect();
    match title[..] {
        ["nginx:" | "php-fpm:" | "angie:" | "freenginx:", "master", "process"] => {
            let is_copy = |own: Stat| {
                let parent_stack = || stat_of(root, own.parent).and_then(|parent| parent.start_stack);
                self::words(root, own.parent) == words && parent_stack() == own.start_stack
            };
            return !stat_of(root, pid).is_some_and(is_copy);
        }
        ["nginx:" | "php-fpm:" | "angie:" | "freenginx:", ..] => return false,
        _ => {}
    }
    let parent = stat_of(root, pid).map(|stat| stat.parent);
    parent.and_then(|parent| text(root, &format!("proc/{parent}/comm"))).is_none_or(|parent| parent != comm)
}

pub(super) fn stat_of(root: &Root, pid: u32) -> Option<Stat> {
    match root.read(&format!("proc/{pid}/stat"), stat::BYTES_MAX, None) {
        Outcome::Ok(bytes) => stat::parse(TextLine::new("server_config", 1), &bytes).ok(),
        _ => None,
    }
}

fn text(root: &Root, file: &str) -> Option<String> {
    match root.read(file, 4096, None) {
        Outcome::Ok(bytes) => Some(String::from_utf8_lossy(&bytes).trim_end().to_owned()),
        _ => None,
    }
}

/// The words of a command line. In a title, which a server writes over its arguments, they are separated by blanks.
pub(super) fn words(root: &Root, pid: u32) -> Vec<String> {
    let bytes = root.command_line(pid, CMDLINE_BYTES_MAX).unwrap_or_default();
    split(&String::from_utf8_lossy(&bytes))
}

fn split(cmdline: &str) -> Vec<String> {
    let cmdline = cmdline.trim_end_matches('\0');
    let is_title = ["nginx: ", "php-fpm: ", "angie: ", "freenginx: "].iter().any(|name| cmdline.starts_with(name));
    if is_title || !cmdline.contains('\0') {
        return cmdline.split(['\0', ' ']).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    }
    cmdline.split('\0').map(str::to_owned).collect()
}

/// The value of an option: `-c FILE`, `-cFILE`, `--fpm-config FILE` or `--fpm-config=FILE`. The last one counts.
fn option(words: &[String], short: &str, long: Option<&str>) -> Option<String> {
    let mut found = None;
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let long_value = long.and_then(|long| word.strip_prefix(long));
        if word == short || long_value == Some("") {
            found = rest.next().cloned().or(found);
        } else if let Some(value) = long_value.and_then(|value| value.strip_prefix('=')) {
            found = Some(value.to_owned());
        } else if let Some(value) = word.strip_prefix(short).filter(|value| value.starts_with(['/', '.'])) {
            found = Some(value.to_owned());
        }
    }
    found
}

fn nginx(words: &[String], exe: &str, built_in: &[String], exists: &dyn Fn(&str) -> bool) -> Master {
    let configured = |name: &str| {
        let words = built_in.iter().flat_map(|text| text.split_ascii_whitespace());
        words.filter_map(|word| word.strip_prefix(name)?.strip_prefix('=')).next_back().map(|value| value.trim_matches('\'').to_owned())
    };
    let home = home(exe);
    let prefix = option(words, "-p", None).or_else(|| configured("--prefix")).unwrap_or_else(|| home.to_owned());
    let default = || {
        let candidates = ["/etc/nginx/nginx.conf", "/usr/local/etc/nginx/nginx.conf", "/usr/local/nginx/conf/nginx.conf"];
        let own = format!("{}/conf/nginx.conf", prefix.trim_end_matches('/'));
        if exists(&own) { own } else { candidates.into_iter().find(|path| exists(path)).unwrap_or(candidates[0]).to_owned() }
    };
    Master {
        kind: MasterKind::Nginx,
        main: option(words, "-c", None).or_else(|| configured("--conf-path")).unwrap_or_else(default),
        version: built_in.iter().find(|text| text.starts_with("nginx version: ")).cloned().unwrap_or_default(),
        access_log: configured("--http-log-path").unwrap_or_else(|| "logs/access.log".to_owned()),
        error_log: option(words, "-e", None).or_else(|| configured("--error-log-path")).unwrap_or_else(|| "logs/error.log".to_owned()),
        prefix,
        access: Access::default(),
    }
}

fn php_fpm(words: &[String], exe: &str, exists: &dyn Fn(&str) -> bool) -> Master {
    let titled = words.iter().find_map(|word| word.strip_prefix('(')?.strip_suffix(')')).map(str::to_owned);
    let version: String = exe.rsplit('/').next().unwrap_or_default().chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
    let prefix = option(words, "-p", Some("--prefix")).unwrap_or_else(|| home(exe).to_owned());
    let default = || {
        let candidates = [
            format!("/etc/php/{version}/fpm/php-fpm.conf"),
            format!("/etc/php{version}/php-fpm.conf"),
            format!("{}/etc/php-fpm.conf", prefix.trim_end_matches('/')),
            "/usr/local/etc/php-fpm.conf".to_owned(),
            "/etc/php-fpm.conf".to_owned(),
        ];
        candidates.iter().find(|path| exists(path)).unwrap_or(&candidates[0]).clone()
    };
    let main = titled.or_else(|| option(words, "-y", Some("--fpm-config"))).unwrap_or_else(default);
    let (access_log, error_log) = (String::new(), String::new());
    Master { kind: MasterKind::PhpFpm, main, prefix, version, access_log, error_log, access: Access::default() }
}

/// The directory under which a program was installed: "/usr/local" of "/usr/local/sbin/php-fpm".
fn home(exe: &str) -> &str {
    let directory = exe.rsplit_once('/').map_or("", |(directory, _)| directory);
    let home = directory.strip_suffix("/sbin").or_else(|| directory.strip_suffix("/bin")).unwrap_or("/usr");
    if home.is_empty() { "/usr" } else { home }
}

pub(super) fn absolute(directory: &str, path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", directory.trim_end_matches('/')) }
}

/// The output of `nginx -V`, from the executable's texts. Nothing is run.
fn built_in(root: &Root, pid: u32) -> Vec<String> {
    let mut bytes = Vec::new();
    match open_link(&root.path(&format!("proc/{pid}/exe"))).and_then(|file| file.take(EXE_BYTES_MAX).read_to_end(&mut bytes)) {
        Ok(_) => texts(&bytes),
        Err(_) => Vec::new(),
    }
}

fn texts(bytes: &[u8]) -> Vec<String> {
    ["nginx version: ", "configure arguments:"].iter().filter_map(|name| text_of(bytes, name.as_bytes())).collect()
}

/// The text of an executable with this beginning, up to its end or the end of its first line.
fn text_of(bytes: &[u8], name: &[u8]) -> Option<String> {
    let (&first, rest) = name.split_first()?;
    let mut at = 0;
    loop {
        at += bytes.get(at..)?.iter().position(|&byte| byte == first)?;
        if bytes[at + 1..].starts_with(rest) {
            let found = &bytes[at..(at + TEXT_BYTES_MAX).min(bytes.len())];
            let end = found.iter().position(|byte| matches!(byte, 0 | b'\n')).unwrap_or(found.len());
            return Some(String::from_utf8_lossy(&found[..end]).into_owned());
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn none(_: &str) -> bool {
        false
    }

    #[test]
    fn nginx_configuration_is_located() {
        let built = texts(
            b"\x7fELF\0nginx version: nginx/1.22.1\n\0configure arguments: --with-cc-opt='-g -O2' --prefix=/usr/share/nginx \
            --conf-path=/etc/nginx/nginx.conf --http-log-path=/var/log/nginx/access.log --error-log-path=/var/log/nginx/error.log\n\0x",
        );
        let plain = nginx(&split("nginx: master process /usr/sbin/nginx -g daemon off;\0\0"), "/usr/sbin/nginx", &built, &none);
        assert_eq!((plain.main.as_str(), plain.prefix.as_str()), ("/etc/nginx/nginx.conf", "/usr/share/nginx"));
        assert_eq!((plain.version.as_str(), plain.access_log.as_str()), ("nginx version: nginx/1.22.1", "/var/log/nginx/access.log"));
        for cmdline in [
            "nginx: master process nginx -c conf/a.conf -p /srv/n/",
            "/bin/nginx\0-p\0/srv/n/\0-c\0conf/a.conf\0",
            "nginx -p/srv/n/ -c conf/a.conf",
        ] {
            let found = nginx(&split(cmdline), "/usr/sbin/nginx", &built, &none);
            assert_eq!((found.main.as_str(), found.prefix.as_str()), ("conf/a.conf", "/srv/n/"), "{cmdline}");
        }
        let bare = nginx(&[], "/opt/nginx/sbin/nginx", &[], &|path| path == "/opt/nginx/conf/nginx.conf");
        assert_eq!((bare.main.as_str(), bare.prefix.as_str()), ("/opt/nginx/conf/nginx.conf", "/opt/nginx"));
        assert_eq!(nginx(&[], "", &[], &none).main, "/etc/nginx/nginx.conf");
    }

    #[test]
    fn php_fpm_configuration_is_located() {
        for (cmdline, exe, main, prefix) in [
            (
                "php-fpm: master process (/etc/php/8.2/fpm/php-fpm.conf)\0\0",
                "/usr/sbin/php-fpm8.2",
                "/etc/php/8.2/fpm/php-fpm.conf",
                "/usr",
            ),
            (
                "php-fpm: master process (/usr/local/etc/php-fpm.conf)",
                "/usr/local/sbin/php-fpm",
                "/usr/local/etc/php-fpm.conf",
                "/usr/local",
            ),
            ("php-fpm8.2\0--fpm-config=/a\0-p\0/b\0", "/usr/sbin/php-fpm8.2", "/a", "/b"),
            ("php-fpm\0-y\0/a\0--prefix\0/b\0", "/usr/sbin/php-fpm", "/a", "/b"),
            ("php-fpm8.4\0-F\0", "/usr/sbin/php-fpm8.4", "/etc/php/8.4/fpm/php-fpm.conf", "/usr"),
        ] {
            let found = php_fpm(&split(cmdline), exe, &none);
            assert_eq!((found.main.as_str(), found.prefix.as_str()), (main, prefix), "{cmdline}");
        }
    }

    #[test]
    fn a_relative_main_file_is_taken_from_where_the_server_takes_it() {
        let of = |kind, main: &str, there: &str| {
            let titled = format!("php-fpm: master process ({main})");
            let master = Master { kind, main: main.to_owned(), ..php_fpm(&split(&titled), "/usr/sbin/php-fpm8.2", &none) };
            main_file(&master, "/srv/app", &|path| path == there)
        };
        assert_eq!(of(MasterKind::PhpFpm, "f.conf", "/srv/app/f.conf"), "/srv/app/f.conf");
        assert_eq!(of(MasterKind::PhpFpm, "f.conf", "/usr/f.conf"), "/usr/f.conf", "it left its directory, and the file is there");
        assert_eq!(of(MasterKind::PhpFpm, "f.conf", ""), "/srv/app/f.conf");
        assert_eq!(of(MasterKind::PhpFpm, "/etc/f.conf", "/etc/f.conf"), "/etc/f.conf");
        assert_eq!(of(MasterKind::Nginx, "n.conf", "/srv/app/n.conf"), "/usr/n.conf");
    }

    #[test]
    fn workers_and_other_programs_are_not_masters() {
        let tree = tempfile::tempdir().unwrap();
        let with_stack = |pid: u32, parent: u32, comm: &str, cmdline: &str, stack: u32| {
            let directory = tree.path().join(format!("proc/{pid}"));
            std::fs::create_dir_all(directory.join("root")).unwrap();
            std::fs::write(directory.join("comm"), format!("{comm}\n")).unwrap();
            std::fs::write(directory.join("stat"), format!("{pid} ({comm}) S {parent}{} {stack}", " 0".repeat(23))).unwrap();
            std::fs::write(directory.join("cmdline"), cmdline).unwrap();
            std::fs::write(directory.join("status"), "Uid:\t0 0 0 0\nGid:\t0 0 0 0\nGroups:\t\nCapEff:\t0\n").unwrap();
        };
        let process = |pid, parent, comm: &str, cmdline: &str| with_stack(pid, parent, comm, cmdline, 0);
        with_stack(10, 1, "nginx", "nginx: master process nginx", 700);
        with_stack(16, 10, "nginx", "nginx: master process nginx", 700); // forked only just now
        with_stack(17, 10, "nginx", "nginx: master process nginx", 800); // a new binary that takes over
        process(11, 10, "nginx", "nginx: worker process");
        process(12, 1, "nginx", "/usr/sbin/nginx\0-c\0/x\0");
        process(13, 12, "nginx", "/usr/sbin/nginx\0-c\0/x\0");
        process(14, 1, "php-fpm8.2", "php-fpm: pool www");
        process(15, 1, "java", "java\0nginx\0");
        let root = Root::new(tree.path());
        let masters: Vec<u32> = (9..18).filter(|pid| master(&root, *pid).unwrap().is_some()).collect();
        assert_eq!(masters, [10, 12, 17]);
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..200), cmdline in "[ -~\\x00]{0,60}") {
            let built = texts(&bytes);
            let _ = nginx(&split(&cmdline), &cmdline, &built, &none);
            let _ = php_fpm(&split(&cmdline), &cmdline, &none);
        }
    }
}
