//! The built binary as a user runs it, and the files that tests give it.

mod figures;
mod frozen;
mod host;
mod leftovers;
mod nginx;
mod server;
mod terminal;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub(crate) use figures::wrong_figures;
pub(crate) use frozen::Frozen;
pub(crate) use host::{
    NOBODY, Netns, Running, WAIT_MAX, becomes_true, becomes_true_soon, free_address, has_programs, is_root, signal, wait_until,
};
pub(crate) use leftovers::one_lab;
pub(crate) use nginx::{Nginx, site};
pub(crate) use server::{OK, Server};
pub(crate) use terminal::open_terminal;

/// The binary under test, with its own state directory and lab directory.
pub(crate) struct Chokepoint {
    pub(crate) dir: tempfile::TempDir,
}

/// A lab that a failed test left up would fail the next ones.
impl Drop for Chokepoint {
    fn drop(&mut self) {
        if std::thread::panicking() {
            leftovers::clear(self.dir.path());
        }
    }
}

/// The status and the output of a run.
pub(crate) struct Ran {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Chokepoint {
    pub(crate) fn new() -> Self {
        let dir = leftovers::directory();
        // Another user's processes must reach the files of a lab below it.
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        Self { dir }
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_chokepoint"));
        command.args(args).stdin(Stdio::null()).env("CHOKEPOINT_STATE_DIR", self.file("state"));
        command.env("CHOKEPOINT_RUN_DIR", self.file("run")).env_remove("NO_COLOR").env("LC_ALL", "C.UTF-8");
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        ran(self.command(args).output().unwrap())
    }

    /// Runs a copy of the binary as nobody, with an empty environment but for this state directory.
    pub(crate) fn run_as_nobody(&self, args: &[&str], state: &str) -> Ran {
        let mut command = Command::new(self.copy_of_binary());
        command.args(args).uid(NOBODY).gid(NOBODY).current_dir("/").env_clear().env("CHOKEPOINT_STATE_DIR", state);
        ran(command.output().unwrap())
    }

    /// A copy of the binary that every user can reach. Another process writes it: if the file were open for writing here, a child forked by another
    /// test would inherit it, and the copy could not be run ("text file busy").
    pub(crate) fn copy_of_binary(&self) -> PathBuf {
        let copy = self.file("chokepoint");
        if !copy.exists() {
            assert!(Command::new("cp").arg(env!("CARGO_BIN_EXE_chokepoint")).arg(&copy).status().unwrap().success());
        }
        copy
    }

    /// A file in the test's directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The path of [`Self::file`] as text.
    pub(crate) fn path(&self, name: &str) -> String {
        self.file(name).to_str().unwrap().to_owned()
    }

    /// Writes a file into the test's directory and returns its path.
    pub(crate) fn write(&self, name: &str, text: &[u8]) -> String {
        std::fs::write(self.file(name), text).unwrap();
        self.path(name)
    }
}

pub(crate) fn ran(output: Output) -> Ran {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { status: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// A file of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
}

/// The repository's recordings below `tests/FOLDER`: "conntrack-table/conntrack-full" for each file of that name ending in `.rec`.
pub(crate) fn recordings(folder: &str) -> BTreeSet<String> {
    let root = repository("tests").join(folder);
    let list = |folder: &PathBuf| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let files = list(&root).into_iter().flat_map(|path| if path.is_dir() { list(&path) } else { vec![path] });
    files.filter_map(|path| path.strip_prefix(&root).unwrap().to_str()?.strip_suffix(".rec").map(str::to_owned)).collect()
}

/// All recordings of the repository: "tests/data/conntrack-table/conntrack-full.rec".
pub(crate) fn all_recordings() -> BTreeSet<String> {
    let folders = ["data", "misses", "improvements", "left-out"];
    folders.into_iter().flat_map(|folder| recordings(folder).into_iter().map(move |name| format!("tests/{folder}/{name}.rec"))).collect()
}

/// The remedies of the findings and of the improvements in a recording of the repository.
pub(crate) fn remedies_of(chokepoint: &Chokepoint, file: &str) -> Vec<Value> {
    let ran = chokepoint.run(&["diagnose", "--replay", repository(file).to_str().unwrap(), "--json"]);
    let report = fits(&ran.stdout, "diagnosis-1.json");
    let findings = ["findings", "improvements"].map(|list| report[list].as_array().cloned().unwrap_or_default());
    findings.iter().flatten().flat_map(|finding| finding["remedies"].as_array().unwrap().clone()).collect()
}

/// A document that fits a schema of docs/schema, has no field that the schema does not describe, and no figure that cannot be.
pub(crate) fn fits(text: &str, schema: &str) -> Value {
    let document: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let errors = errors(&closed(schema_of(schema)), &document);
    assert!(errors.is_empty(), "{errors:#?}\n{document:#}");
    let wrong = wrong_figures(&document);
    assert!(wrong.is_empty(), "{wrong:#?}\n{document:#}");
    document
}

/// A schema of docs/schema.
pub(crate) fn schema_of(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(repository("docs/schema").join(name)).unwrap()).unwrap()
}

/// The schema without room for further fields: readers must accept them, but this version must describe all that it writes.
pub(crate) fn closed(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(object) => {
            object.values_mut().for_each(|value| *value = closed(value.take()));
            if object.contains_key("properties") {
                object.entry("additionalProperties").or_insert(Value::Bool(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = closed(item.take())),
        _ => {}
    }
    schema
}

/// The places in a document that do not fit a schema.
pub(crate) fn errors(schema: &Value, document: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(schema).unwrap();
    validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect()
}
