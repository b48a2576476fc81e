//! MariaDB and MySQL: a thread for each session. One that waits for a lock of another session has a time limit (`innodb_lock_wait_timeout`; `lock_wait_timeout` for tables and GET_LOCK, in steps
//! of a second, sql/mdl.cc), and its holder wakes it before. Waits for a log that is written have none.

use crate::SessionsDef;

/// Its sessions.
pub(crate) const SESSIONS: SessionsDef = SessionsDef { programs: &["mariadbd", "mysqld"], of_title: None };
