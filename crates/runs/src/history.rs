//! The history of watched servers: samples of several lengths and incidents, in one SQLite file that one process writes and others read.

use std::path::{Path, PathBuf};

use rusqlite::{OptionalExtension, Transaction, params};

use crate::database::{Database, Kind};
use crate::document::packed;
use crate::error::RunsError;
use crate::place;

/// The name of the file in its directory.
const FILE: &str = "history.sqlite";
/// The most incidents that are kept.
pub const INCIDENTS_MAX: i64 = 200;
/// The most bytes of all recordings of incidents.
const RECORDINGS_BYTES_MAX: i64 = 256 << 20;
/// The most bytes of one recording.
const RECORDING_BYTES_MAX: usize = 32 << 20;
/// The most bytes of all samples, compressed.
const SAMPLES_BYTES_MAX: i64 = 256 << 20;
/// Samples that are too many are removed after so many written ones.
const PRUNED_EVERY: u64 = 60;

/// The file, marked "chow". With a write-ahead log a commit is one write without waiting for the disk: a kill loses nothing of what was committed, a power cut the
/// last seconds.
const KIND: Kind = Kind {
    file: FILE,
    application_id: 0x6368_6f77,
    format: 1,
    journal: "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 4194304;",
    tables: TABLES,
};

const TABLES: &str = "
CREATE TABLE sample (id INTEGER PRIMARY KEY AUTOINCREMENT, span INTEGER NOT NULL, at INTEGER NOT NULL, document BLOB NOT NULL) STRICT;
CREATE INDEX sample_at ON sample (span, at);
CREATE INDEX sample_id ON sample (span, id);
CREATE TABLE incident (id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, document BLOB NOT NULL, recording BLOB,
  profile_before BLOB, profile_during BLOB) STRICT;
";

/// How many samples of a length are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Length of a sample, seconds.
    pub span_s: u32,
    /// The most that are kept; the oldest written go first.
    pub samples_max: u32,
}

/// CPU profiles of an incident, as folded stacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptProfiles {
    /// Of the last look while nothing was wrong.
    pub before: Option<String>,
    /// Of the drop.
    pub during: String,
}

/// A sample to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSample {
    /// Its length, seconds.
    pub span_s: u32,
    /// When it began, seconds since 1970.
    pub at_s: u64,
    /// What was seen, as JSON.
    pub json: String,
}

/// Where a sample stands in the history: beginning, and number among those that began together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplePlace {
    /// When it began, seconds since 1970.
    pub at: i64,
    /// Its number.
    pub id: i64,
}

/// A kept incident.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    /// Its number.
    pub id: i64,
    /// When it began, seconds since 1970.
    pub at_s: u64,
    /// Its document, as JSON.
    pub json: String,
    /// True if there is a recording.
    pub is_recorded: bool,
}

/// The history in one directory.
#[derive(Debug)]
pub struct History {
    database: Database,
    retention: Vec<Retention>,
    written: u64,
    samples_bytes_max: i64,
    incidents_max: i64,
}

impl History {
    /// The history in a directory, which is made if it is missing. `retention`: what is kept; samples of other lengths stay as they are.
    ///
    /// # Errors
    /// The directory or the file cannot be made or is not safe, is damaged, or is of a newer version.
    pub fn open(dir: &Path, retention: &[Retention]) -> Result<Self, RunsError> {
        Database::open(dir, &KIND).map(|database| Self::of(database, retention))
    }

    /// A new history in place of one that is damaged, which is moved aside, and where that is now.
    ///
    /// # Errors
    /// It cannot be moved, or as of [`History::open`].
    pub fn begin_anew(dir: &Path, retention: &[Retention]) -> Result<(Self, PathBuf), RunsError> {
        let aside = place::move_aside(dir, FILE)?;
        Ok((Self::open(dir, retention)?, aside))
    }

    /// The history to read, if there is one.
    ///
    /// # Errors
    /// As of [`History::open`].
    pub fn open_existing(dir: &Path) -> Result<Option<Self>, RunsError> {
        Ok(Database::open_existing(dir, &KIND)?.map(|database| Self::of(database, &[])))
    }

    fn of(database: Database, retention: &[Retention]) -> Self {
        let (samples_bytes_max, incidents_max) = (SAMPLES_BYTES_MAX, INCIDENTS_MAX);
        Self { database, retention: retention.to_vec(), written: 0, samples_bytes_max, incidents_max }
    }

    /// The path of its file.
    pub fn path(&self) -> &Path {
        self.database.path()
    }

    /// Keeps samples. The oldest ones go if there are too many.
    ///
    /// # Errors
    /// They cannot be written. None is kept then.
    pub fn add(&mut self, samples: &[KeptSample]) -> Result<(), RunsError> {
        let packed: Vec<Vec<u8>> = samples.iter().map(|sample| packed(&sample.json)).collect::<Result<_, _>>()?;
        let is_due = self.written % PRUNED_EVERY + samples.len() as u64 >= PRUNED_EVERY;
        let (retention, bytes_max) = (&self.retention, self.samples_bytes_max);
        self.database.write(|transaction| {
            let mut insert = transaction.prepare("INSERT INTO sample (span, at, document) VALUES (?1, ?2, ?3)")?;
            for (sample, document) in samples.iter().zip(&packed) {
                insert.execute(params![sample.span_s, clamped(sample.at_s), document])?;
            }
            if is_due {
                prune(transaction, retention, bytes_max)?;
            }
            Ok(())
        })?;
        self.written += samples.len() as u64;
        Ok(())
    }

    /// The samples of a length that began in a span (seconds since 1970, the end excluded), the oldest first, at most `most` of the newest.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn samples(&self, span_s: u32, from_s: u64, to_s: u64, most: u32) -> Result<Vec<String>, RunsError> {
        let sql = "SELECT document FROM (SELECT id, at, document FROM sample WHERE span = ?1 AND at >= ?2 AND at < ?3 ORDER BY at DESC, id DESC LIMIT ?4) \
                   ORDER BY at, id";
        let rows: Vec<Vec<u8>> = self.database.rows(sql, params![span_s, clamped(from_s), clamped(to_s), most], |row| row.get(0))?;
        rows.iter().map(|document| self.database.unpacked(document)).collect()
    }

    /// Where the newest `most` of these samples begin, for [`History::visit_samples`].
    ///
    /// # Errors
    /// They cannot be read.
    pub fn begin_of_samples(&self, span_s: u32, from_s: u64, to_s: u64, most: u32) -> Result<SamplePlace, RunsError> {
        let sql = "SELECT at, id FROM sample WHERE span = ?1 AND at >= ?2 AND at < ?3 ORDER BY at DESC, id DESC LIMIT 1 OFFSET ?4";
        let params = params![span_s, clamped(from_s), clamped(to_s), most.saturating_sub(1)];
        let rows: Vec<SamplePlace> = self.database.rows(sql, params, |row| Ok(SamplePlace { at: row.get(0)?, id: row.get(1)? }))?;
        Ok(rows.first().copied().unwrap_or(SamplePlace { at: clamped(from_s), id: i64::MIN }))
    }

    /// Gives the samples of a length from a place on that began before `to_s`, one by one, with the place of the next one, until `give` wants no more.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn visit_samples(
        &self,
        span_s: u32,
        from: SamplePlace,
        to_s: u64,
        mut give: impl FnMut(SamplePlace, String) -> bool,
    ) -> Result<(), RunsError> {
        let sql = "SELECT at, id, document FROM sample WHERE span = ?1 AND at >= ?2 AND at < ?3 AND (at > ?2 OR id >= ?4) ORDER BY at, id";
        self.database.each(sql, params![span_s, from.at, clamped(to_s), from.id], |row| {
            let place = (|| Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get::<_, Vec<u8>>(2)?)))();
            let (at, id, document) = place.map_err(|error| self.database.failed(error))?;
            Ok(give(SamplePlace { at, id: id.saturating_add(1) }, self.database.unpacked(&document)?))
        })
    }

    /// Keeps an incident. The oldest ones go if there are too many.
    ///
    /// # Errors
    /// It cannot be written, or it is too long.
    pub fn add_incident(&mut self, at_s: u64, json: &str) -> Result<i64, RunsError> {
        let (document, most) = (packed(json)?, self.incidents_max);
        self.database.write(|transaction| {
            transaction.execute("INSERT INTO incident (at, document) VALUES (?1, ?2)", params![clamped(at_s), document])?;
            let id = transaction.last_insert_rowid();
            transaction.execute("DELETE FROM incident WHERE id <= ?1 - ?2", params![id, most])?;
            Ok(id)
        })
    }

    /// Replaces the document of an incident, and its recording if there is one.
    ///
    /// # Errors
    /// As of [`History::add_incident`]; [`RunsError::NoIncident`].
    pub fn update_incident(&mut self, id: i64, json: &str, recording: Option<&[u8]>) -> Result<(), RunsError> {
        if let Some(bytes) = recording.map(<[u8]>::len).filter(|bytes| *bytes > RECORDING_BYTES_MAX) {
            return Err(RunsError::TooLarge { bytes, limit: RECORDING_BYTES_MAX });
        }
        let document = packed(json)?;
        let changed = self.database.write(|transaction| {
            let sql = "UPDATE incident SET document = ?2, recording = coalesce(?3, recording) WHERE id = ?1";
            let changed = transaction.execute(sql, params![id, document, recording])?;
            // The recordings of the oldest go first, their documents stay.
            let sql = "UPDATE incident SET recording = NULL WHERE recording IS NOT NULL AND id <> ?1 AND \
                       (SELECT sum(length(newer.recording)) FROM incident AS newer WHERE newer.id >= incident.id) > ?2";
            if recording.is_some() {
                transaction.execute(sql, params![id, RECORDINGS_BYTES_MAX])?;
            }
            Ok(changed)
        })?;
        if changed == 0 { Err(RunsError::NoIncident { id }) } else { Ok(()) }
    }

    /// Keeps the CPU profiles of an incident.
    ///
    /// # Errors
    /// As of [`History::update_incident`].
    pub fn keep_profiles(&mut self, id: i64, profiles: &KeptProfiles) -> Result<(), RunsError> {
        let (before, during) = (profiles.before.as_deref().map(packed).transpose()?, packed(&profiles.during)?);
        let changed = self.database.write(|transaction| {
            transaction.execute("UPDATE incident SET profile_before = ?2, profile_during = ?3 WHERE id = ?1", params![id, before, during])
        })?;
        if changed == 0 { Err(RunsError::NoIncident { id }) } else { Ok(()) }
    }

    /// The CPU profiles of an incident; nothing if none was taken.
    ///
    /// # Errors
    /// [`RunsError::NoIncident`], or they cannot be read.
    pub fn profiles(&self, id: i64) -> Result<Option<KeptProfiles>, RunsError> {
        type Columns = (Option<Vec<u8>>, Option<Vec<u8>>);
        let sql = "SELECT profile_before, profile_during FROM incident WHERE id = ?1";
        let rows: Vec<Columns> = self.database.rows(sql, [id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let (before, during) = rows.into_iter().next().ok_or(RunsError::NoIncident { id })?;
        let Some(during) = during else { return Ok(None) };
        let before = before.map(|before| self.database.unpacked(&before)).transpose()?;
        Ok(Some(KeptProfiles { before, during: self.database.unpacked(&during)? }))
    }

    /// The newest incidents, the newest first.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn incidents(&self, most: u32) -> Result<Vec<Incident>, RunsError> {
        self.read_incidents("ORDER BY id DESC LIMIT ?1", i64::from(most))
    }

    /// One incident.
    ///
    /// # Errors
    /// [`RunsError::NoIncident`], or it cannot be read.
    pub fn incident(&self, id: i64) -> Result<Incident, RunsError> {
        self.read_incidents("WHERE id = ?1", id)?.into_iter().next().ok_or(RunsError::NoIncident { id })
    }

    fn read_incidents(&self, which: &str, value: i64) -> Result<Vec<Incident>, RunsError> {
        let sql = format!("SELECT id, at, document, recording IS NOT NULL FROM incident {which}");
        let rows =
            self.database.rows(&sql, [value], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get::<_, Vec<u8>>(2)?, row.get(3)?)))?;
        let incident = |(id, at, document, is_recorded): (i64, i64, Vec<u8>, bool)| {
            Ok(Incident { id, at_s: at.unsigned_abs(), json: self.database.unpacked(&document)?, is_recorded })
        };
        rows.into_iter().map(incident).collect()
    }

    /// The recording of an incident; nothing if there is none, or if it was removed for newer ones.
    ///
    /// # Errors
    /// [`RunsError::NoIncident`], or it cannot be read.
    pub fn recording(&self, id: i64) -> Result<Option<Vec<u8>>, RunsError> {
        let sql = "SELECT recording FROM incident WHERE id = ?1";
        let read = self.database.connection.query_row(sql, [id], |row| row.get(0)).optional();
        read.map_err(|error| self.database.failed(error))?.ok_or(RunsError::NoIncident { id })
    }
}

/// SQLite's numbers are signed.
fn clamped(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

/// Removes the oldest written samples beyond the limits.
fn prune(transaction: &Transaction<'_>, retention: &[Retention], bytes_max: i64) -> rusqlite::Result<()> {
    for Retention { span_s, samples_max } in retention {
        let sql = "DELETE FROM sample WHERE span = ?1 AND id <= (SELECT id FROM sample WHERE span = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)";
        transaction.prepare(sql)?.execute(params![span_s, samples_max])?;
    }
    // The file has few other things: its size without free pages is that of the samples, but for the recordings of incidents.
    let pragma = |name: &str| transaction.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let size = (pragma("page_count")? - pragma("freelist_count")?) * pragma("page_size")?;
    let recordings: i64 = transaction.query_row("SELECT coalesce(sum(length(recording)), 0) FROM incident", [], |row| row.get(0))?;
    if size - recordings > bytes_max {
        // An eighth of each length at once, so that this is rare.
        transaction.execute(
            "DELETE FROM sample WHERE id <= (SELECT min(id) + (max(id) - min(id)) / 8 FROM sample AS same WHERE same.span = sample.span)",
            [],
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
