//! The page against stored ones (`CHOKEPOINT_BLESS=1 cargo test` rewrites them), its structure, and its escaping.

use std::path::Path;

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::report::{Diagnosis, Step};

use super::render;
use crate::report::samples::{self, all};
use crate::report::view::steers;

fn page(diagnosis: &Diagnosis) -> String {
    render(diagnosis, &Catalogue::english())
}

#[test]
fn pages_equal_the_stored_ones() {
    for (name, diagnosis) in all() {
        let text = page(&diagnosis);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/markdown/{name}.md"));
        if std::env::var_os("CHOKEPOINT_BLESS").is_some() {
            std::fs::write(&path, &text).expect("the page can be written");
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == text, "{} differs; CHOKEPOINT_BLESS=1 writes it anew. It is now:\n{text}", path.display());
    }
}

#[test]
fn every_message_is_in_the_catalogue() {
    for (name, diagnosis) in all() {
        let text = page(&diagnosis).replace('\\', "");
        assert!(!["[report-", "[html-", "[round-"].iter().any(|gap| text.contains(gap)), "{name}:\n{text}");
    }
}

#[test]
fn blocks_are_separated_and_no_line_ends_in_a_space() {
    for (name, diagnosis) in all() {
        let text = page(&diagnosis);
        assert!(!text.contains("\n\n\n") && !text.starts_with('\n') && text.ends_with('\n') && !text.ends_with("\n\n"), "{name}:\n{text}");
        assert!(text.lines().all(|line| line == line.trim_end()), "{name}:\n{text}");
    }
}

/// Every row of a table has as many cells as its head.
fn check_tables(name: &str, text: &str) {
    let mut columns = 0;
    for line in text.lines() {
        let bars = line.replace("\\\\", "").replace("\\|", "").matches('|').count();
        match (line.starts_with('|'), columns) {
            (false, _) => columns = 0,
            (true, 0) => columns = bars,
            (true, _) => assert_eq!(bars, columns, "{name}: {line}"),
        }
    }
}

#[test]
fn tables_keep_their_columns_and_fences_are_closed() {
    let mut hostile = samples::fixed();
    hostile.rounds[0].remedy = "a|b`c".into();
    hostile.rounds[0].why = "one\n| two | ``` three".into();
    hostile.path[0].tier = "a|\n# b".into();
    hostile.path[0].station = "`|`".into();
    hostile.findings[0].remedies[0].runtime.push(Step::of_command("echo '```'\n# within"));
    hostile.warnings = vec!["# not a heading\n- not a list <script>".into()];
    for (name, diagnosis) in all().into_iter().chain([("hostile", hostile)]) {
        let text = page(&diagnosis);
        check_tables(name, &text);
        assert_eq!(text.lines().filter(|line| line.starts_with("```")).count() % 2, 0, "{name}:\n{text}");
        assert!(!text.contains(|character: char| character != '\n' && steers(character)), "{name}");
        let headings = text.lines().filter(|line| line.starts_with('#')).count();
        assert!(headings >= 1 && !text.contains("\n# not") && !text.contains("\n# b"), "{name}:\n{text}");
        assert!(!text.replace("\\<", "").contains("<script"), "{name}:\n{text}");
    }
}

#[test]
fn commands_are_fenced_verbatim() {
    let diagnosis = samples::awkward();
    let text = page(&diagnosis);
    for remedy in diagnosis.findings.iter().flat_map(|finding| &finding.remedies) {
        for (_, lines) in crate::report::view::findings::commands(remedy) {
            assert!(text.contains(&format!("```sh\n{}\n```", lines.join("\n"))), "{text}");
        }
    }
}
