//! The bytes of a request, rendered once for the whole load.

use crate::plan::Plan;

/// Renders a checked plan's request (RFC 9112 section 3). Without `keep_alive` it asks the server to close the connection.
pub(crate) fn render(plan: &Plan, keep_alive: bool) -> Vec<u8> {
    let given = |name: &str| plan.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    let mut head = format!("{} {} HTTP/1.1\r\n", plan.method, plan.path_and_query);
    let mut field = |name: &str, value: &str| {
        head.push_str(name);
        head.push_str(": ");
        head.push_str(value);
        head.push_str("\r\n");
    };
    if !given("host") {
        field("Host", &plan.host_header);
    }
    if !given("user-agent") {
        field("User-Agent", concat!("chokepoint/", env!("CARGO_PKG_VERSION")));
    }
    for (name, value) in &plan.headers {
        field(name, value);
    }
    // Methods that anticipate content send its length even if there is none (RFC 9110 section 8.6).
    if !plan.body.is_empty() || matches!(plan.method.as_str(), "POST" | "PUT" | "PATCH") {
        field("Content-Length", &plan.body.len().to_string());
    }
    if !keep_alive {
        field("Connection", "close");
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(&plan.body);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::plan;

    #[test]
    fn requests_are_rendered_correctly() {
        let text = |plan: &Plan| String::from_utf8(render(plan, plan.keep_alive)).expect("ASCII");
        let agent = concat!("User-Agent: chokepoint/", env!("CARGO_PKG_VERSION"), "\r\n");
        assert_eq!(text(&plan()), format!("GET /a?b=c HTTP/1.1\r\nHost: example.org:8080\r\n{agent}\r\n"));
        let mut post = plan();
        post.method = "POST".into();
        post.body = b"a=b".to_vec();
        post.keep_alive = false;
        post.headers = vec![("host".into(), "other".into()), ("user-agent".into(), "x".into())];
        assert_eq!(
            text(&post),
            "POST /a?b=c HTTP/1.1\r\nhost: other\r\nuser-agent: x\r\nContent-Length: 3\r\nConnection: close\r\n\r\na=b"
        );
        post.body.clear();
        assert!(text(&post).contains("Content-Length: 0\r\n"));
    }
}
