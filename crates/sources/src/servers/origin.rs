//! Settings of a configuration in the model's form, each with the place where it stands.

use chokepoint_model::observation::{Origin, Setting};

pub(super) fn origin(origin: &chokepoint_config::Origin) -> Origin {
    match origin {
        chokepoint_config::Origin::Default => Origin::default(),
        chokepoint_config::Origin::CommandLine => Origin { file: "its command line".to_owned(), line: 0 },
        chokepoint_config::Origin::Set(place) => Origin { file: place.file.to_string(), line: place.line },
    }
}

/// Converts the value of a setting.
pub(super) fn setting<T, U>(from: chokepoint_config::Setting<T>, form: impl FnOnce(T) -> U) -> Setting<U> {
    Setting { origin: origin(&from.origin), value: form(from.value) }
}
