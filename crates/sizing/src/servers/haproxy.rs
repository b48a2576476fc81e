//! HAProxy: event loops. Requests beyond maxconn of a server wait in its queue.

use super::{ConfigLine, Demand, ServerDef, ServerKind, WorkerUnit, is_program};

/// docs.haproxy.org/2.6/configuration.html.
pub(super) const HAPROXY: ServerDef = ServerDef {
    kind: ServerKind::Haproxy,
    name: "HAProxy",
    unit: WorkerUnit::Loops,
    file: "/etc/haproxy/haproxy.cfg",
    source: "https://docs.haproxy.org/2.6/configuration.html",
    recognise: |identity| is_program(identity, "haproxy"),
    lines,
};

fn lines(demand: &Demand) -> Vec<ConfigLine> {
    let mut lines = vec![ConfigLine::new(format!("global: maxconn {}", demand.in_flight), "size-line-connections")];
    lines.extend(demand.behind.map(|workers| ConfigLine::new(format!("server ... maxconn {workers}"), "size-line-server")));
    lines
}
