//! The report of a diagnosis in GitHub-flavoured Markdown without HTML, for a ticket or a pull request. This module draws and never judges.

mod bench;
mod escape;
mod experiment;
mod page;
mod runs;
mod size;

#[cfg(test)]
mod tests;

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::report::{Diagnosis, Finding, Remedy};

use crate::report::view::path::{Mark, StationRow, tiers};
use crate::report::view::{self, Ink, Phrases};
pub(crate) use bench::render as bench;
use escape::{cell_code, code, fence, prose};
pub(crate) use experiment::render as experiment;
use page::{MarkdownPage, spans};
pub(crate) use runs::render as run;
pub(crate) use size::render as size;

/// The report, ending in a newline; the same bytes for the same diagnosis.
pub(crate) fn render(diagnosis: &Diagnosis, words: &Catalogue) -> String {
    let mut page = MarkdownPage { phrases: Phrases(words), out: String::new() };
    page.head(diagnosis);
    page.path(diagnosis);
    page.ledger(diagnosis);
    page.chain(diagnosis);
    page.findings(diagnosis);
    page.bisect(diagnosis);
    page.rounds(diagnosis);
    page.improvements(diagnosis);
    page.profile(diagnosis);
    page.wire(diagnosis);
    page.warnings(diagnosis);
    page.gaps(diagnosis);
    page.out
}

impl MarkdownPage<'_> {
    fn head(&mut self, diagnosis: &Diagnosis) {
        let verdict = view::Shown::of_first(diagnosis).word(self.phrases);
        self.block(&format!("# {}: {}", prose(&verdict), code(&diagnosis.target.url)));
        self.block(&format!("**{}**", prose(&diagnosis.summary)));
        if let Some([done, summary]) = view::rounds::result(diagnosis, self.phrases) {
            self.block(&format!("{} **{}**", prose(&done.text), prose(&summary.text)));
        }
        let run = view::run::facts(diagnosis, self.phrases);
        if !run.is_empty() {
            self.block(&prose(&run.join(", ")));
        }
        let facts: Vec<String> = view::load::lines(diagnosis, self.phrases).iter().map(|line| self.fact(line)).collect();
        self.list(facts);
    }

    fn path(&mut self, diagnosis: &Diagnosis) {
        let tiers = tiers(diagnosis, self.phrases);
        if tiers.is_empty() {
            return;
        }
        self.heading("report-path");
        self.table_head(&["html-column-tier", "html-column-station", "html-column-use", "html-column-notes"], "|---|---|--:|---|");
        for tier in &tiers {
            let facts = if tier.facts.is_empty() { String::new() } else { format!(" ({})", prose(&tier.facts.join(", "))) };
            let name = format!("**{}**{facts}", prose(tier.name));
            for (place, row) in tier.rows.iter().enumerate() {
                let cells = self.station(row);
                let tier = if place == 0 { name.clone() } else { String::new() };
                self.row(&[&[tier], &cells[..]].concat());
            }
        }
    }

    fn station(&self, row: &StationRow<'_>) -> [String; 3] {
        let usage = row.share.map(|share| self.phrases.percent(share)).unwrap_or_default();
        let notes = spans(&row.notes, ", ");
        let badge = row.badge.as_ref().map(|badge| prose(&badge.text));
        let label = cell_code(&row.label);
        match (row.mark, badge) {
            (Mark::Choke, Some(badge)) => [format!("**▶ {label} ◀**"), format!("**{usage}**"), format!("**{badge}**: {notes}")],
            (_, Some(badge)) => {
                [label, usage, [badge, notes].iter().filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>().join(", ")]
            }
            (_, None) => [label, usage, notes],
        }
    }

    /// Where requests stood.
    fn ledger(&mut self, diagnosis: &Diagnosis) {
        let Some(view) = view::ledger::view(diagnosis, self.phrases) else { return };
        self.heading("report-ledger");
        self.block(&prose(&view.head));
        self.table_head(&["report-column-place", "report-column-mean", "report-column-share"], "|---|--:|--:|");
        for row in &view.rows {
            let strong = if row.ink == Ink::Strong { "**" } else { "" };
            let cells = [prose(&row.label), view::ledger::tenths(row.mean), self.phrases.percent(row.share.max(0.0))];
            self.row(&cells.map(|cell| format!("{strong}{cell}{strong}")));
        }
        self.list(view.losses.iter().map(|loss| prose(loss)));
    }

    /// The chains from cause to symptom, as nested lists.
    fn chain(&mut self, diagnosis: &Diagnosis) {
        let lines = view::chain::lines(diagnosis, self.phrases);
        if lines.is_empty() {
            return;
        }
        self.heading("report-chain");
        for (place, line) in lines.iter().enumerate() {
            let number = line.number.map(|number| format!("**{number}** ")).unwrap_or_default();
            let why = line.why.as_ref().map(|why| format!(" {}", prose(why))).unwrap_or_default();
            let item = format!("{}- {}{} {}{why}", "  ".repeat(line.level), number, code(&line.id), prose(&line.note));
            if place == 0 { self.block(&item) } else { self.line(&item) }
        }
    }

    fn findings(&mut self, diagnosis: &Diagnosis) {
        if diagnosis.findings.is_empty() {
            return;
        }
        self.heading("report-findings");
        if let Some(harm) = &diagnosis.harm {
            self.block(&prose(&harm.text));
        }
        for (place, finding) in diagnosis.findings.iter().enumerate() {
            let standing = prose(&view::findings::standing(diagnosis, finding, self.phrases));
            self.finding(diagnosis, &format!("### {}. {} ({standing})", place + 1, code(&finding.id)), finding);
        }
        if view::findings::offers_fix(diagnosis) {
            let text = self.phrases.word("report-offer-fix");
            // The catalogue writes commands between backticks, as Markdown does: the sentence is not escaped.
            self.block(&text);
        }
    }

    fn profile(&mut self, diagnosis: &Diagnosis) {
        let lines = view::profile::lines(diagnosis, self.phrases);
        if !lines.is_empty() {
            self.heading("report-profile");
            self.list(lines.iter().map(|line| prose(line)));
        }
    }

    fn wire(&mut self, diagnosis: &Diagnosis) {
        let lines = view::wire::lines(diagnosis, self.phrases);
        if !lines.is_empty() {
            self.heading("report-wire");
            self.list(lines.iter().map(|line| prose(line)));
        }
    }

    /// What could be faster although nothing is choked.
    fn improvements(&mut self, diagnosis: &Diagnosis) {
        if diagnosis.improvements.is_empty() {
            return;
        }
        self.heading("report-improvements");
        for finding in &diagnosis.improvements {
            let standing = prose(&view::findings::standing_of_improvement(finding, self.phrases));
            self.finding(diagnosis, &format!("### {} ({standing})", code(&finding.id)), finding);
        }
        let text = prose(&self.phrases.word("report-improvements-note"));
        self.block(&text);
    }

    fn finding(&mut self, diagnosis: &Diagnosis, head: &str, finding: &Finding) {
        self.block(head);
        if let Some(title) = view::findings::title(diagnosis, finding) {
            self.block(&format!("**{}**", prose(&title)));
        }
        if !finding.explanation.is_empty() {
            self.block(&prose(&finding.explanation));
        }
        if !finding.evidence.is_empty() {
            let title = prose(&self.phrases.word("report-evidence"));
            self.block(&format!("**{title}**"));
        }
        self.list(finding.evidence.iter().map(|evidence| {
            let source = if evidence.source.is_empty() { String::new() } else { format!(" ({})", code(&evidence.source)) };
            format!("{}{source}", prose(&evidence.text))
        }));
        for (choice, remedy) in finding.remedies.iter().enumerate() {
            self.remedy(diagnosis, (choice, finding.remedies.len()), remedy);
        }
    }

    fn remedy(&mut self, diagnosis: &Diagnosis, (choice, count): (usize, usize), remedy: &Remedy) {
        let title = prose(&view::findings::fix_title(choice, count, self.phrases));
        self.block(&format!("#### {title}: {}", code(&remedy.id)));
        self.block(&prose(&remedy.text));
        for (id, lines) in view::findings::commands(remedy) {
            let label = prose(&self.phrases.word(id));
            self.block(&format!("{label}:\n\n{}", fence(&lines, "sh")));
        }
        let terms = view::findings::terms(diagnosis, remedy, self.phrases).into_iter();
        let terms: Vec<String> = terms.map(|(id, text)| format!("{}: {}", prose(&self.phrases.word(id)), prose(&text))).collect();
        self.list(terms);
    }

    /// The measurements of each tier alone.
    fn bisect(&mut self, diagnosis: &Diagnosis) {
        let Some((summary, rows)) = view::bisect::rows(diagnosis, self.phrases) else { return };
        self.heading("report-bisect");
        self.block(&prose(summary));
        let titles = ["html-column-tier", "report-column-part", "html-column-notes", "report-column-verdict"];
        self.table_head(&titles, "|---|---|---|---|");
        for row in rows {
            let (open, close) = if row.explains { ("**▶ ", " ◀**") } else { ("", "") };
            let url = if row.url.is_empty() { String::new() } else { format!(" {}", cell_code(row.url)) };
            let how = format!("{}{url}", prose(&row.how));
            self.row(&[format!("{open}{}{close}", prose(row.tier)), how, spans(&row.notes, ", "), prose(&row.summary.text)]);
        }
    }

    fn rounds(&mut self, diagnosis: &Diagnosis) {
        let rows = view::rounds::rows(diagnosis, self.phrases);
        if rows.is_empty() {
            return;
        }
        self.heading("report-rounds");
        let titles = view::rounds::COLUMNS.map(|id| prose(&self.phrases.word(id)));
        self.block(&format!("| {} |", titles.join(" | ")));
        self.line("|--:|--:|---|---|---|--:|--:|--:|---|");
        for row in rows {
            let fate = row.fate.map(|fate| format!("**{}**", prose(&fate.text))).unwrap_or_default();
            let colon = if fate.is_empty() || row.why.is_empty() { "" } else { ": " };
            let after = format!("**{}**", prose(&row.after));
            self.row(&[
                row.n,
                prose(&row.before),
                cell_code(&row.found),
                if row.round.is_some() { cell_code(&row.changed) } else { prose(&row.changed) },
                prose(&row.predicted),
                if row.after.is_empty() { String::new() } else { after },
                prose(&row.p99),
                prose(&row.failed),
                format!("{fate}{colon}{}", prose(&row.why)),
            ]);
        }
    }

    fn warnings(&mut self, diagnosis: &Diagnosis) {
        if diagnosis.warnings.is_empty() {
            return;
        }
        self.heading("report-warnings");
        self.list(diagnosis.warnings.iter().map(|warning| prose(warning)));
    }

    fn gaps(&mut self, diagnosis: &Diagnosis) {
        let gaps = view::readings::gaps(diagnosis);
        if gaps.is_empty() {
            return;
        }
        self.heading("report-unread");
        let phrases = self.phrases;
        self.list(gaps.iter().map(|gap| {
            let failed = if gap.failed { format!("**{}**: ", prose(&phrases.word("report-failed"))) } else { String::new() };
            let needs = gap.needs(phrases).map(|needs| format!("; **{}**", prose(&needs))).unwrap_or_default();
            format!("{}: {failed}{}{needs}", prose(&gap.names(phrases)), prose(gap.why))
        }));
    }
}
