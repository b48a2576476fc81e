//! Servers: configuration and command line by kind, start, and the wait until they are ready.

pub(crate) mod ready;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use self::ready::Condition;
use crate::error::LabError;
use crate::machine::spawn::{self, Placement};
use crate::preflight::{self, Tools};
use crate::scenario::document::{ProgramKind, Server};
use crate::scenario::placeholder::{self, Values};

const READY_WAIT: Duration = Duration::from_secs(10);
const READY_POLL: Duration = Duration::from_millis(20);
/// How long to watch a program without a readiness condition: most failing programs end within this time.
const STARTED_WAIT: Duration = Duration::from_millis(100);
const PASSWD_BYTES_MAX: u64 = 4 << 20;
const LOG_BYTES_SHOWN: u64 = 4096;
const LOG_LINES_SHOWN: usize = 12;

/// Users that distributions create for web servers. The first that exists is taken.
const USERS: [&str; 5] = ["www-data", "nginx", "http", "apache", "nobody"];

/// A user of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) group: String,
}

/// Looks up a user in /etc/passwd and /etc/group (passwd(5)). Without a name, the first of the usual ones. A number is a user of its own, with a group of the
/// same number; it needs no entry.
pub(crate) fn find_user(name: Option<&str>) -> Option<User> {
    let read = |path: &str| {
        let mut bytes = Vec::new();
        File::open(path).and_then(|file| file.take(PASSWD_BYTES_MAX).read_to_end(&mut bytes)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    if let Some(uid) = name.and_then(|name| name.parse::<u32>().ok()) {
        return Some(User { name: uid.to_string(), uid, gid: uid, group: uid.to_string() });
    }
    let (passwd, group) = (read("/etc/passwd")?, read("/etc/group").unwrap_or_default());
    match name {
        Some(name) => parse_user(&passwd, &group, name),
        None => USERS.iter().find_map(|name| parse_user(&passwd, &group, name)),
    }
}

fn parse_user(passwd: &str, group: &str, name: &str) -> Option<User> {
    let entry = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|entry| entry.first() == Some(&name))?;
    let (uid, gid): (u32, u32) = (entry.get(2)?.parse().ok()?, entry.get(3)?.parse().ok()?);
    let mut groups = group.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let group = groups.find(|entry| entry.get(2).is_some_and(|id| id.parse() == Ok(gid)));
    Some(User { name: name.to_owned(), uid, gid, group: group.map_or_else(|| gid.to_string(), |entry| entry[0].to_owned()) })
}

/// How to start one server.
pub(crate) struct ServerPlan {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) config: Option<String>,
    pub(crate) user: Option<(u32, u32)>,
    pub(crate) ready: Condition,
    pub(crate) ready_time_max: Duration,
    pub(crate) notes: Vec<String>,
}

/// Plans the start of a server. Writes nothing.
pub(crate) fn plan(server: &Server, values: &Values<'_>, tools: &Tools, run: &Path, user: &User) -> Result<ServerPlan, LabError> {
    let wrong = |why: String| LabError::Scenario(format!("server \"{}\": {why}", server.name));
    let expand = |text: &str| placeholder::expand(text, values).map_err(wrong);
    let config = server.config.as_deref().map(expand).transpose()?;
    let file = |ending: &str| format!("{}/{}.{ending}", run.display(), server.name);
    let text = config.as_deref().unwrap_or_default();
    let (program, arguments, notes) = match server.kind {
        ProgramKind::Nginx => {
            let program = tools.nginx.clone().ok_or_else(|| wrong("nginx was not looked for".to_owned()))?;
            let arguments = nginx_arguments(text, run, &file, nginx_version(&program));
            (program, arguments, nginx_notes(&server.name, text))
        }
        ProgramKind::PhpFpm => {
            let program = tools.php_fpm.clone().ok_or_else(|| wrong("php-fpm was not looked for".to_owned()))?;
            let note = (!has_setting(text, "error_log")).then(|| {
                format!("server \"{}\" sets no error_log in [global], so php-fpm uses the log file it was built with", server.name)
            });
            (program, vec!["--nodaemonize".to_owned(), "--fpm-config".to_owned(), file("conf")], note.into_iter().collect())
        }
        ProgramKind::Command => {
            let words = server.command.iter().flatten().map(|word| expand(word)).collect::<Result<Vec<_>, _>>()?;
            let (first, rest) = words.split_first().ok_or_else(|| wrong("its command is empty".to_owned()))?;
            let program =
                if first.contains('/') { Some(PathBuf::from(first)) } else { preflight::find_program(first, &preflight::directories()) };
            let program = program.ok_or_else(|| wrong(format!("there is no program \"{first}\" on this machine")))?;
            (program, rest.to_vec(), Vec::new())
        }
    };
    let mut env =
        vec![("PATH".to_owned(), search_path()), ("HOME".to_owned(), run.display().to_string()), ("LANG".to_owned(), "C.UTF-8".to_owned())];
    for (name, value) in &server.env {
        env.retain(|(known, _)| known != name);
        env.push((name.clone(), expand(value)?));
    }
    let (ready, ready_time_max) = condition(server, &expand)?;
    let switches = server.kind == ProgramKind::Command && server.user.is_some();
    let user = switches.then_some((user.uid, user.gid));
    Ok(ServerPlan { program, arguments, env, config, user, ready, ready_time_max, notes })
}

fn search_path() -> String {
    preflight::directories().iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(":")
}

fn condition(server: &Server, expand: &dyn Fn(&str) -> Result<String, LabError>) -> Result<(Condition, Duration), LabError> {
    let Some(given) = &server.ready else {
        let condition = if server.kind == ProgramKind::Command { Condition::Started } else { Condition::Listening };
        return Ok((condition, READY_WAIT));
    };
    let condition = if let Some(tcp) = &given.tcp {
        let text = expand(tcp)?;
        Condition::Tcp(text.parse().map_err(|_| LabError::Scenario(format!("\"{text}\" is not an address with a port")))?)
    } else if let Some(unix) = &given.unix {
        Condition::Unix(expand(unix)?)
    } else if let Some(http) = &given.http {
        Condition::Http(expand(http)?)
    } else if given.finished == Some(true) {
        Condition::Finished
    } else {
        Condition::Listening
    };
    Ok((condition, given.timeout.map_or(READY_WAIT, |timeout| timeout.0)))
}

fn nginx_arguments(config: &str, run: &Path, file: &dyn Fn(&str) -> String, version: Option<(u32, u32, u32)>) -> Vec<String> {
    let mut arguments = vec!["-p".to_owned(), format!("{}/", run.display()), "-c".to_owned(), file("conf")];
    // Before 1.19.5 the first error log was compiled in and could not be set.
    if version.is_none_or(|version| version >= (1, 19, 5)) {
        arguments.extend(["-e".to_owned(), file("error.log")]);
    }
    let mut directives = Vec::new();
    if !has_directive(config, "daemon") {
        directives.push("daemon off;".to_owned());
    }
    if !has_directive(config, "pid") {
        directives.push(format!("pid {};", file("pid")));
    }
    if !directives.is_empty() {
        arguments.extend(["-g".to_owned(), directives.join(" ")]);
    }
    arguments
}

/// "nginx version: nginx/1.22.1" on stderr.
fn nginx_version(program: &Path) -> Option<(u32, u32, u32)> {
    let output = Command::new(program).arg("-v").stdin(Stdio::null()).output().ok()?;
    parse_nginx_version(&String::from_utf8_lossy(&output.stderr))
}

fn parse_nginx_version(text: &str) -> Option<(u32, u32, u32)> {
    let version = text.split_once('/')?.1;
    let mut parts = version.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?))
}

/// Notes on files that nginx writes outside the run directory, which down cannot remove.
fn nginx_notes(name: &str, config: &str) -> Vec<String> {
    let mut notes = Vec::new();
    if has_directive(config, "http") && !has_directive(config, "access_log") {
        notes.push(format!("server \"{name}\" sets no access_log, so nginx uses the log file it was built with"));
    }
    if has_directive(config, "http") && !has_directive(config, "client_body_temp_path") {
        notes.push(format!("server \"{name}\" sets no temporary paths ({{nginx_temp_paths}} does), so nginx uses those it was built with"));
    }
    notes
}

/// True where an nginx configuration has this directive.
fn has_directive(config: &str, name: &str) -> bool {
    let statements = config.lines().flat_map(|line| line.split('#').next().unwrap_or_default().split([';', '{', '}']));
    statements.map(|statement| statement.split_ascii_whitespace().next()).any(|word| word == Some(name))
}

/// True where a line of an ini file sets this name.
fn has_setting(config: &str, name: &str) -> bool {
    config.lines().filter_map(|line| line.split_once('=')).any(|(key, _)| key.trim() == name)
}

/// Starts a server.
pub(crate) fn start(name: &str, plan: &ServerPlan, run: &Path, placement: Placement) -> Result<Child, LabError> {
    let log = |ending: &str| {
        let path = run.join(format!("{name}.{ending}"));
        File::options().append(true).create(true).open(&path).map_err(LabError::io("cannot make", &path))
    };
    let mut command = Command::new(&plan.program);
    command.args(&plan.arguments).env_clear().envs(plan.env.iter().cloned()).current_dir(run);
    command.stdin(Stdio::null()).stdout(log("stdout")?).stderr(log("stderr")?);
    spawn::place(&mut command, placement);
    command.spawn().map_err(|error| LabError::Server {
        server: name.to_owned(),
        why: format!("cannot be started ({}): {error}", plan.program.display()),
        log: String::new(),
    })
}

/// Waits until a server is ready.
pub(crate) fn wait_ready(
    name: &str,
    plan: &ServerPlan,
    child: &mut Child,
    run: &Path,
    netns: &Path,
    cancelled: &dyn Fn() -> bool,
) -> Result<(), LabError> {
    let start = Instant::now();
    let failed = |why: String| LabError::Server { server: name.to_owned(), why, log: last_lines(name, run) };
    loop {
        let status = child.try_wait().map_err(|error| failed(format!("cannot be watched: {error}")))?;
        match (status, &plan.ready) {
            (Some(status), _) if !status.success() => return Err(failed(format!("ended at once ({status})"))),
            (Some(_), Condition::Finished) => return Ok(()),
            (_, Condition::Started) if start.elapsed() >= STARTED_WAIT => return Ok(()),
            _ if ready::holds(&plan.ready, netns, child.id()) => return Ok(()),
            _ => {}
        }
        if start.elapsed() >= plan.ready_time_max.max(STARTED_WAIT) {
            let waited = plan.ready_time_max.as_secs_f64();
            return Err(failed(format!("is not ready after {waited} s: {}", unmet(&plan.ready))));
        }
        if cancelled() {
            return Err(LabError::Interrupted);
        }
        std::thread::sleep(READY_POLL);
    }
}

fn unmet(condition: &Condition) -> String {
    match condition {
        Condition::Tcp(address) => format!("nothing listens on {address} in its host"),
        Condition::Unix(path) => format!("nothing listens on {path}"),
        Condition::Http(url) => format!("{url} gives no response with status 2xx or 3xx"),
        Condition::Listening => "it has no listening socket".to_owned(),
        Condition::Finished => "it has not ended".to_owned(),
        Condition::Started => "it did not start".to_owned(),
    }
}

/// The last lines of a server's standard error, error log or standard output, indented.
fn last_lines(name: &str, run: &Path) -> String {
    let tail = |ending: &str| {
        let mut file = File::open(run.join(format!("{name}.{ending}"))).ok()?;
        let length = file.metadata().ok()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES_SHOWN))).ok()?;
        let mut bytes = Vec::new();
        file.take(LOG_BYTES_SHOWN).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let lines = &lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..];
        (!lines.is_empty()).then(|| lines.iter().map(|line| format!("\n  {line}")).collect::<String>())
    };
    ["stderr", "error.log", "stdout"].iter().find_map(|ending| tail(ending)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_with_their_group() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:34:x:/var/www:/usr/sbin/nologin\nbroken\nbad:x:y:z\n";
        let group = "root:x:0:\nbroken\nweb:x:34:\n";
        let wanted = User { name: "www-data".into(), uid: 33, gid: 34, group: "web".into() };
        assert_eq!(parse_user(passwd, group, "www-data"), Some(wanted));
        assert_eq!(parse_user(passwd, "", "www-data").map(|user| user.group).as_deref(), Some("34"));
        let numbered = User { name: "65531".into(), uid: 65_531, gid: 65_531, group: "65531".into() };
        assert_eq!(find_user(Some("65531")), Some(numbered));
        assert_eq!((parse_user(passwd, group, "bad"), parse_user(passwd, group, "www"), parse_user("", "", "")), (None, None, None));
    }

    #[test]
    fn directives_are_found_and_arguments_are_not() {
        let config = "# daemon on;\nuser x; pid /x;\nevents {} http { access_log off; }\n";
        assert!(has_directive(config, "pid") && has_directive(config, "access_log") && has_directive(config, "http"));
        assert!(!has_directive(config, "daemon") && !has_directive(config, "/x") && !has_directive(config, "access"));
        assert!(has_setting("[global]\nerror_log = /x\n", "error_log") && !has_setting("[global]\n;error_log = /x\n", "error_log"));
    }

    #[test]
    fn nginx_stays_in_the_foreground_and_below_the_run_directory() {
        let file = |ending: &str| format!("/r/web.{ending}");
        let arguments = nginx_arguments("events {}", Path::new("/r"), &file, Some((1, 22, 1)));
        assert_eq!(arguments, ["-p", "/r/", "-c", "/r/web.conf", "-e", "/r/web.error.log", "-g", "daemon off; pid /r/web.pid;"]);
        let arguments = nginx_arguments("daemon off; pid /x;", Path::new("/r"), &file, Some((1, 18, 0)));
        assert_eq!(arguments, ["-p", "/r/", "-c", "/r/web.conf"]);
        assert_eq!(parse_nginx_version("nginx version: nginx/1.22.1\n"), Some((1, 22, 1)));
        assert_eq!(parse_nginx_version("nginx version: openresty/1.21.4.1"), Some((1, 21, 4)));
        assert_eq!((parse_nginx_version(""), parse_nginx_version("nginx/1.2")), (None, None));
        assert_eq!(nginx_notes("w", "events {} http { access_log off; client_body_temp_path /x; }"), Vec::<String>::new());
        assert_eq!(nginx_notes("w", "events {} http {}").len(), 2);
    }
}
