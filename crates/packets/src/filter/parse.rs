//! Parses the words of a filter: `tcp port 80 and not host 10.0.0.1`.

use std::net::IpAddr;

use super::{Expression, PacketEnd};

/// Most words of a filter. This also limits the depth of the expression.
const WORDS_MAX: usize = 200;

/// Why a filter cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// A word with no meaning at this position.
    #[error(
        "\"{word}\" is not valid here; a filter has these parts: tcp, ip, ip6, [src|dst] port N, [src|dst] host ADDRESS, [src|dst] net ADDRESS/BITS, and, or, not, ( )"
    )]
    Word {
        /// The word.
        word: String,
    },
    /// The text ends too early.
    #[error("the filter ends, but {0} is missing")]
    Ends(&'static str),
    /// The program would be longer than jumps can reach.
    #[error("the filter is too long")]
    TooLong,
}

/// The qualifier of a bare value: `port 80 or 81`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Port,
    Host,
    Net,
}

struct Words<'t> {
    words: Vec<&'t str>,
    at: usize,
    last: Option<(PacketEnd, Kind)>,
}

pub(super) fn parse(text: &str) -> Result<Expression, FilterError> {
    let words = split(text);
    if words.is_empty() {
        return Ok(Expression::Tcp);
    }
    if words.len() > WORDS_MAX {
        return Err(FilterError::TooLong);
    }
    let mut words = Words { words, at: 0, last: None };
    let expression = words.expression()?;
    match words.peek() {
        None => Ok(expression),
        Some(word) => Err(FilterError::Word { word: word.to_owned() }),
    }
}

/// Splits into words. Some signs are words by themselves.
fn split(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for mut word in text.split_whitespace() {
        while !word.is_empty() {
            let sign = ["&&", "||", "(", ")", "!"].into_iter().find(|sign| word.starts_with(sign));
            let end = sign.map_or_else(|| word.find(['(', ')', '!', '&', '|']).filter(|end| *end > 0).unwrap_or(word.len()), str::len);
            let (first, rest) = word.split_at(end);
            words.push(first);
            word = rest;
        }
    }
    words
}

impl<'t> Words<'t> {
    fn peek(&self) -> Option<&'t str> {
        self.words.get(self.at).copied()
    }

    fn next(&mut self, missing: &'static str) -> Result<&'t str, FilterError> {
        let word = self.peek().ok_or(FilterError::Ends(missing))?;
        self.at += 1;
        Ok(word)
    }

    fn takes(&mut self, words: &[&str]) -> bool {
        let is = self.peek().is_some_and(|word| words.contains(&word));
        self.at += usize::from(is);
        is
    }

    /// "and" and "or" have equal precedence, from left to right (pcap-filter(7)).
    fn expression(&mut self) -> Result<Expression, FilterError> {
        let mut left = self.factor()?;
        loop {
            if self.takes(&["and", "&&"]) {
                left = Expression::And(Box::new(left), Box::new(self.factor()?));
            } else if self.takes(&["or", "||"]) {
                left = Expression::Or(Box::new(left), Box::new(self.factor()?));
            } else {
                return Ok(left);
            }
        }
    }

    fn factor(&mut self) -> Result<Expression, FilterError> {
        if self.takes(&["not", "!"]) {
            return Ok(Expression::Not(Box::new(self.factor()?)));
        }
        if self.takes(&["("]) {
            let inner = self.expression()?;
            let word = self.next("a closing bracket")?;
            return if word == ")" { Ok(inner) } else { Err(FilterError::Word { word: word.to_owned() }) };
        }
        self.primitive()
    }

    fn primitive(&mut self) -> Result<Expression, FilterError> {
        let version = if self.takes(&["ip"]) {
            Some(false)
        } else if self.takes(&["ip6"]) {
            Some(true)
        } else {
            None
        };
        let tcp = version.is_none() && self.takes(&["tcp"]);
        let whole = self.peek().is_none_or(|word| matches!(word, "and" | "or" | "&&" | "||" | ")"));
        match version {
            Some(version) if whole => Ok(Expression::Version(version)),
            Some(version) => {
                let rest = self.qualified()?;
                Ok(Expression::And(Box::new(Expression::Version(version)), Box::new(rest)))
            }
            None if tcp && whole => Ok(Expression::Tcp),
            None => self.qualified(),
        }
    }

    fn qualified(&mut self) -> Result<Expression, FilterError> {
        let end = if self.takes(&["src"]) {
            Some(PacketEnd::Source)
        } else if self.takes(&["dst"]) {
            Some(PacketEnd::Destination)
        } else {
            None
        };
        let kind = match self.peek() {
            Some("port") => Some(Kind::Port),
            Some("host") => Some(Kind::Host),
            Some("net") => Some(Kind::Net),
            _ => None,
        };
        self.at += usize::from(kind.is_some());
        let (end, kind) = match (end, kind, self.last) {
            (end, Some(kind), _) => (end.unwrap_or(PacketEnd::Either), kind),
            // "src 10.0.0.1" is a host.
            (Some(end), None, _) => (end, Kind::Host),
            (None, None, Some(last)) if self.peek().is_some() => last,
            (None, None, _) => {
                let word = self.next("an expression")?;
                return Err(FilterError::Word { word: word.to_owned() });
            }
        };
        self.last = Some((end, kind));
        let word = self.next(match kind {
            Kind::Port => "a port",
            Kind::Host | Kind::Net => "an address",
        })?;
        value(word, end, kind).ok_or_else(|| FilterError::Word { word: word.to_owned() })
    }
}

fn value(word: &str, end: PacketEnd, kind: Kind) -> Option<Expression> {
    Some(match kind {
        Kind::Port => Expression::Port(end, word.parse().ok()?),
        Kind::Host => {
            let address: IpAddr = word.parse().ok()?;
            Expression::Net(end, address, if address.is_ipv4() { 32 } else { 128 })
        }
        Kind::Net => {
            let (address, bits) = word.split_once('/')?;
            let (address, bits): (IpAddr, u8) = (address.parse().ok()?, bits.parse().ok()?);
            (bits <= if address.is_ipv4() { 32 } else { 128 }).then_some(())?;
            Expression::Net(end, address, bits)
        }
    })
}
