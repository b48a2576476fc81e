//! One of something: English has another form for it, and so have the verbs behind it. The sentences of the catalogue are written for several.

/// What is counted: several, and one.
const NOUNS: [(&str, &str); 39] = [
    ("addresses", "address"),
    ("bytes", "byte"),
    ("children", "child"),
    ("clients", "client"),
    ("connections", "connection"),
    ("cores", "core"),
    ("descriptors", "descriptor"),
    ("edges", "edge"),
    ("entries", "entry"),
    ("files", "file"),
    ("handshakes", "handshake"),
    ("incidents", "incident"),
    ("lines", "line"),
    ("looks", "look"),
    ("namespaces", "namespace"),
    ("overflows", "overflow"),
    ("packets", "packet"),
    ("pages", "page"),
    ("periods", "period"),
    ("points", "point"),
    ("ports", "port"),
    ("processes", "process"),
    ("readings", "reading"),
    ("reports", "report"),
    ("requests", "request"),
    ("responses", "response"),
    ("rounds", "round"),
    ("runs", "run"),
    ("samples", "sample"),
    ("segments", "segment"),
    ("servers", "server"),
    ("sockets", "socket"),
    ("stations", "station"),
    ("steps", "step"),
    ("targets", "target"),
    ("threads", "thread"),
    ("timeouts", "timeout"),
    ("times", "time"),
    ("workers", "worker"),
];
/// Words that may stand between the number and what is counted.
const BETWEEN: [&str; 16] = [
    "accepted",
    "closed",
    "consecutive",
    "good",
    "idle",
    "local",
    "more",
    "new",
    "open",
    "other",
    "retransmitted",
    "sampled",
    "serving",
    "single",
    "unread",
    "watched",
];
/// Verbs of several, and of one.
const VERBS: [(&str, &str); 8] = [
    ("are", "is"),
    ("carry", "carries"),
    ("do", "does"),
    ("have", "has"),
    ("run", "runs"),
    ("send", "sends"),
    ("wait", "waits"),
    ("were", "was"),
];

/// The sentence with the forms of one wherever a number in it is one.
pub(super) fn agreed(text: String) -> String {
    if !text.contains("1 ") {
        return text;
    }
    let words: Vec<&str> = text.split(' ').collect();
    let mut told: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    for at in 0..words.len() {
        // "(1", but neither "0-1" nor "10.0.0.1".
        if words[at].trim_start_matches(['(', '"']) != "1" {
            continue;
        }
        let noun = if words.get(at + 1).is_some_and(|word| BETWEEN.contains(word)) { at + 2 } else { at + 1 };
        let Some(one) = words.get(noun).and_then(|word| replaced(word, &NOUNS)) else { continue };
        told[noun] = one;
        // In "5 of 1 worker were" the verb is that of the five.
        let is_part = at > 0 && matches!(words[at - 1], "of" | "the");
        // "1 connection of nginx carries".
        let verb_at = if words.get(noun + 1) == Some(&"of") { noun + 3 } else { noun + 1 };
        if let Some(verb) = words.get(verb_at).filter(|_| !is_part && words[noun].chars().all(char::is_alphabetic)) {
            told[verb_at] = replaced(verb, &VERBS).unwrap_or_else(|| (*verb).to_owned());
        }
    }
    told.join(" ")
}

/// The word with the form of one, if it is the form of several with at most something that is no letter behind it.
fn replaced(word: &str, forms: &[(&str, &str)]) -> Option<String> {
    let (several, one) = forms.iter().find(|(several, _)| word.strip_prefix(several).is_some_and(is_no_word))?;
    Some(word.replacen(several, one, 1))
}

fn is_no_word(rest: &str) -> bool {
    !rest.starts_with(|first: char| first.is_alphanumeric() || first == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_its_own_form() {
        for (text, told) in [
            ("1 connections were accepted.", "1 connection was accepted."),
            ("0.2 connections do not show it.", "0.2 connections do not show it."),
            ("1 connections do not show it.", "1 connection does not show it."),
            ("1 connections of nginx-2 do not show it.", "1 connection of nginx-2 does not show it."),
            ("Other clients had 1 of the 21 requests.", "Other clients had 1 of the 21 requests."),
            ("1 of 1 workers were busy", "1 of 1 worker were busy"),
            ("(1 requests in 5 s) at 10.0.0.1 ports 1, 2", "(1 request in 5 s) at 10.0.0.1 ports 1, 2"),
            ("1 more connections have 1 requests/s, 11 samples, 1,001 files", "1 more connection has 1 request/s, 11 samples, 1,001 files"),
            ("cores 0-1 are busy, and 1 is idle", "cores 0-1 are busy, and 1 is idle"),
        ] {
            assert_eq!(agreed(text.to_owned()), told);
        }
    }
}
