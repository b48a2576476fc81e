//! Keeps samples in memory and in the history, and incidents. A history that cannot be written is told once, and tried again with each sample.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_recorder::incident::Incident;
use chokepoint_recorder::{Level, Levels, ResponseTimes, Ring, Sample};
use chokepoint_runs::{History, KeptProfiles, KeptSample, Retention, RunsError};
use rustix::fs::{FlockOperation, flock};

use super::config::Settings;
use super::writing::Writer;
use crate::run::keeping;
use crate::terminal::output;

/// The samples that days are compared by.
const MINUTE_S: u32 = 60;
/// Samples in memory: ten minutes.
const RING_MAX: usize = 600;

/// What is kept.
pub(super) struct Keeping {
    pub(super) ring: Ring,
    levels: Levels,
    writer: Writer,
    /// Incidents are rare: it is opened for each.
    dir: PathBuf,
    failure: WriteFailure,
    /// Held while this program writes.
    _lock: File,
}

impl Keeping {
    /// Opens the history. Only one program writes it.
    pub(super) fn open(settings: &Settings, words: &Catalogue) -> Result<Self> {
        let dir = directory(settings.file.data_dir.clone(), words)?;
        let unkept = "what is watched cannot be kept";
        let opened = match history(&dir) {
            Err(damaged @ RunsError::Damaged { .. }) => Err(damaged),
            opened => Ok(opened.context(unkept)?),
        };
        // The lock is on the directory: SQLite has its own on the file.
        let lock = File::open(&dir).with_context(|| format!("{} cannot be opened", dir.display()))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            bail!("another chokepoint watch keeps its history in {}: give another directory with --data-dir", dir.display());
        }
        let history = opened.or_else(|damaged| anew(&dir, damaged)).context(unkept)?;
        let (ring, levels, writer, failure) = (Ring::new(RING_MAX), Levels::default(), Writer::begin(history)?, WriteFailure::default());
        Ok(Self { ring, levels, writer, dir, failure, _lock: lock })
    }

    /// Keeps the sample of a second, and returns the minute that is complete with it.
    pub(super) fn add(&mut self, sample: &Sample) -> Option<Sample> {
        self.ring.push(sample.clone());
        let mut complete = self.levels.add(sample.clone());
        let mut minutes = complete.iter_mut().filter(|sample| sample.span_s == MINUTE_S);
        let minute = minutes.next().map(|minute| {
            minute.targets.iter_mut().for_each(|target| target.response = ResponseTimes::of(target));
            minute.clone()
        });
        self.write(complete);
        minute
    }

    /// Gives the minutes that are kept since a time, one by one, the oldest first: those of a week are not held at once.
    pub(super) fn each_minute(&self, since_s: u64, mut give: impl FnMut(Sample)) {
        let visited = history(&self.dir).and_then(|history| {
            let from = history.begin_of_samples(MINUTE_S, since_s, u64::MAX, u32::MAX)?;
            history.visit_samples(MINUTE_S, from, u64::MAX, |_, json| {
                if let Ok(minute) = serde_json::from_str(&json) {
                    give(minute);
                }
                true
            })
        });
        if let Err(error) = visited {
            output::note(&format!("note: the days before cannot be compared with: {error}"));
        }
    }

    /// Keeps what is under way, and waits until it is written.
    pub(super) fn finish(&mut self) {
        let open = self.levels.finish();
        self.write(open);
        self.writer.finish();
    }

    fn write(&self, samples: Vec<Sample>) {
        let kept = |sample: Sample| {
            let json = serde_json::to_string(&sample).ok()?;
            Some(KeptSample { span_s: sample.span_s, at_s: sample.at_s, json })
        };
        self.writer.add(samples.into_iter().filter_map(kept).collect());
    }

    /// Keeps an incident, new or known, and returns its number.
    pub(super) fn keep_incident(&mut self, incident: &mut Incident, recording: Option<&[u8]>) {
        let json = |incident: &Incident| serde_json::to_string(incident).unwrap_or_default();
        let written = history(&self.dir).and_then(|mut history| {
            if incident.id == 0 {
                incident.id = history.add_incident(incident.drop.since_s, &json(incident))?;
            }
            history.update_incident(incident.id, &json(incident), recording)
        });
        self.failure.told(written);
    }

    /// Keeps the CPU profiles of an incident.
    pub(super) fn keep_profiles(&mut self, id: i64, profiles: KeptProfiles) {
        let written = history(&self.dir).and_then(|mut history| history.keep_profiles(id, &profiles));
        self.failure.told(written);
    }

    /// Closes the incidents of the history that nobody follows any more: recording ends, or an earlier run was killed.
    pub(super) fn close_incidents(&mut self) {
        let kept = history(&self.dir).and_then(|history| history.incidents(u32::MAX)).unwrap_or_default();
        let parsed = kept.iter().filter_map(|kept| Some(Incident { id: kept.id, ..serde_json::from_str(&kept.json).ok()? }));
        let left: Vec<Incident> = parsed.filter(|incident: &Incident| incident.is_followed()).collect();
        let last_s = left.iter().map(|incident| incident.drop.since_s).min().and_then(|since_s| self.last_s(since_s));
        for mut incident in left {
            incident.left(last_s.unwrap_or(incident.drop.since_s).max(incident.drop.since_s));
            self.keep_incident(&mut incident, None);
        }
    }

    /// When the newest second since a time was written.
    fn last_s(&self, since_s: u64) -> Option<u64> {
        let newest = history(&self.dir).ok()?.samples(1, since_s, u64::MAX, 1).ok()?;
        Some(serde_json::from_str::<Sample>(newest.first()?).ok()?.at_s)
    }
}

/// Why the last try to write failed. It is told when it begins and when it ends.
#[derive(Debug, Default)]
pub(super) struct WriteFailure(Option<String>);

impl WriteFailure {
    /// True if it was written.
    pub(super) fn told(&mut self, written: std::result::Result<(), RunsError>) -> bool {
        match (written, self.0.take()) {
            (Ok(()), None) => true,
            (Ok(()), Some(_)) => {
                output::note("note: the history is written again");
                true
            }
            (Err(error), before) => {
                let why = error.to_string();
                if before.as_ref() != Some(&why) {
                    output::note(&format!("note: samples are kept in memory only: {why}"));
                }
                self.0 = Some(why);
                false
            }
        }
    }
}

/// What is kept of each length of samples.
fn retention() -> Vec<Retention> {
    Level::ALL.iter().map(|level| Retention { span_s: level.span_s, samples_max: level.samples_max }).collect()
}

/// The history in a directory.
pub(super) fn history(dir: &Path) -> std::result::Result<History, RunsError> {
    History::open(dir, &retention())
}

/// A new history, if this error says that the old one is damaged: nothing that is wrong with the past keeps anybody from recording what happens now. Only for who
/// holds the lock.
pub(super) fn anew(dir: &Path, error: RunsError) -> std::result::Result<History, RunsError> {
    let RunsError::Damaged { why, .. } = error else { return Err(error) };
    let (history, aside) = History::begin_anew(dir, &retention())?;
    output::note(&format!("note: the history is damaged ({why}): it is kept as {}, and a new one begins", aside.display()));
    Ok(history)
}

/// The directory of the history.
pub(crate) fn directory(asked: Option<PathBuf>, words: &Catalogue) -> Result<PathBuf> {
    asked.map_or_else(|| keeping::directory(words), Ok)
}
