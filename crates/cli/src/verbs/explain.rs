//! `chokepoint explain`: the page of a station or a finding.

use anyhow::{Result, bail};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::explain::{ids, near, page};

use crate::args::Explain;
use crate::terminal::output;

/// Prints a page, or all ids with their titles.
pub(crate) fn run(args: &Explain, words: &Catalogue) -> Result<()> {
    let Some(id) = &args.id else { return list(args.json, words) };
    let Some(page) = page(id, words) else {
        let near = near(id);
        let hint = if near.is_empty() { "`chokepoint explain` lists all".to_owned() } else { format!("did you mean {}?", near.join(", ")) };
        bail!("there is no station or finding \"{id}\": {hint}");
    };
    if args.json {
        let sections: serde_json::Map<String, serde_json::Value> =
            page.sections.into_iter().map(|(heading, text)| (heading, text.into())).collect();
        let json = serde_json::json!({ "schema": "chokepoint/page/1", "id": page.id, "title": page.title, "sections": sections });
        return output::print_json(&format!("{json:#}\n"));
    }
    output::print_painted(&crate::report::text::page_text(&page, &output::style(), words))
}

fn list(json: bool, words: &Catalogue) -> Result<()> {
    let pages = ids().into_iter().filter_map(|id| page(id, words));
    if json {
        let all: Vec<_> = pages.map(|page| serde_json::json!({ "id": page.id, "title": page.title })).collect();
        return output::print_json(&format!("{:#}\n", serde_json::json!({ "schema": "chokepoint/pages/1", "pages": all })));
    }
    let pages: Vec<_> = pages.collect();
    let width = pages.iter().map(|page| page.id.len()).max().unwrap_or(0);
    let lines: String = pages.iter().map(|page| format!("{:width$}  {}\n", page.id, page.title)).collect();
    output::print(&lines)
}
