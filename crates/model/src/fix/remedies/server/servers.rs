//! The servers of a tier as changes name them: by master process and main file.

use crate::facts::Context;
use crate::facts::path::Tier;
pub(in crate::fix::remedies) use crate::facts::path::is_bound_to;
use crate::fix::change::{Activation, Change, ServerSetting};
use crate::judge::station::StationReading;
use crate::observation::ServerView;

/// A running server of a known kind with a configuration that was read.
#[derive(Clone)]
pub(in crate::fix::remedies) struct Server<'a> {
    pid: u32,
    start_ticks: u64,
    view: &'a ServerView,
}

/// The tiers that a station is about: several where they share their cores.
pub(in crate::fix::remedies) fn tiers<'a>(ctx: &Context<'a>, placed: &StationReading) -> Vec<&'a Tier> {
    placed.owner.tiers().iter().map(|tier| &ctx.path.tiers[tier.0]).collect()
}

/// The servers of a tier, by their masters.
pub(in crate::fix::remedies) fn of<'a>(ctx: &Context<'a>, tier: &Tier) -> Vec<Server<'a>> {
    let server = |pid: &u32| {
        let view = ctx.obs.servers.get(pid)?;
        let identity = ctx.obs.processes.get(pid)?.identity.last()?;
        view.config.last()?;
        Some(Server { pid: *pid, start_ticks: identity.start_ticks, view })
    };
    tier.pids.iter().filter_map(server).collect()
}

impl<'a> Server<'a> {
    /// Its master process.
    pub(in crate::fix::remedies) fn pid(&self) -> u32 {
        self.pid
    }

    /// What was read of it.
    pub(in crate::fix::remedies) fn view(&self) -> &'a ServerView {
        self.view
    }

    /// The value of a setting in its files. `None` if they have no place for it, or if they cannot be edited.
    pub(in crate::fix::remedies) fn value(&self, setting: &ServerSetting) -> Option<String> {
        self.view.files.text.as_ref()?.value(setting)
    }

    /// The change of one of its settings.
    pub(in crate::fix::remedies) fn change(&self, setting: ServerSetting, from: &str, to: &str, activation: Activation) -> Change {
        let first = || self.view.config.last().map(|config| config.file().to_owned()).unwrap_or_default();
        let file = self.view.files.main.clone().unwrap_or_else(first);
        let own = (self.pid, self.start_ticks);
        let (pid, start_ticks) = self.view.files.master.map_or(own, |master| (master.pid, master.start_ticks));
        Change::Server { server: setting.server(), pid, start_ticks, file, setting, from: from.to_owned(), to: to.to_owned(), activation }
    }
}
