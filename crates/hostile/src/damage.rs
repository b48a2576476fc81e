//! Damages valid input: cuts, flips, repeats, splices, and fills it with unexpected values.

use crate::chance::Chance;

/// Longest input, bytes. One in a few thousand is this long. Most are short, so that many can be tried.
pub const LENGTH_MAX: usize = 1 << 20;
/// Longest of the other inputs, bytes.
const USUAL_MAX: usize = 4 << 10;
/// One in this many inputs may be long.
const LONG_ONE_IN: usize = 2_000;
/// Most steps of damage.
const STEPS_MAX: usize = 8;

/// Numbers as text that overflow readers.
const NUMBERS: &[&[u8]] = &[
    b"0",
    b"-1",
    b"00000000000000000000000000000007",
    b"127",
    b"255",
    b"256",
    b"32768",
    b"65535",
    b"65536",
    b"2147483647",
    b"2147483648",
    b"4294967295",
    b"4294967296",
    b"9223372036854775807",
    b"9223372036854775808",
    b"-9223372036854775808",
    b"18446744073709551615",
    b"18446744073709551616",
    b"99999999999999999999999999999999999999999",
    b"1e309",
    b"-1e309",
    b"NaN",
    b"0x7fffffffffffffff",
    b"ffffffffffffffff",
    b"0.00000000000000000000001",
    b"99999999999999999.999999999999999999",
];
/// Numbers as bytes. 1, 2, 4 or 8 of them are written.
const WORDS: &[u64] = &[
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
    u64::MAX - 7,
];
/// Bytes with a meaning in most formats, and sequences that are invalid or unusual UTF-8.
const PIECES: &[&[u8]] = &[
    b"\0",
    b"\n",
    b"\r\n",
    b"\r",
    b"\t",
    b" ",
    b"\"",
    b"'",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b"(",
    b")",
    b";",
    b":",
    b",",
    b"=",
    b"#",
    b"$",
    b"${",
    b"%",
    b"*",
    b"/",
    b"..",
    b"-",
    b"|",
    b"&",
    b"~",
    b"^",
    b"\xff",
    b"\xc3",
    b"\xe2\x82",
    b"\xf4\x90\x80\x80",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    "\u{202e}".as_bytes(),
    "\u{10ffff}".as_bytes(),
    b"\x1b[31m",
];

/// Valid inputs, and the words of their format.
#[derive(Debug, Clone)]
pub struct Corpus {
    /// Valid inputs, at least one.
    pub inputs: Vec<Vec<u8>>,
    /// Words that readers know.
    pub words: Vec<Vec<u8>>,
    /// Whether a part from the middle of an input can be parsed. True for lines of text, false for a file that begins with a header.
    pub parts: bool,
}

impl Corpus {
    /// Text. Its words are found automatically.
    pub fn text(inputs: &[&str]) -> Self {
        let is_word = |letter: char| letter.is_alphanumeric() || "_.-".contains(letter);
        let mut words: Vec<Vec<u8>> = inputs
            .iter()
            .flat_map(|text| text.split(|letter| !is_word(letter)))
            .filter(|word| (2..40).contains(&word.len()))
            .map(|word| word.as_bytes().to_vec())
            .collect();
        words.sort();
        words.dedup();
        Self { inputs: inputs.iter().map(|text| text.as_bytes().to_vec()).collect(), words, parts: true }
    }

    /// Binary data that is read from its start.
    pub fn bytes(inputs: Vec<Vec<u8>>) -> Self {
        Self { inputs, words: Vec::new(), parts: false }
    }

    /// One damaged input.
    pub fn damaged(&self, chance: &mut Chance) -> Vec<u8> {
        let bound = if chance.once_in(LONG_ONE_IN) { LENGTH_MAX } else { USUAL_MAX };
        let input = match chance.below(10) {
            0 => (0..chance.below(300)).map(|_| chance.byte()).collect(),
            1 => self.soup(chance),
            _ => self.part(chance, bound),
        };
        self.damage_within(input, chance, bound)
    }

    /// One input with damage.
    pub fn damage(&self, input: Vec<u8>, chance: &mut Chance) -> Vec<u8> {
        self.damage_within(input, chance, USUAL_MAX)
    }

    fn damage_within(&self, mut input: Vec<u8>, chance: &mut Chance, bound: usize) -> Vec<u8> {
        // Often few steps: readers get furthest into input with little damage.
        let steps_max = chance.below(STEPS_MAX);
        for _ in 0..chance.below(steps_max + 1) {
            self.step(&mut input, chance, bound);
        }
        if bound == LENGTH_MAX {
            self.repeat(&mut input, chance, bound);
        }
        input.truncate(if self.parts { bound } else { LENGTH_MAX });
        input
    }

    /// A valid input, or a part of a long one.
    fn part(&self, chance: &mut Chance, bound: usize) -> Vec<u8> {
        let whole = chance.of(&self.inputs).cloned().unwrap_or_default();
        if !self.parts || whole.len() <= bound && !chance.once_in(4) {
            return whole;
        }
        let start = chance.below(whole.len());
        // Most parts begin at the start of a line.
        let line = whole[..start].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let start = if chance.once_in(8) { start } else { line };
        let length = 1 + chance.below(bound / 2);
        whole[start..whole.len().min(start + length)].to_vec()
    }

    /// Words and pieces in random order.
    fn soup(&self, chance: &mut Chance) -> Vec<u8> {
        let mut input = Vec::new();
        for _ in 0..chance.below(60) {
            input.extend_from_slice(&self.piece(chance));
            if chance.once_in(3) {
                input.push(b' ');
            }
        }
        input
    }

    fn piece(&self, chance: &mut Chance) -> Vec<u8> {
        match chance.below(4) {
            0 => chance.of(NUMBERS).map_or_else(Vec::new, |number| number.to_vec()),
            1 | 2 if !self.words.is_empty() => chance.of(&self.words).cloned().unwrap_or_default(),
            _ => chance.of(PIECES).map_or_else(Vec::new, |piece| piece.to_vec()),
        }
    }

    /// One step of damage.
    fn step(&self, input: &mut Vec<u8>, chance: &mut Chance, bound: usize) {
        let at = chance.below(input.len() + 1);
        match chance.below(14) {
            0 => input.truncate(at),
            1 => drop(input.drain(range(input, chance))),
            2 => {
                let bit = 1 << chance.below(8);
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= bit;
                }
            }
            3 => {
                let value = chance.byte();
                if let Some(byte) = input.get_mut(at) {
                    *byte = value;
                }
            }
            4 | 5 => insert(input, at, &self.piece(chance)),
            6 => self.overwrite(input, chance),
            7 => number(input, chance),
            8 => {
                let copy = input[range(input, chance)].to_vec();
                insert(input, at, &copy);
            }
            9 => {
                let other = self.part(chance, bound);
                let piece = other[range(&other, chance)].to_vec();
                insert(input, at, &piece);
            }
            10 => self.repeat(input, chance, bound.min(input.len() + USUAL_MAX)),
            11 => self.line(input, chance),
            _ => self.word(input, chance),
        }
    }

    /// Inserts a line of another input at the start of a line.
    fn line(&self, input: &mut Vec<u8>, chance: &mut Chance) {
        let other = self.part(chance, USUAL_MAX);
        let lines: Vec<&[u8]> = other.split_inclusive(|byte| *byte == b'\n').collect();
        let from = chance.below(input.len() + 1);
        let at = input[from..].iter().position(|byte| *byte == b'\n').map_or(0, |into| from + into + 1);
        if let Some(line) = chance.of(&lines) {
            insert(input, at, line);
        }
    }

    /// Replaces a word with another word or a number.
    fn word(&self, input: &mut Vec<u8>, chance: &mut Chance) {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-/:$".contains(byte);
        let from = chance.below(input.len() + 1);
        let Some(start) = input[from..].iter().position(is_word).map(|into| from + into) else { return };
        let end = input[start..].iter().position(|byte| !is_word(byte)).map_or(input.len(), |into| start + into);
        let new = if self.words.is_empty() || chance.once_in(4) {
            self.piece(chance)
        } else {
            chance.of(&self.words).cloned().unwrap_or_default()
        };
        input.splice(start..end, new);
    }

    /// Overwrites bytes with a number or a piece.
    fn overwrite(&self, input: &mut [u8], chance: &mut Chance) {
        let word = chance.of(WORDS).copied().unwrap_or_default();
        let word = if chance.once_in(2) { word.to_le_bytes() } else { word.rotate_left(32).to_be_bytes() };
        let size = 1 << chance.below(4);
        let new = if chance.once_in(3) { self.piece(chance) } else { word[..size].to_vec() };
        let at = chance.below(input.len());
        input.iter_mut().skip(at).zip(new).for_each(|(old, new)| *old = new);
    }

    /// Inserts one piece many times: deeply nested, or in a long row.
    fn repeat(&self, input: &mut Vec<u8>, chance: &mut Chance, bound: usize) {
        let part = range(input, chance);
        let part = part.start..part.end.min(part.start + 200);
        let piece = if chance.once_in(2) { self.piece(chance) } else { input[part].to_vec() };
        let room = bound.saturating_sub(input.len()) / piece.len().max(1);
        let at = chance.below(input.len() + 1);
        let times = chance.below(room);
        insert(input, at, &piece.repeat(times));
    }
}

/// A part of an input. Most parts are short.
fn range(input: &[u8], chance: &mut Chance) -> std::ops::Range<usize> {
    let start = chance.below(input.len() + 1);
    let most = if chance.once_in(4) { input.len() - start } else { (input.len() - start).min(64) };
    start..start + chance.below(most + 1)
}

fn insert(input: &mut Vec<u8>, at: usize, piece: &[u8]) {
    input.splice(at..at, piece.iter().copied());
}

/// Replaces a number written in digits with another one.
fn number(input: &mut Vec<u8>, chance: &mut Chance) {
    let from = chance.below(input.len() + 1);
    let Some(start) = input[from..].iter().position(u8::is_ascii_digit).map(|into| from + into) else { return };
    let end = input[start..].iter().position(|byte| !byte.is_ascii_digit()).map_or(input.len(), |into| start + into);
    let new = chance.of(NUMBERS).copied().unwrap_or_default();
    input.splice(start..end, new.iter().copied());
}
