//! Properties of every figure in every output of every recording: shares lie between 0 and 100 %, what was not read is no zero, numbers that are advised follow
//! from the printed arithmetic, and no verdict contradicts a line of its own report.
//!
//! Deterministic: recordings and command lines.

use serde_json::{Value, json};

use crate::harness::{Chokepoint, all_recordings, repository};

/// How far a printed sum may be from its own figures: they have three digits.
const ROUNDING: f64 = 0.02;

/// Calls with the path and the value of every number of a document.
fn each_number(path: &str, value: &Value, call: &mut dyn FnMut(&str, f64)) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| each_number(&format!("{path}.{name}"), value, call)),
        Value::Array(items) => items.iter().for_each(|item| each_number(path, item, call)),
        Value::Number(number) => call(path, number.as_f64().unwrap()),
        _ => {}
    }
}

/// The number before each of these words: "107 %" gives 107.
fn numbers_before<'t>(text: &'t str, unit: &'t str) -> impl Iterator<Item = f64> + 't {
    text.match_indices(unit).filter_map(|(at, _)| {
        let before = text[..at].trim_end_matches([' ', '\u{a0}']);
        let start = before
            .rfind(|letter: char| !(letter.is_ascii_digit() || ".,-".contains(letter)))
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        before[start..].replace(',', "").parse().ok()
    })
}

/// The text without what is no share: a gain of throughput may be above 100 %.
fn without_gains(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut parts = words.split("would raise throughput by");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| {
        all + ["not counted", "Fewer wake-ups"].iter().find_map(|end| part.split_once(end)).map_or(part, |(_, rest)| rest)
    })
}

/// What is wrong with the shares and the times of a text.
fn wrong_in_text(text: &str) -> Vec<String> {
    let text = without_gains(text);
    let shares = numbers_before(&text, "%").filter(|share| !(0.0..=100.0).contains(share)).map(|share| format!("a share of {share} %"));
    let unread =
        ["p99 0 ", "before 0 \u{b5}s"].into_iter().filter(|unread| text.contains(unread)).map(|unread| format!("not read: {unread}"));
    shares.chain(unread).collect()
}

/// "20/s x 250 ms = 5 at once, plus reserve: 7" in a text: each such sum is right, and its result is the number that is advised.
fn wrong_sums(text: &str) -> Vec<String> {
    let number = |text: &str| -> Option<f64> { text.trim().trim_end_matches([',', '.']).replace(',', "").parse().ok() };
    let mut wrong = Vec::new();
    for (at, _) in text.match_indices("/s x ") {
        let rate = text[..at].rsplit([' ', '(']).next().and_then(number);
        let mut rest = text[at + 5..].splitn(2, " ms = ");
        let (held, rest) = (rest.next().and_then(number), rest.next().unwrap_or_default());
        let at_once = rest.split(" at once").next().and_then(number);
        let workers = rest.split("plus reserve: ").nth(1).and_then(|rest| number(rest.split([' ', '.', '\n']).next()?));
        let (Some(rate), Some(held), Some(at_once), Some(workers)) = (rate, held, at_once, workers) else {
            wrong.push(format!("cannot be read: {text}"));
            continue;
        };
        let product = rate * held / 1e3;
        let is_right = (product - at_once).abs() <= ROUNDING * product + 0.05;
        let is_enough = workers >= (at_once - 1.0).floor() && workers <= at_once + at_once.sqrt() + 1.0 + ROUNDING * at_once;
        if !is_right || !is_enough {
            wrong.push(format!("does not add up: {text}"));
        }
    }
    wrong
}

/// "= 250, rounded up to a power of two: 256": the second number is the power of two at or above the first.
fn wrong_roundings(text: &str) -> Vec<String> {
    const ROUNDED: &str = ", rounded up to a power of two: ";
    let digits = |text: &str| text.replace(',', "").parse::<u64>().ok();
    let is_number = |letter: char| letter.is_ascii_digit() || letter == ',';
    let is_wrong = |(at, _): &(usize, &str)| {
        let (before, after) = (&text[..*at], &text[at + ROUNDED.len()..]);
        let needed = digits(&before[before.rfind(|letter| !is_number(letter)).map_or(0, |at| at + 1)..]);
        let advised = digits(after[..after.find(|letter| !is_number(letter)).unwrap_or(after.len())].trim_end_matches(','));
        needed.and_then(u64::checked_next_power_of_two) != advised || advised.is_none()
    };
    text.match_indices(ROUNDED).filter(is_wrong).map(|_| format!("does not follow: {text}")).collect()
}

/// Remedies that set a number, which has to follow from the text.
const SETS_A_NUMBER: [&str; 9] = [
    "raise-worker-connections",
    "raise-accept-backlog",
    "raise-nofile",
    "raise-nofile-by-hand",
    "raise-syn-backlog",
    "widen-port-range",
    "raise-conntrack-max",
    "raise-cpu-quota",
    "raise-send-buffer",
];

/// True if the text says how its number follows: by a sum, or by a limit that is named.
fn has_a_sum(text: &str) -> bool {
    [" = ", "default: ", "as many ", "the most that "].iter().any(|words| text.contains(words))
}

/// Stations of which a line has a share and a ceiling, both of the whole window. Clients and ports have another share: that of their own.
const SHARED: [&str; 6] = ["cpu", "cpu-quota", "worker-pool", "rate-limit", "link", "shaper"];
/// Share of a station from which its product with the ceiling is looked at: a ceiling of little use is of little use.
const USED_MIN: f64 = 0.25;

/// Stations whose share times their ceiling is not the rate: the ceiling has an interval, and the rate is as good as the noise that the report tells.
fn wrong_ceilings(report: &Value) -> Vec<String> {
    let rate = report["ledger"]["rate_rps"].as_f64().or(report["load"]["goodput_rps"].as_f64());
    let Some(rate) = rate.filter(|rate| *rate > 0.0) else { return Vec::new() };
    let noise = report["harm"]["goodput_share"].as_f64().unwrap();
    let wrong = |station: &Value| {
        let name = station["station"].as_str().filter(|name| SHARED.contains(name))?;
        let share = station["utilization"].as_f64().filter(|share| *share > USED_MIN)?;
        let (low, high) = (station["ceiling_rps"]["low"].as_f64()? * share, station["ceiling_rps"]["high"].as_f64()? * share);
        let is_wrong = low > (1.0 + noise) * rate || high < (1.0 - noise) * rate;
        is_wrong.then(|| format!("{name} of {}: {share} x ceiling = {low}/s to {high}/s, and {rate}/s were answered", station["tier"]))
    };
    report["path"].as_array().unwrap().iter().filter_map(wrong).collect()
}

/// "485 of 14,565 requests failed" beside another share of failures.
fn wrong_failures(report: &Value) -> Vec<String> {
    let load = &report["load"];
    let Some((good, all)) = load["goodput_rps"].as_f64().zip(load["throughput_rps"].as_f64().filter(|all| *all > 0.0)) else {
        return Vec::new();
    };
    let digits = |text: &str| text.split(' ').next().and_then(|number| number.replace(',', "").parse::<f64>().ok());
    let wrong = |text: &str| {
        let (failed, rest) = text.split_once(" of ")?;
        let (failed, of) = (digits(failed)?, digits(rest).filter(|_| rest.contains(" requests failed, and"))?);
        ((failed / of - (1.0 - good / all)).abs() > 1e-4).then(|| format!("{text}, and {good}/s of {all}/s were answered"))
    };
    let evidence =
        report["findings"].as_array().into_iter().flatten().flat_map(|finding| finding["evidence"].as_array().into_iter().flatten());
    evidence.filter_map(|proof| wrong(proof["text"].as_str()?)).collect()
}

/// A number that a fix should give, as if it were a gain, where it is that of today within noise.
fn wrong_predictions(text: &str, report: &Value) -> Vec<String> {
    let Some(today) = report["load"]["goodput_rps"].as_f64() else { return Vec::new() };
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let least = today * (1.0 + report["harm"]["goodput_share"].as_f64().unwrap());
    let bare = text.match_indices("redicted").filter_map(|(at, words)| {
        let rest = text[at + words.len()..].trim_start_matches([':', ' ']);
        let (number, rest) = rest.split_at(rest.find("/s").filter(|at| *at < 12)?);
        let rate: f64 = number.replace(',', "").parse().ok()?;
        // Numbers have three digits.
        let is_told = rest.split(['.', ';']).next().unwrap_or_default().contains("fewer than now");
        (!is_told && rate < least * (1.0 - ROUNDING)).then(|| format!("predicted: {number}/s, and today it is {today}/s"))
    });
    bare.collect()
}

/// What is wrong with a report as JSON.
fn wrong_in_json(report: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    each_number("", report, &mut |path, value| {
        let name = path.rsplit('.').next().unwrap_or_default();
        // The harm rule and noise are differences; what could be gained is no share.
        if (name == "share" || name == "utilization" || name.ends_with("_share")) && !(0.0..=1.0).contains(&value) {
            wrong.push(format!("{path} = {value}"));
        }
        // A log counts whole milliseconds, so that most of its times may be zero, but not the longest.
        if path.ends_with(".latency_us.max") && value == 0.0 {
            wrong.push(format!("{path} is zero"));
        }
    });
    let list = |name: &str| report[name].as_array().cloned().unwrap_or_default();
    for remedy in
        ["findings", "improvements"].iter().flat_map(|name| list(name)).flat_map(|found| found["remedies"].as_array().cloned().unwrap())
    {
        let text = remedy["text"].as_str().unwrap();
        wrong.extend(wrong_sums(text));
        wrong.extend(wrong_roundings(text));
        if SETS_A_NUMBER.contains(&remedy["id"].as_str().unwrap()) && !has_a_sum(text) {
            wrong.push(format!("no sum: {text}"));
        }
    }
    let causes = list("findings").iter().filter(|finding| finding["role"] == "cause").count();
    let verdict = report["verdict"].as_str().unwrap();
    if (verdict == "choked") != (causes > 0) && verdict != "client-limited" {
        wrong.push(format!("{verdict} with {causes} causes"));
    }
    wrong.extend(wrong_ceilings(report));
    wrong.extend(wrong_failures(report));
    // The servers gave what a station is said to have time for, at least. Ports that stay taken for a minute run out later than a short load ends.
    let goodput = report["load"]["goodput_rps"].as_f64().unwrap_or(0.0);
    for station in list("path").into_iter().filter(|station| station["station"] != "ephemeral-ports") {
        let high = station["ceiling_rps"]["high"].as_f64();
        if high.is_some_and(|high| high < 0.9 * goodput) {
            wrong.push(format!("{} of {}: at most {high:?}/s, and {goodput}/s were answered", station["station"], station["tier"]));
        }
    }
    wrong
}

#[test]
fn every_figure_of_every_recording_is_possible() {
    let chokepoint = Chokepoint::new();
    let mut wrong: Vec<String> = Vec::new();
    let markdown = chokepoint.path("figures.md");
    let html = chokepoint.path("figures.html");
    let all = all_recordings();
    assert!(all.len() > 50, "{}", all.len());
    for file in all {
        let path = repository(&file).to_str().unwrap().to_owned();
        let mut add = |kind: &str, found: Vec<String>| wrong.extend(found.into_iter().map(|one| format!("{file} ({kind}): {one}")));
        let ran = chokepoint.run(&["diagnose", "--replay", &path, "--json", "--markdown", &markdown, "--html", &html]);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{file}: {error}: {}", ran.stderr));
        add("json", wrong_in_json(&report));
        let page = std::fs::read_to_string(&html).unwrap();
        let texts = [
            ("markdown", std::fs::read_to_string(&markdown).unwrap()),
            ("html", page.split("<noscript>").nth(1).unwrap_or_default().to_owned()),
            ("text", chokepoint.run(&["diagnose", "--replay", &path]).stdout),
            ("verbose", chokepoint.run(&["diagnose", "--verbose", "--replay", &path]).stdout),
        ];
        for (kind, text) in texts {
            add(kind, wrong_in_text(&text));
            add(kind, wrong_predictions(&text, &report));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Eight clients beside the twenty connections of the load: the pool serves them all, five at a time for 20 ms each.
#[test]
fn other_clients_are_told_first_and_limits_are_those_of_all() {
    let path = repository("tests/data/worker-pool/clients-close.rec");
    let ran = Chokepoint::new().run(&["diagnose", "--replay", path.to_str().unwrap(), "--json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(report["warnings"][0].as_str().unwrap().starts_with("Other clients had "), "{}", report["warnings"]);
    let pool = report["path"].as_array().unwrap().iter().find(|station| station["station"] == "worker-pool").unwrap();
    let ceiling = pool["ceiling_rps"]["value"].as_f64().unwrap();
    assert!((220.0..=290.0).contains(&ceiling), "{pool}");
}

#[test]
fn a_share_and_a_ceiling_that_are_of_different_requests_are_found() {
    let report = |station: &str, share: f64, rate: f64| {
        let ceiling = json!({ "value": 4260.0, "low": 3375.0, "high": 5170.0 });
        json!({
            "harm": { "goodput_share": 0.1 },
            "load": { "goodput_rps": rate },
            "path": [{ "station": station, "tier": "nginx", "utilization": share, "ceiling_rps": ceiling }],
        })
    };
    assert_eq!(wrong_ceilings(&report("cpu", 0.98, 2480.0)).len(), 1);
    assert_eq!(wrong_ceilings(&report("worker-pool", 0.3, 2480.0)).len(), 1);
    assert!(wrong_ceilings(&report("cpu", 0.49, 2480.0)).is_empty());
    assert!(wrong_ceilings(&report("cpu", 0.98, 4100.0)).is_empty());
}

#[test]
fn failures_of_another_base_and_bare_predictions_are_found() {
    let report = |text: &str| {
        let load = json!({ "goodput_rps": 980.0, "throughput_rps": 1000.0 });
        json!({ "harm": { "goodput_share": 0.1 }, "load": load, "findings": [{ "evidence": [{ "text": text }] }] })
    };
    assert_eq!(wrong_failures(&report("485 of 14,565 requests failed, and the p99 response time was 2 ms.")).len(), 1);
    assert!(wrong_failures(&report("200 of 10,000 requests failed, and the p99 response time was 2 ms.")).is_empty());
    let predicted = |text: &str| wrong_predictions(text, &report("")).len();
    assert_eq!(predicted("more workers. Predicted: 990/s.") + predicted("predicted: 1,000/s (900 to 1,100), then cpu limits"), 2);
    assert_eq!(predicted("Predicted: 1,200/s. Predicted: 800/s, fewer than now; Predicted: as many as now"), 0);
}

#[test]
fn the_checks_of_figures_find_what_they_look_for() {
    assert_eq!(wrong_in_text("requests 180 % accept queue\n-100 % unaccounted\np99 0 \u{b5}s").len(), 3);
    assert!(wrong_in_text("99.9 % of 100 %, 0 % failed, p99 10 ms").is_empty());
    assert!(wrong_sums("7 workers: 20/s x 250 ms = 5 at once, plus reserve: 7.").is_empty());
    assert!(wrong_roundings("x 1.25 in reserve = 1,250, rounded up to a power of two: 2,048.").is_empty());
    assert_eq!(wrong_roundings("x 1.25 in reserve = 1,250, rounded up to a power of two: 4,096.").len(), 1);
    assert_eq!(wrong_sums("20/s x 250 ms = 5 at once, plus reserve: 147.").len(), 1);
    assert_eq!(wrong_sums("20/s x 250 ms = 50 at once, plus reserve: 57.").len(), 1);
}
