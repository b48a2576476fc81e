//! Text for HTML and XML.

use chokepoint_foreign::steers;

/// Escapes text for HTML, XML and their attributes. Characters that XML 1.0 forbids, and those that would reverse or hide text, become spaces.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' => escaped.push('\n'),
            letter if steers(letter) || matches!(letter, '\u{fffe}' | '\u{ffff}') => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    #[test]
    fn special_characters_are_escaped() {
        assert_eq!(super::escape("<a b=\"c\">&'\u{1}\n\u{9b}\u{202e}"), "&lt;a b=&quot;c&quot;&gt;&amp;&#39; \n  ");
    }
}
