//! `chokepoint where`: where requests stand now, shown again and again until the user quits.

mod choice;
mod outlet;
mod page;
mod rows;
mod setup;
mod view;

use std::time::{Duration, Instant};

use anyhow::Result;
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::report::Whereabouts;

use crate::args::Where;
use crate::run::ongoing::{Ongoing, Window};
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output;
use outlet::{JsonLines, Next, Outlet, TextBlocks};
use setup::WhereSetup;
use view::View;

/// If nothing listens for this long, the host is surveyed again: there may be new namespaces.
const SURVEY_PERIOD: Duration = Duration::from_secs(10);

/// Runs the verb. True if a ledger was shown, or the user asked to quit.
pub(crate) fn run(args: &Where, words: &Catalogue, interrupt: &Interrupt) -> Result<bool> {
    let setup = WhereSetup::parse(args)?;
    // Before a view is opened: a second Ctrl-C during the survey of the host ends the program at once, and must not leave a changed terminal.
    let mut observation = begin(&setup)?;
    let mut outlet: Box<dyn Outlet + '_> = match (args.json, output::is_watched()) {
        (true, _) => Box::new(JsonLines),
        (false, true) => Box::new(View::open(&setup, words)?),
        (false, false) => Box::new(TextBlocks::new(words)),
    };
    let begin = Instant::now();
    let end = setup.duration.map(|duration| begin + duration);
    let (mut due, mut is_shown, mut has_ledger) = (begin + observation.until_readings(), false, false);
    loop {
        let until = end.map_or(due, |end| due.min(end));
        if outlet.wait(until, interrupt)? == Next::Quit {
            return Ok(true);
        }
        // At the end there is nothing new, unless nothing was shown yet.
        if interrupt.is_set() || (is_shown && Instant::now() < due) {
            return Ok(has_ledger);
        }
        is_shown = true;
        let report = ledger(&mut observation, &setup, words)?;
        has_ledger |= report.ledger.is_some();
        if outlet.show(report)? == Next::Quit {
            return Ok(true);
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            return Ok(has_ledger);
        }
        // Missed turns are skipped.
        while due <= Instant::now() {
            due += setup.interval;
        }
    }
}

fn begin(setup: &WhereSetup) -> Result<Ongoing> {
    let window = Window { usual: setup.window, longest: setup.window, samples: 1 };
    Ongoing::begin(vec![setup.request()?], window)
}

/// The ledger of the last seconds.
fn ledger(observation: &mut Ongoing, setup: &WhereSetup, words: &Catalogue) -> Result<Whereabouts> {
    // A new survey fails while a named namespace is gone. It may come back.
    if observation.is_pathless()
        && observation.age() >= SURVEY_PERIOD
        && let Ok(anew) = begin(setup)
    {
        *observation = anew;
    }
    let mut report = None;
    observation.look(words, |_, looked| report = Some(looked.report));
    report.ok_or_else(|| anyhow::anyhow!("nothing is watched"))
}
