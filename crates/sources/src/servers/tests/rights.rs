//! Whose rights apply to a configuration: nobody can have a file read that their own rights do not allow.

use std::os::unix::fs::{PermissionsExt, chown, symlink};

use chokepoint_foreign::Files;

use super::super::config::{others_write, reduced};
use super::*;
use crate::reduction::Reduction;

const NOBODY: u32 = 65_534;
const SECRET: &str = "/srv/secret/only-root.conf";
const MARKER: &str = "marker-7f3a";

/// A host with a file that only root may read; nothing without root.
fn host() -> Option<Host> {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root has others' rights");
        return None;
    }
    let host = Host::nginx();
    host.write(SECRET, &format!("log_format {MARKER} '$status';\n"));
    std::fs::set_permissions(host.at(SECRET), std::fs::Permissions::from_mode(0o600)).unwrap();
    Some(host)
}

fn give(host: &Host, path: &str) {
    chown(host.at(path), Some(NOBODY), Some(NOBODY)).unwrap();
}

/// All bytes that a source read.
fn all(entries: &[Entry]) -> String {
    let bytes = |entry: &Entry| match &entry.outcome {
        Outcome::Ok(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        lack => format!("{lack:?}"),
    };
    entries.iter().map(bytes).collect()
}

/// The reason for the missing configuration. Nothing that was read contains the marker.
fn refused(host: &Host) -> String {
    let read = all(&host.read(&SERVER_CONFIG, Phase::First));
    assert!(!read.contains(MARKER), "{read}");
    why(&host.config())
}

const DENIED: &str = "permission denied: /srv/secret/only-root.conf (read with the rights of user 65534)";

#[test]
fn an_include_reads_what_the_owner_of_its_file_may_read() {
    let Some(host) = host() else { return };
    host.write(MAIN, &format!("events {{}}\nhttp {{ include conf.d/*.conf; include {SECRET}; }}"));
    let read = all(&host.read(&SERVER_CONFIG, Phase::First));
    assert!(read.contains(MARKER), "root includes its own file: {read}");
    host.write(MAIN, "events {}\nhttp { include conf.d/*.conf; }");
    host.write("/etc/nginx/conf.d/theirs.conf", "include /home/theirs/*.conf;");
    host.write("/home/theirs/own.conf", "keepalive_requests 7;");
    std::fs::set_permissions(host.at("/home/theirs/own.conf"), std::fs::Permissions::from_mode(0o600)).unwrap();
    give(&host, "/etc/nginx/conf.d/theirs.conf");
    give(&host, "/home/theirs/own.conf");
    assert_eq!(host.config().servers[&42].nginx().unwrap().files.len(), 4, "what is theirs they may read");
    host.write("/home/theirs/own.conf", &format!("include {SECRET};"));
    assert_eq!(refused(&host), DENIED);
    // Including a file of root does not restore root's rights.
    host.write("/etc/nginx/roots.conf", &format!("include {SECRET};"));
    host.write("/home/theirs/own.conf", "include /etc/nginx/roots.conf;");
    assert_eq!(refused(&host), DENIED);
}

#[test]
fn a_users_link_or_directory_leads_only_to_files_that_the_user_may_read() {
    let Some(host) = host() else { return };
    host.write(MAIN, "events {}\nhttp { include conf.d/*.conf; include /home/theirs/*.conf; }");
    host.write("/home/theirs/a.conf", "keepalive_requests 7;");
    give(&host, "/home/theirs");
    symlink(SECRET, host.at("/home/theirs/b.conf")).unwrap();
    assert_eq!(refused(&host), DENIED.replace(SECRET, "/home/theirs/b.conf"));
    std::fs::remove_file(host.at("/home/theirs/b.conf")).unwrap();
    assert_eq!(host.config().servers[&42].nginx().unwrap().files.len(), 3);
    symlink(SECRET, host.at("/etc/nginx/conf.d/z.conf")).unwrap();
    std::os::unix::fs::lchown(host.at("/etc/nginx/conf.d/z.conf"), Some(NOBODY), Some(NOBODY)).unwrap();
    assert_eq!(refused(&host), DENIED.replace(SECRET, "/etc/nginx/conf.d/z.conf"));
}

#[test]
fn a_master_has_the_rights_of_its_user() {
    let Some(host) = host() else { return };
    host.run_by(NOBODY);
    assert_eq!(host.config().servers[&42].nginx().unwrap().files.len(), 2, "everybody may read these");
    host.write(MAIN, &format!("events {{}}\nhttp {{ include conf.d/*.conf; include {SECRET}; }}"));
    assert_eq!(refused(&host), DENIED);
    // A directory that only root may list.
    host.write(MAIN, "events {}\nhttp { include conf.d/*.conf; include /srv/secret/*.conf; }");
    std::fs::set_permissions(host.at("/srv/secret"), std::fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(refused(&host), "permission denied: /srv/secret/*.conf (read with the rights of user 65534)");
}

#[test]
fn a_log_is_read_with_the_rights_of_the_user_who_names_it() {
    let Some(host) = host() else { return };
    let line = format!("2024/05/06 07:08:09 [error] 7#7: *1 {MARKER}\n");
    let log = "/var/log/nginx/theirs.log";
    host.write(log, "");
    for (named_by_them, is_read) in [(false, true), (true, false)] {
        host.write("/etc/nginx/conf.d/theirs.conf", &format!("error_log {log};"));
        if named_by_them {
            give(&host, "/etc/nginx/conf.d/theirs.conf");
        }
        host.append(log, &line);
        std::fs::set_permissions(host.at(log), std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(host.read(&SERVER_LOG, Phase::First), []);
        host.append(log, &line);
        let entries = host.read(&SERVER_LOG, Phase::Last);
        let entry = entries.iter().find(|entry| entry.item == format!("error {log}")).unwrap();
        let why = "permission denied (read with the rights of user 65534)";
        match &entry.outcome {
            Outcome::Ok(_) if is_read => {}
            Outcome::Absent(reason, None) if !is_read => assert_eq!(reason, why),
            other => panic!("{named_by_them}: {other:?}"),
        }
        assert!(is_read || !all(&entries).contains(MARKER));
    }
}

#[test]
fn a_log_in_a_users_directory_is_read_only_if_the_user_may_read_it() {
    let Some(host) = host() else { return };
    let (log, secret) = ("/home/theirs/error.log", "/srv/secret/other.log");
    let line = format!("2024/05/06 07:08:09 [crit] 7#7: *1 open() \"/{MARKER}\" failed (13: Permission denied)\n");
    host.write("/etc/nginx/conf.d/site.conf", &format!("error_log {log};"));
    // The owner of the directory is the server's own user: what is in it is evidence.
    host.write("/etc/passwd", "nobody:x:65534:65534::/:\n");
    host.write(MAIN, &format!("user nobody;\n{NGINX}"));
    host.write(secret, &line);
    std::fs::set_permissions(host.at(secret), std::fs::Permissions::from_mode(0o600)).unwrap();
    host.write(log, "");
    give(&host, "/home/theirs");
    let read = |meanwhile: &dyn Fn()| {
        assert_eq!(host.read(&SERVER_LOG, Phase::First), []);
        meanwhile();
        let entries = host.read(&SERVER_LOG, Phase::Last);
        let text = all(&entries);
        (entries.into_iter().find(|entry| entry.item == format!("error {log}")).unwrap().outcome, text)
    };
    let (outcome, text) = read(&|| host.append(log, &line));
    assert!(matches!(outcome, Outcome::Ok(_)) && text.contains(MARKER), "the server's user writes it, and everybody may read it: {text}");
    std::fs::remove_file(host.at(log)).unwrap();
    symlink(secret, host.at(log)).unwrap();
    let (outcome, text) = read(&|| host.append(secret, &line));
    assert_eq!(outcome, Outcome::Absent("permission denied (read with the rights of user 65534)".to_owned(), None));
    assert!(!text.contains(MARKER), "{text}");
}

#[test]
fn who_may_change_program_or_files_is_a_fact_of_the_configuration() {
    let Some(host) = host() else { return };
    let files = Files::of_directory(&host.at("/")).unwrap();
    let paths = [MAIN.to_owned(), SECRET.to_owned()];
    assert_eq!(others_write(&files, 0, paths.iter()), None);
    give(&host, SECRET);
    assert_eq!(others_write(&files, NOBODY, paths.iter()), None, "it is the server's own user");
    assert_eq!(others_write(&files, 0, paths.iter()).unwrap(), format!("{SECRET} can be changed by user {NOBODY}"));
    give(&host, "/etc/nginx");
    assert_eq!(others_write(&files, 0, paths.iter()).unwrap(), format!("/etc/nginx can be changed by user {NOBODY}"));
    assert!(others_write(&files, 0, ["/none".to_owned()].iter()).is_some(), "what cannot be told is not safe");
    host.write(SECRET, "");
    for (fact, known) in [("others_write nothing\n", None), ("", None), ("others_write why\n", Some("why"))] {
        let mut entry = host.read(&SERVER_CONFIG, Phase::First).remove(0);
        let Outcome::Ok(bytes) = &entry.outcome else { panic!("{entry:?}") };
        let kept = reduced(&String::from_utf8_lossy(&[fact.as_bytes(), bytes].concat()), &mut Reduction::default());
        entry.outcome = kept;
        let mut observation = Observation::default();
        (SERVER_CONFIG.put)(&mut observation, &entry);
        assert_eq!(observation.servers[&42].files.others_write.as_deref(), known, "{fact}");
    }
}

#[test]
fn no_configuration_and_no_log_is_a_file_that_the_kernel_makes_up() {
    let host = Host::nginx();
    let main = host.tree.path().join("main.conf");
    let named = main.display().to_string();
    std::fs::write(host.tree.path().join("proc/42/cmdline"), format!("nginx: master process nginx -c {named}\0")).unwrap();
    std::fs::remove_dir_all(host.at("")).unwrap();
    symlink("/", host.tree.path().join("proc/42/root")).unwrap();
    let link = host.tree.path().join("link.conf");
    symlink("/proc/self/smaps", &link).unwrap();
    let link = link.display().to_string();
    for path in ["/proc/self/smaps", "/proc/1/map_files/*", "/sys/kernel/mm/transparent_hugepage/enabled", &link] {
        std::fs::write(&main, format!("include {path};\nevents {{}}\n")).unwrap();
        let place = if path.starts_with("/sys") { "/sys" } else { "/proc" };
        let why = why(&host.config());
        assert!(why.contains(&format!("{path}: it is on {place}, where the files of a server are not read")), "{why}");
    }
    std::fs::write(&main, "events {}\nhttp { error_log /proc/self/smaps; }\n").unwrap();
    assert_eq!(host.read(&SERVER_LOG, Phase::First), []);
    let entries = host.read(&SERVER_LOG, Phase::Last);
    let entry = entries.iter().find(|entry| entry.item == "error /proc/self/smaps").unwrap();
    let why = "it is on /proc, where the files of a server are not read";
    assert_eq!(entry.outcome, Outcome::Absent(why.to_owned(), None));
}

/// Logs that another user could have written, as on a host whose users have server blocks of their own.
#[test]
fn a_log_that_another_user_may_write_is_no_evidence() {
    let Some(host) = host() else { return };
    let (log, line) = ("/srv/mallory/error.log", "2024/05/06 07:08:09 [alert] 7#7: *1 64 worker_connections are not enough\n");
    host.write("/etc/nginx/conf.d/site.conf", &format!("error_log {log};"));
    let read = |prepare: &dyn Fn()| {
        host.write(log, "");
        std::fs::set_permissions(host.at(log), std::fs::Permissions::from_mode(0o644)).unwrap();
        for path in ["/srv/mallory", log] {
            chown(host.at(path), Some(0), Some(0)).unwrap();
        }
        prepare();
        assert_eq!(host.read(&SERVER_LOG, Phase::First), []);
        host.append(log, line);
        let entries = host.read(&SERVER_LOG, Phase::Last);
        match entries.into_iter().find(|entry| entry.item == format!("error {log}")).unwrap().outcome {
            Outcome::Ok(_) => "read".to_owned(),
            Outcome::Absent(why, None) => why.replace("user nobody", "user 65534"),
            other => format!("{other:?}"),
        }
    };
    let theirs = "it may be written by user 65534: not read";
    assert_eq!(read(&|| {}), "read");
    assert_eq!(read(&|| give(&host, log)), theirs);
    assert_eq!(read(&|| give(&host, "/srv/mallory")), "it may be written by user 65534, to whom /srv/mallory is open: not read");
    let open_to_all = || std::fs::set_permissions(host.at(log), std::fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(read(&open_to_all), "it may be written by everybody: not read");
    // The configured user of the workers, and the master's.
    host.write("/etc/passwd", "nobody:x:65534:65534::/:\n");
    host.write(MAIN, &format!("user nobody;\n{NGINX}"));
    assert_eq!(read(&|| give(&host, log)), "read");
    host.write(MAIN, NGINX);
    assert_eq!(read(&|| give(&host, log)), theirs);
    // The server writes to another file.
    let fd = host.tree.path().join("proc/42/fd/7");
    symlink(host.at(MAIN), &fd).unwrap();
    assert_eq!(read(&|| {}), "the server has another file open, or none: not read");
    std::fs::remove_file(&fd).unwrap();
    symlink(host.at(log), &fd).unwrap();
    assert_eq!(read(&|| {}), "read");
}
