//! Two kept runs compared: their figures, their loads, and everything that differs between what they were measured on.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde::Serialize;

use crate::run::{Better, Run, State, Summary, Surroundings};

/// The figure that says how fast a run was.
pub const GOODPUT: &str = "goodput";
/// An earlier run was faster if its goodput was higher by more than this share.
pub const FASTER_SHARE: f64 = 0.1;

/// Why an earlier run is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Chosen {
    /// The user named both.
    Named,
    /// It is the latest comparable run whose goodput was higher by more than [`FASTER_SHARE`].
    Faster,
    /// No comparable run was faster, and it is the one before.
    Previous,
    /// No earlier run had the same load. It is the one before of the same kind and target, whose figures cannot be compared.
    OtherLoad,
}

/// A run of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedRun {
    /// Its number.
    pub id: i64,
    /// The verb.
    pub kind: String,
    /// How far it got.
    pub state: State,
    /// Its start, RFC 3339.
    pub began: String,
    /// What was measured.
    pub target: String,
    /// The user's label; empty without one.
    pub label: String,
    /// Its result in one sentence.
    pub headline: String,
}

/// A figure of both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FigurePair {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// In which direction it is better.
    pub better: Better,
    /// In the earlier run. `None` if it was not measured.
    pub earlier: Option<f64>,
    /// In the later run.
    pub later: Option<f64>,
    /// From the earlier to the later, percent. `None` unless both are known and the earlier is not zero.
    pub change_percent: Option<f64>,
}

/// A value that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// "kernel", "sysctls (host)", "nginx", "load", "chokepoint", ...
    pub group: String,
    /// The name of the value.
    pub name: String,
    /// In the earlier run. `None` if that run did not read it: absent is not zero.
    pub earlier: Option<String>,
    /// In the later run.
    pub later: Option<String>,
}

impl Difference {
    /// True if both runs read it.
    pub fn is_in_both(&self) -> bool {
        self.earlier.is_some() && self.later.is_some()
    }
}

/// Two runs compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Why the earlier run was chosen.
    pub chosen: Chosen,
    /// The earlier run, or the first one that was named.
    pub earlier: ComparedRun,
    /// The later run.
    pub later: ComparedRun,
    /// Their figures.
    pub figures: Vec<FigurePair>,
    /// What differs between their loads. The figures of different loads cannot be compared.
    pub load: Vec<Difference>,
    /// What differs between the hosts, kernels, settings and versions.
    pub differences: Vec<Difference>,
    /// Values of the load, hosts, settings and versions that are the same in both.
    pub same: u64,
}

/// The earlier run to compare a run with, and why: the latest earlier one of the same kind, target and load that was faster, else the one before. Without any of
/// the same load it is the one before of the same kind and target.
pub fn earlier<'a>(run: &Summary, others: &'a [Summary]) -> Option<(&'a Summary, Chosen)> {
    let is_comparable =
        |other: &&Summary| other.id < run.id && other.kind == run.kind && other.target == run.target && other.state != State::Running;
    let mut comparable: Vec<&Summary> = others.iter().filter(is_comparable).collect();
    comparable.sort_by_key(|other| std::cmp::Reverse(other.id));
    let is_faster = |other: &&&Summary| match (other.figure(GOODPUT), run.figure(GOODPUT)) {
        (Some(before), Some(now)) => before > now * (1.0 + FASTER_SHARE),
        _ => false,
    };
    let of_load: Vec<&Summary> = comparable.iter().copied().filter(|other| other.load == run.load).collect();
    let faster = of_load.iter().find(is_faster).map(|other| (*other, Chosen::Faster));
    let previous = of_load.first().map(|other| (*other, Chosen::Previous));
    faster.or(previous).or_else(|| comparable.first().map(|other| (*other, Chosen::OtherLoad)))
}

/// Compares two runs.
pub fn compare(earlier: &Run, later: &Run, chosen: Chosen) -> Comparison {
    let (load, same_load) = differences("load", &earlier.run.load, &later.run.load);
    let versions = |run: &Run| BTreeMap::from([("version".to_owned(), run.run.version.clone())]);
    let (mut different, mut same) = differences("chokepoint", &versions(earlier), &versions(later));
    let (around, alike) = surroundings(&earlier.run.surroundings, &later.run.surroundings);
    different.extend(around);
    same += alike;
    Comparison {
        chosen,
        earlier: compared(earlier),
        later: compared(later),
        figures: figures(earlier, later),
        load,
        differences: different,
        same: same + same_load,
    }
}

/// What differs between two surroundings, and the number of values that do not.
pub fn surroundings(earlier: &Surroundings, later: &Surroundings) -> (Vec<Difference>, u64) {
    let groups: BTreeSet<&String> = earlier.keys().chain(later.keys()).collect();
    let (none, mut different, mut same) = (BTreeMap::new(), Vec::new(), 0);
    for group in groups {
        let of = |all: &'_ Surroundings| all.get(group).unwrap_or(&none).clone();
        let (more, alike) = differences(group, &of(earlier), &of(later));
        different.extend(more);
        same += alike;
    }
    (different, same)
}

fn compared(run: &Run) -> ComparedRun {
    ComparedRun {
        id: run.id,
        kind: run.run.kind.clone(),
        state: run.run.state,
        began: run.run.began.clone(),
        target: run.run.target.clone(),
        label: run.run.label.clone(),
        headline: run.run.headline.clone(),
    }
}

/// The figures of the later run in its order, then those of the earlier alone. A figure in another unit is another figure.
fn figures(earlier: &Run, later: &Run) -> Vec<FigurePair> {
    let mut pairs: Vec<FigurePair> = Vec::new();
    for (figure, is_later) in
        later.run.figures.iter().map(|figure| (figure, true)).chain(earlier.run.figures.iter().map(|figure| (figure, false)))
    {
        let known = pairs.iter().position(|pair| pair.name == figure.name && pair.unit == figure.unit);
        let at = known.unwrap_or_else(|| {
            let (name, unit) = (figure.name.clone(), figure.unit.clone());
            pairs.push(FigurePair { name, unit, better: figure.better, earlier: None, later: None, change_percent: None });
            pairs.len() - 1
        });
        let side = if is_later { &mut pairs[at].later } else { &mut pairs[at].earlier };
        *side = Some(figure.value);
    }
    for pair in &mut pairs {
        let change = |(before, now): (f64, f64)| (before != 0.0).then(|| (now - before) / before.abs() * 100.0);
        pair.change_percent = pair.earlier.zip(pair.later).and_then(change).filter(|change| change.is_finite());
    }
    pairs
}

/// The values that differ, and the number of those that do not.
fn differences(group: &str, earlier: &BTreeMap<String, String>, later: &BTreeMap<String, String>) -> (Vec<Difference>, u64) {
    let names: BTreeSet<&String> = earlier.keys().chain(later.keys()).collect();
    let (mut different, mut same) = (Vec::new(), 0);
    for name in names {
        let (before, now) = (earlier.get(name), later.get(name));
        if before == now {
            same += 1;
        } else {
            different.push(Difference { group: group.to_owned(), name: name.clone(), earlier: before.cloned(), later: now.cloned() });
        }
    }
    (different, same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Figure, NewRun};

    fn run(id: i64, goodput: f64) -> Run {
        let figure = |name: &str, value, unit: &str, better| Figure { name: name.to_owned(), value, unit: unit.to_owned(), better };
        let map = |pairs: &[(&str, &str)]| pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let run = NewRun {
            kind: "bench".to_owned(),
            state: State::Done,
            began: format!("2026-01-02T03:04:{id:02}Z"),
            duration_s: 10.0,
            target: "http://h/".to_owned(),
            label: String::new(),
            version: "0.2.0".to_owned(),
            headline: String::new(),
            figures: vec![figure(GOODPUT, goodput, "/s", Better::More), figure("p99", 10.0, "us", Better::Less)],
            surroundings: BTreeMap::from([("kernel".to_owned(), map(&[("release", "6.1"), ("cores", "2")]))]),
            load: map(&[("connections", "100")]),
            document: "{}".to_owned(),
            fingerprint: None,
        };
        Run { id, run }
    }

    fn summary(run: &Run) -> Summary {
        let NewRun { kind, state, began, duration_s, target, label, version, headline, figures, load, .. } = run.run.clone();
        Summary { id: run.id, kind, state, began, duration_s, target, label, version, headline, figures, load }
    }

    #[test]
    fn the_latest_faster_run_is_compared_else_the_one_before() {
        let chosen = |others: &[Run], run: &Run| {
            let others: Vec<Summary> = others.iter().map(summary).collect();
            earlier(&summary(run), &others).map(|(other, chosen)| (other.id, chosen))
        };
        let last = run(9, 100.0);
        assert_eq!(chosen(&[run(1, 200.0), run(2, 111.0), run(3, 109.0), run(9, 100.0)], &last), Some((2, Chosen::Faster)));
        assert_eq!(chosen(&[run(1, 50.0), run(3, 109.0), run(10, 500.0)], &last), Some((3, Chosen::Previous)), "a later run is none");
        assert_eq!(chosen(&[run(10, 500.0)], &last), None);
        let with = |change: &dyn Fn(&mut NewRun)| {
            let mut other = run(5, 500.0);
            change(&mut other.run);
            other
        };
        for other in [
            with(&|run| run.kind = "diagnose".to_owned()),
            with(&|run| run.target = "http://other/".to_owned()),
            with(&|run| run.state = State::Running),
        ] {
            assert_eq!(chosen(std::slice::from_ref(&other), &last), None, "{other:?}");
        }
        let loaded_more = with(&|run| drop(run.load.insert("connections".to_owned(), "400".to_owned())));
        assert_eq!(chosen(&[run(1, 200.0), loaded_more.clone()], &last), Some((1, Chosen::Faster)), "of the same load");
        assert_eq!(chosen(&[run(1, 90.0), loaded_more.clone()], &last), Some((1, Chosen::Previous)), "of the same load");
        assert_eq!(chosen(&[loaded_more], &last), Some((5, Chosen::OtherLoad)));
        let without = with(&|run| run.figures.clear());
        assert_eq!(chosen(&[without], &last), Some((5, Chosen::Previous)), "without goodput nothing is faster");
    }

    #[test]
    fn figures_stand_side_by_side_with_their_change() {
        let (mut before, after) = (run(1, 200.0), run(2, 100.0));
        before.run.figures.push(Figure { name: "errors".to_owned(), value: 0.0, unit: "%".to_owned(), better: Better::Less });
        let found = compare(&before, &after, Chosen::Named);
        let line = |pair: &FigurePair| (pair.name.clone(), pair.earlier, pair.later, pair.change_percent);
        let lines: Vec<_> = found.figures.iter().map(line).collect();
        let expected = [
            (GOODPUT.to_owned(), Some(200.0), Some(100.0), Some(-50.0)),
            ("p99".to_owned(), Some(10.0), Some(10.0), Some(0.0)),
            ("errors".to_owned(), Some(0.0), None, None),
        ];
        assert_eq!(lines, expected);
        assert_eq!((found.differences, found.load, found.same), (vec![], vec![], 4));
    }

    #[test]
    fn every_difference_is_found_and_what_one_did_not_read_is_absent() {
        let (before, mut after) = (run(1, 1.0), run(2, 1.0));
        let kernel = after.run.surroundings.get_mut("kernel").unwrap();
        kernel.insert("release".to_owned(), "6.2".to_owned());
        kernel.remove("cores");
        after.run.surroundings.insert("nginx".to_owned(), BTreeMap::from([("version".to_owned(), "1.22.1".to_owned())]));
        after.run.version = "0.3.0".to_owned();
        after.run.load.insert("connections".to_owned(), "200".to_owned());
        let found = compare(&before, &after, Chosen::Previous);
        let lines = |differences: &[Difference]| -> Vec<String> {
            let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "not read".to_owned());
            differences.iter().map(|one| format!("{} {}: {} -> {}", one.group, one.name, value(&one.earlier), value(&one.later))).collect()
        };
        let expected = [
            "chokepoint version: 0.2.0 -> 0.3.0",
            "kernel cores: 2 -> not read",
            "kernel release: 6.1 -> 6.2",
            "nginx version: not read -> 1.22.1",
        ];
        assert_eq!(lines(&found.differences), expected);
        assert_eq!(lines(&found.load), ["load connections: 100 -> 200"]);
        assert_eq!(found.same, 0);
    }
}
