//! Which source files a package's targets reach by `mod`, and which of those only its tests do.

use std::collections::BTreeMap;

use syn::{Attribute, Item, ItemMod};

use super::names::is_test_only;
use super::workspace::{FileUse, Package, Workspace};
use crate::tree::{directory_of, join};

/// Directories whose files (or `NAME/main.rs`) cargo takes for targets of their own, with what they are compiled for.
const TARGET_DIRECTORIES: &[(&str, FileUse)] =
    &[("src/bin", FileUse::Code), ("tests", FileUse::Test), ("benches", FileUse::Test), ("examples", FileUse::Test)];
/// Root files that cargo finds by name.
const TARGET_FILES: &[(&str, FileUse)] = &[("src/lib.rs", FileUse::Code), ("src/main.rs", FileUse::Code), ("build.rs", FileUse::Build)];
/// Tables of a manifest that may name a target's root by `path`.
const TARGET_TABLES: &[(&str, FileUse)] =
    &[("lib", FileUse::Code), ("bin", FileUse::Code), ("test", FileUse::Test), ("bench", FileUse::Test), ("example", FileUse::Test)];

/// The place of every file that is reached; a file reached from code and from tests is code.
pub(crate) fn places(workspace: &Workspace<'_>) -> BTreeMap<String, FileUse> {
    let mut places = BTreeMap::new();
    for package in &workspace.packages {
        for (path, place) in roots(workspace, package) {
            let directory = directory_of(&path).to_owned();
            visit(workspace, &path, &directory, place, &mut places);
        }
    }
    places
}

fn roots(workspace: &Workspace<'_>, package: &Package) -> Vec<(String, FileUse)> {
    let mut roots: Vec<(String, FileUse)> =
        TARGET_FILES.iter().map(|(file, place)| (format!("{}/{file}", package.directory), *place)).collect();
    for (directory, place) in TARGET_DIRECTORIES {
        let prefix = format!("{}/{directory}/", package.directory);
        for path in workspace.files.keys().filter_map(|path| path.strip_prefix(&prefix)) {
            if !path.contains('/') || path.split('/').count() == 2 && path.ends_with("/main.rs") {
                roots.push((format!("{prefix}{path}"), *place));
            }
        }
    }
    for (table, place) in TARGET_TABLES {
        let value = package.manifest.get(*table);
        let targets = value.and_then(toml::Value::as_array).map(Vec::as_slice).or(value.map(std::slice::from_ref));
        for target in targets.unwrap_or_default() {
            let named = target.get("path").and_then(toml::Value::as_str).and_then(|path| join(&package.directory, path));
            roots.extend(named.map(|path| (path, *place)));
        }
    }
    roots
}

/// Marks a file and all that it declares. `directory` is where its child modules lie.
fn visit(workspace: &Workspace<'_>, path: &str, directory: &str, place: FileUse, places: &mut BTreeMap<String, FileUse>) {
    let Some(file) = workspace.files.get(path) else { return };
    match places.get(path) {
        Some(FileUse::Code) => return,
        Some(seen) if *seen == place => return,
        _ => {}
    }
    places.insert(path.to_owned(), place);
    if let Ok(syntax) = &file.syntax {
        visit_items(workspace, &syntax.items, directory_of(path), directory, place, places);
    }
}

/// `base` is the directory of the file itself, from which `#[path]` counts; `directory` is where its modules lie.
fn visit_items(
    workspace: &Workspace<'_>,
    items: &[Item],
    base: &str,
    directory: &str,
    place: FileUse,
    places: &mut BTreeMap<String, FileUse>,
) {
    for item in items {
        let Item::Mod(module) = item else { continue };
        let place = if is_test_only(&module.attrs) { FileUse::Test } else { place };
        let name = module.ident.to_string();
        let inner = format!("{directory}/{}", name.trim_start_matches("r#"));
        match &module.content {
            Some((_, items)) => visit_items(workspace, items, &inner, &inner, place, places),
            None => {
                for (path, directory) in candidates(module, base, &inner) {
                    visit(workspace, &path, &directory, place, places);
                }
            }
        }
    }
}

/// Files that a `mod name;` may stand for, each with the directory of its own modules.
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
