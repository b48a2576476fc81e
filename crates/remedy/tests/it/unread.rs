//! Edits of others that are not reloaded yet come into force only with the user's consent.
//!
//! Live beside others: real servers of its own; their files are judged.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

use chokepoint_model::change::{Activation, ServerSetting};
use chokepoint_remedy::{ApplyError, Consent, Filter, Guard, plan};

use crate::servers::{self, Nginx, PhpFpm, apply, purpose, store};

fn unread(result: Result<u64, ApplyError>) -> Vec<String> {
    match result {
        Err(ApplyError::Unread { files, .. }) => files,
        other => panic!("{other:?}"),
    }
}

fn agreed(guard: &mut Guard, change: &chokepoint_model::change::Change, consent: &Consent) -> Result<u64, ApplyError> {
    guard.apply_agreed(std::slice::from_ref(change), &purpose(), consent, &mut |_| {}).map(|applied| applied.id)
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

#[test]
fn an_edit_of_another_file_needs_consent() {
    let Some(nginx) = Nginx::start("unread") else { return };
    let guard = &mut store(nginx.dir()).lock().unwrap();
    let before = (fs::metadata(nginx.main()).unwrap().ino(), nginx.workers());
    let change = nginx.change(ServerSetting::NginxWorkerConnections, "100", "200");
    nginx.age();
    let site = fs::read_to_string(nginx.site()).unwrap();
    fs::write(nginx.site(), site.replace("return 200", "return 503")).unwrap();
    // Its modification time is set back, as in an unpacked archive.
    fs::File::options().write(true).open(nginx.site()).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let link = text(&nginx.dir().join("enabled/site"));
    assert_eq!(plan(&change).unwrap().unwrap().unread, std::slice::from_ref(&link));
    assert_eq!(unread(apply(guard, std::slice::from_ref(&change))), std::slice::from_ref(&link));
    assert_eq!(
        unread(agreed(guard, &change, &Consent::Unread(vec![text(&nginx.main())]))),
        std::slice::from_ref(&link),
        "that was not asked"
    );
    assert_eq!((fs::metadata(nginx.main()).unwrap().ino(), nginx.workers()), before, "neither edited nor reloaded");
    assert!(nginx.answers() && guard.pending().is_empty());
    agreed(guard, &change, &Consent::Unread(vec![link.clone()])).unwrap();
    assert!(!nginx.answers(), "the other edit is in force too");
    // Now it has been read: no consent is needed.
    apply(guard, &[nginx.change(ServerSetting::NginxWorkerConnections, "200", "300")]).unwrap();
    // An undo reports it and does not wait for an answer.
    nginx.age();
    fs::write(nginx.site(), &site).unwrap();
    let told = guard.unread(&Filter::All);
    assert_eq!((told.len(), told[0].server, &told[0].files), (1, "nginx", &vec![link]));
    assert!(guard.undo(&Filter::All).is_clean());
    assert!(nginx.answers() && guard.unread(&Filter::All).is_empty());
}

#[test]
fn an_added_or_removed_file_needs_consent() {
    let Some(nginx) = Nginx::start("added") else { return };
    let guard = &mut store(nginx.dir()).lock().unwrap();
    let change = nginx.change(ServerSetting::NginxWorkerConnections, "100", "200");
    nginx.age();
    let enabled = nginx.dir().join("enabled");
    fs::write(enabled.join("more"), "# nothing\n").unwrap();
    assert_eq!(unread(apply(guard, std::slice::from_ref(&change))), [text(&enabled.join("more")), text(&enabled)]);
    fs::remove_file(enabled.join("more")).unwrap();
    assert_eq!(unread(apply(guard, std::slice::from_ref(&change))), [text(&enabled)], "what was there may have been read");
    agreed(guard, &change, &Consent::AnyUnread).unwrap();
    // A refused change leaves no trace that would count as an edit.
    let files = nginx.change(ServerSetting::NginxWorkerRlimitNofile, "unset", "99999999999999999999");
    assert!(matches!(apply(guard, &[files]), Err(ApplyError::ServerRefuses { .. })));
    assert!(guard.undo(&Filter::All).is_clean());
    apply(guard, &[change]).unwrap();
    assert!(guard.undo(&Filter::All).is_clean() && nginx.answers());
}

#[test]
fn an_edit_reloaded_by_hand_needs_no_consent() {
    let Some(nginx) = Nginx::start("by-hand") else { return };
    let guard = &mut store(nginx.dir()).lock().unwrap();
    nginx.age();
    let site = fs::read_to_string(nginx.site()).unwrap();
    fs::write(nginx.site(), site + "# more\n").unwrap();
    let before = nginx.workers();
    nginx.reload();
    servers::until("new workers alone", || {
        let now = nginx.workers();
        !now.is_empty() && now.iter().all(|pid| !before.contains(pid))
    });
    apply(guard, &[nginx.change(ServerSetting::NginxWorkerConnections, "100", "200")]).unwrap();
    assert!(guard.undo(&Filter::All).is_clean());
}

/// The master restarts a worker with the configuration that it has read before.
#[test]
fn a_restarted_worker_does_not_prove_that_an_edit_was_read() {
    let Some(nginx) = Nginx::start("respawn").map(Nginx::with_one_worker) else { return };
    let guard = &mut store(nginx.dir()).lock().unwrap();
    nginx.age();
    let site = fs::read_to_string(nginx.site()).unwrap();
    fs::write(nginx.site(), site + "# half an ed").unwrap();
    nginx.age();
    let old = nginx.workers();
    let [worker] = old[..] else { panic!("{old:?}") };
    let worker = rustix::process::Pid::from_raw(i32::try_from(worker).unwrap()).unwrap();
    rustix::process::kill_process(worker, rustix::process::Signal::KILL).unwrap();
    servers::until("a new worker", || matches!(nginx.workers()[..], [new] if new != old[0]));
    let change = nginx.change(ServerSetting::NginxWorkerConnections, "100", "200");
    assert_eq!(unread(apply(guard, &[change])), [text(&nginx.dir().join("enabled/site"))]);
}

/// A release is often switched by a link above the file. The new target may be older than the server.
#[test]
fn a_redirected_link_on_the_path_needs_consent() {
    let Some(mut nginx) = Nginx::start("release") else { return };
    let dir = nginx.dir().to_owned();
    for release in ["r1", "r2"] {
        fs::create_dir(dir.join(release)).unwrap();
        fs::write(dir.join(release).join("a.conf"), format!("# {release}\n")).unwrap();
    }
    std::os::unix::fs::symlink("r1", dir.join("current")).unwrap();
    let including =
        fs::read_to_string(nginx.main()).unwrap().replace("include enabled/*;", "include enabled/*;\n    include current/a.conf;");
    fs::write(nginx.main(), including).unwrap();
    nginx.restart();
    nginx.age();
    let guard = &mut store(&dir).lock().unwrap();
    let change = nginx.change(ServerSetting::NginxWorkerConnections, "100", "200");
    assert!(plan(&change).unwrap().unwrap().unread.is_empty());
    fs::remove_file(dir.join("current")).unwrap();
    std::os::unix::fs::symlink("r2", dir.join("current")).unwrap();
    assert_eq!(unread(apply(guard, std::slice::from_ref(&change))), [text(&dir.join("current/a.conf"))]);
    // So does a directory that took another one's name.
    fs::remove_file(dir.join("current")).unwrap();
    fs::rename(dir.join("r2"), dir.join("current")).unwrap();
    assert_eq!(unread(apply(guard, &[change])), [text(&dir.join("current/a.conf"))]);
}

#[test]
fn the_own_edit_of_a_backlog_needs_no_consent() {
    for (name, pool) in [
        ("static", "pm = static\npm.max_children = 2\n"),
        ("dynamic", "pm = dynamic\npm.max_children = 2\npm.start_servers = 2\npm.min_spare_servers = 2\npm.max_spare_servers = 2\n"),
    ] {
        let Some(fpm) = PhpFpm::start_with(name, false, pool) else { return };
        let guard = &mut store(fpm.dir()).lock().unwrap();
        let queue = |from, to| fpm.change(ServerSetting::PhpFpmBacklog { pool: "www".to_owned() }, from, to, Activation::Live);
        let children = |from, to| fpm.change(ServerSetting::PhpFpmMaxChildren { pool: "www".to_owned() }, from, to, Activation::Reload);
        servers::age(&fpm.worker_pids());
        // Changed by this program without a reload: the file is newer than the workers.
        let first = apply(guard, &[queue("5", "64")]).unwrap();
        assert!(guard.unread(&Filter::All).is_empty());
        let second = apply(guard, &[children("2", "3")]).unwrap();
        assert!(guard.undo(&Filter::Id(second)).is_clean());
        assert!(guard.undo(&Filter::Id(first)).is_clean());
        // Restored without a reload: the file is newer again.
        let third = apply(guard, &[children("2", "3")]).unwrap();
        assert!(guard.undo(&Filter::Id(third)).is_clean());
        // Someone else's edit before the own one.
        servers::age(&fpm.worker_pids());
        fs::write(fpm.main(), fs::read_to_string(fpm.main()).unwrap() + "; more\n").unwrap();
        apply(guard, &[queue("5", "64")]).unwrap();
        assert_eq!(unread(apply(guard, &[children("2", "3")])), [text(&fpm.main())]);
        assert!(guard.undo(&Filter::All).is_clean());
    }
}

#[test]
fn consent_is_needed_where_nothing_proves_what_was_read() {
    let Some(fpm) = PhpFpm::start_with("ondemand", false, "pm = ondemand\npm.max_children = 2\n") else { return };
    let guard = &mut store(fpm.dir()).lock().unwrap();
    let change = fpm.change(ServerSetting::PhpFpmMaxChildren { pool: "www".to_owned() }, "2", "3", Activation::Reload);
    fpm.age();
    fs::write(fpm.main(), fs::read_to_string(fpm.main()).unwrap() + "; more\n").unwrap();
    assert_eq!(unread(apply(guard, std::slice::from_ref(&change))), [text(&fpm.main())]);
    agreed(guard, &change, &Consent::AnyUnread).unwrap();
    assert!(guard.undo(&Filter::All).is_clean());
}
