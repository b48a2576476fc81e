//! Advice `keep-cpu-quota`: how to make a larger quota permanent. That is up to whatever created the cgroup, which the cgroup's name shows.

use super::raise_cpu_quota;
use crate::facts::Context;
use crate::fix::change::Activation;
use crate::fix::remedies::definition::{Advice, AdviceDef};
use crate::fix::remedy::Signal;
use crate::judge::id::FindingId;
use crate::judge::station::StationReading;
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const ADVICE: AdviceDef =
    AdviceDef { id: "keep-cpu-quota", finding: FindingId::THROTTLED, activation: Activation::Live, advise };

/// Length of the hexadecimal id of a container.
const CONTAINER_ID_LENGTH: usize = 64;
/// Characters of the id that are shown.
const CONTAINER_ID_SHOWN: usize = 12;

fn advise(ctx: &Context<'_>, placed: &StationReading) -> Option<Advice> {
    let quota = raise_cpu_quota::of(ctx, placed)?;
    let wanted = raise_cpu_quota::wanted(ctx, quota, placed)?;
    let (id, persistent) = owner(&quota.id.path, wanted);
    Some(Advice {
        text: Message::new(id).with("cgroup", quota.id.path.as_str()).with("from", quota.limit).with("to", wanted),
        risk: Message::new("remedy-keep-cpu-quota-risk"),
        runtime: Vec::new(),
        persistent,
        undo: Vec::new(),
        signal: Signal::Goodput,
        lifts: Lift::Limit(wanted),
    })
}

/// What created the cgroup, and what makes the quota permanent there.
fn owner(path: &str, cores: f64) -> (&'static str, Vec<String>) {
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    let last = names.last().copied().unwrap_or_default();
    if names.iter().any(|name| name.starts_with("kubepods")) {
        let lines = vec!["# the pod's manifest, of its container".to_owned(), "resources:".to_owned(), "  limits:".to_owned()];
        let limit = format!("    cpu: {:.0}m", (cores * 1e3).ceil());
        return ("remedy-keep-cpu-quota-text-kubernetes", lines.into_iter().chain([limit]).collect());
    }
    let engine = names.iter().find_map(|name| match name {
        name if name.starts_with("docker") => Some("docker"),
        name if name.starts_with("libpod") => Some("podman"),
        _ => None,
    });
    if let (Some(engine), Some(container)) = (engine, container(last)) {
        let now = format!("{engine} update --cpus {cores:.2} {container}");
        let lines = vec![now, "# compose.yaml, of its service".to_owned(), format!("cpus: {cores:.2}")];
        return ("remedy-keep-cpu-quota-text-container", lines);
    }
    // systemd creates cgroups for units. The innermost name with a unit's suffix is the unit.
    let is_unit = |name: &&&str| [".service", ".scope", ".slice"].iter().any(|ending| name.ends_with(ending));
    match names.iter().rev().find(is_unit) {
        Some(unit) => {
            let line = format!("systemctl set-property '{unit}' CPUQuota={:.0}%", (cores * 100.0).ceil());
            ("remedy-keep-cpu-quota-text-systemd", vec![line])
        }
        None => ("remedy-keep-cpu-quota-text", Vec::new()),
    }
}

/// The short id of a container, from "ID", "docker-ID.scope" or "libpod-ID".
fn container(name: &str) -> Option<&str> {
    let is_id = |part: &&str| part.len() == CONTAINER_ID_LENGTH && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.split(['-', '.']).find(is_id).and_then(|id| id.get(..CONTAINER_ID_SHOWN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_tells_whose_it_is() {
        let id = "0123456789ab".repeat(6)[..CONTAINER_ID_LENGTH].to_owned();
        for (path, text, line) in [
            ("/system.slice/nginx.service", "systemd", Some("systemctl set-property 'nginx.service' CPUQuota=150%".to_owned())),
            ("/system.slice/nginx.service/worker", "systemd", Some("systemctl set-property 'nginx.service' CPUQuota=150%".to_owned())),
            (&format!("/docker/{id}"), "container", Some("docker update --cpus 1.50 0123456789ab".to_owned())),
            (&format!("/system.slice/docker-{id}.scope"), "container", Some("docker update --cpus 1.50 0123456789ab".to_owned())),
            (&format!("/machine.slice/libpod-{id}.scope"), "container", Some("podman update --cpus 1.50 0123456789ab".to_owned())),
            (&format!("/kubepods/burstable/pod7/{id}"), "kubernetes", Some("# the pod's manifest, of its container".to_owned())),
            ("/kubepods.slice/kubepods-burstable.slice/x.scope", "kubernetes", Some("# the pod's manifest, of its container".to_owned())),
        ] {
            let (told, lines) = owner(path, 1.5);
            assert_eq!((told.ends_with(text), lines.first()), (true, line.as_ref()), "{path}: {told}");
        }
        for path in ["/", "/web", "/docker", "/docker/short"] {
            assert_eq!(owner(path, 1.5), ("remedy-keep-cpu-quota-text", Vec::new()), "{path}");
        }
    }
}
