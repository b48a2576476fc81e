//! For developers: draws stacks at random, diagnoses them and grades the verdicts; and sums up the runs of scenarios and of drawn stacks in a score-board.

mod answer;
mod args;
mod board;
mod draw;
mod proof;
mod share;
mod trial;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use chokepoint::lab::Interrupt;
use chokepoint_model::catalogue::Catalogue;
use clap::Parser;

use args::{Cli, Draws, Verb};
use board::Board;
use draw::With;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let interrupt = match Interrupt::install() {
        Ok(interrupt) => interrupt,
        Err(error) => return fail(&error),
    };
    let ended = match run(&cli.verb, &interrupt) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => fail(&error),
    };
    interrupt.status().map_or(ended, ExitCode::from)
}

fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("scoreboard: {error:#}");
    ExitCode::FAILURE
}

/// Runs the verb; false where a verdict on a drawn stack was wrong.
fn run(verb: &Verb, interrupt: &Interrupt) -> Result<bool> {
    match verb {
        Verb::Run(args) => trial::run(args, &Catalogue::english(), interrupt),
        Verb::Write { draws, directory } => write(draws, directory).map(|()| true),
        Verb::Score { runs, json } => score(runs, *json).map(|()| true),
    }
}

fn write(draws: &Draws, directory: &std::path::Path) -> Result<()> {
    let seed = draws.seed.context("--seed is needed to write draws")?;
    std::fs::create_dir_all(directory).with_context(|| format!("{} cannot be created", directory.display()))?;
    for index in draws.index..=draws.last()? {
        let scenario = draw::draw(seed, index).scenario(With::All)?;
        std::fs::write(directory.join(format!("draw-{index:03}.toml")), scenario.text())?;
    }
    Ok(())
}

fn score(runs: &[PathBuf], json: bool) -> Result<()> {
    let board = Board::read(runs)?;
    match json {
        true => println!("{}", serde_json::to_string_pretty(&board)?),
        false => print!("{}", board::page::render(&board)),
    }
    Ok(())
}
