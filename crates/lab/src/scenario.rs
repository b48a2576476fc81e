//! A scenario file: its fields, how it is read, and the scenarios that are built in.

mod document;
mod error;
mod locate;
mod units;
mod validate;

use std::path::Path;

pub use document::{
    CallsExpect, CaptureExpect, Cgroup, Client, Effect, End, Expect, FileSpec, Host, Kind, Link, Load, LoadTls, Prefill, Ready, Reference,
    Route, RouteTo, Scenario, Server, Setting, Shape, SocketsExpect,
};
pub use error::{Problem, ScenarioError};
pub use units::{BitRate, ByteSize, Cidr, FileMode, StatusRanges, TimeSpan};

/// Longest scenario text that is read, bytes.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// The scenarios that are built in, by name and text, in the order in which they are listed.
const BUILTIN: &[(&str, &str)] = &[
    ("conntrack-full", include_str!("../../../lab/scenarios/conntrack-full.toml")),
    ("conntrack-60", include_str!("../../../lab/scenarios/conntrack-60.toml")),
    ("syn-queue-full", include_str!("../../../lab/scenarios/syn-queue-full.toml")),
    ("syn-queue-cookies", include_str!("../../../lab/scenarios/syn-queue-cookies.toml")),
    ("accept-queue-short", include_str!("../../../lab/scenarios/accept-queue-short.toml")),
    ("accept-queue-unreached", include_str!("../../../lab/scenarios/accept-queue-unreached.toml")),
    ("pool-exhausted", include_str!("../../../lab/scenarios/pool-exhausted.toml")),
    ("pool-then-clients", include_str!("../../../lab/scenarios/pool-then-clients.toml")),
    ("pool-then-rate", include_str!("../../../lab/scenarios/pool-then-rate.toml")),
    ("pool-then-link", include_str!("../../../lab/scenarios/pool-then-link.toml")),
    ("pool-then-quota", include_str!("../../../lab/scenarios/pool-then-quota.toml")),
    ("pool-then-cpu", include_str!("../../../lab/scenarios/pool-then-cpu.toml")),
    ("pool-cpu", include_str!("../../../lab/scenarios/pool-cpu.toml")),
    ("prefork-few", include_str!("../../../lab/scenarios/prefork-few.toml")),
    ("prefork-unreached", include_str!("../../../lab/scenarios/prefork-unreached.toml")),
    ("one-at-a-time", include_str!("../../../lab/scenarios/one-at-a-time.toml")),
    ("waits-unseen", include_str!("../../../lab/scenarios/waits-unseen.toml")),
    ("inner-limit", include_str!("../../../lab/scenarios/inner-limit.toml")),
    ("inner-limit-unreached", include_str!("../../../lab/scenarios/inner-limit-unreached.toml")),
    ("slow-answers", include_str!("../../../lab/scenarios/slow-answers.toml")),
    ("long-polling", include_str!("../../../lab/scenarios/long-polling.toml")),
    ("proxy-connections-few", include_str!("../../../lab/scenarios/proxy-connections-few.toml")),
    ("proxy-connections-enough", include_str!("../../../lab/scenarios/proxy-connections-enough.toml")),
    ("upstream-slow", include_str!("../../../lab/scenarios/upstream-slow.toml")),
    ("upstream-exhausted", include_str!("../../../lab/scenarios/upstream-exhausted.toml")),
    ("upstream-quick", include_str!("../../../lab/scenarios/upstream-quick.toml")),
    ("packet-loss", include_str!("../../../lab/scenarios/packet-loss.toml")),
    ("packet-loss-slight", include_str!("../../../lab/scenarios/packet-loss-slight.toml")),
    ("send-buffer-small", include_str!("../../../lab/scenarios/send-buffer-small.toml")),
    ("send-buffer-near", include_str!("../../../lab/scenarios/send-buffer-near.toml")),
    ("send-buffer-grown", include_str!("../../../lab/scenarios/send-buffer-grown.toml")),
    ("delayed-ack", include_str!("../../../lab/scenarios/delayed-ack.toml")),
    ("delayed-ack-none", include_str!("../../../lab/scenarios/delayed-ack-none.toml")),
    ("first-window-small", include_str!("../../../lab/scenarios/first-window-small.toml")),
    ("first-window-usual", include_str!("../../../lab/scenarios/first-window-usual.toml")),
    ("receiver-small", include_str!("../../../lab/scenarios/receiver-small.toml")),
    ("idle-close-race", include_str!("../../../lab/scenarios/idle-close-race.toml")),
    ("idle-close-late", include_str!("../../../lab/scenarios/idle-close-late.toml")),
    ("worker-connections-few", include_str!("../../../lab/scenarios/worker-connections-few.toml")),
    ("worker-connections-kept", include_str!("../../../lab/scenarios/worker-connections-kept.toml")),
    ("worker-connections-unreached", include_str!("../../../lab/scenarios/worker-connections-unreached.toml")),
    ("files-few", include_str!("../../../lab/scenarios/files-few.toml")),
    ("files-unreached", include_str!("../../../lab/scenarios/files-unreached.toml")),
    ("rate-limit-low", include_str!("../../../lab/scenarios/rate-limit-low.toml")),
    ("rate-limit-delay", include_str!("../../../lab/scenarios/rate-limit-delay.toml")),
    ("rate-limit-unreached", include_str!("../../../lab/scenarios/rate-limit-unreached.toml")),
    ("quota-throttled", include_str!("../../../lab/scenarios/quota-throttled.toml")),
    ("quota-unreached", include_str!("../../../lab/scenarios/quota-unreached.toml")),
    ("not-in-force", include_str!("../../../lab/scenarios/not-in-force.toml")),
    ("not-in-force-unreached", include_str!("../../../lab/scenarios/not-in-force-unreached.toml")),
    ("ports-exhausted", include_str!("../../../lab/scenarios/ports-exhausted.toml")),
    ("ports-rate", include_str!("../../../lab/scenarios/ports-rate.toml")),
    ("ports-80", include_str!("../../../lab/scenarios/ports-80.toml")),
    ("port-search", include_str!("../../../lab/scenarios/port-search.toml")),
    ("time-wait-accepting", include_str!("../../../lab/scenarios/time-wait-accepting.toml")),
    ("healthy-static", include_str!("../../../lab/scenarios/healthy-static.toml")),
    ("healthy-static-closed", include_str!("../../../lab/scenarios/healthy-static-closed.toml")),
    ("churn-cpu", include_str!("../../../lab/scenarios/churn-cpu.toml")),
    ("churn-php", include_str!("../../../lab/scenarios/churn-php.toml")),
    ("healthy-php", include_str!("../../../lab/scenarios/healthy-php.toml")),
    ("pair-conntrack-queue", include_str!("../../../lab/scenarios/pair-conntrack-queue.toml")),
    ("pair-ports-pool", include_str!("../../../lab/scenarios/pair-ports-pool.toml")),
    ("pair-pool-queue", include_str!("../../../lab/scenarios/pair-pool-queue.toml")),
    ("healthy-php-keepalive", include_str!("../../../lab/scenarios/healthy-php-keepalive.toml")),
    ("pool-unix", include_str!("../../../lab/scenarios/pool-unix.toml")),
    ("accept-queue-unix", include_str!("../../../lab/scenarios/accept-queue-unix.toml")),
    ("healthy-unix", include_str!("../../../lab/scenarios/healthy-unix.toml")),
    ("nat-bridge", include_str!("../../../lab/scenarios/nat-bridge.toml")),
    ("nat-bridge-pool", include_str!("../../../lab/scenarios/nat-bridge-pool.toml")),
    ("nat-bridge-conntrack", include_str!("../../../lab/scenarios/nat-bridge-conntrack.toml")),
    ("keepalive-a", include_str!("../../../lab/scenarios/keepalive-a.toml")),
    ("keepalive-b", include_str!("../../../lab/scenarios/keepalive-b.toml")),
    ("keepalive-c", include_str!("../../../lab/scenarios/keepalive-c.toml")),
    ("keepalive-d", include_str!("../../../lab/scenarios/keepalive-d.toml")),
    ("keepalive-e", include_str!("../../../lab/scenarios/keepalive-e.toml")),
    ("keepalive-a-20ms", include_str!("../../../lab/scenarios/keepalive-a-20ms.toml")),
    ("keepalive-e-20ms", include_str!("../../../lab/scenarios/keepalive-e-20ms.toml")),
    ("keepalive-a-150ms", include_str!("../../../lab/scenarios/keepalive-a-150ms.toml")),
    ("keepalive-e-150ms", include_str!("../../../lab/scenarios/keepalive-e-150ms.toml")),
    ("keepalive-tls-off", include_str!("../../../lab/scenarios/keepalive-tls-off.toml")),
    ("keepalive-tls-on", include_str!("../../../lab/scenarios/keepalive-tls-on.toml")),
    ("keepalive-requests-300", include_str!("../../../lab/scenarios/keepalive-requests-300.toml")),
    ("busy-polling", include_str!("../../../lab/scenarios/busy-polling.toml")),
    ("busy-polling-not", include_str!("../../../lab/scenarios/busy-polling-not.toml")),
    ("allocator", include_str!("../../../lab/scenarios/allocator.toml")),
    ("allocator-reused", include_str!("../../../lab/scenarios/allocator-reused.toml")),
    ("allocator-nginx", include_str!("../../../lab/scenarios/allocator-nginx.toml")),
    ("compression", include_str!("../../../lab/scenarios/compression.toml")),
    ("compression-off", include_str!("../../../lab/scenarios/compression-off.toml")),
    ("tls-handshake", include_str!("../../../lab/scenarios/tls-handshake.toml")),
    ("tls-kept", include_str!("../../../lab/scenarios/tls-kept.toml")),
    ("tls-not-resumed", include_str!("../../../lab/scenarios/tls-not-resumed.toml")),
    ("tls-resumed", include_str!("../../../lab/scenarios/tls-resumed.toml")),
    ("debug-log", include_str!("../../../lab/scenarios/debug-log.toml")),
    ("debug-log-one-client", include_str!("../../../lab/scenarios/debug-log-one-client.toml")),
    ("lock-contention", include_str!("../../../lab/scenarios/lock-contention.toml")),
    ("lock-once", include_str!("../../../lab/scenarios/lock-once.toml")),
    ("single-core", include_str!("../../../lab/scenarios/single-core.toml")),
    ("single-core-each", include_str!("../../../lab/scenarios/single-core-each.toml")),
    ("opcode-cache-off", include_str!("../../../lab/scenarios/opcode-cache-off.toml")),
    ("opcode-cache-on", include_str!("../../../lab/scenarios/opcode-cache-on.toml")),
    ("throughput-collapse", include_str!("../../../lab/scenarios/throughput-collapse.toml")),
    ("throughput-by-hand", include_str!("../../../lab/scenarios/throughput-by-hand.toml")),
];

impl Scenario {
    /// Reads a scenario's text. `origin` is the file's name as the user knows it; every problem names it with line and column.
    ///
    /// # Errors
    /// [`ScenarioError::Invalid`] with every problem found: not TOML, a field unknown, missing or of the wrong kind, or values that
    /// contradict each other.
    pub fn parse(text: &str, origin: &str) -> Result<Scenario, ScenarioError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(ScenarioError::TooLarge { origin: origin.to_owned(), bytes_max: TEXT_BYTES_MAX });
        }
        // First of all, since the fields of another schema would only seem wrong.
        validate::check_schema(text).map_err(|problem| error::from_problems(vec![problem], text, origin))?;
        let mut scenario: Scenario = toml::from_str(text).map_err(|error| error::from_toml(&error, text, origin))?;
        scenario.text = text.to_owned();
        scenario.origin = origin.to_owned();
        let problems = validate::validate(&scenario);
        if problems.is_empty() { Ok(scenario) } else { Err(error::from_problems(problems, text, origin)) }
    }

    /// Names of the built-in scenarios, in the order in which they are listed.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name)
    }

    /// The built-in scenarios, in the order in which they are listed.
    ///
    /// # Errors
    /// Where a built-in file is wrong: our own fault, and a test looks for it.
    pub fn builtin() -> Result<Vec<Scenario>, ScenarioError> {
        BUILTIN.iter().map(|(name, text)| Scenario::parse(text, &format!("built-in {name}"))).collect()
    }

    /// Finds a scenario by the name of a built-in one or by the path of a file. What contains a `/` or ends in `.toml` is a path.
    ///
    /// # Errors
    /// [`ScenarioError::NotFound`] names what is built in; [`ScenarioError::Unreadable`] where a file cannot be read; else as
    /// [`Scenario::parse`].
    pub fn find(name_or_path: &str) -> Result<Scenario, ScenarioError> {
        let is_path = name_or_path.contains('/') || name_or_path.ends_with(".toml");
        if !is_path && let Some((name, text)) = BUILTIN.iter().find(|(name, _)| *name == name_or_path) {
            return Scenario::parse(text, &format!("built-in {name}"));
        }
        let path = Path::new(name_or_path);
        if !is_path && !path.is_file() {
            let known: Vec<&str> = Scenario::builtin_names().collect();
            return Err(ScenarioError::NotFound { wanted: name_or_path.to_owned(), known: known.join(", ") });
        }
        let unreadable = |source| ScenarioError::Unreadable { path: path.to_owned(), source };
        let bytes = read_bounded(path).map_err(unreadable)?;
        if bytes.len() > TEXT_BYTES_MAX {
            return Err(ScenarioError::TooLarge { origin: name_or_path.to_owned(), bytes_max: TEXT_BYTES_MAX });
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| unreadable(std::io::Error::new(std::io::ErrorKind::InvalidData, "it is not UTF-8 text")))?;
        Scenario::parse(&text, name_or_path)
    }

    /// The text that was read.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where the text came from, as the user knows it.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The host of that name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }
}

/// Reads one byte more than is allowed, so that the caller can tell that a file is too large; never waits on what is no regular file.
fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(TEXT_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
pub(crate) mod tests;
