//! Embeds the scenarios of `lab/scenarios`: each file in any folder below it, under its name without `.toml`.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const FOLDER: &str = "../../lab/scenarios";

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
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("cargo names no CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo names no OUT_DIR")?).join("scenarios.rs");
    let mut found = BTreeMap::new();
    let folder = own.join(FOLDER);
    find(&folder, &mut found).map_err(|error| format!("cannot read the scenarios in {}: {error}", folder.display()))?;
    let mut list = String::from("&[\n");
    for (name, files) in found {
        let [file] = &files[..] else { return Err(format!("several scenarios are named {name}: {files:?}")) };
        list += &format!("    ({name:?}, include_str!({:?})),\n", file.display().to_string());
    }
    fs::write(&out, list + "]\n").map_err(|error| format!("cannot write {}: {error}", out.display()))
}

/// The files below a folder by name. Cargo also watches the folder itself, which changes when a file is added or removed.
fn find(folder: &Path, found: &mut BTreeMap<String, Vec<PathBuf>>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, found)?;
        } else if let Some(name) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".toml")) {
            found.entry(name.to_owned()).or_default().push(path.canonicalize()?);
        }
    }
    Ok(())
}
