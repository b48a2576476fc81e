//! The page of the verb `watch`: its source, and what a person sees in a browser.
//!
//! Live: a site in network namespaces under load, and Debian's chromium.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use flate2::read::GzDecoder;

use crate::harness::{Chokepoint, Nginx, Running, has_programs, is_root, repository, wait_until};

/// Runs a program in a folder of the repository.
fn run(folder: &str, program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    Command::new(program).args(arguments).current_dir(repository(folder)).envs(environment.iter().copied()).output().unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// True if the page can be built or opened here.
fn has_page(programs: &[&str]) -> bool {
    let is_installed = repository("ui/node_modules").exists();
    if !is_installed {
        println!("skipped: ui/page.sh packages has not installed what the page needs");
    }
    is_installed && has_programs(programs)
}

fn unpacked(file: &Path) -> Vec<u8> {
    let mut plain = Vec::new();
    std::io::Read::read_to_end(&mut GzDecoder::new(std::fs::File::open(file).unwrap()), &mut plain).unwrap();
    plain
}

#[test]
fn the_page_in_the_program_is_built_from_its_source() {
    if !has_page(&["node", "npm"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let output = run("ui", "npm", &["run", "--silent", "build"], &[("PAGE_OUT", &directory.path().to_string_lossy())]);
    if told(&output).contains("requires Node.js version") {
        return println!("skipped: this Node.js is too old for the build of the page");
    }
    assert!(output.status.success(), "{}", told(&output));
    for name in ["index.html.gz", "page.css.gz", "page.js.gz"] {
        // Compressed bytes depend on the library that compressed them.
        let built = unpacked(&directory.path().join(name));
        let kept = unpacked(&repository("crates/dashboard/page").join(name));
        assert!(built == kept, "{name} is not what ui/ gives: make page");
    }
}

#[test]
fn the_functions_of_the_page_are_right() {
    if !has_page(&["node", "npm"]) {
        return;
    }
    let output = run("ui", "npm", &["test", "--silent"], &[]);
    assert!(output.status.success(), "{}", told(&output));
}

#[test]
fn hostile_texts_stay_text_and_ten_minutes_do_not_make_the_page_grow() {
    if !has_page(&["node", "chromium"]) {
        return;
    }
    let output = run("ui", "node", &["e2e/simulated.mjs"], &[("HOUR_S", "600")]);
    assert!(output.status.success(), "{}", told(&output));
}

/// Of each kind of report one.
#[test]
fn files_with_a_report_open_offline_and_can_be_printed() {
    if !has_page(&["node", "chromium"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    let data = |path: &str| repository(path).to_string_lossy().into_owned();
    let (diagnosis, streams, profile) = (file("diagnosis.html"), file("streams.html"), file("profile.html"));
    std::fs::write(file("folded"), "php-fpm;main;execute 70\nphp-fpm;main;copy_[k] 30\n").unwrap();
    let runs = [
        ["diagnose", "--replay", &data("tests/data/conntrack-table/conntrack-full.rec"), "--html", &diagnosis],
        ["streams", &data("crates/packets/tests/data/loss-at-receiver.pcap.gz"), "--no-keep", "--html", &streams],
        ["profile", "--replay", &file("folded"), "--html", &profile],
    ];
    for arguments in runs {
        let output = Command::new(env!("CARGO_BIN_EXE_chokepoint")).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", told(&output));
    }
    // Those that take an experiment or a long fix to make: their pages are stored.
    let own = std::fs::read_to_string(&diagnosis).unwrap();
    let (before, rest) = own.split_once("id=\"report\">").unwrap();
    let (_, after) = rest.split_once("</script>").unwrap();
    let stored = ["collapse", "chain", "bisected", "experiment-matrix", "size"].map(|name| {
        let page = std::fs::read_to_string(repository(&format!("crates/cli/tests/data/page/{name}.json"))).unwrap();
        std::fs::write(file(&format!("{name}.html")), format!("{before}id=\"report\">{}</script>{after}", page.replace('<', "\\u003c")))
            .unwrap();
        file(&format!("{name}.html"))
    });
    let files = [&[diagnosis, streams, profile][..], &stored].concat();
    let arguments: Vec<&str> = std::iter::once("e2e/report.mjs").chain(files.iter().map(String::as_str)).collect();
    let output = run("ui", "node", &arguments, &[]);
    assert!(output.status.success(), "{}", told(&output));
}

#[test]
fn a_new_user_sees_the_local_nginx_without_any_configuration() {
    if !is_root() || !has_page(&["node", "chromium", "nginx"]) {
        return;
    }
    let chokepoint = Chokepoint::new();
    let Some(nginx) = Nginx::start(&chokepoint.file("")) else { return println!("skipped: nginx cannot be started") };
    let (told, data) = (chokepoint.file("told"), chokepoint.path("data"));
    let mut watch = chokepoint.command(&["watch", "--headless", "--listen", "127.0.0.1:0", "--data-dir", &data]);
    watch.stdout(Stdio::null()).stderr(std::fs::File::create(&told).unwrap());
    let watch = Running(watch.spawn().unwrap());
    let url = format!("http://127.0.0.1:{}/", nginx.port);
    let mut load = chokepoint.command(&["bench", "--no-keep", "-q", "50", "-c", "4", "-z", "120s", &url]);
    let load = Running::start(&mut load).unwrap();
    let address = || {
        let told = std::fs::read_to_string(&told).unwrap();
        told.split("the page is at ").nth(1).and_then(|rest| rest.split(',').next().map(str::to_owned))
    };
    wait_until("it tells where the page is", || address().is_some());
    let output = run("ui", "node", &["e2e/first.mjs"], &[("PAGE", &address().unwrap()), ("PORT", &nginx.port.to_string())]);
    assert!(output.status.success(), "{}{}", std::fs::read_to_string(&told).unwrap(), self::told(&output));
    drop((load, watch));
}

#[test]
fn a_person_sees_a_fault_its_place_and_its_cause_on_the_page() {
    if !is_root() || !has_page(&["node", "chromium", "nginx", "ip"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let output = run(".", "lab/watch/page.sh", &[&directory.path().to_string_lossy()], &[("CHOKEPOINT", env!("CARGO_BIN_EXE_chokepoint"))]);
    assert!(output.status.success(), "{}", told(&output));
}
