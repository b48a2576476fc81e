//! Advice `keep-cpu-quota`: how to make a larger quota permanent. That is up to whatever created the cgroup, which the cgroup's name shows.

use super::raise_cpu_quota;
use crate::facts::Context;
use crate::fix::change::Activation;
use crate::fix::remedies::definition::{Advice, AdviceDef};
use crate::fix::remedy::{Signal, Step};
use crate::fix::steps::CgroupOwner;
use crate::judge::id::FindingId;
use crate::judge::station::StationReading;
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const ADVICE: AdviceDef =
    AdviceDef { id: "keep-cpu-quota", finding: FindingId::THROTTLED, activation: Activation::Live, advise };

fn advise(ctx: &Context<'_>, placed: &StationReading) -> Option<Advice> {
    let quota = raise_cpu_quota::of(ctx, placed)?;
    let (wanted, _) = raise_cpu_quota::wanted(ctx, quota, placed)?;
    let (id, persistent) = owner(&quota.id.path, wanted);
    Some(Advice {
        text: Message::new(id).with("cgroup", quota.id.path.as_str()).with("from", quota.limit).with("to", wanted),
        risk: Message::new("remedy-keep-cpu-quota-risk"),
        runtime: Vec::new(),
        persistent,
        undo: owner(&quota.id.path, quota.limit).1,
        signal: Signal::Goodput,
        lifts: Lift::Limit(wanted),
    })
}

/// What created the cgroup, and what makes a quota permanent there.
fn owner(path: &str, cores: f64) -> (&'static str, Vec<Step>) {
    match CgroupOwner::of(path) {
        CgroupOwner::Kubernetes => {
            let lines = format!("resources:\n  limits:\n    cpu: {:.0}m", (cores * 1e3).ceil());
            ("remedy-keep-cpu-quota-text-kubernetes", vec![Step::lines(Message::new("step-pod-manifest"), lines)])
        }
        CgroupOwner::Container { engine, id } => {
            let now = Step::command(format!("{engine} update --cpus {cores:.2} {id}"));
            let later = Step::lines(Message::new("step-compose-file"), format!("cpus: {cores:.2}"));
            ("remedy-keep-cpu-quota-text-container", vec![now, later])
        }
        CgroupOwner::Unit(unit) => {
            let command = format!("systemctl set-property '{}' CPUQuota={:.0}%", unit.replace('\'', "'\\''"), (cores * 100.0).ceil());
            ("remedy-keep-cpu-quota-text-systemd", vec![Step::command(command)])
        }
        CgroupOwner::Unknown => ("remedy-keep-cpu-quota-text", Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_tells_whose_it_is() {
        let id = "0123456789ab".repeat(6)[..64].to_owned();
        for (path, text, line) in [
            ("/system.slice/nginx.service", "systemd", Some("systemctl set-property 'nginx.service' CPUQuota=150%".to_owned())),
            ("/system.slice/nginx.service/worker", "systemd", Some("systemctl set-property 'nginx.service' CPUQuota=150%".to_owned())),
            (&format!("/docker/{id}"), "container", Some("docker update --cpus 1.50 0123456789ab".to_owned())),
            (&format!("/system.slice/docker-{id}.scope"), "container", Some("docker update --cpus 1.50 0123456789ab".to_owned())),
            (&format!("/machine.slice/libpod-{id}.scope"), "container", Some("podman update --cpus 1.50 0123456789ab".to_owned())),
            (&format!("/kubepods/burstable/pod7/{id}"), "kubernetes", None),
            ("/kubepods.slice/kubepods-burstable.slice/x.scope", "kubernetes", None),
        ] {
            let (told, steps) = owner(path, 1.5);
            assert_eq!((told.ends_with(text), steps[0].command.as_ref()), (true, line.as_ref()), "{path}: {told}");
        }
        for path in ["/", "/web", "/docker", "/docker/short"] {
            assert_eq!(owner(path, 1.5), ("remedy-keep-cpu-quota-text", Vec::new()), "{path}");
        }
    }
}
