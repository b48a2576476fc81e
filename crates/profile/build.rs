//! Compiles the BPF program that counts drops in the kernel, for the feature `bpf`.

use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

const SOURCE: &str = "src/drops/socket.bpf.c";

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-env-changed=CLANG");
    if env::var_os("CARGO_FEATURE_BPF").is_none() {
        return ExitCode::SUCCESS;
    }
    match compile() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("cargo::error={why}");
            ExitCode::FAILURE
        }
    }
}

fn compile() -> Result<(), String> {
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let object = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo names no OUT_DIR")?).join("socket.o");
    // The BPF program has the byte order of the target processor.
    let order = if env::var("CARGO_CFG_TARGET_ENDIAN").as_deref() == Ok("big") { "bpfeb" } else { "bpfel" };
    let mut command = Command::new(&clang);
    command.args(["-target", order, "-g", "-O2", "-Wall", "-Werror", "-c", SOURCE, "-o"]).arg(&object);
    let ended = command.status().map_err(|error| {
        format!("the cargo feature `bpf` takes clang, and {clang} cannot be run: {error}; install clang, or build without the feature")
    })?;
    if ended.success() { Ok(()) } else { Err(format!("{clang} cannot compile {SOURCE} for BPF: {ended}")) }
}
