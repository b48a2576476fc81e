//! `chokepoint runs rm`: removes runs, after a question on the terminal.

use std::io::IsTerminal;
use std::time::{Duration, SystemTime};

use anyhow::{Result, bail};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_runs::{Filter, Store};
use serde_json::json;

use super::{SCHEMA, numbered, print_json};
use crate::Usage;
use crate::args::Remove;
use crate::run::keeping::rfc3339;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::{output, prompt};

/// Removes the runs that the command line names.
pub(super) fn run(args: &Remove, store: Option<Store>, words: &Catalogue, interrupt: &Interrupt) -> Result<()> {
    let before = args.older_than.as_deref().map(before).transpose()?;
    let ids = match &store {
        Some(store) if args.runs.is_empty() => {
            let filter = Filter { before, ..Filter::default() };
            store.list(&filter)?.into_iter().map(|run| run.id).collect()
        }
        Some(store) => {
            let mut ids = args.runs.iter().map(|name| Ok(store.get(numbered(store, name, words)?)?.id)).collect::<Result<Vec<i64>>>()?;
            ids.sort_unstable();
            ids.dedup();
            ids
        }
        None => match args.runs.first() {
            Some(name) => bail!(words.text(&Message::new("runs-no-such").with("run", name.as_str()))),
            None => Vec::new(),
        },
    };
    if !ids.is_empty() && !args.yes {
        ask(ids.len(), words, interrupt)?;
    }
    if let Some(mut store) = store {
        store.remove(&ids)?;
    }
    if args.json {
        return print_json(&json!({ "schema": SCHEMA, "removed": ids }));
    }
    output::print(&format!("{}\n", words.text(&Message::new("runs-removed").with("n", ids.len() as u64))))
}

/// An error unless the user agrees.
fn ask(count: usize, words: &Catalogue, interrupt: &Interrupt) -> Result<()> {
    if !std::io::stdin().is_terminal() {
        bail!(Usage(words.text(&Message::new("runs-no-terminal"))));
    }
    if !prompt::ask(&words.text(&Message::new("runs-remove").with("n", count as u64)), interrupt)? {
        bail!(words.text(&Message::new("runs-not-asked")));
    }
    Ok(())
}

/// The time that was this long ago, RFC 3339: "30d", "12h".
fn before(text: &str) -> Result<String> {
    const DAYS_MAX: u64 = 36_500;
    let wrong = || Usage(format!("\"{text}\" is not an age: write 30d or 12h"));
    let unit_s = match text.chars().last() {
        Some('d') => 86_400,
        Some('h') => 3_600,
        _ => bail!(wrong()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    let age_s = number.checked_mul(unit_s).filter(|age_s| *age_s <= DAYS_MAX * 86_400).ok_or_else(wrong)?;
    Ok(rfc3339(SystemTime::now().checked_sub(Duration::from_secs(age_s)).unwrap_or(SystemTime::UNIX_EPOCH)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_in_days_or_hours() {
        for text in ["0d", "30d", "12h"] {
            assert_eq!(before(text).expect(text).len(), "2026-01-01T00:00:00Z".len());
        }
        assert!(before("48h").expect("an age") < before("1d").expect("an age"));
        for text in ["", "d", "30", "-1d", "1.5d", "1w", "99999999999999999999d", "40000d", "1d ", "é"] {
            assert!(before(text).is_err_and(|error| error.is::<Usage>()), "{text:?}");
        }
    }
}
