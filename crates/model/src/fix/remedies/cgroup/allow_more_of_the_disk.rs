//! Advice `allow-more-of-the-disk`: a higher limit of a control group for a disk.

use crate::facts::Context;
use crate::facts::limit::disk::DiskLimit;
use crate::fix::change::{Activation, quoted};
use crate::fix::remedies::definition::{Advice, AdviceDef};
use crate::fix::remedy::Step;
use crate::fix::steps::plain_unit;
use crate::judge::id::FindingId;
use crate::judge::station::StationReading;
use crate::judge::stations::disk_limit::amount;
use crate::observation::{CgroupVersion, IoKind};
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const ADVICE: AdviceDef =
    AdviceDef { id: "allow-more-of-the-disk", finding: FindingId::DISK_LIMITED, activation: Activation::Live, advise };

fn advise(ctx: &Context<'_>, placed: &StationReading) -> Option<Advice> {
    let limit = DiskLimit::of(ctx, ctx.only_tier(&placed.owner)?)?;
    let wanted = limit.limit.saturating_mul(2);
    let text = Message::new("remedy-allow-more-of-the-disk-text").with("whose", limit.id.path.as_str()).with("disk", limit.disk);
    let text = text.with("to", amount(limit.kind, wanted as f64));
    let (setting, option) = names(limit.kind);
    let persistent = Message::new("step-unit-disk").with("option", option);
    let of_unit = format!("[Service]\n{setting}=/dev/block/{} {wanted}", limit.disk);
    Some(Advice {
        runtime: vec![Step::command(command(&limit, wanted))],
        undo: vec![Step::command(command(&limit, limit.limit))],
        persistent: vec![Step::lines(persistent, of_unit)],
        ..Advice::words(text, "remedy-allow-more-of-the-disk-risk", Lift::Further)
    })
}

/// The setting of a unit (systemd.resource-control(5)), and the option of a container (docker-run(1)).
fn names(kind: IoKind) -> (&'static str, &'static str) {
    match kind {
        IoKind::ReadBytes => ("IOReadBandwidthMax", "--device-read-bps"),
        IoKind::WrittenBytes => ("IOWriteBandwidthMax", "--device-write-bps"),
        IoKind::Reads => ("IOReadIOPSMax", "--device-read-iops"),
        IoKind::Writes => ("IOWriteIOPSMax", "--device-write-iops"),
    }
}

/// A unit's limit is set through the service manager, which would set its own again.
fn command(limit: &DiskLimit<'_>, number: u64) -> String {
    let file = |name: &str| quoted(&format!("{}/{name}", limit.group.dir));
    match (plain_unit(&limit.id.path), limit.id.version) {
        (Some(unit), _) => format!("systemctl set-property --runtime {unit} '{}=/dev/block/{} {number}'", names(limit.kind).0, limit.disk),
        (None, CgroupVersion::V1) => format!("echo '{} {number}' > {}", limit.disk, file(limit.kind.file_v1())),
        (None, CgroupVersion::V2) => format!("echo '{} {}={number}' > {}", limit.disk, limit.kind.keys_v2().0, file("io.max")),
    }
}
