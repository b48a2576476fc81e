//! Matches glob(7) patterns against names, for configurations in a dump and for the patterns of sysctl.d(5).

/// True if the text contains a wildcard, as nginx and glob(3) define it.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Whether the whole path matches. `*`, `?` and `[...]` match neither a slash nor a dot at the start of a name.
pub fn matches(pattern: &str, path: &str) -> bool {
    let mut patterns = pattern.split('/');
    let mut names = path.split('/');
    loop {
        match (patterns.next(), names.next()) {
            (None, None) => return true,
            (Some(pattern), Some(name)) if name_matches(pattern, name) => {}
            _ => return false,
        }
    }
}

/// Matches one name without a slash. Time is bounded by the product of the lengths, because only the last `*` is ever retried.
fn name_matches(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut seen) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while seen < name.len() {
        if pattern.get(at) == Some(&'*') {
            star = Some((at + 1, seen));
            at += 1;
        } else if let Some(next) = one_matches(&pattern, at, name[seen]) {
            at = next;
            seen += 1;
        } else if let Some((after, from)) = star {
            star = Some((after, from + 1));
            at = after;
            seen = from + 1;
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|&character| character == '*')
}

/// The index after the pattern's element at `at`, if that element matches this one character.
fn one_matches(pattern: &[char], at: usize, character: char) -> Option<usize> {
    match *pattern.get(at)? {
        '?' => Some(at + 1),
        '[' => match set_matches(pattern, at, character) {
            Some((true, next)) => Some(next),
            Some((false, _)) => None,
            None => (character == '[').then_some(at + 1),
        },
        '\\' if at + 1 < pattern.len() => (pattern[at + 1] == character).then_some(at + 2),
        literal => (literal == character).then_some(at + 1),
    }
}

/// A bracket expression: whether it contains the character, and the index after it; `None` if the bracket is not closed.
fn set_matches(pattern: &[char], open: usize, character: char) -> Option<(bool, usize)> {
    let mut at = open + 1;
    let negated = matches!(pattern.get(at), Some('!' | '^'));
    at += usize::from(negated);
    let first = at;
    let mut found = false;
    loop {
        let low = *pattern.get(at)?;
        if low == ']' && at > first {
            return Some((found != negated, at + 1));
        }
        match (pattern.get(at + 1), pattern.get(at + 2)) {
            (Some('-'), Some(&high)) if high != ']' => {
                found |= (low..=high).contains(&character);
                at += 3;
            }
            _ => {
                found |= low == character;
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn wildcards_stay_within_a_name() {
        for (pattern, path, expected) in [
            ("/etc/nginx/conf.d/*.conf", "/etc/nginx/conf.d/a.conf", true),
            ("/etc/nginx/conf.d/*.conf", "/etc/nginx/conf.d/sub/a.conf", false),
            ("/etc/nginx/conf.d/*.conf", "/etc/nginx/conf.d/.a.conf", false),
            ("/etc/nginx/sites-enabled/*", "/etc/nginx/sites-enabled/default", true),
            ("/etc/*/x", "/etc/a/x", true),
            ("/a?c", "/abc", true),
            ("/a?c", "/ac", false),
            ("/[a-c]x", "/bx", true),
            ("/[!a-c]x", "/bx", false),
            ("/[]]x", "/]x", true),
            ("/[x", "/[x", true),
            ("/a*b*c", "/aXbYbZc", true),
            ("/a*b*c", "/aXbYbZ", false),
            ("/*", "/", true),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(pattern in "[a*?\\[\\]!\\\\-]{0,12}", name in "[a\\[\\]!-]{0,12}") {
            let matched = matches(&pattern, &name);
            prop_assert!(!matched || !name.is_empty() || pattern.chars().all(|c| c == '*'));
        }
    }
}
