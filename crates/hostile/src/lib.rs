//! Tests readers with endless damaged input, made from valid input, within limits of time and memory for each case. `docs/fuzzing.md` describes how to
//! run it.
//!
//! A test program declares the [`Allocator`] as its global allocator and calls [`run`] for each kind of input.

mod allocator;
mod bounds;
mod chance;
mod damage;
mod smaller;
mod speed;

pub use allocator::Allocator;
pub use bounds::{MEMORY_MAX, TIME_MAX};
pub use chance::Chance;
pub use damage::{Corpus, LENGTH_MAX};

/// Default number of cases of each kind; the environment variable `CASES` overrides it.
const CASES: u64 = 300;

/// Runs `read` with every valid input and then with `CASES` damaged ones. They are the same each time unless `SEED` is set.
///
/// # Panics
/// If `read` panics, takes longer than [`TIME_MAX`] or more memory than [`MEMORY_MAX`]. The panic shows the smallest such input found, and a file in the
/// directory for temporary files keeps it. If `read` does not end, the process ends in the same way.
pub fn run(kind: &str, corpus: &Corpus, read: impl Fn(&[u8])) {
    run_each(kind, &corpus.inputs, &read);
    run_made(kind, |chance| corpus.damaged(chance), read);
}

/// Runs `read` with only these inputs, within the same limits. For inputs that once exceeded them.
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

/// Peak bytes that this thread held while `work` ran, beyond those held before; 0 if the [`Allocator`] is not the global one.
pub fn peak(work: impl FnOnce()) -> u64 {
    let held = allocator::held();
    allocator::begin();
    work();
    allocator::peak(held)
}

/// As [`run`], with inputs that `make` generates.
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

/// Panics with a smaller input that shows the same defect.
fn refuse(kind: &str, which: &str, input: Vec<u8>, why: String, read: impl Fn(&[u8])) {
    let (input, why) = smaller::smallest(kind, input, why, read);
    let file = bounds::keep(kind, &input);
    panic!("{kind}, {which}: {why}; {} bytes, kept in {file}: {:?}", input.len(), shown(&input));
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The start of an input in readable form.
fn shown(input: &[u8]) -> String {
    String::from_utf8_lossy(&input[..input.len().min(400)]).into_owned()
}

#[cfg(test)]
mod tests;
