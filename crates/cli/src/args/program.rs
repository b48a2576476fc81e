//! The program as clap sees it, with its verbs in groups.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Arg, Command, CommandFactory};

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

/// Adds to the full help of each flag which others it excludes: clap knows them, and says so only where both are given.
pub(super) fn with_exclusions(command: Command) -> Command {
    let mut excluded: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (one, other) in exclusions(&command) {
        excluded.entry(one.get_id().to_string()).or_default().insert(named(other));
        excluded.entry(other.get_id().to_string()).or_default().insert(named(one));
    }
    let command = command.mut_args(|arg| {
        let Some(others) = excluded.get(arg.get_id().as_str()) else { return arg };
        let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
        let others = others.iter().cloned().collect::<Vec<_>>().join(", ");
        let help = help.trim_end();
        // clap takes the period from a single sentence.
        let period = if help.ends_with(['.', '!', '?', ']']) { "" } else { "." };
        arg.long_help(format!("{help}{period} Not with {others}."))
    });
    command.mut_subcommands(with_exclusions)
}

/// The pairs of visible flags that exclude each other.
fn exclusions(command: &Command) -> Vec<(&Arg, &Arg)> {
    let visible = || command.get_arguments().filter(|arg| !arg.is_hide_set());
    let pairs = visible().flat_map(|arg| command.get_arg_conflicts_with(arg).into_iter().map(move |other| (arg, other)));
    pairs.filter(|(_, other)| !other.is_hide_set()).collect()
}

/// A flag as it is written, or the place of a value: "--fix", "<URL>".
fn named(arg: &Arg) -> String {
    arg.get_long().map_or_else(|| format!("<{}>", arg.get_id().as_str().to_uppercase()), |long| format!("--{long}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(command: &Command, call: &mut dyn FnMut(&Command)) {
        call(command);
        command.get_subcommands().for_each(|verb| walk(verb, call));
    }

    #[test]
    fn flags_that_exclude_each_other_say_so_in_the_help() {
        let mut command = program();
        command.build();
        let mut count = 0;
        walk(&command, &mut |verb| {
            for (one, other) in exclusions(verb) {
                for (arg, told) in [(one, named(other)), (other, named(one))] {
                    let help = arg.get_long_help().map(ToString::to_string).unwrap_or_default();
                    let last = help.rsplit(" Not with ").next().unwrap_or_default();
                    assert!(help.contains(" Not with ") && last.contains(&told), "{} {}: {help}", verb.get_name(), named(arg));
                    let before = help.strip_suffix(last).and_then(|before| before.strip_suffix(" Not with ")).unwrap_or_default();
                    assert!(before.ends_with(['.', '!', '?', ']']), "two sentences: {help}");
                    count += 1;
                }
            }
        });
        assert!(count > 60, "{count}");
    }

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
