//! The memory bound of all server configurations in an observation. A few lines can make many entries: each pass has one for each upstream server.

use chokepoint_model::observation::{
    ListenerAddress, NginxConfig, NginxDebugLog, NginxLimit, NginxPass, Observation, Origin, PhpFpmConfig, ServerConfig, StatedConfig,
    StatedLimit, StatedListen, StatedPass, StatedRefusal,
};

/// Bytes that all of them may use.
const BYTES_MAX: usize = 8 << 20;
/// Most configurations of all servers.
const CONFIGURATIONS_MAX: usize = 256;
/// Bytes of an entry without its texts. A limit is the largest entry.
const ENTRY_BYTES: usize = 384;

/// The bytes that are left.
#[derive(Debug)]
pub(super) struct ConfigRoom {
    left: usize,
}

impl ConfigRoom {
    /// What the configurations of an observation leave.
    pub(super) fn of(observation: &Observation) -> Result<Self, String> {
        let all = || observation.servers.values().flat_map(|server| server.config.values());
        if all().count() >= CONFIGURATIONS_MAX {
            return Err(format!("more than {CONFIGURATIONS_MAX} configurations are not kept"));
        }
        let taken = all().map(|config| match config {
            ServerConfig::Nginx(nginx) => nginx_bytes(nginx),
            ServerConfig::PhpFpm(fpm) => fpm_bytes(fpm),
            ServerConfig::Stated(stated) => stated_bytes(stated),
        });
        Ok(Self { left: BYTES_MAX.saturating_sub(taken.sum()) })
    }

    #[cfg(test)]
    pub(super) fn whole() -> Self {
        Self { left: BYTES_MAX }
    }

    /// Uses some of it, or fails if too little is left.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), String> {
        let left = self.left.checked_sub(bytes);
        let too_much =
            || format!("its sockets, passes, limits and pools take more than is kept of all configurations ({} MiB)", BYTES_MAX >> 20);
        self.left = left.ok_or_else(too_much)?;
        Ok(())
    }
}

fn address_bytes(address: &ListenerAddress) -> usize {
    let path = if let ListenerAddress::Unix(path) = address { path.len() } else { 0 };
    size_of::<ListenerAddress>() + path
}

/// What an entry takes that stands at this place.
pub(super) fn entry_bytes(origin: &Origin) -> usize {
    ENTRY_BYTES + origin.file.len()
}

pub(super) fn pass_bytes(pass: &NginxPass) -> usize {
    let upstream = pass.upstream.as_ref().map_or(0, String::len);
    entry_bytes(&pass.origin) + upstream + pass.servers.iter().map(address_bytes).sum::<usize>()
}

pub(super) fn limit_bytes(limit: &NginxLimit) -> usize {
    let texts = limit.zone.len() + limit.key.len() + limit.zone_origin.file.len();
    entry_bytes(&limit.origin) + texts + limit.applies_at.iter().map(|(at, _)| 8 + address_bytes(at)).sum::<usize>()
}

pub(super) fn debug_log_bytes(log: &NginxDebugLog) -> usize {
    entry_bytes(&log.origin) + log.to.len() + log.levels.len() + log.quiet.len()
}

fn nginx_bytes(nginx: &NginxConfig) -> usize {
    let passes = nginx.passes.iter().chain(nginx.asks.iter().map(|asks| &asks.pass)).map(pass_bytes).sum::<usize>();
    let fields = nginx.asks.iter().flat_map(|asks| &asks.fields).map(|(name, value)| field_bytes(name, value)).sum::<usize>();
    let listens = nginx.listens.iter().map(|listen| entry_bytes(&listen.origin)).sum::<usize>();
    let logs = nginx.debug_logs.iter().map(debug_log_bytes).sum::<usize>();
    passes + fields + listens + logs + nginx.limits.iter().map(limit_bytes).sum::<usize>()
}

/// What a field of a request takes.
pub(super) fn field_bytes(name: &str, value: &str) -> usize {
    64 + name.len() + value.len()
}

pub(super) fn stated_listen_bytes(listen: &StatedListen) -> usize {
    entry_bytes(&listen.origin) + listen.of.len() + address_bytes(&listen.address)
}

pub(super) fn stated_pass_bytes(pass: &StatedPass) -> usize {
    entry_bytes(&pass.origin) + pass.to.len() + pass.address.as_ref().map_or(0, address_bytes)
}

pub(super) fn stated_limit_bytes(limit: &StatedLimit) -> usize {
    let texts = limit.owner.len() + limit.line.len() + limit.gives_up_ms.as_ref().map_or(0, |time| time.origin.file.len());
    entry_bytes(&limit.origin) + texts + limit.at.iter().map(address_bytes).sum::<usize>()
}

pub(super) fn stated_refusal_bytes(refusal: &StatedRefusal) -> usize {
    entry_bytes(&refusal.origin) + refusal.rule.len()
}

fn stated_bytes(stated: &StatedConfig) -> usize {
    let listens = stated.listens.iter().map(stated_listen_bytes).sum::<usize>();
    let passes = stated.passes.iter().map(stated_pass_bytes).sum::<usize>();
    let ways = stated.leads_to.iter().flatten().map(address_bytes).sum::<usize>();
    let refusals = stated.refusals.iter().map(stated_refusal_bytes).sum::<usize>();
    listens + passes + ways + refusals + stated.limits.iter().map(stated_limit_bytes).sum::<usize>()
}

fn fpm_bytes(fpm: &PhpFpmConfig) -> usize {
    fpm.pools.iter().map(|pool| pool_bytes(&pool.name, &pool.pm.origin)).sum()
}

/// What a pool takes with its settings, each with the place where it stands.
pub(super) fn pool_bytes(name: &str, origin: &Origin) -> usize {
    name.len() + 6 * entry_bytes(origin)
}
