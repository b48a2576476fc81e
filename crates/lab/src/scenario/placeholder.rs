//! Placeholders in the texts of a scenario: `{run}`, `{address:HOST}` and others. Other braces stay as they are, since configuration languages use
//! them.

use std::fmt::Write as _;

use super::topology::Topology;

/// The values of the placeholders in one place of a scenario. Where a value is `None`, its placeholder is an error.
#[derive(Clone, Copy)]
pub(crate) struct Values<'v> {
    pub(crate) lab: &'v str,
    pub(crate) topology: &'v Topology,
    pub(crate) run: Option<&'v str>,
    pub(crate) server: Option<&'v ServerValues>,
}

/// Placeholders that only a server has.
pub(crate) struct ServerValues {
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) user: String,
    pub(crate) group: String,
    pub(crate) cores: usize,
}

/// Directives for the temporary files of nginx (ngx_http_core_module and the upstream modules).
const NGINX_TEMP_DIRECTIVES: [&str; 5] =
    ["client_body_temp_path", "proxy_temp_path", "fastcgi_temp_path", "uwsgi_temp_path", "scgi_temp_path"];

/// Replaces the placeholders of a text.
///
/// # Errors
/// One sentence: a host without an address, or a placeholder without a value in this place.
pub(crate) fn expand(text: &str, values: &Values<'_>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        let inside = &rest[open + 1..];
        // A name has no blank, quote or brace, so that a block of a configuration language is never taken for a placeholder.
        let end = inside.find(|c: char| !(c.is_ascii_alphanumeric() || "-_:".contains(c)));
        let name = end.filter(|end| inside[*end..].starts_with('}')).map(|end| &inside[..end]);
        match name.map(|name| (name, value_of(name, values))) {
            Some((name, Some(value))) => {
                out.push_str(&value?);
                rest = &inside[name.len() + 1..];
            }
            _ => {
                out.push('{');
                rest = inside;
            }
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// The value of one placeholder; `None` for an unknown name.
fn value_of(name: &str, values: &Values<'_>) -> Option<Result<String, String>> {
    let here = |value: Option<String>| value.ok_or_else(|| format!("{{{name}}} is not known here"));
    let server = values.server;
    Some(match name {
        "lab" => Ok(values.lab.to_owned()),
        "run" => here(values.run.map(str::to_owned)),
        "name" => here(server.map(|server| server.name.clone())),
        "host" => here(server.map(|server| server.host.clone())),
        "user" => here(server.map(|server| server.user.clone())),
        "group" => here(server.map(|server| server.group.clone())),
        "cores" => here(server.map(|server| server.cores.to_string())),
        "nginx_temp_paths" => here(values.run.zip(server).map(|(run, server)| nginx_temp_paths(run, &server.name))),
        _ => {
            let (kind, host) = name.split_once(':')?;
            let v6 = match kind {
                "address" => false,
                "address6" => true,
                _ => return None,
            };
            let family = if v6 { "IPv6" } else { "IPv4" };
            let address = values.topology.address(host, v6);
            address.map(|ip| ip.to_string()).ok_or_else(|| format!("{{{name}}}: there is no host \"{host}\" with an {family} address"))
        }
    })
}

fn nginx_temp_paths(run: &str, server: &str) -> String {
    let mut text = String::new();
    for directive in NGINX_TEMP_DIRECTIVES {
        let _ = write!(text, "{}{directive} {run}/{server}-{directive};", if text.is_empty() { "" } else { " " });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::tests::scenario_with;
    use proptest::prelude::*;

    fn expanded(text: &str) -> Result<String, String> {
        let topology = Topology::of(&scenario_with(""));
        let server = ServerValues { name: "web".into(), host: "server".into(), user: "www-data".into(), group: "www".into(), cores: 2 };
        expand(text, &Values { lab: "t", topology: &topology, run: Some("/r"), server: Some(&server) })
    }

    #[test]
    fn placeholders_are_replaced_and_other_braces_stay() {
        assert_eq!(
            expanded("pid {run}/{name}.pid; {user} {group} {cores} {lab} {host}").as_deref(),
            Ok("pid /r/web.pid; www-data www 2 t server")
        );
        assert_eq!(expanded("http://{address:server}:80 [{address6:server}]").as_deref(), Ok("http://10.78.0.2:80 [fd78::2]"));
        let config = "events {} http { server { location ~ ^/a{2,3}$ { return 200 \"{}\"; } } } {unknown} {{run}} ${run}";
        let wanted = "events {} http { server { location ~ ^/a{2,3}$ { return 200 \"{}\"; } } } {unknown} {/r} $/r";
        assert_eq!(expanded(config).as_deref(), Ok(wanted));
        for text in ["", "{", "}", "{run", "{run ", "{}", "{:}", "ä{run"] {
            assert_eq!(expanded(text).as_deref(), Ok(text));
        }
        assert!(
            expanded("{nginx_temp_paths}").unwrap().starts_with("client_body_temp_path /r/web-client_body_temp_path; proxy_temp_path ")
        );
    }

    #[test]
    fn a_missing_address_is_an_error() {
        assert!(expanded("{address:servr}").unwrap_err().contains("servr"));
        let topology = Topology::of(&scenario_with(""));
        let values = Values { lab: "t", topology: &topology, run: None, server: None };
        assert_eq!(expand("{run}", &values), Err("{run} is not known here".to_owned()));
    }

    proptest! {
        #[test]
        fn any_text_is_expanded_or_refused(text in "(\\PC|[{}:a-z])*") {
            let _ = expanded(&text);
        }
    }
}
