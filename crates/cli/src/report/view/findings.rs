//! The findings in words: their role, and the terms of each remedy.

use chokepoint_model::change::Activation;
use chokepoint_model::fix::NOISE_SHARE;
use chokepoint_model::message::Message;
use chokepoint_model::report::{Confidence, Diagnosis, Finding, Prediction, Remedy, Role, Signal, Step};

use super::Phrases;

/// "cause, high confidence", "symptom of conntrack-table-full (1), low confidence".
pub(crate) fn standing(diagnosis: &Diagnosis, finding: &Finding, phrases: Phrases<'_>) -> String {
    let role = match finding.role {
        Role::Cause => phrases.word("report-cause"),
        Role::Symptom if finding.symptom_of.is_empty() => phrases.word("report-symptom-of-unnamed"),
        Role::Symptom => {
            let numbered = |id: &String| match diagnosis.findings.iter().position(|other| other.id == *id) {
                Some(place) => format!("{id} ({})", place + 1),
                None => id.clone(),
            };
            let ids: Vec<String> = finding.symptom_of.iter().map(numbered).collect();
            phrases.say(&Message::new("report-symptom-of").with("ids", ids.join(", ")))
        }
    };
    format!("{role}, {}", confidence(finding, phrases))
}

/// "no fault, high confidence", for an improvement.
pub(crate) fn standing_of_improvement(finding: &Finding, phrases: Phrases<'_>) -> String {
    phrases.say(&Message::new("report-improvement").with("confidence", confidence(finding, phrases)))
}

pub(crate) fn confidence(finding: &Finding, phrases: Phrases<'_>) -> String {
    phrases.word(match finding.confidence {
        Confidence::Low => "report-confidence-low",
        Confidence::Medium => "report-confidence-medium",
        Confidence::High => "report-confidence-high",
    })
}

/// The title as a sentence; nothing if the summary already contains it, as it usually does for the first finding.
pub(crate) fn title(diagnosis: &Diagnosis, finding: &Finding) -> Option<String> {
    (!diagnosis.summary.contains(finding.title.trim_end_matches('.'))).then(|| sentence(&finding.title))
}

/// A title with a capital at the beginning and a full stop at the end.
fn sentence(title: &str) -> String {
    let mut characters = title.chars();
    let Some(first) = characters.next() else { return String::new() };
    let stop = if title.ends_with(['.', '?', '!', '。']) { "" } else { "." };
    format!("{}{}{stop}", first.to_uppercase(), characters.as_str())
}

/// "Fix" or "Fix 1 of 2".
pub(crate) fn fix_title(choice: usize, count: usize, phrases: Phrases<'_>) -> String {
    match count {
        1 => phrases.word("report-fix"),
        count => phrases.say(&Message::new("report-fix-choice").with("n", (choice + 1) as f64).with("count", count as f64)),
    }
}

/// The steps of a remedy as lines that can be copied: the label's id, then the lines.
pub(crate) fn commands(remedy: &Remedy) -> impl Iterator<Item = (&'static str, Vec<String>)> {
    let all = [("report-label-now", &remedy.runtime), ("report-label-keep", &remedy.persistent), ("report-label-undo", &remedy.undo)];
    all.into_iter().filter(|(_, steps)| !steps.is_empty()).map(|(id, steps)| (id, lines(steps)))
}

/// Numbered steps. What a step does is a comment of the shell, so that the lines can be pasted all at once, and so is what belongs into a file. A single command needs no words.
fn lines(steps: &[Step]) -> Vec<String> {
    let mut lines = Vec::new();
    for (place, step) in steps.iter().enumerate() {
        match (&step.text, steps.len()) {
            (None, _) => {}
            (Some(_), 1) if step.command.is_some() => {}
            (Some(text), 1) => lines.push(format!("# {}", inert(text))),
            (Some(text), _) => lines.push(format!("# {}. {}", place + 1, inert(text))),
        }
        lines.extend(step.command.iter().flat_map(|command| command.split('\n')).map(str::to_owned));
        lines.extend(step.lines.iter().flat_map(|text| text.split('\n')).map(of_a_file));
    }
    lines
}

/// A line that belongs into a file, of which no shell executes anything: a key, which is no program, with plain values, the head of a section, or else a comment.
fn of_a_file(line: &str) -> String {
    let is_name = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || "._:".contains(c));
    let is_section = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')).is_some_and(|name| !name.is_empty() && is_name(name));
    let values = line.strip_suffix(';').unwrap_or(line).replace('=', " ");
    let is_entry = is_name(line.split([' ', '=']).next().unwrap_or_default()) && inert(&values) == values;
    if is_section || is_entry { line.to_owned() } else { format!("# {}", inert(line)) }
}

/// The words of a comment. It may name another user's files, and zsh(1) reads no comments where somebody types (INTERACTIVE_COMMENTS): it would execute `# a;b`. So what means
/// something to a shell is between single quotes.
fn inert(text: &str) -> String {
    let text = chokepoint_foreign::printable(text);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " ._-/:,+%@".contains(c);
    if text.chars().all(is_plain) { text.into_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// What to know before a remedy is applied: label id and text.
pub(crate) fn terms(diagnosis: &Diagnosis, remedy: &Remedy, phrases: Phrases<'_>) -> Vec<(&'static str, String)> {
    let effect = phrases.word(match remedy.activation {
        Activation::Live => "report-live",
        Activation::Reload => "report-reload",
        Activation::Restart => "report-restart",
    });
    let signal = match &remedy.signal {
        Signal::Refusals { station } => phrases.say(&Message::new("report-signal-refusals").with("station", station.as_str())),
        Signal::Goodput => phrases.word("report-signal-goodput"),
        Signal::LatencyP99 => phrases.word("report-signal-latency"),
    };
    let terms = [
        ("report-label-effect", effect),
        ("report-label-risk", remedy.risk.clone()),
        ("report-label-proof", signal),
        ("report-label-predicted", foretold(diagnosis, &remedy.prediction, phrases)),
    ];
    terms.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}

fn foretold(diagnosis: &Diagnosis, prediction: &Prediction, phrases: Phrases<'_>) -> String {
    match prediction {
        Prediction::Refused { refused, at_most: Some(most), .. } => {
            phrases.say(&Message::new("report-not-predicted-bound").with("why", refused.as_str()).with("most", *most))
        }
        Prediction::Refused { refused, .. } => phrases.say(&Message::new("report-not-predicted").with("why", refused.as_str())),
        Prediction::Goodput { goodput_rps, low, high, next_station } => {
            let id = match Gain::of(diagnosis, *goodput_rps) {
                Gain::More => "report-predicted",
                Gain::Same => "report-predicted-same",
                Gain::Less => "report-predicted-less",
            };
            let message = Message::new(id).with("rate", *goodput_rps).with("low", *low).with("high", *high);
            phrases.say(&message.with("station", next_station.as_str()))
        }
    }
}

/// The prediction in a short sentence; nothing where none is made.
pub(crate) fn foretold_shortly(diagnosis: &Diagnosis, prediction: &Prediction, phrases: Phrases<'_>) -> Option<String> {
    let Prediction::Goodput { goodput_rps, .. } = prediction else { return None };
    let id = match Gain::of(diagnosis, *goodput_rps) {
        Gain::More => "brief-predicted",
        Gain::Same => "brief-predicted-same",
        Gain::Less => "brief-predicted-less",
    };
    Some(phrases.say(&Message::new(id).with("rate", phrases.rounded(*goodput_rps))))
}

/// A predicted rate beside today's. Of a cause that costs no goodput, fewer requests fail or wait long without it: by the rule of harm there is no third.
enum Gain {
    More,
    /// Within the noise that the rule of harm allows for.
    Same,
    Less,
}

impl Gain {
    fn of(diagnosis: &Diagnosis, predicted_rps: f64) -> Self {
        let noise = diagnosis.harm.as_ref().map_or(NOISE_SHARE, |rule| rule.goodput_share);
        match diagnosis.load.as_ref().map(|load| load.goodput_rps) {
            Some(rate) if predicted_rps < rate * (1.0 - noise) => Gain::Less,
            Some(rate) if predicted_rps <= rate * (1.0 + noise) => Gain::Same,
            _ => Gain::More,
        }
    }
}

/// True if `--fix` was not given and would change something: it mends causes.
pub(crate) fn offers_fix(diagnosis: &Diagnosis) -> bool {
    let causes = diagnosis.findings.iter().filter(|finding| finding.role == Role::Cause);
    let mut remedies = causes.flat_map(|finding| &finding.remedies);
    diagnosis.rounds.is_empty() && remedies.any(|remedy| !remedy.change.is_empty())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use chokepoint_model::change::quoted;

    use super::*;

    /// Pieces of names that mean something to a shell. What is executed of them makes a file.
    const PIECES: [&str; 32] = [
        "$(>ran)",
        "`>ran`",
        ";>ran;",
        "&>ran&",
        "|tee ran",
        "\n>ran\n",
        ">ran",
        "<(>ran)",
        "=(>ran)",
        "${x:=$(>ran)}",
        "'",
        "\"",
        "\\",
        "!",
        "!!",
        "#",
        "(",
        ")",
        "*",
        "?",
        "~",
        "=",
        "{a,b}",
        "[",
        "]",
        "^",
        "%",
        "\t",
        "\r",
        "\u{1b}[0m",
        " ",
        "é",
    ];

    /// Names of up to five pieces, drawn by SplitMix64.
    fn names(count: u64) -> impl Iterator<Item = String> {
        let mut state = 7_u64;
        let mut draw = move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 32
        };
        (0..count).map(move |_| (0..1 + draw() % 5).map(|_| PIECES[(draw() % PIECES.len() as u64) as usize]).collect())
    }

    /// Steps with a name from outside in each of their parts.
    fn steps(name: &str) -> Vec<Step> {
        let path = format!("/home/m/{name}/n.conf");
        let words = |text: String| Step { text: Some(text), ..Step::default() };
        vec![
            Step { command: Some(format!("true {}", quoted(&path))), ..words(format!("Edit {path}:")) },
            words(format!("In the pod's manifest, at {name}; it is restarted (see {path}).")),
            Step {
                lines: Some(format!("listen {name};\n{name}\npm.max_children = 9   ; in [{name}]")),
                ..words(format!("Set in {path}:"))
            },
        ]
    }

    /// Gives lines to a shell as if they were pasted, and says what it made of them in an empty directory.
    fn made_by(shell: &[&str], lines: &[String]) -> Option<Vec<String>> {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).current_dir(directory.path()).env("HOME", directory.path()).env("HISTFILE", "");
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let Ok(mut child) = child else {
            println!("skipped: {} is not installed", shell[0]);
            return None;
        };
        // A shell that ended early would have executed no further line, which the last one shows.
        let _ = child.stdin.take().unwrap().write_all(format!("{}\n: >read\n", lines.join("\n")).as_bytes());
        child.wait().unwrap();
        let mut made: Vec<String> =
            std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        made.sort();
        Some(made)
    }

    #[test]
    fn nothing_of_a_name_is_executed_where_steps_are_pasted() {
        let shells: [&[&str]; 3] = [&["sh"], &["bash", "--norc", "-i"], &["zsh", "-f", "-i"]];
        for shell in shells {
            // A block for each name, all in one shell, and each block once more as it is printed.
            let blocks: Vec<Vec<String>> = names(150).map(|name| lines(&steps(&name))).collect();
            let printed = |line: &String| chokepoint_foreign::printable(line).into_owned();
            let all: Vec<String> = blocks.iter().flat_map(|block| block.iter().cloned().chain(block.iter().map(printed))).collect();
            let Some(made) = made_by(shell, &all) else { continue };
            if made == ["read"] {
                continue;
            }
            let guilty = blocks.iter().find(|block| made_by(shell, block).is_some_and(|made| made != ["read"]));
            panic!("{shell:?} made {made:?} of {guilty:#?}");
        }
    }

    #[test]
    fn plain_words_stay_as_they_are() {
        assert_eq!(inert("Edit /etc/nginx/nginx.conf:"), "Edit /etc/nginx/nginx.conf:");
        assert_eq!(inert("Restart a; it's (b)\n:"), "'Restart a; it'\\''s (b)\\n:'");
        for line in [
            "worker_connections 4096;",
            "pm.max_children = 9",
            "[Service]",
            "LimitNOFILE=512",
            "    cpu: 250m",
            "limit_req zone=a burst=5;",
        ] {
            assert_eq!(of_a_file(line), line);
        }
        assert_eq!(of_a_file("/home/m/run"), "# /home/m/run");
        assert_eq!(of_a_file("limit_req zone=a;id;"), "# 'limit_req zone=a;id;'");
    }
}
