//! Real servers in a temporary directory: their configuration is edited, tested, put in force and restored, and nothing is lost on failure.
//!
//! Live beside others: nginx and php-fpm of its own; their files and settings are judged.

use std::fs;
use std::os::unix::fs::MetadataExt;

use chokepoint_model::change::{Activation, ServerKind, ServerSetting};
use chokepoint_remedy::{ApplyError, Consent, Filter, Guard, PendingState, Purpose, RemedyError, Step};

use crate::servers::{self, Nginx, PhpFpm, apply, children_of, established_to, limit_of, limit_queue, store, until};

fn backlog(nginx: &Nginx) -> ServerSetting {
    ServerSetting::NginxListenBacklog { address: format!("127.0.0.1:{}", nginx.port) }
}

#[test]
fn a_backlog_in_an_included_file_behind_a_link_is_raised_and_restored() {
    let Some(nginx) = Nginx::start("backlog") else { return };
    let guard = &mut store(nginx.dir()).lock().unwrap();
    let site = nginx.site();
    let before = fs::read(&site).unwrap();
    let meta = fs::metadata(&site).unwrap();
    assert_eq!(limit_of(nginx.port), Some(10));
    apply(guard, &[nginx.change(backlog(&nginx), "10", "64")]).unwrap();
    assert_eq!(limit_of(nginx.port), Some(64), "it is in force");
    let after = fs::read_to_string(&site).unwrap();
    assert!(after.contains("backlog=64; # small"), "{after}");
    assert!(fs::symlink_metadata(nginx.dir().join("enabled/site")).unwrap().is_symlink(), "the link is left a link");
    let now = fs::metadata(&site).unwrap();
    assert_eq!((now.mode(), now.uid(), now.gid()), (meta.mode(), meta.uid(), meta.gid()));
    assert!(nginx.answers());
    // Who asks is told the file that was edited, and not the main file that includes it.
    let edited = fs::canonicalize(&site).unwrap().display().to_string();
    assert_eq!(guard.pending()[0].changes[0].place, edited);
    let report = guard.undo(&Filter::All);
    assert!(report.is_clean() && report.restored.len() == 1, "{report:?}");
    assert_eq!(report.restored[0].place, edited);
    assert_eq!((fs::read(&site).unwrap(), limit_of(nginx.port)), (before, Some(10)));
    assert!(nginx.answers());
    assert_eq!(fs::read_dir(site.parent().unwrap()).unwrap().count(), 1, "nothing is left beside the file");
}

/// The kernel had cut them to the value of `net.core.somaxconn`.
#[test]
fn queues_shorter_than_configured_are_restored_to_their_length() {
    let Some(nginx) = Nginx::start("short-queue") else { return };
    let Some(fpm) = PhpFpm::start("short-queue", false) else { return };
    let guard = &mut store(nginx.dir()).lock().unwrap();
    limit_queue(nginx.pid(), nginx.port, 7);
    limit_queue(fpm.pid(), fpm.port, 3);
    let pool = || ServerSetting::PhpFpmBacklog { pool: "www".to_owned() };
    let mut first = Vec::new();
    for (from, to) in [("10", "64"), ("64", "70")] {
        first.push(apply(guard, &[nginx.change(backlog(&nginx), from, to)]).unwrap());
    }
    for (from, to) in [("5", "64"), ("64", "70")] {
        first.push(apply(guard, &[fpm.change(pool(), from, to, Activation::Live)]).unwrap());
    }
    assert_eq!((limit_of(nginx.port), limit_of(fpm.port)), (Some(70), Some(70)));
    // Earlier changes first: undoing the later ones restores the state before both.
    for id in [first[0], first[2]] {
        assert!(guard.undo(&Filter::Id(id)).is_clean());
    }
    assert_eq!((limit_of(nginx.port), limit_of(fpm.port)), (Some(70), Some(70)));
    let report = guard.undo(&Filter::All);
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((limit_of(nginx.port), limit_of(fpm.port)), (Some(7), Some(3)));
}

#[test]
fn a_piece_of_text_is_replaced_and_put_back() {
    let Some(nginx) = Nginx::start("piece") else { return };
    let guard = &mut store(nginx.dir()).lock().unwrap();
    let before = fs::read_to_string(nginx.main()).unwrap();
    let text = |find: &str, with: &str| ServerSetting::Text { server: ServerKind::Nginx, find: find.to_owned(), with: with.to_owned() };
    let change = |find: &str, with: &str| nginx.change(text(find, with), find, with);
    for (find, with) in [("no such text", "x"), ("worker_connections 100;", "worker_connections 100; nonsense;"), (";", "; ")] {
        assert!(apply(guard, &[change(find, with)]).is_err(), "{find}");
        assert_eq!(fs::read_to_string(nginx.main()).unwrap(), before);
    }
    let worker = children_of(nginx.pid());
    // Both pieces of one set, of which one is a part of what takes its place.
    let set =
        [change("worker_connections 100;", "worker_connections 100; multi_accept on;"), change("events {", "events { accept_mutex off;")];
    apply(guard, &set).unwrap();
    let after = fs::read_to_string(nginx.main()).unwrap();
    assert!(after.contains("events { accept_mutex off;") && after.contains("worker_connections 100; multi_accept on;"), "{after}");
    assert!(nginx.answers() && children_of(nginx.pid()) != worker, "a new worker has read it");
    // Someone else's edit stays.
    fs::write(nginx.main(), format!("# mine\n{after}")).unwrap();
    let report = guard.undo(&Filter::All);
    assert!(report.is_clean() && report.restored.len() == 2, "{report:?}");
    assert_eq!(fs::read_to_string(nginx.main()).unwrap(), format!("# mine\n{before}"));
    assert!(nginx.answers() && guard.pending().is_empty());
}

#[test]
fn changes_of_one_file_are_taken_back_in_any_order() {
    let Some(nginx) = Nginx::start("order") else { return };
    let guard = &mut store(nginx.dir()).lock().unwrap();
    let before = fs::read_to_string(nginx.main()).unwrap();
    let files = nginx.change(ServerSetting::NginxWorkerRlimitNofile, "unset", "4000");
    let first = apply(guard, &[nginx.change(ServerSetting::NginxWorkerConnections, "100", "200")]).unwrap();
    let second = apply(guard, &[files]).unwrap();
    let third = apply(guard, &[nginx.change(ServerSetting::NginxWorkerConnections, "200", "300")]).unwrap();
    let report = guard.undo(&Filter::Id(first));
    assert!(report.is_clean(), "{report:?}");
    let text = fs::read_to_string(nginx.main()).unwrap();
    assert!(text.contains("worker_connections 300;") && text.contains("worker_rlimit_nofile 4000;"), "{text}");
    assert!(guard.undo(&Filter::Id(second)).is_clean());
    assert_eq!(fs::read_to_string(nginx.main()).unwrap(), before.replace("worker_connections 100;", "worker_connections 300;"));
    assert!(guard.undo(&Filter::Id(third)).is_clean());
    assert_eq!(fs::read_to_string(nginx.main()).unwrap(), before);
    assert!(nginx.answers() && guard.pending().is_empty());
}

#[test]
fn a_debug_log_is_limited_to_errors_and_restored() {
    let Some(nginx) =
        Nginx::start_with("steps", &["error_log logs/steps.log debug; return 200 ok;", "error_log logs/steps.log debug_http;"])
    else {
        return;
    };
    let guard = &mut store(nginx.dir()).lock().unwrap();
    let before = fs::read_to_string(nginx.site()).unwrap();
    let setting = || ServerSetting::NginxErrorLogLevels { to: "logs/steps.log".to_owned() };
    for (from, to) in [("debug, debug_http", "error"), ("debug, debug_http", "loud, debug_http"), ("debug", "error")] {
        assert!(apply(guard, &[nginx.change(setting(), from, to)]).is_err(), "{from} to {to}");
    }
    assert_eq!(fs::read_to_string(nginx.site()).unwrap(), before);
    apply(guard, &[nginx.change(setting(), "debug, debug_http", "error, debug_http")]).unwrap();
    assert_eq!(fs::read_to_string(nginx.site()).unwrap(), before.replace("steps.log debug;", "steps.log error;"));
    // Someone else's edit stays.
    let edited = fs::read_to_string(nginx.site()).unwrap().replace("return 200 ok;", "return 200 fine;");
    fs::write(nginx.site(), &edited).unwrap();
    let report = guard.undo(&Filter::All);
    assert!(report.is_clean() && report.restored.len() == 1, "{report:?}");
    assert_eq!(fs::read_to_string(nginx.site()).unwrap(), before.replace("200 ok", "200 fine"));
    assert!(nginx.answers());
}

#[test]
fn a_session_cache_is_set_in_http_and_removed() {
    let Some(nginx) = Nginx::start("sessions") else { return };
    let guard = &mut store(nginx.dir()).lock().unwrap();
    let before = fs::read_to_string(nginx.main()).unwrap();
    let change = |to| nginx.change(ServerSetting::NginxTlsSessionCache, "unset", to);
    assert!(apply(guard, &[change("shared:a b:10m")]).is_err());
    apply(guard, &[change("shared:chokepoint:10m")]).unwrap();
    assert_eq!(
        fs::read_to_string(nginx.main()).unwrap(),
        before.replace("include enabled/*;\n", "include enabled/*;\n    ssl_session_cache shared:chokepoint:10m;\n")
    );
    let report = guard.undo(&Filter::All);
    assert!(report.is_clean() && report.restored.len() == 1, "{report:?}");
    assert_eq!(fs::read_to_string(nginx.main()).unwrap(), before);
    assert!(nginx.answers());
}

#[test]
fn two_changes_of_one_file_are_applied_together() {
    let Some(nginx) = Nginx::start("two") else { return };
    let guard = &mut store(nginx.dir()).lock().unwrap();
    let before = fs::read_to_string(nginx.main()).unwrap();
    let connections = nginx.change(ServerSetting::NginxWorkerConnections, "100", "200");
    let files = |to| nginx.change(ServerSetting::NginxWorkerRlimitNofile, "unset", to);
    // Too large for the server: the first of the two is taken back.
    let refused = apply(guard, &[connections.clone(), files("99999999999999999999")]);
    assert!(matches!(refused, Err(ApplyError::ServerRefuses { .. })), "{refused:?}");
    assert_eq!((fs::read_to_string(nginx.main()).unwrap(), guard.pending()), (before.clone(), vec![]));
    apply(guard, &[connections, files("4000")]).unwrap();
    assert!(guard.undo(&Filter::All).is_clean());
    assert_eq!(fs::read_to_string(nginx.main()).unwrap(), before);
    assert!(nginx.answers());
}

#[test]
fn connections_and_descriptors_of_workers_are_raised_and_restored() {
    let Some(nginx) = Nginx::start("files") else { return };
    let guard = &mut store(nginx.dir()).lock().unwrap();
    let before = nginx.files_limit();
    let connections = nginx.change(ServerSetting::NginxWorkerConnections, "100", "2048");
    apply(guard, &[connections, nginx.change(ServerSetting::NginxWorkerRlimitNofile, "unset", "4321")]).unwrap();
    assert_eq!(nginx.files_limit().as_deref(), Some("4321"), "it is in force");
    assert!(nginx.answers());
    assert!(guard.undo(&Filter::All).is_clean());
    assert_eq!(nginx.files_limit(), before);
    assert!(nginx.answers());
}

#[test]
fn a_configuration_that_nginx_refuses_changes_nothing() {
    let Some(nginx) = Nginx::start("refuse") else { return };
    let guard = &mut store(nginx.dir()).lock().unwrap();
    let before = fs::metadata(nginx.main()).unwrap().ino();
    let refused = apply(guard, &[nginx.change(ServerSetting::NginxWorkerRlimitNofile, "unset", "99999999999999999999")]).unwrap_err();
    assert!(refused.to_string().contains("worker_rlimit_nofile"), "{refused}");
    assert_eq!(fs::metadata(nginx.main()).unwrap().ino(), before, "not even touched");
    // Errors that were there before have their own message, also those that only nginx detects.
    let good = fs::read_to_string(nginx.main()).unwrap();
    fs::write(nginx.main(), format!("{good}no_such_directive on;\n")).unwrap();
    let refused = apply(guard, &[nginx.change(ServerSetting::NginxWorkerConnections, "100", "200")]).unwrap_err();
    assert!(refused.to_string().contains("before any change") && refused.to_string().contains("no_such_directive"), "{refused}");
    fs::write(nginx.main(), format!("{good}}}\n")).unwrap();
    let refused = apply(guard, &[nginx.change(ServerSetting::NginxWorkerConnections, "100", "200")]).unwrap_err();
    assert!(matches!(refused, ApplyError::BadChange { .. }), "{refused}");
    assert_eq!(fs::read_to_string(nginx.main()).unwrap(), format!("{good}}}\n"));
    assert!(guard.pending().is_empty() && nginx.answers());
}

#[test]
fn a_change_is_removed_from_a_file_that_someone_else_edited() {
    let Some(nginx) = Nginx::start("edited") else { return };
    let guard = &mut store(nginx.dir()).lock().unwrap();
    let changed = apply(guard, &[nginx.change(ServerSetting::NginxWorkerConnections, "101", "200")]).unwrap_err();
    assert!(matches!(changed, ApplyError::Changed { .. }), "{changed}");
    apply(guard, &[nginx.change(ServerSetting::NginxWorkerConnections, "100", "200")]).unwrap();
    apply(guard, &[nginx.change(ServerSetting::NginxWorkerRlimitNofile, "unset", "4321")]).unwrap();
    let ours = fs::read_to_string(nginx.main()).unwrap();
    // On the line of one change, right before the line of the other, and elsewhere.
    let edit = |text: &str| {
        let text = text.replace("events {", "events { multi_accept on;").replace("http {", "# by hand\r\nhttp {\n    etag  off;");
        format!("# Gr\u{f6}\u{df}e\n{text}# end")
    };
    fs::write(nginx.main(), edit(&ours)).unwrap();
    assert_eq!(edit(&ours).matches("by hand").count(), 1);
    assert_eq!(store(nginx.dir()).conflicts().unwrap(), []);
    let report = guard.undo(&Filter::All);
    assert!(report.is_clean() && report.restored.len() == 2 && report.restored.iter().all(|one| one.edited), "{report:?}");
    let left = ours.replace("worker_rlimit_nofile 4321;\n", "").replace("worker_connections 200;", "worker_connections 100;");
    assert_eq!(
        fs::read_to_string(nginx.main()).unwrap(),
        edit(&left),
        "what we added is gone, what we set is back, the rest is as they left it"
    );
    assert!(nginx.answers() && guard.pending().is_empty() && nginx.files_limit().as_deref() != Some("4321"), "it is in force");
}

#[test]
fn a_setting_that_someone_else_edited_is_left_alone_until_it_is_forgotten() {
    let Some(nginx) = Nginx::start("conflict") else { return };
    let guard = &mut store(nginx.dir()).lock().unwrap();
    let before = fs::read(nginx.main()).unwrap();
    let id = apply(guard, &[nginx.change(ServerSetting::NginxWorkerConnections, "100", "200")]).unwrap();
    let edited = fs::read_to_string(nginx.main()).unwrap().replace("worker_connections 200;", "worker_connections 300;");
    fs::write(nginx.main(), &edited).unwrap();
    for _ in 0..2 {
        let report = guard.undo(&Filter::All);
        assert_eq!((report.conflicts.len(), report.restored.len()), (1, 0), "{report:?}");
        assert!(report.conflicts[0].found.starts_with("300 in a file that somebody edited since"), "{report:?}");
        assert_eq!(store(nginx.dir()).conflicts().unwrap(), report.conflicts);
        assert_eq!(fs::read_to_string(nginx.main()).unwrap(), edited);
    }
    let forgotten = guard.forget(id).unwrap();
    let copy = forgotten[0].copy.as_ref().unwrap();
    assert_eq!((fs::read(copy).unwrap(), fs::metadata(copy).unwrap().mode() & 0o777), (before, 0o600));
    assert!(guard.pending().is_empty() && guard.undo(&Filter::All).is_empty());
    assert_eq!(fs::read_to_string(nginx.main()).unwrap(), edited);
}

#[test]
fn successive_changes_are_removed_from_an_edited_file_in_any_order() {
    let Some(nginx) = Nginx::start("layers") else { return };
    let guard = &mut store(nginx.dir()).lock().unwrap();
    let before = fs::read_to_string(nginx.main()).unwrap();
    for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
        let connections = |from, to| nginx.change(ServerSetting::NginxWorkerConnections, from, to);
        let first = apply(guard, &[connections("100", "200")]).unwrap();
        fs::write(nginx.main(), fs::read_to_string(nginx.main()).unwrap() + "# between\n").unwrap();
        // Otherwise the reload would put that edit in force too.
        nginx.reload();
        let second = apply(guard, &[nginx.change(ServerSetting::NginxWorkerRlimitNofile, "unset", "4000")]).unwrap();
        let third = apply(guard, &[connections("200", "300")]).unwrap();
        fs::write(nginx.main(), fs::read_to_string(nginx.main()).unwrap() + "# after\n").unwrap();
        for which in order {
            let report = guard.undo(&Filter::Id([first, second, third][which]));
            assert!(report.is_clean() && !report.is_empty(), "{order:?} {which}: {report:?}");
        }
        assert_eq!(fs::read_to_string(nginx.main()).unwrap(), format!("{before}# between\n# after\n"), "{order:?}");
        assert!(guard.pending().is_empty() && nginx.answers());
        fs::write(nginx.main(), &before).unwrap();
        nginx.reload();
    }
}

#[test]
fn a_dead_master_is_reported_and_its_file_restored() {
    let Some(mut nginx) = Nginx::start("died") else { return };
    let guard = &mut store(nginx.dir()).lock().unwrap();
    let before = fs::read_to_string(nginx.main()).unwrap();
    apply(guard, &[nginx.change(ServerSetting::NginxWorkerConnections, "100", "200")]).unwrap();
    let change = nginx.change(ServerSetting::NginxWorkerConnections, "200", "300");
    nginx.stop();
    let gone = apply(guard, &[change]).unwrap_err();
    assert!(gone.to_string().contains("is no longer running"), "{gone}");
    assert!(guard.undo(&Filter::All).is_clean());
    assert_eq!(fs::read_to_string(nginx.main()).unwrap(), before);
}

#[test]
fn the_old_file_is_restored_if_the_master_dies_at_the_reload() {
    let Some(mut nginx) = Nginx::start("dies") else { return };
    let guard = &mut store(nginx.dir()).lock().unwrap();
    let before = fs::read_to_string(nginx.main()).unwrap();
    let change = nginx.change(ServerSetting::NginxWorkerConnections, "100", "200");
    let failed = guard.apply(&[change], &servers::purpose(), &mut |step| {
        if step == Step::Journalled {
            nginx.stop();
        }
    });
    assert!(matches!(failed, Err(ApplyError::NotHere { .. })), "{failed:?}");
    assert_eq!((fs::read_to_string(nginx.main()).unwrap(), guard.pending().len()), (before, 0));
}

#[test]
fn a_full_disk_loses_nothing() {
    let Some(disk) = servers::Disk::mount("full") else { return };
    let Some(nginx) = Nginx::start_in(disk.path()) else { return };
    let state = tempfile::tempdir().unwrap();
    let guard = &mut store(state.path()).lock().unwrap();
    let before = fs::read_to_string(nginx.main()).unwrap();
    disk.fill();
    let failed = apply(guard, &[nginx.change(ServerSetting::NginxWorkerConnections, "100", "200")]);
    assert!(matches!(failed, Err(ApplyError::Io { .. })), "{failed:?}");
    assert_eq!((fs::read_to_string(nginx.main()).unwrap(), guard.pending().len()), (before, 0));
    assert!(nginx.answers());
}

#[test]
fn a_full_disk_under_the_journal_leaves_the_server_alone() {
    let Some(disk) = servers::Disk::mount("journal") else { return };
    let Some(nginx) = Nginx::start("full-journal") else { return };
    let guard = &mut store(disk.path()).lock().unwrap();
    let before = (fs::read(nginx.main()).unwrap(), fs::metadata(nginx.main()).unwrap().ino(), nginx.workers());
    disk.fill();
    // tmpfs allocates whole pages: a short record may still fit into the journal's last one.
    let purpose = Purpose { finding: "f".repeat(8192), ..servers::purpose() };
    let change = nginx.change(ServerSetting::NginxWorkerConnections, "100", "200");
    let refused = guard.apply(&[change], &purpose, &mut |_| {}).unwrap_err();
    assert!(matches!(refused, ApplyError::Journal(RemedyError::NoSpace { .. })), "{refused:?}");
    assert!(refused.to_string().starts_with("nothing was changed: no space left"), "{refused}");
    let after = (fs::read(nginx.main()).unwrap(), fs::metadata(nginx.main()).unwrap().ino(), nginx.workers());
    assert_eq!(after, before, "neither touched nor reloaded");
    assert!(nginx.answers() && guard.pending().is_empty());
}

#[test]
fn a_loop_of_includes_is_refused_before_anything_is_written() {
    let Some(nginx) = Nginx::start("loop") else { return };
    let guard = &mut store(nginx.dir()).lock().unwrap();
    let site = nginx.site();
    let looped = fs::read_to_string(&site).unwrap() + "include enabled/site;\n";
    fs::write(&site, &looped).unwrap();
    let before = fs::metadata(nginx.main()).unwrap().ino();
    let refused = apply(guard, &[nginx.change(ServerSetting::NginxWorkerConnections, "100", "200")]).unwrap_err();
    assert!(refused.to_string().contains("enabled/site"), "{refused}");
    assert_eq!((fs::metadata(nginx.main()).unwrap().ino(), fs::read_to_string(&site).unwrap()), (before, looped));
    assert!(guard.pending().is_empty() && nginx.answers());
}

#[test]
fn an_interrupted_change_is_restored_and_in_force() {
    let Some(nginx) = Nginx::start("interrupted") else { return };
    let before = fs::read_to_string(nginx.main()).unwrap();
    for stop_at in [Step::Journalled, Step::Written(0), Step::Verified(0)] {
        let change = nginx.change(ServerSetting::NginxWorkerConnections, "100", "200");
        let interrupted = std::panic::catch_unwind(|| {
            let mut guard: Guard = store(nginx.dir()).lock().unwrap();
            let _ = guard.apply(&[change], &servers::purpose(), &mut |step| {
                if step == stop_at {
                    // As after a kill, nothing cleans up before the lock is released.
                    std::panic::resume_unwind(Box::new("interrupted"));
                }
            });
        });
        assert!(interrupted.is_err());
        let mut guard = store(nginx.dir()).lock().unwrap();
        assert_eq!(guard.pending()[0].state, PendingState::Unfinished);
        assert!(guard.pending()[0].alive, "this process applied it");
        assert!(guard.undo(&Filter::All).is_clean(), "{stop_at:?}");
        assert_eq!((fs::read_to_string(nginx.main()).unwrap(), guard.pending().len()), (before.clone(), 0));
    }
    assert!(nginx.answers());
}

#[test]
fn the_next_undo_reloads_after_one_that_was_killed_before_its_reload() {
    let Some(nginx) = Nginx::start("reload") else { return };
    let before = fs::read_to_string(nginx.main()).unwrap();
    let own_limit = nginx.files_limit();
    let id =
        apply(&mut store(nginx.dir()).lock().unwrap(), &[nginx.change(ServerSetting::NginxWorkerRlimitNofile, "unset", "4321")]).unwrap();
    // The old file is restored so soon after the workers' start that its time proves nothing, and someone else edits it too.
    let entry = format!("{{\"record\":\"restoring\",\"id\":{id},\"index\":0}}");
    let line = format!("{{\"crc\":\"{:08x}\",\"entry\":{entry}}}\n", crc32fast::hash(entry.as_bytes()));
    let journal = nginx.dir().join("state/journal");
    fs::write(&journal, fs::read_to_string(&journal).unwrap() + &line).unwrap();
    fs::write(nginx.dir().join(".nginx.conf.chokepoint-new"), "half a fi").unwrap();
    fs::write(nginx.main(), format!("{before}# by hand\n")).unwrap();
    assert_eq!(nginx.files_limit().as_deref(), Some("4321"));
    let report = store(nginx.dir()).lock().unwrap().undo(&Filter::All);
    assert!(report.is_clean() && report.restored.len() == 1, "{report:?}");
    assert_eq!((nginx.files_limit(), fs::read_to_string(nginx.main()).unwrap()), (own_limit, format!("{before}# by hand\n")));
    assert!(!nginx.dir().join(".nginx.conf.chokepoint-new").exists(), "what was left beside the file is gone");
}

#[test]
fn workers_and_queue_of_php_fpm_are_raised() {
    for background in [false, true] {
        let Some(fpm) = PhpFpm::start(if background { "background" } else { "foreground" }, background) else { return };
        let guard = &mut store(fpm.dir()).lock().unwrap();
        let before = fs::read_to_string(fpm.main()).unwrap();
        assert_eq!((fpm.workers(), limit_of(fpm.port)), (2, Some(5)));
        let children = ServerSetting::PhpFpmMaxChildren { pool: "www".to_owned() };
        let first = apply(guard, &[fpm.change(children, "2", "4", Activation::Reload)]).unwrap();
        assert_eq!((fpm.workers(), limit_of(fpm.port)), (4, Some(5)));
        // The change still names the master's old pid.
        let queue = ServerSetting::PhpFpmBacklog { pool: "www".to_owned() };
        apply(guard, &[fpm.change(queue, "5", "64", Activation::Live)]).unwrap();
        assert_eq!((fpm.workers(), limit_of(fpm.port)), (4, Some(64)), "without a restart");
        assert!(guard.undo(&Filter::Id(first)).is_clean());
        assert_eq!((fpm.workers(), limit_of(fpm.port)), (2, Some(64)));
        let report = guard.undo(&Filter::All);
        assert!(report.is_clean(), "{report:?}");
        assert_eq!((fpm.workers(), limit_of(fpm.port)), (2, Some(5)));
        assert_eq!(fs::read_to_string(fpm.main()).unwrap(), before);
    }
}

/// A location for php-fpm's ping page, which needs no script.
fn pings(port: u16) -> String {
    format!(
        "location / {{\n        fastcgi_pass 127.0.0.1:{port}; # the pool\n        fastcgi_param REQUEST_METHOD GET;\n        fastcgi_param SCRIPT_NAME /ping;\n        fastcgi_param SCRIPT_FILENAME /ping;\n    }}"
    )
}

#[test]
fn connections_to_php_fpm_are_reused_and_the_file_is_put_back_byte_for_byte() {
    let Some(fpm) = PhpFpm::start("reuse", false) else { return };
    let Some(nginx) = Nginx::start_with("reuse", &[&pings(fpm.port)]).map(Nginx::with_one_worker) else { return };
    let guard = &mut store(nginx.dir()).lock().unwrap();
    let before = fs::read(nginx.site()).unwrap();
    assert!(nginx.answers());
    until("a connection for each request is closed", || established_to(fpm.port) == 0);
    let setting = || ServerSetting::NginxFastcgiReuse { pass: format!("127.0.0.1:{}", fpm.port) };
    for bad in ["1", "keepalive=1", "keepalive=0 requests=1", "keepalive=1 requests=1;"] {
        let refused = apply(guard, &[nginx.change(setting(), "unset", bad)]).unwrap_err();
        assert!(matches!(refused, ApplyError::BadChange { .. }), "{refused}");
    }
    let first = apply(guard, &[nginx.change(setting(), "unset", &ServerSetting::reuse(1, 100))]).unwrap();
    // A worker from before the reload may still answer for a moment, without keepalive.
    until("one connection is kept", || nginx.answers() && established_to(fpm.port) == 1);
    // A second change, to two requests per connection.
    apply(guard, &[nginx.change(setting(), &ServerSetting::reuse(1, 100), &ServerSetting::reuse(1, 2))]).unwrap();
    let text = fs::read_to_string(nginx.site()).unwrap();
    assert!(text.contains("keepalive_requests 2;") && text.contains("_pass chokepoint_127_0_0_1"), "{text}");
    assert!(nginx.answers());
    // An old worker may answer once more. Ten requests then take five connections, not one.
    let is_closed = || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        established_to(fpm.port) == 0
    };
    assert!((0..10).any(|_| nginx.answers() && is_closed()), "it is closed after its second");
    assert!(guard.undo(&Filter::Id(first)).is_clean());
    assert!(fs::read_to_string(nginx.site()).unwrap().contains("keepalive_requests 2;"), "the later one stands");
    let report = guard.undo(&Filter::All);
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(fs::read(nginx.site()).unwrap(), before);
    assert!(nginx.answers());
    until("a connection for each request again", || established_to(fpm.port) == 0);
}

#[test]
fn a_pass_in_several_files_or_in_none_is_refused() {
    let Some(nginx) = Nginx::start_with("several", &["location /php { fastcgi_pass 127.0.0.1:9; } return 200 ok;"; 2]) else { return };
    let guard = &mut store(nginx.dir()).lock().unwrap();
    let before = fs::read_to_string(nginx.site()).unwrap();
    for (pass, why) in [("127.0.0.1:9", "several files"), ("127.0.0.1:10", "has no reuse of connections to 127.0.0.1:10")] {
        let setting = ServerSetting::NginxFastcgiReuse { pass: pass.to_owned() };
        let refused = apply(guard, &[nginx.change(setting, "unset", &ServerSetting::reuse(4, 5))]).unwrap_err();
        assert!(refused.to_string().contains(why), "{refused}");
    }
    assert_eq!((fs::read_to_string(nginx.site()).unwrap(), guard.pending().len()), (before, 0));
}

#[test]
fn a_configuration_that_php_fpm_refuses_changes_nothing() {
    let Some(fpm) = PhpFpm::start("refuses", false) else { return };
    let guard = &mut store(fpm.dir()).lock().unwrap();
    let before = (fs::read(fpm.main()).unwrap(), fs::metadata(fpm.main()).unwrap().ino(), fpm.worker_pids());
    let children = |to| fpm.change(ServerSetting::PhpFpmMaxChildren { pool: "www".to_owned() }, "2", to, Activation::Reload);
    let refused = apply(guard, &[children("0")]).unwrap_err();
    assert!(matches!(&refused, ApplyError::ServerRefuses { .. }) && refused.to_string().contains("max_children"), "{refused}");
    // Errors that were there before have their own message.
    let broken = [before.0.as_slice(), b"[two]\npm = static\n"].concat();
    fs::write(fpm.main(), &broken).unwrap();
    let refused = apply(guard, &[children("4")]).unwrap_err();
    assert!(refused.to_string().contains("before any change") && refused.to_string().contains("two"), "{refused}");
    assert_eq!(fs::read(fpm.main()).unwrap(), broken);
    fs::write(fpm.main(), &before.0).unwrap();
    assert_eq!((fs::read(fpm.main()).unwrap(), fs::metadata(fpm.main()).unwrap().ino(), fpm.worker_pids()), before);
    assert!(guard.pending().is_empty());
}

#[test]
fn a_php_fpm_that_dies_at_the_reload_is_reported_and_its_file_restored() {
    let Some(fpm) = PhpFpm::start("reload-dies", false) else { return };
    let guard = &mut store(fpm.dir()).lock().unwrap();
    let change = fpm.change(ServerSetting::PhpFpmMaxChildren { pool: "www".to_owned() }, "2", "4", Activation::Reload);
    // An added pool that is not loaded and whose port is taken. php-fpm's test does not bind it, so the reload ends the server.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let added = format!("[two]\nuser = nobody\ngroup = nogroup\nlisten = 127.0.0.1:{port}\npm = static\npm.max_children = 1\n");
    let before = fs::read_to_string(fpm.main()).unwrap() + &added;
    fs::write(fpm.main(), &before).unwrap();
    let failed = guard.apply_agreed(&[change], &servers::purpose(), &Consent::AnyUnread, &mut |_| {}).unwrap_err();
    assert!(failed.to_string().contains("the server exited during the reload"), "{failed}");
    assert_eq!(fs::read_to_string(fpm.main()).unwrap(), before);
    assert!(guard.pending().is_empty(), "{:?}", guard.pending());
}

#[test]
fn a_server_in_its_own_image_is_not_edited() {
    let Some(nginx) = Nginx::start_in_image("image") else { return };
    let guard = &mut store(nginx.dir()).lock().unwrap();
    let before = fs::read_to_string(nginx.main()).unwrap();
    let refused = apply(guard, &[nginx.change(ServerSetting::NginxWorkerConnections, "100", "200")]).unwrap_err();
    assert!(refused.to_string().contains("manifest"), "{refused}");
    assert_eq!((fs::read_to_string(nginx.main()).unwrap(), guard.pending().len()), (before, 0));
}

#[test]
fn the_diff_is_available_without_a_change() {
    let Some(nginx) = Nginx::start("diff") else { return };
    let before = fs::read_to_string(nginx.main()).unwrap();
    let diff = chokepoint_remedy::diff(&nginx.change(ServerSetting::NginxWorkerConnections, "100", "200")).unwrap().unwrap();
    assert!(diff.contains("+events { worker_connections 200; }") && diff.contains("-events { worker_connections 100; }"), "{diff}");
    assert_eq!(fs::read_to_string(nginx.main()).unwrap(), before);
}
