//! Builds an observation from entries, by the same pure fold for live readings and for recordings.

use chokepoint_model::load::LoadResult;
use chokepoint_model::observation::{CpuProfile, Observation, Request, Warmth, WireView};
use chokepoint_recording::{Entry, Outcome};

use crate::room::{Overfull, Room};
use crate::root::reading_of;
use crate::scope::unplaced;
use crate::sock_diag::crowd::CROWD;
use crate::sock_diag::requests::{REQUESTS, extend_a_sample};
use crate::sock_diag::sockets::SOCKETS;
use crate::source;
use crate::table::Source;

/// Entry that is no reading: the request, JSON of [`Request`].
pub const REQUEST: &str = "request";
/// Entry that is no reading: the applied load, JSON of [`LoadResult`].
pub const LOAD: &str = "load";
/// Entry that is no reading: the few single requests before that load, JSON of [`LoadResult`].
pub const UNLOADED: &str = "unloaded";
/// Entry that is no reading: the cost of a reference work after pauses before that load, JSON of [`Warmth`].
pub const WARMTH: &str = "warmth";
/// Entry that is no reading: the observed window, JSON of `[start_us, end_us]`.
pub const WINDOW: &str = "window";
/// Entry that is no reading: a sentence about what a bound left out.
pub const BOUND: &str = "bound";

/// Entry that is no reading of a source: the CPU profile, JSON of [`CpuProfile`], or why there is none.
pub const PROFILE: &str = "profile";

/// Entry that is no reading of a source: the captured packets, JSON of [`WireView`], or why none were captured.
pub const WIRE: &str = "wire";

/// Most values in one entry of JSON. Three bytes may become a structure of hundreds.
const JSON_VALUES_MAX: usize = 100_000;
/// Most profiles, and most views of packets, that an observation keeps. A real one has one of each.
const VIEWS_MAX: usize = 8;

/// The names of all entries that are no readings.
#[cfg(test)]
pub(crate) const NO_READERS: &[&str] = &[REQUEST, LOAD, UNLOADED, WARMTH, WINDOW, BOUND, PROFILE, WIRE];

/// Builds the observation of these entries, in any order. The request comes first, since parsing some readings depends on it; the others follow in the order of
/// their time, and those of one time in the given order, but what extends another of them behind it.
pub fn assemble(entries: &[Entry]) -> Observation {
    let mut observation = Observation::default();
    for entry in ordered(entries) {
        place(&mut observation, entry);
    }
    observation
}

/// The same for entries from an untrusted recording, within a memory bound.
///
/// # Errors
/// [`Overfull`] as soon as it takes more than 64 MiB and twice the bytes of the entries.
pub fn assemble_recorded(entries: &[Entry]) -> Result<Observation, Overfull> {
    let mut room = Room::of(entries);
    let mut observation = Observation::default();
    for entry in ordered(entries) {
        room.take(entry)?;
        place(&mut observation, entry);
    }
    Ok(observation)
}

fn ordered(entries: &[Entry]) -> Vec<&Entry> {
    let mut ordered: Vec<&Entry> = entries.iter().collect();
    ordered.sort_by_key(|entry| (entry.source != REQUEST, entry.at_us, extends(entry)));
    ordered
}

/// True if an entry adds to a reading of the same time, which therefore comes first.
fn extends(entry: &Entry) -> bool {
    let is_of = |source: &Source| entry.source == source.name;
    (is_of(&REQUESTS) && extend_a_sample(&entry.item)) || (is_of(&SOCKETS) && entry.item == CROWD)
}

/// Puts one entry into the observation. An entry without a place is listed in `unplaced`, never dropped silently.
pub fn place(observation: &mut Observation, entry: &Entry) {
    match entry.source.as_str() {
        REQUEST => {
            if let Some(request) = json::<Request>(observation, entry) {
                observation.request = request;
            }
        }
        LOAD => {
            if let Some(load) = json::<LoadResult>(observation, entry) {
                observation.load = Some(load);
            }
        }
        UNLOADED => {
            if let Some(unloaded) = json::<LoadResult>(observation, entry) {
                observation.unloaded = Some(unloaded);
            }
        }
        WARMTH => {
            if let Some(warmth) = json::<Warmth>(observation, entry) {
                observation.warmth = Some(warmth);
            }
        }
        WINDOW => {
            if let Some(window) = json::<(u64, u64)>(observation, entry) {
                observation.window_us = Some(window);
            }
        }
        BOUND => match &entry.outcome {
            Outcome::Ok(text) => observation.bounded.push(String::from_utf8_lossy(text).into_owned()),
            Outcome::Absent(why, _) | Outcome::Failed(why, _) => observation.bounded.push(why.clone()),
        },
        PROFILE if observation.profile.points().len() < VIEWS_MAX => {
            observation.profile.push(entry.at_us, reading_of(&entry.outcome, of_json::<CpuProfile>));
        }
        WIRE if observation.wire.points().len() < VIEWS_MAX => {
            observation.wire.push(entry.at_us, reading_of(&entry.outcome, of_json::<WireView>))
        }
        PROFILE | WIRE => unplaced(observation, entry, &format!("more than {VIEWS_MAX} are not kept")),
        name => match source(name) {
            Some(source) => (source.put)(observation, entry),
            None => unplaced(observation, entry, "no such source is known"),
        },
    }
}

/// Parses JSON of at most [`JSON_VALUES_MAX`] values. Commas within texts count too.
fn of_json<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    if bytes.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count() > JSON_VALUES_MAX {
        return Err(format!("it has more than {JSON_VALUES_MAX} values"));
    }
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}

fn json<T: serde::de::DeserializeOwned>(observation: &mut Observation, entry: &Entry) -> Option<T> {
    let parsed = match &entry.outcome {
        Outcome::Ok(bytes) => of_json(bytes),
        Outcome::Absent(why, _) | Outcome::Failed(why, _) => Err(why.clone()),
    };
    parsed.map_err(|why| unplaced(observation, entry, &why)).ok()
}

#[cfg(test)]
mod tests {
    use chokepoint_model::reading::Lack;
    use chokepoint_model::series::SeriesState;
    use chokepoint_recording::Scope;

    use super::*;

    fn entry(at_us: u64, source: &str, bytes: &[u8]) -> Entry {
        Entry { at_us, source: source.into(), scope: Scope::Host, item: String::new(), outcome: Outcome::Ok(bytes.to_vec()) }
    }

    #[test]
    fn entries_that_are_no_readings_have_their_place() {
        let request = Request { url: "http://a/".into(), port: 80, ..Request::default() };
        let entries = [entry(9, WINDOW, b"[5,8]"), entry(0, REQUEST, &serde_json::to_vec(&request).unwrap()), entry(9, BOUND, b"thinned")];
        let observation = assemble(&entries);
        assert_eq!(observation.request, request);
        assert_eq!(observation.window_us, Some((5, 8)));
        assert_eq!(observation.bounded, ["thinned"]);
        assert!(observation.unplaced.is_empty());
    }

    #[test]
    fn a_profile_or_its_lack_has_its_place() {
        let profile = CpuProfile { clock: "cpu-clock".into(), frequency_hz: 99, span_us: (1, 2), cores: vec![0], ..CpuProfile::default() };
        let observation = assemble(&[entry(3, PROFILE, &serde_json::to_vec(&profile).unwrap())]);
        assert_eq!(observation.profile.last(), Some(&profile));
        let absent = Entry { outcome: Outcome::Absent("no".into(), Some("CAP_PERFMON".into())), ..entry(3, PROFILE, b"") };
        let lack = Lack::needing("no", "CAP_PERFMON");
        assert_eq!(assemble(&[absent]).profile.state(), SeriesState::Absent(&lack));
        assert!(matches!(assemble(&[entry(3, PROFILE, b"[")]).profile.state(), SeriesState::Failed(_, 1)));
        let wire = WireView { from: "lo".into(), packets: 7, ..WireView::default() };
        let observation = assemble(&[entry(3, WIRE, &serde_json::to_vec(&wire).unwrap())]);
        assert_eq!(observation.wire.last(), Some(&wire));
        assert!(matches!(assemble(&[entry(3, WIRE, b"{")]).wire.state(), SeriesState::Failed(_, 1)));
    }

    #[test]
    fn json_with_too_many_values_is_refused() {
        let bomb = format!("{{\"addresses\":[{}]}}", vec!["\"::\""; JSON_VALUES_MAX + 1].join(","));
        let observation = assemble(&[entry(0, REQUEST, bomb.as_bytes())]);
        assert!(observation.unplaced[0].contains("more than 100000 values"), "{:?}", observation.unplaced);
        let profile = serde_json::to_vec(&CpuProfile::default()).unwrap();
        let many: Vec<Entry> = (0..20).map(|at_us| entry(at_us, PROFILE, &profile)).collect();
        let observation = assemble(&many);
        assert_eq!((observation.profile.points().len(), observation.unplaced.len()), (VIEWS_MAX, 20 - VIEWS_MAX));
    }

    #[test]
    fn an_entry_without_a_place_is_listed() {
        let observation = assemble(&[
            entry(1, "no-such-source", b""),
            entry(2, REQUEST, b"{"),
            entry(3, WINDOW, b"[1]"),
            entry(4, "listeners", b""),
            Entry { outcome: Outcome::Failed("why".into(), None), ..entry(5, LOAD, b"") },
        ]);
        assert_eq!(observation.unplaced.len(), 5, "{:?}", observation.unplaced);
        assert!(observation.netns.is_empty());
    }

    #[test]
    fn the_order_of_the_entries_does_not_matter() {
        let at =
            |at_us, name: &str, scope| Entry { at_us, source: name.into(), scope, item: String::new(), outcome: Outcome::Ok(Vec::new()) };
        let mut entries: Vec<Entry> = (0..20)
            .flat_map(|n| ["listeners", "sockets", "links"].map(|name| at(n * 3 + name.len() as u64 % 3, name, Scope::Netns(1 + n % 3))))
            .collect();
        let forward = assemble(&entries);
        entries.sort_by_key(|entry| (entry.source.clone(), std::cmp::Reverse(entry.at_us)));
        assert_eq!(assemble(&entries), forward);
    }
}
