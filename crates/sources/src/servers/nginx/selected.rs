//! How an nginx configuration handles the diagnosed request: what it asks of upstreams, and what it answers itself.

use chokepoint_config::Origin;
use chokepoint_config::nginx::{Address, Candidate, ClientRequest, Destination, Http, LocalAddress, Nginx, Selection, Step, Target};
use chokepoint_model::observation::{
    ListenerAddress, NginxAsks, NginxDebugLog, NginxOwn, NginxTlsSessions, Origin as ModelOrigin, Request, Setting as ModelSetting,
};

use super::passes::{addresses, clamped, pass_to};
use crate::servers::origin::{origin, setting};
use crate::servers::room::{ConfigRoom, debug_log_bytes, field_bytes};

/// Most passes to list, the likeliest first.
const ASKS_MAX: usize = 8;
/// Most answers of its own to list.
const OWN_MAX: usize = 16;

/// The local addresses of a request; none for FastCGI, which is behind every web server. Of several names of one unix socket, the one in the configuration.
pub(super) fn locals(http: &Http, request: &Request) -> Vec<LocalAddress> {
    if request.is_fastcgi() {
        return Vec::new();
    }
    let mut locals: Vec<LocalAddress> = request.addresses.iter().map(|ip| LocalAddress::Ip(*ip, request.port)).collect();
    let sockets = request.unix.iter().map(|name| LocalAddress::Unix(name.clone()));
    locals.extend(sockets.filter(|local| http.select(local, &request.host_header(), "/").is_some()).take(1));
    locals
}

/// The local address of the request, and the part of the configuration that responds. If the request's address was translated on the way, it is none of this
/// server's. Then all of the server's addresses must lead to the same server block.
fn selection<'a>(http: &'a Http, request: &Request) -> Option<(LocalAddress, Selection<'a>)> {
    let (host, path) = (request.host_header(), request.path_and_query());
    let at = |local: LocalAddress| http.select(&local, &host, path).map(|selection| (local, selection));
    if let Some(found) = locals(http, request).into_iter().find_map(at) {
        return Some(found);
    }
    let sockets = http.sockets.iter().filter(|socket| !socket.udp && !request.is_fastcgi());
    let mut all = sockets.filter_map(|socket| match &socket.address {
        Address::Ip(ip, port) => at(LocalAddress::Ip(*ip, *port)),
        Address::Unix(path) => at(LocalAddress::Unix(path.clone())),
        Address::Name(..) => None,
    });
    let first = all.next()?;
    all.all(|(_, other)| other.server.place == first.1.server.place).then_some(first)
}

/// The addresses that the requests asked for may be passed to. `None` if that is not known. A URL whose host is an address names a listener, any server block of it; traffic
/// that is watched at a URL without a path is all of what the server block takes.
pub(super) fn leads_to(nginx: &Nginx, request: &Request, room: &mut ConfigRoom) -> Result<Option<Vec<ListenerAddress>>, String> {
    let header = request.host_header();
    let host = (!is_any_host(request)).then_some(header.as_str());
    let path = Some(request.path_and_query()).filter(|path| request.loaded || *path != "/");
    passed_to(nginx, request, (host, path), room)
}

/// The same of all requests that come to the same listener, whatever their host and path.
pub(super) fn listener_leads_to(nginx: &Nginx, request: &Request, room: &mut ConfigRoom) -> Result<Option<Vec<ListenerAddress>>, String> {
    passed_to(nginx, request, (None, None), room)
}

/// The addresses that requests with this host and path (any, if there is none) may be passed to by the listener of `request`.
fn passed_to(
    nginx: &Nginx,
    request: &Request,
    (host, path): (Option<&str>, Option<&str>),
    room: &mut ConfigRoom,
) -> Result<Option<Vec<ListenerAddress>>, String> {
    let Some(http) = &nginx.http else { return Ok(None) };
    let header = request.host_header();
    let takes_it = |local: &LocalAddress| http.select(local, &header, "/").is_some();
    let locals: Vec<LocalAddress> = locals(http, request).into_iter().filter(takes_it).collect();
    let mut reached: Vec<ListenerAddress> = Vec::new();
    for local in &locals {
        let Some(passes) = http.reach(local, host, path) else { return Ok(None) };
        for (pass, settings) in passes {
            if !is_known(http, &pass.target) {
                return Ok(None);
            }
            let passes = pass_to(nginx, Some(http), settings, pass, room)?;
            reached.extend(passes.into_iter().flat_map(|pass| pass.servers));
        }
    }
    reached.sort();
    reached.dedup();
    // What comes back to this server takes another way through it.
    let is_own = |address: &ListenerAddress| http.sockets.iter().any(|socket| comes_back(address, &socket.address, request));
    Ok(Some(reached).filter(|reached| !locals.is_empty() && !reached.iter().any(is_own)))
}

/// The server blocks, by their places in the http block, that may answer the requests asked for. `None` if that is not known.
pub(in crate::servers) fn servers_asked(nginx: &Nginx, request: &Request) -> Option<Vec<usize>> {
    let http = nginx.http.as_ref()?;
    let header = request.host_header();
    let mut asked = Vec::new();
    for local in locals(http, request) {
        let Some(selection) = http.select(&local, &header, "/") else { continue };
        if is_any_host(request) {
            asked.extend(&selection.socket.servers);
            continue;
        }
        let answering = std::iter::once(selection.server).chain(selection.servers_possible);
        asked.extend(answering.filter_map(|server| http.servers.iter().position(|other| std::ptr::eq(other, server))));
    }
    (!asked.is_empty()).then_some(asked)
}

/// True if requests of any host are asked for: those to a listener.
fn is_any_host(request: &Request) -> bool {
    !request.loaded && request.sent_host.is_none() && names_a_listener(&request.host)
}

fn names_a_listener(host: &str) -> bool {
    host == "localhost" || host.is_empty() || host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok()
}

/// True if all addresses of a target are literal.
fn is_known(http: &Http, target: &Target) -> bool {
    match target {
        Target::Address(address) => !addresses(address).is_empty(),
        Target::Upstream(name) => http.upstream(name).is_some_and(|upstream| {
            let used = || upstream.servers.iter().filter(|server| !server.down);
            used().next().is_some() && used().all(|server| !addresses(&server.address).is_empty())
        }),
        Target::Variable(_) => false,
    }
}

/// True if a server with this socket may take what is passed to an address.
fn comes_back(to: &ListenerAddress, socket: &Address, request: &Request) -> bool {
    addresses(socket).iter().any(|own| match (own, to) {
        (ListenerAddress::Tcp(own, own_port), ListenerAddress::Tcp(ip, port)) => {
            let is_here = own == ip || (own.is_unspecified() && (ip.is_loopback() || request.addresses.contains(ip)));
            own_port == port && is_here
        }
        (own, to) => own == to,
    })
}

/// The requests to upstreams for the request, the likeliest first.
pub(super) fn asks(nginx: &Nginx, request: &Request, room: &mut ConfigRoom) -> Result<Vec<NginxAsks>, String> {
    let Some((local, selection)) = nginx.http.as_ref().and_then(|http| selection(http, request)) else { return Ok(Vec::new()) };
    let host = request.host_header();
    let scheme = request.scheme.split('+').next().unwrap_or_default();
    let client = ClientRequest { scheme, host: &host, path_and_query: request.path_and_query(), local: &local };
    // Passes that are used only after an error or on a condition do not belong to this request.
    let is_way = |step: &Step| matches!(step, Step::TryFiles(..) | Step::Index(_) | Step::Rewrite(..));
    let candidates = selection.candidates();
    let asked = candidates.iter().filter(|candidate| candidate.via.iter().all(is_way)).take(ASKS_MAX);
    let mut found = Vec::new();
    for candidate in asked {
        found.extend(of_candidate(nginx, &selection, candidate, &client, room)?);
    }
    Ok(found)
}

fn of_candidate(
    nginx: &Nginx,
    selection: &Selection<'_>,
    candidate: &Candidate<'_>,
    client: &ClientRequest<'_>,
    room: &mut ConfigRoom,
) -> Result<Vec<NginxAsks>, String> {
    let asked = candidate.upstream_request(selection, client);
    let made = |pass| {
        let asks = NginxAsks { pass, tls: candidate.pass.tls, ..NginxAsks::default() };
        match &asked {
            None => asks,
            Some(Err(why)) => NginxAsks { unknown: Some(why.to_string()), ..asks },
            Some(Ok(asked)) => {
                NginxAsks { path_and_query: asked.path_and_query.clone(), host: asked.host.clone(), fields: asked.fields.clone(), ..asks }
            }
        }
    };
    let passes = pass_to(nginx, nginx.http.as_ref(), candidate.settings, candidate.pass, room)?;
    let fields = asked.iter().flatten().flat_map(|asked| &asked.fields).map(|(name, value)| field_bytes(name, value));
    room.take(passes.len().saturating_mul(fields.sum()))?;
    Ok(passes.into_iter().map(made).collect())
}

/// The answers of nginx itself at the same address and for the same host.
pub(super) fn own(nginx: &Nginx, request: &Request) -> Vec<NginxOwn> {
    let selected = nginx.http.as_ref().and_then(|http| selection(http, request));
    let answers = selected.map(|(_, selection)| selection.own_answers()).unwrap_or_default();
    answers
        .into_iter()
        .take(OWN_MAX)
        .map(|own| NginxOwn { path: own.path, directory: own.directory, endings: own.endings.into_iter().map(str::to_owned).collect() })
        .collect()
}

/// The debug logs of the request.
pub(super) fn debug_logs(nginx: &Nginx, request: &Request, room: &mut ConfigRoom) -> Result<Vec<NginxDebugLog>, String> {
    let selected = nginx.http.as_ref().and_then(|http| selection(http, request)).map(|(_, selection)| selection);
    let mut found = Vec::new();
    for log in nginx.debug_logs(selected.as_ref()) {
        let debug_log = NginxDebugLog {
            to: log.to,
            levels: log.levels.to_string(),
            quiet: log.quiet.to_string(),
            is_memory: log.destination == Destination::Memory,
            origin: origin(&Origin::Set(log.place)),
        };
        room.take(debug_log_bytes(&debug_log))?;
        found.push(debug_log);
    }
    Ok(found)
}

/// The origin of the `rewrite_log on` that is in force for the request, if its lines are logged.
pub(super) fn rewrite_log(nginx: &Nginx, request: &Request) -> Option<ModelOrigin> {
    let (_, selection) = selection(nginx.http.as_ref()?, request)?;
    nginx.rewrite_log(&selection).map(|place| origin(&Origin::Set(place)))
}

/// The level at which responses to the request are compressed, if it is set.
pub(super) fn gzip_level(nginx: &Nginx, request: &Request) -> Option<ModelSetting<u32>> {
    let (_, selection) = selection(nginx.http.as_ref()?, request)?;
    selection.gzip_level().map(|level| setting(level, clamped))
}

/// How clients of the request can resume TLS sessions.
pub(super) fn tls_sessions(nginx: &Nginx, request: &Request) -> Option<NginxTlsSessions> {
    let http = nginx.http.as_ref().filter(|_| request.scheme.split('+').next() == Some("https"))?;
    let (_, selection) = selection(http, request)?;
    let found = selection.tls_sessions(http)?;
    let (tickets, cache) = (setting(found.tickets, |on| on), setting(found.cache, |words| words));
    let (verifies_clients, has_quick_curves) = (found.verifies_clients, found.has_quick_curves);
    Some(NginxTlsSessions { tickets, cache, verifies_clients, has_quick_curves })
}

#[cfg(test)]
mod tests {
    use super::*;
    use chokepoint_config::Resolved;
    use chokepoint_config::nginx::{Tree, Version};

    #[test]
    fn the_server_blocks_of_a_request_are_known_or_not() {
        let http = "server { listen 80; server_name a.example; }\nserver { listen 80; server_name b.example; }\n\
            server { listen 8080; }\nserver { listen 10.0.0.2:80; server_name c.example; }";
        let text = format!("events {{}}\nhttp {{\n{http}\n}}\n");
        let mut resolve = |path: &str| -> Vec<Resolved> { vec![(path.to_owned(), Ok(text.clone()))] };
        let nginx = Nginx::of(&Tree::load("/nginx.conf", None, &mut resolve).unwrap(), Version::FALLBACK);
        let asked = |host: &str, address: &str, port: u16, loaded: bool| {
            let addresses = vec![address.parse().unwrap()];
            servers_asked(
                &nginx,
                &Request { host: host.to_owned(), port, addresses, loaded, scheme: "http".to_owned(), ..Request::default() },
            )
        };
        assert_eq!(asked("b.example", "10.0.0.7", 80, false), Some(vec![1]));
        assert_eq!(asked("10.0.0.7", "10.0.0.7", 80, true), Some(vec![0]), "the default one answers");
        assert_eq!(asked("10.0.0.7", "10.0.0.7", 80, false), Some(vec![0, 1]), "a listener that is watched takes any host");
        assert_eq!(asked("a.example", "10.0.0.2", 80, true), Some(vec![3]));
        assert_eq!(asked("127.0.0.1", "127.0.0.1", 8080, true), Some(vec![2]));
        assert_eq!(asked("a.example", "10.0.0.7", 443, true), None, "its address was translated on the way");
    }

    fn steps_of(main: &str, http: &str, server: &str) -> (Vec<(String, String, u32)>, Option<u32>) {
        let text = format!("{main}\nevents {{}}\nhttp {{\n{http}\nserver {{\nlisten 80;\n{server}\n}}\n}}\n");
        let mut resolve = |path: &str| -> Vec<Resolved> { vec![(path.to_owned(), Ok(text.clone()))] };
        let nginx = Nginx::of(&Tree::load("/nginx.conf", None, &mut resolve).unwrap(), Version::FALLBACK);
        let found = debug_logs(&nginx, &request("http://10.0.0.2/a"), &mut ConfigRoom::whole()).unwrap();
        let rewrites = rewrite_log(&nginx, &request("http://10.0.0.2/a")).map(|origin| origin.line);
        (found.into_iter().map(|log| (log.levels, log.quiet, log.origin.line)).collect(), rewrites)
    }

    #[test]
    fn the_level_of_compression_is_known_where_it_is_set_and_in_force() {
        let level = |server: &str| gzip_level(&nginx(server), &request("http://10.0.0.2/a/b")).map(|level| level.value);
        assert_eq!(level("gzip on; gzip_comp_level 9;"), Some(9));
        assert_eq!(level("gzip on; gzip_comp_level 9; location /a/ { gzip_comp_level 2; }"), Some(2));
        for none in
            ["gzip_comp_level 9;", "gzip on;", "gzip off; gzip_comp_level 9;", "gzip on; gzip_comp_level 9; location /a/ { gzip off; }"]
        {
            assert_eq!(level(none), None, "{none}");
        }
    }

    #[test]
    fn debug_logs_are_found_if_they_are_in_force_for_the_request() {
        let logs = |levels: &str, quiet: &str, line| vec![(levels.to_owned(), quiet.to_owned(), line)];
        assert_eq!(steps_of("error_log /e debug;", "", "").0, logs("debug", "error", 1));
        assert_eq!(
            steps_of("error_log /e warn;", "error_log /e debug_http debug_event;", "").0,
            logs("warn, debug_http debug_event", "warn, error", 4)
        );
        // Events without a request go to the main log, whatever the server block says.
        assert_eq!(steps_of("error_log /e debug;", "", "error_log /f;").0, logs("debug", "error", 1));
        for silent in
            ["error_log /e info;", "error_log /e;", "location /b { error_log /e debug; }", "location ~ (*x)a { error_log /e debug; }"]
        {
            assert_eq!(steps_of("", "", silent).0, [], "{silent}");
        }
        assert_eq!(steps_of("", "", "location /a { error_log /e debug; }").0, logs("debug", "error", 7));
        assert_eq!(steps_of("", "", "rewrite_log on; error_log /e notice;").1, Some(7));
        assert_eq!(steps_of("", "", "rewrite_log on; error_log /e;").1, None);
        assert_eq!(steps_of("", "rewrite_log on;", "rewrite_log off; error_log /e notice;").1, None);
    }

    #[test]
    fn tls_sessions_are_known_if_all_servers_of_the_address_agree() {
        let sessions = |url: &str, server: &str| {
            let request = Request { scheme: url.split(':').next().unwrap().to_owned(), ..request(url) };
            tls_sessions(&nginx(server), &request).map(|sessions| (sessions.are_resumed(), sessions.verifies_clients))
        };
        let https = |server: &str| sessions("https://10.0.0.2/", server);
        assert_eq!(https(""), Some((true, false)), "tickets are nginx's default");
        assert_eq!(https("ssl_session_tickets off;"), Some((false, false)));
        assert_eq!(https("ssl_session_tickets off; ssl_session_cache off;"), Some((false, false)));
        assert_eq!(https("ssl_session_tickets off; ssl_session_cache builtin:1000 shared:a:10m;"), Some((true, false)));
        assert_eq!(https("ssl_session_tickets off; ssl_verify_client optional;"), Some((false, true)));
        for unknown in [
            "ssl_session_tickets hidden;",
            "ssl_session_tickets off; ssl_session_cache hidden;",
            "ssl_session_tickets off; ssl_conf_command Options SessionTicket;",
            "ssl_session_tickets off; server_name ~(*x)a; }\nserver { listen 80; server_name ~(*x)b;",
        ] {
            assert_eq!(https(unknown), None, "{unknown}");
        }
        assert_eq!(sessions("http://10.0.0.2/", "ssl_session_tickets off;"), None);
        for (curves, expected) in
            [("", true), ("ssl_ecdh_curve auto;", true), ("ssl_ecdh_curve secp384r1;", false), ("ssl_ecdh_curve hidden;", false)]
        {
            let request = Request { scheme: "https".to_owned(), ..request("https://10.0.0.2/") };
            assert_eq!(tls_sessions(&nginx(curves), &request).map(|sessions| sessions.has_quick_curves), Some(expected), "{curves}");
        }
    }

    fn nginx(server: &str) -> Nginx {
        let text = format!(
            "events {{}}\nhttp {{\nupstream php {{ server 127.0.0.1:9000; server unix:/run/p.sock; keepalive 4; }}\nserver {{\nlisten 80;\nroot /srv;\n{server}\n}}\n}}\n"
        );
        let mut resolve = |path: &str| -> Vec<Resolved> { vec![(path.to_owned(), Ok(text.clone()))] };
        Nginx::of(&Tree::load("/nginx.conf", None, &mut resolve).unwrap(), Version::FALLBACK)
    }

    fn request(url: &str) -> Request {
        let addresses = vec!["10.0.0.2".parse().unwrap()];
        Request { url: url.to_owned(), scheme: "http".to_owned(), host: "10.0.0.2".to_owned(), port: 80, addresses, ..Request::default() }
    }

    fn asks_of(nginx: &Nginx, request: &Request) -> Vec<NginxAsks> {
        asks(nginx, request, &mut ConfigRoom::whole()).unwrap()
    }

    #[test]
    fn a_request_is_followed_to_the_requests_to_upstreams() {
        let nginx = nginx(
            "location ~ \\.php$ { fastcgi_pass php; fastcgi_keep_conn on; fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; }\n\
             location /img/ { }",
        );
        let found = asks_of(&nginx, &request("http://10.0.0.2/a.php?x=1"));
        let one = &found[0];
        assert_eq!((one.path_and_query.as_str(), one.pass.kind.as_str(), one.pass.reuses), ("/srv/a.php?x=1", "fastcgi", true));
        assert_eq!(one.pass.servers[1], ListenerAddress::Unix("/run/p.sock".into()));
        let files = own(&nginx, &request("http://10.0.0.2/a.php"));
        assert_eq!((files[0].path.as_str(), files[0].directory.as_deref()), ("/img/", Some("/srv/img/")));
        assert_eq!(asks_of(&nginx, &request("http://10.0.0.2/a.css")), []);
        let fastcgi = Request { scheme: "fcgi".to_owned(), ..request("fcgi://10.0.0.2/srv/a.php") };
        assert!(asks_of(&nginx, &fastcgi).is_empty() && own(&nginx, &fastcgi).is_empty());
        // A published port leads to the only address. With two addresses that respond differently, the address is unknown.
        let published = Request { port: 81, ..request("http://10.0.0.2:81/a.php") };
        assert_eq!(asks_of(&nginx, &published)[0].path_and_query, "/srv/a.php");
        let two = self::nginx("location / { fastcgi_pass php; fastcgi_param SCRIPT_FILENAME /a; }\n}\nserver {\nlisten 90;");
        assert!(asks_of(&two, &published).is_empty() && own(&two, &published).is_empty());
    }

    #[test]
    fn where_the_requests_asked_for_may_go_is_known_or_said_to_be_unknown() {
        const SHOP: &str = "location / { proxy_pass http://10.0.0.9:8080; }\nlocation = /page.html { root /srv; }\n\
             location ~ \\.php$ { fastcgi_pass php; }\n}\nserver {\nlisten 80;\nserver_name blog;\nlocation / { proxy_pass http://10.0.0.7:90; }\n\
             }\nserver {\nlisten 8080;\nlocation / { fastcgi_pass unix:/run/other.sock; }";
        let to = |server: &str, request: &Request| {
            let found = leads_to(&nginx(server), request, &mut ConfigRoom::whole()).unwrap();
            found.map(|found| found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        };
        let some = |text: &str| Some(text.to_owned());
        let loaded = |url: &str| Request { loaded: true, ..request(url) };
        // Watching: an address is all server blocks of the listener, a path all of its ways; without a path, all that they take.
        assert_eq!(to(SHOP, &request("http://10.0.0.2/page.html")), some("10.0.0.7:90"));
        assert_eq!(to(SHOP, &request("http://10.0.0.2/a.php")), some("10.0.0.7:90 127.0.0.1:9000 unix:/run/p.sock"));
        assert_eq!(to(SHOP, &request("http://10.0.0.2/")), some("10.0.0.7:90 10.0.0.9:8080 127.0.0.1:9000 unix:/run/p.sock"));
        let blog = Request { host: "blog".to_owned(), ..request("http://blog/") };
        assert_eq!(to(SHOP, &blog), some("10.0.0.7:90"));
        let other = Request { port: 8080, ..request("http://10.0.0.2:8080/") };
        assert_eq!(to(SHOP, &other), some("unix:/run/other.sock"));
        // A load is answered by the one server block and location that take it.
        assert_eq!(to(SHOP, &loaded("http://10.0.0.2/page.html")), some(""));
        assert_eq!(to(SHOP, &loaded("http://10.0.0.2/")), some("10.0.0.9:8080"));
        let error = "error_page 404 /e.php; location / { root /srv; } location /e.php { fastcgi_pass unix:/run/e.sock; }";
        assert_eq!(to(error, &loaded("http://10.0.0.2/a.html")), some("unix:/run/e.sock"), "each way counts");
        for unknown in [
            "location / { proxy_pass http://$host:80; }",
            "location / { proxy_pass http://app.example:80; }",
            "location / { auth_request /auth; root /srv; }",
            "location / { rewrite ^(.*)$ /x$1 last; root /srv; }",
            "location / { try_files $uri $uri/ /x/$args; }",
            "location / { if ($arg_a) { rewrite ^ /b; } root /srv; }",
            "location / { proxy_pass http://127.0.0.1:80; }",
            "location / { proxy_pass http://10.0.0.9; } location /i { internal; proxy_pass http://10.0.0.8; }",
            "ssi on; location / { root /srv; }",
        ] {
            assert_eq!(to(unknown, &loaded("http://10.0.0.2/a")), None, "{unknown}");
        }
        assert_eq!(to(SHOP, &Request { port: 81, ..request("http://10.0.0.2:81/a") }), None, "it arrives at another address");
    }

    #[test]
    fn passes_after_an_error_or_on_a_condition_are_not_listed() {
        let nginx = nginx(
            "error_page 502 504 @backup;\nlocation @backup { proxy_pass http://10.0.0.8:8080; }\n\
             location / { if ($request_method = POST) { proxy_pass http://10.0.0.7:8080; } proxy_pass http://10.0.0.9:8080; }",
        );
        let asked = asks_of(&nginx, &request("http://10.0.0.2/a"));
        assert_eq!(asked.iter().flat_map(|asks| &asks.pass.servers).map(ToString::to_string).collect::<Vec<_>>(), ["10.0.0.9:8080"]);
    }

    #[test]
    fn the_sent_host_chooses_the_server() {
        let nginx = nginx(
            "location / { proxy_pass http://10.0.0.7:80; }\n}\nserver {\nlisten 80;\nserver_name shop.example;\n\
             location / { proxy_set_header Host $http_host; proxy_pass http://10.0.0.9:80; }",
        );
        let shop = Request { sent_host: Some("shop.example".to_owned()), ..request("http://10.0.0.2/a") };
        let asked = asks_of(&nginx, &shop);
        assert_eq!(
            (asked.len(), asked[0].host.as_str(), asked[0].pass.servers[0].to_string()),
            (1, "shop.example", "10.0.0.9:80".to_owned())
        );
        assert_eq!(asks_of(&nginx, &request("http://10.0.0.2/a"))[0].pass.servers[0].to_string(), "10.0.0.7:80");
    }
}
