//! Tomcat: a thread for each request. Connections beyond them are accepted, and their requests wait unread.

use crate::advice::{ConfigLine, Demand, WorkerUnit};
use crate::{ServerDef, runs};

/// tomcat.apache.org/tomcat-10.1-doc/config/http.html.
pub(crate) const TOMCAT: ServerDef = ServerDef {
    id: "tomcat",
    name: "Tomcat",
    unit: WorkerUnit::Threads,
    file: "/etc/tomcat*/server.xml",
    source: "https://tomcat.apache.org/tomcat-10.1-doc/config/http.html",
    master: None,
    recognise: |identity| runs(identity, "org.apache.catalina.startup.Bootstrap"),
    lines,
};

/// Defaults of acceptCount and maxConnections.
const BACKLOG_DEFAULT: u32 = 100;
const CONNECTIONS_DEFAULT: u32 = 8192;

fn lines(demand: &Demand) -> Vec<ConfigLine> {
    let mut lines = vec![ConfigLine::new(format!("<Connector ... maxThreads=\"{}\"", demand.workers), "size-line-workers")];
    // Connections are accepted up to maxConnections. Only those beyond wait in the accept queue.
    if demand.in_flight > CONNECTIONS_DEFAULT {
        lines.push(ConfigLine::new(format!("    maxConnections=\"{}\"", demand.in_flight), "size-line-connections"));
        lines.extend(
            demand.longer_queue(BACKLOG_DEFAULT).map(|queue| ConfigLine::new(format!("    acceptCount=\"{queue}\""), "size-line-queue")),
        );
    }
    lines
}
