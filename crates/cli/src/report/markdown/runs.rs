//! A kept run in GitHub-flavoured Markdown, for a ticket. This module draws and never judges.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_runs::Run;

use super::escape::prose;
use super::experiment::table;
use super::page::MarkdownPage;
use crate::report::view::Phrases;
use crate::report::view::experiment::Table;
use crate::report::view::runs as view;

/// The run, ending in a newline.
pub(crate) fn render(run: &Run, words: &Catalogue) -> String {
    let phrases = Phrases(words);
    let mut page = MarkdownPage { phrases, out: String::new() };
    let title = Message::new("runs-title").with("id", run.id.to_string()).with("kind", run.run.kind.as_str());
    page.block(&format!("# {}", prose(&phrases.say(&title.with("target", run.run.target.as_str())))));
    if !run.run.headline.is_empty() {
        page.block(&format!("**{}**", prose(&run.run.headline)));
    }
    page.list(view::facts(phrases, run).iter().map(|fact| prose(fact)));
    let pairs = |values: &std::collections::BTreeMap<String, String>| -> Vec<(String, String)> {
        values.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let mut groups = vec![(phrases.word("runs-figures"), view::figures(phrases, run)), (phrases.word("runs-load"), pairs(&run.run.load))];
    groups.extend(run.run.surroundings.iter().map(|(group, values)| (group.clone(), pairs(values))));
    for (group, values) in groups.into_iter().filter(|(_, values)| !values.is_empty()) {
        let head = vec![group, String::new()];
        let rows = std::iter::once(head).chain(values.into_iter().map(|(name, value)| vec![name, value])).collect();
        table(&mut page, &Table { title: String::new(), rows });
    }
    page.out
}
