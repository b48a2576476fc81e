//! What the limits detect, and which damage is made.

use std::panic::catch_unwind;

use super::*;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn corpus() -> Corpus {
    Corpus::text(&["server { listen 80; }\n", "worker_processes 4;\n"])
}

/// The message of the panic that rejects a reader.
fn refused(read: impl Fn(&[u8]) + std::panic::RefUnwindSafe + std::panic::UnwindSafe) -> String {
    let panic = catch_unwind(|| run("made up", &corpus(), read)).expect_err("it is refused");
    // The test wanted this failure, so it removes the input that was kept for analysis.
    let _ = std::fs::remove_file(std::env::temp_dir().join(format!("hostile-made-up-{}.bin", std::process::id())));
    panic.downcast_ref::<String>().expect("in words").clone()
}

#[test]
fn a_correct_reader_passes() {
    run("made up", &corpus(), |input| assert!(input.len() <= LENGTH_MAX));
}

#[test]
fn a_panic_is_reported_with_a_small_input() {
    let why = refused(|input| assert!(!input.contains(&b'{'), "a brace"));
    assert!(why.contains("it panics: a brace; 1 bytes") && why.contains("\"{\""), "{why}");
}

#[test]
fn memory_is_counted_even_if_it_is_freed_at_once() {
    let why = refused(|input| {
        let take = if input.len() > 20 { 300 << 20 } else { 1 << 20 };
        std::hint::black_box(Vec::<u8>::with_capacity(take));
    });
    assert!(why.contains("314.6 MB"), "{why}");
}

/// Work for each pair of bytes.
fn quadratic(input: &[u8]) {
    let pairs = input.len() * input.len();
    let sum = (0..pairs).fold(0_usize, |sum, pair| std::hint::black_box(sum.wrapping_mul(3) ^ pair));
    std::hint::black_box(sum);
}

#[test]
fn a_quadratic_reader_is_refused() {
    let mut long = vec![b'a'; 64_000];
    let took = |input: &[u8]| {
        let begin = speed::processor_time();
        quadratic(input);
        speed::processor_time().saturating_sub(begin)
    };
    // A faster machine needs a longer input.
    while took(&long) < 2 * TIME_MAX {
        long.extend_from_within(..long.len() / 2);
    }
    // A tenth of that length takes a hundredth of the time.
    assert!(bounds::within("made up", &long[..long.len() / 10], quadratic).is_ok());
    let why = bounds::within("made up", &long, quadratic).expect_err("it takes long");
    assert!(why.starts_with("it takes ") && why.contains("at nominal speed"), "{why}");
}

/// A machine that is slower for a while is not the reader's fault, and a faster one no excuse.
#[test]
fn time_is_judged_at_nominal_speed() {
    use std::time::Duration;
    let usual = speed::nominal(Duration::from_secs(1), Duration::from_millis(28));
    assert_eq!(usual, Duration::from_secs(1));
    assert_eq!(speed::nominal(Duration::from_secs(1), Duration::from_millis(56)), usual / 2);
    assert_eq!(speed::nominal(Duration::from_secs(1), Duration::from_millis(14)), usual * 2);
}

#[test]
fn damage_is_reproducible_and_of_every_kind() {
    let all: Vec<Vec<u8>> = (0..10_000).map(|case| corpus().damaged(&mut Chance::new(1, "made up", case))).collect();
    let again: Vec<Vec<u8>> = (0..10_000).map(|case| corpus().damaged(&mut Chance::new(1, "made up", case))).collect();
    assert!(all == again);
    let any = |is_so: &dyn Fn(&Vec<u8>) -> bool| all.iter().any(is_so);
    assert!(any(&|input| input.is_empty()) && any(&|input| input.len() > USUAL) && any(&|input| std::str::from_utf8(input).is_err()));
    assert!(any(&|input| input.windows(10).any(|part| part == b"{{{{{{{{{{")), "deep nesting");
    assert!(any(&|input| input.windows(20).any(|part| part == b"18446744073709551616")), "large numbers");
    assert!(all.iter().filter(|input| input.starts_with(b"server { listen")).count() > 100, "much is as it was");
}

/// Longer than most inputs.
const USUAL: usize = 100_000;
