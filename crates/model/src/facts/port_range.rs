//! The range of ephemeral ports of a namespace.

use crate::observation::NetnsView;

/// Sysctl with the range of ports.
pub(crate) const KEY_RANGE: &str = "net.ipv4.ip_local_port_range";
/// Sysctl with ports of that range that the kernel does not assign.
pub(crate) const KEY_RESERVED: &str = "net.ipv4.ip_local_reserved_ports";
/// The range if it could not be read (Documentation/networking/ip-sysctl.rst).
const RANGE_DEFAULT: (u32, u32) = (32_768, 60_999);

/// First and last port of the range, both included.
pub(crate) fn of(view: &NetnsView) -> (u32, u32) {
    let parsed = view.sysctl(KEY_RANGE).and_then(|text| {
        let mut words = text.split_whitespace().map(str::parse);
        Some((words.next()?.ok()?, words.next()?.ok()?))
    });
    parsed.filter(|(low, high)| low <= high).unwrap_or(RANGE_DEFAULT)
}

/// Ports of the range that are not reserved ("8080,9000-9010").
pub(crate) fn usable(view: &NetnsView, (low, high): (u32, u32)) -> u32 {
    let reserved = view.sysctl(KEY_RESERVED).unwrap_or_default();
    let count = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (u32, u32) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
        Some((to.min(high) + 1).saturating_sub(from.max(low)))
    };
    let taken: u32 = reserved.split(',').filter_map(count).sum();
    (high - low + 1).saturating_sub(taken)
}
