//! Processes that something halts again and again, or with their control group: cpulimit, a snapshot that freezes a container.
//!
//! Deterministic: observations made up by the tests.

use std::collections::BTreeMap;

use chokepoint_model::observation::{CgroupId, Freezer, Observation};
use chokepoint_model::reading::Reading;
use proptest::prelude::*;

use super::accepts::{both, says, states};
use super::members::{always, first_fix, prefork};
use crate::stage::*;

/// Puts the workers into a control group of this version, which is frozen in those quarters of a second.
fn freeze(obs: &mut Observation, version: &str, is_frozen: impl Fn(u64) -> bool) {
    let (controller, id) = (if version == "v1" { "freezer" } else { "" }, CgroupId::parse(&format!("{version}:/web")).unwrap());
    for pid in 42..=45 {
        let paths = BTreeMap::from([(controller.to_owned(), "/web".to_owned())]);
        obs.processes.get_mut(&pid).unwrap().cgroups.push(0, Reading::Ok(paths));
    }
    for look in 0..44_u64 {
        let freezer = Freezer { dir: "/cg/web".into(), is_frozen: is_frozen(look) };
        obs.freezers.entry(id.clone()).or_default().push(look * 250_000, Reading::Ok(freezer));
    }
}

#[test]
fn a_server_in_a_frozen_group_is_told_with_the_file_that_lets_it_go_on() {
    for (version, file) in [("v1", "write THAWED to /cg/web/freezer.state"), ("v2", "write 0 to /cg/web/cgroup.freeze")] {
        let mut obs = prefork(18, 0);
        states(&mut obs, 42, 0, |_| 'D');
        freeze(&mut obs, version, |_| true);
        for found in both(&obs) {
            assert_eq!(causes(&found), ["processes-stopped"], "{version}: {}", found.summary);
            assert!(found.findings[0].title.starts_with("gunicorn is frozen (control group /web)"), "{}", found.findings[0].title);
            assert!(first_fix(&found).contains(file), "{}", first_fix(&found));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whoever halts a server, and for however long each time: it is told where requests surely wait for it, with the share of the time.
    #[test]
    fn a_server_that_is_halted_again_and_again_is_told_by_how_much(halted in 0_u64..=11, by_group in any::<bool>(), version in prop::sample::select(vec!["v1", "v2"]), are_asked in any::<bool>()) {
        let mut obs = prefork(if are_asked { 18 } else { 0 }, 50_000_000);
        if !are_asked {
            always(&mut obs, &[]);
        }
        // Spread evenly, in no order.
        let is_halted = |look: u64| (look * 7) % 11 < halted;
        if by_group {
            freeze(&mut obs, version, |look| is_halted(look % 11));
        } else {
            (42..=45).for_each(|pid| states(&mut obs, pid, if pid == 42 { 50_000_000 } else { 0 }, |second| if is_halted(second % 11) { 'T' } else { 'S' }));
        }
        let looks = if by_group { 40.0 } else { 10.0 };
        let share = halted as f64 / 11.0;
        let surely = chokepoint_statistics::wilson(share, looks as u64).0;
        prop_assume!((surely - 0.1).abs() > 0.05 && halted < 11);
        for found in both(&obs) {
            let is_told = says(&found, "processes-stopped");
            prop_assert_eq!(is_told, are_asked && surely > 0.1, "{} {}", share, found.summary);
            if is_told {
                let title = &found.findings[0].title;
                prop_assert!(title.contains(if by_group { "is frozen (control group /web)" } else { "stopped (SIGSTOP or a debugger)" }) && title.contains("% of the time"), "{}", title);
            }
        }
    }
}
