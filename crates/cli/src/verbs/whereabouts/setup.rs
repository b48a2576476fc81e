//! The settings of `where` from its command line.

use std::time::Duration;

use anyhow::{Error, Result, bail};
use chokepoint_model::observation::Request;
use chokepoint_sources::{Root, netns};

use crate::Usage;
use crate::args::Where;
use crate::run::settings::{self, Target};
use crate::terminal::output;

/// Readings come once a second.
const INTERVAL_MIN: Duration = Duration::from_secs(1);
const INTERVAL_MAX: Duration = Duration::from_secs(3_600);
/// The ledger needs some samples, and there are about five a second. The memory for samples is bounded.
const WINDOW_MIN: Duration = Duration::from_secs(2);
const WINDOW_MAX: Duration = Duration::from_secs(60);
/// The target, the namespaces and the times.
pub(super) struct WhereSetup {
    pub(super) target: Target,
    /// Names of the namespaces of client and server.
    client_netns: Option<String>,
    server_netns: Option<String>,
    pub(super) duration: Option<Duration>,
    pub(super) interval: Duration,
    pub(super) window: Duration,
}

impl WhereSetup {
    /// Parses the command line; an error is a usage error.
    pub(super) fn parse(args: &Where) -> Result<Self> {
        let usage = |error: Error| Error::new(Usage(output::once(&error)));
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
        Ok(Self { target, client_netns, server_netns, duration, interval, window })
    }

    /// What is observed. The names of namespaces are resolved at each call.
    pub(super) fn request(&self) -> Result<Request> {
        let root = Root::default();
        let named = |name: &Option<String>| name.as_deref().map(|name| netns::resolve(&root, name)).transpose();
        let client_netns = named(&self.client_netns)?.map_or_else(netns::own, |netns| Ok(netns.id))?;
        let server_netns = named(&self.server_netns)?.map(|netns| netns.id);
        Ok(Request { client_netns, server_netns, loaded: false, ..self.target.request() })
    }
}
