//! The page against stored ones (`CHOKEPOINT_BLESS=1 cargo test` rewrites them), its structure, and its escaping.

mod experiment;

use std::path::Path;
use std::process::Command;

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::report::Diagnosis;

use super::{STYLE, STYLE_SHA256, render};
use crate::report::samples::{self, all};
use crate::report::view::steers;

/// Elements that have no end tag (HTML, "Void elements").
const VOID: &[&str] = &["meta"];

fn page(diagnosis: &Diagnosis) -> String {
    render(diagnosis, &Catalogue::english()).expect("a page")
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
        // The style sheet is the same in all pages and has its own review.
        let text = page(&diagnosis).replace(STYLE, "");
        stored_in("html", &format!("{name}.html"), &text);
    }
}

#[test]
fn every_message_is_in_the_catalogue() {
    for (name, diagnosis) in all() {
        let text = page(&diagnosis);
        assert!(!["[report-", "[html-", "[round-"].iter().any(|gap| text.contains(gap)), "{name}");
    }
}

#[test]
fn the_same_diagnosis_gives_the_same_bytes() {
    for (name, diagnosis) in all() {
        assert!(page(&diagnosis) == page(&diagnosis), "{name}");
    }
}

/// The elements of a page with their attributes, in order. Panics if a tag is not closed. It understands only what this page may have: every `<`
/// begins a tag or a declaration.
fn tags(page: &str) -> Vec<(&str, &str)> {
    let mut tags = Vec::new();
    let mut rest = page;
    while let Some((_, after)) = rest.split_once('<') {
        let (tag, behind) = after.split_once('>').expect("a tag ends");
        let name = tag.split([' ', '\n']).next().unwrap_or_default();
        tags.push((name, tag.get(name.len()..).unwrap_or_default()));
        rest = behind;
        if name == "style" || name == "script" {
            let end = format!("</{name}>");
            rest = rest.get(rest.find(&end).expect("it is closed")..).unwrap_or_default();
        }
    }
    tags
}

/// Panics if elements are not nested, or an id is there twice.
fn check_structure(name: &str, text: &str) {
    let (mut open, mut ids, mut references) = (Vec::new(), Vec::new(), Vec::new());
    for (tag, attributes) in tags(text) {
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "{name}");
        } else if tag != "!doctype" && !VOID.contains(&tag) && !attributes.ends_with('/') {
            open.push(tag);
        }
        assert_eq!(attributes.matches('"').count() % 2, 0, "{name}: <{tag}{attributes}>");
        let value = |of: &str| attributes.split_once(&format!(" {of}=\"")).and_then(|(_, rest)| rest.split('"').next());
        ids.extend(value("id"));
        references.extend(value("aria-labelledby").into_iter().flat_map(str::split_whitespace));
    }
    assert!(open.is_empty(), "{name}: {open:?} stay open");
    let mut once = ids.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), ids.len(), "{name}: {ids:?}");
    assert!(references.iter().all(|reference| ids.contains(reference)), "{name}: {references:?}");
}

#[test]
fn elements_are_nested_and_ids_are_unique() {
    for (name, diagnosis) in all() {
        check_structure(name, &page(&diagnosis));
    }
}

#[test]
fn the_page_loads_nothing_and_runs_no_script() {
    for (name, diagnosis) in all() {
        let text = page(&diagnosis);
        assert!(text.starts_with("<!doctype html>\n") && text.ends_with("</html>\n"), "{name}: in quirks mode it looks different");
        assert!(text.contains("default-src 'none'"), "{name}");
        for (tag, attributes) in tags(&text) {
            assert!(!["link", "img", "iframe", "object", "embed", "form", "a", "base", "image", "use"].contains(&tag), "{name}: <{tag}>");
            assert!(tag != "script" || attributes == " type=\"application/json\" id=\"diagnosis\"", "{name}: <{tag}{attributes}>");
            let names = attributes.split('"').step_by(2).map(|text| text.trim().trim_end_matches('='));
            for attribute in names {
                let active = attribute.starts_with("on") || ["src", "href", "style", "srcdoc", "action"].contains(&attribute);
                assert!(!active, "{name}: <{tag}{attributes}>");
            }
        }
    }
    assert!(!STYLE.contains("url(") && !STYLE.contains("@import") && !STYLE.contains('<'));
}

/// The policy allows only this style sheet: with a wrong hash the page would have none.
#[test]
fn the_policy_has_the_hash_of_the_style_sheet() {
    check_hash(STYLE, STYLE_SHA256);
}

/// Panics if this is not the hash of a style sheet.
fn check_hash(style: &str, hash: &str) {
    let view = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(view.path(), style).expect("it can be written");
    let Ok(ran) = Command::new("sha256sum").arg(view.path()).output() else {
        println!("skipped: sha256sum (coreutils) is not installed");
        return;
    };
    let hex = String::from_utf8_lossy(&ran.stdout);
    let hex = hex.split_whitespace().next().expect("a sum");
    let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal")).collect();
    assert_eq!(hash, base64(&bytes), "the style sheet changed: put this into its constant");
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    let digits: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['+', '/']).collect();
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let number = three.iter().chain([0, 0].iter()).take(3).fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
        for place in 0..4 {
            out.push(if place <= three.len() { digits[number >> (18 - 6 * place) & 63] } else { '=' });
        }
    }
    out
}

/// A diagnosis with this text appended to every string.
fn hostile(text: &str) -> Diagnosis {
    fn replace(value: &mut serde_json::Value, path: &str, text: &str) {
        match value {
            serde_json::Value::String(old) if !KEPT.iter().any(|kept| path.ends_with(kept)) => *old = format!("{old}{text}"),
            serde_json::Value::Array(all) => all.iter_mut().for_each(|one| replace(one, path, text)),
            serde_json::Value::Object(all) => all.iter_mut().for_each(|(key, one)| replace(one, &format!("{path}/{key}"), text)),
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
    let calm = tags(&page(&hostile("calm"))).len();
    for text in [
        "<script>alert(1)</script>",
        "</script></style></title><img src=x onerror=alert(1)>",
        "\" onload=\"alert(1)",
        "' onload='alert(1)",
        "<!--",
        "]]>&lt;&#x3c;&",
        "{{ 7*7 }}{% raw %}",
        "\u{202e}\u{2066}\u{200f}\u{1b}[2J\u{0}\u{7f}\u{85}\u{2028}\u{feff}",
        "line\nbreak\r\n\ttab",
    ] {
        let found = page(&hostile(text));
        assert!(!found.contains(|character: char| character != '\n' && steers(character)), "{text:?}");
        // The elements do not depend on the text.
        assert_eq!(tags(&found).len(), calm, "{text:?}");
        assert!(!found.contains("<img") && !found.contains("<script>") && !found.contains("<!--"), "{text:?}");
    }
}

#[test]
fn the_embedded_json_is_the_whole_report() {
    for diagnosis in all().into_iter().map(|(_, diagnosis)| diagnosis).chain([hostile("</script>\u{202e}<!--")]) {
        let text = page(&diagnosis);
        let (_, json) = text.split_once("id=\"diagnosis\">").expect("it is there");
        let (json, _) = json.split_once("</script>").expect("it ends");
        let read: Diagnosis = serde_json::from_str(json).expect("a diagnosis");
        assert_eq!(read, diagnosis);
    }
}

#[test]
fn commands_can_be_copied_as_they_are() {
    let diagnosis = samples::awkward();
    let text = page(&diagnosis);
    let plain = text.replace("&#39;", "'").replace("&quot;", "\"").replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&");
    for remedy in diagnosis.findings.iter().flat_map(|finding| &finding.remedies) {
        for (_, lines) in crate::report::view::findings::commands(remedy) {
            assert!(plain.contains(&format!("<code>{}</code>", lines.join("\n"))), "{lines:?}");
        }
    }
}

#[test]
fn the_choke_point_is_marked_by_shape_colour_and_word() {
    let text = page(&samples::choked());
    for mark in ["class=\"squeeze\"", "wall choke", "CHOKE POINT"] {
        assert!(text.contains(mark), "{mark}");
        assert!(!page(&samples::healthy()).contains(mark), "{mark}");
    }
    assert_eq!(text.matches("class=\"squeeze\"").count(), 1);
    assert_eq!(text.matches("class=\"drop\"").count(), 2, "812/s are two drops");
}

#[test]
fn any_number_can_be_drawn() {
    let mut diagnosis = samples::fixed();
    for (place, station) in diagnosis.path.iter_mut().enumerate() {
        let value = Some([f64::NAN, f64::INFINITY, -1.0, f64::MAX][place % 4]);
        (station.limit, station.used, station.waiting, station.refused_per_s, station.utilization) = (value, value, value, value, value);
    }
    for (place, round) in diagnosis.rounds.iter_mut().enumerate() {
        round.load.goodput_rps = [f64::NAN, f64::NEG_INFINITY][place % 2];
    }
    let text = page(&diagnosis).to_lowercase();
    assert!(!text.contains("\"nan") && !text.contains("\"inf") && !text.contains("\"-inf"), "no attribute holds what is no number");
}
