//! Kept runs in words and figures. The text and the Markdown report share it.

use chokepoint_model::message::Message;
use chokepoint_runs::comparison::{Chosen, Comparison, Difference, FASTER_SHARE};
use chokepoint_runs::{Figure, Run, State, Summary};

use super::Phrases;
use super::experiment::{Table, time};

/// A value with its unit.
pub(crate) fn value(phrases: Phrases<'_>, value: f64, unit: &str) -> String {
    let rounded = |id| phrases.say(&Message::new(id).with("n", value));
    match unit {
        "us" => phrases.duration_us(value),
        "/s" => rounded("runs-rate"),
        "%" => rounded("runs-share"),
        "" => rounded("runs-plain"),
        other => format!("{} {other}", rounded("runs-plain")),
    }
}

/// The first figure, with its name.
pub(crate) fn main_figure(phrases: Phrases<'_>, figures: &[Figure]) -> String {
    figures.first().map(|figure| format!("{} {}", figure.name, value(phrases, figure.value, &figure.unit))).unwrap_or_default()
}

/// A time as people read it: "2026-01-02 03:04".
pub(crate) fn when(began: &str) -> String {
    let minutes = began.get(..16).unwrap_or(began);
    minutes.replacen('T', " ", 1)
}

/// That a run did not end by itself; empty if it did.
pub(crate) fn state(phrases: Phrases<'_>, state: State) -> String {
    match state {
        State::Done => String::new(),
        State::Running => phrases.word("runs-running"),
        State::Interrupted => phrases.word("runs-interrupted"),
    }
}

/// The cells of the list, the head first: number, time, verb, main figure, label, target.
pub(crate) fn rows(phrases: Phrases<'_>, runs: &[Summary]) -> Vec<[String; 6]> {
    let heads = ["runs-head-id", "runs-head-when", "runs-head-kind", "runs-head-figure", "runs-head-label", "runs-head-target"];
    let row = |run: &Summary| {
        let figure = main_figure(phrases, &run.figures);
        [run.id.to_string(), when(&run.began), run.kind.clone(), figure, run.label.clone(), run.target.clone()]
    };
    std::iter::once(heads.map(|head| phrases.word(head))).chain(runs.iter().map(row)).collect()
}

/// True if a part of the load is as it is without any flag.
pub(crate) fn is_default_load(name: &str, value: &str) -> bool {
    matches!((name, value), ("connections are kept", "true") | ("method", "GET") | ("threads", "1") | ("timeout", "2 s"))
}

/// What a run was: when, for how long, by which version, how far it got, and its label.
pub(crate) fn facts(phrases: Phrases<'_>, run: &Run) -> Vec<String> {
    let run = &run.run;
    let began =
        Message::new("runs-began").with("when", when(&run.began)).with("time", time(run.duration_s)).with("version", run.version.as_str());
    let label = Some(&run.label).filter(|label| !label.is_empty());
    let label = label.map(|label| phrases.say(&Message::new("runs-label").with("label", label.as_str())));
    [Some(phrases.say(&began)), Some(state(phrases, run.state)).filter(|state| !state.is_empty()), label].into_iter().flatten().collect()
}

/// The figures of a run.
pub(crate) fn figures(phrases: Phrases<'_>, run: &Run) -> Vec<(String, String)> {
    run.run.figures.iter().map(|figure| (figure.name.clone(), value(phrases, figure.value, &figure.unit))).collect()
}

/// The figures of both runs side by side. A figure that one of them lacks is named as such.
pub(crate) fn figure_table(phrases: Phrases<'_>, comparison: &Comparison) -> Table {
    let head = |id: i64| format!("{} {id}", phrases.word("runs-head-id"));
    let mut rows = vec![vec![String::new(), head(comparison.earlier.id), head(comparison.later.id), phrases.word("runs-head-change")]];
    for pair in &comparison.figures {
        let side = |side: Option<f64>| side.map_or_else(|| "-".to_owned(), |number| value(phrases, number, &pair.unit));
        let change = pair.change_percent.map(|change| self::change(phrases, change)).unwrap_or_default();
        rows.push(vec![pair.name.clone(), side(pair.earlier), side(pair.later), change]);
    }
    Table { title: String::new(), rows }
}

fn change(phrases: Phrases<'_>, percent: f64) -> String {
    let rounded = (percent * 10.0).round() / 10.0;
    let sign = if rounded > 0.0 { "+" } else { "" };
    phrases.say(&Message::new("runs-change").with("sign", sign).with("n", rounded))
}

/// The two runs, the earlier first.
pub(crate) fn both(phrases: Phrases<'_>, comparison: &Comparison) -> Vec<String> {
    let line = |run: &chokepoint_runs::comparison::ComparedRun| {
        let id = if run.label.is_empty() { "runs-compare-run" } else { "runs-compare-labelled" };
        let message = Message::new(id)
            .with("id", run.id.to_string())
            .with("kind", run.kind.as_str())
            .with("target", run.target.as_str())
            .with("when", when(&run.began));
        phrases.say(&if run.label.is_empty() { message } else { message.with("label", run.label.as_str()) })
    };
    vec![line(&comparison.earlier), line(&comparison.later)]
}

/// Why the earlier run was chosen.
pub(crate) fn chosen(phrases: Phrases<'_>, comparison: &Comparison) -> String {
    let id = match comparison.chosen {
        Chosen::Named => return phrases.word("runs-chosen-named"),
        Chosen::Faster => "runs-chosen-faster",
        Chosen::Previous => "runs-chosen-previous",
        Chosen::OtherLoad => "runs-chosen-other-load",
    };
    phrases.say(&Message::new(id).with("earlier", comparison.earlier.id.to_string()).with("percent", FASTER_SHARE * 100.0))
}

/// Why the figures cannot be compared as they are, apart from the loads.
pub(crate) fn cautions(phrases: Phrases<'_>, comparison: &Comparison) -> Vec<String> {
    let (earlier, later) = (&comparison.earlier, &comparison.later);
    let pair =
        |id, before: &str, now: &str| (before != now).then(|| phrases.say(&Message::new(id).with("earlier", before).with("later", now)));
    let mut all: Vec<String> =
        [pair("runs-kinds-differ", &earlier.kind, &later.kind), pair("runs-targets-differ", &earlier.target, &later.target)]
            .into_iter()
            .flatten()
            .collect();
    for run in [earlier, later].into_iter().filter(|run| run.state != State::Done) {
        all.push(phrases.say(&Message::new("runs-not-done").with("id", run.id.to_string())));
    }
    all
}

/// How many values are the same, or that nothing differs.
pub(crate) fn same(phrases: Phrases<'_>, comparison: &Comparison) -> String {
    let differs = comparison.load.iter().chain(&comparison.differences).any(Difference::is_in_both);
    phrases.say(&Message::new(if differs { "runs-same" } else { "runs-nothing-differs" }).with("same", comparison.same))
}

/// The differences of values that both runs read, by group.
pub(crate) fn differences(comparison: &Comparison) -> Vec<(String, Vec<&Difference>)> {
    let mut groups: Vec<(String, Vec<&Difference>)> = Vec::new();
    for difference in comparison.differences.iter().filter(|difference| difference.is_in_both()) {
        match groups.last_mut().filter(|(group, _)| *group == difference.group) {
            Some((_, members)) => members.push(difference),
            None => groups.push((difference.group.clone(), vec![difference])),
        }
    }
    groups
}

/// The values that one of the runs did not read: a heading with its number, and the values of the other.
pub(crate) fn one_sided(phrases: Phrases<'_>, comparison: &Comparison) -> Vec<(String, Vec<(String, String)>)> {
    let of = |id: i64, side: fn(&Difference) -> (&Option<String>, &Option<String>)| {
        let values = comparison.differences.iter().filter_map(|difference| match side(difference) {
            (Some(value), None) => Some((format!("{}: {}", difference.group, difference.name), value.clone())),
            _ => None,
        });
        (phrases.say(&Message::new("runs-only-earlier").with("id", id.to_string())), values.collect::<Vec<_>>())
    };
    let both = [
        of(comparison.earlier.id, |difference| (&difference.earlier, &difference.later)),
        of(comparison.later.id, |difference| (&difference.later, &difference.earlier)),
    ];
    both.into_iter().filter(|(_, values)| !values.is_empty()).collect()
}
