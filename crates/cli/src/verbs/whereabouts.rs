//! `chokepoint where`: where requests stand now, again and again until somebody has seen enough.

mod look;
mod page;
mod rows;
#[cfg(test)]
pub(crate) mod samples;
mod view;

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, bail};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::observation::Request;
use chokepoint_model::report::{SourceReport, Whereabouts};
use chokepoint_sources::{Root, netns};

use crate::Usage;
use crate::args::Where;
use crate::report::text::whereabouts_text;
use crate::run::interrupt::Interrupt;
use crate::run::settings::{self, Target};
use crate::terminal::output;
use look::Look;
use view::View;

/// Readings come once a second: more often there is nothing new.
const INTERVAL_MIN: Duration = Duration::from_secs(1);
const INTERVAL_MAX: Duration = Duration::from_secs(3_600);
/// The account needs some samples, of which there are about five a second, and the memory of many is bounded.
const WINDOW_MIN: Duration = Duration::from_secs(2);
const WINDOW_MAX: Duration = Duration::from_secs(60);
/// How often a wait looks whether the user asked to stop.
const POLL: Duration = Duration::from_millis(50);

/// What the command line asks for.
struct Setup {
    target: Target,
    /// Names of the client's namespace and of the server's.
    client_netns: Option<String>,
    server_netns: Option<String>,
    duration: Option<Duration>,
    interval: Duration,
    window: Duration,
}

impl Setup {
    /// What is observed: the namespaces are those that have the names now.
    fn request(&self) -> Result<Request> {
        let root = Root::default();
        let named = |name: &Option<String>| name.as_deref().map(|name| netns::resolve(&root, name)).transpose();
        let client_netns = named(&self.client_netns)?.map_or_else(netns::own, |netns| Ok(netns.id))?;
        let server_netns = named(&self.server_netns)?.map(|netns| netns.id);
        Ok(Request { client_netns, server_netns, loaded: false, ..self.target.request() })
    }
}

/// Whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Go,
    /// The user has seen enough.
    Quit,
}

/// Where accounts are shown.
trait Outlet {
    /// Shows one.
    fn show(&mut self, report: Whereabouts) -> Result<Next>;

    /// Lets time pass.
    fn wait(&mut self, until: Instant, interrupt: &Interrupt) -> Result<Next> {
        while !interrupt.is_set() && Instant::now() < until {
            thread::sleep(POLL.min(until.saturating_duration_since(Instant::now())));
        }
        Ok(Next::Go)
    }
}

/// Runs the verb; true where it was told where requests stand, or the user had seen enough.
pub(crate) fn run(args: &Where, words: &Catalogue, interrupt: &Interrupt) -> Result<bool> {
    let setup = setup(args)?;
    // Before a view is opened: a second Ctrl-C while the host is surveyed must find the terminal as it was.
    let mut look = Look::begin(&setup)?;
    let mut outlet: Box<dyn Outlet + '_> = match (args.json, output::is_watched()) {
        (true, _) => Box::new(Lines),
        (false, true) => Box::new(View::open(&setup, words)?),
        (false, false) => Box::new(Blocks { words, lacking: Vec::new() }),
    };
    let begin = Instant::now();
    let end = setup.duration.map(|duration| begin + duration);
    let (mut due, mut is_shown, mut is_told) = (begin + look.until_told(), false, false);
    loop {
        let until = end.map_or(due, |end| due.min(end));
        if outlet.wait(until, interrupt)? == Next::Quit {
            return Ok(true);
        }
        // At the end there is nothing new but where nothing was shown yet.
        if interrupt.is_set() || (is_shown && Instant::now() < due) {
            return Ok(is_told);
        }
        is_shown = true;
        let report = look.take(words);
        is_told |= report.ledger.is_some();
        if outlet.show(report)? == Next::Quit {
            return Ok(true);
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            return Ok(is_told);
        }
        // Missed turns are not made up for.
        while due <= Instant::now() {
            due += setup.interval;
        }
    }
}

fn setup(args: &Where) -> Result<Setup> {
    let usage = |error: Error| Error::new(Usage(format!("{error:#}")));
    let target = Target::parse(&args.url).map_err(usage)?;
    let within = |name: &str, text: &str, (least, most): (Duration, Duration)| {
        let time = settings::duration(text).map_err(usage)?;
        if time < least || time > most {
            bail!(Usage(format!("{name} {text} is out of range: at least {least:?} and at most {most:?}")));
        }
        Ok(time)
    };
    let interval = within("--interval", &args.interval, (INTERVAL_MIN, INTERVAL_MAX))?;
    let window = within("--window", &args.window, (WINDOW_MIN, WINDOW_MAX))?;
    let duration = args.duration.as_deref().map(settings::duration).transpose().map_err(usage)?;
    let (client_netns, server_netns) = (args.client_netns.clone(), args.server_netns.clone());
    Ok(Setup { target, client_netns, server_netns, duration, interval, window })
}

/// A line of JSON each.
struct Lines;

impl Outlet for Lines {
    fn show(&mut self, report: Whereabouts) -> Result<Next> {
        let is_read = output::print_json_on(&format!("{}\n", serde_json::to_string(&report)?))?;
        Ok(if is_read { Next::Go } else { Next::Quit })
    }
}

/// A block of text each; what could not be read is told when it changes.
struct Blocks<'a> {
    words: &'a Catalogue,
    lacking: Vec<SourceReport>,
}

impl Outlet for Blocks<'_> {
    fn show(&mut self, mut report: Whereabouts) -> Result<Next> {
        if report.lacking == self.lacking {
            report.lacking.clear();
        } else {
            self.lacking.clone_from(&report.lacking);
        }
        let is_read = output::print_painted_on(&whereabouts_text(&report, &output::style(), self.words))?;
        Ok(if is_read { Next::Go } else { Next::Quit })
    }
}
