//! A page as one HTML file: it needs no other file and no network. Its script and its style are those of the page of `watch`; without scripts it shows the report as text.

use chokepoint_dashboard::parts;
use chokepoint_profile::output::flame::Flame;

use super::escape::embedded;
use super::{ReportPage, flame};
use crate::report::plot::escaped;
use crate::report::view::printable;

/// The file. `document`: the whole report as JSON, for programs. `plain`: the report for readers that run no scripts.
pub(crate) fn render(page: &ReportPage, document: Option<&str>, plain: &str) -> String {
    let parts = parts();
    let document = document.map(|json| format!("<script type=\"application/json\" id=\"document\">{}</script>\n", embedded(json)));
    // The order is that of a browser: it shows the text, takes the report, and then runs the script.
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n<div id=\"page\"><pre>{plain}</pre></div>\n\
         <script type=\"application/json\" id=\"report\">{report}</script>\n{document}<script type=\"module\">{script}</script>\n</body>\n</html>\n",
        policy = parts.policy,
        title = escaped(&page.title),
        style = parts.style,
        plain = lines(plain),
        report = embedded(&page.json().to_string()),
        document = document.unwrap_or_default(),
        script = parts.script,
    )
}

/// The file of a flame graph. `told`: lines above it.
pub(crate) fn flame(graph: &Flame<'_>, title: &str, told: Vec<String>) -> String {
    let plain = [vec![title.to_owned()], told.clone()].concat().join("\n");
    render(&flame::page(graph, title, told), None, &plain)
}

/// A text of several lines.
fn lines(text: &str) -> String {
    text.lines().map(|line| escaped(&printable(line)) + "\n").collect()
}
