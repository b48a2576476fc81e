//! Man pages: a page for the program and one for each verb. What follows the flags in `--help` becomes sections of its own: "Examples:" and "Exit status:" with
//! their indented lines as they are, and the rest as notes.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context;
use clap::Command;
use clap_mangen::Man;

/// The manual that pages belong to, in the middle of their heads.
const MANUAL: &str = "chokepoint manual";

/// The beginning of a paragraph that is a section of its own.
const EXIT_STATUS: &str = "Exit status: ";

/// Writes the page of the command and of everything below it into a directory.
/// `date` stands at the foot of the pages.
pub(crate) fn write(command: &Command, date: &str, directory: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let mut waiting = vec![command];
    while let Some(command) = waiting.pop() {
        let path = directory.join(format!("{}.1", name(command)));
        std::fs::write(&path, page(command, date)?).with_context(|| format!("cannot write {}", path.display()))?;
        waiting.extend(shown(command));
    }
    Ok(())
}

/// The commands below one, without `help`, of which the pages take the place.
pub(crate) fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
}

/// "chokepoint-lab-run" for `chokepoint lab run`.
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

fn page(command: &Command, date: &str) -> anyhow::Result<String> {
    let source = format!("chokepoint {}", command.get_version().unwrap_or_default());
    // The pages of verbs are named by themselves; clap's own text does not refer to pages that do not exist.
    let man = Man::new(command.clone().disable_help_subcommand(true)).date(date).source(source).manual(MANUAL);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    // Lines end where words end: URLs are too long to be spread over a line.
    page.extend_from_slice(b".ad l\n");
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    let mut page = String::from_utf8(page).context("a page that is no text")?;
    page.push_str(&verbs(command));
    if let Some(after) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        page.push_str(&after_help(&after.to_string()));
    }
    page.push_str(&see_also(command));
    Ok(page)
}

/// The section COMMANDS: the pages of what is below the command.
fn verbs(command: &Command) -> String {
    let mut text = String::new();
    for below in shown(command) {
        let about = below.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(text, ".TP\n\\fB{}\\fR(1)\n{}", escape(name(below)), line(&about));
    }
    if text.is_empty() { text } else { format!(".SH COMMANDS\n{text}") }
}

/// Paragraphs of help as sections.
fn after_help(text: &str) -> String {
    let mut sections = String::new();
    let mut is_in_notes = false;
    for paragraph in text.split("\n\n") {
        let paragraph = paragraph.trim_matches('\n');
        match paragraph.split_once(":\n").filter(|(title, lines)| !title.contains('\n') && lines.lines().all(|line| line.starts_with(' ')))
        {
            Some((title, lines)) => {
                is_in_notes = false;
                let _ = writeln!(sections, ".SH {}\n.nf", quoted(&title.to_uppercase()));
                lines.lines().for_each(|text| sections.extend([&line(text), "\n"]));
                sections.push_str(".fi\n");
            }
            None if paragraph.starts_with(EXIT_STATUS) => {
                is_in_notes = false;
                let _ = writeln!(sections, ".SH \"EXIT STATUS\"\n{}", line(&paragraph[EXIT_STATUS.len()..]));
            }
            None => {
                sections.push_str(if is_in_notes { ".PP\n" } else { ".SH NOTES\n" });
                is_in_notes = true;
                paragraph.lines().for_each(|text| sections.extend([&line(text), "\n"]));
            }
        }
    }
    sections
}

fn see_also(command: &Command) -> String {
    let root = name(command).split('-').next().unwrap_or_default();
    let all = "All documents: /usr/share/doc/chokepoint or the docs/ of the source.\n";
    if root == name(command) {
        return format!(".SH SEE ALSO\n\\fBnginx\\fR(8), \\fBss\\fR(8), \\fBperf\\fR(1)\n.PP\n{all}");
    }
    format!(".SH SEE ALSO\n\\fB{root}\\fR(1)\n.PP\n{all}")
}

/// A line of text: roff reads a leading full stop or quote as a request.
fn line(text: &str) -> String {
    let text = escape(text);
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

/// An argument of a request.
fn quoted(text: &str) -> String {
    format!("\"{}\"", escape(text).replace('"', "\\(dq"))
}

#[cfg(test)]
mod tests {
    use std::process::Command as Process;

    use super::*;

    fn text_of(page: &str) -> String {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("page.1");
        std::fs::write(&path, page).expect("written");
        match Process::new("man").args(["--warnings", "-E", "UTF-8", "-l", "-P", "cat"]).arg(&path).env("MANWIDTH", "80").output() {
            Ok(output) => {
                assert!(output.status.success(), "{output:?}");
                assert_eq!(String::from_utf8_lossy(&output.stderr), "", "groff warns");
                String::from_utf8_lossy(&output.stdout).into_owned()
            }
            Err(_) => String::new(),
        }
    }

    #[test]
    fn every_command_has_a_page_that_man_can_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let command = chokepoint::command();
        write(&command, "2026-11-25", directory.path()).expect("written");
        for verb in shown(&command).chain([&command]) {
            let page = std::fs::read_to_string(directory.path().join(format!("{}.1", name(verb)))).expect("a page");
            // Verbs with many flags have them under headings of their own.
            let has_headings = [".SH TARGET", ".SH EXPERIMENT"].iter().any(|heading| page.contains(heading));
            let options = if has_headings { ".SH OUTPUT" } else { ".SH OPTIONS" };
            for section in [".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", options, ".SH \"SEE ALSO\""] {
                let plain = section.replace('"', "");
                assert!(page.contains(section) || page.contains(&plain), "{} lacks {section}", name(verb));
            }
            let text = text_of(&page);
            if text.is_empty() {
                println!("skipped: man is not installed");
                return;
            }
            assert!(text.contains(env!("CARGO_PKG_VERSION")), "{text}");
        }
        let run = std::fs::read_to_string(directory.path().join("chokepoint-lab-run.1")).expect("a page below a verb");
        assert!(run.contains(".TH chokepoint-lab-run 1"), "{run}");
    }

    #[test]
    fn examples_and_exit_status_are_sections() {
        let text = after_help("First\nnote.\n\n.Second.\n\nExamples:\n  chokepoint -c 1 'x\\y'\n\nLast: note.\n\nExit status: 0 done.");
        let wanted = ".SH NOTES\nFirst\nnote.\n.PP\n\\&.Second.\n.SH \"EXAMPLES\"\n.nf\n  chokepoint \\-c 1 'x\\ey'\n.fi\n.SH NOTES\nLast: note.\n.SH \"EXIT STATUS\"\n0 done.\n";
        assert_eq!(text, wanted);
    }
}
