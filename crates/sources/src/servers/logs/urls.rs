//! Requests by groups of URLs and by upstreams, in bounded memory whatever clients ask for.
//!
//! A group is a path without what differs from request to request: `/item/123/edit` belongs to `/item/*/edit`. If there are more groups than fit, the one with the
//! fewest requests gives way and the new one takes over its count as a possible error (Metwally, Agrawal and El Abbadi, "Efficient computation of frequent and top-k
//! elements in data streams", 2005): a group with more than its share of the requests is never missed.

use std::collections::HashMap;

use chokepoint_statistics::histogram::Counts;

/// Most groups.
const GROUPS_MAX: usize = 64;
/// Most groups that are told of one span: those with most requests.
const TOLD_MAX: usize = 8;
/// Most bytes of a name that is no path.
const NAME_BYTES_MAX: usize = 128;
/// Parts of a path that are told apart, and the longest that is a name.
const PARTS_MAX: usize = 4;
const PART_BYTES_MAX: usize = 24;
/// After so many requests of a span one in a few is looked at: they tell the shares as well.
const EACH_MAX: u64 = 2_000;
const ONE_IN: u64 = 16;

/// The durations of a group, in the order of [`GroupCounts::times_us`].
pub const GROUP_TIMES: [&str; 4] = ["request", "upstream-connect", "upstream-header", "upstream-response"];
pub(in crate::servers) const REQUEST: usize = 0;
pub(in crate::servers) const CONNECT: usize = 1;
pub(in crate::servers) const HEADER: usize = 2;
pub(in crate::servers) const RESPONSE: usize = 3;

/// What was counted of a group.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GroupCounts {
    /// Answers.
    pub answers: u64,
    /// Of those, the ones that failed.
    pub failed: u64,
    /// Bytes of the answers.
    pub bytes: u64,
    /// Durations in wide buckets ([`Counts::add_coarse`]), microseconds; empty for those that the format lacks.
    pub times_us: [Counts; GROUP_TIMES.len()],
}

impl GroupCounts {
    /// Counts a duration of so many requests.
    pub(in crate::servers) fn add_time(&mut self, kind: usize, us: u64, weight: u64) {
        self.times_us[kind].add_coarse(us, weight);
    }
}

/// The groups of one log.
#[derive(Debug, Default)]
pub(in crate::servers) struct Groups {
    seen: u64,
    groups: HashMap<Vec<u8>, Group>,
    name: Vec<u8>,
}

#[derive(Debug, Default)]
struct Group {
    counts: GroupCounts,
    /// Requests of other groups that may be among those by which this one is kept.
    inherited: u64,
}

impl Groups {
    /// The number of requests that this one stands for; `None` if it is not looked at.
    pub(in crate::servers) fn weight(&mut self) -> Option<u64> {
        self.seen += 1;
        match self.seen {
            0..=EACH_MAX => Some(1),
            seen => seen.is_multiple_of(ONE_IN).then_some(ONE_IN),
        }
    }

    /// Counts requests with this path, and returns their group.
    pub(in crate::servers) fn add(&mut self, path: &[u8], weight: u64, failed: bool) -> &mut GroupCounts {
        group(path, &mut self.name);
        self.count(weight, failed)
    }

    /// Counts requests of this name.
    pub(in crate::servers) fn add_named(&mut self, name: &[u8], weight: u64, failed: bool) -> &mut GroupCounts {
        self.name.clear();
        self.name.extend_from_slice(&name[..name.len().min(NAME_BYTES_MAX)]);
        self.count(weight, failed)
    }

    fn count(&mut self, weight: u64, failed: bool) -> &mut GroupCounts {
        let mut inherited = 0;
        if !self.groups.contains_key(&self.name) {
            inherited = if self.groups.len() < GROUPS_MAX { 0 } else { self.give_way() };
            self.groups.insert(self.name.clone(), Group::default());
        }
        let Group { counts, inherited: kept_by } = self.groups.entry(self.name.clone()).or_default();
        *kept_by += inherited;
        counts.answers = counts.answers.saturating_add(weight);
        counts.failed = counts.failed.saturating_add(if failed { weight } else { 0 });
        counts
    }

    /// Removes the group with the fewest requests, and returns by how many it was kept.
    fn give_way(&mut self) -> u64 {
        let kept_by = |group: &Group| group.counts.answers.saturating_add(group.inherited);
        let Some((name, most)) = self.groups.iter().map(|(name, group)| (name.clone(), kept_by(group))).min_by_key(|(_, by)| *by) else {
            return 0;
        };
        self.groups.remove(&name);
        most
    }

    /// The largest groups since the last call.
    pub(in crate::servers) fn take(&mut self) -> Vec<(String, GroupCounts)> {
        self.seen = 0;
        let groups = self.groups.drain().map(|(name, group)| (String::from_utf8_lossy(&name).into_owned(), group.counts));
        let mut groups: Vec<(String, GroupCounts)> = groups.collect();
        groups.sort_by(|a, b| b.1.answers.cmp(&a.1.answers).then_with(|| a.0.cmp(&b.0)));
        groups.truncate(TOLD_MAX);
        groups
    }
}

/// The group of a path. Parts with a digit or a byte that needs an escape, and long ones, are values; secrets are among them.
fn group(path: &[u8], name: &mut Vec<u8>) {
    name.clear();
    let path = path.split(|byte| matches!(byte, b'?' | b'#' | b';')).next().unwrap_or_default();
    let mut parts = path.split(|byte| *byte == b'/').filter(|part| !part.is_empty());
    for part in parts.by_ref().take(PARTS_MAX) {
        let is_plain = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'.' | b'-' | b'_' | b'~' | b'*');
        name.push(b'/');
        let is_name = part.len() <= PART_BYTES_MAX && part.iter().all(is_plain);
        name.extend_from_slice(if is_name { part } else { b"*" });
    }
    if parts.next().is_some() {
        name.extend_from_slice(b"/...");
    }
    if name.is_empty() {
        name.push(b'/');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grouped(path: &str) -> String {
        let mut name = Vec::new();
        group(path.as_bytes(), &mut name);
        String::from_utf8(name).unwrap()
    }

    #[test]
    fn values_of_a_path_do_not_tell_groups_apart() {
        for (path, group) in [
            ("/", "/"),
            ("", "/"),
            ("/index.php?token=secret", "/index.php"),
            ("/item/123/edit", "/item/*/edit"),
            ("/reset/QWERTYUIOPASDFGHJKLZXCVBNM/", "/reset/*"),
            ("/a/b/c/d/e/f", "/a/b/c/d/..."),
            ("//a///b", "/a/b"),
            ("/caf%C3%A9", "/*"),
            ("*", "/*"),
            ("/x;jsessionid=abc", "/x"),
        ] {
            assert_eq!(grouped(path), group, "{path}");
        }
    }

    #[test]
    fn ten_million_distinct_urls_need_no_more_memory_than_a_few_and_hide_no_large_group() {
        let mut groups = Groups::default();
        let mut cart = 0;
        for n in 0..10_000_000_u64 {
            let Some(weight) = groups.weight() else { continue };
            if n % 5 == 0 {
                cart += weight;
                groups.add(b"/cart", weight, n % 10 == 0).add_time(REQUEST, 2_000, weight);
                continue;
            }
            // Letters only, so that each is a group of its own.
            let word: Vec<u8> = (0..6).map(|at| b'a' + (n / 26_u64.pow(at) % 26) as u8).collect();
            groups.add(&[b"/", word.as_slice()].concat(), weight, false).add_time(REQUEST, 1_000, weight);
            assert!(groups.groups.len() <= GROUPS_MAX);
        }
        let told = groups.take();
        assert!(told.len() == TOLD_MAX && told[0].0 == "/cart", "{told:?}");
        assert_eq!((told[0].1.answers, told[0].1.times_us[REQUEST].sum()), (cart, 2_000.0 * cart as f64));
        assert!(told[1].1.answers < cart / 100 && groups.take().is_empty());
    }
}
