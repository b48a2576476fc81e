//! One SQLite file of this program that several processes may use at once, safe to open whatever is in it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Params, Row, Transaction, TransactionBehavior};

use crate::document::unpack;
use crate::error::RunsError;
use crate::place;

/// How long to wait for another process that writes.
const BUSY: Duration = Duration::from_secs(5);

/// `PRAGMA auto_vacuum = FULL`, as a number.
const AUTO_VACUUM_FULL: i64 = 1;

/// What a file of one kind is.
#[derive(Debug)]
pub(crate) struct Kind {
    /// The name of the file in its directory.
    pub(crate) file: &'static str,
    /// Marks the file as ours (`PRAGMA application_id`).
    pub(crate) application_id: i64,
    /// The newest format that this program reads and writes (`PRAGMA user_version`).
    pub(crate) format: i64,
    /// How it is written: statements that set `journal_mode` and `synchronous`.
    pub(crate) journal: &'static str,
    /// The statements that make the tables.
    pub(crate) tables: &'static str,
}

/// An open file.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) connection: Connection,
    path: PathBuf,
}

impl Database {
    /// The file in a directory. Both are made if they are missing.
    pub(crate) fn open(dir: &Path, kind: &Kind) -> Result<Self, RunsError> {
        let path = place::prepare(dir, kind.file)?;
        Self::connect(path, kind)
    }

    /// The file, if there is one.
    pub(crate) fn open_existing(dir: &Path, kind: &Kind) -> Result<Option<Self>, RunsError> {
        place::find(dir, kind.file)?.map(|path| Self::connect(path, kind)).transpose()
    }

    fn connect(path: PathBuf, kind: &Kind) -> Result<Self, RunsError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NOFOLLOW | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&path, flags).map_err(|error| RunsError::sqlite(&path, error))?;
        let mut database = Self { connection, path };
        database.set_up(kind)?;
        Ok(database)
    }

    /// Settings of the connection, and the tables of a new file.
    fn set_up(&mut self, kind: &Kind) -> Result<(), RunsError> {
        let connection = &self.connection;
        let settings = connection.busy_timeout(BUSY).and_then(|()| {
            // The file may be anything: nothing in it runs. What is removed is overwritten, and the file shrinks.
            connection.execute_batch(
                "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON; \
                 PRAGMA temp_store = MEMORY;",
            )?;
            // Setting it is a write, which waits for another process that writes.
            match connection.pragma_query_value(None, "auto_vacuum", |row| row.get::<_, i64>(0))? {
                AUTO_VACUUM_FULL => Ok(()),
                _ => connection.execute_batch("PRAGMA auto_vacuum = FULL;"),
            }
        });
        settings.and_then(|()| connection.execute_batch(kind.journal)).map_err(|error| self.failed(error))?;
        if self.is_ours(kind)? {
            return Ok(());
        }
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = transaction.map_err(|error| RunsError::sqlite(&self.path, error))?;
        let Kind { application_id, format, tables, .. } = kind;
        // Another process may have made the tables meanwhile.
        let made = match objects(&transaction) {
            Ok(0) => transaction
                .execute_batch(&format!("PRAGMA application_id = {application_id}; PRAGMA user_version = {format}; {tables}"))
                .and_then(|()| transaction.commit()),
            Ok(_) => transaction.commit(),
            Err(error) => Err(error),
        };
        made.map_err(|error| RunsError::sqlite(&self.path, error))
    }

    /// True for a file that this version reads; false for an empty one.
    fn is_ours(&self, kind: &Kind) -> Result<bool, RunsError> {
        let number = |name: &str| self.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(|e| self.failed(e));
        let (application, found) = (number("application_id")?, number("user_version")?);
        let objects = objects(&self.connection).map_err(|error| self.failed(error))?;
        match objects {
            0 => Ok(false),
            _ if application == kind.application_id && found > kind.format => {
                Err(RunsError::Newer { path: self.path.clone(), found, known: kind.format })
            }
            _ if application == kind.application_id && found == kind.format => Ok(true),
            _ => Err(self.damaged("it is a database of another program")),
        }
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// One transaction that takes the lock at once: all of it is kept when this returns, or nothing.
    pub(crate) fn write<T>(&mut self, change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> Result<T, RunsError> {
        let path = &self.path;
        let written = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).and_then(|transaction| {
            let value = change(&transaction)?;
            transaction.commit().map(|()| value)
        });
        written.map_err(|error| RunsError::sqlite(path, error))
    }

    /// All rows of a query.
    pub(crate) fn rows<T>(
        &self,
        sql: &str,
        params: impl Params,
        map: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, RunsError> {
        let read = || self.connection.prepare(sql)?.query_map(params, map)?.collect();
        let rows: rusqlite::Result<Vec<T>> = read();
        rows.map_err(|error| self.failed(error))
    }

    /// Gives rows one by one until `give` wants no more.
    pub(crate) fn each(
        &self,
        sql: &str,
        params: impl Params,
        mut give: impl FnMut(&Row<'_>) -> Result<bool, RunsError>,
    ) -> Result<(), RunsError> {
        let failed = |error| self.failed(error);
        let mut statement = self.connection.prepare(sql).map_err(failed)?;
        let mut rows = statement.query(params).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            if !give(row)? {
                break;
            }
        }
        Ok(())
    }

    /// The text of a kept document.
    pub(crate) fn unpacked(&self, document: &[u8]) -> Result<String, RunsError> {
        unpack(document).map_err(|why| self.damaged(why))
    }

    pub(crate) fn damaged(&self, why: impl Into<String>) -> RunsError {
        RunsError::damaged(&self.path, why)
    }

    pub(crate) fn failed(&self, error: rusqlite::Error) -> RunsError {
        RunsError::sqlite(&self.path, error)
    }
}

fn objects(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
}
