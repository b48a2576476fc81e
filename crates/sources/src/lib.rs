//! The only readers of the host. Each source is a thin reader of raw bytes and a pure parser, so that a recording replays through the same code.

pub mod assemble;
mod clock;
mod filter;
mod netlink;
pub mod netns;
pub mod observer;
mod packet;
pub mod redact;
mod reduce;
mod reduction;
mod room;
pub mod root;
mod route;
mod scope;
mod servers;
mod sock_diag;
pub mod table;
mod tcp_info;
mod text;
mod visibility;

pub use assemble::{assemble, assemble_recorded, place};
pub use netns::{Namespaces, NetnsError, NetnsRef};
pub use observer::{Cost, Costs, ObserveError, ObserveOptions, Observer, PathSoFar, Recent, Stop, UnderWay, descriptors_left_out};
pub use packet::{CaptureStartError, LivePacket, PacketRing};
pub use redact::redact;
pub use reduce::reduce;
pub use reduction::Reduction;
pub use room::{Overfull, ROOM_BYTES_MIN};
pub use root::Root;
pub use servers::counter::LogGrowth;
pub use servers::keeps::{ConfiguredKeeps, read_configured_keeps};
pub use servers::logs::named::NamedLog;
pub use servers::logs::urls::{GROUP_TIMES, GroupCounts};
pub use servers::logs::written::NOT_READ;
pub use servers::tail::{FollowedLog, LogTails, count_log};
pub use sock_diag::ports::{PortSearch, PortSocket, read_port_sockets, read_socket_programs};
pub use sock_diag::socket_files::{SocketRefusal, listening_socket};
pub use sock_diag::tcp::{TcpSocket, TcpSocketsRead, listening_namespaces, read_tcp_sockets};
pub use sock_diag::tcp_ends::{TcpEnds, TcpEndsRead, TcpTimeWait, read_tcp_time_waits};
pub use sock_diag::tcp_peer::{TcpPeer, TcpReading, TcpUsers};
pub use table::{Cadence, Items, Notes, Phase, ReadContext, Redact, ScopeKind, Source};
pub use tcp_info::{TCP_INFO_FIELDS, TcpInfo, TcpInfoField, TcpInfoPlace, read_congestion_control, read_tcp_info};
pub use text::host::usage::{HostUsage, HostUsages};
pub use text::process::workers::{WorkerUse, WorkerUses};

/// Sources that do not read text files.
const OTHERS: &[&Source] = &[
    &visibility::NAMESPACES,
    &visibility::PROCESSES,
    &netns::identity::NETNS,
    &sock_diag::listeners::LISTENERS,
    &sock_diag::sockets::SOCKETS,
    &sock_diag::time_wait::TIME_WAIT,
    &sock_diag::sample::TCP_INFO,
    &sock_diag::requests::REQUESTS,
    &packet::answers::ANSWERS,
    &route::LINKS,
    &route::QDISCS,
    &route::ADDRESSES,
    &filter::FILTER_RULES,
];

/// Every source. A new source is one file and one line in one of the three lists.
pub const SOURCES: &[&Source] = &joined::<{ READ_OF_ALL.len() + servers::ALL.len() }>(READ_OF_ALL, servers::ALL);

/// Sources of every host, namespace and process.
const READ_OF_ALL: &[&Source] = &joined::<{ OTHERS.len() + text::ALL.len() }>(OTHERS, text::ALL);

/// The source of this name.
pub fn source(name: &str) -> Option<&'static Source> {
    SOURCES.iter().find(|source| source.name == name).copied()
}

const fn joined<const N: usize>(first: &[&'static Source], second: &[&'static Source]) -> [&'static Source; N] {
    let mut all = [first[0]; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < first.len() { first[at] } else { second[at - first.len()] };
        at += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_plain() {
        let mut names: Vec<&str> = SOURCES.iter().map(|source| source.name).collect();
        for name in &names {
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
            assert!(!assemble::NO_READERS.contains(name), "{name} is no reader's name");
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SOURCES.len());
    }
}
