//! Unix connections that outlive a request. A unix socket has no times of data, so an idle connection looks like one in service.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::facts::Context;
use crate::observation::{ListenerAddress, NetnsId, RequestSample, TcpState};

/// The connections that existed longer than any request: in every sample, or for longer than the oldest request that their callers had under way at a sample.
/// Callers read a request before they send it on. `tiers`: the accepting tier of each connection; `oldest_ms`: for each sample, by tier, the age of the oldest
/// request that may be under way.
pub(super) fn kept_unix(
    ctx: &Context<'_>,
    id: NetnsId,
    samples: &[&(u64, RequestSample)],
    tiers: &HashMap<u64, usize>,
    oldest_ms: &[Vec<u64>],
) -> BTreeSet<u64> {
    let mut seen: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (index, (_, sample)) in samples.iter().enumerate() {
        let unix = sample.sockets.iter().filter(|socket| socket.times.is_none() && socket.state == TcpState::Established);
        unix.filter(|socket| socket.cookie != 0).for_each(|socket| seen.entry(socket.cookie).or_default().push(index));
    }
    let callers: Vec<Vec<usize>> = (0..ctx.path.tiers.len()).map(|tier| callers(ctx, id, tier)).collect();
    let is_older = |tier: usize, first: usize, index: usize| {
        // The moments of two reads differ a little: the connection surely existed from its second sample on.
        let there_ms = samples[index].0.saturating_sub(samples[first + 1].0) / 1_000;
        let oldest_ms = callers[tier].iter().map(|caller| oldest_ms[index][*caller]).max();
        samples[index].1.share >= 1.0 && oldest_ms.is_some_and(|oldest_ms| there_ms > oldest_ms)
    };
    let is_kept = |cookie: u64, indices: &[usize]| {
        let is_always_there = indices.len() == samples.len() && indices.len() > 1;
        let tier = tiers.get(&cookie);
        is_always_there || tier.is_some_and(|tier| indices.iter().skip(2).any(|index| is_older(*tier, indices[0], *index)))
    };
    seen.into_iter().filter(|(cookie, indices)| is_kept(*cookie, indices)).map(|(cookie, _)| cookie).collect()
}

/// The tiers that call this one. Empty if one of them accepts in another namespace or on unix sockets: the samples do not show the age of its requests.
fn callers(ctx: &Context<'_>, id: NetnsId, tier: usize) -> Vec<usize> {
    let tiers = &ctx.path.tiers;
    let callers: Vec<usize> = (0..tiers.len()).filter(|other| tiers[*other].upstreams.contains(&tier)).collect();
    let mut listeners = callers.iter().flat_map(|caller| &tiers[*caller].listeners);
    let are_here = listeners.all(|placed| placed.netns == id && matches!(placed.listener.address, ListenerAddress::Tcp(..)));
    if are_here { callers } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::TierId;
    use crate::facts::path::{Path, PlacedListener, Tier};
    use crate::observation::{Listener, Observation, RequestSocket, SocketAddress, UnixPeer};
    use crate::output::catalogue::Catalogue;

    const HERE: NetnsId = NetnsId(1);

    fn tier(id: u32, netns: NetnsId, address: ListenerAddress, upstreams: Vec<usize>) -> Tier {
        let listener = Listener { address, v6_only: false, inode: u64::from(id), accept_queue: 0, accept_queue_limit: 511, drops: None };
        Tier {
            id: TierId(id as usize),
            name: id.to_string(),
            netns,
            listeners: vec![PlacedListener { netns, listener }],
            pids: vec![id],
            children: Vec::new(),
            upstreams,
            configured: Vec::new(),
            supposed: Vec::new(),
            apart: Vec::new(),
        }
    }

    fn unix(cookie: u64) -> RequestSocket {
        RequestSocket {
            address: SocketAddress::Unix { path: Some("/run/app".into()), peer: UnixPeer::Unknown },
            cookie,
            state: TcpState::Established,
            inode: cookie,
            receive_queue: 0,
            send_queue: 0,
            times: None,
        }
    }

    /// Four samples, 200 ms apart: connection 1 is in all of them, 2 in all but the first, 3 in the last two.
    fn kept(path: &Path, share: f64, oldest_ms: u64) -> Vec<u64> {
        let (obs, words) = (Observation::default(), Catalogue::english());
        let sample = |sockets| RequestSample { share, sockets, ..RequestSample::default() };
        let there = [vec![unix(1)], vec![unix(1), unix(2)], vec![unix(1), unix(2), unix(3)], vec![unix(1), unix(2), unix(3)]];
        let samples: Vec<(u64, RequestSample)> =
            there.into_iter().enumerate().map(|(index, sockets)| (index as u64 * 200_000, sample(sockets))).collect();
        let tiers = [(1, 1), (2, 1), (3, 1)].into();
        let ctx = Context::new(&obs, path, &words);
        kept_unix(&ctx, HERE, &samples.iter().collect::<Vec<_>>(), &tiers, &vec![vec![oldest_ms, 0]; 4]).into_iter().collect()
    }

    #[test]
    fn a_unix_connection_older_than_every_request_is_kept() {
        let app = |id| tier(id, HERE, ListenerAddress::Unix("/run/app".to_owned()), Vec::new());
        let web = |netns| tier(0, netns, ListenerAddress::Tcp("0.0.0.0".parse().unwrap(), 80), vec![1]);
        let path = Path { tiers: vec![web(HERE), app(1)], ..Path::default() };
        assert_eq!(kept(&path, 1.0, 150), [1, 2], "the second one is there for 200 ms and more");
        assert_eq!(kept(&path, 1.0, 200), [1], "a request in front is as old");
        assert_eq!(kept(&path, 0.5, 0), [1], "an older one may not have been read");
        let elsewhere = Path { tiers: vec![web(NetnsId(2)), app(1)], ..Path::default() };
        assert_eq!(kept(&elsewhere, 1.0, 0), [1], "its callers' requests are not in these samples");
        let unix_in_front =
            Path { tiers: vec![tier(0, HERE, ListenerAddress::Unix("/run/web".to_owned()), vec![1]), app(1)], ..Path::default() };
        assert_eq!(kept(&unix_in_front, 1.0, 0), [1], "how old a caller's requests are is not known");
    }
}
