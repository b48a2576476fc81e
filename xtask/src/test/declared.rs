//! Which tests are live: they drive real servers or load, or judge what they measured. Their files say so in their head; a part of a file is a module `live`.

/// What a file of integration tests says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Declared {
    /// `//! Live: why`: a failure may be the machine's, so it is looked at again. Other tests may change what it measures: it runs by itself.
    Live,
    /// `//! Live beside others: why`: the same, and what it judges is no matter of how busy the machine is.
    LiveBeside,
    /// `//! Deterministic: why`: a failure is a defect, however often it passes otherwise.
    Deterministic,
}

/// The declaration in a file's head; nothing where there is none, none with a reason, or both.
pub(crate) fn declared(text: &str) -> Option<Declared> {
    let head = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim_start);
    let mut found = head.filter_map(|line| {
        let (word, reason) = line.split_once(": ")?;
        let declared = match word {
            "Live" => Declared::Live,
            "Live beside others" => Declared::LiveBeside,
            "Deterministic" => Declared::Deterministic,
            _ => return None,
        };
        (!reason.trim().is_empty()).then_some(declared)
    });
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

/// True for a test whose innermost module is named `live`.
pub(crate) fn is_in_live_module(test: &str) -> bool {
    test.rsplit("::").nth(1) == Some("live")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_declares_its_file() {
        assert_eq!(declared("//! Loads.\n//! Live: a server.\nfn a() {}"), Some(Declared::Live));
        assert_eq!(declared("//! Live beside others: a server that it waits for."), Some(Declared::LiveBeside));
        assert_eq!(declared("//! Deterministic: made-up input."), Some(Declared::Deterministic));
        assert_eq!(declared("//! Deterministic: made-up input.\n//! And a second line."), Some(Declared::Deterministic));
        for none in
            ["", "//! Loads.", "//! Live:", "//! Live: \n", "fn a() {}\n//! Live: late", "//! Live: a\n//! Deterministic: b", "// Live: a"]
        {
            assert_eq!(declared(none), None, "{none:?}");
        }
    }

    #[test]
    fn a_module_is_live_by_its_own_name() {
        assert!(is_in_live_module("live::a") && is_in_live_module("servers::tests::live::a"));
        assert!(!is_in_live_module("live::tests::a") && !is_in_live_module("live") && !is_in_live_module("tests::lively::a"));
    }
}
