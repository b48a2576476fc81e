//! Embeds the message catalogue: every `.ftl` file below `locales/en` and `src`, so that a station or a remedy brings its own sentences.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const FOLDERS: &[&str] = &["locales/en", "src"];

fn main() -> ExitCode {
    match embed() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("cargo::error={why}");
            ExitCode::FAILURE
        }
    }
}

fn embed() -> Result<(), String> {
    #[expect(clippy::disallowed_methods, reason = "a build script learns its paths from the environment")]
    let path = |name: &str| env::var_os(name).map(PathBuf::from).ok_or(format!("cargo sets no {name}"));
    let (own, out) = (path("CARGO_MANIFEST_DIR")?, path("OUT_DIR")?);
    let mut files = Vec::new();
    for folder in FOLDERS {
        let folder = own.join(folder);
        find(&folder, &mut files).map_err(|error| format!("cannot read the messages in {}: {error}", folder.display()))?;
    }
    files.sort();
    let list: String = files.iter().map(|file| format!("    include_str!({:?}),\n", file.display().to_string())).collect();
    fs::write(out.join("catalogue.rs"), format!("&[\n{list}]\n")).map_err(|error| format!("cannot write the list of messages: {error}"))
}

/// The message files below a folder. Cargo watches each folder, so that a new file is noticed.
fn find(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            find(&path, found)?;
        } else if path.extension().is_some_and(|end| end == "ftl") {
            found.push(path);
        }
    }
    Ok(())
}
