//! Matches regular expressions of locations and server names in linear time: yes, no, or unknown if only PCRE can decide.

use std::fmt;

use regex_lite::{Regex, RegexBuilder};

/// Memory limit of one compiled expression, bytes. Counted repetitions multiply its size.
const PROGRAM_BYTES_MAX: usize = 256 << 10;
/// Most levels of nested groups.
const GROUP_DEPTH_MAX: u32 = 32;

/// Whether a text matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// It matches.
    Yes,
    /// It does not match.
    No,
    /// The expression uses features of PCRE only: look-around, back-references, possessive repetitions, Unicode and POSIX classes, inline options.
    Unknown,
}

/// A PCRE pattern of a configuration.
#[derive(Clone)]
pub struct Pattern {
    /// As written.
    pub text: String,
    /// Whether it ignores case (`~*`).
    pub caseless: bool,
    /// `None` if the pattern cannot be evaluated here.
    regex: Option<Regex>,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        (&self.text, self.caseless) == (&other.text, other.caseless)
    }
}

impl Eq for Pattern {}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/{}", self.text, if self.caseless { "i" } else { "" })
    }
}

impl Pattern {
    /// Parses a pattern. A pattern that cannot be evaluated gives [`Match::Unknown`].
    pub fn new(text: &str, caseless: bool) -> Self {
        let body = text.strip_prefix("(?i)");
        let caseless = caseless || body.is_some();
        let regex = translated(body.unwrap_or(text)).and_then(|pattern| {
            let mut builder = RegexBuilder::new(&pattern);
            builder.case_insensitive(caseless).size_limit(PROGRAM_BYTES_MAX).nest_limit(GROUP_DEPTH_MAX).build().ok()
        });
        Self { text: text.to_owned(), caseless, regex }
    }

    /// Whether the pattern matches anywhere in the text.
    pub fn is_match(&self, text: &str) -> Match {
        let Some(regex) = &self.regex else { return Match::Unknown };
        // PCRE's `$` also matches before a line feed at the end.
        let without_end = text.strip_suffix('\n');
        if regex.is_match(text) || without_end.is_some_and(|text| regex.is_match(text)) { Match::Yes } else { Match::No }
    }
}

/// The pattern in the syntax of `regex_lite`; `None` if that cannot express it, or if the same text has another meaning in PCRE.
fn translated(pattern: &str) -> Option<String> {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern;
    while let Some(character) = rest.chars().next() {
        let behind = &rest[character.len_utf8()..];
        rest = match character {
            '\\' => escape(behind, "bBAzZ", &mut out)?,
            '[' => class(behind, &mut out)?,
            '(' => group(behind, &mut out)?,
            '*' | '+' | '?' => repetition(1, rest, &mut out)?,
            '{' => match count_bytes(rest) {
                Some(bytes) => repetition(bytes, rest, &mut out)?,
                None => {
                    out.push_str("\\{");
                    behind
                }
            },
            _ => {
                out.push(character);
                behind
            }
        };
    }
    Some(out)
}

/// Copies an escape. `rest` begins after its backslash. `anchors` are the letters that match a position in the text.
fn escape<'p>(rest: &'p str, anchors: &str, out: &mut String) -> Option<&'p str> {
    let character = rest.chars().next()?;
    match character {
        'Z' if anchors.contains('Z') => out.push_str("\\z"),
        _ if "dDwWsStnr".contains(character) || anchors.contains(character) => out.extend(['\\', character]),
        _ if character.is_ascii_alphanumeric() => return None,
        _ => out.push_str(&regex_lite::escape(&rest[..character.len_utf8()])),
    }
    Some(&rest[character.len_utf8()..])
}

/// Copies a class. `rest` begins after its `[`.
fn class<'p>(mut rest: &'p str, out: &mut String) -> Option<&'p str> {
    out.push('[');
    for sign in ['^', ']'] {
        if let Some(behind) = rest.strip_prefix(sign) {
            out.push_str(if sign == ']' { "\\]" } else { "^" });
            rest = behind;
        }
    }
    loop {
        let character = rest.chars().next()?;
        let behind = &rest[character.len_utf8()..];
        rest = match character {
            ']' => {
                out.push(']');
                return Some(behind);
            }
            '[' if behind.starts_with([':', '.', '=']) => return None,
            '\\' if behind.starts_with('b') => {
                out.push_str("\\x08");
                &behind[1..]
            }
            '\\' => {
                let after = escape(behind, "", out)?;
                // After a class, PCRE takes a hyphen literally.
                match after.strip_prefix('-').filter(|_| behind.starts_with(['d', 'D', 'w', 'W', 's', 'S'])) {
                    Some(after) => {
                        out.push_str("\\-");
                        after
                    }
                    None => after,
                }
            }
            // `regex` reserves some of these for set operations.
            '[' | '&' | '~' => {
                out.extend(['\\', character]);
                behind
            }
            _ => {
                out.push(character);
                behind
            }
        };
    }
}

/// Copies the beginning of a group. `rest` begins after its `(`. Only plain, unnamed and named groups are the same in both.
fn group<'p>(rest: &'p str, out: &mut String) -> Option<&'p str> {
    out.push('(');
    let Some(kind) = rest.strip_prefix('?') else { return Some(rest) };
    if let Some(behind) = kind.strip_prefix(':') {
        out.push_str("?:");
        return Some(behind);
    }
    let name = kind.strip_prefix("P<").or_else(|| kind.strip_prefix(['<', '\''])).filter(|name| !name.starts_with(['=', '!']))?;
    let (name, behind) = name.split_once(['>', '\''])?;
    out.push_str(&format!("?<{name}>"));
    Some(behind)
}

/// Copies a repetition of this many bytes, lazy or not. Possessive repetitions never backtrack, so they can miss a match.
fn repetition<'p>(bytes: usize, rest: &'p str, out: &mut String) -> Option<&'p str> {
    let bytes = bytes + usize::from(rest[bytes..].starts_with('?'));
    let (repetition, behind) = rest.split_at(bytes);
    out.push_str(repetition);
    let is_repeated = behind.starts_with(['*', '+', '?']) || behind.starts_with('{') && count_bytes(behind).is_some();
    (!is_repeated).then_some(behind)
}

/// Length of `{m}`, `{m,}` or `{m,n}`; `None` if the brace is a literal.
fn count_bytes(rest: &str) -> Option<usize> {
    let inner = rest.get(1..rest.find('}')?)?;
    let (least, most) = inner.split_once(',').unwrap_or((inner, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (!least.is_empty() && is_number(least) && is_number(most)).then_some(inner.len() + 2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(pattern: &str, text: &str) -> Match {
        Pattern::new(pattern, false).is_match(text)
    }

    #[test]
    fn patterns_of_real_configurations_match_as_in_pcre() {
        for (pattern, text, expected) in [
            (r"\.php$", "/index.php", Match::Yes),
            (r"\.php$", "/index.phpx", Match::No),
            (r"[^/]\.php(/|$)", "/a.php/x", Match::Yes),
            (r"^(.+\.php)(/.+)$", "/a.php/b", Match::Yes),
            (r"^(.+\.php)(/.+)$", "/a.php", Match::No),
            (r"\.(gif|jpe?g|png)$", "/x.jpeg", Match::Yes),
            (r"\.(gif|jpe?g|png)$", "/x.jpag", Match::No),
            (r"^/(api|v[0-9]+)/", "/v12/x", Match::Yes),
            (r"^/(api|v[0-9]+)/", "/v/x", Match::No),
            (r"/\.ht", "/.htaccess", Match::Yes),
            (r"^/user/(?<id>\d{2,4})$", "/user/123", Match::Yes),
            (r"^/user/(?<id>\d{2,4})$", "/user/12345", Match::No),
            (r"a{2}", "aa", Match::Yes),
            (r"^a{2,}$", "aaaa", Match::Yes),
            (r"^(ab)*$", "ababab", Match::Yes),
            (r"^(ab|c)+d$", "abccabd", Match::Yes),
            (r"^(a|b|c)x$", "cx", Match::Yes),
            (r"^(a|b|c)x$", "dx", Match::No),
            (r"^x*?$", "xx", Match::Yes),
            (r"\bfoo\b", "a foo b", Match::Yes),
            (r"\bfoo\b", "afoo", Match::No),
            (r"[]x]", "]", Match::Yes),
            (r"[a\-z]", "-", Match::Yes),
            (r"x{a}", "x{a}", Match::Yes),
            (r"", "anything", Match::Yes),
            (r"^$", "", Match::Yes),
            (r"^(?!admin)", "x", Match::Unknown),
            (r"(a)\1", "aa", Match::Unknown),
            (r"\p{L}", "a", Match::Unknown),
            (r"[[:alpha:]]", "a", Match::Unknown),
            (r"a++", "a", Match::Unknown),
            (r"a(b", "ab", Match::Unknown),
            (r"(((a{99}){99}){99})", "a", Match::Unknown),
        ] {
            assert_eq!(check(pattern, text), expected, "{pattern} on {text}");
        }
        assert_eq!(Pattern::new(r"\.PHP$", true).is_match("/a.php"), Match::Yes);
        assert_eq!(Pattern::new(r"(?i)\.PHP$", false).is_match("/a.php"), Match::Yes);
    }

    #[test]
    fn pcre_and_the_library_agree_although_their_syntax_differs() {
        for (pattern, text, expected) in [
            (r"\.php$", "/index.php\n", Match::Yes),
            (r"\.php$", "/index.php\nx", Match::No),
            (r"^[\w-.]+$", "a-b.c", Match::Yes),
            (r"^[a&&b]+$", "a&b", Match::Yes),
            (r"^[[a]+$", "[a", Match::Yes),
            (r"^a\<b\>$", "a<b>", Match::Yes),
            (r"^\/a\-b\é$", "/a-bé", Match::Yes),
            (r"^(?'n'a)\Z", "a", Match::Yes),
            (r"x{,2}", "x{,2}", Match::Yes),
            (r"[\b]", "\u{8}", Match::Yes),
            (r"a*+", "a", Match::Unknown),
            (r"a{2}+", "aa", Match::Unknown),
            (r"(?U)a+", "a", Match::Unknown),
            (r"a(?R)?b", "ab", Match::Unknown),
            (r"\v", "\n", Match::Unknown),
            (r"\x41", "A", Match::Unknown),
            (r"(*UTF8)a", "a", Match::Unknown),
        ] {
            assert_eq!(check(pattern, text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn catastrophic_patterns_take_linear_time() {
        assert_eq!(check("^(a+)+$", &("a".repeat(2_000) + "b")), Match::No);
        assert_eq!(check("(x*)*y", &"x".repeat(2_000)), Match::No);
        for pattern in ["((a{1000}){1000}){1000}", "(((){1000}){1000}){1000}", "(((a*){99}){99}){99}", "(a?){4000000000}"] {
            assert_ne!(check(pattern, &"a".repeat(2_000)), Match::No, "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn no_pattern_panics(pattern in "[ab.*+?(){}\\[\\]|^$\\\\0-9,:<>=!-]{0,16}", text in "[ab0-]{0,8}") {
            let answer = check(&pattern, &text);
            prop_assert!(matches!(answer, Match::Yes | Match::No | Match::Unknown));
        }

        #[test]
        fn a_literal_matches_texts_that_contain_it(literal in "[abc/]{1,4}", text in "[abc/]{0,10}") {
            let expected = if text.contains(&literal) { Match::Yes } else { Match::No };
            prop_assert_eq!(check(&literal, &text), expected);
        }
    }
}
