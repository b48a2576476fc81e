//! The settings of `size` from its command line.

use std::time::Duration;

use anyhow::{Error, Result, bail};
use chokepoint_load::{Options, Plan};
use chokepoint_model::load::patience_us;
use chokepoint_model::observation::Request;
use chokepoint_sizing::objective::Objective;
use chokepoint_sources::{Root, netns};

use crate::Usage;
use crate::args::Size;
use crate::run::measure::Setup;
use crate::run::plan;
use crate::run::route::Route;
use crate::run::settings::{self, Target};
use crate::run::tls;
use crate::terminal::output;

/// The shortest run: a few steps.
const BUDGET_MIN: Duration = Duration::from_secs(30);
const BUDGET_MAX: Duration = Duration::from_secs(3600);

/// The target, the load that all steps have in common, and the objective.
pub(super) struct SizeSetup {
    pub(super) request: Request,
    pub(super) plan: Plan,
    pub(super) objective: Objective,
    pub(super) budget: Duration,
    pub(super) connections_max: u32,
    /// The rate that the workers have to carry.
    pub(super) rate_rps: Option<f64>,
    foreign: bool,
}

impl SizeSetup {
    /// Parses the command line; an error is a usage error, unless a namespace cannot be found.
    pub(super) fn parse(args: &Size) -> Result<Self> {
        let usage = |error: Error| Error::new(Usage(output::once(&error)));
        let route = Route::parse(&args.connection.resolve, &args.connection.connect_to).map_err(usage)?;
        let target = Target::parse_routed(&args.url, &route).map_err(usage)?;
        let tls = tls::settings(&args.connection, &target).map_err(usage)?;
        let budget = settings::duration(&args.budget).map_err(usage)?;
        if !(BUDGET_MIN..=BUDGET_MAX).contains(&budget) {
            bail!(Usage(format!("--budget {} is out of range: at least {BUDGET_MIN:?} and at most {BUDGET_MAX:?}", args.budget)));
        }
        let slo_p99_us = args.slo.as_deref().map(settings::objective).transpose().map_err(usage)?;
        let expect = settings::statuses(&args.expect).map_err(usage)?;
        let plan = plan::plan(&args.load(), &target, plan::TIMEOUT_DIAGNOSE, expect.clone()).map_err(usage)?;
        let timeout_us = u64::try_from(plan.timeout.as_micros()).unwrap_or(u64::MAX);
        let objective = Objective { p99_us: patience_us(slo_p99_us, timeout_us), given: slo_p99_us.is_some() };
        if objective.p99_us > timeout_us {
            bail!(Usage("the objective is longer than the timeout of a request: raise -t".to_owned()));
        }
        let own = netns::own()?;
        let client = args.client_netns.as_deref().map(|name| netns::resolve(&Root::default(), name)).transpose()?;
        let asked = target.request();
        let host = plan::sent_host(&args.load()).map_err(usage)?;
        let request = Request {
            client_netns: client.as_ref().map_or(own, |netns| netns.id),
            expect,
            slo_p99_us,
            loaded: true,
            sent_host: host.or(asked.sent_host),
            ..asked
        };
        let objective_time = slo_p99_us.map(Duration::from_micros);
        let plan = Plan {
            netns: client.filter(|netns| netns.id != own).map(|netns| netns.path),
            duration: Some(BUDGET_MIN),
            options: Options { objective: objective_time, tls, ..plan.options },
            ..plan
        };
        plan.check().map_err(|error| usage(error.into()))?;
        let rate_rps = args.rate.map(f64::from);
        Ok(Self { request, plan, objective, budget, connections_max: args.max_connections, rate_rps, foreign: args.yes })
    }

    /// One measurement with this load.
    pub(super) fn of(&self, plan: Plan) -> Setup {
        let duration = plan.duration.unwrap_or_default();
        Setup { plan: Some(plan), foreign: self.foreign, ..Setup::new(self.request.clone(), duration) }
    }
}
