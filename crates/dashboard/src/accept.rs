//! Which format of the metrics a scraper gets: OpenMetrics if it asks for it and likes nothing else better, otherwise Prometheus's text format, which every scraper reads
//! (RFC 9110, 12.5.1; Prometheus's own exporters choose in the same way).

use hyper::HeaderMap;
use hyper::header::ACCEPT;

/// A format of the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus's text format 0.0.4.
    Text,
}

impl Format {
    /// The format for a request with these headers.
    pub(crate) fn asked(headers: &HeaderMap) -> Self {
        let (mut open_metrics, mut text) = (0.0_f64, 0.0_f64);
        let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        for range in values.flat_map(|value| value.split(',')).map(Range::parse) {
            match range.name.as_str() {
                "application/openmetrics-text" if range.is_version("1.0.0") => open_metrics = open_metrics.max(range.weight),
                "text/plain" if range.is_version("0.0.4") => text = text.max(range.weight),
                "text/*" | "*/*" => text = text.max(range.weight),
                _ => {}
            }
        }
        if open_metrics > 0.0 && open_metrics >= text { Self::OpenMetrics } else { Self::Text }
    }

    /// Its media type.
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// One of the media types that are accepted.
struct Range {
    name: String,
    version: Option<String>,
    weight: f64,
}

impl Range {
    fn parse(text: &str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let mut range = Self { name: parts.next().unwrap_or_default().to_ascii_lowercase(), version: None, weight: 1.0 };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name.trim().to_ascii_lowercase().as_str() {
                "version" => range.version = Some(value.trim().trim_matches('"').to_owned()),
                // What is no weight asks for nothing.
                "q" => range.weight = value.trim().parse().ok().filter(|weight| (0.0..=1.0).contains(weight)).unwrap_or_default(),
                _ => {}
            }
        }
        range
    }

    fn is_version(&self, version: &str) -> bool {
        self.version.as_deref().is_none_or(|asked| asked == version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(accept: &[&str]) -> Format {
        Format::asked(&accept.iter().map(|accept| (ACCEPT, accept.parse().unwrap())).collect())
    }

    #[test]
    fn a_scraper_gets_what_it_asks_for() {
        for accept in [
            // Prometheus 2.42, and 3.
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
            "Application/OpenMetrics-Text; Version=\"1.0.0\"",
            "text/plain, application/openmetrics-text",
        ] {
            assert_eq!(asked(&[accept]), Format::OpenMetrics, "{accept}");
        }
        for accept in [
            "text/plain;version=0.0.4",
            "*/*",
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            "application/openmetrics-text;version=0.0.1",
            "application/openmetrics-text;q=0",
            "application/openmetrics-text;q=x, text/plain;q=0.1",
            "application/openmetrics-text;q=NaN",
            "application/openmetrics-text;q=0.5,text/plain;version=0.0.4",
            "application/json",
            ",;,=;q=",
        ] {
            assert_eq!(asked(&[accept]), Format::Text, "{accept}");
        }
        assert_eq!(asked(&[]), Format::Text);
        assert_eq!(asked(&["text/plain;q=0.1", "application/openmetrics-text"]), Format::OpenMetrics, "a list may stand in several lines");
    }
}
