//! The bytes of the request, prepared once for the whole load.

use crate::plan::Plan;

/// Renders a checked plan's request (RFC 9112 section 3). `keep_alive`: without it the server is asked to close the connection.
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
    // A method that anticipates content says so even where there is none (RFC 9110 section 8.6).
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
