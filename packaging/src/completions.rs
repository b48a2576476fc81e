//! Completions for shells.

use std::path::Path;

use anyhow::Context;
use clap::Command;
use clap_complete::{Shell, generate_to};

/// The shells, in the order of their names.
const SHELLS: &[Shell] = &[Shell::Bash, Shell::Fish, Shell::Zsh];

/// Writes a file for each shell: `chokepoint.bash`, `chokepoint.fish`, `_chokepoint`.
pub(crate) fn write(command: &Command, directory: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    for shell in SHELLS {
        generate_to(*shell, &mut command.clone(), command.get_name(), directory)
            .with_context(|| format!("cannot write the completions of {shell} into {}", directory.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::Command as Process;

    use super::*;

    #[test]
    fn each_shell_can_read_its_completions() {
        let directory = tempfile::tempdir().expect("a directory");
        let command = chokepoint::command();
        write(&command, directory.path()).expect("written");
        for (shell, file) in [("bash", "chokepoint.bash"), ("fish", "chokepoint.fish"), ("zsh", "_chokepoint")] {
            let path = directory.path().join(file);
            let text = std::fs::read_to_string(&path).expect("a text");
            for verb in crate::man_page::shown(&command) {
                assert!(text.contains(verb.get_name()), "{file} lacks {}", verb.get_name());
            }
            assert!(text.contains("--client-netns") || text.contains("client-netns"), "{file} lacks the flags of verbs");
            match Process::new(shell).arg("-n").arg(&path).status() {
                Ok(status) => assert!(status.success(), "{shell} cannot read {file}"),
                Err(_) => println!("skipped: {shell} is not installed"),
            }
        }
    }

    #[test]
    fn bash_completes_verbs_and_flags() {
        let directory = tempfile::tempdir().expect("a directory");
        write(&chokepoint::command(), directory.path()).expect("written");
        let completed = |words: &[&str]| {
            let given = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
            let last = words.len() - 1;
            let script = format!(
                ". ./chokepoint.bash; COMP_WORDS=({given}); COMP_CWORD={last}; _chokepoint chokepoint '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
                words[last],
                words[last - 1],
            );
            let output = Process::new("bash").arg("-c").arg(script).current_dir(directory.path()).output().expect("bash");
            String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(completed(&["chokepoint", "diag"]), ["diagnose"]);
        assert!(completed(&["chokepoint", "diagnose", "--rep"]).contains(&"--replay".to_owned()));
    }
}
