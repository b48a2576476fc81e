//! Advice for what a profile shows: words alone, for which of the ways is open depends on the program, and what it gives is to be measured.

use super::advice::{Advice, AdviceDef};
use super::servers::tiers;
use crate::facts::Context;
use crate::fix::change::Activation;
use crate::judge::stations::StationReading;
use crate::observation::NginxConfig;
use crate::output::message::Message;
use crate::predict::Lift;

const fn def(id: &'static str, finding: &'static str, advise: fn(&Context<'_>, &StationReading) -> Option<Advice>) -> AdviceDef {
    AdviceDef { id, finding, activation: Activation::Restart, advise }
}

pub(super) const COMPRESS_LESS: AdviceDef =
    def("compress-less", "compression-hot", |_, _| advice("remedy-compress-less-text", "remedy-compress-less-risk"));
pub(super) const RESUME_SESSIONS: AdviceDef =
    def("resume-tls-sessions", "tls-handshake-hot", |_, _| advice("remedy-resume-tls-sessions-text", "remedy-resume-tls-sessions-risk"));
pub(super) const KEEP_SCRIPTS: AdviceDef = def("keep-scripts-compiled", "opcode-cache-off", |_, _| {
    advice("remedy-keep-scripts-compiled-text", "remedy-keep-scripts-compiled-risk")
});
/// For what was set up for a server under load, or has no level: somebody must say that it is not needed any more.
pub(super) const SWITCH_STEPS_OFF: AdviceDef = def("switch-steps-off", "debug-log", |ctx, placed| {
    let is_left =
        |nginx: &NginxConfig| nginx.rewrite_log.is_some() || nginx.debug_connections || nginx.debug_logs.iter().any(|log| log.is_memory);
    let is_any_left = tiers(ctx, placed).into_iter().filter_map(|tier| ctx.nginx_of(tier)).any(is_left);
    advice("remedy-switch-steps-off-text", "remedy-switch-steps-off-risk").filter(|_| is_any_left)
});
pub(super) const OTHER_ALLOCATOR: AdviceDef =
    def("try-another-allocator", "allocator-hot", |_, _| advice("remedy-try-another-allocator-text", "remedy-try-another-allocator-risk"));
pub(super) const SPLIT_LOCK: AdviceDef =
    def("split-lock", "lock-contention", |_, _| advice("remedy-split-lock-text", "remedy-split-lock-risk"));
pub(super) const MORE_WORKERS: AdviceDef =
    def("use-more-cores", "single-core-saturated", |_, _| advice("remedy-use-more-cores-text", "remedy-use-more-cores-risk"));
pub(super) const SPREAD_PACKETS: AdviceDef = def("spread-received-packets", "softirq-on-one-core", |_, _| {
    advice("remedy-spread-received-packets-text", "remedy-spread-received-packets-risk")
});
pub(super) const LOOK_AT_ANSWERS: AdviceDef =
    def("look-at-answers", "busy-polling", |_, _| advice("remedy-look-at-answers-text", "remedy-look-at-answers-risk"));

fn advice(text: &'static str, risk: &'static str) -> Option<Advice> {
    Some(Advice::words(Message::new(text), risk, Lift::Cost))
}
