//! Embeds the scenarios of `lab/scenarios` and the attacks of `lab/attacks`: each file in any folder below them, under its name without `.toml`.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const SCENARIOS: &str = "../../lab/scenarios";
/// Each attack is in the folder of its kind.
const ATTACKS: &str = "../../lab/attacks";

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
    let scenarios = |file: &Path, name: &str| format!("    ({name:?}, include_str!({:?})),\n", file.display().to_string());
    list(SCENARIOS, "scenarios.rs", scenarios)?;
    list(ATTACKS, "attacks.rs", |file, name| {
        let kind = file.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        format!("    ({kind:?}, {name:?}, include_str!({:?})),\n", file.display().to_string())
    })
}

/// Writes a list with an entry for each file below `folder`, in the order of their names.
fn list(folder: &str, output: &str, entry: impl Fn(&Path, &str) -> String) -> Result<(), String> {
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("cargo names no CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo names no OUT_DIR")?).join(output);
    let mut found = BTreeMap::new();
    let folder = own.join(folder);
    find(&folder, &mut found).map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    let mut list = String::from("&[\n");
    for (name, files) in found {
        let [file] = &files[..] else { return Err(format!("several files are named {name}: {files:?}")) };
        list += &entry(file, &name);
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
