//! Tells incidents to other programs: a webhook as Alertmanager takes it, or a command. Each runs in a thread of its own, within a time; a failure is a note.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use chokepoint_model::outcome::utc;
use chokepoint_recorder::drop::Kind;
use chokepoint_recorder::incident::{Incident, State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::terminal::output;

/// The longest time of one delivery.
const PATIENCE: Duration = Duration::from_secs(30);
/// Deliveries under way at a time; more incidents than that are a flood, and are only kept.
const RUNNING_MAX: usize = 16;
/// Most hooks.
const HOOKS_MAX: usize = 16;
/// Alertmanager takes an alert for resolved five minutes after it heard of it last (`resolve_timeout`), so those that last are told again.
const REMIND_PERIOD: Duration = Duration::from_secs(60);
/// Time between two looks whether a command has ended.
const POLL: Duration = Duration::from_millis(50);

/// One hook of the configuration: either is given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hook {
    /// A URL to which alerts are posted: http:// only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) webhook: Option<String>,
    /// A program and its arguments. It gets the incident as JSON on its input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) exec: Vec<String>,
}

/// Checks the hooks of a configuration file. A command runs with the rights of this program, so nobody else may be able to change the file or the command.
///
/// # Errors
/// What is wrong with one.
pub(super) fn check(hooks: &[Hook], file: Option<&Path>) -> Result<()> {
    ensure!(hooks.len() <= HOOKS_MAX, "there are more than {HOOKS_MAX} hooks");
    for hook in hooks {
        match (&hook.webhook, hook.exec.first()) {
            (Some(url), None) => chokepoint_dashboard::check(url)?,
            (None, Some(program)) => {
                let uid = rustix::process::geteuid().as_raw();
                let trusted = |path: &Path| -> Result<()> {
                    let path = std::path::absolute(path).with_context(|| format!("{} is no path", path.display()))?;
                    chokepoint_foreign::trusted(&path, uid).map(drop).map_err(|why| anyhow::anyhow!("{why}: no command is run"))
                };
                ensure!(Path::new(program).is_absolute(), "the command \"{program}\" of a hook needs its whole path");
                file.map(trusted).transpose()?;
                trusted(Path::new(program))?;
            }
            _ => bail!("a hook has either a webhook or exec"),
        }
    }
    Ok(())
}

/// The hooks, and their deliveries under way.
#[derive(Default)]
pub(super) struct Hooks {
    running: Vec<thread::JoinHandle<()>>,
    /// The alerts of incidents that last, and when they were last posted.
    lasting: BTreeMap<i64, (Instant, Value)>,
}

impl Hooks {
    /// Tells an incident to all of them.
    pub(super) fn tell(&mut self, hooks: &[Hook], incident: &Incident) {
        match incident.state {
            State::Open => drop(self.lasting.insert(incident.id, (Instant::now(), alerts(incident)))),
            _ => drop(self.lasting.remove(&incident.id)),
        }
        for hook in hooks {
            let (hook, incident) = (hook.clone(), incident.clone());
            self.deliver(incident.id, move || hook.deliver(&incident));
        }
    }

    /// Posts the alerts of incidents that last once more, each minute.
    pub(super) fn remind(&mut self, hooks: &[Hook]) {
        let is_due = |posted: &Instant| posted.elapsed() >= REMIND_PERIOD;
        let due = self.lasting.iter_mut().filter(|(_, (posted, _))| is_due(posted));
        let due: Vec<(i64, String)> = due
            .map(|(id, (posted, alerts))| {
                *posted = Instant::now();
                (*id, alerts.to_string())
            })
            .collect();
        for (id, alerts) in due {
            for url in hooks.iter().filter_map(|hook| hook.webhook.clone()) {
                let alerts = alerts.clone();
                self.deliver(id, move || post(&url, alerts));
            }
        }
    }

    fn deliver(&mut self, id: i64, deliver: impl FnOnce() -> Result<()> + Send + 'static) {
        self.running.retain(|running| !running.is_finished());
        if self.running.len() >= RUNNING_MAX {
            return output::note(&format!("note: incident {id} was not told to a hook: too many are being told"));
        }
        let untold = move |error: &dyn std::fmt::Display| output::note(&format!("note: incident {id} was not told: {error:#}"));
        let task = move || {
            if let Err(error) = deliver() {
                untold(&error);
            }
        };
        match thread::Builder::new().name("hook".to_owned()).spawn(task) {
            Ok(running) => self.running.push(running),
            Err(error) => untold(&error),
        }
    }

    /// Waits for the deliveries under way, at most as long as each may take.
    pub(super) fn finish(&mut self) {
        self.running.drain(..).for_each(|running| drop(running.join()));
    }
}

impl Hook {
    fn deliver(&self, incident: &Incident) -> Result<()> {
        match (&self.webhook, self.exec.split_first()) {
            (Some(url), _) => post(url, alerts(incident).to_string()),
            (None, Some((program, arguments))) => run(&PathBuf::from(program), arguments, incident),
            (None, None) => Ok(()),
        }
    }
}

fn post(url: &str, alerts: String) -> Result<()> {
    chokepoint_dashboard::post(url, alerts, PATIENCE).with_context(|| url.to_owned())
}

/// Runs a command. Its output is not read.
fn run(program: &Path, arguments: &[String], incident: &Incident) -> Result<()> {
    let name = || program.display().to_string();
    let state = json!(incident.state).as_str().unwrap_or_default().to_owned();
    let mut command = Command::new(program);
    for name in super::service::OWN {
        command.env_remove(name);
    }
    let mut child = command
        .args(arguments)
        .env("CHOKEPOINT_INCIDENT", incident.id.to_string())
        .env("CHOKEPOINT_STATE", state)
        .env("CHOKEPOINT_TARGET", &incident.drop.target)
        .env("CHOKEPOINT_HEADLINE", &incident.headline)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(name)?;
    let document = serde_json::to_vec(incident)?;
    let input = child.stdin.take();
    // A command that does not read its input must not hold anybody up.
    thread::spawn(move || input.map(|mut input| input.write_all(&document)));
    let status = ended(&mut child).with_context(name)?;
    ensure!(status.success(), "{} ended with {status}", name());
    Ok(())
}

fn ended(child: &mut Child) -> Result<std::process::ExitStatus> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if begin.elapsed() >= PATIENCE {
            child.kill()?;
            child.wait()?;
            bail!("it took longer than {PATIENCE:?}");
        }
        thread::sleep(POLL);
    }
}

/// The incident as Alertmanager's API takes it (prometheus.io/docs/alerting/latest/clients): the labels identify it, so that its end resolves it.
fn alerts(incident: &Incident) -> Value {
    let time = |at_s: u64| i64::try_from(at_s).ok().and_then(utc);
    let kind = incident.drop.kinds.first().copied().unwrap_or(Kind::Slower);
    let mut alert = json!({
        "labels": { "alertname": "ChokepointIncident", "target": incident.drop.target, "kind": kind, "incident": incident.id.to_string() },
        "annotations": {
            "summary": incident.headline,
            "cause": incident.cause.as_ref().map_or("", |cause| cause.id.as_str()),
        },
        "startsAt": time(incident.drop.since_s),
    });
    if let (State::Over, Some(ended)) = (incident.state, incident.ended_s.and_then(time)) {
        alert["endsAt"] = json!(ended);
    }
    json!([alert])
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use chokepoint_recorder::drop::Drop;

    use super::*;

    fn incident() -> Incident {
        let drop = Drop { target: "t".to_owned(), since_s: 951_782_400, kinds: vec![Kind::Losses], ..Drop::default() };
        Incident { id: 7, state: State::Open, ..Incident::began(drop, "it drops".to_owned(), Vec::new()) }
    }

    #[test]
    fn alertmanager_gets_labels_that_stay_and_the_end() {
        let open = alerts(&incident());
        assert_eq!(open[0]["labels"], json!({ "alertname": "ChokepointIncident", "target": "t", "kind": "losses", "incident": "7" }));
        assert_eq!((&open[0]["startsAt"], &open[0]["endsAt"]), (&json!("2000-02-29T00:00:00Z"), &Value::Null));
        let over = alerts(&Incident { state: State::Over, ended_s: Some(951_782_460), ..incident() });
        assert_eq!((&over[0]["labels"], &over[0]["endsAt"]), (&open[0]["labels"], &json!("2000-02-29T00:01:00Z")));
    }

    #[test]
    fn a_command_gets_the_incident_and_its_failure_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let script = format!("cat >{0}; echo \"$CHOKEPOINT_INCIDENT $CHOKEPOINT_STATE $CHOKEPOINT_TARGET\" >>{0}", out.display());
        run(Path::new("/bin/sh"), &["-c".to_owned(), script], &incident()).unwrap();
        let got = std::fs::read_to_string(&out).unwrap();
        assert!(got.contains("\"headline\":\"it drops\"") && got.ends_with("7 open t\n"), "{got}");
        let failed = run(Path::new("/bin/sh"), &["-c".to_owned(), "exit 3".to_owned()], &incident()).unwrap_err();
        assert!(failed.to_string().contains("exit status: 3"), "{failed}");
        assert!(run(Path::new("/none"), &[], &incident()).is_err());
    }

    #[test]
    fn a_command_that_somebody_else_can_change_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("watch.toml");
        std::fs::write(&file, "").unwrap();
        let hook = |webhook: Option<&str>, exec: &[&str]| Hook {
            webhook: webhook.map(str::to_owned),
            exec: exec.iter().map(|word| (*word).to_owned()).collect(),
        };
        let refused = |hook| format!("{:#}", check(&[hook], Some(&file)).unwrap_err());
        assert!(refused(hook(None, &["sh"])).contains("needs its whole path"));
        assert!(refused(hook(None, &[])).contains("either a webhook or exec"));
        assert!(refused(hook(Some("http://a/"), &["/bin/sh"])).contains("either a webhook or exec"));
        assert!(refused(hook(Some("ftp://a/"), &[])).contains("no http:// or https:// URL"));
        assert!(check(&[hook(Some("http://a/"), &[])], Some(&file)).is_ok());
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(refused(hook(None, &["/bin/sh"])).contains("no command is run"));
    }
}
