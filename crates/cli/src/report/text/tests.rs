//! The printed report against stored pages (`CHOKEPOINT_BLESS=1 cargo test` rewrites them), and the JSON report against its schema.

use std::path::{Path, PathBuf};

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::report::{Diagnosis, Finding, Mode, NotApplied, Role, StationState};

use super::brief::{LINES_MAX, LINES_MAX_TRIED};
use super::wrap::{columns, sentence_ends};
use super::{Again, NOT_CONFIRMED, brief, brief_of, render};
use crate::report::samples;
use crate::report::view::findings::commands;
use crate::terminal::output::Style;

fn plain(width: usize) -> Style {
    Style { width, color: false, unicode: true }
}

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/text").join(name)
}

fn compare(name: &str, text: &str) {
    let path = page(name);
    if std::env::var_os("CHOKEPOINT_BLESS").is_some() {
        std::fs::write(&path, text).expect("the page can be written");
        return;
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == text, "{} differs; CHOKEPOINT_BLESS=1 writes it anew. It is now:\n{text}", path.display());
}

#[test]
fn pages_equal_the_stored_ones() {
    let words = Catalogue::english();
    for (name, diagnosis) in samples::all() {
        for width in [60, 100] {
            compare(&format!("{name}/{width}.txt"), &render(&diagnosis, &plain(width), &words));
        }
    }
    compare("awkward/80-ascii.txt", &render(&samples::awkward(), &Style { width: 80, color: false, unicode: false }, &words));
    compare("choked/200.txt", &render(&samples::choked(), &plain(200), &words));
    compare("choked/100-color.txt", &render(&samples::choked(), &Style { width: 100, color: true, unicode: true }, &words));
}

/// A diagnosis without the parts that only a flag asks for (`--bisect`, `--capture`): they come in addition, and show addresses whole.
fn unasked(diagnosis: &Diagnosis) -> Diagnosis {
    Diagnosis { bisect: None, wire: None, ..diagnosis.clone() }
}

#[test]
fn short_pages_equal_the_stored_ones_and_fit_one_screen() {
    let words = Catalogue::english();
    for (name, diagnosis) in samples::all() {
        let text = brief(&diagnosis, &plain(80), &words);
        compare(&format!("{name}/brief.txt"), &text);
        for width in [80, 100, 200] {
            let most = if diagnosis.rounds.is_empty() { LINES_MAX } else { LINES_MAX_TRIED };
            let lines = brief(&unasked(&diagnosis), &plain(width), &words).lines().count();
            assert!(lines <= most, "{name} at {width}: {lines} lines\n{text}");
        }
    }
    let ascii = Style { width: 80, color: false, unicode: false };
    assert!(brief(&samples::collapse(), &ascii, &words).is_ascii());
    let demo = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/demo.md")).expect("the page is there");
    let shown = brief(&samples::collapse(), &plain(80), &words);
    assert!(
        demo.contains(&*shown) || std::env::var_os("CHOKEPOINT_BLESS").is_some(),
        "docs/demo.md shows another report: copy it\n{shown}"
    );
    compare("collapse/brief-color.txt", &brief(&samples::collapse(), &Style { width: 80, color: true, unicode: true }, &words));
}

#[test]
fn no_line_of_a_short_page_is_wider_than_the_terminal() {
    let words = Catalogue::english();
    for (name, diagnosis) in samples::all() {
        for width in [0, 40, 60, 72, 80, 120] {
            let text = brief(&diagnosis, &plain(width), &words);
            assert!(!text.contains("[brief-") && !text.contains("\n\n\n"), "{name}:\n{text}");
            for line in brief(&unasked(&diagnosis), &plain(width), &words).lines() {
                assert!(columns(line) <= width.max(40) && line == line.trim_end(), "{name} at {width}: {line}");
            }
        }
    }
}

/// Whatever the width, the title of the cause, the places and the stations that matter stand whole, and what is left out is told in words.
#[test]
fn a_narrow_short_page_is_wrapped_and_not_cut() {
    let words = Catalogue::english();
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut titles = 0;
    for (name, mut diagnosis) in samples::all() {
        if let Some(cause) = crate::report::view::path::choke(&diagnosis) {
            diagnosis.findings[cause].title = format!("{}and the rest waits", "a long name of a place that is full, ".repeat(4));
        }
        for width in [40, 60, 80] {
            let page = brief(&unasked(&diagnosis), &plain(width), &words);
            let text = flat(&page);
            if crate::report::view::path::choke(&diagnosis).is_some() {
                titles += 1;
                assert!(text.contains("that is full, and the rest waits"), "{name} at {width}:\n{page}");
            }
            let places = page.lines().skip_while(|line| !line.starts_with("requests") && !line.starts_with("path"));
            let places: Vec<&str> = places.take_while(|line| !line.is_empty()).collect();
            assert!(!places.iter().any(|line| line.contains('\u{2026}')), "{name} at {width}:\n{page}");
            let is_counted = |word: &str| word.strip_prefix('+').is_some_and(|number| number.parse::<u32>().is_ok());
            assert!(!places.iter().any(|line| line.split(' ').any(is_counted)), "{name} at {width}:\n{page}");
            let head: Vec<&str> = page.lines().take_while(|line| !line.is_empty()).collect();
            let limit = diagnosis.after.as_ref().map_or("", |after| after.limit.as_str());
            assert!(flat(&head.join(" ")).contains(limit), "{name} at {width}:\n{page}");
        }
    }
    assert!(titles > 3, "{titles}");
    let loaded = brief(&samples::collapse(), &plain(80), &words);
    assert!(!loaded.contains("thread"), "no generator is part of this sample: {loaded}");
}

/// What mends the cause stands whole in every short page, however long it is.
#[test]
fn a_remedy_in_a_short_page_is_never_cut() {
    let words = Catalogue::english();
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown = 0;
    for (name, mut diagnosis) in samples::all() {
        let Some(cause) = crate::report::view::path::choke(&diagnosis) else { continue };
        if !diagnosis.rounds.is_empty() {
            continue;
        }
        let Some(remedy) = diagnosis.findings[cause].remedies.first_mut() else { continue };
        remedy.text = format!("Let each worker hold more connections: {}in reserve = 4,711.", "a part of a long sum ".repeat(20));
        let text = remedy.text.clone();
        for width in [40, 80, 120] {
            let page = brief(&diagnosis, &plain(width), &words);
            assert!(flat(&page).contains(&text), "{name} at {width}:\n{page}");
        }
        shown += 1;
    }
    assert!(shown > 1, "{shown}");
}

/// A fix is proven under load: what was only watched is fixed with one.
#[test]
fn the_command_that_fixes_has_the_load_that_it_needs() {
    let words = Catalogue::english();
    let mut diagnosis = samples::choked();
    assert!(brief(&diagnosis, &plain(80), &words).contains("chokepoint diagnose --fix ..."));
    // However much of the traffic was counted.
    diagnosis.mode = Mode::Passive;
    let text = brief(&diagnosis, &plain(80), &words);
    assert!(text.contains("chokepoint diagnose --load --fix ..."), "{text}");
}

/// `--fix` mends causes: what only a symptom's remedy would change is not offered.
#[test]
fn a_fix_is_offered_only_where_a_cause_has_one() {
    let words = Catalogue::english();
    let mut diagnosis = samples::choked();
    diagnosis.findings.iter_mut().filter(|finding| finding.role == Role::Cause).for_each(|cause| cause.remedies.clear());
    let mut symptom = samples::choked().findings.remove(0);
    symptom.role = Role::Symptom;
    diagnosis.findings.push(symptom);
    let text = brief(&diagnosis, &plain(80), &words);
    assert!(!text.contains("--fix"), "{text}");
}

/// Root is not told to become root.
#[test]
fn what_root_may_not_read_names_the_privilege_that_it_lacks() {
    let words = Catalogue::english();
    let text = |is_root: bool| {
        let again = Again::of(["diagnose", "http://h/"].map(str::to_owned).into(), is_root);
        brief_of(&samples::unknown(), &plain(120), &words, again.as_ref()).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(text(false).contains("Run it as root"), "{}", text(false));
    assert!(!text(true).contains("Run it as root") && text(true).contains("has not the privilege CAP_"), "{}", text(true));
}

/// The explanation of the cause ends where one of its sentences ends.
#[test]
fn an_explanation_in_a_short_page_ends_with_a_sentence() {
    let words = Catalogue::english();
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut explained = 0;
    for (name, diagnosis) in samples::all() {
        let Some(cause) = crate::report::view::path::choke(&diagnosis) else { continue };
        let explanation = flat(&diagnosis.findings[cause].explanation);
        let ends = sentence_ends(&explanation);
        for width in [40, 60, 80, 100, 200] {
            let text = flat(&brief(&diagnosis, &plain(width), &words));
            let begin = text.find(&explanation[..10]).unwrap_or_else(|| panic!("{name} at {width}: {text}"));
            let same = text[begin..].bytes().zip(explanation.bytes()).take_while(|(shown, whole)| shown == whole).count();
            let shown = text[begin..begin + same].trim_end();
            assert!(ends.contains(&shown.len()), "{name} at {width}: {shown}");
            explained += 1;
        }
    }
    assert!(explained > 30, "{explained}");
}

/// What was known of the server as found has no place beside the verdict on the server after the fix, and a full queue is not drawn as empty.
#[test]
fn a_short_page_shows_nothing_that_misleads() {
    let words = Catalogue::english();
    let fixed = brief(&samples::fixed(), &plain(80), &words);
    assert!(fixed.starts_with("FIXED") && fixed.contains("As found, before the changes:") && !fixed.contains("at most"), "{fixed}");
    let healthy = brief(&samples::healthy(), &plain(80), &words);
    assert_eq!(healthy.matches("at most").count(), 1, "{healthy}");
    let mut refused = samples::coupled();
    (refused.path[0].used, refused.path[0].utilization) = (Some(0.0), Some(0.0));
    let text = brief(&refused, &plain(80), &words);
    assert!(text.contains("limit 10, 40 tries/s refused") && !text.contains("0 of 10"), "{text}");
    // That a load's clients are all in use is what a load is; where nothing is in flight, nothing stands anywhere.
    let mut asked = samples::healthy();
    let mut clients = asked.path[0].clone();
    (clients.station, clients.used, clients.utilization) = ("clients".into(), clients.limit, Some(1.0));
    clients.state = StationState::Saturated;
    asked.path.insert(1, clients);
    let mut ledger = samples::whereabouts::busy().ledger;
    asked.ledger = ledger.clone();
    let standing = brief(&asked, &plain(80), &words);
    assert!(standing.contains("\nrequests ") && !standing.contains("clients 100"), "{standing}");
    ledger.iter_mut().for_each(|ledger| ledger.under_way = 0.0);
    asked.ledger = ledger;
    let idle = brief(&asked, &plain(80), &words);
    assert!(!idle.contains("\nrequests "), "{idle}");
    assert!(standing.contains("by 1 thread)"), "who sent the load: {standing}");
    let needs = |diagnosis: &_| brief(diagnosis, &plain(80), &words).contains("needs CAP_");
    let mut healthy = samples::healthy();
    healthy.readings = samples::unknown().readings;
    assert!(needs(&samples::unknown()) && !needs(&healthy));
}

#[test]
fn every_explanation_fits_the_width_of_its_page() {
    let words = Catalogue::english();
    for id in chokepoint_model::explain::ids() {
        let explanation = chokepoint_model::explain::page(id, &words).expect("every id has a page");
        let text = super::page_text(&explanation, &plain(72), &words);
        assert!(text.contains(id) && text.contains(&explanation.sections[0].0), "{text}");
        assert!(text.lines().all(|line| columns(line) <= 72), "{text}");
    }
}

#[test]
fn every_message_is_in_the_catalogue() {
    let words = Catalogue::english();
    for (name, diagnosis) in samples::all() {
        let text = render(&diagnosis, &plain(100), &words);
        assert!(!text.contains("[report-"), "{name}:\n{text}");
    }
}

/// A line wider than the page holds a command, or a word longer than a line.
#[test]
fn lines_fit_the_page_unless_a_single_word_is_longer() {
    let words = Catalogue::english();
    for (name, diagnosis) in samples::all() {
        let remedies = diagnosis.findings.iter().chain(&diagnosis.improvements).flat_map(|finding| &finding.remedies);
        let verbatim: Vec<String> = remedies.flat_map(commands).flat_map(|(_, lines)| lines).collect();
        for width in [0, 40, 60, 72, 80, 99, 120, 200] {
            for line in render(&diagnosis, &plain(width), &words).lines().filter(|line| columns(line) > width.max(40)) {
                let longest = line.split_whitespace().map(columns).max().unwrap_or(0);
                let is_command = verbatim.iter().any(|command| line.ends_with(command.as_str()));
                assert!(is_command || longest + 14 > width.max(40), "{name} at {width}: {line}");
            }
        }
    }
}

#[test]
fn commands_are_never_broken() {
    let words = Catalogue::english();
    for width in [40, 60, 100] {
        let diagnosis = samples::awkward();
        let text = render(&diagnosis, &plain(width), &words);
        for remedy in diagnosis.findings.iter().flat_map(|finding| &finding.remedies) {
            for command in commands(remedy).flat_map(|(_, lines)| lines) {
                assert!(text.lines().any(|line| line.ends_with(command.as_str())), "{command}\n{text}");
            }
        }
    }
}

#[test]
fn any_number_and_any_width_can_be_printed() {
    let words = Catalogue::english();
    let mut diagnosis = samples::awkward();
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, f64::MAX, f64::MIN_POSITIVE];
    for (place, station) in diagnosis.path.iter_mut().enumerate() {
        let value = Some(odd[place % odd.len()]);
        station.unit = if place % 2 == 0 { "bits/s".into() } else { "entries".into() };
        (station.limit, station.used, station.waiting, station.refused_per_s, station.utilization) = (value, value, value, value, value);
    }
    let load = diagnosis.load.as_mut().expect("a load");
    (load.throughput_rps, load.goodput_rps, load.duration_s) = (f64::NAN, f64::INFINITY, -1.0);
    for width in (0..250).chain([usize::MAX]) {
        assert!(render(&diagnosis, &plain(width), &words).contains("conntrack-table-full"), "{width}");
    }
}

#[test]
fn control_characters_from_outside_are_escaped() {
    let words = Catalogue::english();
    for unicode in [true, false] {
        let text = render(&samples::awkward(), &Style { width: 80, color: false, unicode }, &words);
        let is_control = |character: char| character != '\n' && character.is_control() || character == '\u{202e}';
        assert!(!text.contains(is_control), "{text:?}");
        assert!(unicode || text.is_ascii(), "{text}");
    }
}

#[test]
fn colour_changes_no_printed_character() {
    let words = Catalogue::english();
    for (name, diagnosis) in samples::all() {
        let colored = render(&diagnosis, &Style { width: 100, color: true, unicode: true }, &words);
        let mut stripped = String::new();
        let mut rest: &str = &colored;
        while let Some((before, after)) = rest.split_once("\x1b[") {
            stripped.push_str(before);
            rest = after.split_once('m').map_or("", |(_, rest)| rest);
        }
        stripped.push_str(rest);
        assert_eq!(stripped, *render(&diagnosis, &plain(100), &words), "{name}");
    }
}

#[test]
fn no_line_ends_in_a_space_and_empty_lines_are_single() {
    let words = Catalogue::english();
    for (name, diagnosis) in samples::all() {
        let text = render(&diagnosis, &plain(100), &words);
        assert!(text.lines().all(|line| line == line.trim_end()), "{name}");
        assert!(!text.contains("\n\n\n") && !text.starts_with('\n') && text.ends_with('\n'), "{name}");
    }
}

fn schema() -> serde_json::Value {
    schema_of("diagnosis-1.json")
}

fn schema_of(name: &str) -> serde_json::Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).expect("the schema is there")).expect("the schema is JSON")
}

/// The schema without room for further fields: readers must accept them, but this version must describe all that it writes.
fn closed(mut schema: serde_json::Value) -> serde_json::Value {
    match &mut schema {
        serde_json::Value::Object(object) => {
            object.values_mut().for_each(|value| *value = closed(value.take()));
            if object.contains_key("properties") {
                object.entry("additionalProperties").or_insert(serde_json::Value::Bool(false));
            }
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(|item| *item = closed(item.take())),
        _ => {}
    }
    schema
}

#[test]
fn the_json_report_fits_its_schema() {
    let validator = jsonschema::draft202012::new(&closed(schema())).expect("the schema is a schema");
    for (name, diagnosis) in samples::all() {
        let document = serde_json::to_value(&diagnosis).expect("a diagnosis is JSON");
        let errors: Vec<String> = validator.iter_errors(&document).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
    }
}

/// The names of variants are keys nowhere, so that a hostile one changes nothing.
#[test]
fn the_json_of_an_experiment_fits_its_schema_and_can_be_read_back() {
    let schema = schema_of("experiment-1.json");
    let validator = jsonschema::draft202012::new(&schema).expect("the schema is a schema");
    let strict = jsonschema::draft202012::new(&closed(schema)).expect("the schema is a schema");
    let hostile = ("hostile", samples::experiment::hostile("</script>\u{202e}\""));
    for (name, report) in samples::experiment::all().into_iter().chain([hostile]) {
        let text = serde_json::to_string(&report).expect("an experiment is JSON");
        assert_eq!(
            serde_json::from_str::<chokepoint_experiment::report::Experiment>(&text).expect("it can be read back"),
            report,
            "{name}"
        );
        let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let errors: Vec<String> = strict.iter_errors(&document).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
        for (pointer, key) in [("", "comparisons"), ("/design", "decide"), ("/variants/0", "figures"), ("/trials/0", "at_s")] {
            let mut bad = document.clone();
            let object = bad.pointer_mut(pointer).and_then(serde_json::Value::as_object_mut).expect("an object");
            object.insert("more".to_owned(), serde_json::json!(1));
            let value = object.remove(key).expect("a field");
            assert!(!validator.is_valid(&bad), "{name}: {pointer}/{key} is missing");
            bad.pointer_mut(pointer).and_then(serde_json::Value::as_object_mut).expect("an object").insert(key.to_owned(), value);
            assert!(validator.is_valid(&bad), "{name}: {pointer}/more may come from a later version");
        }
    }
}

/// The schema must reject a missing field and a field of the wrong type, and accept a field of a later version.
#[test]
fn the_schema_rejects_other_documents() {
    let validator = jsonschema::draft202012::new(&schema()).expect("the schema is a schema");
    let strict = jsonschema::draft202012::new(&closed(schema())).expect("the schema is a schema");
    let good = serde_json::to_value(samples::awkward()).expect("a diagnosis is JSON");
    for (pointer, key) in [("", "verdict"), ("/load", "goodput_rps"), ("/path/0", "state"), ("/findings/0/remedies/0", "undo")] {
        let mut bad = good.clone();
        let object = bad.pointer_mut(pointer).and_then(serde_json::Value::as_object_mut).expect("an object");
        let value = object.remove(key).expect("a field");
        assert!(!validator.is_valid(&bad), "{pointer}/{key} is missing");
        let object = bad.pointer_mut(pointer).and_then(serde_json::Value::as_object_mut).expect("an object");
        object.insert(key.to_owned(), serde_json::json!({}));
        assert!(!validator.is_valid(&bad), "{pointer}/{key} has the wrong type");
        let object = bad.pointer_mut(pointer).and_then(serde_json::Value::as_object_mut).expect("an object");
        object.insert(key.to_owned(), value);
        object.insert("more".to_owned(), serde_json::json!(1));
        assert!(validator.is_valid(&bad), "{pointer}/more may come from a later version");
        assert!(!strict.is_valid(&bad), "{pointer}/more is not described");
    }
}

/// The server also refuses requests, but the client limits the run.
#[test]
fn the_client_is_the_limit_of_the_run_whatever_the_server_refused() {
    let mut sample = samples::client_limited();
    let queue = sample.path[1].clone();
    let full =
        Finding { id: "accept-queue-full".into(), station: queue.station, tier: queue.tier, at: queue.at, ..sample.findings[0].clone() };
    sample.findings.insert(0, full);
    let text = render(&sample, &plain(120), &Catalogue::english());
    let line = |word: &str| text.lines().find(|line| line.contains(word)).unwrap_or_default().to_owned();
    assert!(line("THE LIMIT OF THIS RUN").contains("load-generator") && line("see 1").contains("accept-queue"), "{text}");
}

/// A finding about an upstream has an address of its own and is drawn at its station.
#[test]
fn blocked_workers_are_drawn_as_the_choke_point_of_their_pool() {
    let mut sample = samples::coupled();
    let mut pool = sample.path[1].clone();
    (pool.station, pool.at) = ("worker-pool".into(), sample.findings[2].at.clone());
    sample.path.push(pool);
    let text = render(&sample, &plain(120), &Catalogue::english());
    let marked = text.lines().find(|line| line.contains("CHOKE POINT")).unwrap_or_default();
    assert!(marked.contains("worker-pool"), "{text}");
}

/// A change that another running chokepoint keeps from being made: the reason is whole, and what comes next is not only the command that just failed.
#[test]
fn why_nothing_was_applied_is_told_whole_and_another_command_comes_next() {
    let words = Catalogue::english();
    let why = "net.core.somaxconn in host is not changed while `chokepoint lab run throughput-collapse` (process 4711) runs, which set net.netfilter.nf_conntrack_max in host, \
               net.ipv4.ip_local_port_range in host, net.ipv4.tcp_tw_reuse in host: wait until it ends, or stop it";
    let kept_from = |why: &str| {
        let mut diagnosis = Diagnosis { rounds: Vec::new(), after: None, before: None, ..samples::choked() };
        diagnosis.not_applied = vec![NotApplied { remedy: "raise-backlog".into(), why: why.into() }];
        diagnosis.warnings.insert(0, format!("Remedy raise-backlog could not be applied: {why}"));
        diagnosis
    };
    let again = Again::of(["diagnose", "-c", "100", "http://h/", "--fix"].map(str::to_owned).into(), true);
    for width in [60, 80, 120] {
        let text = brief_of(&kept_from(why), &plain(width), &words, again.as_ref());
        let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(joined.contains(&why.split_whitespace().collect::<Vec<_>>().join(" ")), "{width}:\n{}", &*text);
        assert_eq!(joined.matches("could not be applied").count(), 1, "{width}:\n{}", &*text);
        assert!(joined.contains("chokepoint undo --list"), "{width}:\n{}", &*text);
    }
    // Who did not agree may think again.
    assert!(!brief_of(&kept_from(NOT_CONFIRMED), &plain(80), &words, again.as_ref()).contains("undo --list"));
}
