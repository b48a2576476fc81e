//! What must hold after an attack. Some of it holds for every one: nothing of the attacker's was executed by others, and the product neither breaks nor prints
//! characters that steer a terminal.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::document::{Attack, AttackStep};
use super::step::{Actor, Ground, StepResult};
use super::trial::seconds;

/// The attackers' programs and libraries append to this file, below the run directory, whenever somebody else executes them.
const EXECUTED: &str = "home/executed";
/// Most bytes that are compared of a file.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Most characters of an output that a failure shows.
const SHOWN_MAX: usize = 3000;

/// What a file is: content, owner, mode with its type.
#[derive(Debug, PartialEq, Eq)]
struct FileState {
    content: Vec<u8>,
    owner: (u32, u32),
    mode: u32,
}

/// Opens what the attacker may have put there meanwhile: no link is followed, and a FIFO keeps nobody waiting.
fn open(path: &Path) -> io::Result<fs::File> {
    fs::File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)
}

fn state(path: &Path) -> Option<FileState> {
    let meta = fs::symlink_metadata(path).ok()?;
    let mut content = Vec::new();
    if meta.is_symlink() {
        content = fs::read_link(path).ok()?.into_os_string().into_encoded_bytes();
    } else if meta.is_file() {
        open(path).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut content).ok()?;
    }
    Some(FileState { content, owner: (meta.uid(), meta.gid()), mode: meta.mode() })
}

/// A time of access that no reading leaves (stat(2)); later than no change, so that file systems with `relatime` record the next reading (mount(8)).
const NEVER_READ: SystemTime = SystemTime::UNIX_EPOCH;

/// The files that must not change, before the first step; those that nobody may read are marked.
pub(super) struct Before(Vec<(PathBuf, Option<FileState>)>);

fn mark_unread(path: &Path) -> io::Result<()> {
    open(path)?.set_times(fs::FileTimes::new().set_accessed(NEVER_READ))
}

/// True if a file system tells when a file is read.
fn tells_reading(run: &Path) -> io::Result<bool> {
    let path = run.join("lib/attacker.py");
    mark_unread(&path)?;
    open(&path)?.read_exact(&mut [0])?;
    Ok(fs::metadata(&path)?.accessed()? != NEVER_READ)
}

impl Before {
    /// Looks at the files.
    ///
    /// # Errors
    /// A sentence where this host cannot tell whether a file is read.
    pub(super) fn of(attack: &Attack, run: &Path) -> Result<Self, String> {
        if !attack.unread.is_empty() && !tells_reading(run).unwrap_or(false) {
            return Err(format!("{} is mounted without times of access (noatime)", run.display()));
        }
        for path in &attack.unread {
            mark_unread(&run.join(path)).map_err(|error| format!("{path} cannot be marked: {error}"))?;
        }
        Ok(Self(attack.unchanged.iter().map(|path| run.join(path)).map(|path| (path.clone(), state(&path))).collect()))
    }

    /// What does not hold in the files at the end.
    pub(super) fn failures(&self, attack: &Attack, run: &Path) -> Vec<String> {
        let mut failures = Vec::new();
        for path in attack.unread.iter().map(|path| run.join(path)) {
            if !fs::metadata(&path).and_then(|meta| meta.accessed()).is_ok_and(|accessed| accessed == NEVER_READ) {
                failures.push(format!("{} was read", path.display()));
            }
        }
        for (path, before) in &self.0 {
            match (before, state(path)) {
                (None, _) => failures.push(format!("{} was not there before the attack", path.display())),
                (Some(before), Some(after)) if *before == after => {}
                (Some(_), Some(after)) => {
                    let text = shown(&after.content);
                    failures.push(format!("{} was changed: mode {:o}, owner {:?}\n{text}", path.display(), after.mode, after.owner));
                }
                (Some(_), None) => failures.push(format!("{} is gone", path.display())),
            }
        }
        for path in attack.absent.iter().map(|path| run.join(path)).chain([run.join(EXECUTED)]) {
            if fs::symlink_metadata(&path).is_ok() {
                let content = state(&path).map(|state| shown(&state.content)).unwrap_or_default();
                let what = if path.ends_with(EXECUTED) { "a program of the attacker's was executed" } else { "there is" };
                failures.push(format!("{what}: {}: {content}", path.display()));
            }
        }
        for wanted in &attack.contains {
            let found = state(&run.join(&wanted.file)).map(|state| String::from_utf8_lossy(&state.content).into_owned());
            if !found.as_deref().is_some_and(|found| found.contains(&wanted.text)) {
                failures.push(format!(
                    "{} does not contain \"{}\": {}",
                    wanted.file,
                    wanted.text,
                    found.map_or_else(|| "no file".to_owned(), |found| shown(found.as_bytes()))
                ));
            }
        }
        failures
    }
}

impl AttackStep {
    /// What does not hold of a step that has ended.
    pub(super) fn failures(&self, n: usize, result: &StepResult, ground: &Ground<'_>) -> Vec<String> {
        let mut failures = Vec::new();
        let is_product = self.actor() == Actor::Chokepoint;
        let output = &result.output;
        if !self.background && result.seconds > self.time_max().as_secs_f64() || is_product && !result.ended {
            let limit = if self.background { "a signal to end".to_owned() } else { seconds(self.time_max()) };
            failures.push(format!("it did not end within {limit}: {}", seconds(Duration::from_secs_f64(result.seconds))));
        } else if self.is_status_wrong(result.status) {
            failures.push(match result.status {
                Some(status) => format!("its exit status is {status}"),
                None => "a signal ended it".to_owned(),
            });
        }
        if is_product {
            if result.memory_bytes > self.memory_max() {
                failures.push(format!("it took {} MiB of memory, more than {}", result.memory_bytes >> 20, self.memory_max() >> 20));
            }
            let cores = result.cpu_seconds / result.seconds.max(f64::MIN_POSITIVE);
            if let Some(most) = self.cpu.filter(|most| cores > *most) {
                let (used, ran) = (result.cpu_seconds, result.seconds);
                failures.push(format!("it took {used:.2} s of CPU time in {ran:.1} s, {cores:.3} of a core, more than {most}"));
            }
            if output.contains("panicked at") {
                failures.push("it panicked".to_owned());
            }
            if let Some(steering) = output.chars().find(|character| steers(*character)) {
                failures.push(format!("it printed a character that steers a terminal: {}", steering.escape_unicode()));
            }
        }
        for text in self.says.iter().map(|text| ground.expand(text)) {
            if !output.contains(&text) {
                failures.push(format!("it does not say \"{text}\""));
            }
        }
        for text in self.hides.iter().map(|text| ground.expand(text)) {
            if output.contains(&text) {
                failures.push(format!("it says \"{text}\""));
            }
        }
        for lines in &self.lines {
            let (with, have) = (ground.expand(&lines.with), ground.expand(&lines.have));
            failures.extend(output.lines().filter(|line| line.contains(&with) && !line.contains(&have)).map(|line| {
                let line: String = line.trim().chars().take(SHOWN_MAX).collect();
                format!("a line with \"{with}\" has no \"{have}\": {line}")
            }));
        }
        if failures.is_empty() {
            return failures;
        }
        let skipped = output.chars().count().saturating_sub(SHOWN_MAX);
        let end: String = output.chars().skip(skipped).collect();
        let who = match self.actor() {
            Actor::Attacker => "the attack itself went wrong: ",
            _ => "",
        };
        vec![format!("step {n}: {who}{}; {}; its output ends with:\n{end}", result.command, failures.join("; "))]
    }

    fn is_status_wrong(&self, status: Option<i32>) -> bool {
        match (self.actor(), self.background) {
            // It is ended after the last step, and how it takes that is not what the attack is about.
            (Actor::Attacker | Actor::Root, true) => false,
            _ if !self.status.is_empty() => !status.is_some_and(|status| self.status.contains(&status)),
            (Actor::Chokepoint, _) => status.is_none_or(|status| status == 2),
            _ => status != Some(0),
        }
    }
}

/// True for characters that change what a terminal shows elsewhere: controls but the line feed, and those that turn the direction of text.
fn steers(character: char) -> bool {
    character != '\n' && character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The beginning of a file, for a report.
fn shown(content: &[u8]) -> String {
    String::from_utf8_lossy(content).chars().take(SHOWN_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(fields: &str) -> AttackStep {
        toml::from_str(fields).unwrap()
    }

    fn failures(step: &AttackStep, status: Option<i32>, output: &str) -> Vec<String> {
        let result = StepResult {
            command: "x".to_owned(),
            status,
            seconds: 1.0,
            memory_bytes: 100 << 20,
            cpu_seconds: 0.25,
            output: output.to_owned(),
            actor: step.actor(),
            ended: true,
        };
        let path = Path::new("/r");
        step.failures(1, &result, &Ground { chokepoint: path, run: path, netns: path, pids: vec![("web".to_owned(), 7)] })
    }

    #[test]
    fn what_does_not_hold_is_named() {
        let product =
            step("chokepoint = ['diagnose']\nsays = ['a {run} {pid:web}']\nhides = ['secret']\nlines = [{ with = '/x', have = 'sudo' }]");
        assert!(failures(&product, Some(1), "a /r 7\nsudo /x\n").is_empty());
        for (status, output, word) in [
            (None, "a /r 7", "signal"),
            (Some(2), "a /r 7", "status is 2"),
            (Some(0), "a", "does not say"),
            (Some(0), "a /r 7 secret", "says \"secret\""),
            (Some(0), "a /r 7\n/x", "has no \"sudo\""),
            (Some(0), "a /r 7 \u{1b}[1m", "steers"),
            (Some(0), "a /r 7 thread 'main' panicked at x", "panicked"),
        ] {
            let failures = failures(&product, status, output);
            assert!(failures.len() == 1 && failures[0].contains(word), "{word}: {failures:?}");
        }
        assert!(failures(&step("chokepoint = ['x']\nmemory = '64MiB'"), Some(0), "")[0].contains("100 MiB"));
        assert!(failures(&step("chokepoint = ['x']\ncpu = 0.2"), Some(0), "")[0].contains("0.25 s of CPU time in 1.0 s"));
        assert!(failures(&step("chokepoint = ['x']\ncpu = 0.25"), Some(0), "").is_empty());
        assert!(failures(&step("chokepoint = ['x']\ntime = '500ms'"), Some(0), "")[0].contains("did not end"));
        assert!(failures(&step("attacker = ['x']"), Some(1), "")[0].contains("the attack itself"));
        assert!(failures(&step("attacker = ['x']\nstatus = [1]"), Some(1), "").is_empty());
    }

    #[test]
    fn files_are_compared_with_owner_mode_and_content() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path();
        fs::write(run.join("kept"), "a").unwrap();
        fs::write(run.join("secret"), "s").unwrap();
        let text = "does = 'd'\nholds = 'h'\nschema = 1\nname = 'x'\nunchanged = ['kept']\nabsent = ['new']\n\
                    contains = [{ file = 'kept', text = 'a' }]\nunread = ['secret']\n[[step]]\nchokepoint = ['undo']\n";
        let attack = Attack::parse(text, "x", "files").unwrap();
        fs::create_dir(run.join("lib")).unwrap();
        fs::write(run.join("lib/attacker.py"), "x").unwrap();
        let before = Before::of(&attack, run).unwrap();
        assert!(before.failures(&attack, run).is_empty());
        fs::write(run.join("kept"), "b").unwrap();
        fs::read(run.join("secret")).unwrap();
        fs::write(run.join("new"), "").unwrap();
        fs::create_dir(run.join("home")).unwrap();
        fs::write(run.join(EXECUTED), "uid 0").unwrap();
        assert_eq!(before.failures(&attack, run).len(), 5);
        fs::remove_file(run.join("kept")).unwrap();
        assert!(before.failures(&attack, run).iter().any(|why| why.contains("is gone")));
    }
}
