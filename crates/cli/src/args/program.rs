//! The program as clap sees it, with its verbs in groups.

use clap::{Command, CommandFactory};

use super::Cli;
use super::deferred::unrepeated;

/// The verbs in the order of the help: what a new user needs first, then single tools.
const GROUPS: [(&str, &[&str]); 2] = [
    ("Find and fix", &["diagnose", "undo", "explain", "watch", "incidents"]),
    ("Tools", &["where", "bench", "experiment", "size", "capacity", "runs", "profile", "tcp", "streams", "lab", "help"]),
];

/// The command line; its help lists the verbs in groups, which clap has no setting for.
pub(crate) fn program() -> Command {
    let command = Cli::command().mut_subcommands(unrepeated);
    let line = |name: &str| {
        let about = command.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string);
        format!("  {name:<12}{}\n", about.unwrap_or_else(|| "Print the help of a verb".to_owned()))
    };
    let group = |(heading, verbs): &(&str, &[&str])| format!("{heading}:\n{}\n", verbs.iter().map(|verb| line(verb)).collect::<String>());
    let verbs: String = GROUPS.iter().map(group).collect();
    command.help_template(format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{verbs}Options:\n{{options}}{{after-help}}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_is_in_one_group_and_its_line_fits_80_columns() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| *verbs).copied().filter(|verb| *verb != "help").collect();
        let command = Cli::command();
        let mut verbs: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        grouped.sort_unstable();
        verbs.sort_unstable();
        assert_eq!(grouped, verbs);
        for verb in command.get_subcommands() {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            assert!((1..=68).contains(&about.len()), "{}: {about}", verb.get_name());
        }
    }
}
