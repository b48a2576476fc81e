//! Regular expressions of locations and server names, answered in linear time: yes, no, or "may match" for what only PCRE itself could say.

use std::fmt;

/// Instructions that one expression may take; counted repetitions multiply.
const PROGRAM_MAX: usize = 4_000;
/// Repetitions that one count may ask for.
const COUNT_MAX: usize = 1_000;
/// Groups within groups.
const GROUP_DEPTH_MAX: usize = 32;

/// Whether a text matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// The expression uses what this matcher does not know: look-around, back-references, Unicode classes, inline options.
    Unknown,
}

/// A PCRE pattern of a configuration.
#[derive(Clone, PartialEq, Eq)]
pub struct Pattern {
    /// As written.
    pub text: String,
    /// Compared without regard to case (`~*`).
    pub caseless: bool,
    /// Nothing where it cannot be evaluated here.
    program: Option<Vec<Instruction>>,
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/{}", self.text, if self.caseless { "i" } else { "" })
    }
}

/// One step of a Thompson automaton (Ken Thompson, Regular expression search algorithm, 1968).
#[derive(Debug, Clone, PartialEq, Eq)]
enum Instruction {
    Set { ranges: Vec<(char, char)>, negated: bool },
    Split(usize, usize),
    Jump(usize),
    Start,
    End,
    Boundary { negated: bool },
    Accept,
}

impl Pattern {
    /// Reads a pattern. One that cannot be evaluated is kept and matches [`Match::Unknown`].
    pub fn new(text: &str, caseless: bool) -> Self {
        let (body, inline) = match text.strip_prefix("(?i)") {
            Some(body) => (body, true),
            None => (text, false),
        };
        let mut compiler = Compiler { rest: body.chars().collect(), at: 0, program: Vec::new(), depth: 0 };
        let program = compiler.whole().map(|()| compiler.program);
        Self { text: text.to_owned(), caseless: caseless || inline, program }
    }

    /// Whether the pattern matches anywhere in the text.
    pub fn is_match(&self, text: &str) -> Match {
        let Some(program) = &self.program else { return Match::Unknown };
        let characters: Vec<char> = text.chars().collect();
        let mut current = Threads::new(program.len());
        let mut next = Threads::new(program.len());
        for at in 0..=characters.len() {
            // The search is not anchored: a new thread begins at every character.
            if current.follow(program, 0, &characters, at) {
                return Match::Yes;
            }
            let Some(&character) = characters.get(at) else { break };
            next.clear();
            for index in 0..current.list.len() {
                let from = current.list[index];
                if let Instruction::Set { ranges, negated } = &program[from]
                    && holds(ranges, character, self.caseless) != *negated
                    && next.follow(program, from + 1, &characters, at + 1)
                {
                    return Match::Yes;
                }
            }
            std::mem::swap(&mut current, &mut next);
        }
        Match::No
    }
}

fn holds(ranges: &[(char, char)], character: char, caseless: bool) -> bool {
    let within = |c: char| ranges.iter().any(|&(low, high)| (low..=high).contains(&c));
    within(character) || caseless && (within(character.to_ascii_lowercase()) || within(character.to_ascii_uppercase()))
}

/// The set of instructions that wait for the next character.
struct Threads {
    list: Vec<usize>,
    seen: Vec<bool>,
    stack: Vec<usize>,
}

impl Threads {
    fn new(len: usize) -> Self {
        Self { list: Vec::new(), seen: vec![false; len], stack: Vec::new() }
    }

    fn clear(&mut self) {
        self.list.clear();
        self.seen.fill(false);
    }

    /// Adds everything reachable from `start` without a character; true if that is the end.
    fn follow(&mut self, program: &[Instruction], start: usize, text: &[char], at: usize) -> bool {
        self.stack.push(start);
        while let Some(index) = self.stack.pop() {
            if std::mem::replace(&mut self.seen[index], true) {
                continue;
            }
            let word =
                |index: Option<usize>| index.and_then(|index| text.get(index)).is_some_and(|c| c.is_ascii_alphanumeric() || *c == '_');
            let goes_on = match program[index] {
                Instruction::Accept => {
                    self.stack.clear();
                    return true;
                }
                Instruction::Set { .. } => {
                    self.list.push(index);
                    false
                }
                Instruction::Jump(to) => {
                    self.stack.push(to);
                    false
                }
                Instruction::Split(a, b) => {
                    self.stack.extend([a, b]);
                    false
                }
                Instruction::Start => at == 0,
                Instruction::End => at == text.len() || at + 1 == text.len() && text[at] == '\n',
                Instruction::Boundary { negated } => (word(at.checked_sub(1)) != word(Some(at))) != negated,
            };
            if goes_on {
                self.stack.push(index + 1);
            }
        }
        false
    }
}

/// Recursive descent over the pattern; every function gives nothing where the pattern is beyond this matcher.
struct Compiler {
    rest: Vec<char>,
    at: usize,
    program: Vec<Instruction>,
    depth: usize,
}

impl Compiler {
    fn peek(&self) -> Option<char> {
        self.rest.get(self.at).copied()
    }

    fn eat(&mut self, text: &str) -> bool {
        let len = text.chars().count();
        let found = self.rest.get(self.at..self.at + len).is_some_and(|part| part.iter().copied().eq(text.chars()));
        self.at += if found { len } else { 0 };
        found
    }

    fn emit(&mut self, instruction: Instruction) -> Option<()> {
        if self.program.len() >= PROGRAM_MAX {
            return None;
        }
        self.program.push(instruction);
        Some(())
    }

    fn whole(&mut self) -> Option<()> {
        self.alternatives()?;
        if self.at < self.rest.len() {
            return None;
        }
        self.emit(Instruction::Accept)
    }

    fn alternatives(&mut self) -> Option<()> {
        let start = self.program.len();
        let mut jumps = Vec::new();
        let mut branch = start;
        self.sequence()?;
        while self.eat("|") {
            // The branch so far moves by one for the split in front of it.
            self.insert(branch)?;
            jumps.push(self.program.len());
            self.emit(Instruction::Jump(0))?;
            let after = self.program.len();
            self.program[branch] = Instruction::Split(branch + 1, after);
            branch = after;
            self.sequence()?;
        }
        let end = self.program.len();
        for jump in jumps {
            self.program[jump] = Instruction::Jump(end);
        }
        Some(())
    }

    /// Makes room for one instruction at `at`; what lies behind it moves with its targets.
    fn insert(&mut self, at: usize) -> Option<()> {
        self.emit(Instruction::Accept)?;
        let moved = |target: usize| if target >= at { target + 1 } else { target };
        for instruction in &mut self.program[at..] {
            match instruction {
                Instruction::Jump(to) => *to = moved(*to),
                Instruction::Split(a, b) => (*a, *b) = (moved(*a), moved(*b)),
                _ => {}
            }
        }
        self.program[at..].rotate_right(1);
        Some(())
    }

    fn sequence(&mut self) -> Option<()> {
        while let Some(character) = self.peek() {
            if matches!(character, '|' | ')') {
                break;
            }
            let start = self.program.len();
            self.atom()?;
            self.repetition(start)?;
        }
        Some(())
    }

    fn atom(&mut self) -> Option<()> {
        let character = self.peek()?;
        self.at += 1;
        match character {
            '^' => self.emit(Instruction::Start),
            '$' => self.emit(Instruction::End),
            '.' => self.emit(Instruction::Set { ranges: vec![('\n', '\n')], negated: true }),
            '(' => self.group(),
            '[' => self.class(),
            '\\' => self.escape(),
            '*' | '+' | '?' => None,
            _ => self.emit(Instruction::Set { ranges: vec![(character, character)], negated: false }),
        }
    }

    fn group(&mut self) -> Option<()> {
        if self.eat("?") && !self.eat(":") {
            // A named group is a group; everything else behind `(?` is beyond this matcher.
            let named = self.eat("P<") || self.eat("<") || self.eat("'");
            if !named || matches!(self.peek(), Some('=' | '!')) {
                return None;
            }
            while !matches!(self.peek()?, '>' | '\'') {
                self.at += 1;
            }
            self.at += 1;
        }
        self.depth += 1;
        if self.depth > GROUP_DEPTH_MAX {
            return None;
        }
        self.alternatives()?;
        self.depth -= 1;
        self.eat(")").then_some(())
    }

    fn escape(&mut self) -> Option<()> {
        let character = self.peek()?;
        self.at += 1;
        let instruction = match character {
            'b' | 'B' => Instruction::Boundary { negated: character == 'B' },
            'A' => Instruction::Start,
            'z' | 'Z' => Instruction::End,
            _ => {
                let (ranges, negated) = escaped_set(character)?;
                Instruction::Set { ranges, negated }
            }
        };
        self.emit(instruction)
    }

    fn class(&mut self) -> Option<()> {
        let negated = self.eat("^");
        let mut ranges = Vec::new();
        let first = self.at;
        loop {
            let character = self.peek()?;
            self.at += 1;
            let low = match character {
                ']' if self.at > first + 1 => break,
                '[' if self.peek() == Some(':') => return None,
                '\\' => {
                    let escaped = self.peek()?;
                    self.at += 1;
                    let (set, set_negated) = if escaped == 'b' { (vec![('\u{8}', '\u{8}')], false) } else { escaped_set(escaped)? };
                    match set.as_slice() {
                        [(low, high)] if low == high && !set_negated => *low,
                        _ if set_negated => return None,
                        _ => {
                            ranges.extend(set);
                            continue;
                        }
                    }
                }
                _ => character,
            };
            let is_range = self.peek() == Some('-') && !matches!(self.rest.get(self.at + 1), None | Some(']'));
            if !is_range {
                ranges.push((low, low));
                continue;
            }
            self.at += 1;
            let mut high = self.peek()?;
            self.at += 1;
            if high == '\\' {
                high = self.peek().filter(|escaped| !escaped.is_ascii_alphanumeric())?;
                self.at += 1;
            }
            if high < low {
                return None;
            }
            ranges.push((low, high));
        }
        self.emit(Instruction::Set { ranges, negated })
    }

    /// `*`, `+`, `?`, `{2,3}`, lazy or possessive, behind the atom that began at `start`.
    fn repetition(&mut self, start: usize) -> Option<()> {
        let (least, most) = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => match self.counts() {
                Some(counts) => counts,
                None => return Some(()),
            },
            _ => return Some(()),
        };
        self.at += 1;
        // Possessive repetitions give nothing back, so that they can miss what others find.
        if self.peek() == Some('+') || least.max(most.unwrap_or(0)) > COUNT_MAX {
            return None;
        }
        self.eat("?");
        let body: Vec<Instruction> = self.program.split_off(start);
        for _ in 0..least {
            self.copy(&body, start)?;
        }
        match most {
            Some(most) => (least..most).try_for_each(|_| self.optional(&body, start)),
            None => self.looped(&body, start),
        }
    }

    /// `{m}`, `{m,}`, `{m,n}` up to but not including its `}`, which is left as the sign of a count; nothing where the brace is a literal.
    fn counts(&mut self) -> Option<(usize, Option<usize>)> {
        let close = self.rest[self.at..].iter().position(|&c| c == '}')? + self.at;
        let inner: String = self.rest[self.at + 1..close].iter().collect();
        let (least, most) = match inner.split_once(',') {
            Some((least, "")) => (least.parse().ok()?, None),
            Some((least, most)) => (least.parse().ok()?, Some(most.parse().ok()?)),
            None => (inner.parse().ok()?, Some(inner.parse().ok()?)),
        };
        self.at = close;
        Some((least, most))
    }

    /// Appends a copy of a body that was compiled at `base`.
    fn copy(&mut self, body: &[Instruction], base: usize) -> Option<()> {
        let shift = self.program.len() - base;
        for instruction in body {
            self.emit(match instruction {
                Instruction::Jump(to) => Instruction::Jump(to + shift),
                Instruction::Split(a, b) => Instruction::Split(a + shift, b + shift),
                other => other.clone(),
            })?;
        }
        Some(())
    }

    fn optional(&mut self, body: &[Instruction], base: usize) -> Option<()> {
        let split = self.program.len();
        self.emit(Instruction::Accept)?;
        self.copy(body, base)?;
        self.program[split] = Instruction::Split(split + 1, self.program.len());
        Some(())
    }

    fn looped(&mut self, body: &[Instruction], base: usize) -> Option<()> {
        let split = self.program.len();
        self.optional(body, base)?;
        self.emit(Instruction::Jump(split))?;
        self.program[split] = Instruction::Split(split + 1, self.program.len());
        Some(())
    }
}

/// The characters that an escape stands for; nothing for one that is beyond this matcher.
fn escaped_set(character: char) -> Option<(Vec<(char, char)>, bool)> {
    let digits = vec![('0', '9')];
    let words = vec![('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];
    let blanks = vec![(' ', ' '), ('\t', '\r')];
    let one = |c: char| Some((vec![(c, c)], false));
    match character {
        'd' => Some((digits, false)),
        'D' => Some((digits, true)),
        'w' => Some((words, false)),
        'W' => Some((words, true)),
        's' => Some((blanks, false)),
        'S' => Some((blanks, true)),
        't' => one('\t'),
        'n' => one('\n'),
        'r' => one('\r'),
        _ if character.is_ascii_alphanumeric() => None,
        _ => one(character),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(pattern: &str, text: &str) -> Match {
        Pattern::new(pattern, false).is_match(text)
    }

    #[test]
    fn patterns_of_real_configurations() {
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
    fn catastrophic_patterns_take_linear_time() {
        assert_eq!(check("^(a+)+$", &("a".repeat(2_000) + "b")), Match::No);
        assert_eq!(check("(x*)*y", &"x".repeat(2_000)), Match::No);
    }

    proptest! {
        #[test]
        fn any_pattern_gives_an_answer(pattern in "[ab.*+?(){}\\[\\]|^$\\\\0-9,:<>=!-]{0,16}", text in "[ab0-]{0,8}") {
            let answer = check(&pattern, &text);
            prop_assert!(matches!(answer, Match::Yes | Match::No | Match::Unknown));
        }

        #[test]
        fn a_literal_matches_where_it_is_contained(literal in "[abc/]{1,4}", text in "[abc/]{0,10}") {
            let expected = if text.contains(&literal) { Match::Yes } else { Match::No };
            prop_assert_eq!(check(&literal, &text), expected);
        }
    }
}
