//! Which part of a count of a whole network namespace can be this path's: the only place that says so. The kernel counts most of what it does to connections by namespace, and
//! other servers and programs share it.

use std::collections::{BTreeMap, BTreeSet};

use chokepoint_statistics::wilson;

use crate::facts::Context;
use crate::facts::path::Endpoint;
use crate::ledger::path_end;
use crate::observation::{Counters, Listener, ListenerAddress, NetnsId, NetnsView, RequestSocket, SocketAddress, TimeWaits};

/// The shortest life of a connection, seconds: the time that a core takes to set one up and to fail it (failed answers cost 27 to 46 us each in trials).
const LIFE_S_MIN: f64 = 27e-6;
/// Sightings of unread requests from which they are no chance.
const UNREAD_MIN: u64 = 3;
/// The 97.5 % quantile of the normal distribution.
const Z: f64 = 1.959_964;
/// Sightings that may have been missed where none was made (95 %: the rule of three; Hanley and Lippman-Hand 1983).
const UNSEEN_MOST: f64 = 3.0;

/// The connections of a namespace that are not the path's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Others {
    /// The most that other listeners can have accepted in the window; zero if nothing of them was seen.
    accepted: u64,
    /// The most that can have been made to other listeners and hosts.
    made: u64,
    /// The number that both together surely had (97.5 %).
    surely: u64,
    /// Sightings of new connections that listeners outside of the path accepted, and whether there are such listeners.
    elsewhere: (u64, bool),
}

impl Others {
    /// Everything that could have connections in the namespace beside the path.
    pub(crate) fn of(ctx: &Context<'_>, id: NetnsId, view: &NetnsView) -> Self {
        let seen = Seen::of(ctx, id, view);
        let (accepted, made) = (seen.accepted.most(&seen, ctx), seen.made.most(&seen, ctx));
        let opened = [OPENED, "Tcp.ActiveOpens"].map(|name| ctx.netstat_growth(view, name));
        let [passive, active] = opened.map(|count| count.unwrap_or(u64::MAX));
        // Of counters that were not read nothing is sure.
        let [surely_accepted, surely_made] = opened.map(|count| count.unwrap_or(0));
        Self {
            accepted: accepted.min(passive),
            made: made.min(active),
            surely: seen.accepted.met.surely(surely_accepted).saturating_add(seen.made.met.surely(surely_made)),
            elsewhere: (seen.elsewhere, seen.is_heard_elsewhere),
        }
    }

    /// True if they had none, as far as can be seen: what the namespace counts is the path's.
    pub(crate) fn had_none(self) -> bool {
        self.accepted == 0 && self.made == 0
    }

    /// True if none were made to anything but the path.
    pub(crate) fn made_none(self) -> bool {
        self.made == 0
    }

    /// The number that they surely had.
    pub(crate) fn surely(self) -> u64 {
        self.surely
    }

    /// True if all of a count can be theirs for more than chance: they surely had as many connections.
    pub(crate) fn account_for(self, count: u64) -> bool {
        self.surely >= count
    }

    /// Sightings of connections that listeners outside of the path accepted and did not keep, at most; zero if nothing else listens there.
    pub(crate) fn seen_elsewhere_most(self) -> f64 {
        let (seen, is_heard) = self.elsewhere;
        if is_heard { seen as f64 + UNSEEN_MOST } else { 0.0 }
    }

    /// The least of a count that is the path's.
    pub(crate) fn leave(self, count: u64) -> u64 {
        count.saturating_sub(self.accepted.saturating_add(self.made))
    }
}

/// Growth of a counter of a namespace where all of it is the path's. `None` if it was not read, or if others had connections there.
pub(crate) fn own_growth(ctx: &Context<'_>, id: NetnsId, name: &str) -> Option<u64> {
    ctx.netstat_growth(ctx.obs.netns.get(&id)?, name).filter(|_| ctx.others(id).had_none())
}

/// The share of the path's connections in what a namespace had to send again, as the sampled sockets show it; all of it if none of the others' shows any.
pub(crate) fn lost_share(ctx: &Context<'_>, id: NetnsId, view: &NetnsView) -> f64 {
    let earlier = Earlier::of(ctx, view);
    // By socket: what it had sent again when it was first seen, and when last; all of it only if it is known to have come in the window. A sample has a few of all
    // connections, so one that is new to it may be old.
    let mut sockets: BTreeMap<u64, (bool, u64, u64)> = BTreeMap::new();
    for (at_us, sample) in ctx.in_window(&view.tcp_samples) {
        for socket in sample {
            let is_own = || path_end(ctx, id, &SocketAddress::Tcp { local: socket.local, remote: socket.remote }).is_some();
            let before = if earlier.lacked(*at_us, socket.local, socket.remote) { 0 } else { socket.retransmitted };
            sockets.entry(socket.cookie).or_insert_with(|| (is_own(), before, before)).2 = socket.retransmitted;
        }
    }
    let again =
        |own: bool| sockets.values().filter(|seen| seen.0 == own).map(|(_, first, last)| last.saturating_sub(*first)).sum::<u64>() as f64;
    let (own, others) = (again(true), again(false));
    if others > 0.0 { own / (own + others) } else { 1.0 }
}

/// A complete reading of a namespace's sockets from the window's beginning.
struct Earlier(Option<(u64, BTreeSet<(Endpoint, Endpoint)>)>);

impl Earlier {
    fn of(ctx: &Context<'_>, view: &NetnsView) -> Self {
        let points = view.sockets.points();
        let begin = points.iter().rposition(|(at_us, _)| *at_us <= ctx.window_us.0).unwrap_or(0);
        let is_whole = |at_us: u64| !view.sockets_left_out.points().iter().any(|(at, left)| *at == at_us && !left.is_empty());
        let first = points.get(begin).filter(|(at_us, _)| is_whole(*at_us));
        let end = |address: &SocketAddress| match *address {
            SocketAddress::Tcp { local, remote } => Some((local, remote)),
            SocketAddress::Unix { .. } => None,
        };
        Self(first.map(|(at_us, all)| (*at_us, all.iter().filter_map(|socket| end(&socket.address)).collect())))
    }

    /// True if a connection that was seen at this time is known to have come since.
    fn lacked(&self, seen_us: u64, local: Endpoint, remote: Endpoint) -> bool {
        self.0.as_ref().is_some_and(|(at_us, sockets)| seen_us > *at_us && !sockets.contains(&(local, remote)))
    }
}

/// What was seen of one kind of the others' connections.
#[derive(Debug, Clone, Copy, Default)]
struct Sightings {
    /// New connections, each counted in each sample in which it was seen, and those in accept queues.
    seen: u64,
    /// Connections that are known to have ended in the window.
    ended: u64,
    met: Met,
}

/// New connections of one kind that the samples met, each once: the others', and all of the namespace.
#[derive(Debug, Clone, Copy, Default)]
struct Met {
    /// Those that were met once, younger than the time between two samples: each may stand for many that no sample met.
    quick: (u64, u64),
    /// Those that no sample could miss.
    stayed: (u64, u64),
}

impl Met {
    /// The number of connections that the others surely had (97.5 %) of so many that were opened: those that stayed, and of the rest at least the share that they have in those
    /// that were met by chance.
    fn surely(self, opened: u64) -> u64 {
        let (others, all) = self.quick;
        let (least, _) = wilson(others as f64 / all.max(1) as f64, all);
        let rest = opened.saturating_sub(self.stayed.1);
        self.stayed.0.saturating_add((least * rest as f64) as u64).min(opened)
    }
}

/// A connection that samples met.
struct Meeting {
    is_accepted: bool,
    is_others: bool,
    looks: u64,
    /// The shortest time since something came, microseconds.
    age_us: u64,
}

/// What was seen of the others.
#[derive(Debug, Default)]
struct Seen {
    accepted: Sightings,
    made: Sightings,
    /// Number of samples.
    looks: u64,
    /// Sightings of new connections that listeners outside of the path accepted, those of the path's own processes included.
    elsewhere: u64,
    /// True if there are such listeners.
    is_heard_elsewhere: bool,
}

impl Sightings {
    /// The most that there can have been, by the rule for rare events: each lived for at least [`LIFE_S_MIN`] and could have been met by each sample.
    fn most(self, seen: &Seen, ctx: &Context<'_>) -> u64 {
        if self.seen == 0 && self.ended == 0 {
            return 0;
        }
        if seen.looks == 0 {
            return u64::MAX;
        }
        let at_once = poisson_high(self.seen) / seen.looks as f64;
        ((at_once / LIFE_S_MIN * ctx.seconds()) as u64).saturating_add(self.ended)
    }
}

/// The largest mean with which chance gives so few events (97.5 %; Wilson and Hilferty's approximation of chi-square, 1931).
fn poisson_high(events: u64) -> f64 {
    let next = events as f64 + 1.0;
    next * (1.0 - 1.0 / (9.0 * next) + Z / (3.0 * next.sqrt())).powi(3)
}

/// Listeners of the path's own processes that are no place of it, such as the one of a status page: what is asked there, also by this program, nobody else has.
struct Beside<'a>(Vec<&'a Listener>);

impl<'a> Beside<'a> {
    fn of(ctx: &Context<'_>, view: &'a NetnsView) -> Self {
        let files = |pid: &u32| ctx.obs.processes.get(pid).into_iter().flat_map(|process| process.files.values());
        let held: BTreeSet<u64> =
            ctx.path.tiers.iter().flat_map(|tier| &tier.pids).flat_map(files).flat_map(|files| &files.sockets).copied().collect();
        Self(view.listeners.last().into_iter().flatten().filter(|listener| held.contains(&listener.inode)).collect())
    }

    /// True for either end of a connection to one of them.
    fn has(&self, address: &SocketAddress) -> bool {
        let SocketAddress::Tcp { local, remote } = *address else { return false };
        let other_end = SocketAddress::Tcp { local: remote, remote: local };
        self.0.iter().any(|listener| listener.accepts(address) || listener.accepts(&other_end))
    }
}

impl Seen {
    fn of(ctx: &Context<'_>, id: NetnsId, view: &NetnsView) -> Self {
        let mut seen = Self::default();
        let beside = Beside::of(ctx, view);
        let is_others = |address: &SocketAddress| path_end(ctx, id, address).is_none() && !beside.has(address);
        seen.meet(ctx, view, |address| (path_end(ctx, id, address).is_some(), beside.has(address)));
        let of_path = |inode: u64| ctx.path.tiers.iter().flat_map(|tier| &tier.listeners).any(|placed| placed.listener.inode == inode);
        let is_beside = |inode: u64| beside.0.iter().any(|own| own.inode == inode);
        let is_elsewhere = |listener: &&Listener| matches!(listener.address, ListenerAddress::Tcp(..)) && !of_path(listener.inode);
        seen.is_heard_elsewhere = view.listeners.last().into_iter().flatten().any(|listener| is_elsewhere(&listener));
        let is_other = |listener: &&Listener| is_elsewhere(listener) && !is_beside(listener.inode);
        let queued = ctx.in_window(&view.listeners).flat_map(|(_, listeners)| listeners.iter().filter(is_other));
        seen.accepted.seen += queued.map(|listener| u64::from(listener.accept_queue)).sum::<u64>();
        if let Some((first, last, _)) = ctx.around(&view.time_waits) {
            let ([accepted, made], [accepted_before, made_before]) = (ended(last, is_others), ended(first, is_others));
            seen.accepted.ended = accepted.saturating_sub(accepted_before);
            seen.made.ended = made.saturating_sub(made_before);
        }
        seen
    }

    /// Counts the new connections in the samples. `whose`: whether an address is of the path, and whether of a listener beside it.
    fn meet(&mut self, ctx: &Context<'_>, view: &NetnsView, whose: impl Fn(&SocketAddress) -> (bool, bool)) {
        let mut met: BTreeMap<u64, Meeting> = BTreeMap::new();
        for (at_us, sample) in ctx.in_window(&view.request_samples) {
            self.looks += 1;
            let age_us_max = at_us.saturating_sub(ctx.window_us.0);
            for socket in sample.sockets.iter().filter(|socket| is_fresh(socket, age_us_max)) {
                let (is_own, is_beside) = whose(&socket.address);
                let is_accepted = view.listeners.last().into_iter().flatten().any(|listener| listener.accepts(&socket.address));
                self.elsewhere += u64::from(!is_own && is_accepted);
                let is_others = !is_own && !is_beside;
                if is_others {
                    self.kind(is_accepted).seen += sample.weight(socket).ceil() as u64;
                }
                let age_us = socket.times.map_or(u64::MAX, |times| times.last_data_recv_ms.saturating_mul(1_000));
                let meeting = met.entry(socket.cookie).or_insert(Meeting { is_accepted, is_others, looks: 0, age_us });
                (meeting.looks, meeting.age_us) = (meeting.looks + 1, meeting.age_us.min(age_us));
            }
        }
        let between_us = (ctx.seconds() * 1e6) as u64 / self.looks.max(1);
        for meeting in met.into_values() {
            let met = &mut self.kind(meeting.is_accepted).met;
            let is_quick = meeting.looks == 1 && meeting.age_us < between_us;
            let (others, all) = if is_quick { (&mut met.quick.0, &mut met.quick.1) } else { (&mut met.stayed.0, &mut met.stayed.1) };
            *others += u64::from(meeting.is_others);
            *all += 1;
        }
    }

    /// The kind of a connection: accepted at a listener of the namespace, or made from it.
    fn kind(&mut self, is_accepted: bool) -> &mut Sightings {
        if is_accepted { &mut self.accepted } else { &mut self.made }
    }
}

/// True for a TCP connection that began to carry something in the window and has not carried much: one that is kept cannot be among those that ended.
fn is_fresh(socket: &RequestSocket, age_us_max: u64) -> bool {
    let is_young = |ms: u64| ms.saturating_mul(1_000) <= age_us_max;
    match (&socket.address, socket.times) {
        (SocketAddress::Unix { .. }, _) => false,
        (_, None) => true,
        (_, Some(times)) => times.data_segs_in.is_none_or(|count| count <= 1) && is_young(times.last_data_recv_ms),
    }
}

/// Sockets in TIME_WAIT that are not the path's: at the accepting side, and at the connecting one.
fn ended(waits: &TimeWaits, is_others: impl Fn(&SocketAddress) -> bool) -> [u64; 2] {
    let is_others = |local, remote| is_others(&SocketAddress::Tcp { local, remote });
    let accepted = waits.accepted.iter().filter(|group| is_others(group.local, (group.remote, 0)));
    let made = waits.dialled.iter().filter(|group| is_others((group.local, 0), group.remote));
    [accepted.map(|group| group.count).sum(), made.map(|group| group.count).sum()]
}

/// Counters of connections that a process closed while data was unread, or to which data came after that (RFC 2525, 2.17: the kernel resets them). Whoever sent
/// that data got no answer to it.
pub(crate) const CUT_OFF: [&str; 2] = [UNREAD, AFTERWARDS];
const UNREAD: &str = "TcpExt.TCPAbortOnClose";
const AFTERWARDS: &str = "TcpExt.TCPAbortOnData";
/// Counter of the connections that a namespace accepted.
const OPENED: &str = "Tcp.PassiveOpens";
/// Counter of connections that ended by a reset while they were established, at either end.
const RESET: &str = "Tcp.EstabResets";

/// The connections of [`CUT_OFF`] that lost data, given the growth of the counters. The kernel counts those that a program resets on purpose (SO_LINGER with no time, as
/// proxies do with their connections to servers) as if data had come afterwards (net/ipv4/tcp.c, `__tcp_close`). Each of these was established, as each was that had
/// unread data; one to which data comes after it was closed was not.
fn lost_data(grown: impl Fn(&str) -> Option<u64>) -> u64 {
    let (unread, afterwards) = (grown(UNREAD).unwrap_or(0), grown(AFTERWARDS).unwrap_or(0));
    let on_purpose = grown(RESET).map_or(0, |reset| reset.saturating_sub(unread));
    unread + afterwards.saturating_sub(on_purpose)
}

/// Connections of a namespace that ended without an answer to what they had sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CutOff {
    /// All of the namespace.
    pub(crate) count: u64,
    /// The number without the largest growth between two readings, if there are several: what is no single event, such as the end of a client.
    pub(crate) lasting: u64,
    /// The others, which may have been cut off as well.
    pub(crate) others: Others,
    /// What the namespace accepted.
    opened: u64,
    /// True if the server's own sockets show that it reads and answers nothing.
    is_own: bool,
}

impl CutOff {
    /// The least number of the path's.
    pub(crate) fn own(&self) -> u64 {
        self.leave(self.count)
    }

    /// The same of [`CutOff::lasting`].
    pub(crate) fn own_lasting(&self) -> u64 {
        self.leave(self.lasting)
    }

    fn leave(&self, count: u64) -> u64 {
        if self.is_own { count } else { self.others.leave(count) }
    }

    /// True if it is not known whose they were: others had connections, but not surely as many.
    pub(crate) fn is_unaccounted(&self) -> bool {
        !self.is_own && !self.others.account_for(self.count)
    }

    /// That number as a share of the accepted connections.
    pub(crate) fn own_share(&self) -> f64 {
        self.own() as f64 / self.opened.max(1) as f64
    }
}

/// True if requests were seen unread at the first tier, again and again, and neither an answer, nor a connection that ended as it should, nor a line of its log.
fn never_answers(ctx: &Context<'_>, id: NetnsId, view: &NetnsView) -> bool {
    let is_its = |address: &SocketAddress| path_end(ctx, id, address) == Some(0);
    let own = || ctx.in_window(&view.request_samples).flat_map(|(_, sample)| &sample.sockets).filter(|socket| is_its(&socket.address));
    let has_sent = |socket: &RequestSocket| socket.times.is_some_and(|times| !times.never_sent());
    let has_accepted = |socket: &RequestSocket| ctx.path.tiers.first().is_some_and(|first| first.accepts(&socket.address));
    let has_answered = own().any(|socket| has_accepted(socket) && has_sent(socket));
    let is_logged = || crate::facts::traffic::of(ctx).is_some_and(|traffic| traffic.requests > 0);
    let unread = own().filter(|socket| has_accepted(socket) && socket.receive_queue > 0).count() as u64;
    // Listeners are read more often.
    let queued: u64 = ctx.path.tiers.first().map_or(0, |first| ctx.queued(first).into_iter().sum());
    unread.max(queued) >= UNREAD_MIN && !has_answered && !have_ended(ctx, id, view) && !is_logged()
}

/// True if connections to the first tier are in TIME_WAIT at one of their ends: they ended as they should.
pub(crate) fn have_ended(ctx: &Context<'_>, id: NetnsId, view: &NetnsView) -> bool {
    let its = |local, remote| path_end(ctx, id, &SocketAddress::Tcp { local, remote }) == Some(0);
    view.time_waits.values().any(|waits| {
        waits.accepted.iter().any(|group| its(group.local, (group.remote, 0)))
            || waits.dialled.iter().any(|group| its((group.local, 0), group.remote))
    })
}

/// `None` if no counter of them was read.
pub(crate) fn cut_off(ctx: &Context<'_>, id: NetnsId) -> Option<CutOff> {
    let view = ctx.obs.netns.get(&id)?;
    let is_read = CUT_OFF.iter().any(|name| ctx.netstat_growth(view, name).is_some());
    let opened = ctx.netstat_growth(view, OPENED).filter(|_| is_read)?;
    let count = lost_data(|name| ctx.netstat_growth(view, name));
    let pairs = view.netstat.points().windows(2).filter(|pair| pair[1].0 > ctx.window_us.0 && pair[0].0 < ctx.window_us.1);
    let grown: Vec<u64> = pairs.map(|pair| lost_data(|name| growth(&pair[0].1, &pair[1].1, name))).collect();
    let once = grown.iter().max().copied().filter(|_| grown.len() > 1).unwrap_or(0);
    Some(CutOff { count, lasting: count.saturating_sub(once), others: ctx.others(id), opened, is_own: never_answers(ctx, id, view) })
}

fn growth(before: &Counters, after: &Counters, name: &str) -> Option<u64> {
    let of = |counters: &Counters| u64::try_from(*counters.get(name)?).ok();
    Some(of(after)?.saturating_sub(of(before)?))
}
