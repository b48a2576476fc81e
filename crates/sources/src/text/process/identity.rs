//! The identity of a process: its name, parent, executable, command line, namespace, user and allowed cores.

use chokepoint_foreign::printable;
use chokepoint_model::observation::{Identity, NetnsId, Observation};
use chokepoint_recording::{Entry, Outcome};

use super::stat::{self, read_while_alive};
use crate::netns::id_of_link;
use crate::reduction::{Reduction, unreadable};
use crate::root::{Root, WHY_ENDED};
use crate::scope::put_process;
use crate::servers::command_line;
use crate::table::{Cadence, Items, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::{ParseError, TextLine, core_list};
use crate::text::facts;

const NAME: &str = "process_identity";
/// Needed for the links of another user's process (proc_pid_exe(5), namespaces(7)). Without it the rest is read.
const NEEDS: &str = "CAP_SYS_PTRACE";
const STATUS_BYTES_MAX: usize = 64 << 10;
/// Most bytes of a command line, which may have megabytes.
const CMDLINE_BYTES_MAX: usize = 4096;
/// Lines of `/proc/PID/status` that are kept.
const STATUS_NAMES: [&str; 2] = ["Uid", "Cpus_allowed_list"];

/// Once for each process: `stat`, `Uid` and `Cpus_allowed_list` of `status`, `cmdline` (the first 4 KiB), and the links `exe` and `ns/net` if they are
/// accessible.
pub(crate) const PROCESS_IDENTITY: Source =
    Source { name: NAME, scope: ScopeKind::Process, cadence: Cadence::Once, needs: Some(NEEDS), read, put, redact: Redact::Reduced };

fn read(context: &ReadContext<'_>) -> Items {
    let Some(pid) = context.pid() else { return Vec::new() };
    only_item(read_while_alive(context.root, NAME, pid, |line, _| read_facts(context.root, pid, line)))
}

fn read_facts(root: &Root, pid: u32, stat: &[u8]) -> Result<Outcome, Outcome> {
    let mut text = Vec::new();
    facts::add(&mut text, "stat", stat);
    let status = match root.read_process(pid, "status", STATUS_BYTES_MAX, None) {
        Outcome::Ok(bytes) => bytes,
        lack => return Err(lack),
    };
    for line in status.split(|&byte| byte == b'\n') {
        for name in STATUS_NAMES {
            if let Some(value) = line.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b":")) {
                facts::add(&mut text, name, value.trim_ascii());
            }
        }
    }
    facts::add(&mut text, "cmdline", &cmdline(root, pid)?);
    for (name, file) in [("exe", "exe"), ("netns", "ns/net")] {
        match root.link_process(pid, file, Some(NEEDS)) {
            Outcome::Ok(target) => facts::add(&mut text, name, &target),
            Outcome::Absent(why, _) if why == WHY_ENDED => return Err(stat::ended()),
            // A kernel thread has no executable, and another user's links are not accessible.
            _ => {}
        }
    }
    Ok(Outcome::Ok(text))
}

/// The beginning of the command line. A longer one is no error.
fn cmdline(root: &Root, pid: u32) -> Result<Vec<u8>, Outcome> {
    root.command_line(pid, CMDLINE_BYTES_MAX).map_err(|error| crate::root::outcome_of(&error, None))
}

/// Reduces the command line in the facts.
pub(crate) fn reduced(bytes: &[u8], reduction: &mut Reduction) -> Outcome {
    let Ok(facts) = facts::read(NAME, bytes) else { return unreadable() };
    let mut text = Vec::new();
    for fact in facts {
        match fact.name {
            "cmdline" => facts::add(&mut text, fact.name, &command_line::reduced(&fact.value, reduction)),
            name => facts::add(&mut text, name, &fact.value),
        }
    }
    Outcome::Ok(text)
}

/// Parses the facts. Without `exe` and `netns`, which may be inaccessible, the executable is `None` and the namespace 0, which is no namespace's number. The
/// mark " (deleted)" that the kernel adds after an upgrade is removed from the executable.
pub(crate) fn parse(bytes: &[u8]) -> Result<Identity, ParseError> {
    let facts = facts::read(NAME, bytes)?;
    let need = |name, expected| facts::need(NAME, &facts, name, expected);
    let place = |fact: &facts::Fact<'_>| TextLine::new(NAME, fact.line);
    let stat = need("stat", "the line \"stat\"")?;
    let stat = stat::parse(place(stat), &stat.value)?;
    let uid = need("Uid", "the line \"Uid\"")?;
    // Real, effective, saved and file system user id.
    let effective = place(uid).number("four user ids", uid.text().split_ascii_whitespace().nth(1))?;
    let cpus = need("Cpus_allowed_list", "the line \"Cpus_allowed_list\"")?;
    let netns = match facts::find(&facts, "netns") {
        Some(fact) => id_of_link(&fact.text()).ok_or_else(|| place(fact).expected("net:[INODE]", &fact.text()))?,
        None => NetnsId(0),
    };
    Ok(Identity {
        pid: stat.pid,
        parent: stat.parent,
        start_ticks: stat.start_ticks,
        // It goes into names, and these into lines.
        comm: printable(&stat.comm).into_owned(),
        exe: facts::find(&facts, "exe").map(|fact| {
            let exe = String::from_utf8_lossy(&fact.value);
            exe.strip_suffix(" (deleted)").unwrap_or(&exe).to_owned()
        }),
        cmdline: arguments(&need("cmdline", "the line \"cmdline\"")?.value),
        netns,
        uid: effective,
        cpus_allowed: core_list(place(cpus), &cpus.text())?,
    })
}

/// The arguments separated by blanks. Arguments end with NUL bytes; programs that set their title leave many at the end.
fn arguments(cmdline: &[u8]) -> String {
    let end = cmdline.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let spaced: Vec<u8> = cmdline[..end].iter().map(|&byte| if byte == 0 { b' ' } else { byte }).collect();
    String::from_utf8_lossy(&spaced).into_owned()
}

fn put(observation: &mut Observation, entry: &Entry) {
    put_process(observation, entry, |process| &mut process.identity, parse);
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "stat 42 (php-fpm: ) (x) S 7 41 41 0 -1 4194560 500 0 0 0 250 125 0 0 20 0 1 0 98765 70000000 1500 18446744073709551615 1\\n\n\
        Uid 0\t33\t33\t33\nCpus_allowed_list 0-1,4\ncmdline php-fpm: pool www\0--k=a\\nb\0\0\0\nexe /usr/sbin/php-fpm8.2 (deleted)\nnetns net:[4026532201]\n";

    #[test]
    fn awkward_names_and_arguments_are_parsed() {
        let identity = parse(TEXT.as_bytes()).unwrap();
        assert_eq!((identity.pid, identity.parent, identity.start_ticks, identity.uid), (42, 7, 98_765, 33));
        assert_eq!(identity.comm, "php-fpm: ) (x");
        assert_eq!(identity.exe.as_deref(), Some("/usr/sbin/php-fpm8.2"));
        assert_eq!(identity.cmdline, "php-fpm: pool www --k=a\nb");
        assert_eq!(identity.netns, NetnsId(4_026_532_201));
        assert_eq!(identity.cpus_allowed, [0, 1, 4]);
    }

    /// A name is up to 15 bytes of anything (prctl(2), PR_SET_NAME).
    #[test]
    fn a_name_with_a_line_feed_forges_no_line() {
        let text = TEXT.replace("(php-fpm: ) (x)", "(a\\nHEALTHY \u{1b}[2J)");
        let identity = parse(text.as_bytes()).unwrap();
        assert_eq!(identity.comm, "a\\nHEALTHY \\x1b[2J");
    }

    #[test]
    fn inaccessible_links_are_unknown() {
        let text: String =
            TEXT.lines().filter(|line| !line.starts_with("exe") && !line.starts_with("netns")).map(|line| format!("{line}\n")).collect();
        let identity = parse(text.as_bytes()).unwrap();
        assert_eq!((identity.exe, identity.netns), (None, NetnsId(0)));
        assert!(parse(TEXT.replace("net:[", "user:[").as_bytes()).is_err());
        for name in ["stat", "Uid", "Cpus_allowed_list", "cmdline"] {
            let less: String = TEXT.lines().filter(|line| !line.starts_with(name)).map(|line| format!("{line}\n")).collect();
            assert!(parse(less.as_bytes()).is_err(), "without {name}");
        }
    }

    #[test]
    fn arguments_need_not_be_utf_8() {
        assert_eq!(arguments(b"nginx: worker\xff process\0\0\0"), "nginx: worker\u{fffd} process");
        assert_eq!(arguments(b"\0\0"), "");
        assert_eq!(arguments(b""), "");
        assert_eq!(arguments(b"a\0\0b\0"), "a  b");
    }
}
