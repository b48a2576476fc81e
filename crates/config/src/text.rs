//! Converts bytes to text and back without loss. Configuration files with comments in Latin-1 keep their bytes through an edit.

/// The private character that stands for byte 0 in [`decode`]'s result. Byte 0x80 to 0xff is this character plus the byte's value.
const STAND_IN: u32 = 0xf700;

/// Text of any bytes. Valid UTF-8 stays as it is. Every other byte becomes one private character (U+F780 to U+F7FF) that [`encode`] turns
/// back. If a file really contains those characters, each is treated as three such bytes, so that the round trip is exact.
pub fn decode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if is_stand_in(character) {
                let mut buffer = [0; 4];
                character.encode_utf8(&mut buffer).bytes().for_each(|byte| text.push(stand_in(byte)));
            } else {
                text.push(character);
            }
        }
        chunk.invalid().iter().for_each(|&byte| text.push(stand_in(byte)));
    }
    text
}

/// The bytes of a text that came from [`decode`], edited or not.
pub fn encode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut buffer = [0; 4];
    for character in text.chars() {
        if is_stand_in(character) {
            bytes.push(low_byte(character));
        } else {
            bytes.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
        }
    }
    bytes
}

/// True for the character that stands for a byte.
pub(crate) fn is_stand_in(character: char) -> bool {
    (STAND_IN + 0x80..=STAND_IN + 0xff).contains(&u32::from(character))
}

fn stand_in(byte: u8) -> char {
    char::from_u32(STAND_IN + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn low_byte(character: char) -> u8 {
    (u32::from(character) & 0xff) as u8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn valid_text_is_left_alone() {
        assert_eq!(decode("größe €".as_bytes()), "größe €");
        assert_eq!(encode("größe €"), "größe €".as_bytes());
    }

    #[test]
    fn a_latin_1_comment_survives() {
        let bytes = b"# Gr\xf6\xdfe\nuser www;\n";
        let text = decode(bytes);
        assert!(text.ends_with("user www;\n"), "{text}");
        assert_eq!(encode(&text), bytes);
    }

    #[test]
    fn the_stand_ins_themselves_survive() {
        let bytes = "\u{f7ff}\u{f780}\u{f700}".as_bytes();
        assert_eq!(encode(&decode(bytes)), bytes);
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(encode(&decode(&bytes)), bytes);
        }
    }
}
