//! Tests of the tree and of what is in force, on whole configurations.

mod address;
mod edits;
mod hide;
mod in_force;
mod parsing;
mod reuse;
mod selection;
mod steps;
mod upstream_request;

use super::*;
use crate::include::Resolved;

/// The files of a made-up disk.
pub(super) fn disk(files: &[(&str, &str)]) -> impl FnMut(&str) -> Vec<Resolved> {
    let files: Vec<(String, String)> = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    move |pattern: &str| {
        let is_it = |path: &str| if crate::glob::is_pattern(pattern) { crate::glob::matches(pattern, path) } else { path == pattern };
        let mut found: Vec<Resolved> =
            files.iter().filter(|(path, _)| is_it(path)).map(|(path, text)| (path.clone(), Ok(text.clone()))).collect();
        found.sort();
        found
    }
}

pub(super) fn tree(text: &str) -> Tree {
    Tree::load("/n/nginx.conf", None, &mut disk(&[("/n/nginx.conf", text)])).expect("the configuration parses")
}

pub(super) fn nginx(text: &str) -> Nginx {
    Nginx::of(&tree(text), Version(1, 22, 1))
}

pub(super) fn http(text: &str) -> Http {
    let nginx = nginx(text);
    assert_eq!(nginx.problems, []);
    nginx.http.expect("an http block")
}

/// Debian's layout.
pub(super) fn debian() -> Tree {
    let files = [
        ("/etc/nginx/nginx.conf", include_str!("../../tests/data/nginx/debian/nginx.conf")),
        ("/etc/nginx/mime.types", include_str!("../../tests/data/nginx/debian/mime.types")),
        ("/etc/nginx/fastcgi.conf", include_str!("../../tests/data/nginx/debian/fastcgi.conf")),
        ("/etc/nginx/snippets/fastcgi-php.conf", include_str!("../../tests/data/nginx/debian/snippets/fastcgi-php.conf")),
        ("/etc/nginx/sites-enabled/default", include_str!("../../tests/data/nginx/debian/sites-enabled/default")),
        ("/etc/nginx/sites-enabled/shop.example.com", include_str!("../../tests/data/nginx/debian/sites-enabled/shop.example.com")),
    ];
    Tree::load("/etc/nginx/nginx.conf", None, &mut disk(&files)).expect("Debian's configuration parses")
}

/// The first directive of that name, wherever it stands.
pub(super) fn find(tree: &Tree, name: &str) -> crate::Node {
    find_all(tree, name)[0]
}

pub(super) fn find_all(tree: &Tree, name: &str) -> Vec<crate::Node> {
    let files = tree.files().iter().enumerate();
    let nodes = files.flat_map(|(file, parsed)| (0..parsed.directives().len()).map(move |entry| crate::Node { file, entry }));
    nodes.filter(|&node| tree.directive(node).name() == name).collect()
}
