//! The message catalogue: every sentence for users, by id, in the user's language (Fluent syntax 1.0).
//!
//! The sentences of a station or a remedy are next to its code, those of reports in `locales/en`. English is the only language now.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use fluent_bundle::concurrent::FluentBundle;
use fluent_bundle::{FluentArgs, FluentResource, FluentValue};
use unic_langid::LanguageIdentifier;

use crate::output::message::{Message, Value};
use crate::output::plural::agreed;

/// The files of the English catalogue: every `.ftl` below `locales/en` and `src`, as the build script finds them. Each file is self-contained: no message
/// refers to a message of another file.
const ENGLISH: &[&str] = include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));

/// Which file defines a message: its place in [`ENGLISH`]. A message begins at the start of a line, its continuation lines are indented (Fluent syntax 1.0).
static PLACES: LazyLock<HashMap<&str, usize>> = LazyLock::new(|| {
    let ids = |source: &'static str| source.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_alphabetic()));
    let places = ENGLISH.iter().enumerate().flat_map(|(place, source)| ids(source).map(move |line| (line, place)));
    places.filter_map(|(line, place)| Some((line.split_once('=')?.0.trim_end(), place))).collect()
});

/// The sentences of one language. A file is parsed when one of its sentences is first needed. Parsed, all of them take a megabyte, and a verb needs few.
pub struct Catalogue {
    files: Vec<File>,
}

/// A file of the catalogue.
struct File {
    source: &'static str,
    bundle: OnceLock<FluentBundle<FluentResource>>,
}

impl Catalogue {
    /// The English catalogue.
    pub fn english() -> Self {
        Self { files: ENGLISH.iter().map(|source| File { source, bundle: OnceLock::new() }).collect() }
    }

    /// The sentence of a message.
    ///
    /// # Panics
    /// If a catalogue file compiled into the program is malformed or defines an id twice. The tests catch this bug.
    ///
    /// A message that the catalogue lacks comes out as its id in brackets, so that the gap is visible; the tests refuse such gaps.
    pub fn text(&self, message: &Message) -> String {
        let mut args = FluentArgs::new();
        for (name, value) in &message.args {
            match value {
                Value::Number(number) => args.set(*name, *number),
                Value::Text(text) => args.set(*name, text.as_str()),
                Value::Message(message) => args.set(*name, self.text(message)),
            }
        }
        self.lookup(message.id, &args).unwrap_or_else(|| format!("[{}]", message.id))
    }

    /// The sentence of a message without arguments, for an id that is built at run time; `None` if there is none.
    pub fn plain(&self, id: &str) -> Option<String> {
        self.lookup(id, &FluentArgs::new())
    }

    fn lookup(&self, id: &str, args: &FluentArgs<'_>) -> Option<String> {
        let bundle = self.file_of(id)?.bundle();
        let pattern = bundle.get_message(id)?.value()?;
        let mut errors = Vec::new();
        let text = bundle.format_pattern(pattern, Some(args), &mut errors);
        debug_assert!(errors.is_empty(), "message {id}: {errors:?}");
        Some(agreed(text.into_owned()))
    }

    fn file_of(&self, id: &str) -> Option<&File> {
        self.files.get(*PLACES.get(id)?)
    }
}

impl File {
    fn bundle(&self) -> &FluentBundle<FluentResource> {
        self.bundle.get_or_init(|| {
            let language: LanguageIdentifier = "en".parse().expect("a valid language tag");
            let mut bundle = FluentBundle::new_concurrent(vec![language]);
            // Isolation marks are for mixed writing directions; a terminal shows them as garbage.
            bundle.set_use_isolating(false);
            bundle.set_formatter(Some(|value, _| match value {
                FluentValue::Number(number) => Some(format_number(number.value)),
                _ => None,
            }));
            let resource =
                FluentResource::try_new(self.source.to_owned()).map_err(|(_, errors)| errors).expect("well-formed catalogue file");
            bundle.add_resource(resource).expect("each id defined once");
            bundle
        })
    }
}

/// Formats a number for reading: three significant digits below 100, above that whole with grouped thousands.
fn format_number(number: f64) -> String {
    if !number.is_finite() {
        return "?".to_owned();
    }
    let size = number.abs();
    let decimals = if size >= 100.0 || number.fract() == 0.0 {
        0
    } else if size >= 10.0 {
        1
    } else {
        2
    };
    let fixed = format!("{number:.decimals$}");
    let (whole, fraction) = fixed.split_once('.').unwrap_or((&fixed, ""));
    let mut grouped = String::new();
    let digits = whole.trim_start_matches('-');
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let fraction = fraction.trim_end_matches('0');
    let sign = if whole.starts_with('-') { "-" } else { "" };
    if fraction.is_empty() { format!("{sign}{grouped}") } else { format!("{sign}{grouped}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_rounded_for_reading() {
        for (number, text) in [
            (0.0, "0"),
            (7.0, "7"),
            (3.21049, "3.21"),
            (3.2, "3.2"),
            (42.06, "42.1"),
            (999.6, "1,000"),
            (1_048_576.0, "1,048,576"),
            (-1234.0, "-1,234"),
            (0.004, "0"),
            (f64::NAN, "?"),
        ] {
            assert_eq!(format_number(number), text, "{number}");
        }
    }

    #[test]
    fn every_message_is_found_and_in_one_file_alone() {
        let mut seen = std::collections::BTreeSet::new();
        for (place, source) in ENGLISH.iter().enumerate() {
            let ids = source.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_alphabetic()));
            for id in ids.filter_map(|line| Some(line.split_once('=')?.0.trim_end())) {
                assert!(seen.insert(id), "{id} is defined twice");
                let catalogue = Catalogue::english();
                let file = catalogue.file_of(id).expect("a file that defines it");
                assert!(std::ptr::eq(file, &raw const catalogue.files[place]), "{id}");
            }
            // This panics if the file is malformed.
            let file = &Catalogue::english().files[place];
            let missing = PLACES.iter().filter(|(id, found)| **found == place && !file.bundle().has_message(id)).count();
            assert_eq!((missing, file.bundle().has_message("no-such-message")), (0, false));
        }
        assert!(seen.len() > 500, "{}", seen.len());
    }

    #[test]
    fn only_what_is_asked_for_is_parsed() {
        let catalogue = Catalogue::english();
        let parsed = || catalogue.files.iter().filter(|file| file.bundle.get().is_some()).count();
        assert_eq!((catalogue.plain("no-such-message"), parsed()), (None, 0));
        for _ in 0..2 {
            assert!(catalogue.plain("bench-nothing-ended").is_some());
            assert_eq!(parsed(), 1);
        }
    }

    #[test]
    fn a_missing_message_is_seen() {
        assert_eq!(Catalogue::english().text(&Message::new("no-such-message")), "[no-such-message]");
    }
}
