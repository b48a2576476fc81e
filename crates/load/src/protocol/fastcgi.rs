//! FastCGI 1.0 (the FastCGI Specification of 29 April 1996): renders the request to a responder.

pub(crate) mod answer;
mod record;

use http::Uri;
use percent_encoding::percent_decode_str;

use self::record::{BEGIN_REQUEST, PARAMS, REQUEST_ID, STDIN, VERSION};
use crate::plan::Plan;

/// Maximum content of a sent record, bytes: below 65,535, the limit of a record, and a multiple of eight, as the specification recommends.
const CONTENT_BYTES_MAX: usize = 65_528;
/// FCGI_RESPONDER, a role.
const RESPONDER: u8 = 1;
/// FCGI_KEEP_CONN, a flag: the server keeps the connection open after the answer.
const KEEP_CONN: u8 = 1;

/// Renders a checked plan's request: FCGI_BEGIN_REQUEST, then parameters and body as streams, each with its empty end. `keep_alive`: FCGI_KEEP_CONN.
pub(crate) fn render(plan: &Plan, given: &[(String, String)], keep_alive: bool) -> Vec<u8> {
    let mut params = Vec::new();
    for (name, value) in parameters(plan, given) {
        length(&mut params, name.len());
        length(&mut params, value.len());
        params.extend_from_slice(name.as_bytes());
        params.extend_from_slice(&value);
    }
    let mut bytes = Vec::with_capacity(params.len() + plan.body.len() + 1024);
    let keep = if keep_alive { KEEP_CONN } else { 0 };
    record(&mut bytes, BEGIN_REQUEST, &[0, RESPONDER, keep, 0, 0, 0, 0, 0]);
    stream(&mut bytes, PARAMS, &params);
    stream(&mut bytes, STDIN, &plan.body);
    bytes
}

fn stream(bytes: &mut Vec<u8>, kind: u8, content: &[u8]) {
    for part in content.chunks(CONTENT_BYTES_MAX) {
        record(bytes, kind, part);
    }
    record(bytes, kind, &[]);
}

/// Appends one record, padded to a multiple of eight bytes.
fn record(bytes: &mut Vec<u8>, kind: u8, content: &[u8]) {
    let padding = content.len().next_multiple_of(8) - content.len();
    let [high, low] = (content.len() as u16).to_be_bytes();
    bytes.extend_from_slice(&[VERSION, kind, 0, REQUEST_ID, high, low, padding as u8, 0]);
    bytes.extend_from_slice(content);
    bytes.extend_from_slice(&[0; 7][..padding]);
}

/// Appends the length of a name or value: one byte below 128, else four with the highest bit set (section 3.4).
fn length(bytes: &mut Vec<u8>, length: usize) {
    match u8::try_from(length) {
        Ok(short) if short < 128 => bytes.push(short),
        _ => bytes.extend_from_slice(&(length as u32 | 1 << 31).to_be_bytes()),
    }
}

/// The script that a path names: the percent-decoded path without its query. It is the default of SCRIPT_FILENAME.
pub(crate) fn script(path_and_query: &str) -> Vec<u8> {
    percent_decode_str(path_and_query.split('?').next().unwrap_or_default()).collect()
}

/// The methods that the parameters of a request name. The comparison ignores case, since a server may accept `Request_Method`.
pub(crate) fn methods(plan: &Plan, given: &[(String, String)]) -> Vec<String> {
    let named = parameters(plan, given).into_iter().filter(|(name, _)| name.eq_ignore_ascii_case("REQUEST_METHOD"));
    named.map(|(_, value)| String::from_utf8_lossy(&value).into_owned()).collect()
}

/// The parameters that a web server sends (RFC 3875 section 4.1, and others that PHP needs), then the header fields as HTTP_NAME. Parameters of the plan
/// replace them.
fn parameters(plan: &Plan, given: &[(String, String)]) -> Vec<(String, Vec<u8>)> {
    let path = &plan.path_and_query;
    let (uri, query) = path.split_once('?').unwrap_or((path, ""));
    let script = script(path);
    let host = header(plan, "host").unwrap_or(&plan.host_header);
    let name = host.parse::<Uri>().ok().and_then(|uri| uri.host().map(str::to_owned)).unwrap_or_else(|| host.to_owned());
    let local = plan.address.tcp().map(|address| address.ip());
    let loopback = if local.is_some_and(|ip| ip.is_ipv6()) { "::1" } else { "127.0.0.1" };
    let mut all: Vec<(String, Vec<u8>)> = Vec::new();
    let mut put = |name: &str, value: &[u8]| all.push((name.to_owned(), value.to_vec()));
    put("GATEWAY_INTERFACE", b"CGI/1.1");
    put("SERVER_SOFTWARE", concat!("chokepoint/", env!("CARGO_PKG_VERSION")).as_bytes());
    put("SERVER_PROTOCOL", b"HTTP/1.1");
    put("SERVER_NAME", name.as_bytes());
    put("SERVER_ADDR", local.map_or_else(|| loopback.to_owned(), |ip| ip.to_string()).as_bytes());
    put("SERVER_PORT", b"80");
    put("REMOTE_ADDR", loopback.as_bytes());
    put("REQUEST_METHOD", plan.method.as_bytes());
    put("REQUEST_URI", path.as_bytes());
    put("DOCUMENT_URI", uri.as_bytes());
    put("QUERY_STRING", query.as_bytes());
    put("SCRIPT_FILENAME", &script);
    put("SCRIPT_NAME", &script);
    // PHP built with force-cgi-redirect refuses requests without it.
    put("REDIRECT_STATUS", b"200");
    put("CONTENT_TYPE", header(plan, "content-type").unwrap_or_default().as_bytes());
    let has_body = !plan.body.is_empty() || matches!(plan.method.as_str(), "POST" | "PUT" | "PATCH");
    put("CONTENT_LENGTH", if has_body { plan.body.len().to_string() } else { String::new() }.as_bytes());
    all.extend(fields(plan));
    for (name, value) in given {
        match all.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value.clone().into_bytes(),
            None => all.push((name.clone(), value.clone().into_bytes())),
        }
    }
    all
}

fn header<'a>(plan: &'a Plan, name: &str) -> Option<&'a str> {
    plan.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// The header fields as parameters. Fields with the same name are joined (RFC 3875 section 4.1.18).
fn fields(plan: &Plan) -> Vec<(String, Vec<u8>)> {
    let mut fields: Vec<(String, Vec<u8>)> = Vec::new();
    let own = [("Host", plan.host_header.as_str()), ("User-Agent", concat!("chokepoint/", env!("CARGO_PKG_VERSION")))];
    let missing = own.into_iter().filter(|(name, _)| header(plan, name).is_none());
    let given = plan.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in missing.chain(given) {
        if name.eq_ignore_ascii_case("content-type") {
            continue;
        }
        let name = format!("HTTP_{}", name.to_ascii_uppercase().replace('-', "_"));
        match fields.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => {
                known.extend_from_slice(if name == "HTTP_COOKIE" { b"; " } else { b", " });
                known.extend_from_slice(value.as_bytes());
            }
            None => fields.push((name, value.as_bytes().to_vec())),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Protocol, tests::plan};
    use std::collections::BTreeMap;

    /// A record as a server reads it: type, content.
    type Record = (u8, Vec<u8>);

    fn records(mut bytes: &[u8]) -> Vec<Record> {
        let mut records = Vec::new();
        while let Some((header, rest)) = bytes.split_at_checked(record::HEADER_BYTES) {
            assert_eq!((header[0], header[2], header[3], header[7]), (1, 0, 1, 0));
            let content = usize::from(u16::from_be_bytes([header[4], header[5]]));
            let end = content + usize::from(header[6]);
            assert_eq!(end % 8, 0, "padded to eight bytes");
            records.push((header[1], rest[..content].to_vec()));
            bytes = &rest[end..];
        }
        assert!(bytes.is_empty(), "half a record");
        records
    }

    fn joined(records: &[Record], kind: u8) -> Vec<u8> {
        records.iter().filter(|(found, _)| *found == kind).flat_map(|(_, content)| content.clone()).collect()
    }

    fn read_length(bytes: &mut &[u8]) -> usize {
        let (first, rest) = bytes.split_first().expect("a length");
        if *first < 128 {
            *bytes = rest;
            return usize::from(*first);
        }
        let (four, rest) = bytes.split_at(4);
        *bytes = rest;
        (u32::from_be_bytes(four.try_into().expect("four bytes")) & !(1 << 31)) as usize
    }

    fn pairs(mut bytes: &[u8]) -> BTreeMap<String, String> {
        let mut pairs = BTreeMap::new();
        while !bytes.is_empty() {
            let (name, value) = (read_length(&mut bytes), read_length(&mut bytes));
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
            let is_new = pairs.insert(text(&bytes[..name]), text(&bytes[name..name + value])).is_none();
            assert!(is_new, "a parameter twice");
            bytes = &bytes[name + value..];
        }
        pairs
    }

    fn rendered(plan: &Plan) -> (Vec<Record>, BTreeMap<String, String>) {
        let Protocol::FastCgi { params } = &plan.protocol else { panic!("no FastCGI") };
        let records = records(&render(plan, params, plan.keep_alive));
        let pairs = pairs(&joined(&records, PARAMS));
        (records, pairs)
    }

    fn fastcgi() -> Plan {
        Plan { protocol: Protocol::FastCgi { params: Vec::new() }, path_and_query: "/srv/a%20b/x.php?q=%41".into(), ..plan() }
    }

    #[test]
    fn a_get_request_has_three_parts_and_names_the_script() {
        let (records, params) = rendered(&fastcgi());
        assert_eq!(records.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [BEGIN_REQUEST, PARAMS, PARAMS, STDIN]);
        assert_eq!(records[0].1, [0, 1, 1, 0, 0, 0, 0, 0], "a responder that keeps the connection");
        assert!(records[2].1.is_empty() && records[3].1.is_empty(), "both streams end");
        for (name, value) in [
            ("SCRIPT_FILENAME", "/srv/a b/x.php"),
            ("SCRIPT_NAME", "/srv/a b/x.php"),
            ("REQUEST_URI", "/srv/a%20b/x.php?q=%41"),
            ("QUERY_STRING", "q=%41"),
            ("REQUEST_METHOD", "GET"),
            ("HTTP_HOST", "example.org:8080"),
            ("SERVER_NAME", "example.org"),
            ("CONTENT_LENGTH", ""),
        ] {
            assert_eq!(params.get(name).map(String::as_str), Some(value), "{name}");
        }
        let close = Plan { keep_alive: false, ..fastcgi() };
        assert_eq!(rendered(&close).0[0].1, [0, 1, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn long_parameters_and_bodies_are_split_and_given_ones_replace_the_defaults() {
        let mut post = fastcgi();
        post.method = "POST".into();
        post.body = (0..150_000u32).map(|byte| byte as u8).collect();
        let header = |name: &str, value: String| (name.to_owned(), value);
        post.headers = vec![
            header("X-Long", "v".repeat(70_000)),
            header("Cookie", "a=1".into()),
            header("cookie", "b=2".into()),
            header("Content-Type", "text/plain".into()),
            header("Host", "[::1]:81".into()),
        ];
        let given = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        post.protocol = Protocol::FastCgi { params: vec![given("SCRIPT_FILENAME", "/app/i.php"), given("APP_ENV", &"e".repeat(127))] };
        let (records, params) = rendered(&post);
        assert_eq!(joined(&records, STDIN), post.body);
        assert_eq!(records.iter().filter(|(kind, _)| *kind == STDIN).count(), 4, "three parts and the end");
        assert_eq!(params["HTTP_X_LONG"].len(), 70_000);
        assert_eq!((params["HTTP_COOKIE"].as_str(), params["CONTENT_LENGTH"].as_str()), ("a=1; b=2", "150000"));
        assert_eq!((params["CONTENT_TYPE"].as_str(), params["SERVER_NAME"].as_str()), ("text/plain", "[::1]"));
        assert_eq!((params["SCRIPT_FILENAME"].as_str(), params["APP_ENV"].len()), ("/app/i.php", 127));
        assert_eq!(params["SCRIPT_NAME"], "/srv/a b/x.php");
        assert!(!params.contains_key("HTTP_CONTENT_TYPE"));
    }

    #[test]
    fn paths_are_decoded_and_invalid_codes_stay() {
        for (path, script) in [("/a%2Fb?c%41", "/a/b"), ("/%", "/%"), ("/%4", "/%4"), ("/%zz%41", "/%zzA"), ("/%+1", "/%+1"), ("", "")] {
            assert_eq!(super::script(path), script.as_bytes(), "{path}");
        }
    }
}
