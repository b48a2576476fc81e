//! The metrics in Prometheus's text format 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats), made of those in OpenMetrics: a series is the same in both. What
//! differs is that a counter's family has the name of its samples here, and that there are no units and no end.

/// The text of OpenMetrics in the text format.
pub(crate) fn of_open_metrics(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = None;
    for line in open_metrics.lines() {
        if let Some(told) = line.strip_prefix("# HELP ") {
            // The kind, which decides about the name, follows.
            help = told.split_once(' ');
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|told| told.split_once(' ')) {
            let suffix = if kind == "counter" { "_total" } else { "" };
            let help = help.take().map_or("", |(_, help)| help);
            text.extend(["# HELP ", name, suffix, " ", help, "\n# TYPE ", name, suffix, " ", kind, "\n"]);
        } else if !line.starts_with('#') {
            text.extend([line, "\n"]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::Format;
    use crate::metrics::render;
    use crate::metrics::tests::board;

    #[test]
    fn a_series_is_the_same_in_both_formats() {
        let board = board();
        let samples = |format| -> BTreeSet<String> {
            render(&board, format).lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
        };
        assert_eq!(samples(Format::Text), samples(Format::OpenMetrics));
        let text = render(&board, Format::Text);
        for line in [
            "# HELP chokepoint_requests_total Requests answered.",
            "# TYPE chokepoint_requests_total counter",
            "# TYPE chokepoint_response_bytes_total counter",
            "# TYPE chokepoint_log_duration_seconds histogram",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("# EOF") && !text.contains("# UNIT"), "{text}");
    }
}
