//! TLS handshakes that take much of the limiting time: waste if the server refuses to resume sessions, otherwise the clients' doing or a trade-off.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::hot::{Hot, Sight, TLS, WorkJudgement};
use crate::facts::path::Tier;
use crate::facts::profile::{ProfileShare, TLS_HANDSHAKE, TLS_SIGNATURE, is_of};
use crate::facts::{Context, GOOD_MIN};
use crate::judge::finding::Evidence;
use crate::observation::load::TlsLoad;
use crate::observation::{NginxTlsSessions, ProfilePart, SocketAddress};
use crate::output::message::Message;
use crate::output::report::Confidence;

/// Upper bound of the CPU time for encrypting a byte. AES-128-GCM took 3.4 ns without hardware instructions and 0.3 ns with them (openssl-speed(1) on a core
/// of this decade).
const BYTE_CPU_S: f64 = 5e-9;
/// Upper bound of the CPU time for each request, whatever its size: two records, one each way. Their ciphers take 1 us of it; the rest is the library around
/// them.
const REQUEST_CPU_S: f64 = 20e-6;
/// Upper bound of the CPU time for the key exchange, which a resumed TLS 1.3 handshake does as well: two operations on X25519 or P-256, of which slow cores
/// do 7,000 per second (openssl-speed(1)); 68 us on the cores of docs/measuring.md.
const EXCHANGE_CPU_S: f64 = 300e-6;
/// Share of the requests on a connection of their own from which handshakes can be what TLS spends its time on.
const CONNECTIONS_SHARE_MIN: f64 = 0.2;

/// Judges whose doing the handshakes are.
pub(super) fn judge(sight: &Sight<'_, '_>, hot: &Hot, share: ProfileShare) -> Option<WorkJudgement> {
    let ctx = sight.ctx;
    // Signatures are the innermost functions of stacks that often cannot be unwound to their handshake.
    let unsent = not_for_bytes(sight, |_| true).filter(|unsent| unsent.value > share.value);
    let mut judged = WorkJudgement::of(hot, unsent.unwrap_or(share));
    if unsent.is_some() {
        judged.proofs.push(proof(Message::new("evidence-handshakes-unsent"), "load generator"));
    }
    let Some(sessions) = ctx.nginx_of(sight.tier).and_then(|nginx| nginx.tls_sessions.as_ref()) else { return Some(judged) };
    let load = ctx.obs.load.as_ref().filter(|_| ctx.path.is_first(sight.tier)).and_then(|load| load.tls);
    let place = [&sessions.tickets.origin, &sessions.cache.origin].into_iter().find(|origin| !origin.file.is_empty());
    let place = place.map_or_else(|| "nginx, ngx_http_ssl_module".to_owned(), ToString::to_string);
    let id = if sessions.are_resumed() { "evidence-sessions-resumed" } else { "evidence-sessions-refused" };
    judged.proofs.push(proof(Message::new(id).with("cache", sessions.cache.value.as_str()), &place));
    judged.proofs.extend(load.map(counted));
    if sessions.are_resumed() {
        if load.is_some_and(|load| load.handshakes.resumed > load.handshakes.full) {
            judged.explanation = "finding-tls-handshake-hot-explanation-resumed";
            judged.is_reason = false;
        }
        return Some(judged);
    }
    if let Some(why) = asked_for(sessions) {
        judged.proofs.push(proof(Message::new(why), &place));
        return Some(judged);
    }
    Some(refused_for_nothing(sight, sessions, load, judged))
}

/// For a server that refuses resumption although nobody asked it to: waste, as far as its clients would resume.
fn refused_for_nothing(sight: &Sight<'_, '_>, sessions: &NginxTlsSessions, load: Option<TlsLoad>, told: WorkJudgement) -> WorkJudgement {
    let ctx = sight.ctx;
    let mut proofs = Vec::new();
    let (again, confidence) = match (&ctx.obs.load, load) {
        (Some(_), Some(load)) if load.offers_sessions && load.handshakes.resumed == 0 => (1.0, Confidence::High),
        (Some(_), _) => return told,
        (None, _) => {
            let Some((again, seen)) = returning(ctx, sight.tier) else { return told };
            let text = Message::new("evidence-sessions-returning").with("share", again * 100.0).with("seen", seen as f64);
            proofs.push(proof(text, "sock_diag(7)"));
            (again, Confidence::Medium)
        }
    };
    let Some(spared) = spared(sight, sessions, &mut proofs) else { return told };
    let wasted = WorkJudgement {
        could_go: spared.times(again),
        is_wasted: true,
        confidence,
        title: "finding-tls-handshake-hot-title-refused",
        explanation: "finding-tls-handshake-hot-explanation-refused",
        proofs: Vec::new(),
        ..told
    };
    if !wasted.is_sure() {
        return told;
    }
    WorkJudgement { proofs: told.proofs.into_iter().chain(proofs).collect(), ..wasted }
}

/// What resumed sessions would certainly save: signatures, seen by their functions, and from broken stacks the part that neither bytes nor key exchanges
/// explain.
fn spared(sight: &Sight<'_, '_>, sessions: &NginxTlsSessions, proofs: &mut Vec<Evidence>) -> Option<ProfileShare> {
    let ctx = sight.ctx;
    let signed = sight.share(|part| is_of(part, TLS_HANDSHAKE) && is_of(part, TLS_SIGNATURE))?;
    let text = Message::new("evidence-sessions-signed").with("share", signed.value * 100.0);
    let text = text.with("low", signed.low * 100.0).with("high", signed.high * 100.0);
    proofs.push(Evidence::new(text, sight.profiled.source(), Some(signed.value)));
    let broken = not_for_bytes(sight, |part| !is_of(part, TLS_HANDSHAKE)).filter(|_| sessions.has_quick_curves);
    let Some((broken, load)) = broken.zip(ctx.obs.load.as_ref()) else { return Some(signed) };
    let exchanges = load.connections as f64 * EXCHANGE_CPU_S / sight.limiting.time_s(load.duration_us as f64 / 1e6);
    let rest = less(broken, exchanges);
    if rest.value > 0.0 {
        proofs.push(proof(Message::new("evidence-sessions-rest").with("us", EXCHANGE_CPU_S * 1e6), "openssl-speed(1)"));
    }
    Some(signed.plus(rest))
}

/// Why a server was told to refuse resumption; `None` if sessions are not stored merely by default.
fn asked_for(sessions: &NginxTlsSessions) -> Option<&'static str> {
    if sessions.verifies_clients {
        return Some("evidence-sessions-verified");
    }
    (!sessions.cache.origin.file.is_empty()).then_some("evidence-sessions-forbidden")
}

/// What the load offered and what it got.
fn counted(load: TlsLoad) -> Evidence {
    let id = if load.offers_sessions { "evidence-sessions-offered" } else { "evidence-sessions-unoffered" };
    let text = Message::new(id).with("full", load.handshakes.full).with("resumed", load.handshakes.resumed);
    proof(text, "load generator")
}

/// The wanted TLS share of the limiting time, minus what the bytes sent can explain, if most requests open a connection. The rest must be handshakes. `None`
/// if that is not known, and of a load without TLS: what its server spends in such libraries is its own (passwords, signatures).
fn not_for_bytes(sight: &Sight<'_, '_>, wanted: impl Fn(&ProfilePart) -> bool) -> Option<ProfileShare> {
    let is_spoken = sight.ctx.obs.request.scheme == "https";
    let load = sight.ctx.obs.load.as_ref().filter(|_| is_spoken && sight.ctx.path.is_first(sight.tier))?;
    let opened = load.connections as f64 >= CONNECTIONS_SHARE_MIN * load.requests as f64;
    let all = sight.share(|part| part.layer == TLS && wanted(part)).filter(|_| opened)?;
    let bytes = load.received_bytes.saturating_add(load.sent_bytes) as f64;
    let explained = sealing_s(bytes, load.requests as f64);
    Some(less(all, explained / sight.limiting.time_s(load.duration_us as f64 / 1e6)))
}

/// The CPU time that so many bytes of so many requests take at most, once the connections are there, seconds.
pub(super) fn sealing_s(bytes: f64, requests: f64) -> f64 {
    bytes * BYTE_CPU_S + requests * REQUEST_CPU_S
}

/// A share minus a part of the whole that is certainly something else.
pub(super) fn less(share: ProfileShare, part: f64) -> ProfileShare {
    let less = |share: f64| (share - part).max(0.0);
    ProfileShare { value: less(share.value), low: less(share.low), high: less(share.high), ..share }
}

/// The smallest share of a tier's connections that came from addresses with an earlier connection, and how many connections were seen. As many as an address
/// had at once may all be its first ones. `None` if too few were seen.
fn returning(ctx: &Context<'_>, tier: &Tier) -> Option<(f64, usize)> {
    let view = ctx.obs.netns.get(&tier.netns)?;
    // By address: its ports, and the largest number of them at once.
    let mut seen: BTreeMap<IpAddr, (BTreeSet<u16>, usize)> = BTreeMap::new();
    for sockets in view.sockets.values() {
        let mut now: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for socket in sockets.iter().filter(|socket| tier.accepts(&socket.address)) {
            let SocketAddress::Tcp { remote: (ip, port), .. } = socket.address else { continue };
            seen.entry(ip).or_default().0.insert(port);
            *now.entry(ip).or_default() += 1;
        }
        for (ip, count) in now {
            let most = &mut seen.entry(ip).or_default().1;
            *most = count.max(*most);
        }
    }
    let all: usize = seen.values().map(|(ports, _)| ports.len()).sum();
    let first: usize = seen.values().map(|(_, most)| most).sum();
    let is_enough = u64::try_from(all).is_ok_and(|all| all >= GOOD_MIN);
    is_enough.then(|| (all.saturating_sub(first) as f64 / all as f64, all))
}

fn proof(text: Message, source: &str) -> Evidence {
    Evidence::new(text, source, None)
}
