//! Which tiers can be loaded by themselves, and how: what the web server's configuration tells of the request.

use super::Part;
use crate::message::Message;
use crate::observation::{ListenerAddress, NginxAsks, NginxConfig, ServerConfig, ServerView};
use crate::path::{Tier, names_listener};
use crate::report::PartKind;
use crate::stations::Context;

/// What is to be done about a tier.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// It is loaded so; the steps behind it may be other ways to do the same.
    Load(Part),
    /// It cannot be, and why.
    Leave { tier: String, kind: PartKind, why: Message },
}

impl Step {
    /// The same with the tier's name in another report; nothing where that does not know it.
    pub(super) fn renamed(self, name: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        Some(match self {
            Self::Load(part) => Self::Load(Part { tier: name(&part.tier)?, ..part }),
            Self::Leave { tier, kind, why } => Self::Leave { tier: name(&tier)?, kind, why },
        })
    }
}

/// The first tier's own answers, and the tiers that it calls. A server without any behind it is the whole itself.
pub(super) fn steps(ctx: &Context<'_>) -> Vec<Step> {
    let Some(first) = ctx.path.tiers.first().filter(|tier| !tier.upstreams.is_empty()) else { return Vec::new() };
    let nginx = nginx(ctx, first);
    let mut steps = own(ctx, first, nginx);
    for tier in first.upstreams.iter().map(|index| &ctx.path.tiers[*index]) {
        steps.extend(direct(ctx, first, tier, nginx));
        let further = tier.upstreams.iter().map(|index| &ctx.path.tiers[*index]);
        // Where this one is loaded, its own configuration tells more.
        steps.extend(further.map(|behind| leave(behind, PartKind::Direct, unasked(tier, behind))));
    }
    steps
}

fn nginx<'a>(ctx: &Context<'a>, tier: &Tier) -> Option<&'a NginxConfig> {
    let configs = tier.pids.iter().filter_map(|pid| ctx.obs.servers.get(pid).and_then(|view: &ServerView| view.config.last()));
    configs.into_iter().find_map(|config| if let ServerConfig::Nginx(nginx) = config { Some(nginx) } else { None })
}

fn leave(tier: &Tier, kind: PartKind, why: Message) -> Step {
    Step::Leave { tier: tier.name.clone(), kind, why }
}

fn unasked(front: &Tier, tier: &Tier) -> Message {
    Message::new("bisect-unasked").with("front", front.name.as_str()).with("tier", tier.name.as_str())
}

/// What the first tier answers itself, each way to ask for it.
fn own(ctx: &Context<'_>, tier: &Tier, nginx: Option<&NginxConfig>) -> Vec<Step> {
    let request = &ctx.obs.request;
    let Some(nginx) = nginx else {
        return vec![leave(tier, PartKind::Own, Message::new("bisect-no-configuration").with("tier", tier.name.as_str()))];
    };
    let base = match request.unix.first() {
        Some(name) => format!("{}:{name}:", request.scheme),
        None => format!("{}://{}:{}", request.scheme, request.host, request.port),
    };
    let part = |own: &crate::observation::NginxOwn| {
        Step::Load(Part {
            tier: tier.name.clone(),
            kind: PartKind::Own,
            url: format!("{base}{}", own.path),
            directory: own.directory.clone(),
            answer_bytes: answer_bytes(ctx),
            pid: tier.pids.first().copied(),
            host: request.host_header(),
            fields: Vec::new(),
            keep_alive: None,
            netns: request.client_netns,
        })
    };
    let mut steps = vec![leave(tier, PartKind::Own, Message::new("bisect-no-own").with("tier", tier.name.as_str()))];
    steps.extend(nginx.own.iter().map(part));
    steps
}

/// Bytes of an answer on average.
fn answer_bytes(ctx: &Context<'_>) -> u64 {
    ctx.obs.load.as_ref().map_or(0, |load| load.received_bytes / load.requests.max(1))
}

/// A tier behind the first one, asked as that asks it.
fn direct(ctx: &Context<'_>, front: &Tier, tier: &Tier, nginx: Option<&NginxConfig>) -> Vec<Step> {
    let named = |address: &&ListenerAddress| {
        tier.listeners.iter().any(|placed| {
            let view = ctx.obs.netns.get(&placed.netns);
            view.is_some_and(|view| names_listener(view, placed.netns == front.netns, &placed.listener, address))
        })
    };
    let asks: Vec<(&NginxAsks, &ListenerAddress)> =
        nginx.iter().flat_map(|nginx| &nginx.asks).filter_map(|asks| Some((asks, asks.pass.servers.iter().find(named)?))).collect();
    let mut steps = vec![leave(tier, PartKind::Direct, unasked(front, tier))];
    for (asks, address) in asks {
        let told = |id: &'static str| {
            leave(tier, PartKind::Direct, Message::new(id).with("tier", tier.name.as_str()).with("kind", asks.pass.kind.as_str()))
        };
        steps.push(match (&asks.unknown, scheme(asks, address)) {
            (Some(unknown), _) => leave(tier, PartKind::Direct, Message::new("bisect-unknown").with("unknown", unknown.as_str())),
            (None, _) if asks.tls => told("bisect-tls"),
            (None, None) => told("bisect-protocol"),
            (None, Some(base)) => Step::Load(Part {
                tier: tier.name.clone(),
                kind: PartKind::Direct,
                url: format!("{base}{}", asks.path_and_query),
                directory: None,
                answer_bytes: answer_bytes(ctx),
                pid: tier.pids.first().copied(),
                host: asks.host.clone(),
                fields: asks.fields.clone(),
                keep_alive: Some(asks.pass.reuses),
                netns: front.netns,
            }),
        });
    }
    steps
}

/// The URL of a server up to its path; nothing for protocols that no load speaks.
fn scheme(asks: &NginxAsks, address: &ListenerAddress) -> Option<String> {
    let scheme = match asks.pass.kind.as_str() {
        "fastcgi" => "fcgi",
        "proxy" => "http",
        _ => return None,
    };
    Some(match address {
        ListenerAddress::Tcp(ip, port) if ip.is_ipv6() => format!("{scheme}://[{ip}]:{port}"),
        ListenerAddress::Tcp(ip, port) => format!("{scheme}://{ip}:{port}"),
        ListenerAddress::Unix(path) => format!("{scheme}+unix:{path}:"),
    })
}
