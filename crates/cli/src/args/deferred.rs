//! The flags of a verb, of which clap is told when the verb was given: the flags and help of all of them would be built for each.

use std::ops::Deref;

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

use super::program::with_exclusions;

/// What was given to a verb.
#[derive(Debug)]
pub(crate) struct Deferred<T>(Box<T>);

impl<T> Deref for Deferred<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Args> Args for Deferred<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(|command| with_exclusions(unrepeated(T::augment_args(command))))
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(|command| with_exclusions(unrepeated(T::augment_args_for_update(command))))
    }
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(|given| Deferred(Box::new(given)))
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches_mut(matches).map(|given| Deferred(Box::new(given)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// The long help without the lines of the short one: the second paragraph of a comment says in full what the first says in a line.
pub(super) fn unrepeated(command: Command) -> Command {
    let in_full = |text: String| text.split_once("\n\n").map(|(_, in_full)| in_full.to_owned());
    let command = match command.get_long_about().map(ToString::to_string).and_then(in_full) {
        Some(text) => command.long_about(text),
        None => command,
    };
    let command = command.mut_args(|arg| match arg.get_long_help().map(ToString::to_string).and_then(in_full) {
        Some(text) => arg.long_help(text),
        None => arg,
    });
    command.mut_subcommands(unrepeated)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use crate::args::{Cli, program};

    #[test]
    fn the_long_help_does_not_repeat_the_short_one() {
        let mut command = program();
        let help = command.find_subcommand_mut("diagnose").expect("a verb").render_long_help().to_string();
        assert!(help.contains("-c, -q and -n start a load as well") && !help.contains("Load with 100 connections instead"), "{help}");
        assert!(help.starts_with("Find what limits a server's throughput."), "{help}");
    }

    /// What clap finds wrong with flags it would otherwise tell only where the verb is given.
    #[test]
    fn the_flags_of_every_verb_make_sense() {
        let mut command = Cli::command();
        command.build();
        assert!(command.get_subcommands().filter(|verb| verb.get_name() != "help").all(|verb| verb.get_arguments().count() > 0));
        command.debug_assert();
    }
}
