//! Settings of the servers: the configured value, and whether it is active.

use super::Context;
use crate::facts::path::{PlacedListener, Tier, is_bound_to};
use crate::fix::change::ServerSetting;
use crate::observation::{ListenerAddress, Origin, PhpFpmPool, ServerConfig, ServerView};

/// nginx's default backlog of `listen` (ngx_connection.h, NGX_LISTEN_BACKLOG on Linux).
const NGINX_BACKLOG: u32 = 511;
/// How much later than a worker's start a file must have changed for the server not to have read it, seconds. The times of the boot, of the start and of the
/// file are whole seconds, and the clock is corrected now and then.
const LATER_S: i64 = 3;

/// The configured backlog of a listener.
pub(crate) struct Backlog {
    /// The value. A negative value means the largest possible backlog, because listen(2) takes it as unsigned.
    pub(crate) value: i64,
    /// The setting that changes it.
    pub(crate) setting: ServerSetting,
    /// Its position in the configuration.
    pub(crate) origin: Origin,
}

/// The configured backlog of the listener at this address.
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
        // No change of it is known.
        ServerConfig::Stated(_) => None,
    }
}

/// A configuration file that changed after the server last read it: the named file, or any file if none is named.
///
/// nginx starts new workers when it reads its configuration, so it last read it no later than the start of its newest worker. php-fpm replaces all workers, so
/// it last read it no later than the start of its oldest worker. The masters stay. A file replaced by one with an older time is not detected.
pub(crate) fn changed_since_read(ctx: &Context<'_>, tier: &Tier, master: u32, only: Option<&str>) -> Option<String> {
    let kernel = ctx.obs.kernel.last()?;
    let identities = tier.pids.iter().filter_map(|pid| ctx.obs.processes.get(pid)?.identity.first());
    let started = identities.filter(|identity| identity.parent == master).map(|identity| identity.start_ticks);
    let (files, read_ticks) = match ctx.obs.servers.get(&master)?.config.last()? {
        ServerConfig::Nginx(nginx) => (&nginx.files, started.max()?),
        ServerConfig::PhpFpm(php_fpm) => (&php_fpm.files, started.min()?),
        // Whose configuration it is read it at its start.
        ServerConfig::Stated(stated) => (&stated.files, ctx.obs.processes.get(&master)?.identity.first()?.start_ticks),
    };
    let read_s = kernel.boot_s?.checked_add(i64::try_from(read_ticks / kernel.ticks_per_s.max(1)).ok()?)?;
    let later = |(path, changed_s): &&(String, i64)| only.is_none_or(|only| only == path) && *changed_s >= read_s.saturating_add(LATER_S);
    files.iter().find(later).map(|(path, _)| path.clone())
}

/// A configured backlog that is not active.
pub(crate) struct UnforcedBacklog {
    /// The limit that would apply: the smaller of the backlog and the current `net.core.somaxconn`.
    pub(crate) limit: u64,
    /// That sysctl.
    pub(crate) somaxconn: u64,
    /// The configured backlog.
    pub(crate) backlog: Backlog,
    /// A file that changed after the server read it. It may contain other changes too.
    pub(crate) changed: Option<String>,
}

/// The backlog of a listener whose active limit is lower than the configured one. `None` if both agree or one was not read.
pub(crate) fn unforced_backlog(ctx: &Context<'_>, tier: &Tier, placed: &PlacedListener, in_force: f64) -> Option<UnforcedBacklog> {
    let somaxconn = ctx.obs.netns.get(&placed.netns)?.sysctl_number("net.core.somaxconn")?;
    let (master, backlog) = tier.pids.iter().find_map(|pid| Some((*pid, backlog(ctx.obs.servers.get(pid)?, &placed.listener.address)?)))?;
    let limit = u64::try_from(backlog.value).map_or(somaxconn, |value| value.min(somaxconn));
    let changed = changed_since_read(ctx, tier, master, None);
    (limit as f64 > in_force).then_some(UnforcedBacklog { limit, somaxconn, backlog, changed })
}

/// A php-fpm pool that runs with fewer workers than its file allows, because the file was changed after it was read.
pub(crate) struct UnforcedPool<'a> {
    /// Process id of the master.
    pub(crate) master: u32,
    /// The pool as configured in the file.
    pub(crate) pool: &'a PhpFpmPool,
    /// The file.
    pub(crate) file: String,
}

/// The only pool of a tier, if its file allows more workers than the `running` ones.
pub(crate) fn unforced_pool<'a>(ctx: &Context<'a>, tier: &Tier, running: f64) -> Option<UnforcedPool<'a>> {
    let here = |pool: &&PhpFpmPool| tier.listeners.iter().any(|placed| is_bound_to(&pool.listen, &placed.listener.address));
    let servers = tier.pids.iter().filter_map(|pid| Some((*pid, ctx.obs.servers.get(pid)?.php_fpm()?)));
    let mut pools = servers.flat_map(|(master, php_fpm)| php_fpm.pools.iter().filter(here).map(move |pool| (master, pool)));
    let ((master, pool), None) = (pools.next()?, pools.next()) else { return None };
    let file = changed_since_read(ctx, tier, master, Some(&pool.max_children.origin.file))?;
    (f64::from(pool.max_children.value) > running).then_some(UnforcedPool { master, pool, file })
}
