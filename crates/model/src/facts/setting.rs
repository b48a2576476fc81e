//! Settings of the servers: what is written, and whether it is in force.

use super::Context;
use crate::facts::path::{PlacedListener, Tier, is_bound_to};
use crate::fix::change::ServerSetting;
use crate::observation::{ListenerAddress, Origin, PhpFpmPool, ServerConfig, ServerView};

/// nginx's backlog where `listen` names none (ngx_connection.h, NGX_LISTEN_BACKLOG on Linux).
const NGINX_BACKLOG: u32 = 511;
/// How much later than a worker's start a file must have been changed for the server not to have read it, seconds: the times of the boot, of
/// the start and of the file are whole seconds, and the clock is corrected now and then.
const LATER_S: i64 = 3;

/// What a server's configuration says about the backlog of one of its listeners.
pub(crate) struct Backlog {
    /// The value; negative is as large as may be, because listen(2) takes it for unsigned.
    pub(crate) value: i64,
    /// The setting that changes it.
    pub(crate) setting: ServerSetting,
    /// Where it is written.
    pub(crate) origin: Origin,
}

/// The backlog that a server's configuration gives to the listener at this address.
pub(crate) fn backlog(view: &ServerView, bound: &ListenerAddress) -> Option<Backlog> {
    match view.config.last()? {
        ServerConfig::Nginx(nginx) => {
            let listen = nginx.listens.iter().find(|listen| is_bound_to(&listen.address, bound))?;
            let setting = ServerSetting::NginxListenBacklog { address: listen.address.to_string() };
            Some(Backlog { value: i64::from(listen.backlog.unwrap_or(NGINX_BACKLOG)), setting, origin: listen.origin.clone() })
        }
        ServerConfig::PhpFpm(php_fpm) => {
            let pool = php_fpm.pools.iter().find(|pool| is_bound_to(&pool.listen, bound))?;
            let setting = ServerSetting::PhpFpmBacklog { pool: pool.name.clone() };
            Some(Backlog { value: pool.backlog.value, setting, origin: pool.backlog.origin.clone() })
        }
    }
}

/// A file of a server's configuration that was changed after the server read it for the last time, among those named (all where none is).
///
/// nginx starts new workers when it reads, so that it read no later than its newest one was started; php-fpm replaces all of its workers,
/// so that it read no later than the oldest of those that are there was. The masters stay what they are. A file that was put in its place with
/// an older time is not told.
pub(crate) fn changed_since_read(ctx: &Context<'_>, tier: &Tier, master: u32, only: Option<&str>) -> Option<String> {
    let kernel = ctx.obs.kernel.last()?;
    let identities = tier.pids.iter().filter_map(|pid| ctx.obs.processes.get(pid)?.identity.first());
    let started = identities.filter(|identity| identity.parent == master).map(|identity| identity.start_ticks);
    let (files, read_ticks) = match ctx.obs.servers.get(&master)?.config.last()? {
        ServerConfig::Nginx(nginx) => (&nginx.files, started.max()?),
        ServerConfig::PhpFpm(php_fpm) => (&php_fpm.files, started.min()?),
    };
    let read_s = kernel.boot_s?.checked_add(i64::try_from(read_ticks / kernel.ticks_per_s.max(1)).ok()?)?;
    let later = |(path, changed_s): &&(String, i64)| only.is_none_or(|only| only == path) && *changed_s >= read_s.saturating_add(LATER_S);
    files.iter().find(later).map(|(path, _)| path.clone())
}

/// A backlog that is written and not in force.
pub(crate) struct UnforcedBacklog {
    /// The room that there would be: the smaller of the backlog and `net.core.somaxconn` as it is now.
    pub(crate) limit: u64,
    /// That sysctl.
    pub(crate) somaxconn: u64,
    /// What is written.
    pub(crate) backlog: Backlog,
    /// A file that was changed after the server read it: it may hold more than this setting.
    pub(crate) changed: Option<String>,
}

/// The backlog of a listener whose limit in force is lower than what is written; nothing where both agree or one was not read.
pub(crate) fn unforced_backlog(ctx: &Context<'_>, tier: &Tier, placed: &PlacedListener, in_force: f64) -> Option<UnforcedBacklog> {
    let somaxconn = ctx.obs.netns.get(&placed.netns)?.sysctl_number("net.core.somaxconn")?;
    let (master, backlog) = tier.pids.iter().find_map(|pid| Some((*pid, backlog(ctx.obs.servers.get(pid)?, &placed.listener.address)?)))?;
    let limit = u64::try_from(backlog.value).map_or(somaxconn, |value| value.min(somaxconn));
    let changed = changed_since_read(ctx, tier, master, None);
    (limit as f64 > in_force).then_some(UnforcedBacklog { limit, somaxconn, backlog, changed })
}

/// A pool of php-fpm that runs with fewer workers than its file says, because the file was changed after it was read.
pub(crate) struct UnforcedPool<'a> {
    /// The master.
    pub(crate) master: u32,
    /// The pool as its file has it.
    pub(crate) pool: &'a PhpFpmPool,
    /// The file.
    pub(crate) file: String,
}

/// The one pool of a tier, where it may have more workers by its file than the `running` ones.
pub(crate) fn unforced_pool<'a>(ctx: &Context<'a>, tier: &Tier, running: f64) -> Option<UnforcedPool<'a>> {
    let here = |pool: &&PhpFpmPool| tier.listeners.iter().any(|placed| is_bound_to(&pool.listen, &placed.listener.address));
    let servers = tier.pids.iter().filter_map(|pid| Some((*pid, ctx.obs.servers.get(pid)?.php_fpm()?)));
    let mut pools = servers.flat_map(|(master, php_fpm)| php_fpm.pools.iter().filter(here).map(move |pool| (master, pool)));
    let ((master, pool), None) = (pools.next()?, pools.next()) else { return None };
    let file = changed_since_read(ctx, tier, master, Some(&pool.max_children.origin.file))?;
    (f64::from(pool.max_children.value) > running).then_some(UnforcedPool { master, pool, file })
}
