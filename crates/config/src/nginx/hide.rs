//! Hides every value of a configuration except those listed in [`recorded`]. Comments and code are removed; lines keep their numbers. On a line with
//! something else a comment leaves its mark: the line is not the one in the file, so no edit of it can be printed.

mod recorded;

use std::collections::BTreeSet;

use super::edit::debug_log::is_level;

use super::effective::pass::{PassKind, VARIABLE_DEPTH_MAX, first_variable};
use super::parser::file::{Body, Directive, File};
use super::parser::quote::quoted;
use super::tree::{LoadError, Tree};
use crate::hidden::{HIDDEN, Hidden, is_name, is_words};
use crate::{Node, dump};
use recorded::{BLOCKS, EDITED, Keep, keep};

/// Hides the values that are not read in the files of a dump ([`dump::add`]). A configuration that cannot be parsed gives the reader's error.
pub fn hide(text: &str) -> Result<Hidden, LoadError> {
    let tree = Tree::from_dump(text)?;
    let mut hider = Hider { tree: &tree, followed: followed(&tree), out: Hidden::default() };
    let contexts = contexts(&tree);
    for (index, file) in tree.files().iter().enumerate() {
        let hidden = hider.file(index, file, contexts[index]);
        dump::add(&mut hider.out.text, &file.path, &hidden);
        hider.out.files += 1;
    }
    Ok(hider.out)
}

/// The meaning of the names in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Context {
    /// Directives.
    Directives,
    /// Keys or values. None is kept.
    Values,
    /// The keys of a `map` whose values determine the target of requests.
    Servers,
}

/// The meaning of the names in a block of this directive.
fn inner(directive: &Directive, outer: Context, followed: &BTreeSet<String>) -> Context {
    let is_followed = |name: &str| name.strip_prefix('$').is_some_and(|name| followed.contains(name));
    match directive.name() {
        "map" if outer == Context::Directives && directive.args().get(1).is_some_and(|word| is_followed(&word.value)) => Context::Servers,
        name if outer == Context::Directives && BLOCKS.contains(&name) => Context::Directives,
        _ => Context::Values,
    }
}

/// The meaning of the names at the top of each file: as around the `include` of the file. If several includes differ, values.
fn contexts(tree: &Tree) -> Vec<Context> {
    let followed = followed(tree);
    let mut found: Vec<Option<Context>> = vec![None; tree.files().len()];
    let mut waiting = vec![(0, Context::Directives)];
    while let Some((index, context)) = waiting.pop() {
        let context = match found.get(index).copied().flatten() {
            None => context,
            Some(known) if known == context => continue,
            Some(Context::Values) => continue,
            Some(_) => Context::Values,
        };
        found[index] = Some(context);
        for (entry, directive) in tree.files()[index].directives.iter().enumerate() {
            if directive.name() == "include" {
                let around = around(&tree.files()[index], directive, context, &followed);
                waiting.extend(tree.included(Node { file: index, entry }).iter().map(|&next| (next, around)));
            }
        }
    }
    found.into_iter().map(|context| context.unwrap_or(Context::Values)).collect()
}

/// The meaning of the names around a directive of this file.
fn around(file: &File, directive: &Directive, top: Context, followed: &BTreeSet<String>) -> Context {
    let mut blocks = Vec::new();
    let mut next = directive.parent;
    while let Some(index) = next {
        blocks.push(&file.directives[index]);
        next = file.directives[index].parent;
    }
    blocks.into_iter().rev().fold(top, |outer, block| inner(block, outer, followed))
}

/// The variables that determine the target of requests or the file that answers, and the variables in their values.
fn followed(tree: &Tree) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for directive in tree.files().iter().flat_map(|file| &file.directives) {
        let args = directive.args();
        if PassKind::ALL.iter().any(|(name, _)| *name == directive.name()) {
            args.first().into_iter().for_each(|text| variables(authority(&text.value).1, &mut names));
        } else if let ("fastcgi_param", [name, text, ..]) = (directive.name(), args)
            && name.value == "SCRIPT_FILENAME"
        {
            variables(&text.value, &mut names);
        }
    }
    let given = given(tree);
    // Values contain further variables. Each round goes one level deeper.
    for _ in 0..VARIABLE_DEPTH_MAX {
        let more: Vec<&str> = given.iter().filter(|(name, _)| names.contains(*name)).map(|(_, value)| authority(value).1).collect();
        more.into_iter().for_each(|value| variables(value, &mut names));
    }
    names
}

/// The variables set by `set` and `map`, with each value. A map's entries may be in an included file.
fn given(tree: &Tree) -> Vec<(&str, &str)> {
    let mut given = Vec::new();
    let mut maps: Vec<BTreeSet<&str>> = vec![BTreeSet::new(); tree.files().len()];
    for (index, file) in tree.files().iter().enumerate() {
        for (entry, directive) in file.directives.iter().enumerate() {
            if let Some(name) = directive.parent.and_then(|parent| map_of(&file.directives[parent])) {
                given.extend(directive.args().first().map(|value| (name, value.value.as_str())));
                tree.included(Node { file: index, entry }).iter().for_each(|&next| maps[next].extend([name]));
            }
            if let ("set", [name, value]) = (directive.name(), directive.args()) {
                given.extend(name.value.strip_prefix('$').map(|name| (name, value.value.as_str())));
            }
        }
    }
    for (file, names) in tree.files().iter().zip(&maps) {
        let values = file.top.iter().filter_map(|&entry| file.directives[entry].args().first());
        given.extend(values.flat_map(|value| names.iter().map(move |name| (*name, value.value.as_str()))));
    }
    given
}

/// The variable set by a `map` block.
fn map_of(block: &Directive) -> Option<&str> {
    block.args().get(1).filter(|_| block.name() == "map")?.value.strip_prefix('$')
}

fn variables(text: &str, names: &mut BTreeSet<String>) {
    let mut rest = text;
    while let Some((_, name, after)) = first_variable(rest) {
        names.insert(name.to_owned());
        rest = after;
    }
}

/// Scheme with "://", the text up to the path or the query, and the rest.
fn authority(text: &str) -> (&str, &str, &str) {
    let (scheme, rest) = text.find("://").map_or(("", text), |at| text.split_at(at + "://".len()));
    // The path of a unix socket contains slashes.
    let end = match rest.strip_prefix("unix:") {
        Some(path) => path.find([':', '?']).map(|at| at + "unix:".len()),
        None => rest.find(['/', '?']),
    };
    let (host, rest) = rest.split_at(end.unwrap_or(rest.len()));
    (scheme, host, rest)
}

struct Hider<'t> {
    tree: &'t Tree,
    followed: BTreeSet<String>,
    out: Hidden,
}

impl Hider<'_> {
    fn file(&mut self, index: usize, file: &File, top: Context) -> String {
        let mut text = String::with_capacity(file.text.len());
        let mut at = 0;
        for (entry, directive) in file.directives.iter().enumerate() {
            let context = around(file, directive, top, &self.followed);
            self.out.directives += 1;
            let followed = !self.tree.included(Node { file: index, entry }).is_empty();
            let mut before = entry.checked_sub(1).map(|before| &file.directives[before]);
            for (word, kept) in directive.words().iter().zip(self.words(directive, context, followed)) {
                let gap = &file.text[at..word.span.start];
                // After a quote, a bracket begins a separate word.
                text.push_str(if gap.is_empty() && at > 0 { " " } else { "" });
                self.between(gap, before.take(), &mut text);
                let written = &file.text[word.span.clone()];
                match kept {
                    Some(value) if value == word.value => text.push_str(written),
                    kept => {
                        self.out.values += 1;
                        text.push_str(&placeholder(kept, written));
                    }
                }
                at = word.span.end;
            }
            if directive.body == Body::Code {
                self.between(&file.text[at..=directive.end], None, &mut text);
                let close = directive.span.end - 1;
                let code = &file.text[directive.end + 1..close];
                self.out.values += usize::from(!code.trim().is_empty());
                text.extend(code.chars().filter(|character| *character == '\n'));
                at = close;
            }
        }
        self.between(&file.text[at..], file.directives.last(), &mut text);
        text
    }

    /// Blanks and terminators between words. A comment stays where it is behind a directive that remedies edit, and of few words.
    fn between(&mut self, gap: &str, before: Option<&Directive>, out: &mut String) {
        let is_edited = before.is_some_and(|before| before.body == Body::Simple && EDITED.contains(&before.name()));
        for (number, line) in gap.split_inclusive('\n').enumerate() {
            let (blanks, comment) = line.find('#').map_or((line, None), |at| (&line[..at], Some(line[at + 1..].trim_end_matches('\n'))));
            out.extend(blanks.chars().filter(|character| matches!(character, ' ' | '\t' | '\r' | '\n' | ';' | '{' | '}')));
            let Some(comment) = comment else { continue };
            let (words, end) = comment.strip_suffix('\r').map_or((comment, ""), |words| (words, "\r"));
            let is_alone = out.rsplit('\n').next().is_none_or(|line| line.trim().is_empty());
            let is_kept = is_edited && number == 0 && is_words(words);
            self.out.comments += usize::from(!is_kept);
            if !is_alone {
                out.push('#');
                out.push_str(if is_kept { words } else { "" });
                out.push_str(end);
            }
            out.push_str(if line.ends_with('\n') { "\n" } else { "" });
        }
    }

    /// The kept part of each word of a directive, its name first; `None` if everything is hidden.
    fn words(&mut self, directive: &Directive, context: Context, is_include: bool) -> Vec<Option<String>> {
        let args = directive.values();
        let name = directive.name();
        let count = args.len();
        let mut kept: Vec<Option<String>> = vec![None; count];
        let known = context == Context::Directives && is_name(name);
        if known || is_include {
            self.args(name, &args, directive.body != Body::Simple, &mut kept);
        } else if let (Context::Servers, [value]) = (context, args.as_slice()) {
            kept[0] = Some(self.server(value));
        }
        let name = (known || is_include).then(|| name.to_owned());
        std::iter::once(name).chain(kept).collect()
    }

    fn args(&mut self, name: &str, args: &[String], is_block: bool, kept: &mut [Option<String>]) {
        let all = |kept: &mut [Option<String>]| kept.iter_mut().zip(args).for_each(|(kept, arg)| *kept = Some(arg.clone()));
        let first = |kept: &mut [Option<String>]| kept.iter_mut().zip(args).take(1).for_each(|(kept, arg)| *kept = Some(arg.clone()));
        match keep(name) {
            Keep::All => all(kept),
            Keep::Options(names) => {
                first(kept);
                let is_known = |arg: &str| names.contains(&arg.split_once('=').map_or(arg, |(name, _)| name));
                kept.iter_mut().zip(args).skip(1).filter(|(_, arg)| is_known(arg)).for_each(|(kept, arg)| *kept = Some(arg.clone()));
            }
            Keep::Quantity(names) => {
                let is_quantity = |arg: &str| arg == "auto" || arg.starts_with(|c: char| c.is_ascii_digit()) && is_short_word(arg);
                kept.iter_mut().zip(args).take(1).filter(|(_, arg)| is_quantity(arg)).for_each(|(kept, arg)| *kept = Some(arg.clone()));
                kept.iter_mut()
                    .zip(args)
                    .skip(1)
                    .filter(|(_, arg)| names.contains(&arg.as_str()))
                    .for_each(|(kept, arg)| *kept = Some(arg.clone()));
            }
            Keep::Word(words) if args.first().is_some_and(|arg| words.contains(&arg.as_str())) => first(kept),
            Keep::Status if args.first().is_some_and(|arg| is_status(arg)) => first(kept),
            Keep::Redirect | Keep::Targets | Keep::Rewrite => self.targets(keep(name), args, kept),
            Keep::Log => {
                let to = |arg: &String| if arg.starts_with("syslog:") { format!("syslog:{HIDDEN}") } else { arg.clone() };
                kept.iter_mut().zip(args).take(1).for_each(|(kept, arg)| *kept = Some(to(arg)));
                let levels = kept.iter_mut().zip(args).skip(1).filter(|(_, arg)| is_level(arg));
                levels.for_each(|(kept, arg)| *kept = Some(arg.clone()));
            }
            Keep::Pair(names) if args.first().is_some_and(|arg| names.iter().any(|name| name.eq_ignore_ascii_case(arg))) => {
                kept.iter_mut().zip(args).take(2).for_each(|(kept, arg)| *kept = Some(arg.clone()));
            }
            Keep::Pass => kept.iter_mut().zip(args).take(1).for_each(|(kept, arg)| *kept = Some(self.pass(arg))),
            Keep::Variable => {
                if let [variable, value] = args
                    && variable.strip_prefix('$').is_some_and(|name| self.followed.contains(name))
                {
                    kept[0] = Some(variable.clone());
                    kept[1] = Some(if value.starts_with('/') { without_values(value) } else { self.server(value) });
                }
            }
            Keep::Name if is_block && name == "map" => {
                if let Some(variable) = args.get(1).filter(|name| name.strip_prefix('$').is_some_and(|name| self.followed.contains(name))) {
                    kept[1] = Some(variable.clone());
                }
            }
            Keep::Name | Keep::Word(_) | Keep::Status | Keep::Pair(_) => {}
        }
    }

    fn targets(&mut self, which: Keep, args: &[String], kept: &mut [Option<String>]) {
        let last = args.len().saturating_sub(1);
        for (index, arg) in args.iter().enumerate() {
            kept[index] = match which {
                Keep::Redirect if index != last || !arg.starts_with(['/', '@']) => None,
                Keep::Rewrite if index == 0 || (index == 2 && ["last", "break", "redirect", "permanent"].contains(&arg.as_str())) => {
                    Some(arg.clone())
                }
                Keep::Rewrite if index != 1 => None,
                _ => Some(without_values(arg)),
            };
        }
    }

    /// A URL or an address without user information and the values of its query.
    fn pass(&self, text: &str) -> String {
        let (scheme, host, rest) = authority(text);
        let host = host.rsplit_once('@').map_or_else(|| host.to_owned(), |(_, host)| format!("{HIDDEN}@{host}"));
        format!("{scheme}{host}{}", without_values(rest))
    }

    /// As [`Hider::pass`], without the path, which has no effect in a variable's value.
    fn server(&self, text: &str) -> String {
        let (_, _, rest) = authority(text);
        let whole = self.pass(&text[..text.len() - rest.len()]);
        if rest.is_empty() { whole } else { format!("{whole}{}{HIDDEN}", &rest[..1]) }
    }
}

/// True for text that looks like a number with a unit.
fn is_short_word(arg: &str) -> bool {
    arg.len() <= 20 && arg.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn is_status(arg: &str) -> bool {
    arg.len() == 3 && arg.bytes().all(|byte| byte.is_ascii_digit())
}

/// A path with its query. Only the variables in the query are kept.
fn without_values(text: &str) -> String {
    let Some((path, query)) = text.split_once('?') else { return text.to_owned() };
    let parts = query.split('&').map(|part| match part.split_once('=') {
        Some((name, value)) if !is_variables(value) => format!("{name}={HIDDEN}"),
        None if !is_variables(part) => HIDDEN.to_owned(),
        _ => part.to_owned(),
    });
    format!("{path}?{}", parts.collect::<Vec<_>>().join("&"))
}

/// True for text that consists of variables only.
fn is_variables(text: &str) -> bool {
    let mut rest = text;
    while let Some(("", _, after)) = first_variable(rest) {
        rest = after;
    }
    rest.is_empty()
}

/// A word with as many line feeds as the word that it replaces.
fn placeholder(kept: Option<String>, written: &str) -> String {
    let lines = written.matches('\n').count();
    match kept.map(|value| quoted(&value)) {
        Some(word) if word.matches('\n').count() == lines => word,
        _ if lines == 0 => HIDDEN.to_owned(),
        _ => format!("\"{HIDDEN}{}\"", "\n".repeat(lines)),
    }
}
