//! The source "filter_rules": rules of a namespace's packet filters that may take packets, from nfnetlink (linux/netfilter/nf_tables.h). A rule of iptables is among them, except for its
//! legacy variant, which has no list here.

mod expressions;
mod fields;
mod rules;

use std::fmt::Write;

use chokepoint_model::observation::{FilterHook, FilterPorts, FilterRule, FilterRules};
use chokepoint_recording::Outcome;

use crate::netlink::wire::messages;
use crate::netlink::{DumpError, Netlink};
use crate::root::outcome_of;
use crate::scope::put_netns;
use crate::table::{Cadence, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::{ParseError, TextLine, lines, whole};
use crate::text::plain::{one_line, one_word};
use rules::{GET_CHAIN, GET_RULE, Listed};

const NAME: &str = "filter_rules";
const NEEDS: &str = "CAP_NET_ADMIN";
/// Most rules that are kept: those that drop or reject. A host with many services has thousands of others.
const RULES_MAX: usize = 512;
const MISSING: &str = "this kernel has no nf_tables";
const MODULES_BYTES_MAX: usize = 256 << 10;
/// The last line where there are more rules.
const MORE: &str = "more";
/// A line where there are rules of iptables-legacy, which nf_tables does not list.
const OTHERS: &str = "others";
/// The tables of iptables-legacy and ip6tables-legacy of the thread's namespace; only root may read them.
const LEGACY_TABLES: [&str; 2] = ["proc/thread-self/net/ip_tables_names", "proc/thread-self/net/ip6_tables_names"];
/// Words of [`FilterPorts`].
const ANY: &str = "any";
const UNKNOWN: &str = "?";

/// At the beginning and the end, in each namespace: a line for each rule that drops or rejects, or may do so. "FAMILY TABLE CHAIN HANDLE HOOKS TAKEN PORTS SOURCE TEXT": where packets meet it
/// ("input,forward"), how many packets it took ("?" where it does not count), the ports that it asks for ("dport:80-80", "any", "?"), "source" where it asks for the sender ("-" else),
/// and what it says. The line "others" tells of rules that this list cannot have, "more N" how many were left out.
pub(crate) const FILTER_RULES: Source = Source {
    name: NAME,
    scope: ScopeKind::Netns,
    cadence: Cadence::Ends,
    needs: Some(NEEDS),
    read: |context| only_item(read(context).unwrap_or_else(|lack| lack)),
    put: |observation, entry| put_netns(observation, entry, |netns| &mut netns.filter_rules, parse),
    redact: Redact::Text,
};

fn read(context: &ReadContext<'_>) -> Result<Outcome, Outcome> {
    if !may_ask(context) {
        return Err(Outcome::Absent(format!("{MISSING} loaded"), None));
    }
    let lack = |error: DumpError| error.outcome(MISSING, Some(NEEDS));
    let netlink = Netlink::netfilter().map_err(|error| outcome_of(&error, Some(NEEDS)))?;
    let mut listed = Listed::default();
    for kind in [GET_CHAIN, GET_RULE] {
        let mut each = |bytes: &[u8]| messages(bytes).try_for_each(|message| listed.add(&message?)).map_err(DumpError::from);
        // A list that changed meanwhile is one of some moment all the same: each rule is whole.
        netlink.dump_into(kind, &[0; 4], &mut each).map_err(lack)?;
    }
    let has_legacy = |file: &&str| matches!(context.root.read(file, MODULES_BYTES_MAX, None), Outcome::Ok(names) if !names.is_empty());
    let has_others = LEGACY_TABLES.iter().any(has_legacy);
    Ok(Outcome::Ok(text(&FilterRules { has_others, ..listed.takers(RULES_MAX) }).into_bytes()))
}

/// False where asking would have the kernel load the module: an observer changes nothing. Without a list of modules there are none to load.
fn may_ask(context: &ReadContext<'_>) -> bool {
    let listed = |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().any(|line| line.starts_with("nf_tables "));
    match context.root.read("proc/modules", MODULES_BYTES_MAX, None) {
        Outcome::Ok(bytes) => listed(&bytes) || is_built_in(context),
        _ => true,
    }
}

/// True if the kernel's own list of what was built into it has the module.
fn is_built_in(context: &ReadContext<'_>) -> bool {
    let Outcome::Ok(release) = context.root.read("proc/sys/kernel/osrelease", 128, None) else { return false };
    let file = format!("lib/modules/{}/modules.builtin", String::from_utf8_lossy(&release).trim_end());
    let Outcome::Ok(bytes) = context.root.read(&file, MODULES_BYTES_MAX, None) else { return false };
    String::from_utf8_lossy(&bytes).lines().any(|line| line.contains("/nf_tables.ko"))
}

fn text(found: &FilterRules) -> String {
    let mut text = String::new();
    for rule in &found.rules {
        let FilterRule { family, table, chain, handle, hooks, taken, ports, is_by_source, text: says } = rule;
        let names: Vec<&str> = FilterHook::ALL.iter().filter(|(hook, _)| hooks.contains(hook)).map(|(_, name)| *name).collect();
        let (table, chain, hooks) = (one_word(table), one_word(chain), names.join(","));
        let taken = taken.map_or_else(|| UNKNOWN.to_owned(), |taken| taken.to_string());
        let source = if *is_by_source { "source" } else { "-" };
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{family} {table} {chain} {handle} {hooks} {taken} {} {source} {}", ports_word(*ports), one_line(says));
    }
    if found.has_others {
        let _ = writeln!(text, "{OTHERS}");
    }
    if found.left_out > 0 {
        let _ = writeln!(text, "{MORE} {}", found.left_out);
    }
    text
}

fn ports_word(ports: FilterPorts) -> String {
    match ports {
        FilterPorts::Any => ANY.to_owned(),
        FilterPorts::Unknown => UNKNOWN.to_owned(),
        FilterPorts::Destination(first, last) => format!("dport:{first}-{last}"),
        FilterPorts::Source(first, last) => format!("sport:{first}-{last}"),
    }
}

/// Reads the lines. None at all: no rule takes anything.
fn parse(bytes: &[u8]) -> Result<FilterRules, ParseError> {
    let mut found = FilterRules::default();
    if bytes.is_empty() {
        return Ok(found);
    }
    for (place, line) in lines(NAME, &whole(NAME, bytes)?) {
        match line.split_once(' ') {
            None if line == OTHERS => found.has_others = true,
            Some((MORE, count)) => found.left_out = place.number("a count of rules", Some(count))?,
            _ if found.rules.len() >= RULES_MAX => return Err(place.expected("at most so many rules", line)),
            _ => found.rules.push(rule(place, line)?),
        }
    }
    Ok(found)
}

fn rule(place: TextLine, line: &str) -> Result<FilterRule, ParseError> {
    let parts: Vec<&str> = line.splitn(9, ' ').collect();
    let [family, table, chain, handle, hooks, taken, ports, source, text] = parts[..] else {
        return Err(place.expected("nine parts of a rule", line));
    };
    let hook = |name: &str| FilterHook::ALL.iter().find(|(_, known)| *known == name).map(|(hook, _)| *hook);
    Ok(FilterRule {
        family: family.to_owned(),
        table: table.to_owned(),
        chain: chain.to_owned(),
        handle: place.number("a rule's handle", Some(handle))?,
        hooks: hooks.split(',').map(|name| hook(name).ok_or_else(|| place.expected("a hook", name))).collect::<Result<_, _>>()?,
        taken: if taken == UNKNOWN { None } else { Some(place.number("a count of packets", Some(taken))?) },
        ports: ports_of(place, ports)?,
        is_by_source: source == "source",
        text: text.to_owned(),
    })
}

fn ports_of(place: TextLine, word: &str) -> Result<FilterPorts, ParseError> {
    const EXPECTED: &str = "ports such as dport:80-80";
    let range = |range: &str| -> Result<(u16, u16), ParseError> {
        let (first, last) = range.split_once('-').ok_or_else(|| place.expected(EXPECTED, word))?;
        Ok((place.number(EXPECTED, Some(first))?, place.number(EXPECTED, Some(last))?))
    };
    match word.split_once(':') {
        None if word == ANY => Ok(FilterPorts::Any),
        None if word == UNKNOWN => Ok(FilterPorts::Unknown),
        Some(("dport", ports)) => range(ports).map(|(first, last)| FilterPorts::Destination(first, last)),
        Some(("sport", ports)) => range(ports).map(|(first, last)| FilterPorts::Source(first, last)),
        _ => Err(place.expected(EXPECTED, word)),
    }
}

#[cfg(test)]
mod tests;
