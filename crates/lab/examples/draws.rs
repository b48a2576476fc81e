//! Writes stacks drawn at random as scenarios, with all of their faults: `draws SEED FIRST COUNT DIRECTORY`.

use std::process::ExitCode;

use chokepoint_lab::random::{With, draw};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        [seed, first, count, directory] => write(seed, first, count, directory),
        _ => Err("usage: draws SEED FIRST COUNT DIRECTORY".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn write(seed: &str, first: &str, count: &str, directory: &str) -> Result<(), Box<dyn std::error::Error>> {
    let (seed, first, count): (u32, u32, u32) = (seed.parse()?, first.parse()?, count.parse()?);
    for index in first..first.saturating_add(count) {
        let scenario = draw(seed, index).scenario(With::All)?;
        std::fs::write(std::path::Path::new(directory).join(format!("draw-{index:03}.toml")), scenario.text())?;
    }
    Ok(())
}
