//! `chokepoint experiment`: plans that are refused with the reason, presets that are plans, and short experiments in a lab.
//!
//! Deterministic: command lines and plans; tests with a lab are in its module `live`.

use chokepoint_experiment::Plan;

use crate::harness::Chokepoint;

/// Two variants of a kernel parameter.
const PLAN: &str = r#"schema = 1
name = "short"
title = "Does a longer queue change anything?"
stack = { scenario = "./trial.toml", server = "nginx" }
load = { connections = 8, trial = "500ms", warm_up = "100ms" }
budget = "5s"

[[variant]]
name = "plain"

[[variant]]
name = "other"
sysctls = { server = { "net.core.somaxconn" = 4096 } }
"#;

/// The change of the second variant.
const CHANGE: &str = "sysctls = { server = { \"net.core.somaxconn\" = 4096 } }";

/// A plan in the test's directory, with another change and another load.
fn plan(chokepoint: &Chokepoint, change: &str, load: &str) -> String {
    let scenario = include_str!("../../../../lab/experiments/experiment-static.toml");
    let scenario = scenario.replace("name = \"experiment-static\"", "name = \"experiment-test\"").replace("10.94.0.", "10.213.0.");
    assert!(scenario.contains("experiment-test") && PLAN.contains(CHANGE));
    chokepoint.write("trial.toml", scenario.as_bytes());
    let text = PLAN.replace(CHANGE, change).replace("connections = 8", &format!("connections = 8{load}"));
    chokepoint.write("plan.toml", text.as_bytes())
}

#[test]
fn help_names_the_presets_and_what_is_written() {
    let chokepoint = Chokepoint::new();
    let help = chokepoint.run(&["experiment", "--help"]);
    assert_eq!(help.status, Some(0));
    for word in ["same", "allocator", "keepalive", "workers-waiting", "sysctl NAME=A,B", "--html", "--plots", "SVG", "docs/experiments"] {
        assert!(help.stdout.contains(word), "{word}: {}", help.stdout);
    }
}

#[test]
fn a_plan_that_cannot_be_carried_out_is_refused_with_the_reason() {
    let chokepoint = Chokepoint::new();
    let write = |name: &str, text: String| chokepoint.write(name, text.as_bytes());
    let broken = write("broken.toml", PLAN.replace("budget = \"5s\"", "budget = "));
    let unknown = write("unknown.toml", PLAN.replace("budget", "colour"));
    let loads = write("loads.toml", format!("{PLAN}load = {{ connections = 9 }}\n"));
    let twins = write("twins.toml", PLAN.replace(CHANGE, ""));
    let nowhere = write("nowhere.toml", PLAN.replace("trial.toml", "gone.toml"));
    let figure = write("figure.toml", PLAN.replace("budget", "measure.decide = \"speed\"\nbudget"));
    let host = plan(&chokepoint, &CHANGE.replace("server = {", "moon = {"), "");
    let cases: &[(&[&str], &[&str])] = &[
        (&[], &["plan", "--preset"]),
        (&["--preset", "speed"], &["no preset \"speed\"", "allocator", "sysctl"]),
        (&["--preset", "sysctl", "vm.swappiness=1,2"], &["vm.swappiness", "net."]),
        (&["/no/such/plan.toml"], &["/no/such/plan.toml", "No such file"]),
        (&[&broken], &["broken.toml", "line 6"]),
        (&[&unknown], &["unknown.toml", "line 6", "colour"]),
        (&[&loads], &["loads.toml", "\"plain\"", "\"other\"", "different loads", "[[factor]]"]),
        (&[&twins], &["are the same", "same = true"]),
        (&[&nowhere], &["gone.toml", "No such file"]),
        (&[&figure], &["speed", "goodput"]),
        (&[&host], &["variant \"other\"", "no host \"moon\"", "client, server"]),
        (&[&host, "--precision", "0"], &["--precision 0", "0.01"]),
        (&[&host, "--budget", "soon"], &["soon", "time"]),
        (&[&host, "--html", "/no/such/folder/page.html"], &["/no/such/folder/page.html", "No such file"]),
    ];
    for (args, reasons) in cases {
        let ran = chokepoint.run(&[&["experiment"], *args].concat());
        assert!(matches!(ran.status, Some(1 | 2)), "{args:?}: {:?} {}", ran.status, ran.stderr);
        assert_eq!(ran.stdout, "", "{args:?}: stdout carries results alone");
        for reason in *reasons {
            assert!(ran.stderr.contains(reason), "{args:?} said: {}", ran.stderr);
        }
    }
    assert!(!chokepoint.file("state").exists(), "nothing was changed, so there is no journal");
}

#[test]
fn the_printed_plan_of_every_preset_is_a_plan() {
    let chokepoint = Chokepoint::new();
    let library = chokepoint.write("other.so", b"");
    let allocator = format!("other={library}");
    let presets: [(&str, &[&str]); 9] = [
        ("same", &[]),
        ("allocator", &[&allocator]),
        ("keepalive", &[]),
        ("workers", &[]),
        ("workers-waiting", &[]),
        ("cores", &[]),
        ("fastcgi", &[]),
        ("nginx-io", &[]),
        ("sysctl", &["net.ipv4.tcp_tw_reuse=0,1"]),
    ];
    for (preset, values) in presets {
        let printed = chokepoint.run(&[&["experiment", "--print-plan", "--preset", preset], values].concat());
        if preset == "cores" && printed.stderr.contains("this host has one core") {
            continue;
        }
        assert_eq!(printed.status, Some(0), "{preset}: {}", printed.stderr);
        let plan = Plan::parse(&printed.stdout, preset).unwrap_or_else(|error| panic!("{preset}: {error}"));
        assert_eq!(plan.name, preset);
        let (_, scenario) = printed.stdout.split_once("# The scenario ").unwrap();
        assert!(scenario.contains("# [[server]]"), "{preset}: the scenario follows: {scenario}");
        // Stored as a file, it is the same plan.
        let file = chokepoint.write("stored.toml", printed.stdout.as_bytes());
        let again = chokepoint.run(&["experiment", "--print-plan", &file]);
        assert_eq!((again.status, again.stdout.starts_with(&printed.stdout)), (Some(0), true), "{preset}: {}", again.stderr);
    }
}

mod live {
    use std::process::{Command, Stdio};

    use rustix::process::Signal;
    use serde_json::Value;

    use super::{CHANGE, PLAN, plan};
    use crate::harness::{Chokepoint, Nginx, Ran, errors, fits, has_programs, is_root, one_lab, ran, schema_of, signal, wait_until};

    /// True if a lab can run here; else prints that the test is skipped.
    fn has_lab() -> bool {
        is_root() && has_programs(&["nginx", "ip"])
    }

    /// Runs a plan, and checks that neither a namespace nor a file of the lab is left.
    fn experiment(chokepoint: &Chokepoint, change: &str, load: &str, flags: &[&str]) -> Ran {
        let plan = plan(chokepoint, change, load);
        let ran = chokepoint.run(&[&["experiment", &plan], flags].concat());
        check_clean(chokepoint, &ran);
        ran
    }

    fn check_clean(chokepoint: &Chokepoint, ran: &Ran) {
        let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
        let left: Vec<_> =
            entries.map(|entry| entry.file_name()).filter(|name| name.to_string_lossy().contains("experiment-test")).collect();
        assert!(left.is_empty(), "{left:?} {}", ran.stderr);
        let down = chokepoint.run(&["lab", "down"]);
        assert!(down.status == Some(0) && !down.stdout.contains("experiment-test"), "{} {}", down.stdout, down.stderr);
    }

    #[test]
    fn a_short_experiment_writes_every_kind_of_result() {
        if !has_lab() {
            return;
        }
        let _alone = one_lab();
        let chokepoint = Chokepoint::new();
        let [html, markdown, csv, plots] = ["r.html", "r.md", "r.csv", "plots"].map(|name| chokepoint.path(name));
        let flags = ["--json", "--html", &html, "--markdown", &markdown, "--csv", &csv, "--plots", &plots];
        let ran = experiment(&chokepoint, CHANGE, "", &flags);
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        let report = fits(&ran.stdout, "experiment-1.json");
        let trials = report["trials"].as_array().unwrap();
        assert!(report["ended"] != "interrupted" && trials.len() >= 2, "{report}");
        assert!(report["variants"][1]["verified"][0].as_str().unwrap().contains("net.core.somaxconn of server is 4096"), "{report}");
        for variant in report["variants"].as_array().unwrap() {
            assert!(variant["figures"]["goodput"]["median"].as_f64().is_some_and(|goodput| goodput > 0.0), "{variant}");
        }
        let read = |name: &str| std::fs::read_to_string(chokepoint.file(name)).unwrap();
        assert_eq!(read("r.csv").lines().count(), trials.len() + 1);
        assert!(read("r.html").contains("Does a longer queue change anything?") && read("r.html").contains("\"kind\":\"plot\""));
        assert!(read("r.md").starts_with("# Does a longer queue"));
        for picture in ["intervals", "response-times", "trials"] {
            assert!(read(&format!("plots/{picture}.svg")).starts_with("<svg"), "{picture}");
        }
    }

    /// Two variants of a running server: as it is, and with a change.
    fn running_plan(chokepoint: &Chokepoint, nginx: &Nginx, change: &str) -> String {
        let url = format!("http://127.0.0.1:{}/", nginx.port);
        let plan = PLAN.replace("scenario = \"./trial.toml\", server = \"nginx\"", &format!("url = \"{url}\"")).replace(CHANGE, change);
        assert!(plan.contains(&url) && plan.contains(change));
        chokepoint.write("running.toml", plan.as_bytes())
    }

    fn running(chokepoint: &Chokepoint, nginx: &Nginx, change: &str) -> Ran {
        chokepoint.run(&["experiment", "--json", &running_plan(chokepoint, nginx, change)])
    }

    #[test]
    fn a_running_server_is_reconfigured_for_each_trial_and_put_back() {
        let chokepoint = Chokepoint::new();
        let Some(nginx) = Nginx::start(&chokepoint.file("nginx")) else { return };
        let _alone = one_lab();
        let before = nginx.main();
        let change = "config = [{ server = \"nginx\", find = \"access_log off;\", with = \"access_log off; tcp_nodelay off;\" }]\ncpus = { nginx = [0] }";
        let ran = running(&chokepoint, &nginx, change);
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        let report = fits(&ran.stdout, "experiment-1.json");
        let verified = report["variants"][1]["verified"].to_string();
        assert!(verified.contains("tcp_nodelay off;") && verified.contains("cores [0]"), "{verified}");
        assert!(report["design"]["blocks"].as_u64().is_some_and(|blocks| blocks >= 1), "{report}");
        assert_eq!(nginx.main(), before);
        assert_eq!(chokepoint.run(&["undo", "--list"]).stdout.trim(), "nothing is applied", "every change was taken back");
        assert_eq!(nginx.status(), Some(200));

        for (change, reason) in [
            ("config = [{ server = \"nginx\", find = \"no such text\", with = \"x\" }]", "no such text"),
            ("config = [{ server = \"nginx\", find = \"access_log off;\", with = \"nonsense;\" }]", "nonsense"),
            ("config = [{ server = \"apache\", find = \"a\", with = \"b\" }]", "no server \"apache\" is on the path, only nginx"),
            ("cpus = { nginx = [4095] }", "4095"),
            ("verify.workers = { nginx = 7 }\nsetup = [[\"true\"]]", "nginx runs 1 workers, not 7"),
            ("env = { nginx = { A = \"b\" } }", "is for labs"),
        ] {
            let ran = running(&chokepoint, &nginx, change);
            assert_eq!((ran.status, ran.stdout.as_str()), (Some(1), ""), "{change}: {}", ran.stderr);
            assert!(ran.stderr.contains(reason) && ran.stderr.contains("variant \"other\""), "{change}: {}", ran.stderr);
            assert_eq!(nginx.main(), before);
        }
    }

    /// Runs with a state directory on a full disk, which only this process sees.
    fn on_a_full_disk(chokepoint: &Chokepoint, args: &[&str]) -> Ran {
        let state = chokepoint.path("state");
        std::fs::create_dir_all(&state).unwrap();
        let script =
            "mount -t tmpfs -o size=64k,mode=700 none \"$0\" || exit 99; head -c 1000000 /dev/zero >\"$0/fill\" 2>/dev/null; exec \"$@\"";
        let own = chokepoint.command(args);
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script, &state]).arg(own.get_program()).args(own.get_args());
        command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null());
        ran(command.output().unwrap())
    }

    #[test]
    fn on_a_full_disk_a_lab_is_measured_and_a_running_server_left_as_it_is() {
        let chokepoint = Chokepoint::new();
        let Some(nginx) = Nginx::start(&chokepoint.file("nginx")) else { return };
        if !has_programs(&["ip", "unshare"]) {
            return;
        }
        let _alone = one_lab();
        let measured = on_a_full_disk(&chokepoint, &["experiment", "--json", &plan(&chokepoint, CHANGE, "")]);
        assert_eq!(measured.status, Some(0), "{}", measured.stderr);
        assert!(measured.stderr.contains("the experiment is not kept") && measured.stderr.contains("full"), "{}", measured.stderr);
        assert!(!fits(&measured.stdout, "experiment-1.json")["trials"].as_array().unwrap().is_empty());
        check_clean(&chokepoint, &measured);
        let before = nginx.main();
        let change = "config = [{ server = \"nginx\", find = \"access_log off;\", with = \"access_log off; tcp_nodelay off;\" }]";
        let plan = running_plan(&chokepoint, &nginx, change);
        let refused = on_a_full_disk(&chokepoint, &["experiment", "--json", &plan]);
        assert_eq!((refused.status, refused.stdout.as_str()), (Some(1), ""), "{}", refused.stderr);
        assert!(refused.stderr.contains("nothing was changed") && refused.stderr.contains("no space left"), "{}", refused.stderr);
        assert_eq!((nginx.main(), nginx.status()), (before, Some(200)));
    }

    #[test]
    fn a_variant_that_changes_nothing_fails_the_experiment() {
        if !has_lab() {
            return;
        }
        let _alone = one_lab();
        // The loader warns of a library that is not there, and goes on without it (ld.so(8)).
        let ran = experiment(&Chokepoint::new(), "env = { nginx = { LD_PRELOAD = \"/no/such/inert.so\" } }", "", &[]);
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
        assert!(ran.stderr.contains("variant \"other\"") && ran.stderr.contains("has not mapped inert.so"), "{}", ran.stderr);
    }

    #[test]
    fn a_server_that_does_not_start_is_told_with_its_own_words() {
        if !has_lab() {
            return;
        }
        let _alone = one_lab();
        let change = "config = [{ server = \"nginx\", find = \"access_log off;\", with = \"access_log off; nonsense\" }]";
        let ran = experiment(&Chokepoint::new(), change, "", &[]);
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
        for reason in ["variant \"other\"", "\"nginx\" ended at once", "unknown directive \"nonsense\""] {
            assert!(ran.stderr.contains(reason), "{reason}: {}", ran.stderr);
        }
    }

    #[test]
    fn a_load_without_expected_answers_fails() {
        if !has_lab() {
            return;
        }
        let _alone = one_lab();
        let ran = experiment(&Chokepoint::new(), CHANGE, ", path = \"/nothing\"", &[]);
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
        assert!(ran.stderr.contains("got an expected answer") && ran.stderr.contains("status 404"), "{}", ran.stderr);
    }

    #[test]
    fn ctrl_c_keeps_what_was_measured_and_resume_goes_on() {
        if !has_lab() {
            return;
        }
        let _alone = one_lab();
        let chokepoint = Chokepoint::new();
        // The second trial of a variant begins after all trials of the first round.
        let marks = chokepoint.path("marks");
        let change = format!("{CHANGE}\nsetup = [[\"sh\", \"-c\", \"echo trial >> {marks}\"]]");
        let plan = plan(&chokepoint, &change, "");
        let mut command: Command = chokepoint.command(&["experiment", &plan, "--json", "--budget", "10m"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let trials = || std::fs::read_to_string(&marks).unwrap_or_default().lines().count();
        wait_until("no second round began", || trials() >= 2);
        signal(&child, Signal::INT);
        let ended = ran(child.wait_with_output().unwrap());
        assert_eq!(ended.status, Some(130), "{}", ended.stderr);
        check_clean(&chokepoint, &ended);
        let report = fits(&ended.stdout, "experiment-1.json");
        assert_eq!(report["ended"], "interrupted");
        assert!(report["design"]["blocks"].as_u64().is_some_and(|blocks| blocks >= 1), "{report}");
        let mut other = report.clone();
        other["ended"] = "done".into();
        assert!(!errors(&schema_of("experiment-1.json"), &other).is_empty(), "the schema checks how it ended");
        // The budget is used up by what was measured and one more round.
        let resumed = chokepoint.run(&["experiment", &plan, "--json", "--resume", "--budget", "1s"]);
        assert_eq!(resumed.status, Some(0), "{}", resumed.stderr);
        check_clean(&chokepoint, &resumed);
        let whole = fits(&resumed.stdout, "experiment-1.json");
        let blocks = |report: &Value| report["design"]["blocks"].as_u64().unwrap();
        assert_eq!((blocks(&whole), &whole["host"]["began"]), (blocks(&report) + 1, &report["host"]["began"]), "{whole}");
        assert_eq!(whole["trials"][0], report["trials"][0], "what was measured before counts");
        let again = chokepoint.run(&["experiment", &plan, "--resume"]);
        assert!(again.status == Some(1) && again.stderr.contains("no unfinished experiment"), "{}", again.stderr);
    }
}
