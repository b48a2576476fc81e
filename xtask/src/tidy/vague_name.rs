//! Modules whose name says nothing about their contents.

use syn::visit::{self, Visit};

use super::{Breach, Rule};

/// Names that a module may not have, singular or plural.
const VAGUE: &[&str] = &["util", "utility", "utilitie", "helper", "manager", "type", "common", "misc", "stuff", "base", "generic"];

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "vague-name",
    asks: "no module, file or source directory is called util, helper, manager, types, common or the like",
    check: |workspace| {
        let mut breaches = Vec::new();
        for file in workspace.files.values() {
            let parts = file.path.trim_end_matches(".rs").split('/');
            if let Some(part) = parts.into_iter().find(|part| is_vague(part)) {
                breaches.push(Breach::new(file.path, 1, format!("`{part}` says nothing about what is in it")));
            }
        }
        for (file, syntax) in workspace.parsed() {
            let mut modules = Modules { file: file.path, breaches: &mut breaches };
            modules.visit_file(syntax);
        }
        breaches
    },
};

/// True for a vague word, alone or as the last part of a longer name (`path_utils`).
fn is_vague(name: &str) -> bool {
    let last = name.rsplit('_').next().unwrap_or(name);
    VAGUE.contains(&last) || last.strip_suffix('s').is_some_and(|singular| VAGUE.contains(&singular))
}

struct Modules<'a> {
    file: &'a str,
    breaches: &'a mut Vec<Breach>,
}

impl<'ast> Visit<'ast> for Modules<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.content.is_some() && is_vague(&item.ident.to_string()) {
            let line = item.ident.span().start().line;
            self.breaches.push(Breach::new(self.file, line, format!("`mod {}` says nothing about what is in it", item.ident)));
        }
        visit::visit_item_mod(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::breaches;
    use super::RULE;

    #[test]
    fn fires_on_files_directories_and_modules() {
        for path in ["src/util.rs", "src/helpers/a.rs", "tests/common/mod.rs", "src/path_utils.rs", "src/types.rs"] {
            assert_eq!(breaches(&RULE, &[(path, "")]), [format!("{path}:1")]);
        }
        assert_eq!(breaches(&RULE, &[("a.rs", "mod a {\n mod manager {}\n}")]), ["a.rs:2"]);
    }

    #[test]
    fn silent_on_names_that_say_something() {
        assert!(breaches(&RULE, &[("src/accept_queue.rs", "mod tests {}"), ("src/utilization.rs", "mod rate {}")]).is_empty());
    }
}
