//! Source files that nothing compiles.

use super::workspace::FileUse;
use super::{Breach, Rule};

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "dead-file",
    asks: "every .rs file of a package is reached by `mod` from one of its targets",
    check: |workspace| {
        let dead = workspace.files.values().filter(|file| file.file_use == FileUse::Dead);
        dead.map(|file| Breach::new(file.path, 1, "no `mod` leads here from any target")).collect()
    },
};

#[cfg(test)]
mod tests {
    use super::super::tests::breaches;
    use super::RULE;

    const MANIFEST: (&str, &str) = ("x/Cargo.toml", "[package]\nname = \"x\"");

    #[test]
    fn fires_on_files_that_no_module_names() {
        let files = [MANIFEST, ("x/src/lib.rs", "mod a;"), ("x/src/a.rs", ""), ("x/src/b.rs", ""), ("x/src/b/c.rs", "")];
        assert_eq!(breaches(&RULE, &files), ["x/src/b.rs:1", "x/src/b/c.rs:1"]);
        assert_eq!(breaches(&RULE, &[MANIFEST, ("x/tests/data/a.rs", "")]), ["x/tests/data/a.rs:1"]);
        assert_eq!(breaches(&RULE, &[("stray.rs", "")]), ["stray.rs:1"]);
    }

    #[test]
    fn silent_on_every_way_to_be_reached() {
        let files = [
            MANIFEST,
            ("x/src/lib.rs", "mod a; mod b { mod c; } #[path = \"odd.rs\"] mod d; #[cfg(test)] mod e;"),
            ("x/src/a.rs", "mod f;"),
            ("x/src/a/f.rs", ""),
            ("x/src/b/c.rs", ""),
            ("x/src/odd.rs", "mod g;"),
            ("x/src/g.rs", ""),
            ("x/src/e/mod.rs", "mod h;"),
            ("x/src/e/h.rs", ""),
            ("x/src/bin/tool.rs", ""),
            ("x/src/bin/other/main.rs", ""),
            ("x/tests/it.rs", "mod i;"),
            ("x/tests/i.rs", ""),
            ("x/build.rs", ""),
        ];
        assert!(breaches(&RULE, &files).is_empty(), "{:?}", breaches(&RULE, &files));
        let named = [("y/Cargo.toml", "[package]\nname = \"y\"\n[[bin]]\nname = \"y\"\npath = \"go/y.rs\""), ("y/go/y.rs", "")];
        assert!(breaches(&RULE, &named).is_empty());
    }
}
