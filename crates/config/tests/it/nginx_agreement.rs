//! The installed nginx and this crate accept and refuse the same files, on the same line.
//!
//! Deterministic: what the installed nginx says of a file.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the crate starts no process and reads no file; this test runs the installed server"
)]

use std::fs;
use std::path::Path;
use std::process::Command;

use chokepoint_config::nginx::{Editor, Nginx, Position, Tree, Version, parse};
use chokepoint_config::{Edited, Resolved, text};

/// Runs `nginx -t` on a file: `Ok` if nginx accepts it, else its message; `None` if nginx cannot be run or failed without an [emerg] line.
/// It runs in a network namespace of its own, so that it binds no port of this host.
fn nginx_says(directory: &Path, config: &Path) -> Option<Result<(), String>> {
    let command = format!(
        "ip link set lo up 2>/dev/null; exec nginx -t -p {0}/ -c {1} -g 'error_log stderr; pid {0}/test.pid;'",
        directory.display(),
        config.display()
    );
    let output = Command::new("unshare").args(["--net", "sh", "-c", &command]).output().ok()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        return Some(Ok(()));
    }
    let message = said.lines().find(|line| line.contains("[emerg]"))?;
    Some(Err(message.to_owned()))
}

/// What this crate says: a refusal of the parser, or the first problem.
fn we_say(config: &str, bytes: &[u8]) -> Result<(), String> {
    let mut resolve = |pattern: &str| -> Vec<Resolved> {
        if pattern == config { vec![(config.to_owned(), Ok(text::decode(bytes)))] } else { Vec::new() }
    };
    let tree = Tree::load(config, None, &mut resolve).map_err(|error| error.to_string())?;
    match Nginx::of(&tree, Version(1, 22, 1)).problems.first() {
        Some(problem) => Err(format!("{}: {}", problem.place, problem.text)),
        None => Ok(()),
    }
}

/// The number behind "FILE:".
fn line_of(message: &str, config: &str) -> Option<u32> {
    let rest = &message[message.find(config)? + config.len()..];
    rest.strip_prefix(':')?.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[test]
fn the_corpus_is_judged_as_nginx_judges_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::create_dir(directory.path().join("logs")).expect("it is empty");
    let probe = directory.path().join("probe.conf");
    fs::write(&probe, "events {}\n").expect("it can be written");
    if nginx_says(directory.path(), &probe) != Some(Ok(())) {
        println!("skipped: nginx in a network namespace of its own does not run here");
        return;
    }
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/nginx");
    let mut files: Vec<_> =
        ["good", "bad/blocks", "bad/words"].iter().flat_map(|kind| fs::read_dir(data.join(kind)).expect("it is there")).collect();
    assert!(files.len() > 30);
    let config = directory.path().join("x.conf");
    let name = config.display().to_string();
    while let Some(Ok(entry)) = files.pop() {
        let bytes = fs::read(entry.path()).expect("it can be read");
        fs::write(&config, &bytes).expect("it can be written");
        let theirs = nginx_says(directory.path(), &config).expect("nginx runs");
        let ours = we_say(&name, &bytes);
        assert_eq!(theirs.is_ok(), ours.is_ok(), "{}: nginx {theirs:?}, here {ours:?}", entry.path().display());
        if let (Err(theirs), Err(ours)) = (theirs, ours) {
            // nginx names the line where it noticed; this crate the one where the open block, quote or directive begins.
            let (theirs, ours) = (line_of(&theirs, &name).expect("a line"), line_of(&ours, &name).expect("a line"));
            assert!(ours <= theirs && theirs - ours <= 6, "{}: nginx line {theirs}, here {ours}", entry.path().display());
        }
    }
}

#[test]
fn mutations_of_a_file_are_judged_alike() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = directory.path().join("x.conf");
    let name = config.display().to_string();
    let base = "events {}\nhttp {\n  server {\n    set $a \"b c\";\n    location ~ \"x{2}\" { return 200 'a;b'; } # c\n    server_name ${hostname}x;\n  }\n}\n";
    fs::write(&config, base).expect("it can be written");
    if nginx_says(directory.path(), &config) != Some(Ok(())) {
        println!("skipped: nginx in a network namespace of its own does not run here");
        return;
    }
    // One character taken away or put in, at places spread over the file.
    for (index, at) in (0..base.len()).step_by(3).enumerate() {
        let insert = ["", "\"", "}", "{", ";", "\\", "#", "'", "$"][index % 9];
        let mutated = format!("{}{insert}{}", &base[..at], &base[at + usize::from(insert.is_empty())..]);
        fs::write(&config, &mutated).expect("it can be written");
        let theirs = nginx_says(directory.path(), &config).expect("nginx runs");
        let ours = parse(&name, &mutated);
        match &theirs {
            Ok(()) => assert_eq!(ours.map(|file| file.to_string()), Ok(mutated)),
            Err(message) if message.contains("unexpected ") || message.contains("is too long") => {
                assert!(ours.is_err(), "{message} for\n{mutated}");
            }
            // It stopped at a directive's meaning before it came to the syntax behind it.
            Err(_) => {}
        }
    }
}

#[test]
fn edited_files_are_accepted() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::create_dir(directory.path().join("logs")).expect("it is empty");
    let config = directory.path().join("x.conf");
    let name = config.display().to_string();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/nginx/good");
    for entry in fs::read_dir(data).expect("it is there") {
        let path = entry.expect("it is there").path();
        let before = text::decode(&fs::read(&path).expect("it can be read"));
        let mut resolve = |_: &str| -> Vec<Resolved> { vec![(name.clone(), Ok(before.clone()))] };
        let tree = Tree::load(&name, None, &mut resolve).expect("it parses");
        let nginx = Nginx::of(&tree, Version(1, 22, 1));
        let mut editor = Editor::new(&tree);
        editor.set(None, "worker_rlimit_nofile", &["65535"], Position::End).expect("it fits");
        for node in tree.top().into_iter().filter(|&node| tree.directive(node).name() == "events") {
            editor.set(Some(node), "worker_connections", &["2048"], Position::End).expect("it fits");
        }
        if let Some(http) = &nginx.http {
            editor.add_upstream(http.place.node, "added", &["server 127.0.0.1:9000;", "keepalive 16;"]).expect("it fits");
            for socket in &http.sockets {
                if let Some(node) = socket.option_node().filter(|_| !socket.udp) {
                    editor.set_option(node, "backlog", "8192").expect("it fits");
                }
            }
            for location in http.servers.iter().flat_map(|server| &server.locations) {
                editor.add(Some(location.place.node), "fastcgi_keep_conn", &["on"], Position::End).expect("it fits");
            }
        }
        let edits = editor.finish().expect("the result parses");
        assert_eq!(edits.len(), 1, "{}", path.display());
        fs::write(&config, text::encode(&edits[0].after)).expect("it can be written");
        match nginx_says(directory.path(), &config) {
            None => {
                println!("skipped: nginx in a network namespace of its own does not run here");
                return;
            }
            Some(verdict) => assert_eq!(verdict, Ok(()), "{}", edits[0].after),
        }
        // What the edits ask for is then in force.
        let after = edits[0].after.clone();
        let mut resolve = |_: &str| -> Vec<Resolved> { vec![(name.clone(), Ok(after.clone()))] };
        let again = Nginx::of(&Tree::load(&name, None, &mut resolve).expect("it parses"), Version(1, 22, 1));
        assert_eq!(again.main.worker_rlimit_nofile().map(|files| files.value), Some(65_535));
        for socket in again.http.iter().flat_map(|http| &http.sockets).filter(|socket| !socket.listens.is_empty()) {
            assert_eq!(socket.backlog.value, 8192, "{} of {}", socket.address, path.display());
        }
        check_with_patch(directory.path(), &edits[0]);
    }
}

/// patch(1), where it is installed, turns the old text into the new one.
fn check_with_patch(directory: &Path, edit: &Edited) {
    let target = directory.join("patched");
    let diff = directory.join("the.diff");
    fs::write(&target, text::encode(&edit.before)).expect("it can be written");
    fs::write(&diff, text::encode(&edit.diff())).expect("it can be written");
    let patched = Command::new("patch").args(["--silent", "--binary"]).arg(&target).arg(&diff).status();
    match patched {
        Ok(status) => {
            assert!(status.success(), "{}", edit.diff());
            assert_eq!(fs::read(&target).expect("it can be read"), text::encode(&edit.after));
        }
        Err(_) => println!("skipped: patch is not installed"),
    }
}

#[test]
fn a_dump_of_nginx_gives_the_same_files() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let root = directory.path().display().to_string();
    fs::create_dir_all(directory.path().join("sites-enabled")).expect("it is empty");
    fs::create_dir_all(directory.path().join("snippets")).expect("it is empty");
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/nginx/debian");
    let main = format!("{root}/nginx.conf");
    for file in
        ["nginx.conf", "mime.types", "fastcgi.conf", "snippets/fastcgi-php.conf", "sites-enabled/default", "sites-enabled/shop.example.com"]
    {
        let text = fs::read_to_string(data.join(file)).expect("it can be read");
        let text = text
            .replace("/etc/nginx", &root)
            .replace("/var/log/nginx", &root)
            .replace("pid /run/nginx.pid;\n", "")
            .replace("user www-data;\n", "");
        fs::write(directory.path().join(file), text).expect("it can be written");
    }
    let command = format!("ip link set lo up; exec nginx -T -q -p {root}/ -c {main} -g 'error_log stderr; pid {root}/test.pid;'");
    let Ok(output) = Command::new("unshare").args(["--net", "sh", "-c", &command]).output() else {
        println!("skipped: unshare is not installed");
        return;
    };
    if !output.status.success() {
        println!("skipped: nginx does not run here: {}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let dumped = Tree::from_dump(&text::decode(&output.stdout)).expect("it is a dump");
    let mut resolve = |pattern: &str| -> Vec<Resolved> {
        let read = |path: &Path| (path.display().to_string(), fs::read_to_string(path).map_err(|error| error.to_string()));
        let Some(directory) = pattern.strip_suffix("/*") else {
            return if Path::new(pattern).exists() { vec![read(Path::new(pattern))] } else { Vec::new() };
        };
        let mut paths: Vec<_> = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths.iter().map(|path| read(path)).collect()
    };
    let loaded = Tree::load(&main, None, &mut resolve).expect("it parses");
    assert_eq!(dumped.files().len(), 6);
    assert_eq!(dumped, loaded);
}
