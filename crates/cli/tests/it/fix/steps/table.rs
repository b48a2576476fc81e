//! Every remedy whose steps are commands is in a test that carries them out.
//!
//! Deterministic: the table of remedies, recordings, and the text of the tests.

use std::collections::BTreeSet;

use chokepoint_model::stations::STATIONS;

use super::kernel::SETTINGS;
use super::servers::EDITS;
use crate::harness::{Chokepoint, all_recordings, remedies_of};

/// The texts of the tests.
const TESTS: &[&str] = &[include_str!("kernel.rs"), include_str!("servers.rs"), include_str!("owner.rs"), include_str!("programs.rs")];
/// Remedies with a test of their own.
const ALONE: &[(&str, &str)] = &[
    ("raise-conntrack-max", "the_steps_for_a_full_conntrack_table_raise_its_limit_and_its_buckets"),
    ("raise-cpu-quota", "the_steps_for_a_cpu_quota_write_it_to_the_cgroup"),
    ("end-lingering", "the_steps_that_look_for_ends_left_open_show_them"),
    ("keep-cpu-quota", "the_steps_that_keep_a_quota_give_it_to_the_unit_or_the_container"),
    ("raise-nofile-by-hand", "the_steps_for_the_open_files_of_a_program_change_its_limits"),
    ("allow-more-tasks", "the_steps_that_allow_more_tasks_change_the_limit_of_a_users_processes"),
    ("allow-more-of-the-disk", "the_steps_that_allow_more_of_a_disk_write_the_limit_of_a_cgroup"),
    ("raise-priority", "the_steps_that_raise_a_servers_priority_are_carried_out_and_taken_back"),
    ("give-cores-back", "the_steps_that_let_a_program_yield_are_carried_out_and_taken_back"),
    ("look-inside", "the_steps_that_look_inside_a_program_are_accepted"),
    ("listen-again", "the_steps_that_make_nginx_listen_again_apply_the_backlog"),
    ("reload-configuration", "the_steps_that_reload_a_changed_file_put_it_in_force"),
];
/// Advice in words: somebody else decides, or what is to be set depends on the program.
const WORDS: &[&str] = &[
    "allow-more-connections",
    "give-more-heap",
    "ask-clients",
    "ask-limit-owner",
    "bound-retries",
    "compress-less",
    "find-lossy-link",
    "free-send-buffer",
    "keep-idle-longer",
    "keep-scripts-compiled",
    "leave-it-out",
    "let-go-on",
    "let-it-detach",
    "let-packets-pass",
    "let-idle-connections-go",
    "look-at-answers",
    "move-to-unix-socket-by-hand",
    "raise-server-limit-by-hand",
    "raise-server-limit-by-restart",
    "raise-shaper-rate",
    "raise-worker-processes",
    "read-its-log",
    "resume-tls-sessions",
    "reuse-upstream-connections",
    "send-at-once",
    "split-lock",
    "spread-received-packets",
    "switch-steps-off",
    "try-another-allocator",
    "keep-processes",
    "use-more-cores",
    "widen-first-window",
];

#[test]
fn every_remedy_is_carried_out_by_a_shell_or_has_no_commands() {
    let all: BTreeSet<&str> = STATIONS.iter().flat_map(|station| station.remedies.iter().copied()).collect();
    let run = SETTINGS.iter().map(|(.., id)| *id).chain(EDITS.iter().map(|(_, id)| *id)).chain(ALONE.iter().map(|(id, _)| *id));
    let run: BTreeSet<&str> = run.collect();
    let words: BTreeSet<&str> = WORDS.iter().copied().collect();
    assert_eq!(run.intersection(&words).collect::<Vec<_>>(), Vec::<&&str>::new());
    assert_eq!(run.union(&words).copied().collect::<BTreeSet<_>>(), all);
    for (id, test) in ALONE {
        assert!(TESTS.iter().any(|text| text.contains(&format!("fn {test}()"))), "{id}: no test {test}");
    }
    // A test names the recording again.
    for (recording, id) in EDITS {
        let named = TESTS.iter().map(|text| text.matches(&format!("\"{recording}\"")).count()).sum::<usize>();
        let listed = EDITS.iter().filter(|(of, _)| of == recording).count() + SETTINGS.iter().filter(|(of, ..)| of == recording).count();
        assert!(named > listed, "{id}: no test of {recording}");
    }
}

#[test]
fn what_is_said_to_have_no_commands_has_none_in_any_recording() {
    let chokepoint = Chokepoint::new();
    for file in all_recordings() {
        for remedy in remedies_of(&chokepoint, &file) {
            let id = remedy["id"].as_str().unwrap();
            let mut steps = ["runtime", "persistent", "undo"].into_iter().flat_map(|which| remedy[which].as_array().unwrap());
            assert!(!WORDS.contains(&id) || steps.all(|step| step["command"].is_null()), "{file}: {remedy:#}");
        }
    }
}
