//! The output of `nginx -T`: every file of a configuration, one after the other.

use super::error::LoadError;
use super::tree::Tree;
use crate::glob;
use crate::include::Resolved;

/// What stands before each file's text, followed by its path and a colon.
const MARKER: &str = "# configuration file ";

impl Tree {
    /// Reads the output of `nginx -T`. What stands before the first marker (nginx's own messages) is skipped; globs are answered from the files in
    /// the dump. A comment line that looks like a marker cannot be told from one.
    pub fn from_dump(dump: &str) -> Result<Self, LoadError> {
        let files = sections(dump);
        let main = files.first().ok_or(LoadError::NotADump)?.0;
        let mut resolve = |pattern: &str| -> Vec<Resolved> {
            let mut found: Vec<&(&str, &str)> = if glob::is_pattern(pattern) {
                files.iter().filter(|(path, _)| glob::matches(pattern, path)).collect()
            } else {
                files.iter().filter(|(path, _)| *path == pattern).collect()
            };
            found.sort_unstable();
            found.into_iter().map(|(path, text)| ((*path).to_owned(), Ok((*text).to_owned()))).collect()
        };
        Self::load(main, None, &mut resolve)
    }
}

/// Path and text of each file. nginx adds one line feed behind each.
fn sections(dump: &str) -> Vec<(&str, &str)> {
    let mut marks: Vec<(usize, usize, &str)> = Vec::new();
    let mut at = 0;
    for line in dump.split_inclusive('\n') {
        if let Some(path) = line.strip_prefix(MARKER).and_then(|rest| rest.trim_end_matches(['\n', '\r']).strip_suffix(':')) {
            marks.push((at, at + line.len(), path));
        }
        at += line.len();
    }
    let ends = marks.iter().skip(1).map(|(start, ..)| *start).chain([dump.len()]);
    marks
        .iter()
        .zip(ends)
        .map(|(&(_, start, path), end)| (path, dump[start..end].strip_suffix('\n').unwrap_or(&dump[start..end])))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_dump_are_as_they_were() {
        let dump = "nginx: the configuration file /n/nginx.conf syntax is ok\n\
            # configuration file /n/nginx.conf:\nevents {}\ninclude conf.d/*.conf;\n\n\
            # configuration file /n/conf.d/b.conf:\nuser b;\n\n# configuration file /n/conf.d/a.conf:\nuser a;\n";
        let tree = Tree::from_dump(dump).expect("a dump");
        let texts: Vec<(&str, &str)> = tree.files().iter().map(|file| (&*file.path, file.text())).collect();
        assert_eq!(
            texts,
            [("/n/nginx.conf", "events {}\ninclude conf.d/*.conf;\n"), ("/n/conf.d/a.conf", "user a;"), ("/n/conf.d/b.conf", "user b;\n")]
        );
        let names: Vec<String> = tree.top().into_iter().map(|node| tree.directive(node).values().join(" ")).collect();
        assert_eq!(names, ["", "a", "b"]);
        assert_eq!(Tree::from_dump("user x;"), Err(LoadError::NotADump));
        assert_eq!(Tree::from_dump(""), Err(LoadError::NotADump));
    }
}
