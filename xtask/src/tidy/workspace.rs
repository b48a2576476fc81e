//! The repository as the rules see it: packages with their manifests, and source files with their syntax trees and their use in a package.

use std::collections::BTreeMap;

use super::module_tree;
use crate::tree::{Tree, directory_of};

/// One package of the workspace.
#[derive(Debug)]
pub(crate) struct Package {
    /// Its directory, relative to the root.
    pub(crate) directory: String,
    /// Its manifest.
    pub(crate) manifest: toml::Table,
}

impl Package {
    /// The last part of its directory: "model".
    pub(crate) fn short_name(&self) -> &str {
        self.directory.rsplit('/').next().unwrap_or_default()
    }
}

/// How a source file belongs to its package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileUse {
    /// Compiled into the package.
    Code,
    /// Compiled for tests, benchmarks or examples alone.
    Test,
    /// Runs while the package is built, on the builder's machine: `build.rs`.
    Build,
    /// Reached by no `mod` from any target's root.
    Dead,
}

/// One Rust source file.
pub(crate) struct SourceFile<'a> {
    /// Path relative to the root.
    pub(crate) path: &'a str,
    /// Its text.
    pub(crate) text: &'a str,
    /// Its syntax tree, or the line and the reason of the syntax error.
    pub(crate) syntax: Result<syn::File, (usize, String)>,
    /// The index of its package in [`Workspace::packages`].
    pub(crate) package: Option<usize>,
    pub(crate) file_use: FileUse,
}

/// The repository.
pub(crate) struct Workspace<'a> {
    /// Every text file.
    pub(crate) tree: &'a Tree,
    /// Packages by directory.
    pub(crate) packages: Vec<Package>,
    /// Rust files by path.
    pub(crate) files: BTreeMap<&'a str, SourceFile<'a>>,
    /// Manifests that are not TOML: path and message.
    pub(crate) bad_manifests: Vec<(String, String)>,
}

impl<'a> Workspace<'a> {
    /// Parses a tree.
    pub(crate) fn of(tree: &'a Tree) -> Self {
        let mut workspace = Self { tree, packages: Vec::new(), files: BTreeMap::new(), bad_manifests: Vec::new() };
        for (path, text) in tree.ending("Cargo.toml") {
            match toml::from_str::<toml::Table>(text) {
                Ok(manifest) if manifest.contains_key("package") => {
                    workspace.packages.push(Package { directory: directory_of(path).to_owned(), manifest });
                }
                Ok(_) => {}
                Err(error) => workspace.bad_manifests.push((path.to_owned(), error.message().to_owned())),
            }
        }
        for (path, text) in tree.ending(".rs") {
            let syntax = syn::parse_file(text).map_err(|error| (error.span().start().line, error.to_string()));
            let package = workspace.package_of(path);
            workspace.files.insert(path, SourceFile { path, text, syntax, package, file_use: FileUse::Dead });
        }
        let uses = module_tree::file_uses(&workspace);
        for (path, file) in &mut workspace.files {
            file.file_use = uses.get(*path).copied().unwrap_or(FileUse::Dead);
        }
        workspace
    }

    /// The innermost package whose directory contains the file.
    fn package_of(&self, path: &str) -> Option<usize> {
        let is_inside = |package: &Package| path.starts_with(&format!("{}/", package.directory));
        let containing = self.packages.iter().enumerate().filter(|(_, package)| is_inside(package));
        containing.max_by_key(|(_, package)| package.directory.len()).map(|(index, _)| index)
    }

    /// Files that parse, with their syntax trees.
    pub(crate) fn parsed(&self) -> impl Iterator<Item = (&SourceFile<'a>, &syn::File)> {
        self.files.values().filter_map(|file| file.syntax.as_ref().ok().map(|syntax| (file, syntax)))
    }

    /// The short name of a file's package; empty if it has none.
    pub(crate) fn package_name(&self, file: &SourceFile<'_>) -> &str {
        file.package.and_then(|index| self.packages.get(index)).map_or("", Package::short_name)
    }
}
