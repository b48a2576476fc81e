//! Functions that are too long for one screen.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, Signature};

use super::names::is_test_only;
use super::workspace::FileUse;
use super::{Breach, Rule};

/// Lines from `fn` to the closing brace.
const LINES_MAX: usize = 70;
/// The same for tests, which are read from top to bottom.
const TEST_LINES_MAX: usize = 100;

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "long-function",
    asks: "a function or method has at most 70 lines from `fn` to its brace, in tests 100",
    check: |workspace| {
        let mut breaches = Vec::new();
        for (file, syntax) in workspace.parsed() {
            let test_depth = usize::from(file.file_use == FileUse::Test);
            let mut functions = Functions { file: file.path, test_depth, breaches: &mut breaches };
            functions.visit_file(syntax);
        }
        breaches
    },
};

struct Functions<'a> {
    file: &'a str,
    test_depth: usize,
    breaches: &'a mut Vec<Breach>,
}

impl Functions<'_> {
    fn measure(&mut self, attributes: &[Attribute], signature: &Signature, block: &Block) {
        let first = signature.fn_token.span.start().line;
        let lines = block.span().end().line.saturating_sub(first) + 1;
        let test = self.test_depth > 0 || is_test_only(attributes);
        let most = if test { TEST_LINES_MAX } else { LINES_MAX };
        if lines > most {
            self.breaches.push(Breach::new(self.file, first, format!("`{}` has {lines} lines; at most {most}", signature.ident)));
        }
    }

    fn within(&mut self, attributes: &[Attribute], go: impl FnOnce(&mut Self)) {
        let test = usize::from(is_test_only(attributes));
        self.test_depth += test;
        go(self);
        self.test_depth -= test;
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.within(&item.attrs, |functions| visit::visit_item_mod(functions, item));
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.measure(&item.attrs, &item.sig, &item.block);
        self.within(&item.attrs, |functions| visit::visit_item_fn(functions, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.measure(&item.attrs, &item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.measure(&item.attrs, &item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::breaches;
    use super::RULE;

    /// A function with this many lines in total.
    fn function(head: &str, lines: usize) -> String {
        format!("{head} {{\n{}}}\n", "    f();\n".repeat(lines - 2))
    }

    #[test]
    fn fires_on_functions_methods_defaults_and_nested_ones() {
        let long = function("fn a()", 71);
        assert_eq!(breaches(&RULE, &[("a.rs", &long)]), ["a.rs:1"]);
        assert_eq!(breaches(&RULE, &[("a.rs", &format!("impl A {{\n{long}}}"))]), ["a.rs:2"]);
        assert_eq!(breaches(&RULE, &[("a.rs", &format!("trait A {{\n{long}}}"))]), ["a.rs:2"]);
        assert_eq!(breaches(&RULE, &[("a.rs", &format!("fn b() {{\n{long}}}"))]), ["a.rs:1", "a.rs:2"]);
        assert_eq!(breaches(&RULE, &[("a.rs", &function("#[test]\nfn a()", 101))]), ["a.rs:2"]);
    }

    #[test]
    fn silent_at_the_limit_and_on_longer_tests() {
        assert!(breaches(&RULE, &[("a.rs", &function("/// Documentation\n/// does not count.\n#[inline]\nfn a()", 70))]).is_empty());
        assert!(breaches(&RULE, &[("a.rs", &function("#[test]\nfn a()", 99))]).is_empty());
        assert!(breaches(&RULE, &[("a.rs", &format!("#[cfg(test)]\nmod tests {{\n{}}}", function("fn a()", 99)))]).is_empty());
        let package = "[package]\nname = \"x\"";
        assert!(breaches(&RULE, &[("x/Cargo.toml", package), ("x/tests/a.rs", &function("fn a()", 99))]).is_empty());
    }
}
