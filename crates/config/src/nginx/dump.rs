//! Reads the output of `nginx -T`: all files of a configuration, one after the other.

use super::tree::{LoadError, Tree};
use crate::dump;

impl Tree {
    /// Reads the output of `nginx -T`. Text before the first marker (nginx's own messages) is skipped. Includes are resolved within the dump.
    /// A comment line that looks like a marker is taken for one.
    pub fn from_dump(text: &str) -> Result<Self, LoadError> {
        let files = dump::sections(text);
        let main = files.first().ok_or(LoadError::NotADump)?.0;
        Self::load(main, None, &mut |pattern: &str| dump::resolve(&files, pattern))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_gives_back_its_files() {
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
