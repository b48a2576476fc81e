//! `chokepoint lab attack`: lists attacks by another user of the host, and carries them out against this program.

use anyhow::{Context, Result, bail};
use chokepoint_lab::Attack;
use chokepoint_lab::attack::{KINDS, Outcome, StepResult, Trial, TrialOptions};
use serde_json::{Value, json};

use crate::Usage;
use crate::args::LabAttack;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output;

/// Name and version of the schema of a line.
const SCHEMA: &str = "chokepoint/lab-attack/1";

/// Lists the attacks, or carries out those that are named. True if everything that must hold held.
pub(super) fn run(args: &LabAttack, interrupt: &Interrupt) -> Result<bool> {
    let attacks = match (args.names.is_empty(), args.all) {
        (true, false) => return list(args.json).map(|()| true),
        (true, true) => Attack::builtin()?,
        (false, true) => bail!(Usage("give names or --all, not both".to_owned())),
        (false, false) => args.names.iter().map(|name| Attack::find(name)).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect(),
    };
    let chokepoint = match &args.program {
        Some(program) => std::path::absolute(program)?,
        None => std::env::current_exe().context("this program has no path")?,
    };
    let options = TrialOptions { chokepoint, run_root: chokepoint_lab::run_root(), cancelled: interrupt.flag() };
    let mut counts = Counts::default();
    for attack in &attacks {
        let trial = attack.carry_out(&options).with_context(|| format!("attack {}", attack.name))?;
        counts.add(&trial.outcome);
        if args.json {
            output::print_json(&format!("{}\n", line(attack, &trial)))?;
        } else {
            output::print(&text(attack, &trial))?;
        }
    }
    if !args.json {
        output::print(&format!("{}\n", counts.text()))?;
    }
    Ok(counts.broken == 0)
}

fn list(json: bool) -> Result<()> {
    let attacks = Attack::builtin()?;
    if json {
        let one = |attack: &Attack| json!({ "name": attack.name, "kind": attack.kind(), "does": attack.does, "holds": attack.holds });
        let attacks: Vec<Value> = attacks.iter().map(one).collect();
        return output::print_json(&format!("{:#}\n", json!({ "schema": "chokepoint/lab-attacks/1", "attacks": attacks })));
    }
    let width = attacks.iter().map(|attack| attack.name.len()).max().unwrap_or(0);
    let mut text = String::from("Another user of the host, or a container,\n");
    for kind in KINDS {
        text.push_str(&format!("\n{} ({}):\n", kind.title, kind.name));
        for attack in attacks.iter().filter(|attack| attack.kind() == kind.name) {
            text.push_str(&format!("  {:width$}  {}\n", attack.name, attack.does));
        }
    }
    output::print(&text)
}

#[derive(Default)]
struct Counts {
    held: usize,
    broken: usize,
    skipped: usize,
}

impl Counts {
    fn add(&mut self, outcome: &Outcome) {
        *match outcome {
            Outcome::Held => &mut self.held,
            Outcome::Broken(_) => &mut self.broken,
            Outcome::Skipped(_) => &mut self.skipped,
        } += 1;
    }

    fn text(&self) -> String {
        let Self { held, broken, skipped } = self;
        format!("{} attacks: {held} held, {broken} broken, {skipped} skipped", held + broken + skipped)
    }
}

fn text(attack: &Attack, trial: &Trial) -> String {
    let (word, whys) = match &trial.outcome {
        Outcome::Held => ("held", Vec::new()),
        Outcome::Broken(whys) => ("BROKEN", whys.clone()),
        Outcome::Skipped(why) => ("skipped", vec![why.clone()]),
    };
    let memory_bytes = trial.steps.iter().map(|step| step.memory_bytes).max().unwrap_or(0);
    let mut text = format!("{word:8} {}  {:.1} s, {} MiB\n", attack.name, trial.seconds, memory_bytes >> 20);
    for why in whys {
        text.push_str(&format!("         {}\n", why.trim_end().replace('\n', "\n         ")));
    }
    text
}

fn line(attack: &Attack, trial: &Trial) -> Value {
    let (outcome, why) = match &trial.outcome {
        Outcome::Held => ("held", Vec::new()),
        Outcome::Broken(whys) => ("broken", whys.clone()),
        Outcome::Skipped(why) => ("skipped", vec![why.clone()]),
    };
    let step = |step: &StepResult| json!({ "command": step.command, "status": step.status, "seconds": step.seconds, "cpu_seconds": step.cpu_seconds, "memory_bytes": step.memory_bytes });
    let steps: Vec<Value> = trial.steps.iter().map(step).collect();
    json!({
        "schema": SCHEMA, "attack": attack.name, "kind": attack.kind(), "outcome": outcome, "why": why, "seconds": trial.seconds, "steps": steps,
    })
}
