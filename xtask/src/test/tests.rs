//! The runner with made-up test programs: scripts that print what libtest prints, and a workspace of one package that cargo builds.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use proptest::prelude::*;

use super::build::Schedule::{self, Deterministic, LiveAlone, LiveBesideOthers};
use super::build::{ModuleFilter, TestProgram, Workspace};
use super::checks::Check;
use super::history::History;
use super::output::{Results, judge};
use super::process::{Exit, ProcessOutput};
use super::suite::{Plan, Suite};
use super::summary::Summary;
use super::{Options, output, run_in};

/// A directory with made-up programs, in which the runner stores its files too.
struct Sandbox {
    directory: tempfile::TempDir,
}

impl Sandbox {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("unstable")).unwrap();
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A program with the tests `names`. It runs `script`, unless it is asked to list them. `$1` is empty, or the one test that it is asked to run.
    fn program(&self, names: &[&str], schedule: Schedule, script: &str) -> TestProgram {
        self.named_program("program", names, schedule, script)
    }

    fn named_program(&self, name: &str, names: &[&str], schedule: Schedule, script: &str) -> TestProgram {
        let list: String = names.iter().map(|name| format!("{name}: test\\n")).collect();
        let executable = self.path(name);
        let one = "one=; case \"$*\" in *--exact*) one=$2;; esac; set -- \"$one\"";
        let text = format!("#!/bin/sh\ncase \"$*\" in *--list*) printf '{list}'; exit 0;; esac\n{one}\n{script}\n");
        // Another process makes the final copy: a file that is open for writing here while another test forks cannot be executed.
        let new = self.path(&format!("{name}.new"));
        std::fs::write(&new, text).unwrap();
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(std::process::Command::new("cp").args([&new, &executable]).status().unwrap().success());
        let directory = self.directory.path().to_owned();
        let (package, source, version) = ("made-up".to_owned(), "tests/a.rs".to_owned(), "1.0.0".to_owned());
        TestProgram { package, source, modules: ModuleFilter::All, version, executable, directory, schedule, is_library: false }
    }

    fn run(&self, program: TestProgram) -> Summary {
        self.run_within(vec![program], Duration::from_secs(60))
    }

    fn run_within(&self, programs: Vec<TestProgram>, program_max: Duration) -> Summary {
        let mut suite = Suite::new(self.directory.path(), None).unwrap().with_program_max(program_max);
        suite.run(Plan { programs, ..Plan::default() });
        suite.into_summary()
    }

    fn tried(&self) -> usize {
        std::fs::read_to_string(self.path("tried")).map_or(0, |text| text.lines().count())
    }
}

/// A script whose test `b` behaves in each run as the next letter says: it passes (p), fails (f), dies by a signal (x), prints no results (n) or hangs (h).
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
    for (letters, schedule, runs, passes, text) in [
        ("p", LiveAlone, 1, true, "2 passed, 0 failed, 0 skipped"),
        ("fpp", LiveAlone, 3, true, "unstable: made-up/tests/a.rs::b, 1 of 3 failed: no answer\n"),
        ("fff", LiveAlone, 3, false, "failed: made-up/tests/a.rs::b: 3 of 3: no answer\n"),
        ("ffp", LiveAlone, 3, false, "failed: made-up/tests/a.rs::b: 2 of 3: no answer\n"),
        ("fpf", LiveAlone, 3, false, "failed: made-up/tests/a.rs::b: 2 of 3: no answer\n"),
        ("fxp", LiveAlone, 3, false, "failed: made-up/tests/a.rs::b: 2 of 3: no answer\n"),
        ("fpp", Deterministic, 1, false, "failed: made-up/tests/a.rs::b: no answer\n"),
        ("xpp", LiveAlone, 3, true, "unstable: made-up/tests/a.rs::b, 1 of 3 failed: ended by signal 11\n"),
        ("npp", LiveAlone, 3, true, "unstable: made-up/tests/a.rs::b, 1 of 3 failed: ended with status 3\n"),
        ("hpp", LiveAlone, 3, true, "unstable: made-up/tests/a.rs::b, 1 of 3 failed: ended after 2 s: it took longer than it may\n"),
        ("xpf", LiveAlone, 3, false, "failed: made-up/tests/a.rs::b: 2 of 3: ended by signal 11\n"),
        ("xxx", LiveAlone, 3, false, "failed: made-up/tests/a.rs::b: 3 of 3: ended by signal 11\n"),
        ("x", Deterministic, 1, false, "failed: made-up tests/a.rs: ended by signal 11\n"),
        ("n", Deterministic, 1, false, "failed: made-up tests/a.rs: ended with status 3\n"),
        ("h", Deterministic, 1, false, "failed: made-up tests/a.rs: ended after 2 s: it took longer than it may\n"),
    ] {
        let sandbox = Sandbox::new();
        // Only a hanging program uses up its bound.
        let bound = Duration::from_secs(if letters.contains('h') { 2 } else { 60 });
        let summary = sandbox.run_within(vec![sandbox.program(&["a", "b"], schedule, &turns(letters))], bound);
        assert!(summary.text().contains(text), "{letters}: {}", summary.text());
        assert_eq!((summary.is_success(), sandbox.tried()), (passes, runs), "{letters}");
        let kept = std::fs::read_dir(sandbox.path("unstable/made-up_tests_a.rs__b")).map_or(0, Iterator::count);
        assert_eq!(kept, if runs > 1 { 3 } else { 0 }, "{letters}: the output of each run is stored");
    }
}

/// In its first run the program passes `a` and then executes `end`. A run of one test, whose name is `$1`, executes `alone`.
fn broken_off(end: &str, alone: &str) -> String {
    format!(
        r#"echo run >> tried
if [ -z "$1" ]; then echo 'test a ... ok'; {end}; fi
{alone}
printf 'test %s ... ok\n\nsuccesses:\n\n---- %s stdout ----\n%s\n\n\nsuccesses:\n    %s\n\n' "$1" "$1" "$said" "$1"
echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'"#
    )
}

#[test]
fn unfinished_live_tests_are_repeated_one_by_one_and_the_one_that_ended_the_program_is_named() {
    let overflow = r#"echo; echo "thread 'c' (7) has overflowed its stack"; kill -ABRT $$"#;
    let long = "echo 'test c has been running for over 60 seconds'; sleep 1000";
    let failed = "echo 'test c ... FAILED'; kill -KILL $$";
    let unstable = "unstable: made-up/tests/a.rs::";
    for (end, alone, runs, passes, has, has_not) in [
        // The output names it: the others were only left unfinished.
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
        // The output names none: each of them may have ended the program.
        (
            "kill -KILL $$",
            "",
            5,
            true,
            format!("{unstable}b, 1 of 3 failed: ended by signal 9, by this or by another of 2 tests\n"),
            "\nfailed:".to_owned(),
        ),
        ("kill -KILL $$", "[ $1 != b ] || said='skipped: needs x'", 5, true, "  1 x needs x\n".to_owned(), format!("{unstable}b")),
        // It failed before another test ended the program.
        (failed, "", 5, true, format!("{unstable}c, 1 of 3 failed: it failed, and then its program ended\n"), "another".to_owned()),
        // No test is left that may have ended the program.
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
        let sandbox = Sandbox::new();
        let bound = Duration::from_secs(if end == long { 2 } else { 60 });
        let summary = sandbox.run_within(vec![sandbox.program(&["a", "b", "c"], LiveAlone, &broken_off(end, alone))], bound);
        let text = summary.text();
        assert!(text.contains(&has) && !text.contains(&has_not), "{end}, {alone}: {text}");
        assert_eq!((summary.is_success(), sandbox.tried()), (passes, runs), "{end}, {alone}: {text}");
    }
}

#[test]
fn unfinished_deterministic_tests_are_not_repeated() {
    let sandbox = Sandbox::new();
    let summary = sandbox.run(sandbox.program(&["a", "b", "live::c"], Deterministic, &broken_off("kill -KILL $$", "")));
    assert!(!summary.is_success() && summary.text().contains("failed: made-up tests/a.rs: ended by signal 9\n"), "{}", summary.text());
    assert_eq!(sandbox.tried(), 1);
    let sandbox = Sandbox::new();
    let summary = sandbox.run(sandbox.program(&["a", "live::c"], Deterministic, &broken_off("kill -KILL $$", "")));
    assert!(summary.is_success() && summary.text().contains("unstable: made-up/tests/a.rs::live::c, 1 of 3"), "{}", summary.text());
}

#[test]
fn a_module_named_live_is_live_in_any_program() {
    let sandbox = Sandbox::new();
    let summary = sandbox.run(sandbox.program(
        &["a", "tests::live::b"],
        Deterministic,
        &turns("fpp").replace("test b ", "test tests::live::b ").replace("    b", "    tests::live::b"),
    ));
    assert!(summary.is_success() && summary.text().contains("unstable: made-up/tests/a.rs::tests::live::b, 1 of 3"), "{}", summary.text());
}

#[test]
fn the_outputs_of_an_unstable_test_are_kept() {
    let sandbox = Sandbox::new();
    sandbox.run(sandbox.program(&["a", "b"], LiveAlone, &turns("fpp")));
    let kept = sandbox.path("unstable/made-up_tests_a.rs__b");
    let read = |name: &str| std::fs::read_to_string(kept.join(name)).unwrap();
    assert!(read("1.txt").contains("no answer") && read("2.txt").contains("test b ... ok") && read("3.txt").contains("test b ... ok"));
}

#[test]
fn a_test_that_is_unstable_twice_in_five_runs_fails_until_its_line_is_deleted() {
    let file = Path::new("target/unstable/history");
    let mut history = History::default();
    let run = |letters: &str, history: &mut History| {
        let sandbox = Sandbox::new();
        let mut summary = sandbox.run(sandbox.program(&["a", "b"], LiveAlone, &turns(letters)));
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
fn the_output_of_a_test_is_not_mistaken_for_the_results_of_its_program() {
    let printed =
        "successes:\n\n---- a stdout ----\ntest b ... FAILED\nfailures:\n    b\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n\n";
    let end = "\nsuccesses:\n    a\n    b\n\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured\n";
    let ran = ProcessOutput { exit: Exit::Code(0), text: format!("test a ... ok\ntest b ... ok\n\n{printed}{end}") };
    let results = judge(&["a".to_owned(), "b".to_owned()], &ran);
    assert_eq!((results.passed.len(), results.failed.len(), results.broken), (2, 0, None));
}

#[test]
fn a_program_that_hangs_is_killed_with_its_children() {
    let sandbox = Sandbox::new();
    let script = "echo 'test a ... ok'; sh -c 'trap \"\" TERM; echo $$ > child; exec sleep 1000' & wait";
    let summary = sandbox.run_within(vec![sandbox.program(&["a", "b"], LiveAlone, script)], Duration::from_secs(1));
    assert!(!summary.is_success() && summary.text().contains("it took longer than it may"), "{}", summary.text());
    let child = std::fs::read_to_string(sandbox.path("child")).unwrap();
    // The process that inherits it may not have waited for it yet.
    while std::fs::read_to_string(format!("/proc/{}/stat", child.trim())).is_ok_and(|stat| !stat.contains(") Z ")) {
        std::thread::yield_now();
    }
    assert!(summary.text().ends_with("1 passed, 1 failed, 0 skipped\n"), "{}", summary.text());
}

#[test]
fn contradictory_output_is_no_success() {
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
        let sandbox = Sandbox::new();
        let summary = sandbox.run(sandbox.program(names, LiveAlone, script));
        assert!(!summary.is_success() && !summary.text().contains("unstable:"), "{script}: {}", summary.text());
    }
    let sandbox = Sandbox::new();
    assert!(sandbox.run(sandbox.program(&["a"], LiveAlone, ok)).is_success());
    let gone = TestProgram { executable: sandbox.path("none"), ..sandbox.program(&["a"], LiveAlone, ok) };
    assert!(!sandbox.run(gone).is_success());
}

#[test]
fn skipped_tests_are_counted_and_their_reasons_listed() {
    let sandbox = Sandbox::new();
    let script = "printf 'test a ... ok\\ntest b ... ok\\n\\nsuccesses:\\n\\n---- a stdout ----\\nskipped: needs root\\n\\n\\nsuccesses:\\n    a\\n    b\\n\\n'
        echo 'test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'";
    let program = sandbox.program(&["a", "b"], Deterministic, script);
    let mut suite = Suite::new(sandbox.directory.path(), None).unwrap();
    suite.run(Plan { programs: vec![program], checks: vec![check("echo '== x'; echo 'skipped: no shellcheck'")], ..Plan::default() });
    let summary = suite.into_summary();
    assert_eq!(summary.text(), "skipped:\n  1 x needs root\n  1 x no shellcheck\n1 passed, 0 failed, 1 skipped\n");
    assert!(summary.is_success());
}

fn check(script: &str) -> Check {
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script]);
    Check { name: "made-up check", command }
}

#[test]
fn a_failed_check_fails_the_run() {
    let sandbox = Sandbox::new();
    let program = sandbox.program(&["a"], Deterministic, PASSES);
    let mut suite = Suite::new(sandbox.directory.path(), None).unwrap();
    suite.run(Plan { programs: vec![program], checks: vec![check("exit 3")], ..Plan::default() });
    let summary = suite.into_summary();
    assert!(!summary.is_success() && summary.text().contains("failed: made-up check: Code(3)\n1 passed, 1 failed"), "{}", summary.text());
}

/// A program whose one test, `a`, passes.
const PASSES: &str = "echo 'test a ... ok'; echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'";

#[test]
fn only_tests_that_may_share_the_machine_run_side_by_side() {
    let sandbox = Sandbox::new();
    // Each of the first two waits until the other one has begun; the third must find that both have ended.
    let waits_for = |own: &str, other: &str| {
        format!("touch {own}.begun; while [ ! -e {other}.begun ]; do sleep 0.01; done; touch {own}.ended; {PASSES}")
    };
    let programs = vec![
        sandbox.named_program("alone", &["a"], LiveAlone, &format!("[ -e live.ended ] && [ -e deterministic.ended ] || exit 1; {PASSES}")),
        sandbox.named_program("live", &["a"], LiveBesideOthers, &waits_for("live", "deterministic")),
        sandbox.named_program("deterministic", &["a"], Deterministic, &waits_for("deterministic", "live")),
    ];
    let summary = sandbox.run_within(programs, Duration::from_secs(60));
    assert_eq!(summary.text(), "nothing was skipped\n3 passed, 0 failed, 0 skipped\n");
}

#[test]
fn a_live_test_that_ran_beside_others_is_repeated_alone() {
    let sandbox = Sandbox::new();
    let only_at_the_end = format!("[ -z \"$1\" ] || [ -e ended ] || exit 1; {}", turns("fpp"));
    let programs = vec![
        sandbox.named_program("live", &["a", "b"], LiveBesideOthers, &only_at_the_end),
        sandbox.named_program("deterministic", &["a"], Deterministic, &format!("sleep 0.3; touch ended; {PASSES}")),
    ];
    let text = sandbox.run_within(programs, Duration::from_secs(60)).text();
    assert!(text.contains("unstable: made-up/tests/a.rs::b, 1 of 3 failed") && text.contains("3 passed, 0 failed"), "{text}");
}

#[test]
fn a_test_belongs_to_the_innermost_file_that_declares_it() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let filter = |selected: &[&str], rejected: &[&str], is_default| ModuleFilter::Innermost {
        selected: names(selected),
        rejected: names(rejected),
        is_default,
    };
    let fix = filter(&["fix"], &["fix::stopping", "bench"], false);
    assert!(fix.selects("fix::a") && fix.selects("fix::live::a") && fix.selects("fix::stopping_not::a"));
    assert!(!fix.selects("fix::stopping::a") && !fix.selects("bench::a") && !fix.selects("usage::a") && !fix.selects("fixes::a"));
    let stopping = filter(&["fix::stopping"], &["fix"], true);
    assert!(stopping.selects("fix::stopping::a") && !stopping.selects("fix::a") && stopping.selects("usage::a"));
}

#[test]
fn a_workspace_is_built_and_run_and_a_failed_build_is_no_success() {
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

/// What libtest prints for tests with these results: true for passed.
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
    fn a_program_succeeds_only_with_status_zero_and_all_tests_passed(
        tests in proptest::collection::vec(proptest::bool::weighted(0.8), 0..6),
        exit in exits(),
        noise in "[ a-z.:\n-]{0,40}",
        cut in proptest::option::of(0_usize..400),
    ) {
        let whole = printed(&tests);
        let text = cut.map_or_else(|| whole.clone(), |cut| whole[..cut.min(whole.len())].to_owned());
        let listed: Vec<String> = (0..tests.len()).map(|number| format!("t{number}")).collect();
        let ran = ProcessOutput { exit: exit.clone(), text: format!("{noise}\n{text}") };
        let results = judge(&listed, &ran);
        // libtest ends with 101 if a test failed, even if its output is lost.
        let is_consistent = exit != Exit::Code(0) || tests.iter().all(|passed| *passed);
        if is_consistent && is_success(&results) {
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
    fn no_output_makes_the_runner_panic(text in "(test |ok|\\.\\.\\.| |\n|failures:|    a|---- a stdout ----|test result: |[0-9] passed; |a){0,30}", exit in exits()) {
        let ran = ProcessOutput { exit, text };
        let results = judge(&["a".to_owned()], &ran);
        prop_assert!(!is_success(&results) || ran.exit == Exit::Code(0));
        let _ = (output::judge_documentation(&ran), output::why(&ran.text), output::progress(&["a".to_owned()], &ran.text));
    }
}
