//! Signs of unfinished work, in code and in documents.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use super::{Breach, Rule};

/// Macros in place of missing code, or left over from debugging.
const MACROS: &[&str] = &["todo", "unimplemented", "dbg"];
/// Marks of postponed work, as whole words in any text. They are concatenated so that this file does not contain them.
const MARKS: &[&str] = &[concat!("FIX", "ME"), concat!("XX", "X"), concat!("TO", "DO")];

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "banned-word",
    asks: "no unfinished work: the macros todo, unimplemented and dbg, ignored tests, and marks of work put off",
    check: |workspace| {
        let mut breaches = Vec::new();
        for (path, text) in workspace.tree.all() {
            for (index, line) in text.lines().enumerate() {
                if let Some(mark) = mark_in(line) {
                    breaches.push(Breach::new(path, index + 1, format!("`{mark}`: finish it or open an issue")));
                }
            }
        }
        for (file, syntax) in workspace.parsed() {
            let mut words = Words { file: file.path, breaches: &mut breaches };
            words.visit_file(syntax);
        }
        breaches
    },
};

/// The first mark in a line, as a whole word.
fn mark_in(line: &str) -> Option<&'static str> {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    line.split(|character: char| !is_part(character)).find_map(|word| MARKS.iter().find(|mark| **mark == word).copied())
}

struct Words<'a> {
    file: &'a str,
    breaches: &'a mut Vec<Breach>,
}

impl Words<'_> {
    fn add(&mut self, line: usize, text: String) {
        self.breaches.push(Breach::new(self.file, line, text));
    }

    /// Finds `name !` in the arguments of another macro.
    fn scan(&mut self, tokens: TokenStream) {
        let mut before: Option<proc_macro2::Ident> = None;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => before = Some(ident),
                TokenTree::Punct(punct) if punct.as_char() == '!' => {
                    if let Some(name) = before.take().filter(|name| MACROS.contains(&name.to_string().as_str())) {
                        self.add(name.span().start().line, format!("`{name}!`"));
                    }
                }
                TokenTree::Group(group) => self.scan(group.stream()),
                _ => before = None,
            }
        }
    }
}

impl<'ast> Visit<'ast> for Words<'_> {
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        if let Some(last) = call.path.segments.last().filter(|last| MACROS.contains(&last.ident.to_string().as_str())) {
            self.add(last.ident.span().start().line, format!("`{}!`", last.ident));
        }
        self.scan(call.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if attribute.path().is_ident("ignore") {
            let line = attribute.pound_token.span.start().line;
            self.add(line, "an ignored test: let it print \"skipped: why\" and return where it cannot run".to_owned());
        }
        visit::visit_attribute(self, attribute);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::breaches;
    use super::{MARKS, RULE};

    #[test]
    fn fires_on_unfinished_work() {
        assert_eq!(breaches(&RULE, &[("a.rs", "fn f() {\n todo!()\n}")]), ["a.rs:2"]);
        assert_eq!(breaches(&RULE, &[("a.rs", "fn f() { std::unimplemented!(\"x\") }")]), ["a.rs:1"]);
        assert_eq!(breaches(&RULE, &[("a.rs", "fn f() { println!(\"{}\", dbg!(x)) }")]), ["a.rs:1"]);
        assert_eq!(breaches(&RULE, &[("a.rs", "#[test]\n#[ignore]\nfn f() {}")]), ["a.rs:2"]);
        assert_eq!(breaches(&RULE, &[("a.rs", "#[test]\n#[ignore = \"slow\"]\nfn f() {}")]), ["a.rs:2"]);
        for mark in MARKS {
            assert_eq!(breaches(&RULE, &[("docs/a.md", &format!("x\n<!-- {mark}: later -->"))]), ["docs/a.md:2"]);
            assert_eq!(breaches(&RULE, &[("a.rs", &format!("// {mark} later"))]), ["a.rs:1"]);
        }
    }

    #[test]
    fn silent_on_similar_words() {
        let text = format!("// mktemp /tmp/a.{}X, todo lists, to-do\nfn ignore() {{ not_todo!(); }}", MARKS[1]);
        assert!(breaches(&RULE, &[("a.rs", &text), ("docs/a.md", "nothing to do here")]).is_empty());
    }
}
