//! Pages against stored ones (`CHOKEPOINT_BLESS=1 cargo test` rewrites them), their files, and texts from outside.

mod experiment;

use std::path::Path;
use std::process::Command;

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::report::Diagnosis;
use serde_json::Value;

use super::{ReportPage, diagnosis, file};
use crate::report::samples::{self, all};
use crate::report::view::steers;

fn page(diagnosis: &Diagnosis) -> ReportPage {
    diagnosis::page(diagnosis, &Catalogue::english())
}

/// The file of a diagnosis.
fn written(diagnosis: &Diagnosis) -> String {
    let document = serde_json::to_string(diagnosis).expect("JSON");
    file::render(&page(diagnosis), Some(&document), &crate::report::markdown::render(diagnosis, &Catalogue::english()))
}

/// Compares a text with the stored one in a folder of tests/data.
fn stored_in(folder: &str, name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder).join(name);
    if std::env::var_os("CHOKEPOINT_BLESS").is_some() {
        std::fs::write(&path, text).expect("it can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "{} differs; CHOKEPOINT_BLESS=1 writes it anew. It is now:\n{text}", path.display());
}

#[test]
fn pages_equal_the_stored_ones() {
    for (name, diagnosis) in all() {
        stored_in("page", &format!("{name}.json"), &format!("{:#}\n", page(&diagnosis).json()));
    }
    let size = serde_json::from_str(include_str!("../../../tests/data/size/php-fpm.json")).expect("a result of size");
    stored_in("page", "size.json", &format!("{:#}\n", super::size::page(&size, &Catalogue::english()).json()));
}

#[test]
fn every_message_is_in_the_catalogue() {
    for (name, diagnosis) in all() {
        let text = page(&diagnosis).json().to_string();
        assert!(!["[report-", "[html-", "[round-", "[size-"].iter().any(|gap| text.contains(gap)), "{name}");
    }
}

/// What stands between two texts.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let (_, rest) = text.split_once(begin).unwrap_or_else(|| panic!("{begin}"));
    rest.split_once(end).expect("it ends").0
}

#[test]
fn a_file_is_the_same_each_time_and_holds_the_page_and_the_whole_report() {
    for (name, diagnosis) in all().into_iter().chain([("hostile", hostile("</script>\u{202e}<!--"))]) {
        let text = written(&diagnosis);
        assert!(text == written(&diagnosis), "{name}");
        assert!(text.starts_with("<!doctype html>\n") && text.ends_with("</html>\n"), "{name}: in quirks mode it looks different");
        let read: Value = serde_json::from_str(between(&text, "id=\"report\">", "</script>")).expect("a page");
        assert_eq!(read, page(&diagnosis).json(), "{name}");
        let read: Diagnosis = serde_json::from_str(between(&text, "id=\"document\">", "</script>")).expect("a diagnosis");
        assert_eq!(read, diagnosis, "{name}");
        let plain = between(&text, "<div id=\"page\"><pre>", "</pre></div>");
        assert!(plain.len() > 100, "{name}: it can be read without scripts");
    }
}

/// A file loads nothing, and its policy allows only the script and the style that are in it: with a wrong hash it would show only its text.
#[test]
fn the_policy_allows_only_what_is_in_the_file() {
    let text = written(&samples::choked());
    let policy = between(&text, "Content-Security-Policy\" content=\"", "\">");
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-") && !policy.contains("unsafe"), "{policy}");
    for (begin, end) in [("<style>", "</style>"), ("<script type=\"module\">", "</script>")] {
        let Some(hash) = sha256(between(&text, begin, end)) else { return println!("skipped: sha256sum (coreutils) is not installed") };
        assert!(policy.contains(&format!("'sha256-{hash}'")), "{begin}: make page");
    }
    assert_eq!((text.matches("<script").count(), text.matches("<style").count()), (3, 1));
    for outside in ["src=\"", "href=\"", "@import", "url("] {
        assert!(
            !between(&text, "<style>", "</style>").contains(outside) && !text.split("<script").next().unwrap_or_default().contains(outside),
            "{outside}"
        );
    }
}

/// The hash of a text in base64 (RFC 4648, section 4), as a policy has it.
fn sha256(text: &str) -> Option<String> {
    let view = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(view.path(), text).expect("it can be written");
    let ran = Command::new("sha256sum").arg(view.path()).output().ok()?;
    let hex = String::from_utf8_lossy(&ran.stdout);
    let hex = hex.split_whitespace().next()?;
    let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal")).collect();
    let digits: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['+', '/']).collect();
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let number = three.iter().chain([0, 0].iter()).take(3).fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
        for place in 0..4 {
            out.push(if place <= three.len() { digits[number >> (18 - 6 * place) & 63] } else { '=' });
        }
    }
    Some(out)
}

/// Texts that would be more than text where they are not escaped.
const HOSTILE: [&str; 9] = [
    "<script>alert(1)</script>",
    "</script></style></title></svg><img src=x onerror=alert(1)>",
    "\" onload=\"alert(1)",
    "' onload='alert(1)",
    "<!--",
    "]]>&lt;&#x3c;&",
    "{{ 7*7 }}{% raw %}",
    "\u{202e}\u{2066}\u{200f}\u{1b}[2J\u{0}\u{7f}\u{85}\u{2028}\u{feff}",
    "line\nbreak\r\n\ttab",
];

/// A diagnosis with this text appended to every string.
fn hostile(text: &str) -> Diagnosis {
    fn replace(value: &mut Value, path: &str, text: &str) {
        match value {
            Value::String(old) if !KEPT.iter().any(|kept| path.ends_with(kept)) => *old = format!("{old}{text}"),
            Value::Array(all) => all.iter_mut().for_each(|one| replace(one, path, text)),
            Value::Object(all) => all.iter_mut().for_each(|(key, one)| replace(one, &format!("{path}/{key}"), text)),
            _ => {}
        }
    }
    /// Fields with one of a few words or an address: they hold no text from outside.
    const KEPT: &[&str] = &[
        "/verdict",
        "/limited_by",
        "/mode",
        "/addresses",
        "/path/kind",
        "/path/state",
        "/role",
        "/confidence",
        "/activation",
        "/measure",
        "/change/kind",
        "/rounds/kind",
        "/kept",
        "/status",
    ];
    let mut diagnosis = samples::awkward();
    diagnosis.rounds = samples::fixed().rounds;
    diagnosis.warnings = vec!["warning".into()];
    diagnosis.readings = samples::unknown().readings;
    let mut value = serde_json::to_value(&diagnosis).expect("JSON");
    replace(&mut value, "", text);
    serde_json::from_value(value).expect("a diagnosis still")
}

#[test]
fn text_from_outside_becomes_no_markup_and_no_control_character() {
    let outer = |text: &str| {
        let head = text.split("<style>").next().unwrap_or_default().to_owned();
        let (_, body) = text.split_once("</style>").expect("a style");
        head + body.split("<script type=\"module\">").next().unwrap_or_default()
    };
    let calm = outer(&written(&hostile("calm"))).matches('<').count();
    for text in HOSTILE {
        let diagnosis = hostile(text);
        let found = outer(&written(&diagnosis));
        assert!(!found.contains(|character: char| character != '\n' && steers(character)), "{text:?}");
        // The elements do not depend on the text.
        assert_eq!(found.matches('<').count(), calm, "{text:?}");
        // What the script shows as text.
        let shown = page(&diagnosis).json();
        assert!(!strings(&shown).any(|shown| shown.contains(|character: char| character != '\n' && steers(character))), "{text:?}");
    }
}

/// All texts of a document.
fn strings(value: &Value) -> Box<dyn Iterator<Item = &str> + '_> {
    match value {
        Value::String(text) => Box::new(std::iter::once(text.as_str())),
        Value::Array(all) => Box::new(all.iter().flat_map(strings)),
        Value::Object(all) => Box::new(all.values().flat_map(strings)),
        _ => Box::new(std::iter::empty()),
    }
}

#[test]
fn commands_can_be_copied_as_they_are() {
    let diagnosis = samples::awkward();
    let shown = page(&diagnosis).json();
    for remedy in diagnosis.findings.iter().flat_map(|finding| &finding.remedies) {
        for (_, lines) in crate::report::view::findings::commands(remedy) {
            let lines: String = lines.join("\n").chars().filter(|character| !steers(*character) || *character == '\n').collect();
            assert!(strings(&shown).any(|text| text.replace(char::REPLACEMENT_CHARACTER, "") == lines), "{lines:?}");
        }
    }
}

#[test]
fn the_choke_point_is_marked_once() {
    let chokes = |diagnosis: &Diagnosis| page(diagnosis).json().to_string().matches("\"is_choke\":true").count();
    assert_eq!((chokes(&samples::choked()), chokes(&samples::healthy())), (1, 0));
    assert!(page(&samples::choked()).json().to_string().contains("CHOKE POINT"));
}

#[test]
fn any_number_can_be_written() {
    let mut diagnosis = samples::fixed();
    for (place, station) in diagnosis.path.iter_mut().enumerate() {
        let value = Some([f64::NAN, f64::INFINITY, -1.0, f64::MAX][place % 4]);
        (station.limit, station.used, station.waiting, station.refused_per_s, station.utilization) = (value, value, value, value, value);
    }
    for (place, round) in diagnosis.rounds.iter_mut().enumerate() {
        round.load.goodput_rps = [f64::NAN, f64::NEG_INFINITY][place % 2];
    }
    let text = page(&diagnosis).json().to_string();
    assert!(serde_json::from_str::<Value>(&text).is_ok());
}
