//! `location` blocks with their effective settings, and the conditional blocks inside.

use super::pass::{Names, Pass};
use super::pattern::Pattern;
use super::scope::{Problem, Scope};
use super::settings::Settings;
use crate::{Node, SourceLine};

/// Most levels of nested locations that are followed. nginx itself allows few.
const LOCATION_DEPTH_MAX: usize = 32;

/// The requests that match a location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matcher {
    /// `= /path`.
    Exact(String),
    /// `/path` or `^~ /path`.
    Prefix {
        /// The path.
        path: String,
        /// `^~`: if this is the longest matching prefix, regular expressions are not tried.
        no_regex: bool,
    },
    /// `~ pattern` or `~* pattern`.
    Regex(Pattern),
    /// `@name`: only for internal redirects.
    Named(String),
}

impl Matcher {
    fn parse(args: &[String]) -> Option<Self> {
        let (modifier, path) = match args {
            [modifier, path] => (modifier.as_str(), path.as_str()),
            [whole] => {
                let modifier = ["^~", "~*", "=", "~"].into_iter().find(|modifier| whole.starts_with(modifier)).unwrap_or("");
                (modifier, &whole[modifier.len()..])
            }
            _ => return None,
        };
        match modifier {
            "=" => Some(Self::Exact(path.to_owned())),
            "^~" => Some(Self::Prefix { path: path.to_owned(), no_regex: true }),
            "~" => Some(Self::Regex(Pattern::new(path, false))),
            "~*" => Some(Self::Regex(Pattern::new(path, true))),
            "" if path.starts_with('@') => Some(Self::Named(path.to_owned())),
            "" => Some(Self::Prefix { path: path.to_owned(), no_regex: false }),
            _ => None,
        }
    }
}

/// An `if` or `limit_except` block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Its position.
    pub place: SourceLine,
    /// Its words as written: "if ($request_method = POST )".
    pub text: String,
    /// The settings in it.
    pub settings: Settings,
    /// The target of its requests, if it has its own pass.
    pub pass: Option<Pass>,
}

/// One `location`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// Its position.
    pub place: SourceLine,
    /// The requests that match it.
    pub matcher: Matcher,
    /// The settings in it.
    pub settings: Settings,
    /// The target of its requests.
    pub pass: Option<Pass>,
    /// Its conditional blocks.
    pub conditions: Vec<Condition>,
    /// The locations inside it.
    pub locations: Vec<Location>,
}

impl Location {
    /// The `stub_status` of this location, if any.
    pub fn stub_status(&self) -> Option<&SourceLine> {
        self.settings.own("stub_status").first().map(|directive| &directive.place)
    }

    /// True if clients cannot reach it directly.
    pub fn is_internal(&self) -> bool {
        matches!(self.matcher, Matcher::Named(_)) || !self.settings.own("internal").is_empty()
    }

    /// A path that certainly matches this location: its own, for an exact or prefix match.
    pub fn path(&self) -> Option<&str> {
        match &self.matcher {
            Matcher::Exact(path) | Matcher::Prefix { path, .. } => Some(path),
            Matcher::Regex(_) | Matcher::Named(_) => None,
        }
    }
}

/// The locations and conditional blocks directly in a block.
pub(crate) struct Inner {
    pub(crate) locations: Vec<Location>,
    pub(crate) conditions: Vec<Condition>,
}

impl Inner {
    /// Reads the blocks of a server or location.
    pub(crate) fn read(scope: &mut Scope<'_>, blocks: &[Node], outer: &Settings, names: &Names, depth: usize) -> Self {
        let mut inner = Self { locations: Vec::new(), conditions: Vec::new() };
        for &node in blocks {
            let directive = scope.tree.directive(node);
            match directive.name() {
                "location" if depth >= LOCATION_DEPTH_MAX => scope.problems.push(Problem {
                    place: scope.tree.place(node),
                    text: format!("locations are nested more than {LOCATION_DEPTH_MAX} deep; deeper ones are ignored"),
                }),
                "location" => match Matcher::parse(&directive.values()) {
                    Some(matcher) => inner.locations.push(location(scope, node, matcher, outer, names, depth)),
                    None => {
                        let text = "invalid location modifier or number of arguments in \"location\"".to_owned();
                        scope.problems.push(Problem { place: scope.tree.place(node), text });
                    }
                },
                "if" | "limit_except" => inner.conditions.push(condition(scope, node, outer, names)),
                _ => {}
            }
        }
        inner
    }
}

fn location(scope: &mut Scope<'_>, node: Node, matcher: Matcher, outer: &Settings, names: &Names, depth: usize) -> Location {
    let block = scope.block(node);
    let settings = Settings::new(block.simple, Some(outer), outer.version());
    let pass = scope.pass(&settings, names);
    let inner = Inner::read(scope, &block.blocks, &settings, names, depth + 1);
    Location { place: scope.tree.place(node), matcher, settings, pass, conditions: inner.conditions, locations: inner.locations }
}

fn condition(scope: &mut Scope<'_>, node: Node, outer: &Settings, names: &Names) -> Condition {
    let block = scope.block(node);
    let settings = Settings::new(block.simple, Some(outer), outer.version());
    let pass = scope.pass(&settings, names);
    let words: Vec<&str> = scope.tree.directive(node).words().iter().map(|word| word.value.as_str()).collect();
    Condition { place: scope.tree.place(node), text: words.join(" "), settings, pass }
}
