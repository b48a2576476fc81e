//! `chokepoint where`: where requests stand now, shown again and again until the user quits.

mod choice;
mod outlet;
mod page;
mod rows;
mod setup;
mod view;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::report::Whereabouts;

use crate::args::Where;
use crate::run::ongoing::{Ongoing, Window};
use crate::terminal::interrupt::Interrupt;
use crate::terminal::leaving::Leaving;
use crate::terminal::output;
use outlet::{JsonLines, Next, Outlet, TextBlocks};
use setup::WhereSetup;
use view::View;

/// If nothing listens for this long, the host is surveyed again: there may be new namespaces.
const SURVEY_PERIOD: Duration = Duration::from_secs(10);

/// Time between two checks for a new ledger.
const SHOW_PERIOD: Duration = Duration::from_millis(100);

/// A ledger, and how long ago its samples were taken.
struct Seen {
    report: Whereabouts,
    age: Option<Duration>,
}

/// Runs the verb. True if a ledger was shown, or the user asked to quit.
pub(crate) fn run(args: &Where, words: &Catalogue, interrupt: &Interrupt) -> Result<bool> {
    let _leaving = Leaving::hold(interrupt, || "a reading of the host".to_owned());
    let setup = Arc::new(WhereSetup::parse(args)?);
    // Before a view is opened: what cannot be observed is told on the main screen.
    let seen = look(Arc::clone(&setup), interrupt)?;
    let mut outlet: Box<dyn Outlet + '_> = match (args.json, output::is_watched()) {
        (true, _) => Box::new(JsonLines),
        (false, true) => Box::new(View::open(&setup, words)?),
        (false, false) => Box::new(TextBlocks::new(words)),
    };
    let end = setup.duration.map(|duration| Instant::now() + duration);
    let (mut is_shown, mut has_ledger) = (false, false);
    loop {
        let until = Instant::now() + SHOW_PERIOD;
        if outlet.wait(end.filter(|end| is_shown && *end < until).unwrap_or(until), interrupt)? == Next::Quit {
            return Ok(true);
        }
        if interrupt.is_set() {
            return Ok(has_ledger);
        }
        match seen.try_recv() {
            Ok(seen) => {
                let Seen { report, age } = seen?;
                (is_shown, has_ledger) = (true, has_ledger || report.ledger.is_some());
                if outlet.show(report, age)? == Next::Quit {
                    return Ok(true);
                }
            }
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => bail!("the observation stopped unexpectedly"),
        }
        // At the end there is nothing new, unless nothing was shown yet.
        if is_shown && end.is_some_and(|end| Instant::now() >= end) {
            return Ok(has_ledger);
        }
    }
}

/// Begins to observe, in a thread of its own: a host that does not answer must not keep the view from its keys.
fn look(setup: Arc<WhereSetup>, interrupt: &Interrupt) -> Result<Receiver<Result<Seen>>> {
    let (to, seen) = sync_channel(1);
    let (begun, begins) = sync_channel(1);
    let interrupt = interrupt.clone();
    let follow = move || {
        let words = Catalogue::english();
        let mut observation = match begin(&setup) {
            Ok(observation) => observation,
            // Whoever waits for it is there.
            Err(error) => return drop(begun.send(Err(error))),
        };
        let mut due = Instant::now() + observation.until_readings();
        let _ = begun.send(Ok(()));
        while !interrupt.wait(Some(due)) {
            if to.send(ledger(&mut observation, &setup, &words)).is_err() {
                return;
            }
            // Missed turns are skipped.
            while due <= Instant::now() {
                due += setup.interval;
            }
        }
        // The channel stays open: it did not stop unexpectedly.
        let _ = to.send(Err(anyhow::anyhow!("it was stopped")));
    };
    std::thread::Builder::new().name("looking".to_owned()).spawn(follow).context("no thread could be started to observe")?;
    begins.recv().context("the observation stopped unexpectedly")??;
    Ok(seen)
}

fn begin(setup: &WhereSetup) -> Result<Ongoing> {
    let window = Window { usual: setup.window, longest: setup.window, samples: 1 };
    Ongoing::begin(vec![setup.request()?], window)
}

/// The ledger of the last seconds.
fn ledger(observation: &mut Ongoing, setup: &WhereSetup, words: &Catalogue) -> Result<Seen> {
    // A new survey fails while a named namespace is gone. It may come back.
    if observation.is_pathless()
        && observation.age() >= SURVEY_PERIOD
        && let Ok(anew) = begin(setup)
    {
        *observation = anew;
    }
    let mut seen = None;
    observation.look(words, None, |_, looked| seen = Some(Seen { report: looked.report, age: looked.age }));
    seen.ok_or_else(|| anyhow::anyhow!("nothing is watched"))
}
