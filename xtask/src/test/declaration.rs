//! Which tests are live: they drive real servers or load, or judge what they measured. A file says so in its head, a part of a file by a module `live`.

/// What a file of integration tests says in its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Declaration {
    /// `//! Live: why`: the machine may have caused a failure, so the test is repeated. Other work may change what it measures, so it runs alone.
    LiveAlone,
    /// `//! Live beside others: why`: the machine may have caused a failure, but the verdict does not depend on how busy the machine is.
    LiveBesideOthers,
    /// `//! Deterministic: why`: a failure is a defect, even if the test passes at other times.
    Deterministic,
}

/// The declaration in a file's head. `None` if there is none, if its reason is missing, or if two contradict each other.
pub(crate) fn declaration(text: &str) -> Option<Declaration> {
    let head = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim_start);
    let mut found = head.filter_map(|line| {
        let (word, reason) = line.split_once(": ")?;
        let declaration = match word {
            "Live" => Declaration::LiveAlone,
            "Live beside others" => Declaration::LiveBesideOthers,
            "Deterministic" => Declaration::Deterministic,
            _ => return None,
        };
        (!reason.trim().is_empty()).then_some(declaration)
    });
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

/// True if the test's innermost module is named `live`.
pub(crate) fn is_in_live_module(test: &str) -> bool {
    test.rsplit("::").nth(1) == Some("live")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_declares_its_file() {
        assert_eq!(declaration("//! Loads.\n//! Live: a server.\nfn a() {}"), Some(Declaration::LiveAlone));
        assert_eq!(declaration("//! Live beside others: a server that it waits for."), Some(Declaration::LiveBesideOthers));
        assert_eq!(declaration("//! Deterministic: made-up input."), Some(Declaration::Deterministic));
        assert_eq!(declaration("//! Deterministic: made-up input.\n//! And a second line."), Some(Declaration::Deterministic));
        for none in
            ["", "//! Loads.", "//! Live:", "//! Live: \n", "fn a() {}\n//! Live: late", "//! Live: a\n//! Deterministic: b", "// Live: a"]
        {
            assert_eq!(declaration(none), None, "{none:?}");
        }
    }

    #[test]
    fn only_the_innermost_module_makes_a_test_live() {
        assert!(is_in_live_module("live::a") && is_in_live_module("servers::tests::live::a"));
        assert!(!is_in_live_module("live::tests::a") && !is_in_live_module("live") && !is_in_live_module("tests::lively::a"));
    }
}
