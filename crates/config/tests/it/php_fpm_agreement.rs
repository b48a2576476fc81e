//! The installed php-fpm and this crate accept and refuse the same files, and agree on the values in force.
//!
//! Deterministic: what the installed php-fpm says of a file.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the crate starts no process and reads no file; this test runs the installed server"
)]

use std::fs;
use std::path::Path;
use std::process::Command;

use chokepoint_config::php_fpm::{Fpm, Tree, Version};
use chokepoint_config::{Resolved, text};

/// php-fpm's verdict and what it printed (`-tt` prints the configuration in force); `None` if it is not installed.
fn php_fpm_says(directory: &Path, config: &Path) -> Option<(bool, String)> {
    let mut command = Command::new("php-fpm8.2");
    command.arg("-tt").arg("-y").arg(config).arg("-p").arg(directory).current_dir(directory);
    let output = command.output().ok()?;
    Some((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
}

fn we_say(config: &str, bytes: &[u8]) -> Result<Fpm, String> {
    let mut resolve = |pattern: &str| -> Vec<Resolved> {
        if pattern == config { vec![(config.to_owned(), Ok(text::decode(bytes)))] } else { Vec::new() }
    };
    let tree = Tree::load(config, None, &mut resolve).map_err(|error| error.to_string())?;
    let fpm = Fpm::of(&tree, Version(8, 2));
    match fpm.problems.first() {
        Some(problem) => Err(problem.text.clone()),
        None => Ok(fpm),
    }
}

/// The dump's value of a key in a pool: lines are "[time] NOTICE: \tkey = value" below "[time] NOTICE: [pool]".
fn dumped(dump: &str, pool: &str, key: &str) -> Option<String> {
    let lines = dump.lines().filter_map(|line| line.split_once("NOTICE: ").map(|(_, text)| text));
    let mut inside = false;
    for line in lines {
        if line.starts_with('[') {
            inside = line == format!("[{pool}]");
        } else if inside
            && let Some((known, value)) = line.trim_start().split_once(" = ")
            && known == key
        {
            return Some(value.to_owned());
        }
    }
    None
}

#[test]
fn the_corpus_is_judged_as_php_fpm_judges_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = directory.path().join("x.conf");
    let name = config.display().to_string();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/php-fpm");
    let files: Vec<_> = ["good", "bad"].iter().flat_map(|kind| fs::read_dir(data.join(kind)).expect("it is there")).collect();
    assert!(files.len() > 15);
    for entry in files {
        let path = entry.expect("it is there").path();
        let bytes = fs::read(&path).expect("it can be read");
        fs::write(&config, &bytes).expect("it can be written");
        let Some((accepted, dump)) = php_fpm_says(directory.path(), &config) else {
            println!("skipped: php-fpm8.2 is not installed");
            return;
        };
        let ours = we_say(&name, &bytes);
        assert_eq!(accepted, ours.is_ok(), "{}: php-fpm says {dump}, here {ours:?}", path.display());
        let Ok(fpm) = ours else { continue };
        for pool in &fpm.pools {
            for key in [
                "pm.max_children",
                "listen.backlog",
                "pm.max_requests",
                "access.format",
                "pm.status_path",
                "listen",
                "pm.max_spare_servers",
            ] {
                let theirs =
                    dumped(&dump, &pool.name, key).filter(|value| value != "undefined" && (key != "pm.max_spare_servers" || value != "0"));
                let backlog = (key == "listen.backlog").then(|| pool.backlog().value.to_string());
                let ours = backlog
                    .or_else(|| pool.text(key).map(|setting| setting.value))
                    .filter(|value| key != "pm.max_spare_servers" || value != "0");
                // The dump shows no format where requests are not logged.
                if theirs.is_some() || key != "access.format" {
                    assert_eq!(theirs, ours, "{} [{}] {key}", path.display(), pool.name);
                }
            }
        }
    }
}
