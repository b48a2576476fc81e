//! The parts of a HAProxy configuration that bear on throughput, in the model's form.

use std::net::IpAddr;

use chokepoint_config::haproxy::{Address, Bind, Haproxy, Proxy, Server, section_of};
use chokepoint_config::{Setting as Read, SourceLine};
use chokepoint_model::change::{ServerKind, ServerSetting};
use chokepoint_model::observation::{
    LimitOf, LimitScope, ListenerAddress, Origin, Request, StatedConfig, StatedLimit, StatedListen, StatedPass, StatedRefusal,
};

use super::super::super::origin::{origin, setting};
use super::super::super::room::{ConfigRoom, stated_limit_bytes, stated_listen_bytes, stated_pass_bytes, stated_refusal_bytes};
use super::limit;

/// Status of a request that waited for a server for too long (src/stream.c, sess_update_st_con_tcp and its like).
const QUEUE_STATUS: u16 = 503;

/// The configuration for this request.
pub(in crate::servers::config) fn config(
    read: &Haproxy,
    files: Vec<(String, i64)>,
    request: &Request,
    room: &mut ConfigRoom,
) -> Result<StatedConfig, String> {
    let fronts = asked(read, request);
    let ways = fronts.as_ref().and_then(|fronts| leads_to(read, fronts));
    let backs: Option<Vec<&Proxy>> = fronts.as_ref().map(|fronts| fronts.iter().flat_map(|front| read.behind(front)).collect());
    // What a filter or script calls is not known, so that it may be any.
    let calls_others = fronts.iter().flatten().any(|front| front.calls_others);
    let is_asked = |back: &Proxy| match backs.as_ref()?.iter().any(|asked| std::ptr::eq(*asked, back)) {
        false if calls_others => None,
        is_asked => Some(is_asked),
    };
    let mut stated = StatedConfig {
        file: files.first().map(|(path, _)| path.clone()).unwrap_or_default(),
        files,
        threads: read.global.threads().map(|threads| setting(threads, |threads| threads)),
        leads_to: ways.filter(|_| !calls_others),
        ..StatedConfig::default()
    };
    stated.limits.extend(of_server(read));
    for front in read.proxies.iter().filter(|proxy| proxy.is_front()) {
        let is_asked = fronts.as_ref().map(|fronts| fronts.iter().any(|asked| std::ptr::eq(*asked, front)));
        stated.limits.extend(of_front(front, is_asked));
        stated.refusals.extend(refusals(front, is_asked));
        for listen in front.binds.iter().flat_map(|bind| listens(front, bind)) {
            room.take(stated_listen_bytes(&listen))?;
            stated.listens.push(listen);
        }
    }
    for back in &read.proxies {
        if !back.is_front() {
            stated.refusals.extend(refusals(back, is_asked(back)));
        }
        for server in back.servers.iter().filter(|server| !server.is_disabled()) {
            let address = address(&server.address);
            let pass = StatedPass {
                to: name(back, server),
                address,
                is_asked: is_asked(back),
                is_backup: server.is_backup(),
                origin: at(&server.place),
            };
            room.take(stated_pass_bytes(&pass))?;
            stated.passes.push(pass);
            stated.limits.extend(of_upstream(back, server, is_asked(back)));
        }
    }
    stated.limits.iter().try_for_each(|limit| room.take(stated_limit_bytes(limit)))?;
    stated.refusals.iter().try_for_each(|refusal| room.take(stated_refusal_bytes(refusal)))?;
    Ok(stated)
}

fn at(place: &SourceLine) -> Origin {
    Origin { file: place.file.to_string(), line: place.line }
}

fn name(back: &Proxy, server: &Server) -> String {
    format!("{}/{}", back.name, server.name)
}

/// The address of a socket. Names are not resolved.
fn address(address: &Address) -> Option<ListenerAddress> {
    match address {
        Address::Ip(ip, port) => Some(ListenerAddress::Tcp(*ip, *port)),
        Address::Unix(path) => Some(ListenerAddress::Unix(path.clone())),
        Address::Name(..) | Address::Unknown => None,
    }
}

fn listens<'a>(front: &'a Proxy, bind: &'a Bind) -> impl Iterator<Item = StatedListen> + 'a {
    let backlog = bind.backlog().or_else(|| front.backlog()).map(|backlog| setting(backlog, |backlog| backlog));
    let of = section_of(front);
    let known = bind.addresses.iter().filter_map(address);
    known.map(move |address| StatedListen { address, of: of.clone(), backlog: backlog.clone(), origin: at(&bind.place) })
}

/// The frontends that accept connections to the addresses asked for. `None` if one of these is none of this server's: it may have been translated on the way.
fn asked<'a>(read: &'a Haproxy, request: &Request) -> Option<Vec<&'a Proxy>> {
    let fronts = || read.proxies.iter().filter(|proxy| proxy.is_front());
    let mut found: Vec<&Proxy> = Vec::new();
    let mut add = |accepts: &dyn Fn(&Address) -> bool| {
        let before = found.len();
        let is_one = |front: &&Proxy| front.binds.iter().flat_map(|bind| &bind.addresses).any(accepts);
        let all: Vec<&Proxy> = fronts().filter(is_one).collect();
        found.extend(&all);
        found.len() > before
    };
    if !request.unix.is_empty() {
        let is_it = |address: &Address| matches!(address, Address::Unix(path) if request.unix.contains(path));
        return add(&is_it).then_some(found);
    }
    for asked in &request.addresses {
        // The kernel prefers a listener of the very address to one of all addresses.
        let is_own = |address: &Address| matches!(address, Address::Ip(ip, port) if ip.to_canonical() == asked.to_canonical() && *port == request.port);
        let is_any = |address: &Address| matches!(address, Address::Ip(ip, port) if ip.is_unspecified() && takes(*ip, *asked) && *port == request.port);
        if !add(&is_own) && !add(&is_any) {
            return None;
        }
    }
    (!found.is_empty()).then_some(found)
}

/// True if a listener of all addresses of one family gets connections to this address: one of IPv6 may get both.
fn takes(any: IpAddr, asked: IpAddr) -> bool {
    any.is_ipv6() || asked.to_canonical().is_ipv4()
}

/// The addresses of the servers behind these frontends. `None` if that of one is not known.
fn leads_to(read: &Haproxy, fronts: &[&Proxy]) -> Option<Vec<ListenerAddress>> {
    let servers = fronts.iter().flat_map(|front| read.behind(front)).flat_map(|back| &back.servers);
    let mut all = servers.map(|server| address(&server.address)).collect::<Option<Vec<_>>>()?;
    all.sort_unstable();
    all.dedup();
    Some(all)
}

/// The setting of a limit.
fn change(section: &str, line: String, limit: &str) -> Option<ServerSetting> {
    Some(ServerSetting::Limit { server: ServerKind::Haproxy, section: section.to_owned(), line, limit: limit.to_owned() })
}

fn of_server(read: &Haproxy) -> Vec<StatedLimit> {
    let limit = |of: LimitOf, found: Read<u64>, name: &str| StatedLimit {
        setting: name.to_owned(),
        line: name.to_owned(),
        change: change("global", String::new(), name),
        ..limit(LimitScope::Server, of, &found)
    };
    let all = read.global.maxconn().map(|found| limit(LimitOf::Connections, found, "maxconn"));
    let rate = read.global.sessions_per_s().map(|found| limit(LimitOf::ConnectionRate, found, "maxsessrate"));
    all.into_iter().chain(rate).collect()
}

fn of_front(front: &Proxy, is_asked: Option<bool>) -> Vec<StatedLimit> {
    let all: Vec<ListenerAddress> = front.binds.iter().flat_map(|bind| &bind.addresses).filter_map(address).collect();
    let limit = |of: LimitOf, found: Read<u64>, (name, line): (&str, String), at: Vec<ListenerAddress>| StatedLimit {
        setting: name.to_owned(),
        owner: front.name.clone(),
        change: change(&section_of(front), String::new(), name),
        line,
        at,
        is_asked,
        ..limit(LimitScope::Listener, of, &found)
    };
    let mut limits = Vec::new();
    limits.extend(front.maxconn().map(|found| limit(LimitOf::Connections, found, ("maxconn", "maxconn".to_owned()), all.clone())));
    let rate = "rate-limit sessions";
    limits.extend(front.sessions_per_s().map(|found| limit(LimitOf::ConnectionRate, found, (rate, rate.to_owned()), all.clone())));
    for bind in &front.binds {
        // Each socket has the limit for itself.
        let own =
            bind.maxconn().into_iter().flat_map(|found| bind.addresses.iter().filter_map(address).map(move |one| (found.clone(), one)));
        limits.extend(own.map(|(found, one)| {
            let line = format!("bind {one} ... maxconn");
            let of_line = change(&section_of(front), format!("bind {}", bind.written), "maxconn");
            StatedLimit { change: of_line, ..limit(LimitOf::Connections, found, ("maxconn", line), vec![one]) }
        }));
    }
    limits
}

fn refusals(proxy: &Proxy, is_asked: Option<bool>) -> impl Iterator<Item = StatedRefusal> + '_ {
    let stated = proxy.refusals.iter().filter_map(|refusal| Some((refusal, refusal.status?)));
    stated.map(move |(refusal, status)| StatedRefusal { rule: refusal.rule.clone(), status, is_asked, origin: at(&refusal.place) })
}

fn of_upstream(back: &Proxy, server: &Server, is_asked: Option<bool>) -> Option<StatedLimit> {
    let found = server.maxconn().filter(|_| server.count == 1)?;
    // It may stand in a line for several servers.
    let is_own = origin(&found.origin) == at(&server.place);
    let line =
        if is_own { format!("server {} {} ... maxconn", server.name, server.address) } else { "default-server ... maxconn".to_owned() };
    let of = if back.is_http() { LimitOf::Requests } else { LimitOf::Connections };
    Some(StatedLimit {
        least: server.minconn().map(|least| least.value).filter(|least| *least < found.value),
        setting: "maxconn".to_owned(),
        owner: name(back, server),
        change: change(&section_of(back), format!("server {}", server.name), "maxconn"),
        line,
        at: address(&server.address).into_iter().collect(),
        is_asked,
        gives_up_ms: back.queue_timeout_ms().map(|time| setting(time, |ms| ms)),
        gives_up_status: back.is_http().then_some(QUEUE_STATUS),
        ..limit(LimitScope::Upstream, of, &found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use chokepoint_config::haproxy::Tree;

    const SHOP: &str = "global\n maxconn 4000\ndefaults\n mode http\n timeout connect 5s\nfrontend www\n bind 10.0.0.2:80\n maxconn 100\n default_backend app\n\
        frontend other\n bind :80\n use_backend slow if TRUE\nbackend app\n server a 127.0.0.1:8081 maxconn 2\nbackend slow\n server s 127.0.0.1:8082 maxconn 3\n";

    fn stated(text: &str, ip: &str, port: u16) -> StatedConfig {
        let mut disk = |path: &str| vec![(path.to_owned(), Ok(text.to_owned()))];
        let read = Haproxy::of(&Tree::load(&["/h.cfg"], &mut disk).unwrap()).unwrap();
        let request = Request { port, addresses: vec![ip.parse().unwrap()], ..Request::default() };
        config(&read, vec![("/h.cfg".to_owned(), 5)], &request, &mut ConfigRoom::whole()).unwrap()
    }

    fn ways(text: &str, ip: &str, port: u16) -> Option<Vec<String>> {
        stated(text, ip, port).leads_to.map(|ways| ways.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn requests_reach_the_servers_of_their_own_frontend() {
        assert_eq!(ways(SHOP, "10.0.0.2", 80).unwrap(), ["127.0.0.1:8081"]);
        assert_eq!(ways(SHOP, "10.0.0.3", 80).unwrap(), ["127.0.0.1:8082"]);
        assert_eq!(ways(SHOP, "10.0.0.3", 81), None, "translated on the way");
        assert_eq!(ways(&SHOP.replace("use_backend slow", "use_backend %[path]"), "10.0.0.3", 80).unwrap().len(), 2);
        assert_eq!(ways(&SHOP.replace("8082", "8082\n server t app.internal:80"), "10.0.0.3", 80), None, "a name may be any address");
        assert_eq!(ways(&SHOP.replace("bind :80", "bind :80\n filter spoe engine x"), "10.0.0.3", 80), None, "it calls another server");
    }

    #[test]
    fn each_limit_has_its_line_and_whom_it_holds_for() {
        let read = stated(SHOP, "10.0.0.2", 80);
        let told = |limit: &StatedLimit| {
            let at: Vec<String> = limit.at.iter().map(ToString::to_string).collect();
            format!(
                "{:?} {} {} {} {:?} line {} {:?}",
                limit.scope, limit.owner, limit.line, limit.value, at, limit.origin.line, limit.is_asked
            )
        };
        assert_eq!(
            read.limits.iter().map(told).collect::<Vec<_>>(),
            [
                "Server  maxconn 4000 [] line 2 Some(true)",
                "Listener www maxconn 100 [\"10.0.0.2:80\"] line 8 Some(true)",
                "Upstream app/a server a 127.0.0.1:8081 ... maxconn 2 [\"127.0.0.1:8081\"] line 14 Some(true)",
                "Upstream slow/s server s 127.0.0.1:8082 ... maxconn 3 [\"127.0.0.1:8082\"] line 16 Some(false)",
            ]
        );
        assert_eq!(read.limits[2].gives_up_ms.as_ref().map(|time| time.value), Some(5_000));
        assert_eq!((read.listens.len(), read.passes.len()), (2, 2));
        let refusing = SHOP
            .replace("frontend other\n", "frontend other\n http-request deny deny_status 429 if x\n")
            .replace("\nbackend app\n", "\nbackend app\n http-request tarpit\n");
        let told = |refusal: &StatedRefusal| (refusal.rule.clone(), refusal.status, refusal.origin.line, refusal.is_asked);
        let (deny, tarpit) = ("http-request deny".to_owned(), "http-request tarpit".to_owned());
        let refusals = stated(&refusing, "10.0.0.2", 80).refusals;
        assert_eq!(refusals.iter().map(told).collect::<Vec<_>>(), [(deny, 429, 11, Some(false)), (tarpit, 500, 15, Some(true))]);
    }
}
