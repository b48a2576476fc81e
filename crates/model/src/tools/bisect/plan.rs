//! Which tiers can be loaded by themselves, and how, according to the web server's configuration.

use super::part::Part;
use crate::facts::Context;
use crate::facts::path::{Tier, configured_by};
use crate::observation::{ListenerAddress, NginxAsks, NginxConfig, NginxOwn};
use crate::output::message::Message;
use crate::output::report::PartKind;

/// What to do with a tier.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// Load it this way. Later steps may be other ways to load the same.
    Load(Part),
    /// It cannot be loaded, and why.
    Leave { tier: String, kind: PartKind, why: Message },
}

impl Step {
    /// The same as a part of a part, with the tier's name in the report of the whole. `None` if that report does not have it.
    pub(super) fn within(self, name: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        Some(match self {
            Self::Load(part) => Self::Load(Part { tier: name(&part.tier)?, is_inner: true, ..part }),
            Self::Leave { tier, kind, why } => Self::Leave { tier: name(&tier)?, kind, why },
        })
    }
}

/// The first tier's own content, and the servers that it calls. A server without others behind it is the whole itself.
pub(super) fn steps(ctx: &Context<'_>) -> Vec<Step> {
    let Some(tier) = ctx.path.tiers.first() else { return Vec::new() };
    let front = Front { ctx, tier, nginx: nginx(ctx, tier) };
    let mut steps = Vec::new();
    for behind in tier.upstreams.iter().map(|index| &ctx.path.tiers[*index]) {
        steps.extend(front.direct(behind));
        let further = behind.upstreams.iter().map(|index| &ctx.path.tiers[*index]);
        // If this server is loaded by itself, its own configuration shows more.
        steps.extend(further.map(|further| leave(&further.name, PartKind::Direct, unasked(behind, further))));
    }
    steps.extend(front.elsewhere());
    if steps.is_empty() { steps } else { front.own().into_iter().chain(steps).collect() }
}

fn nginx<'a>(ctx: &Context<'a>, tier: &Tier) -> Option<&'a NginxConfig> {
    tier.pids.iter().find_map(|pid| ctx.obs.servers.get(pid)?.nginx())
}

fn leave(tier: &str, kind: PartKind, why: Message) -> Step {
    Step::Leave { tier: tier.to_owned(), kind, why }
}

fn unasked(front: &Tier, tier: &Tier) -> Message {
    Message::new("bisect-unasked").with("front", front.name.as_str()).with("tier", tier.name.as_str())
}

/// The first tier, with its configuration where it is an nginx.
struct Front<'c, 'a> {
    ctx: &'c Context<'a>,
    tier: &'a Tier,
    nginx: Option<&'a NginxConfig>,
}

impl<'a> Front<'_, 'a> {
    fn part(&self, tier: &str, kind: PartKind, url: String) -> Part {
        let request = &self.ctx.obs.request;
        Part {
            tier: tier.to_owned(),
            kind,
            url,
            directory: None,
            endings: Vec::new(),
            answer_bytes: self.ctx.obs.load.as_ref().map_or(0, |load| load.received_bytes / load.requests.max(1)),
            pid: self.tier.pids.first().copied(),
            holders: Vec::new(),
            host: request.host_header(),
            fields: Vec::new(),
            keep_alive: None,
            is_inner: false,
            netns: request.client_netns,
        }
    }

    /// Content that it serves itself, each way to request it.
    fn own(&self) -> Vec<Step> {
        let (request, name) = (&self.ctx.obs.request, self.tier.name.as_str());
        let told = |id: &'static str| leave(name, PartKind::Own, Message::new(id).with("tier", name));
        let Some(nginx) = self.nginx else { return vec![told("bisect-no-configuration")] };
        let base = match request.unix.first() {
            Some(socket) => format!("{}:{socket}:", request.scheme),
            None => format!("{}://{}:{}", request.scheme, request.host, request.port),
        };
        let part = |own: &NginxOwn| Part {
            directory: own.directory.clone(),
            endings: own.endings.clone(),
            ..self.part(name, PartKind::Own, format!("{base}{}", own.path))
        };
        std::iter::once(told("bisect-no-own")).chain(nginx.own.iter().map(|own| Step::Load(part(own)))).collect()
    }

    fn asks(&self) -> impl Iterator<Item = &'a NginxAsks> {
        self.nginx.into_iter().flat_map(|nginx| &nginx.asks)
    }

    /// A tier behind the first one, with the first one's requests.
    fn direct(&self, behind: &Tier) -> Vec<Step> {
        let to = |asks: &'a NginxAsks| {
            Some((asks, asks.pass.servers.iter().find(|address| behind.is_named(self.ctx.obs, self.tier.netns, address))?))
        };
        let ways = self.asks().filter_map(to).map(|(asks, address)| self.asked(&behind.name, asks, address, &behind.pids));
        std::iter::once(leave(&behind.name, PartKind::Direct, unasked(self.tier, behind))).chain(ways).collect()
    }

    /// True if what the server's configuration says may be done in the place of whoever asks: root wrote it, or he himself. Another user's names servers that may refuse that
    /// user, with requests of his choice.
    fn is_trusted(&self) -> bool {
        let obs = self.ctx.obs;
        configured_by(obs, self.tier).into_iter().any(|uid| uid == 0 || obs.request.by_uid.is_none_or(|by| by == uid))
    }

    /// Servers that are called but not known to be on the path, such as those of other hosts; of an upstream block only the first.
    fn elsewhere(&self) -> Vec<Step> {
        let known =
            |address: &ListenerAddress| self.ctx.path.tiers.iter().any(|tier| tier.is_named(self.ctx.obs, self.tier.netns, address));
        let away = self.asks().filter(|asks| !asks.pass.servers.iter().any(known));
        let is_trusted = self.is_trusted();
        // A path may be that of a link to the socket of one of them.
        let reached: Vec<u32> = self.ctx.path.tiers.iter().flat_map(|tier| &tier.pids).copied().collect();
        let step = |asks: &NginxAsks| match asks.pass.servers.first() {
            Some(address) if !is_trusted => {
                leave(&address.to_string(), PartKind::Direct, Message::new("bisect-of-another-user").with("front", self.tier.name.as_str()))
            }
            Some(address) => self.asked(&address.to_string(), asks, address, &reached),
            None => {
                let origin = &asks.pass.origin;
                let why = Message::new("bisect-name").with("at", origin.to_string());
                leave(asks.pass.upstream.as_deref().unwrap_or(&asks.pass.kind), PartKind::Direct, why)
            }
        };
        away.map(step).collect()
    }

    fn asked(&self, name: &str, asks: &NginxAsks, address: &ListenerAddress, holders: &[u32]) -> Step {
        let told =
            |id: &'static str| leave(name, PartKind::Direct, Message::new(id).with("tier", name).with("kind", asks.pass.kind.as_str()));
        let base = match (&asks.unknown, base(asks, address)) {
            (Some(unknown), _) => return leave(name, PartKind::Direct, Message::new("bisect-unknown").with("unknown", unknown.as_str())),
            (None, _) if asks.tls => return told("bisect-tls"),
            (None, None) => return told("bisect-protocol"),
            (None, Some(base)) => base,
        };
        // A kept connection occupies a worker of a FastCGI pool. As many as the load has would leave most of them without a worker.
        let kept = asks.pass.reuses && asks.pass.kind == "proxy";
        Step::Load(Part {
            holders: holders.to_vec(),
            host: asks.host.clone(),
            fields: asks.fields.clone(),
            keep_alive: Some(kept),
            netns: self.tier.netns,
            ..self.part(name, PartKind::Direct, format!("{base}{}", asks.path_and_query))
        })
    }
}

/// The URL of a server up to its path; nothing for protocols that no load speaks.
fn base(asks: &NginxAsks, address: &ListenerAddress) -> Option<String> {
    let scheme = match asks.pass.kind.as_str() {
        "fastcgi" => "fcgi",
        "proxy" => "http",
        _ => return None,
    };
    Some(match address {
        ListenerAddress::Tcp(..) => format!("{scheme}://{address}"),
        ListenerAddress::Unix(path) => format!("{scheme}+unix:{path}:"),
    })
}
