//! The command line again, for the commands that come next: they are to be pasted as they stand.

use chokepoint_model::change::quoted;
use chokepoint_model::url::without_values;

/// Flags whose values may be secrets: a report may be passed on.
const SECRET: [&str; 4] = ["-H", "-d", "-D", "--header"];

/// Flags that stay behind: consent was given for this run alone, and its recording is not to be written over. Those of the second kind have a value.
const OF_THIS_RUN: [&str; 2] = ["--yes", "-y"];
const OF_THIS_RUN_WITH_VALUE: [&str; 1] = ["--record"];

/// The arguments of this run, and whether root gave it its rights.
#[derive(Debug, Clone)]
pub(crate) struct Again {
    args: Vec<String>,
    is_root: bool,
}

impl Again {
    /// Of these arguments without the program's name. Nothing if one of them may be a secret, or if they are a replay's, which changes nothing.
    pub(crate) fn of(args: Vec<String>, is_root: bool) -> Option<Self> {
        let is_secret = |arg: &String| SECRET.iter().any(|flag| arg.starts_with(flag)) || without_values(arg) != *arg;
        let is_replay = |arg: &String| arg.starts_with("--replay");
        (!args.iter().any(|arg| is_secret(arg) || is_replay(arg))).then(|| Self { args: kept(args), is_root })
    }

    /// The same with other flags.
    pub(super) fn with(&self, flags: &str) -> String {
        let words: Vec<String> = ["chokepoint"].into_iter().map(str::to_owned).chain(self.args.iter().map(|arg| quoted(arg))).collect();
        let flags = flags.split_ascii_whitespace().filter(|flag| !self.args.iter().any(|arg| arg == flag));
        words.into_iter().chain(flags.map(str::to_owned)).collect::<Vec<_>>().join(" ")
    }

    /// The same with other flags and with the rights of root.
    pub(super) fn as_root(&self, flags: &str) -> String {
        if self.is_root { self.with(flags) } else { format!("sudo {}", self.with(flags)) }
    }

    pub(super) fn is_root(&self) -> bool {
        self.is_root
    }
}

/// The arguments without those of this run alone.
fn kept(args: Vec<String>) -> Vec<String> {
    let mut is_value = false;
    let is_kept = |arg: &String| {
        let is_own = is_value || OF_THIS_RUN.contains(&arg.as_str());
        is_value = OF_THIS_RUN_WITH_VALUE.contains(&arg.as_str());
        let has_value = OF_THIS_RUN_WITH_VALUE.iter().any(|flag| arg.strip_prefix(flag).is_some_and(|rest| rest.starts_with('=')));
        !(is_own || is_value || has_value)
    };
    args.into_iter().filter(is_kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted_and_has_no_secrets() {
        let of = |args: &[&str], is_root| Again::of(args.iter().map(|arg| (*arg).to_owned()).collect(), is_root);
        let plain = of(&["diagnose", "-c", "10", "--slo", "p99<1s", "http://h/a"], false).unwrap();
        assert_eq!(plain.with("--verbose"), "chokepoint diagnose -c 10 --slo 'p99<1s' http://h/a --verbose");
        assert_eq!(plain.as_root("--fix"), "sudo chokepoint diagnose -c 10 --slo 'p99<1s' http://h/a --fix");
        assert_eq!(of(&["diagnose", "http://h/"], true).unwrap().as_root(""), "chokepoint diagnose http://h/");
        assert_eq!(of(&["diagnose", "--fix", "http://h/"], true).unwrap().with("--fix"), "chokepoint diagnose --fix http://h/");
        assert_eq!(of(&["diagnose", "--fix", "u"], true).unwrap().with("--load --fix"), "chokepoint diagnose --fix u --load");
        let consent = ["diagnose", "u", "-c", "32", "--yes", "--record", "a b.rec", "--record=c.rec", "--json"];
        assert_eq!(of(&consent, true).unwrap().as_root("--fix"), "chokepoint diagnose u -c 32 --json --fix");
        for secret in [&["diagnose", "-H", "Cookie: x"][..], &["diagnose", "http://h/?key=x"], &["diagnose", "http://u:p@h/"]] {
            assert!(of(secret, false).is_none(), "{secret:?}");
        }
    }
}
