//! The page, embedded in the program, and its parts for files of reports. Its source is in `ui/`; `make page` builds it into `page/`, compressed.

use std::io::Read;

use flate2::read::GzDecoder;
use hyper::header::{ACCEPT, ACCEPT_ENCODING, HeaderMap};

/// What the page may do: load its own files and read its own server, nothing else.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                                 base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A file of the page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct File {
    pub(crate) path: &'static str,
    pub(crate) media_type: &'static str,
    /// Its content, compressed by gzip.
    pub(crate) compressed: &'static [u8],
}

/// Policies with the hashes of script and style, which the build of the page computes.
const HASHES: &str = include_str!("../page/hashes");

const FILES: [File; 3] = [
    File { path: "/", media_type: "text/html; charset=utf-8", compressed: include_bytes!("../page/index.html.gz") },
    File { path: "/page.css", media_type: "text/css; charset=utf-8", compressed: include_bytes!("../page/page.css.gz") },
    File { path: "/page.js", media_type: "text/javascript; charset=utf-8", compressed: include_bytes!("../page/page.js.gz") },
];

/// What a file with one report needs of the page.
#[derive(Debug, Clone)]
pub struct Parts {
    /// The script, for an element of type "module".
    pub script: String,
    /// The style sheet.
    pub style: String,
    /// The content security policy that allows only these two, by their hashes (CSP level 3, "hash-source").
    pub policy: String,
}

/// The parts of the page for files.
#[must_use]
pub fn parts() -> Parts {
    let text = |file: &File| String::from_utf8(file.plain()).unwrap_or_default();
    let [_, style, script] = &FILES;
    let policy = format!("default-src 'none'; {}; img-src data:; base-uri 'none'; form-action 'none'", HASHES.trim());
    Parts { script: text(script), style: text(style), policy }
}

impl File {
    /// The file at a path. The page itself only for those who can show one: others get a list of the paths as text.
    pub(crate) fn at(path: &str, headers: &HeaderMap) -> Option<Self> {
        let file = FILES.into_iter().find(|file| file.path == path)?;
        (path != "/" || names(headers, &ACCEPT, "text/html")).then_some(file)
    }

    /// Its content as it is, for those who do not take it compressed.
    pub(crate) fn plain(&self) -> Vec<u8> {
        let mut plain = Vec::new();
        // What is embedded was compressed by the build, and a test reads all of it.
        let _ = GzDecoder::new(self.compressed).read_to_end(&mut plain);
        plain
    }
}

/// True if a client takes what is compressed by gzip.
pub(crate) fn takes_gzip(headers: &HeaderMap) -> bool {
    names(headers, &ACCEPT_ENCODING, "gzip")
}

/// True if a list of a header has this name, with a weight that is not zero.
fn names(headers: &HeaderMap, header: &hyper::header::HeaderName, name: &str) -> bool {
    let is_named = |entry: &str| {
        let mut parts = entry.split(';').map(str::trim);
        let is_refused = |part: &str| part.strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0_f32));
        parts.next().is_some_and(|found| found.eq_ignore_ascii_case(name)) && !parts.any(is_refused)
    };
    headers.get_all(header).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(is_named)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most that all files together may have, compressed.
    const COMPRESSED_MAX: usize = 100_000;

    fn headers(all: &[(hyper::header::HeaderName, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn the_files_are_small_and_name_nothing_elsewhere() {
        assert!(FILES.iter().map(|file| file.compressed.len()).sum::<usize>() < COMPRESSED_MAX);
        for file in FILES {
            let plain = String::from_utf8(file.plain()).unwrap();
            assert!(!plain.is_empty(), "{}", file.path);
            // Names of namespaces are no addresses to load from.
            let addresses = plain.replace("http://www.w3.org/", "");
            assert!(!addresses.contains("http://") && !addresses.contains("https://"), "{} names another site", file.path);
        }
        let page = String::from_utf8(FILES[0].plain()).unwrap();
        assert!(page.contains("page.js") && page.contains("page.css") && !page.contains("<style") && !page.contains(" style="));
    }

    #[test]
    fn a_browser_gets_the_page_and_others_the_list() {
        let at = |path: &str, accept: &str| File::at(path, &headers(&[(ACCEPT, accept)])).is_some();
        assert!(at("/", "text/html,application/xhtml+xml,*/*;q=0.8") && !at("/", "*/*") && !at("/", "text/html;q=0"));
        assert!(at("/page.js", "*/*") && !at("/page.js.gz", "text/html") && !at("/../page.js", "text/html"));
        let takes = |encoding: &str| takes_gzip(&headers(&[(ACCEPT_ENCODING, encoding)]));
        assert!(takes("deflate, GZIP;q=0.5") && !takes("br") && !takes("gzip;q=0") && !takes_gzip(&HeaderMap::new()));
    }
}
