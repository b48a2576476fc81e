//! The output of `nginx -T`: every file of a configuration, one after the other.

use super::error::LoadError;
use super::tree::Tree;
use crate::dump;

impl Tree {
    /// Reads the output of `nginx -T`. What stands before the first marker (nginx's own messages) is skipped; globs are answered from the files in
    /// the dump. A comment line that looks like a marker cannot be told from one.
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
