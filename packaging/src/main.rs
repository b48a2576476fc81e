//! What a release has beside the program: man pages and completions, made from the command line itself, and the pictures of a report for the documentation.
//! It is a program of its own, so that the product does not contain it.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

mod completions;
mod man_page;
mod picture;
mod sample;

/// Man pages, completions and pictures of chokepoint.
#[derive(Debug, Parser)]
#[command(name = "packaging")]
enum Task {
    /// Write a man page for each verb into DIRECTORY/man and completions for bash, zsh and fish into DIRECTORY/completions
    Pages {
        /// The date at the foot of the man pages
        #[arg(long, value_name = "YYYY-MM-DD", default_value = " ")]
        date: String,
        /// Made if it is missing
        directory: PathBuf,
    },
    /// Draw a report as report-dark.svg and report-light.svg
    Picture {
        /// The report as it was printed to a terminal of 80 columns, with its colours
        report: PathBuf,
        /// Where the pictures go
        directory: PathBuf,
    },
    /// Write the beginning of a recording's report into a document, between its marks
    Sample {
        /// The program that prints the report
        #[arg(long, value_name = "FILE", default_value = "target/debug/chokepoint")]
        program: PathBuf,
        /// The recording
        recording: PathBuf,
        /// The document
        document: PathBuf,
    },
}

fn main() -> ExitCode {
    let done = match Task::parse() {
        Task::Pages { date, directory } => {
            let command = chokepoint::command();
            man_page::write(&command, &date, &directory.join("man"))
                .and_then(|()| completions::write(&command, &directory.join("completions")))
        }
        Task::Picture { report, directory } => picture::write(&report, &directory),
        Task::Sample { program, recording, document } => sample::write(&program, &recording, &document),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("packaging: {error:#}");
            ExitCode::FAILURE
        }
    }
}
