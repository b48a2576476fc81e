//! `listen`: its address in every form, its socket options, and the sockets that nginx makes of all `listen` directives together.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::settings::Occurrence;
use crate::{Node, Origin, Setting, SourceLine, quantity};

/// nginx's default listen() backlog on Linux (NGX_LISTEN_BACKLOG). The kernel limits it to net.core.somaxconn.
const BACKLOG_DEFAULT: i64 = 511;
/// Most addresses of all `listen` directives together. Only port ranges can have this many.
const SOCKET_COUNT_MAX: usize = 65_536;

/// An address to listen on or to connect to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// An address and port. The unspecified address means every address.
    Ip(IpAddr, u16),
    /// A unix socket's path. In kernel tables an abstract one begins with `@`; it cannot be configured.
    Unix(String),
    /// A name to resolve, and a port.
    Name(String, u16),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(IpAddr::V6(address), port) => write!(f, "[{address}]:{port}"),
            Self::Ip(IpAddr::V4(address), port) => write!(f, "{address}:{port}"),
            Self::Unix(path) => write!(f, "unix:{path}"),
            Self::Name(name, port) => write!(f, "{name}:{port}"),
        }
    }
}

impl Address {
    /// Parses `1.2.3.4:80`, `[::1]:80`, `name:80`, `*:80`, `80`, `unix:/path`, with or without a port. A bare number is a port only in `listen`.
    pub(crate) fn parse(text: &str, default_port: Option<u16>, is_listen: bool) -> Option<Self> {
        if let Some(path) = text.strip_prefix("unix:") {
            return (!path.is_empty()).then(|| Self::Unix(path.to_owned()));
        }
        let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        if let Some(rest) = text.strip_prefix('[') {
            let (host, after) = rest.split_once(']')?;
            let address = host.parse::<Ipv6Addr>().ok()?;
            let port = match after.strip_prefix(':') {
                Some(port) => parse_port(port)?,
                None if after.is_empty() => default_port?,
                None => return None,
            };
            return Some(Self::Ip(IpAddr::V6(address), port));
        }
        if is_listen && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some(Self::Ip(any, parse_port(text)?));
        }
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, parse_port(port)?),
            None => (text, default_port?),
        };
        match host {
            "" => None,
            "*" => is_listen.then_some(Self::Ip(any, port)),
            _ => match host.parse::<Ipv4Addr>() {
                Ok(address) => Some(Self::Ip(IpAddr::V4(address), port)),
                Err(_) => is_name(host).then(|| Self::Name(host.to_ascii_lowercase(), port)),
            },
        }
    }

    /// True if it means every address of its family.
    pub fn is_wildcard(&self) -> bool {
        matches!(self, Self::Ip(address, _) if address.is_unspecified())
    }

    /// The port, if it has one.
    pub fn port(&self) -> Option<u16> {
        match self {
            Self::Ip(_, port) | Self::Name(_, port) => Some(*port),
            Self::Unix(_) => None,
        }
    }
}

/// A host name or the name of an upstream.
fn is_name(host: &str) -> bool {
    !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || matches!(c, '/' | '[' | ']' | '$' | '*' | '?' | '{' | '}' | '='))
}

fn parse_port(text: &str) -> Option<u16> {
    u16::try_from(quantity::number(text)?).ok().filter(|port| *port > 0)
}

/// The address of one `listen`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenAddress {
    /// The address, with the first port of a range.
    pub address: Address,
    /// The last port of a range (nginx 1.15.10).
    pub last_port: Option<u16>,
}

impl ListenAddress {
    /// The address with each port of the range.
    pub fn each(&self) -> impl Iterator<Item = Address> + '_ {
        let last = self.last_port.or(self.address.port());
        let ports = self.address.port().zip(last).map(|(first, last)| first..=last);
        let unix = ports.is_none().then(|| self.address.clone());
        ports.into_iter().flatten().map(|port| with_port(&self.address, port)).chain(unix)
    }
}

fn with_port(address: &Address, port: u16) -> Address {
    match address {
        Address::Ip(ip, _) => Address::Ip(*ip, port),
        Address::Name(name, _) => Address::Name(name.clone(), port),
        Address::Unix(path) => Address::Unix(path.clone()),
    }
}

/// A backlog as passed to listen(2). The limit of the queue is the smaller of it and net.core.somaxconn; a negative one means somaxconn.
pub type Backlog = i64;

/// `so_keepalive=`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SoKeepalive {
    /// The kernel's settings.
    On,
    /// Off, even if the kernel's default is on.
    Off,
    /// TCP_KEEPIDLE and TCP_KEEPINTVL in seconds, and TCP_KEEPCNT. The kernel's values apply where absent.
    Tuned(Option<u64>, Option<u64>, Option<u64>),
}

/// One `listen` directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// Its position.
    pub place: Option<SourceLine>,
    /// The address that it listens on.
    pub address: ListenAddress,
    /// `default_server` or `default`.
    pub default_server: bool,
    /// `ssl`.
    pub ssl: bool,
    /// `http2`.
    pub http2: bool,
    /// `quic` or `http3`.
    pub quic: bool,
    /// `udp` (stream).
    pub udp: bool,
    /// `proxy_protocol`.
    pub proxy_protocol: bool,
    /// `backlog=`.
    pub backlog: Option<Backlog>,
    /// `rcvbuf=` in bytes.
    pub rcvbuf: Option<u64>,
    /// `sndbuf=` in bytes.
    pub sndbuf: Option<u64>,
    /// `fastopen=`, the length of the queue.
    pub fastopen: Option<u64>,
    /// `deferred`: TCP_DEFER_ACCEPT.
    pub deferred: bool,
    /// `reuseport`: one socket, and so one accept queue, per worker.
    pub reuseport: bool,
    /// `ipv6only=`; on by default.
    pub ipv6only: Option<bool>,
    /// `so_keepalive=`.
    pub so_keepalive: Option<SoKeepalive>,
    /// True if it has a socket option (`backlog=`, `reuseport`, `bind`, ...). Such options may be given only once for an address, and
    /// they give the address its own socket.
    pub has_socket_options: bool,
}

impl Listen {
    fn on(address: ListenAddress) -> Self {
        Self {
            place: None,
            address,
            default_server: false,
            ssl: false,
            http2: false,
            quic: false,
            udp: false,
            proxy_protocol: false,
            backlog: None,
            rcvbuf: None,
            sndbuf: None,
            fastopen: None,
            deferred: false,
            reuseport: false,
            ipv6only: None,
            so_keepalive: None,
            has_socket_options: false,
        }
    }

    /// The address of a server without a `listen`, if nginx runs as root.
    pub(crate) fn implicit() -> Self {
        Self::on(ListenAddress { address: Address::Ip(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 80), last_port: None })
    }

    /// Parses the directive (`ngx_http_core_listen`, `ngx_stream_core_listen`). The error is the sentence for the user.
    pub(crate) fn parse(directive: &Occurrence, default_port: Option<u16>) -> Result<Self, String> {
        let invalid = |text: &str| format!("invalid address \"{text}\" in \"listen\"");
        let address = parse_address(directive.arg(0), default_port).ok_or_else(|| invalid(directive.arg(0)))?;
        let mut listen = Self { place: Some(directive.place.clone()), ..Self::on(address) };
        for option in directive.args.iter().skip(1) {
            listen.take(option).ok_or_else(|| format!("invalid parameter \"{option}\" in \"listen\""))?;
        }
        Ok(listen)
    }

    /// Parses one option; `None` if it is unknown or its value is invalid.
    fn take(&mut self, option: &str) -> Option<()> {
        match option {
            "default_server" | "default" => self.default_server = true,
            "ssl" => self.ssl = true,
            "http2" | "spdy" => self.http2 = true,
            "quic" | "http3" => self.quic = true,
            "proxy_protocol" => self.proxy_protocol = true,
            "udp" => self.udp = true,
            _ => {
                self.take_socket_option(option)?;
                self.has_socket_options = true;
            }
        }
        Some(())
    }

    fn take_socket_option(&mut self, option: &str) -> Option<()> {
        match option {
            "bind" | "multipath" => {}
            "deferred" => self.deferred = true,
            "reuseport" => self.reuseport = true,
            _ => {
                let (name, value) = option.split_once('=')?;
                match name {
                    "backlog" => self.backlog = Some(i64::try_from(quantity::number(value)?).ok().filter(|backlog| *backlog > 0)?),
                    "rcvbuf" => self.rcvbuf = Some(quantity::size_bytes(value)?),
                    "sndbuf" => self.sndbuf = Some(quantity::size_bytes(value)?),
                    "fastopen" => self.fastopen = Some(quantity::number(value)?),
                    "ipv6only" => self.ipv6only = Some(quantity::flag(value)?),
                    "so_keepalive" => self.so_keepalive = Some(parse_so_keepalive(value)?),
                    "setfib" | "accept_filter" => {}
                    _ => return None,
                }
            }
        }
        Some(())
    }
}

fn parse_address(text: &str, default_port: Option<u16>) -> Option<ListenAddress> {
    // A range is two numbers in the place of a port: `8000-8010`, `*:8000-8010`. Names may contain hyphens and digits too.
    let ports = text.rsplit(':').next().unwrap_or(text);
    let is_range =
        !text.starts_with("unix:") && ports.split_once('-').is_some_and(|(a, b)| quantity::number(a).and(quantity::number(b)).is_some());
    if !is_range {
        return Address::parse(text, default_port, true).map(|address| ListenAddress { address, last_port: None });
    }
    let (first, last) = text.rsplit_once('-')?;
    let last = parse_port(last)?;
    let address = Address::parse(first, default_port, true)?;
    (address.port()? <= last).then_some(ListenAddress { address, last_port: Some(last) })
}

fn parse_so_keepalive(value: &str) -> Option<SoKeepalive> {
    if let Some(on) = quantity::flag(value) {
        return Some(if on { SoKeepalive::On } else { SoKeepalive::Off });
    }
    let mut parts = value.split(':');
    let mut part = |seconds: bool| -> Option<Option<u64>> {
        match parts.next()? {
            "" => Some(None),
            text if seconds => Some(Some(quantity::time_ms(text)? / 1000)),
            text => Some(Some(quantity::number(text)?)),
        }
    };
    let tuned = (part(true)?, part(true)?, part(false)?);
    if parts.next().is_some() || tuned == (None, None, None) {
        return None;
    }
    Some(SoKeepalive::Tuned(tuned.0, tuned.1, tuned.2))
}

/// One address that nginx answers on, merged from every `listen` for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenSocket {
    /// The address.
    pub address: Address,
    /// False for an address without its own socket, because a wildcard socket with the same port accepts its connections.
    pub bound: bool,
    /// The backlog passed to listen().
    pub backlog: Setting<Backlog>,
    /// One socket per worker.
    pub reuseport: bool,
    /// TCP_DEFER_ACCEPT.
    pub deferred: bool,
    /// TLS on this address.
    pub ssl: bool,
    /// `ipv6only=off` was given for an IPv6 wildcard, so it accepts IPv4 connections too.
    pub takes_ipv4: bool,
    /// UDP (stream, QUIC), which has no accept queue.
    pub udp: bool,
    /// Index of the server that answers if no name matches.
    pub default_server: usize,
    /// Indexes of its servers, in configuration order.
    pub servers: Vec<usize>,
    /// Its `listen` directives, in the same order.
    pub listens: Vec<SourceLine>,
    /// The directive that has the socket's options. nginx refuses options for one address in two directives.
    pub options_at: Option<SourceLine>,
}

impl ListenSocket {
    /// The directive to which a socket option (`backlog=`) can be added; `None` for a server without a `listen`.
    pub fn option_node(&self) -> Option<Node> {
        self.options_at.as_ref().or(self.listens.first()).map(|place| place.node)
    }
}

/// The sockets of all `listen` directives of servers, in order of first use.
pub(crate) fn sockets<'a>(servers: impl Iterator<Item = &'a [Listen]>) -> Vec<ListenSocket> {
    let mut sockets: Vec<ListenSocket> = Vec::new();
    let mut by_address: BTreeMap<(Address, bool), usize> = BTreeMap::new();
    let mut has_default = Vec::new();
    for (server, listens) in servers.enumerate() {
        for listen in listens {
            for address in listen.address.each() {
                if sockets.len() >= SOCKET_COUNT_MAX {
                    break;
                }
                let udp = listen.udp || listen.quic;
                let index = *by_address.entry((address.clone(), udp)).or_insert_with(|| {
                    sockets.push(ListenSocket::new(address, udp, server));
                    has_default.push(false);
                    sockets.len() - 1
                });
                sockets[index].join(listen, server, &mut has_default[index]);
            }
        }
    }
    // The wildcard of its family and port serves an address without its own options (ngx_http_init_listening).
    let wildcards: BTreeSet<(bool, u16, bool)> =
        sockets.iter().filter(|socket| socket.address.is_wildcard()).filter_map(family_and_port).collect();
    for socket in sockets.iter_mut().filter(|socket| !socket.address.is_wildcard() && socket.options_at.is_none()) {
        socket.bound = !family_and_port(socket).is_some_and(|key| wildcards.contains(&key));
    }
    sockets
}

fn family_and_port(socket: &ListenSocket) -> Option<(bool, u16, bool)> {
    match socket.address {
        Address::Ip(ip, port) => Some((ip.is_ipv6(), port, socket.udp)),
        _ => None,
    }
}

impl ListenSocket {
    fn new(address: Address, udp: bool, server: usize) -> Self {
        Self {
            address,
            bound: true,
            backlog: Setting { value: BACKLOG_DEFAULT, origin: Origin::Default },
            reuseport: false,
            deferred: false,
            ssl: false,
            takes_ipv4: false,
            udp,
            default_server: server,
            servers: Vec::new(),
            listens: Vec::new(),
            options_at: None,
        }
    }

    fn join(&mut self, listen: &Listen, server: usize, has_default: &mut bool) {
        if listen.default_server && !std::mem::replace(has_default, true) {
            self.default_server = server;
        }
        if self.servers.last() != Some(&server) {
            self.servers.push(server);
        }
        self.ssl |= listen.ssl;
        self.reuseport |= listen.reuseport;
        self.deferred |= listen.deferred;
        self.takes_ipv4 |= listen.ipv6only == Some(false) && matches!(self.address, Address::Ip(IpAddr::V6(ip), _) if ip.is_unspecified());
        let Some(place) = &listen.place else { return };
        self.listens.push(place.clone());
        if let Some(backlog) = listen.backlog {
            self.backlog = Setting::set(backlog, place.clone());
        }
        if listen.has_socket_options && self.options_at.is_none() {
            self.options_at = Some(place.clone());
        }
    }
}
