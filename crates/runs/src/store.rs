//! The store: one SQLite file that several processes may use at once.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Params, Row, Transaction, params, params_from_iter};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::database::{Database, Kind};
use crate::document::packed;
use crate::error::RunsError;
use crate::run::{Filter, NewRun, Run, State, Summary};

/// The name of the file in the state directory.
pub const FILE: &str = "runs.sqlite";
/// The most runs that are kept.
pub const RUNS_MAX: i64 = 1_000;
/// The most bytes that their documents may have, compressed, with everything else that is kept of them.
pub const BYTES_MAX: i64 = 200 << 20;

/// The file, marked "chok". A rollback journal with full synchronisation: a kill or a power cut loses at most the run being written.
const KIND: Kind = Kind { file: FILE, application_id: 0x6368_6f6b, format: 1, journal: "PRAGMA synchronous = FULL;", tables: TABLES };

const TABLES: &str = "
CREATE TABLE run (
    id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, state TEXT NOT NULL, began TEXT NOT NULL, duration_s REAL NOT NULL, target TEXT NOT NULL,
    label TEXT NOT NULL, version TEXT NOT NULL, headline TEXT NOT NULL, fingerprint TEXT, figures TEXT NOT NULL, surroundings TEXT NOT NULL,
    load TEXT NOT NULL, document BLOB NOT NULL, bytes INTEGER NOT NULL
) STRICT;
CREATE TABLE trial (
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE, n INTEGER NOT NULL, document BLOB NOT NULL, PRIMARY KEY (run, n)
) STRICT, WITHOUT ROWID;
";
const SUMMARY: &str = "id, kind, state, began, duration_s, target, label, version, headline, figures, load";

/// The kept runs of this user.
#[derive(Debug)]
pub struct Store {
    database: Database,
    runs_max: i64,
    bytes_max: i64,
}

impl Store {
    /// The store in a state directory, which is made if it is missing.
    ///
    /// # Errors
    /// The directory or the file cannot be made or is not safe, is damaged, or is of a newer version.
    pub fn open(dir: &Path) -> Result<Self, RunsError> {
        Database::open(dir, &KIND).map(Self::of)
    }

    /// The store, if there is one.
    ///
    /// # Errors
    /// As of [`Store::open`].
    pub fn open_existing(dir: &Path) -> Result<Option<Self>, RunsError> {
        Ok(Database::open_existing(dir, &KIND)?.map(Self::of))
    }

    fn of(database: Database) -> Self {
        Self { database, runs_max: RUNS_MAX, bytes_max: BYTES_MAX }
    }

    /// The path of its file.
    pub fn path(&self) -> &Path {
        self.database.path()
    }

    /// Keeps a run. The oldest ones go if there are too many.
    ///
    /// # Errors
    /// It cannot be written, or its document is too long. Nothing is kept then.
    pub fn add(&mut self, run: &NewRun) -> Result<i64, RunsError> {
        let row = Stored::of(run)?;
        let (runs_max, bytes_max) = (self.runs_max, self.bytes_max);
        self.database.write(|transaction| {
            transaction.execute(
                "INSERT INTO run (kind, state, began, duration_s, target, label, version, headline, fingerprint, figures, surroundings, load, document, bytes)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
                row.params(run),
            )?;
            let id = transaction.last_insert_rowid();
            prune(transaction, id, runs_max, bytes_max)?;
            Ok(id)
        })
    }

    /// Replaces everything of a run but its trials.
    ///
    /// # Errors
    /// As of [`Store::add`]; [`RunsError::NoRun`].
    pub fn update(&mut self, id: i64, run: &NewRun) -> Result<(), RunsError> {
        let row = Stored::of(run)?;
        let (runs_max, bytes_max) = (self.runs_max, self.bytes_max);
        let changed = self.database.write(|transaction| {
            let sql = format!(
                "UPDATE run SET kind = ?1, state = ?2, began = ?3, duration_s = ?4, target = ?5, label = ?6, version = ?7, headline = ?8, fingerprint = ?9,
                 figures = ?10, surroundings = ?11, load = ?12, document = ?13,
                 bytes = ?14 + (SELECT coalesce(sum(length(document)), 0) FROM trial WHERE run = {id}) WHERE id = {id}"
            );
            let changed = transaction.execute(&sql, row.params(run))?;
            prune(transaction, id, runs_max, bytes_max)?;
            Ok(changed)
        })?;
        if changed == 0 { Err(RunsError::NoRun { id }) } else { Ok(()) }
    }

    /// Keeps trial `n` of a run, or replaces it.
    ///
    /// # Errors
    /// As of [`Store::update`].
    pub fn add_trial(&mut self, run: i64, n: u32, json: &str) -> Result<(), RunsError> {
        let packed = packed(json)?;
        let (runs_max, bytes_max) = (self.runs_max, self.bytes_max);
        let changed = self.database.write(|transaction| {
            let length = packed.len() as i64;
            let was: Option<i64> = transaction
                .query_row("SELECT length(document) FROM trial WHERE run = ?1 AND n = ?2", params![run, n], |row| row.get(0))
                .optional()?;
            let changed =
                transaction.execute("UPDATE run SET bytes = bytes + ?2 WHERE id = ?1", params![run, length - was.unwrap_or_default()])?;
            if changed > 0 {
                transaction.execute("INSERT OR REPLACE INTO trial (run, n, document) VALUES (?1, ?2, ?3)", params![run, n, packed])?;
                prune(transaction, run, runs_max, bytes_max)?;
            }
            Ok(changed)
        })?;
        if changed == 0 { Err(RunsError::NoRun { id: run }) } else { Ok(()) }
    }

    /// The trials of a run, in the order of their numbers.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn trials(&self, run: i64) -> Result<Vec<String>, RunsError> {
        let documents: Vec<Vec<u8>> =
            self.database.rows("SELECT document FROM trial WHERE run = ?1 ORDER BY n", [run], |row| row.get(0))?;
        documents.iter().map(|document| self.database.unpacked(document)).collect()
    }

    /// The kept runs, newest first.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Summary>, RunsError> {
        let (mut conditions, mut values) = (Vec::new(), Vec::new());
        let texts = [
            ("kind = ?", &filter.kind),
            ("target = ?", &filter.target),
            ("instr(target, ?) > 0", &filter.target_part),
            ("began < ?", &filter.before),
        ];
        for (condition, value) in texts {
            if let Some(value) = value {
                conditions.push(condition);
                values.push(Value::Text(value.clone()));
            }
        }
        let filtered = if conditions.is_empty() { String::new() } else { format!("WHERE {}", conditions.join(" AND ")) };
        values.push(Value::Integer(filter.limit.map_or(-1, i64::from)));
        let sql = format!("SELECT {SUMMARY} FROM run {filtered} ORDER BY id DESC LIMIT ?");
        let rows = self.database.rows(&sql, params_from_iter(values), |row| Ok((summary(row)?, kept_texts(row)?)))?;
        rows.into_iter().map(|(summary, texts)| self.completed(summary, &texts)).collect()
    }

    fn completed(&self, summary: Summary, [state, figures, load]: &[String; 3]) -> Result<Summary, RunsError> {
        Ok(Summary { state: self.state(state)?, figures: self.parsed(figures)?, load: self.parsed(load)?, ..summary })
    }

    /// A run with its document.
    ///
    /// # Errors
    /// [`RunsError::NoRun`], or it cannot be read.
    pub fn get(&self, id: i64) -> Result<Run, RunsError> {
        let sql = format!("SELECT {SUMMARY}, fingerprint, surroundings, document FROM run WHERE id = ?1");
        let rows = self.database.rows(&sql, [id], |row| {
            let packed: (Option<String>, String, Vec<u8>) = (row.get(11)?, row.get(12)?, row.get(13)?);
            Ok((summary(row)?, kept_texts(row)?, packed))
        })?;
        let Some((summary, texts, (fingerprint, surroundings, document))) = rows.into_iter().next() else {
            return Err(RunsError::NoRun { id });
        };
        let summary = self.completed(summary, &texts)?;
        let Summary { kind, state, began, duration_s, target, label, version, headline, figures, load, .. } = summary;
        let (surroundings, document) = (self.parsed(&surroundings)?, self.database.unpacked(&document)?);
        #[rustfmt::skip]
        let run = NewRun { kind, state, began, duration_s, target, label, version, headline, figures, surroundings, load, document, fingerprint };
        Ok(Run { id, run })
    }

    /// Removes runs with their trials. Returns how many there were.
    ///
    /// # Errors
    /// They cannot be removed. Then none is.
    pub fn remove(&mut self, ids: &[i64]) -> Result<usize, RunsError> {
        self.database.write(|transaction| ids.iter().map(|id| transaction.execute("DELETE FROM run WHERE id = ?1", [id])).sum())
    }

    /// The newest run of a kind and fingerprint that did not end by itself.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn latest_unfinished(&self, kind: &str, fingerprint: &str) -> Result<Option<i64>, RunsError> {
        let sql = "SELECT max(id) FROM run WHERE kind = ?1 AND fingerprint = ?2 AND state <> 'done'";
        let latest = self.database.connection.query_row(sql, [kind, fingerprint], |row| row.get(0));
        latest.map_err(|error| self.database.failed(error))
    }

    fn state(&self, name: &str) -> Result<State, RunsError> {
        State::parse(name).ok_or_else(|| self.database.damaged("a run has an unknown state"))
    }

    fn parsed<T: DeserializeOwned>(&self, json: &str) -> Result<T, RunsError> {
        serde_json::from_str(json).map_err(|error| self.database.damaged(error.to_string()))
    }
}

/// The parts of a run that are kept in another form.
struct Stored {
    figures: String,
    surroundings: String,
    load: String,
    document: Vec<u8>,
    bytes: i64,
    state: &'static str,
}

impl Stored {
    fn of(run: &NewRun) -> Result<Self, RunsError> {
        let document = packed(&run.document)?;
        let (figures, surroundings, load) = (json(&run.figures), json(&run.surroundings), json(&run.load));
        let texts = [&figures, &surroundings, &load, &run.headline, &run.target, &run.label];
        let bytes = document.len() + texts.iter().map(|text| text.len()).sum::<usize>() + run.fingerprint.as_ref().map_or(0, String::len);
        Ok(Self { figures, surroundings, load, document, bytes: bytes as i64, state: run.state.name() })
    }

    fn params<'a>(&'a self, run: &'a NewRun) -> impl Params + 'a {
        let Self { figures, surroundings, load, document, bytes, state } = self;
        let values: [&'a dyn rusqlite::ToSql; 14] = [
            &run.kind,
            state,
            &run.began,
            &run.duration_s,
            &run.target,
            &run.label,
            &run.version,
            &run.headline,
            &run.fingerprint,
            figures,
            surroundings,
            load,
            document,
            bytes,
        ];
        params_from_iter(values)
    }
}

/// Texts, numbers and maps of them: always JSON.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// State, figures and load of a row, as they are kept.
fn kept_texts(row: &Row<'_>) -> rusqlite::Result<[String; 3]> {
    Ok([row.get(2)?, row.get(9)?, row.get(10)?])
}

/// State, figures and load are filled in later.
fn summary(row: &Row<'_>) -> rusqlite::Result<Summary> {
    Ok(Summary {
        id: row.get(0)?,
        kind: row.get(1)?,
        state: State::Running,
        began: row.get(3)?,
        duration_s: row.get(4)?,
        target: row.get(5)?,
        label: row.get(6)?,
        version: row.get(7)?,
        headline: row.get(8)?,
        figures: Vec::new(),
        load: BTreeMap::new(),
    })
}

/// Removes runs beyond the limits, but not `written`: the oldest complete ones first, then the oldest unfinished ones.
fn prune(transaction: &Transaction<'_>, written: i64, runs_max: i64, bytes_max: i64) -> rusqlite::Result<()> {
    let (mut runs, mut bytes): (i64, i64) =
        transaction.query_row("SELECT count(*), coalesce(sum(bytes), 0) FROM run", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    while runs > runs_max || bytes > bytes_max {
        let sql = "SELECT id, bytes FROM run WHERE id <> ?1 ORDER BY state = 'running', id LIMIT 1";
        let oldest: Option<(i64, i64)> = transaction.query_row(sql, [written], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let Some((id, freed)) = oldest else { break };
        transaction.execute("DELETE FROM run WHERE id = ?1", [id])?;
        runs -= 1;
        bytes -= freed;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
