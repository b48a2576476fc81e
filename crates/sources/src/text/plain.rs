//! Names that somebody else chose, in lines of our own: they may have any characters.

/// The name on one line: control characters become "?".
pub(crate) fn one_line(name: &str) -> String {
    name.chars().map(|character| if character.is_control() { '?' } else { character }).collect()
}

/// The name as one word: control characters and white space become "?", and nothing at all "-".
pub(crate) fn one_word(name: &str) -> String {
    let plain = |character: char| if character.is_control() || character.is_whitespace() { '?' } else { character };
    if name.is_empty() { "-".to_owned() } else { name.chars().map(plain).collect() }
}
