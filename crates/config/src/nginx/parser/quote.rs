//! Quotes a value as a word of an nginx configuration.

/// The word that nginx reads back as this value: unquoted if that is safe, otherwise in double quotes.
pub fn quoted(value: &str) -> String {
    if is_plain(value) {
        return value.to_owned();
    }
    let mut word = String::with_capacity(value.len() + 2);
    word.push('"');
    for character in value.chars() {
        if matches!(character, '"' | '\\') {
            word.push('\\');
        }
        word.push(character);
    }
    word.push('"');
    word
}

/// True for a value that needs no quotes. A backslash is safe if it begins none of nginx's six escapes and is not at the end.
fn is_plain(value: &str) -> bool {
    let Some(first) = value.chars().next() else { return false };
    if matches!(first, '#' | '"' | '\'' | '}') {
        return false;
    }
    let mut characters = value.chars().peekable();
    let mut after_dollar = false;
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' | '\r' | '\n' | ';' => return false,
            '{' if !after_dollar => return false,
            '{' => continue,
            '\\' => match characters.next() {
                None | Some('"' | '\'' | '\\' | 't' | 'r' | 'n') => return false,
                Some(_) => after_dollar = false,
            },
            _ => after_dollar = character == '$',
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::nginx::parse;

    fn read_back(value: &str) -> String {
        let text = format!("x {};", quoted(value));
        let file = parse("f", &text).expect("a quoted value parses");
        assert_eq!(file.directives()[0].args().len(), 1, "{text}");
        file.directives()[0].args()[0].value.clone()
    }

    #[test]
    fn only_values_that_need_quotes_get_them() {
        for value in ["8192", "on", "$host", "${host}x", "\\.php$", "unix:/run/a.sock", "http://a/b?c=d", "a\"b", "a}"] {
            assert_eq!(quoted(value), value);
        }
        for value in ["", "a b", "a;", "a{2}", "\\d{2}", "#x", "}", "\"a", "a\\", "a\\n", "\n"] {
            assert_ne!(quoted(value), value);
            assert_eq!(read_back(value), value);
        }
    }

    proptest! {
        #[test]
        fn every_value_is_read_back(value in "[ab$\\{\\}\\\\\"';# \ntrnä]{0,12}") {
            prop_assert_eq!(read_back(&value), value);
        }
    }
}
