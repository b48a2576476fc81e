//! Every name that a file uses, as its full path: a rule sees `std::fs::write` even if it was imported under another name.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Meta, UseTree};

/// One use of a name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// Full path: "std::fs::write". A glob import ends in "::*", a macro in "!".
    pub(crate) path: String,
    /// Line, from 1.
    pub(crate) line: usize,
    /// True in code that only tests compile.
    pub(crate) in_test: bool,
    /// True in a module named `live`.
    pub(crate) in_live: bool,
}

impl Name {
    /// True if the name is `path`, is below it, or is a glob import that contains it.
    pub(crate) fn is_within(&self, path: &str) -> bool {
        if let Some(module) = self.path.strip_suffix("::*") {
            return is_below(module, path) || is_below(path, module);
        }
        is_below(&self.path, path)
    }
}

fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// All names of a file, imports included.
pub(crate) fn names(file: &syn::File) -> Vec<Name> {
    let mut imports = Imports::default();
    imports.visit_file(file);
    let mut uses = Uses { aliases: imports.aliases, names: Vec::new(), test_depth: 0, live_depth: 0 };
    uses.visit_file(file);
    uses.names
}

/// True for `#[test]`, `#[cfg(test)]` and similar attributes: only test builds contain the code.
pub(crate) fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg") && matches!(&attribute.meta, Meta::List(list) if requires_test(&list.tokens.to_string()))
    })
}

/// True for `test` and `all(test, ...)`. Code under `not(test)` and `any(test, ...)` is in other builds too.
fn requires_test(condition: &str) -> bool {
    let condition: String = condition.chars().filter(|character| !character.is_whitespace()).collect();
    condition == "test"
        || condition.strip_prefix("all(").is_some_and(|rest| rest.trim_end_matches(')').split(',').any(|part| part == "test"))
}

/// First pass: the full path of each imported name. Scopes are ignored: an alias is valid in the whole file.
#[derive(Default)]
struct Imports {
    aliases: BTreeMap<String, String>,
}

impl Visit<'_> for Imports {
    fn visit_item_use(&mut self, item: &syn::ItemUse) {
        leaves(&item.tree, String::new(), &mut |path, alias, _| {
            if let Some(alias) = alias {
                self.aliases.insert(alias, path);
            }
        });
    }

    fn visit_item_extern_crate(&mut self, item: &syn::ItemExternCrate) {
        if let Some((_, alias)) = &item.rename {
            self.aliases.insert(alias.to_string(), item.ident.to_string());
        }
    }
}

/// Calls `found` for each leaf of a use tree with its full path, its name in the file and its line.
fn leaves(tree: &UseTree, prefix: String, found: &mut impl FnMut(String, Option<String>, usize)) {
    let below = |name: &str| if prefix.is_empty() { name.to_owned() } else { format!("{prefix}::{name}") };
    match tree {
        UseTree::Path(path) => leaves(&path.tree, below(&path.ident.to_string()), found),
        UseTree::Group(group) => group.items.iter().for_each(|item| leaves(item, prefix.clone(), found)),
        UseTree::Glob(glob) => found(below("*"), None, glob.span().start().line),
        UseTree::Name(name) if name.ident == "self" => {
            let alias = prefix.rsplit("::").next().map(str::to_owned);
            found(prefix.clone(), alias, name.ident.span().start().line);
        }
        UseTree::Name(name) => found(below(&name.ident.to_string()), Some(name.ident.to_string()), name.ident.span().start().line),
        UseTree::Rename(name) => {
            let path = if name.ident == "self" { prefix.clone() } else { below(&name.ident.to_string()) };
            found(path, Some(name.rename.to_string()), name.ident.span().start().line);
        }
    }
}

/// Second pass: every path, with its aliases resolved.
struct Uses {
    aliases: BTreeMap<String, String>,
    names: Vec<Name>,
    test_depth: usize,
    live_depth: usize,
}

impl Uses {
    fn add(&mut self, segments: &[String], suffix: &str, line: usize) {
        let Some((first, rest)) = segments.split_first() else { return };
        let first = self.resolve(first);
        let path = std::iter::once(first).chain(rest.iter().cloned()).collect::<Vec<_>>().join("::");
        self.names.push(Name { path: format!("{path}{suffix}"), line, in_test: self.test_depth > 0, in_live: self.live_depth > 0 });
    }

    /// Follows aliases of aliases (`use std as s; use s::fs as f;`), in at most as many steps as there are aliases.
    fn resolve(&self, name: &str) -> String {
        let mut path = name.to_owned();
        for _ in 0..=self.aliases.len() {
            let (first, rest) = path.split_once("::").map_or((path.as_str(), None), |(first, rest)| (first, Some(rest)));
            match self.aliases.get(first) {
                Some(target) if target != first && target.split("::").next() != Some(first) => {
                    path = rest.map_or_else(|| target.clone(), |rest| format!("{target}::{rest}"));
                }
                Some(target) if rest.is_none() => return target.clone(),
                _ => break,
            }
        }
        path
    }

    /// Finds names in a macro's arguments, which the parser leaves as tokens: `name :: name :: ...`.
    fn scan(&mut self, tokens: TokenStream) {
        let mut segments: Vec<String> = Vec::new();
        let mut line = 0;
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 && !segments.is_empty() {
                        self.add(&std::mem::take(&mut segments), "", line);
                    }
                    if segments.is_empty() {
                        line = ident.span().start().line;
                    }
                    segments.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                other => {
                    if matches!(&other, TokenTree::Punct(punct) if punct.as_char() == '!') {
                        self.add(&std::mem::take(&mut segments), "!", line);
                    }
                    self.add(&std::mem::take(&mut segments), "", line);
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.scan(group.stream());
                    }
                }
            }
        }
        self.add(&segments, "", line);
    }

    fn within<T>(&mut self, attributes: &[Attribute], node: &T, go: impl FnOnce(&mut Self, &T)) {
        let test = usize::from(is_test_only(attributes));
        self.test_depth += test;
        go(self, node);
        self.test_depth -= test;
    }
}

/// Calls `found` for each method call outside of tests, with the method's name and its line.
pub(crate) fn method_calls(file: &syn::File, found: impl FnMut(&syn::ExprMethodCall, &str, usize)) {
    MethodCalls { found }.visit_file(file);
}

struct MethodCalls<F> {
    found: F,
}

impl<'ast, F: FnMut(&syn::ExprMethodCall, &str, usize)> Visit<'ast> for MethodCalls<F> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test_only(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test_only(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        (self.found)(call, &call.method.to_string(), call.method.span().start().line);
        visit::visit_expr_method_call(self, call);
    }
}

fn segments_of(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

impl<'ast> Visit<'ast> for Uses {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.within(&item.attrs, item, |uses, item| {
            leaves(&item.tree, String::new(), &mut |path, _, line| {
                let segments: Vec<String> = path.split("::").map(str::to_owned).collect();
                uses.add(&segments, "", line);
            });
        });
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.add(&segments_of(path), "", path.span().start().line);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.add(&segments_of(&call.path), "!", call.path.span().start().line);
        self.scan(call.tokens.clone());
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        self.within(&item.attrs, item, |uses, item| uses.visit_macro(&item.mac));
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let live = usize::from(item.ident == "live");
        self.live_depth += live;
        self.within(&item.attrs, item, |uses, item| visit::visit_item_mod(uses, item));
        self.live_depth -= live;
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.within(&item.attrs, item, |uses, item| visit::visit_item_fn(uses, item));
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.within(&item.attrs, item, |uses, item| visit::visit_item_impl(uses, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.within(&item.attrs, item, |uses, item| visit::visit_impl_item_fn(uses, item));
    }

    fn visit_item_extern_crate(&mut self, item: &'ast syn::ItemExternCrate) {
        self.names.push(Name {
            path: item.ident.to_string(),
            line: item.ident.span().start().line,
            in_test: self.test_depth > 0,
            in_live: self.live_depth > 0,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        names(&syn::parse_file(text).expect("the snippet is Rust")).into_iter().map(|name| name.path).collect()
    }

    #[test]
    fn imports_are_followed() {
        let found = paths("use std::{fs as disk, net::{self, IpAddr}}; fn f() { disk::write(a, b); net::TcpStream::connect(c); }");
        assert!(found.contains(&"std::fs::write".to_owned()), "{found:?}");
        assert!(found.contains(&"std::net::TcpStream::connect".to_owned()), "{found:?}");
        assert!(found.contains(&"std::net::IpAddr".to_owned()), "{found:?}");
    }

    #[test]
    fn aliases_of_aliases_are_followed_and_circles_end() {
        assert!(paths("use std as s; use s::fs as f; fn g() { f::read(p); }").contains(&"std::fs::read".to_owned()));
        paths("use a::b as c; use c::d as a; fn g() { a::x(); c::y(); }");
        paths("use a::a; use a as a; fn g() { a::x(); }");
    }

    #[test]
    fn names_in_macro_arguments_are_found() {
        let found = paths("use std::fs; fn f() { println!(\"{}\", g(fs::read_to_string(\"x\"))); vec![std::env::var(y)]; }");
        assert!(found.contains(&"println!".to_owned()), "{found:?}");
        assert!(found.contains(&"std::fs::read_to_string".to_owned()), "{found:?}");
        assert!(found.contains(&"std::env::var".to_owned()), "{found:?}");
    }

    #[test]
    fn names_in_tests_are_marked() {
        let text =
            "fn a() { std::fs::read(p); } #[cfg(test)] mod tests { fn b() { std::fs::write(p, q); } } #[cfg(not(test))] fn c() { x::y(); }";
        let all = names(&syn::parse_file(text).expect("the snippet is Rust"));
        let in_test = |path: &str| all.iter().find(|name| name.path == path).map(|name| name.in_test);
        assert_eq!(in_test("std::fs::read"), Some(false));
        assert_eq!(in_test("std::fs::write"), Some(true));
        assert_eq!(in_test("x::y"), Some(false));
    }

    #[test]
    fn names_in_modules_named_live_are_marked() {
        let all =
            names(&syn::parse_file("mod live { fn b() { a::x(); } } mod lively { fn c() { a::y(); } }").expect("the snippet is Rust"));
        let in_live = |path: &str| all.iter().find(|name| name.path == path).map(|name| name.in_live);
        assert_eq!((in_live("a::x"), in_live("a::y")), (Some(true), Some(false)));
    }

    #[test]
    fn a_glob_contains_the_names_below_it() {
        let name = |path: &str| Name { path: path.to_owned(), line: 1, in_test: false, in_live: false };
        assert!(name("std::net::*").is_within("std::net::TcpStream"));
        assert!(name("std::*").is_within("std::fs"));
        assert!(name("std::fs::*").is_within("std::fs"));
        assert!(!name("std::io::*").is_within("std::fs"));
        assert!(!name("std::fsx").is_within("std::fs"));
    }
}
