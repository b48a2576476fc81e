//! The file of `--targets`: a request on each line.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use chokepoint_load as load;
use chokepoint_model::url::without_values;

use crate::run::plan::{FILE_BYTES_MAX, read_file};
use crate::run::settings::Target;

/// Reads the file (`-` is stdin). Returns the server and the requests. `base`: the URL of the command line. `method`: for lines without one.
pub(super) fn read(file: &Path, base: Option<Target>, method: &str) -> Result<(Target, Vec<load::Target>)> {
    let bytes = match file.as_os_str() == "-" {
        true => {
            let mut bytes = Vec::new();
            std::io::stdin().lock().take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).context("the targets cannot be read from stdin")?;
            ensure!(bytes.len() as u64 <= FILE_BYTES_MAX, "the targets are more than {FILE_BYTES_MAX} bytes");
            bytes
        }
        false => read_file("list of targets", file)?,
    };
    let text = String::from_utf8(bytes).map_err(|_| anyhow::anyhow!("the list of targets {} is not UTF-8 text", file.display()))?;
    parse(&text, base, method).with_context(|| format!("the list of targets {} is not valid", file.display()))
}

/// Parses lines of `METHOD URL`, `URL` or a path. Empty lines and lines that begin with # are skipped.
fn parse(text: &str, mut base: Option<Target>, method: &str) -> Result<(Target, Vec<load::Target>)> {
    let mut targets = Vec::new();
    // Origins known to be the same server, so that a name is resolved once.
    let mut same: Vec<String> = base.iter().map(|base| origin(&base.url).to_owned()).collect();
    for (place, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let target = parse_line(line, &mut base, &mut same, method).with_context(|| format!("line {}", place + 1))?;
        targets.push(target);
    }
    match base {
        Some(base) if !targets.is_empty() => Ok((base, targets)),
        _ => bail!("it has no target: write one per line, for example GET http://127.0.0.1/path"),
    }
}

fn parse_line(line: &str, base: &mut Option<Target>, same: &mut Vec<String>, method: &str) -> Result<load::Target> {
    let mut words = line.split_whitespace();
    let (method, url) = match (words.next(), words.next(), words.next()) {
        (Some(url), None, _) => (method, url),
        (Some(method), Some(url), None) => (method, url),
        _ => bail!("{line:?} is not a target: write one like GET http://127.0.0.1/path"),
    };
    if method.ends_with(':') || url.starts_with('@') || line.starts_with('@') {
        bail!("{line:?}: a target cannot have its own headers or body; -H and -d set them for all");
    }
    let path = |rest: &str| match rest.split('#').next() {
        Some(path) if path.starts_with('/') => path.to_owned(),
        Some(path) => format!("/{path}"),
        None => "/".to_owned(),
    };
    let target = |path_and_query| load::Target { method: method.to_owned(), path_and_query };
    if url.starts_with('/') {
        ensure!(base.is_some(), "{url:?} is a path, but no URL before it names the server");
        return Ok(target(path(url)));
    }
    let begin = origin(url);
    if !same.iter().any(|known| known == begin) {
        let parsed = Target::parse(url)?;
        match base {
            Some(base) if is_same(base, &parsed) => {}
            Some(base) => {
                bail!("{} is on another server than {}: all targets must be on one server", without_values(url), without_values(&base.url))
            }
            None => *base = Some(parsed),
        }
        same.push(begin.to_owned());
    }
    Ok(target(path(&url[begin.len()..])))
}

/// The part of a URL before its path.
fn origin(url: &str) -> &str {
    let end = match (url.split_once("://"), url.find(":/")) {
        (Some((scheme, rest)), _) if !scheme.contains("+unix") => scheme.len() + 3 + rest.find(['/', '?', '#']).unwrap_or(rest.len()),
        // http+unix:SOCKET:/PATH. The socket also begins with a slash.
        _ if url.contains("+unix:") => {
            url.rfind(":/").filter(|place| !url[..*place].ends_with("+unix")).map_or(url.len(), |place| place + 1)
        }
        _ => url.find(['/', '?', '#']).unwrap_or(url.len()),
    };
    &url[..end]
}

fn is_same(one: &Target, other: &Target) -> bool {
    let unix = |target: &Target| target.unix.last().cloned();
    one.scheme == other.scheme && one.host.eq_ignore_ascii_case(&other.host) && one.port == other.port && unix(one) == unix(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str, base: Option<&str>) -> Result<Vec<String>> {
        let base = base.map(Target::parse).transpose()?;
        let (base, targets) = parse(text, base, "GET")?;
        let told = targets.iter().map(|target| format!("{} {}", target.method, target.path_and_query));
        Ok(std::iter::once(base.address()?.to_string()).chain(told).collect())
    }

    #[test]
    fn every_line_is_a_target() {
        let text =
            "# all that the page needs\nGET http://127.0.0.1:81/a?b=c\n\n  http://127.0.0.1:81#part\nHEAD 127.0.0.1:81/b\nDELETE /c\n/d\n";
        let told = parsed(text, None).unwrap_or_else(|error| panic!("{error:#}"));
        assert_eq!(told, ["127.0.0.1:81", "GET /a?b=c", "GET /", "HEAD /b", "DELETE /c", "GET /d"]);
        let told =
            parsed("/x\nhttp+unix:/run/app.sock:/y\n", Some("http+unix:/run/app.sock:/z")).unwrap_or_else(|error| panic!("{error:#}"));
        assert_eq!(told, ["unix:/run/app.sock", "GET /x", "GET /y"]);
        let told = parsed("http://127.0.0.1/y", Some("http://127.0.0.1:80/z")).unwrap_or_else(|error| panic!("{error:#}"));
        assert_eq!(told, ["127.0.0.1:80", "GET /y"]);
    }

    #[test]
    fn invalid_lists_are_refused_with_the_reason() {
        let cases = [
            ("", "it has no target"),
            ("# nothing\n", "it has no target"),
            ("/path", "no URL before it"),
            ("GET http://127.0.0.1/\nX-Header: value", "cannot have its own headers"),
            ("POST http://127.0.0.1/\n@body.txt", "cannot have its own headers"),
            ("http://127.0.0.1/\nhttp://127.0.0.2/", "another server"),
            ("http://127.0.0.1/\nhttp://127.0.0.1:8080/", "another server"),
            ("http://127.0.0.1/\nhttps://127.0.0.1/", "another server"),
            ("GET http://127.0.0.1/ HTTP/1.1", "is not a target"),
            ("ftp://127.0.0.1/", "not supported"),
        ];
        for (text, reason) in cases {
            let error = format!("{:#}", parsed(text, None).expect_err(text));
            assert!(error.contains(reason), "{text:?}: {error}");
        }
    }
}
