//! Servers that a proxy has taken out of service, as it says itself: then it asks the others, or nobody.

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::observation::{ProxiedServer, ProxiedState, ServerView, StatedPass};
use crate::output::message::Message;

/// Where a proxy says it.
pub(crate) const COMMAND: &str = "show stat";
/// Most servers that are told one by one.
const TOLD_MAX: usize = 3;

/// What a proxy says of the servers that the requests asked for may be passed to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OutOfService<'a> {
    /// How many there are.
    pub(crate) all: usize,
    /// Those that were out of service when the window ended.
    pub(crate) out: Vec<&'a ProxiedServer>,
    /// True if all of them were in each look of the window.
    pub(crate) was_always_all: bool,
}

impl<'a> OutOfService<'a> {
    /// Those of a tier. `None` if it was not read, or if all are in service.
    pub(crate) fn of(ctx: &Context<'a>, tier: &Tier) -> Option<Self> {
        let view: &'a ServerView = tier.pids.iter().filter_map(|pid| ctx.obs.servers.get(pid)).find(|view| view.proxied().is_some())?;
        let is_asked = |server: &&ProxiedServer| match view.stated() {
            Some(stated) => stated.passes.iter().any(|pass| pass.is_asked != Some(false) && is_of(pass, server)),
            None => true,
        };
        let looks: Vec<Vec<&'a ProxiedServer>> =
            ctx.in_window(view.proxied()?).filter_map(|(_, status)| Some(status.proxied()?.iter().filter(is_asked).collect())).collect();
        let is_out = |server: &&&ProxiedServer| !server.state.is_in_service();
        let was_always_all = looks.iter().all(|look| !look.is_empty() && look.iter().filter(is_out).count() == look.len());
        let last = looks.into_iter().next_back()?;
        let all = last.len();
        let out: Vec<&ProxiedServer> = last.into_iter().filter(|server| !server.state.is_in_service()).collect();
        (!out.is_empty()).then_some(Self { all, out, was_always_all })
    }

    /// A message with their number.
    pub(crate) fn counted(&self, id: &'static str, tier: &Tier) -> Message {
        Message::new(id).with("tier", tier.name.as_str()).with("all", self.all as f64).with("out", self.out.len() as f64)
    }

    /// The first of them, each with its reason.
    pub(crate) fn told(&self) -> Vec<Message> {
        self.out.iter().take(TOLD_MAX).map(|server| told(server)).collect()
    }
}

/// That some servers behind a tier of the path are out of service while others serve, where no finding says it.
pub(crate) fn notes(ctx: &Context<'_>) -> Vec<Message> {
    let found = ctx.path.tiers.iter().filter_map(|tier| Some((tier, OutOfService::of(ctx, tier).filter(|out| !out.was_always_all)?)));
    found
        .map(|(tier, out)| {
            out.told().into_iter().take(1).fold(out.counted("warning-servers-out", tier), |note, first| note.with("first", first))
        })
        .collect()
}

/// True if a server is the one, or one of those, that a line of the configuration makes: a template numbers its own.
fn is_of(pass: &StatedPass, server: &ProxiedServer) -> bool {
    server.name.strip_prefix(pass.to.as_str()).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
}

fn told(server: &ProxiedServer) -> Message {
    let state = match server.state {
        ProxiedState::Up | ProxiedState::Unchecked => "up",
        ProxiedState::Down => "down",
        ProxiedState::Maintenance => "maintenance",
        ProxiedState::Draining => "draining",
    };
    let message = Message::new("server-out-of-service").with("name", server.name.as_str()).with("state", state);
    let message = message.with("check", if server.check.is_empty() { "none" } else { server.check.as_str() });
    let message =
        message.with("has_code", if server.code.is_some() { "yes" } else { "no" }).with("code", server.code.unwrap_or(0).to_string());
    let (since, unit) = rounded(server.since_s.unwrap_or(0));
    message.with("has_since", if server.since_s.is_some() { "yes" } else { "no" }).with("since", since).with("unit", unit)
}

/// A number of seconds in whole units, the largest of which there are two.
fn rounded(seconds: u64) -> (u64, &'static str) {
    let units = [(86_400, "days"), (3_600, "hours"), (60, "minutes")];
    let fitting = units.into_iter().find(|(unit_s, _)| seconds >= 2 * unit_s);
    fitting.map_or((seconds, "seconds"), |(unit_s, unit)| (seconds / unit_s, unit))
}
