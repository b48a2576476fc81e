//! Makes text of other processes safe to show: names, paths, configuration lines, and errors with them. Such text must not move the cursor, change the
//! terminal, change the direction of writing or hide other text.

use std::borrow::Cow;

/// True for control characters (C0, DEL, C1), characters that change the direction of writing or separate lines (Unicode Standard Annex 9), and invisible
/// characters.
pub fn steers(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
                | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
                | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
                | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// A text for one line. Each steering character is spelled out: "\x1b", "\n", "\u{202e}".
pub fn printable(text: &str) -> Cow<'_, str> {
    spelled(text, &steers)
}

/// A text of several lines: [`printable`] except for line feeds and tabs.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    spelled(text, &|character| !matches!(character, '\n' | '\t') && steers(character))
}

/// The same JSON document with every steering character as an escape. Outside of strings, JSON has no steering characters except line feeds.
pub fn printable_json(json: &str) -> Cow<'_, str> {
    let is_hidden = |character: char| character != '\n' && steers(character);
    // Most documents, of millions of numbers, are plain ASCII: their bytes need not be decoded.
    let is_plain = |byte: u8| byte == b'\n' || (b' '..=b'~').contains(&byte);
    if json.bytes().all(is_plain) || !json.contains(is_hidden) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        if is_hidden(character) {
            character.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

fn spelled<'a>(text: &'a str, steers: &dyn Fn(char) -> bool) -> Cow<'a, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            character if !steers(character) => out.push(character),
            '\n' | '\r' | '\t' => out.extend(character.escape_default()),
            '\0'..='\u{9f}' => out.push_str(&format!("\\x{:02x}", u32::from(character))),
            character => out.extend(character.escape_unicode()),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn steering_characters_are_spelled_out() {
        let text = "a\x1b[8mb\u{9b}2Jc\u{202e}d\u{200b}e\u{7f}\u{e0041}\u{2028}";
        let spelled = "a\\x1b[8mb\\x9b2Jc\\u{202e}d\\u{200b}e\\x7f\\u{e0041}\\u{2028}";
        assert_eq!(printable(text), spelled);
        assert_eq!(printable_lines(text), spelled);
        assert_eq!(printable("a\nb\tc\r"), "a\\nb\\tc\\r");
        assert_eq!(printable_lines("a\nb\tc\r"), "a\nb\tc\\r");
        assert!(matches!(printable("höher 连接 \u{1f600} é\u{301}\u{a0}"), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn printable_text_has_no_steering_characters(text in "\\PC{0,8}[\\x00-\\x{a0}\\x{2000}-\\x{2070}\\x{e0000}-\\x{e0100}]{0,12}\\PC{0,8}") {
            prop_assert!(!printable(&text).contains(steers));
            prop_assert!(!printable_lines(&text).contains(|c: char| c != '\n' && c != '\t' && steers(c)));
            let json = serde_json::to_string(&[&text]).unwrap();
            let shown = printable_json(&json);
            prop_assert!(!shown.contains(steers));
            prop_assert_eq!(serde_json::from_str::<Vec<String>>(&shown).unwrap(), vec![text]);
        }
    }
}
