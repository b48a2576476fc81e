//! HAProxy: event loops. Requests beyond maxconn of a server wait in its queue.

use crate::advice::{ConfigLine, Demand, WorkerUnit};
use crate::{ServerDef, is_program};

/// docs.haproxy.org/2.6/configuration.html.
pub(crate) const HAPROXY: ServerDef = ServerDef {
    id: "haproxy",
    name: "HAProxy",
    unit: WorkerUnit::Loops,
    file: "/etc/haproxy/haproxy.cfg",
    source: "https://docs.haproxy.org/2.6/configuration.html",
    master: None,
    recognise: |identity| is_program(identity, "haproxy"),
    lines,
};

fn lines(demand: &Demand) -> Vec<ConfigLine> {
    let mut lines = vec![ConfigLine::new(format!("global: maxconn {}", demand.in_flight), "size-line-connections")];
    lines.extend(demand.behind.map(|workers| ConfigLine::new(format!("server ... maxconn {workers}"), "size-line-server")));
    lines
}
