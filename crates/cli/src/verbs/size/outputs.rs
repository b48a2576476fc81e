//! The outputs of `size`: the report on stdout, and files with the report and the curve.

use anyhow::Result;
use chokepoint_model::catalogue::Catalogue;
use chokepoint_sizing::report::Size;

use crate::args::Size as Args;
use crate::report::plot;
use crate::report::{markdown, page, text};
use crate::run::files::{Output, first_error};
use crate::terminal::output;

/// The files of the flags, opened before anything is measured.
pub(super) struct Files {
    html: Option<Output>,
    svg: Option<Output>,
    markdown: Option<Output>,
}

/// Creates every file.
pub(super) fn open(args: &Args) -> Result<Files> {
    let html = Output::open_where(args.html.as_deref(), "report")?;
    let svg = Output::open_where(args.svg.as_deref(), "picture")?;
    Ok(Files { html, svg, markdown: Output::open_where(args.markdown.as_deref(), "report")? })
}

/// Prints the report and writes every file. The first error is returned.
pub(super) fn write(args: &Args, files: Files, report: &Size, words: &Catalogue) -> Result<()> {
    let printed = match args.json {
        true => output::print_json(&format!("{}\n", serde_json::to_string_pretty(report)?)),
        false => output::print_painted(&text::size_text(report, args.verbose, &output::style(), words)),
    };
    let html = |file: Output| {
        let page = page::size::page(report, words);
        file.write(page::file::render(&page, Some(&serde_json::to_string(report)?), &markdown::size(report, words)).as_bytes())
    };
    let written = [
        files.html.map(html),
        files.svg.map(|file| file.write(plot::stacked(&plot::size::plots(report, words)).as_bytes())),
        files.markdown.map(|file| file.write(markdown::size(report, words).as_bytes())),
    ];
    first_error(std::iter::once(printed).chain(written.into_iter().flatten()))
}
