//! Readers of what others wrote (recordings, captures, program files), in a child process without rights.
//!
//! A format has a [`Reader`]: a question and open files in, an answer out. Where this program has rights that an attacker would want, it runs in a child: this
//! program, executed once more, that gives up everything before the first file reaches it (`rights.rs`) and gets open descriptors, never a path. Elsewhere
//! it runs in this process. A child that ends is an error of the file that it was reading, and the next file gets a new one.

#![deny(unsafe_code)]

mod calls;
mod child;
mod frame;
mod memory;
mod rights;
mod serve;

use std::fs::File;
use std::process::ExitCode;
use std::sync::OnceLock;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use child::{Bounds, ReadError, Readers};
pub use memory::resident_bytes;
pub use rights::Held;

/// A reader of a format.
pub trait Reader {
    /// Its name: no two readers of a program have the same.
    const NAME: &'static str;
    /// What is asked beside the files.
    type Question: Serialize + DeserializeOwned;
    /// What the files answer.
    type Answer: Serialize + DeserializeOwned;

    /// Reads the files. In a child it can open nothing, nor write, connect, start or signal anything.
    ///
    /// # Errors
    /// Why they cannot be read, as a clause.
    fn read(question: Self::Question, files: Vec<File>) -> Result<Self::Answer, String>;
}

/// From the bytes of a question and open files to those of the answer, or to the reason why there is none.
type Answer = fn(&[u8], Vec<File>) -> Result<Vec<u8>, String>;

/// A line of the table of readers.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    name: &'static str,
    answer: Answer,
}

impl Format {
    /// The line of a reader.
    pub const fn of<R: Reader>() -> Self {
        Self { name: R::NAME, answer: answer::<R> }
    }
}

fn answer<R: Reader>(question: &[u8], files: Vec<File>) -> Result<Vec<u8>, String> {
    let question = serde_json::from_slice(question).map_err(|error| format!("the question is malformed ({error})"))?;
    let answer = R::read(question, files)?;
    serde_json::to_vec(&answer).map_err(|error| format!("the answer cannot be written ({error})"))
}

/// The readers of this program, once [`begin`] has run.
static FORMATS: OnceLock<&'static [Format]> = OnceLock::new();

/// The first argument of a child, which no user gives.
const ARGUMENT: &str = "reader-without-rights";

/// Must come first in `main`, before any thread: in a child it reads until the parent closes the connection, and gives the exit status. In any other process
/// it gives nothing, and readers may run in children from then on.
pub fn begin(formats: &'static [Format]) -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == ARGUMENT) {
        return Some(serve::serve(formats, &Bounds::from_arguments(arguments)));
    }
    let _ = FORMATS.set(formats);
    None
}

/// What a child on this host could not give up, as clauses with what remains; nothing where it has no rights at all.
pub fn lacking() -> Vec<String> {
    match Readers::default().held() {
        Ok(held) => held.lacking(),
        Err(error) => vec![format!("readers of files cannot run in a child without rights: {error}")],
    }
}
