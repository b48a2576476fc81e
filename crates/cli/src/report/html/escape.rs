//! Text from outside (names, addresses, log lines) as safe text of an HTML page, and as JSON inside one.

use std::fmt::{self, Write};

use chokepoint_foreign::printable_json;

use crate::report::view::steers;

/// The escaper of the templates: markup becomes text, and control and bidirectional characters are replaced.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visible;

impl askama::filters::Escaper for Visible {
    fn write_escaped_str<W: Write>(&self, mut dest: W, string: &str) -> fmt::Result {
        string.chars().try_for_each(|character| match character {
            '<' => dest.write_str("&lt;"),
            '>' => dest.write_str("&gt;"),
            '&' => dest.write_str("&amp;"),
            '"' => dest.write_str("&quot;"),
            '\'' => dest.write_str("&#39;"),
            '\n' | '\r' | '\t' => dest.write_char(' '),
            character if steers(character) => dest.write_char(char::REPLACEMENT_CHARACTER),
            character => dest.write_char(character),
        })
    }
}

/// JSON for a `<script type="application/json">` (HTML, "Restrictions for contents of script elements"): the same document, with a `\u` escape for every
/// character that could end the element, begin a comment or control the text. JSON has such characters only in strings.
pub(super) fn embedded(json: &str) -> String {
    printable_json(json).replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use askama::filters::Escaper;

    use super::*;

    fn escaped(text: &str) -> String {
        let mut out = String::new();
        Visible.write_escaped_str(&mut out, text).expect("a String takes everything");
        out
    }

    #[test]
    fn markup_and_control_characters_become_text() {
        assert_eq!(escaped("<script>alert(\"1\" & '2')</script>"), "&lt;script&gt;alert(&quot;1&quot; &amp; &#39;2&#39;)&lt;/script&gt;");
        assert_eq!(escaped("a\u{202e}b\u{1b}[2Jc\0d\u{2066}e\u{61c}f"), "a\u{fffd}b\u{fffd}[2Jc\u{fffd}d\u{fffd}e\u{fffd}f");
        assert_eq!(escaped("one\r\ntwo\tµ → 连接 10\u{a0}s"), "one  two µ → 连接 10\u{a0}s");
    }

    #[test]
    fn embedded_json_is_the_same_document_and_cannot_end_its_element() {
        let value = serde_json::json!({ "</script><!--": ["\u{202e}<script>&amp;\u{2028}\u{0}\u{7f}", 1.5, null, "höher \u{1f600}"] });
        let text = embedded(&value.to_string());
        assert!(!text.contains(['<', '>', '&']) && !text.contains(steers), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON still"), value);
    }
}
