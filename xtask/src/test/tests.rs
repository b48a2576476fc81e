//! The runner against made-up test programs: scripts that print as libtest does, and a workspace of one package that cargo builds.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use proptest::prelude::*;

use super::build::{Binary, Part, Workspace};
use super::history::History;
use super::output::{Results, judge};
use super::process::{Exit, Ran};
use super::suite::Suite;
use super::summary::Summary;
use super::{Options, output, run_in};

/// A directory for made-up programs, with what the runner keeps below it.
struct Bench {
    directory: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("unstable")).unwrap();
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A program with the tests `names`, which runs `script` where it is not asked to list them. `$1` is empty, or the one test that it is to run.
    fn program(&self, names: &[&str], is_live: bool, script: &str) -> Binary {
        let list: String = names.iter().map(|name| format!("{name}: test\\n")).collect();
        let program = self.path("program");
        let one = "one=; case \"$*\" in *--exact*) one=$2;; esac; set -- \"$one\"";
        let text = format!("#!/bin/sh\ncase \"$*\" in *--list*) printf '{list}'; exit 0;; esac\n{one}\n{script}\n");
        // Written under another name and then renamed by another process: were it open for writing here while another test forks, it could not be run.
        let new = self.path("program.new");
        std::fs::write(&new, text).unwrap();
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(std::process::Command::new("cp").args([&new, &program]).status().unwrap().success());
        let directory = self.directory.path().to_owned();
        let (package, source, version) = ("made-up".to_owned(), "tests/a.rs".to_owned(), "1.0.0".to_owned());
        Binary { package, source, part: Part::Whole, version, program, directory, is_live, is_library: false }
    }

    fn run(&self, binary: Binary) -> Summary {
        self.run_within(binary, Duration::from_secs(60))
    }

    fn run_within(&self, binary: Binary, bound: Duration) -> Summary {
        let mut suite = Suite::new(self.directory.path(), None).unwrap().with_bound(bound);
        suite.run(&[binary]);
        suite.into_summary()
    }

    fn tried(&self) -> usize {
        std::fs::read_to_string(self.path("tried")).map_or(0, |text| text.lines().count())
    }
}

/// A script whose test `b` passes or fails ("p", "f"; "x" by a signal, "n" without results, "h" for ever) as the letters say, a letter a run.
fn turns(turns: &str) -> String {
    format!(
        r#"echo run >> tried; turn=$(printf '{turns}' | cut -c "$(wc -l < tried)")
if [ -z "$1" ]; then echo 'test a ... ok'; a=1; else a=0; fi
[ "$turn" != x ] || kill -SEGV $$
[ "$turn" != n ] || exit 3
[ "$turn" != h ] || sleep 1000
if [ "$turn" = p ]; then printf 'test b ... ok\n\ntest result: ok. %s passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n' $((a + 1)); exit 0; fi
printf 'test b ... FAILED\n\nfailures:\n\n---- b stdout ----\n\nthread '"'b'"' (7) panicked at a.rs:1:2:\nno answer\nnote: x\n\n\nfailures:\n    b\n\n'
echo "test result: FAILED. $a passed; 1 failed; 0 ignored; 0 measured; 0 filtered out"; exit 101"#
    )
}

#[test]
fn a_live_test_passes_with_two_of_three_and_a_deterministic_one_with_all() {
    for (letters, live, runs, passes, text) in [
        ("p", true, 1, true, "2 passed, 0 failed, 0 skipped"),
        ("fpp", true, 3, true, "unstable: made-up/tests/a.rs::b, 1 of 3 failed: no answer\n"),
        ("fff", true, 3, false, "failed: made-up/tests/a.rs::b: 3 of 3: no answer\n"),
        ("ffp", true, 3, false, "failed: made-up/tests/a.rs::b: 2 of 3: no answer\n"),
        ("fpf", true, 3, false, "failed: made-up/tests/a.rs::b: 2 of 3: no answer\n"),
        ("fxp", true, 3, false, "failed: made-up/tests/a.rs::b: 2 of 3: no answer\n"),
        ("fpp", false, 1, false, "failed: made-up/tests/a.rs::b: no answer\n"),
        ("xpp", true, 3, true, "unstable: made-up/tests/a.rs::b, 1 of 3 failed: ended by signal 11\n"),
        ("npp", true, 3, true, "unstable: made-up/tests/a.rs::b, 1 of 3 failed: ended with status 3\n"),
        ("hpp", true, 3, true, "unstable: made-up/tests/a.rs::b, 1 of 3 failed: ended after 2 s: it took longer than it may\n"),
        ("xpf", true, 3, false, "failed: made-up/tests/a.rs::b: 2 of 3: ended by signal 11\n"),
        ("xxx", true, 3, false, "failed: made-up/tests/a.rs::b: 3 of 3: ended by signal 11\n"),
        ("x", false, 1, false, "failed: made-up tests/a.rs: ended by signal 11\n"),
        ("n", false, 1, false, "failed: made-up tests/a.rs: ended with status 3\n"),
        ("h", false, 1, false, "failed: made-up tests/a.rs: ended after 2 s: it took longer than it may\n"),
    ] {
        let bench = Bench::new();
        // As long as that takes only what hangs.
        let bound = Duration::from_secs(if letters.contains('h') { 2 } else { 60 });
        let summary = bench.run_within(bench.program(&["a", "b"], live, &turns(letters)), bound);
        assert!(summary.text().contains(text), "{letters}: {}", summary.text());
        assert_eq!((summary.is_success(), bench.tried()), (passes, runs), "{letters}");
        let kept = std::fs::read_dir(bench.path("unstable/made-up_tests_a.rs__b")).map_or(0, Iterator::count);
        assert_eq!(kept, if runs > 1 { 3 } else { 0 }, "{letters}: what each run printed is kept");
    }
}

/// Ends the program in its first run, in which `a` passed, by what `end` says; then each test by itself as `alone` says, where its name is `$1`.
fn cut(end: &str, alone: &str) -> String {
    format!(
        r#"echo run >> tried
if [ -z "$1" ]; then echo 'test a ... ok'; {end}; fi
{alone}
printf 'test %s ... ok\n\nsuccesses:\n\n---- %s stdout ----\n%s\n\n\nsuccesses:\n    %s\n\n' "$1" "$1" "$said" "$1"
echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'"#
    )
}

#[test]
fn what_a_program_did_not_end_is_run_one_by_one_and_who_ended_it_is_named() {
    let overflow = r#"echo; echo "thread 'c' (7) has overflowed its stack"; kill -ABRT $$"#;
    let long = "echo 'test c has been running for over 60 seconds'; sleep 1000";
    let failed = "echo 'test c ... FAILED'; kill -KILL $$";
    let unstable = "unstable: made-up/tests/a.rs::";
    for (end, alone, runs, passes, has, has_not) in [
        // Named: the others were only not done.
        (overflow, "", 5, true, format!("{unstable}c, 1 of 3 failed: ended by signal 6\n"), format!("{unstable}b")),
        (long, "", 5, true, format!("{unstable}c, 1 of 3 failed: ended after 2 s"), format!("{unstable}b")),
        (
            overflow,
            "[ $1 != b ] || exit 1",
            5,
            false,
            "failed: made-up/tests/a.rs::b: 2 of 2: ".to_owned(),
            "failed: made-up/tests/a.rs::c".to_owned(),
        ),
        (
            overflow,
            "[ $1 != c ] || exit 1",
            5,
            false,
            "failed: made-up/tests/a.rs::c: 3 of 3: ended by signal 6\n".to_owned(),
            "::b".to_owned(),
        ),
        // Not named: each of them may have done it.
        (
            "kill -KILL $$",
            "",
            5,
            true,
            format!("{unstable}b, 1 of 3 failed: ended by signal 9, by this or by another of 2 tests\n"),
            "\nfailed:".to_owned(),
        ),
        ("kill -KILL $$", "[ $1 != b ] || said='skipped: needs x'", 5, true, "  1 x needs x\n".to_owned(), format!("{unstable}b")),
        // It failed before another one ended the program.
        (failed, "", 5, true, format!("{unstable}c, 1 of 3 failed: it failed, and then its program ended\n"), "another".to_owned()),
        // Nobody is left to have done it.
        (
            "kill -KILL $$",
            "said='skipped: needs x'",
            5,
            false,
            "failed: made-up tests/a.rs: ended by signal 9\n".to_owned(),
            unstable.to_owned(),
        ),
        (
            "echo 'test b ... ok'; echo 'test c ... ok'; exit 0",
            "",
            1,
            false,
            "it ended without a line of results\n".to_owned(),
            unstable.to_owned(),
        ),
    ] {
        let bench = Bench::new();
        let bound = Duration::from_secs(if end == long { 2 } else { 60 });
        let summary = bench.run_within(bench.program(&["a", "b", "c"], true, &cut(end, alone)), bound);
        let text = summary.text();
        assert!(text.contains(&has) && !text.contains(&has_not), "{end}, {alone}: {text}");
        assert_eq!((summary.is_success(), bench.tried()), (passes, runs), "{end}, {alone}: {text}");
    }
}

#[test]
fn a_program_whose_deterministic_tests_did_not_end_is_not_run_again() {
    let bench = Bench::new();
    let summary = bench.run(bench.program(&["a", "b", "live::c"], false, &cut("kill -KILL $$", "")));
    assert!(!summary.is_success() && summary.text().contains("failed: made-up tests/a.rs: ended by signal 9\n"), "{}", summary.text());
    assert_eq!(bench.tried(), 1);
    let bench = Bench::new();
    let summary = bench.run(bench.program(&["a", "live::c"], false, &cut("kill -KILL $$", "")));
    assert!(summary.is_success() && summary.text().contains("unstable: made-up/tests/a.rs::live::c, 1 of 3"), "{}", summary.text());
}

#[test]
fn a_module_named_live_is_live_in_any_program() {
    let bench = Bench::new();
    let summary = bench.run(bench.program(
        &["a", "tests::live::b"],
        false,
        &turns("fpp").replace("test b ", "test tests::live::b ").replace("    b", "    tests::live::b"),
    ));
    assert!(summary.is_success() && summary.text().contains("unstable: made-up/tests/a.rs::tests::live::b, 1 of 3"), "{}", summary.text());
}

#[test]
fn the_outputs_of_an_unstable_test_are_kept() {
    let bench = Bench::new();
    bench.run(bench.program(&["a", "b"], true, &turns("fpp")));
    let kept = bench.path("unstable/made-up_tests_a.rs__b");
    let read = |name: &str| std::fs::read_to_string(kept.join(name)).unwrap();
    assert!(read("1.txt").contains("no answer") && read("2.txt").contains("test b ... ok") && read("3.txt").contains("test b ... ok"));
}

#[test]
fn the_second_time_within_five_runs_fails_until_its_line_is_deleted() {
    let file = Path::new("target/unstable/history");
    let mut history = History::default();
    let run = |letters: &str, history: &mut History| {
        let bench = Bench::new();
        let mut summary = bench.run(bench.program(&["a", "b"], true, &turns(letters)));
        summary.judge_history(history, file);
        *history = History::parse(&history.text());
        (summary.is_success(), summary.text())
    };
    assert!(run("fpp", &mut history).0 && run("p", &mut history).0);
    let (passes, text) = run("fpp", &mut history);
    assert!(
        !passes && text.contains("unstable in 2 of its last 5 runs") && text.contains("delete its line in target/unstable/history"),
        "{text}"
    );
    assert!(text.ends_with("1 passed, 1 failed, 0 skipped\n"), "{text}");
    assert!(!run("p", &mut history).0, "it is not mended because it passed once");
    assert!(run("p", &mut History::default()).0);
}

#[test]
fn what_a_test_printed_is_not_taken_for_what_came_of_the_program() {
    let printed =
        "successes:\n\n---- a stdout ----\ntest b ... FAILED\nfailures:\n    b\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n\n";
    let end = "\nsuccesses:\n    a\n    b\n\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured\n";
    let ran = Ran { exit: Exit::Code(0), text: format!("test a ... ok\ntest b ... ok\n\n{printed}{end}") };
    let results = judge(&["a".to_owned(), "b".to_owned()], &ran);
    assert_eq!((results.passed.len(), results.failed.len(), results.broken), (2, 0, None));
}

#[test]
fn what_hangs_is_ended_with_all_that_it_started() {
    let bench = Bench::new();
    let script = "echo 'test a ... ok'; sh -c 'trap \"\" TERM; echo $$ > child; exec sleep 1000' & wait";
    let summary = bench.run_within(bench.program(&["a", "b"], true, script), Duration::from_secs(1));
    assert!(!summary.is_success() && summary.text().contains("it took longer than it may"), "{}", summary.text());
    let child = std::fs::read_to_string(bench.path("child")).unwrap();
    // Whoever inherits it has yet to take note of its end.
    while std::fs::read_to_string(format!("/proc/{}/stat", child.trim())).is_ok_and(|stat| !stat.contains(") Z ")) {
        std::thread::yield_now();
    }
    assert!(summary.text().ends_with("1 passed, 1 failed, 0 skipped\n"), "{}", summary.text());
}

#[test]
fn what_ends_wrong_is_no_success() {
    let ok = "echo 'test a ... ok'; echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'";
    for (names, script) in [
        (&["a"][..], "exit 0"),
        (&["a"], "echo 'test a ... ok'; exit 0"),
        (&["a"], &format!("{ok}; exit 1")),
        (&["a"], &format!("{ok}; exit 101")),
        (&["a", "b"], ok),
        (&["a"], &ok.replace("0 failed", "1 failed")),
        (&[], ok),
    ] {
        let bench = Bench::new();
        let summary = bench.run(bench.program(names, true, script));
        assert!(!summary.is_success() && !summary.text().contains("unstable:"), "{script}: {}", summary.text());
    }
    let bench = Bench::new();
    assert!(bench.run(bench.program(&["a"], true, ok)).is_success());
    let gone = Binary { program: bench.path("none"), ..bench.program(&["a"], true, ok) };
    assert!(!bench.run(gone).is_success());
}

#[test]
fn skipped_tests_are_counted_and_their_reasons_listed() {
    let bench = Bench::new();
    let script = "printf 'test a ... ok\\ntest b ... ok\\n\\nsuccesses:\\n\\n---- a stdout ----\\nskipped: needs root\\n\\n\\nsuccesses:\\n    a\\n    b\\n\\n'
        echo 'test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'";
    let mut summary = bench.run(bench.program(&["a", "b"], false, script));
    let earlier = bench.path("earlier");
    std::fs::write(&earlier, "== x\nskipped: no shellcheck\n").unwrap();
    summary.earlier(Some(&earlier)).unwrap();
    assert_eq!(summary.text(), "skipped:\n  1 x needs root\n  1 x no shellcheck\n1 passed, 0 failed, 1 skipped\n");
    assert!(summary.is_success());
}

#[test]
fn a_workspace_is_built_and_run_and_what_does_not_build_is_no_success() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("Cargo.toml", "[workspace]\n[package]\nname = \"made-up\"\nversion = \"1.2.3\"\nedition = \"2024\"\n");
    write("src/lib.rs", "//! Made up.\n");
    let flaky = "use std::{env, fs};\n#[test]\nfn second_time_lucky() {\n    assert_eq!(env::var(\"CARGO_PKG_VERSION\").unwrap(), \"1.2.3\");\n    \
         let tried = env::var(\"CARGO_MANIFEST_DIR\").unwrap() + \"/tried\";\n    let first = !fs::exists(&tried).unwrap();\n    \
         fs::write(tried, \"\").unwrap();\n    assert!(!first, \"the first time\");\n}\n";
    let workspace = Workspace { root: directory.path().to_owned(), target: directory.path().join("target"), has_feature: false };
    let run = || run_in(&workspace, &Options::default()).map(|code| code == ExitCode::SUCCESS).unwrap_or(false);
    assert!(!run(), "no test ran");
    write("tests/a.rs", &format!("//! Made up.\n//! Deterministic: it is said so.\n{flaky}"));
    assert!(!run(), "it is not looked at again");
    std::fs::remove_file(directory.path().join("tried")).unwrap();
    write("tests/a.rs", &format!("//! Made up.\n//! Live: it is said so.\n{flaky}"));
    assert!(run());
    let history = std::fs::read_to_string(directory.path().join("target/unstable/history")).unwrap();
    assert!(history.ends_with("\nU made-up/tests/a.rs::second_time_lucky\n"), "{history}");
    write("src/lib.rs", "//! Made up.\n//! ```\n//! assert_eq!(made_up::ONE, 2);\n//! ```\n/// One.\npub const ONE: u8 = 1;\n");
    assert!(!run(), "a test in documentation fails");
    write("src/lib.rs", "fn f() { none() }\n");
    assert!(!run(), "it does not build");
}

#[test]
fn a_command_line_is_read() {
    let options = Options::of(&["--package", "a", "-p", "b", "--earlier", "log", "name"]).unwrap();
    assert_eq!((options.packages.len(), options.filter.as_deref(), options.earlier.as_deref()), (2, Some("name"), Some(Path::new("log"))));
    assert_eq!(Options::of(&[]), Some(Options::default()));
    for wrong in [&["--package"][..], &["--none"], &["a", "b"], &["--earlier"]] {
        assert_eq!(Options::of(wrong), None, "{wrong:?}");
    }
}

/// What libtest prints of tests with these results; true for passed.
fn printed(tests: &[bool]) -> String {
    let mut text = format!("\nrunning {} tests\n", tests.len());
    let name = |number: usize| format!("t{number}");
    let failed: Vec<usize> = (0..tests.len()).filter(|number| !tests[*number]).collect();
    for (number, passed) in tests.iter().enumerate() {
        text += &format!("test {} ... {}\n", name(number), if *passed { "ok" } else { "FAILED" });
    }
    if !failed.is_empty() {
        text += "\nfailures:\n\n";
        failed.iter().for_each(|number| text += &format!("---- {} stdout ----\nwhy\n\n", name(*number)));
        text += "\nfailures:\n";
        failed.iter().for_each(|number| text += &format!("    {}\n", name(*number)));
    }
    let word = if failed.is_empty() { "ok" } else { "FAILED" };
    text + &format!(
        "\ntest result: {word}. {} passed; {} failed; 0 ignored; 0 measured; 0 filtered out\n\n",
        tests.len() - failed.len(),
        failed.len()
    )
}

fn exits() -> impl Strategy<Value = Exit> {
    prop_oneof![
        Just(Exit::Code(0)),
        Just(Exit::Code(101)),
        any::<i32>().prop_map(Exit::Code),
        (1..64).prop_map(Exit::Signal),
        Just(Exit::TimedOut(Duration::from_secs(1))),
        Just(Exit::Flooded),
        Just(Exit::NotStarted("none".to_owned())),
    ]
}

fn is_success(results: &Results) -> bool {
    results.broken.is_none() && results.failed.is_empty()
}

proptest! {
    #[test]
    fn only_programs_that_ended_well_with_all_tests_passed_are_a_success(
        tests in proptest::collection::vec(proptest::bool::weighted(0.8), 0..6),
        exit in exits(),
        noise in "[ a-z.:\n-]{0,40}",
        cut in proptest::option::of(0_usize..400),
    ) {
        let whole = printed(&tests);
        let text = cut.map_or_else(|| whole.clone(), |cut| whole[..cut.min(whole.len())].to_owned());
        let listed: Vec<String> = (0..tests.len()).map(|number| format!("t{number}")).collect();
        let ran = Ran { exit: exit.clone(), text: format!("{noise}\n{text}") };
        let results = judge(&listed, &ran);
        // A program whose tests failed ends with 101, whatever becomes of its output.
        let honest = exit != Exit::Code(0) || tests.iter().all(|passed| *passed);
        if honest && is_success(&results) {
            prop_assert_eq!(&exit, &Exit::Code(0));
            prop_assert_eq!(results.passed.len() + results.skipped.len(), tests.len());
        }
        if exit == Exit::Code(0) && tests.iter().any(|passed| !*passed) {
            prop_assert!(!is_success(&results));
        }
        if cut.is_none() && tests.iter().all(|passed| *passed) {
            prop_assert_eq!(is_success(&results), exit == Exit::Code(0), "{:?}", results);
        }
        if cut.is_none() && exit == Exit::Code(101) && tests.iter().any(|passed| !*passed) {
            prop_assert!(results.broken.is_none() && results.failed.len() == tests.iter().filter(|passed| !**passed).count(), "{:?}", results);
        }
    }

    #[test]
    fn any_text_is_judged(text in "(test |ok|\\.\\.\\.| |\n|failures:|    a|---- a stdout ----|test result: |[0-9] passed; |a){0,30}", exit in exits()) {
        let ran = Ran { exit, text };
        let results = judge(&["a".to_owned()], &ran);
        prop_assert!(!is_success(&results) || ran.exit == Exit::Code(0));
        let _ = (output::judge_documentation(&ran), output::why(&ran.text), output::progress(&["a".to_owned()], &ran.text));
    }
}
