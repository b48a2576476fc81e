//! Tries the lab without the command line tool: `lab up NAME|FILE`, `lab down [NAME]`, `lab list`, `lab draws SEED FIRST COUNT DIRECTORY`.

use std::process::ExitCode;

use chokepoint_lab::random::{self, With};
use chokepoint_lab::{DownOptions, Lab, Options, Scenario, down_all, leftovers, run_root};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["up", scenario] => up(scenario),
        ["down"] => down(None),
        ["down", name] => down(Some(name)),
        ["list"] => list(),
        ["draws", seed, first, count, directory] => draws(seed, first, count, directory),
        _ => Err("usage: lab up NAME|FILE | lab down [NAME] | lab list | lab draws SEED FIRST COUNT DIRECTORY".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn up(scenario: &str) -> Result<(), Box<dyn std::error::Error>> {
    let scenario = Scenario::find(scenario)?;
    let mut on_step = |step: &str| eprintln!("  {step}");
    let lab = Lab::up(&scenario, Options { run_root: run_root(), outlive: true, within: None, cancelled: None, on_step: &mut on_step })?;
    println!(
        "url      {}\nclient   {} (cores {:?})\nfiles    {}",
        lab.url(),
        lab.client_netns_path().display(),
        lab.client_cpus(),
        lab.run_path().display()
    );
    for server in lab.servers() {
        println!("server   {} pid {} in {}", server.name, server.pid, lab.netns_name(&server.host).unwrap_or_default());
    }
    for note in lab.notes() {
        println!("note     {note}");
    }
    Ok(())
}

fn down(name: Option<&str>) -> Result<(), Box<dyn std::error::Error>> {
    let reports = match name {
        Some(name) => vec![chokepoint_lab::down(&run_root(), name, DownOptions::default())?],
        None => down_all(&run_root(), DownOptions::default())?,
    };
    for report in reports {
        println!("{}: {report} ({})", report.name, report.done.join(", "));
    }
    Ok(())
}

fn list() -> Result<(), Box<dyn std::error::Error>> {
    for scenario in Scenario::builtin()? {
        println!("{:24} {}", scenario.name, scenario.title);
    }
    for leftover in leftovers(&run_root())? {
        println!("{:24} {}", leftover.name, leftover.kind);
    }
    Ok(())
}

/// Writes stacks drawn at random as scenarios, with all of their faults.
fn draws(seed: &str, first: &str, count: &str, directory: &str) -> Result<(), Box<dyn std::error::Error>> {
    let (seed, first, count): (u32, u32, u32) = (seed.parse()?, first.parse()?, count.parse()?);
    for index in first..first.saturating_add(count) {
        let scenario = random::draw(seed, index).scenario(With::All)?;
        std::fs::write(std::path::Path::new(directory).join(format!("draw-{index:03}.toml")), scenario.text())?;
    }
    Ok(())
}
