//! The outputs of `bench`: stdout, and files in other formats.

mod csv;
mod hgrm;
mod junit;

use std::path::Path;

use anyhow::{Result, bail};
use chokepoint_load::ThresholdResult;
use chokepoint_model::bench::Bench as Report;
use chokepoint_model::catalogue::Catalogue;

use crate::args::Bench;
use crate::report::markdown;
use crate::run::files::{Output, first_error};
use crate::terminal::output;

/// The file name that stands for stdout.
const STDOUT: &str = "-";

/// The output files, created before the load so that an unwritable one is refused early.
pub(super) struct Files([Option<Output>; 4]);

/// Creates every output file.
pub(super) fn open(args: &Bench) -> Result<Files> {
    let asked = [&args.csv, &args.hgrm, &args.markdown, &args.junit];
    let mut files = Vec::new();
    for file in asked {
        files.push(Output::open_where(file.as_deref().filter(|file| !is_stdout(Some(file))), "report")?);
    }
    Ok(Files(files.try_into().unwrap_or_default()))
}

/// An error if two formats would go to stdout.
pub(super) fn check(args: &Bench) -> Result<()> {
    let asked = [("--csv", &args.csv), ("--hgrm", &args.hgrm), ("--markdown", &args.markdown), ("--junit", &args.junit)];
    let mut to_stdout: Vec<&str> = asked.into_iter().filter(|(_, file)| is_stdout(file.as_deref())).map(|(flag, _)| flag).collect();
    to_stdout.extend(args.json.then_some("--json"));
    match to_stdout.as_slice() {
        [first, second, ..] => bail!("{first} and {second} cannot both be printed: give one of them a file"),
        _ => Ok(()),
    }
}

/// True if the text report goes to stdout.
pub(super) fn is_report(args: &Bench) -> bool {
    !args.json && ![&args.csv, &args.hgrm, &args.markdown, &args.junit].into_iter().any(|file| is_stdout(file.as_deref()))
}

fn is_stdout(file: Option<&Path>) -> bool {
    file.is_some_and(|file| file.as_os_str() == STDOUT)
}

/// Writes every file, and prints the report or the format that replaces it. A failed file does not prevent the other outputs; the first error is returned.
pub(super) fn write(args: &Bench, files: Files, report: &Report, judged: &[ThresholdResult], words: &Catalogue) -> Result<()> {
    let forms: [(Option<&Path>, &dyn Fn() -> String); 4] = [
        (args.csv.as_deref(), &|| csv::render(report)),
        (args.hgrm.as_deref(), &|| hgrm::render(report)),
        (args.markdown.as_deref(), &|| markdown::bench(report, judged, words)),
        (args.junit.as_deref(), &|| junit::render(report, judged, words)),
    ];
    let mut printed = None;
    let mut written = Vec::new();
    for ((file, render), output) in forms.into_iter().zip(files.0) {
        if is_stdout(file) {
            printed = Some(render());
        }
        written.extend(output.map(|output| output.write(render().as_bytes())));
    }
    let told = match printed {
        Some(text) => output::print(&text),
        None if args.json => output::print_json(&format!("{}\n", serde_json::to_string_pretty(report)?)),
        None => output::print_painted(&crate::report::text::bench_text(report, judged, &output::style(), words)),
    };
    first_error(std::iter::once(told).chain(written))
}
