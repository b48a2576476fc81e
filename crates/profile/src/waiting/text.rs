//! What threads wait for, as text: by program and kind of wait, then the tree of stacks by time.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::output::text::{Layout, tree};
use crate::profile::Profile;
use crate::waiting::waits::{WaitShare, waits};
use chokepoint_foreign::printable;

/// Maximum number of programs; those that waited longest are listed.
const PROGRAMS_MAX: usize = 12;
/// Kinds with a smaller share of a program's waiting get no line.
const LINE_SHARE_MIN: f64 = 0.005;

/// The whole text.
pub fn render(profile: &Profile, layout: &Layout) -> String {
    let mut text = head(profile);
    let shares = waits(profile);
    if shares.is_empty() {
        text.push_str("\nNo thread ran and then waited in this time.\n");
        return text;
    }
    let mut programs: BTreeMap<&str, (f64, Vec<&WaitShare>)> = BTreeMap::new();
    for share in &shares {
        let (seconds, lines) = programs.entry(&share.program).or_default();
        *seconds += share.seconds;
        lines.push(share);
    }
    let mut programs: Vec<_> = programs.into_iter().collect();
    programs.sort_by(|a, b| b.1.0.total_cmp(&a.1.0).then_with(|| a.0.cmp(b.0)));
    let left_out = programs.len().saturating_sub(PROGRAMS_MAX);
    // Writing to a string cannot fail, here and below.
    for (program, (seconds, lines)) in programs.into_iter().take(PROGRAMS_MAX) {
        let program = printable(program);
        let _ = writeln!(text, "\n{program}: its threads waited for {seconds:.2} s in all:");
        for line in lines.into_iter().filter(|line| line.share >= LINE_SHARE_MIN) {
            let peer = line.peer.as_ref().map_or_else(String::new, |peer| format!(": {peer}"));
            let _ = writeln!(text, "{:>9.3} s {:>6.1} %  {}{peer}", line.seconds, 100.0 * line.share, line.title);
        }
    }
    if left_out > 0 {
        let _ = writeln!(text, "\nand {left_out} more programs");
    }
    text.push_str(&tree(profile, layout));
    text
}

/// What was sampled, and how.
pub fn head(profile: &Profile) -> String {
    let waited = profile.samples.iter().fold(0_u64, |sum, sample| sum.saturating_add(sample.weight)) as f64 / 1e9;
    let mut text = format!(
        "waiting (off-cpu) for {:.1} s, {}: {waited:.1} s in {} stacks; {} lost\n",
        profile.duration_s,
        profile.scope,
        profile.samples.len(),
        profile.lost
    );
    for note in profile.notes.iter().chain(&profile.left_out) {
        let _ = writeln!(text, "note: {note}");
    }
    let _ = writeln!(text, "chokepoint used {:.2} s of CPU time for sampling, unwinding and naming", profile.cost_cpu_s);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::folded;
    use crate::sampling::event::Clock;

    #[test]
    fn the_text_lists_programs_with_what_they_wait_for() {
        let mut profile = folded::read("php-fpm;main;sk_wait_data_[k] 3\nphp-fpm;main;do_nanosleep_[k] 1\nnginx;ep_poll_[k] 9\n").unwrap();
        profile.clock = Clock::OffCpu;
        for sample in &mut profile.samples {
            sample.weight = 500_000_000;
        }
        profile.classify();
        let text = render(&profile, &Layout { width: 100, unicode: true, tree_share_min: 0.01 });
        for part in [
            "6.5 s in 13 stacks",
            "php-fpm: its threads waited for 2.00 s",
            "1.500 s   75.0 %  data from the other end",
            "a timer",
            "epoll",
            "ep_poll",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        profile.samples.clear();
        assert!(render(&profile, &Layout { width: 80, unicode: false, tree_share_min: 0.01 }).contains("No thread ran"));
    }
}
