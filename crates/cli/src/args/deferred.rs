//! The flags of a verb, of which clap is told when the verb was given: the flags and help of all of them would be built for each.

use std::ops::Deref;

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

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
        command.defer(T::augment_args)
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(T::augment_args_for_update)
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use crate::args::Cli;

    /// What clap finds wrong with flags it would otherwise tell only where the verb is given.
    #[test]
    fn the_flags_of_every_verb_make_sense() {
        let mut command = Cli::command();
        command.build();
        assert!(command.get_subcommands().filter(|verb| verb.get_name() != "help").all(|verb| verb.get_arguments().count() > 0));
        command.debug_assert();
    }
}
