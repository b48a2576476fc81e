//! Which source files a package's targets reach by `mod`, and which of them only its tests reach.

use std::collections::BTreeMap;

use syn::{Attribute, Item, ItemMod};

use super::names::is_test_only;
use super::workspace::{FileUse, Package, Workspace};
use crate::tree::{directory_of, join};

/// Directories in which cargo takes each file (or `NAME/main.rs`) for a target, and the use of that target.
const TARGET_DIRECTORIES: &[(&str, FileUse)] =
    &[("src/bin", FileUse::Code), ("tests", FileUse::Test), ("benches", FileUse::Test), ("examples", FileUse::Test)];
/// Root files that cargo finds by name.
const TARGET_FILES: &[(&str, FileUse)] = &[("src/lib.rs", FileUse::Code), ("src/main.rs", FileUse::Code), ("build.rs", FileUse::Build)];
/// Tables of a manifest that may name the root of a target by `path`.
const TARGET_TABLES: &[(&str, FileUse)] =
    &[("lib", FileUse::Code), ("bin", FileUse::Code), ("test", FileUse::Test), ("bench", FileUse::Test), ("example", FileUse::Test)];

/// The use of every file that is reached. A file that both code and tests reach is code.
pub(crate) fn file_uses(workspace: &Workspace<'_>) -> BTreeMap<String, FileUse> {
    let mut uses = BTreeMap::new();
    for package in &workspace.packages {
        for (path, file_use) in roots(workspace, package) {
            let directory = directory_of(&path).to_owned();
            visit(workspace, &path, &directory, file_use, &mut uses);
        }
    }
    uses
}

fn roots(workspace: &Workspace<'_>, package: &Package) -> Vec<(String, FileUse)> {
    let mut roots: Vec<(String, FileUse)> =
        TARGET_FILES.iter().map(|(file, file_use)| (format!("{}/{file}", package.directory), *file_use)).collect();
    for (directory, file_use) in TARGET_DIRECTORIES {
        let prefix = format!("{}/{directory}/", package.directory);
        for path in workspace.files.keys().filter_map(|path| path.strip_prefix(&prefix)) {
            if !path.contains('/') || path.split('/').count() == 2 && path.ends_with("/main.rs") {
                roots.push((format!("{prefix}{path}"), *file_use));
            }
        }
    }
    for (table, file_use) in TARGET_TABLES {
        let value = package.manifest.get(*table);
        let targets = value.and_then(toml::Value::as_array).map(Vec::as_slice).or(value.map(std::slice::from_ref));
        for target in targets.unwrap_or_default() {
            let named = target.get("path").and_then(toml::Value::as_str).and_then(|path| join(&package.directory, path));
            // A program that only tests run lies beside them.
            let is_for_tests = |path: &str| path.starts_with(&format!("{}/tests/", package.directory));
            roots.extend(named.map(|path| if is_for_tests(&path) { (path, FileUse::Test) } else { (path, *file_use) }));
        }
    }
    roots
}

/// Marks a file and all files that it declares. `directory` is the directory of its child modules.
fn visit(workspace: &Workspace<'_>, path: &str, directory: &str, file_use: FileUse, uses: &mut BTreeMap<String, FileUse>) {
    let Some(file) = workspace.files.get(path) else { return };
    match uses.get(path) {
        Some(FileUse::Code) => return,
        Some(seen) if *seen == file_use => return,
        _ => {}
    }
    uses.insert(path.to_owned(), file_use);
    if let Ok(syntax) = &file.syntax {
        visit_items(workspace, &syntax.items, directory_of(path), directory, file_use, uses);
    }
}

/// `base` is the directory of the file itself, to which `#[path]` is relative; `directory` is the directory of its child modules.
fn visit_items(
    workspace: &Workspace<'_>,
    items: &[Item],
    base: &str,
    directory: &str,
    file_use: FileUse,
    uses: &mut BTreeMap<String, FileUse>,
) {
    for item in items {
        let Item::Mod(module) = item else { continue };
        let file_use = if is_test_only(&module.attrs) { FileUse::Test } else { file_use };
        let name = module.ident.to_string();
        let inner = format!("{directory}/{}", name.trim_start_matches("r#"));
        match &module.content {
            Some((_, items)) => visit_items(workspace, items, &inner, &inner, file_use, uses),
            None => {
                for (path, directory) in candidates(module, base, &inner) {
                    visit(workspace, &path, &directory, file_use, uses);
                }
            }
        }
    }
}

/// Files that `mod name;` may refer to, each with the directory of its child modules.
fn candidates(module: &ItemMod, base: &str, inner: &str) -> Vec<(String, String)> {
    if let Some(path) = path_attribute(&module.attrs).and_then(|path| join(base, &path)) {
        let directory = directory_of(&path).to_owned();
        return vec![(path, directory)];
    }
    vec![(format!("{inner}.rs"), inner.to_owned()), (format!("{inner}/mod.rs"), inner.to_owned())]
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("path")).find_map(|attribute| {
        match &attribute.meta.require_name_value().ok()?.value {
            syn::Expr::Lit(literal) => match &literal.lit {
                syn::Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        }
    })
}
