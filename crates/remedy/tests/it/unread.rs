//! What others edited and did not reload comes into force with nobody's change unless that was agreed to.
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
fn an_edit_of_another_file_is_not_put_in_force_unasked() {
    let Some(nginx) = Nginx::start("unread") else { return };
    let guard = &mut store(nginx.dir()).lock().unwrap();
    let before = (fs::metadata(nginx.main()).unwrap().ino(), nginx.workers());
    let change = nginx.change(ServerSetting::NginxWorkerConnections, "100", "200");
    nginx.age();
    let site = fs::read_to_string(nginx.site()).unwrap();
    fs::write(nginx.site(), site.replace("return 200", "return 503")).unwrap();
    // Its time of modification is set back, as an unpacked archive has it.
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
    // Now it has been read: nothing is asked any more.
    apply(guard, &[nginx.change(ServerSetting::NginxWorkerConnections, "200", "300")]).unwrap();
    // An undo does not wait for an answer. It says what it does.
    nginx.age();
    fs::write(nginx.site(), &site).unwrap();
    let told = guard.unread(&Filter::All);
    assert_eq!((told.len(), told[0].server, &told[0].files), (1, "nginx", &vec![link]));
    assert!(guard.undo(&Filter::All).is_clean());
    assert!(nginx.answers() && guard.unread(&Filter::All).is_empty());
}

#[test]
fn a_file_that_was_added_or_taken_away_counts() {
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
    // What is refused leaves no trace that would be taken for an edit.
    let files = nginx.change(ServerSetting::NginxWorkerRlimitNofile, "unset", "99999999999999999999");
    assert!(matches!(apply(guard, &[files]), Err(ApplyError::ServerRefuses { .. })));
    assert!(guard.undo(&Filter::All).is_clean());
    apply(guard, &[change]).unwrap();
    assert!(guard.undo(&Filter::All).is_clean() && nginx.answers());
}

#[test]
fn an_edit_that_was_put_in_force_by_hand_is_no_reason_to_ask() {
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

/// What ended is started anew with what the master has read before.
#[test]
fn a_worker_that_died_is_no_reason_to_believe_that_an_edit_was_read() {
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

/// A release is switched by one link above the file: what it leads to may be older than the server.
#[test]
fn a_link_on_the_way_that_leads_elsewhere_counts() {
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
fn our_own_edit_of_a_backlog_is_no_strangers() {
    for (name, pool) in [
        ("static", "pm = static\npm.max_children = 2\n"),
        ("dynamic", "pm = dynamic\npm.max_children = 2\npm.start_servers = 2\npm.min_spare_servers = 2\npm.max_spare_servers = 2\n"),
    ] {
        let Some(fpm) = PhpFpm::start_with(name, false, pool) else { return };
        let guard = &mut store(fpm.dir()).lock().unwrap();
        let queue = |from, to| fpm.change(ServerSetting::PhpFpmBacklog { pool: "www".to_owned() }, from, to, Activation::Live);
        let children = |from, to| fpm.change(ServerSetting::PhpFpmMaxChildren { pool: "www".to_owned() }, from, to, Activation::Reload);
        servers::age(&fpm.worker_pids());
        // Changed in place: the file is newer than the workers, by us.
        let first = apply(guard, &[queue("5", "64")]).unwrap();
        assert!(guard.unread(&Filter::All).is_empty());
        let second = apply(guard, &[children("2", "3")]).unwrap();
        assert!(guard.undo(&Filter::Id(second)).is_clean());
        assert!(guard.undo(&Filter::Id(first)).is_clean());
        // Put back in place: again it is newer, and again by us.
        let third = apply(guard, &[children("2", "3")]).unwrap();
        assert!(guard.undo(&Filter::Id(third)).is_clean());
        // A stranger's edit under ours.
        servers::age(&fpm.worker_pids());
        fs::write(fpm.main(), fs::read_to_string(fpm.main()).unwrap() + "; more\n").unwrap();
        apply(guard, &[queue("5", "64")]).unwrap();
        assert_eq!(unread(apply(guard, &[children("2", "3")])), [text(&fpm.main())]);
        assert!(guard.undo(&Filter::All).is_clean());
    }
}

#[test]
fn where_nothing_shows_what_was_read_it_is_asked() {
    let Some(fpm) = PhpFpm::start_with("ondemand", false, "pm = ondemand\npm.max_children = 2\n") else { return };
    let guard = &mut store(fpm.dir()).lock().unwrap();
    let change = fpm.change(ServerSetting::PhpFpmMaxChildren { pool: "www".to_owned() }, "2", "3", Activation::Reload);
    servers::age(&[fpm.pid()]);
    fs::write(fpm.main(), fs::read_to_string(fpm.main()).unwrap() + "; more\n").unwrap();
    assert_eq!(unread(apply(guard, std::slice::from_ref(&change))), [text(&fpm.main())]);
    agreed(guard, &change, &Consent::AnyUnread).unwrap();
    assert!(guard.undo(&Filter::All).is_clean());
}
