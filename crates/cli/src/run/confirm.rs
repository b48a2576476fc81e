//! Questions before a change, with exactly what will be executed, sent and written.

use anyhow::Result;
use chokepoint_foreign::{printable, printable_lines};
use chokepoint_model::change::Change;
use chokepoint_model::report::Remedy;
use chokepoint_remedy::{ApplyError, Plan, plan};

use crate::terminal::interrupt::Interrupt;
use crate::terminal::prompt;

/// The commands and signals of a remedy, a line for each.
pub(crate) fn commands(remedy: &Remedy) -> Vec<String> {
    let of_change = |change: &Change| match plan(change) {
        Ok(Some(plan)) => of_server(&plan),
        Ok(None) => vec![change.command()],
        Err(error) => vec![will_be_refused(&error)],
    };
    if remedy.change.is_empty() {
        return remedy.runtime.iter().filter_map(|step| step.command.clone()).collect();
    }
    remedy.change.iter().flat_map(of_change).collect()
}

fn of_server(plan: &Plan) -> Vec<String> {
    let (user, group) = plan.user;
    vec![format!("as user {user}, group {group}: {}", plan.test_command()), plan.activating.to_string()]
}

fn will_be_refused(error: &ApplyError) -> String {
    format!("nothing: the change will be refused ({error})")
}

/// Asks whether to apply a remedy.
pub(crate) fn remedy(remedy: &Remedy, interrupt: &Interrupt) -> Result<bool> {
    // If a file cannot be read, the commands say why.
    let plans = remedy.change.iter().filter_map(|change| plan(change).ok().flatten());
    prompt::ask(&question(remedy, &commands(remedy), plans.map(|plan| files(&plan))), interrupt)
}

/// The changes in files, and what else the reload activates.
fn files(plan: &Plan) -> String {
    if plan.unread.is_empty() { plan.diff.clone() } else { format!("{}\n{}", plan.diff, unread_files(&plan.unread)) }
}

/// The question before a remedy is applied: its commands, one per line, and its changes in files.
fn question(remedy: &Remedy, commands: &[String], files: impl Iterator<Item = String>) -> String {
    let mut text = format!("\n{}\n\n", printable(&remedy.text.replace('\n', " ")));
    for command in commands {
        text.push_str(&format!("    {}\n", printable(command)));
    }
    files.for_each(|files| text.push_str(&format!("\n{}", printable_lines(&files))));
    text.push_str(&format!("\nRisk: {}\nUndo: chokepoint undo\nApply it?", printable(&remedy.risk)));
    text
}

/// Asks whether a reload may activate other edits as well.
pub(crate) fn unread(server: &str, files: &[String], interrupt: &Interrupt) -> Result<bool> {
    prompt::ask(&format!("\n{}\nReload {} anyway?", unread_files(files), printable(server)), interrupt)
}

fn unread_files(files: &[String]) -> String {
    let list: String = files.iter().map(|file| format!("    {}\n", printable(file))).collect();
    format!(
        "The server does not seem to have read these files and directories since they were changed. The reload activates them as well:\n{list}"
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_question_shows_everything_that_will_be_applied() {
        let findings = crate::report::samples::all().into_iter().flat_map(|(_, diagnosis)| diagnosis.findings);
        let remedy = findings.flat_map(|finding| finding.remedies).next().expect("a remedy");
        let commands = ["sysctl a=1\x1b[8m\n    sysctl b=1".to_owned()];
        let diff = "-  listen 80;\n+  listen 80; \x1b[8m# \u{202e}hidden\x1b[1A\r\n".to_owned();
        let asked = super::question(&remedy, &commands, std::iter::once(diff));
        assert!(asked.contains("    sysctl a=1\\x1b[8m\\n    sysctl b=1\n"), "{asked}");
        assert!(asked.contains("\n-  listen 80;\n+  listen 80; \\x1b[8m# \\u{202e}hidden\\x1b[1A\\r\n"), "{asked}");
        assert!(asked.ends_with("Apply it?") && !asked.contains(|c| c != '\n' && chokepoint_foreign::steers(c)), "{asked:?}");
    }
}
