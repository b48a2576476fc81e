//! A profile as text: what was sampled and how well, layers by program, bounds, the hottest functions, the tree.

use chokepoint_foreign::printable;
use std::fmt::Write;

use crate::analysis::difference::Change;
use crate::analysis::report::{Bound, Limit, Report};
use crate::analysis::tree::{Node, build};
use crate::profile::Profile;

/// Maximum number of programs with a column of their own.
const COLUMNS_MAX: usize = 4;
/// Maximum number of cores listed one by one.
const CORES_MAX: usize = 16;
/// Layers and branches with a smaller share get no line.
const LINE_SHARE_MIN: f64 = 0.005;
/// Busy samples below which nothing is said of where the time went: a share of a few samples is chance.
const SAMPLES_MIN: u64 = 30;
/// A larger share of broken stacks gets a note.
const BROKEN_SHARE_NOTED: f64 = 0.02;
/// Where so many of the samples that the busy cores gave are missing, what is missing may be any program's, and no gain is told: a tenth, as the judge has it.
const MISSING_SHARE_TOLD: f64 = 0.1;

/// How the text is laid out.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Columns.
    pub width: usize,
    /// Whether characters beyond ASCII may be used.
    pub unicode: bool,
    /// Branches of the tree with a smaller share are left out.
    pub tree_share_min: f64,
}

/// The whole text.
pub fn render(profile: &Profile, report: &Report, layout: &Layout) -> String {
    let mut text = head(profile, report);
    if report.samples_busy == 0 {
        text.push_str(&nothing_ran(profile));
        return text;
    }
    if report.samples_busy < SAMPLES_MIN {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "\n{} busy samples are too few to say where the time went: at least {SAMPLES_MIN} are needed. Profile for longer.",
            report.samples_busy
        );
        return text;
    }
    text.push_str(&layers(report, layout));
    if missing(profile, report).is_none() {
        text.push_str(&bounds(report));
    }
    text.push_str(&hottest(report, layout));
    text.push_str(&tree(profile, layout));
    text
}

/// Why no sample is left. Samples of a part of the machine do not say that its cores were idle.
fn nothing_ran(profile: &Profile) -> String {
    let is_part = ["cgroup ", "process "].iter().any(|kind| profile.scope.starts_with(kind));
    match profile.outside {
        0 if !is_part => "\nThe cores were idle: no program ran.\n".to_owned(),
        0 => format!("\nNothing of {} ran.\n", printable(&profile.scope)),
        others => format!("\nNothing of {} ran: all {others} samples hit other processes.\n", printable(&profile.scope)),
    }
}

/// How many samples the busy cores gave, if the kernel had no room for many of them. It counts the records that it had no room for, of whatever kind: a thread that
/// renames itself all the time, or maps memory, makes millions, and hides what runs beside it.
fn missing(profile: &Profile, report: &Report) -> Option<u64> {
    if profile.lost == 0 || profile.cores.is_empty() {
        return None;
    }
    let busy = profile.cores.iter().map(|core| core.busy).sum::<Option<f64>>()?;
    let given = busy * profile.duration_s * f64::from(profile.frequency_hz);
    let are_there = (report.samples_busy + profile.outside) as f64;
    // Three standard deviations of a count.
    (are_there + 3.0 * given.sqrt() < (1.0 - MISSING_SHARE_TOLD) * given).then_some(given as u64)
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

fn head(profile: &Profile, report: &Report) -> String {
    let quality = &report.quality;
    let mut text = format!(
        "{} at {} Hz for {:.1} s, {}: {} samples, {} of them busy; {} lost\n",
        profile.clock.name(),
        profile.frequency_hz,
        profile.duration_s,
        profile.scope,
        profile.samples.len(),
        report.samples_busy,
        profile.lost
    );
    let cores: Vec<String> = (profile.cores.iter().take(CORES_MAX))
        .map(|core| {
            let busy = core.busy.map_or_else(|| "not read".to_owned(), |busy| format!("{:.0} %", 100.0 * busy));
            let stolen = core.stolen.filter(|stolen| *stolen >= LINE_SHARE_MIN);
            let stolen = stolen.map_or_else(String::new, |stolen| format!(" ({:.1} % stolen)", 100.0 * stolen));
            format!("core {} {busy}{stolen}", core.cpu)
        })
        .collect();
    // Writing to a string cannot fail, here and below.
    if !cores.is_empty() {
        let more = profile.cores.len().saturating_sub(CORES_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _ = writeln!(text, "busy: {}{more}", cores.join(", "));
    }
    let _ = writeln!(
        text,
        "user stacks: {}; {} % incomplete, {} % deeper than a sample holds, {} % completed from memory a moment later\nfunctions without a name: {} % of user functions, {} % of kernel functions",
        quality.user_samples,
        percent(quality.broken),
        percent(quality.deep),
        percent(quality.completed),
        percent(quality.unnamed_user),
        percent(quality.unnamed_kernel)
    );
    if quality.unread > 0.0 {
        let _ = writeln!(
            text,
            "note: {} % of the user stacks belong to 32-bit programs, or could not be unwound for another reason",
            percent(quality.unread)
        );
    }
    if quality.broken > BROKEN_SHARE_NOTED {
        let _ = writeln!(text, "note: the tree shows incomplete stacks directly below their program");
    }
    if let Some(given) = missing(profile, report) {
        let _ = writeln!(
            text,
            "note: the busy cores gave about {given} samples, and {} are here: for the others there was no room. They may be any program's, so shares are those of the rest, and no gain is told",
            report.samples_busy + profile.outside
        );
    }
    if profile.throttled > 0 {
        let _ = writeln!(text, "note: the kernel paused sampling {} times, because samples took too long", profile.throttled);
    }
    if profile.outside > 0 {
        let _ = writeln!(text, "note: {} samples hit other processes", profile.outside);
    }
    for note in profile.notes.iter().chain(&profile.left_out) {
        let _ = writeln!(text, "note: {}", printable(note));
    }
    let _ = writeln!(text, "chokepoint used {:.2} s of CPU time for sampling, unwinding and naming", profile.cost_cpu_s);
    text
}

fn layers(report: &Report, layout: &Layout) -> String {
    let programs: Vec<_> = report.programs.iter().take(COLUMNS_MAX).collect();
    let names: Vec<String> = programs.iter().map(|program| printable(&program.program).chars().take(14).collect()).collect();
    let widths: Vec<usize> = names.iter().map(|name| name.chars().count().max(6)).collect();
    let title = layout.width.saturating_sub(10 + widths.iter().map(|width| width + 2).sum::<usize>()).clamp(20, 48);
    let row = |first: &str, all: String, cells: &[String]| {
        let mut line = format!("{first:title$} {all:>6}");
        for (cell, width) in cells.iter().zip(&widths) {
            let _ = write!(line, "  {cell:>width$}");
        }
        line.trim_end().to_owned() + "\n"
    };
    let mut text = "\n".to_owned() + &row("layer, % of busy time", "all".to_owned(), &names);
    for layer in report.layers.iter().filter(|layer| layer.share >= LINE_SHARE_MIN) {
        let title: String = layer.layer.def().title.chars().take(title).collect();
        let cells: Vec<String> =
            layer.of_programs.iter().map(|share| if *share > 0.0 { percent(*share) } else { "-".to_owned() }).collect();
        text.push_str(&row(&title, percent(layer.share), &cells));
    }
    let cores: Vec<String> =
        programs.iter().map(|program| program.cores.map_or_else(|| "-".to_owned(), |cores| format!("{cores:.2}"))).collect();
    if report.programs.iter().all(|program| program.cores.is_none()) {
        return text;
    }
    let all: f64 = report.programs.iter().filter_map(|program| program.cores).sum();
    text.push_str(&row("cores kept busy", format!("{all:.2}"), &cores));
    text
}

fn bounds(report: &Report) -> String {
    let about = match &report.limit {
        Limit::AllCores => "all cores are busy all the time".to_owned(),
        Limit::Cores(cores) => {
            let cores: Vec<String> = cores.iter().map(u32::to_string).collect();
            format!("of core {}, which is busy all the time", cores.join(", "))
        }
        Limit::None => "no core is busy all the time, so CPU time is not the limit yet; these bounds apply once it is".to_owned(),
        Limit::Unknown => "whether a core is busy all the time is unknown".to_owned(),
    };
    let mut text = format!("\nHighest possible gain if this work cost nothing ({about}):\n");
    let mut any = false;
    for bound in report.bounds.iter().filter(|bound| bound.share >= 0.02) {
        any = true;
        let _ = writeln!(text, "  {}", sentence(bound));
    }
    if any { text } else { String::new() }
}

fn sentence(bound: &Bound) -> String {
    let program =
        bound.program.as_ref().map_or_else(String::new, |(name, share)| format!(", {} % of {}'s time", percent(*share), printable(name)));
    let by = bound.by.map_or_else(String::new, |by| format!(" with {by}"));
    let gain = if bound.factor < 1.5 { format!("+{:.0} %", 100.0 * (bound.factor - 1.0)) } else { format!("{:.1}x", bound.factor) };
    format!("{} {} % ({} to {}){program}: at most {gain}{by}", bound.what, percent(bound.share), percent(bound.low), percent(bound.high))
}

fn hottest(report: &Report, layout: &Layout) -> String {
    let mut text = "\nhottest functions, own time\n".to_owned();
    let room = layout.width.saturating_sub(60).clamp(24, 60);
    for function in report.hottest.iter().take(10) {
        let name: String = printable(&function.name).chars().take(room).collect();
        let module: String = printable(&function.module).chars().take(20).collect();
        let _ = writeln!(text, "{:>6} %  {name:room$} {module:20} {}", percent(function.share), function.layer.def().id);
    }
    text
}

/// The tree, heaviest branches first. A chain of functions with a single callee each is one line.
pub(crate) fn tree(profile: &Profile, layout: &Layout) -> String {
    let root = build(profile, |_, _| true);
    let mut text = format!("\ncall tree, branches of at least {} %\n", percent(layout.tree_share_min));
    let whole = root.total.max(1) as f64;
    let (bar, corner) = if layout.unicode { ("│", "└ ") } else { ("|", "` ") };
    let mut left: Vec<(&Node, usize)> = root.children.iter().rev().map(|child| (child, 0)).collect();
    while let Some((mut node, depth)) = left.pop() {
        let share = node.total as f64 / whole;
        if share < layout.tree_share_min {
            continue;
        }
        let mut names = vec![printable(node.name(profile))];
        while let [only] = node.children.as_slice()
            && only.total == node.total
        {
            node = only;
            names.push(printable(node.name(profile)));
        }
        let indent = if depth == 0 { String::new() } else { bar.repeat(depth - 1) + corner };
        let line = format!("{:>6} % {indent}{}", percent(share), names.join(" > "));
        text.push_str(&shorten_middle(&line, layout.width));
        text.push('\n');
        left.extend(node.children.iter().rev().map(|child| (child, depth + 1)));
    }
    text
}

/// What changed since an earlier profile.
pub fn changes(layers: &[Change], functions: &[Change], before: &str) -> String {
    let mut text = format!("\ncompared with {}, % of busy time (*: more than chance for this number of samples)\n", printable(before));
    for (title, changes) in [("layers", layers), ("functions, own time", functions)] {
        let _ = writeln!(text, "{title:48} before     now");
        for change in changes.iter().filter(|change| (change.now - change.before).abs() >= LINE_SHARE_MIN).take(12) {
            let name: String = printable(&change.name).chars().take(48).collect();
            let mark = if change.beyond_chance { " *" } else { "" };
            let _ = writeln!(text, "{name:48} {:>6}  {:>6}{mark}", percent(change.before), percent(change.now));
        }
    }
    text
}

/// Shortens a line to `width` letters. The middle is left out, since both ends matter.
fn shorten_middle(line: &str, width: usize) -> String {
    let letters: Vec<char> = line.chars().collect();
    if letters.len() <= width || width < 20 {
        return line.to_owned();
    }
    let head = width / 2;
    let tail = letters.len() - (width - head - 3);
    letters[..head].iter().chain(&['.'; 3]).chain(&letters[tail..]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::report::report;
    use crate::output::folded;
    use crate::profile::Core;

    const LAYOUT: Layout = Layout { width: 100, unicode: false, tree_share_min: 0.01 };

    #[test]
    fn the_text_has_layers_bounds_functions_and_the_tree() {
        let profile = folded::read("nginx;main;a;b 60\nnginx;main;malloc 30\nphp;execute_ex 10\n").unwrap();
        let text = render(&profile, &report(&profile), &LAYOUT);
        for part in [
            "application                                        60.0    66.7       -",
            "allocator (user space) 30.0 % (21.9 to 39.6), ",
            "33.3 % of nginx's time: at most +43 % with an allocator that costs nothing",
            "  60.0 %  b",
            "  90.0 % nginx > main\n  60.0 % ` a > b\n  30.0 % ` malloc\n  10.0 % php > execute_ex\n",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 160));
    }

    #[test]
    fn a_few_samples_make_no_statement() {
        let of = |count: u32| {
            let profile = folded::read(&format!("nginx;main;malloc {count}\n")).unwrap();
            render(&profile, &report(&profile), &LAYOUT)
        };
        assert!(of(29).contains("29 busy samples are too few") && !of(29).contains("nginx"), "{}", of(29));
        assert!(of(30).contains("nginx"));
    }

    #[test]
    fn samples_that_are_missing_are_told_and_no_gain_is() {
        let of = |lost: u64, samples: u32| {
            let mut profile = folded::read(&format!("nginx;main;malloc {samples}\n")).unwrap();
            (profile.lost, profile.frequency_hz, profile.duration_s) = (lost, 99, 5.0);
            profile.cores = (0..2).map(|cpu| Core { cpu, busy: Some(1.0), stolen: None }).collect();
            render(&profile, &report(&profile), &LAYOUT)
        };
        let hidden = of(6_989_227, 154);
        assert!(hidden.contains("gave about 990 samples, and 154 are here") && !hidden.contains("Highest possible gain"), "{hidden}");
        for whole in [of(0, 154), of(5, 985), of(9, 860)] {
            assert!(!whole.contains("are here") && whole.contains("Highest possible gain"), "{whole}");
        }
    }

    #[test]
    fn an_empty_profile_says_so() {
        let profile = folded::read("[idle];do_idle_[k] 5\n").unwrap();
        assert!(render(&profile, &report(&profile), &LAYOUT).ends_with("no program ran.\n"));
    }

    #[test]
    fn samples_of_others_are_not_idleness() {
        let mut profile = folded::read("[idle];do_idle_[k] 5\n").unwrap();
        profile.scope = crate::Scope::Cgroup("system.slice/nginx.service".to_owned()).to_string();
        for (outside, told) in [(506, "Nothing of cgroup system.slice/nginx.service ran: all 506 samples"), (0, "nginx.service ran.\n")] {
            profile.outside = outside;
            let text = render(&profile, &report(&profile), &LAYOUT);
            assert!(text.contains(told) && !text.contains("idle: no program ran"), "{text}");
        }
    }

    #[test]
    fn long_lines_are_shortened_in_the_middle() {
        assert_eq!(shorten_middle(&"x".repeat(50), 20).len(), 20);
        assert_eq!(shorten_middle("short", 20), "short");
    }
}
