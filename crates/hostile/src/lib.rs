//! For tests of readers: damaged input without end, made from valid input, and bounds of time and memory for each case. `docs/fuzzing.md` says how it
//! is run.
//!
//! A test program declares the [`Allocator`] as its global one and calls [`run`] for each kind of input.

mod allocator;
mod bounds;
mod chance;
mod damage;
mod smaller;

pub use allocator::Allocator;
pub use bounds::{MEMORY_MAX, TIME_MAX};
pub use chance::Chance;
pub use damage::{Corpus, LENGTH_MAX};

/// Cases of each kind where the environment asks for no other number by `CASES`.
const CASES: u64 = 300;

/// Runs `read` with every valid input and then with damaged ones: `CASES` of them, the same each time unless `SEED` says otherwise.
///
/// # Panics
/// Where `read` panics, takes longer than [`TIME_MAX`] or more than [`MEMORY_MAX`]: with the smallest such input that was found, which is kept in a file
/// below the directory for temporary files. Where it does not end, the process is ended in the same way.
pub fn run(kind: &str, corpus: &Corpus, read: impl Fn(&[u8])) {
    run_each(kind, &corpus.inputs, &read);
    run_made(kind, |chance| corpus.damaged(chance), read);
}

/// Runs `read` with these inputs and no others, within the same bounds: what once went beyond them.
///
/// # Panics
/// As [`run`].
pub fn run_each(kind: &str, inputs: &[Vec<u8>], read: impl Fn(&[u8])) {
    for (number, input) in inputs.iter().enumerate() {
        if let Err(why) = bounds::within(kind, input, &read) {
            refuse(kind, &format!("input {number}"), input.clone(), why, &read);
        }
    }
}

/// Bytes that this thread held at most while it did something, beyond those that it held before; 0 where the [`Allocator`] is not the global one.
pub fn peak(work: impl FnOnce()) -> u64 {
    let held = allocator::held();
    allocator::begin();
    work();
    allocator::peak(held)
}

/// As [`run`], with inputs that `make` draws.
///
/// # Panics
/// As [`run`].
pub fn run_made(kind: &str, make: impl Fn(&mut Chance) -> Vec<u8>, read: impl Fn(&[u8])) {
    let (cases, seed) = (number("CASES").unwrap_or(CASES), number("SEED").unwrap_or(0));
    let mut worst = bounds::Cost::default();
    let begin = std::time::Instant::now();
    for case in 0..cases {
        let input = make(&mut Chance::new(seed, kind, case));
        match bounds::within(kind, &input, &read) {
            Ok(cost) => worst = worst.max(cost),
            Err(why) => refuse(kind, &format!("case {case} of seed {seed}"), input, why, &read),
        }
    }
    println!("{kind}: {cases} cases in {} s, at most {worst}", begin.elapsed().as_secs());
}

/// Panics, with a smaller input that shows the same.
fn refuse(kind: &str, which: &str, input: Vec<u8>, why: String, read: impl Fn(&[u8])) {
    let (input, why) = smaller::smallest(kind, input, why, read);
    let file = bounds::keep(kind, &input);
    panic!("{kind}, {which}: {why}; {} bytes, kept in {file}: {:?}", input.len(), shown(&input));
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The start of an input, readable.
fn shown(input: &[u8]) -> String {
    String::from_utf8_lossy(&input[..input.len().min(400)]).into_owned()
}

#[cfg(test)]
mod tests;
