//! A profile without its stacks: busy samples by process, core and layer, and the functions with the most own time.

use std::collections::BTreeMap;

use crate::analysis::report::aspects_of;
use crate::layers::layer::Layer;
use crate::profile::{Profile, Stack, Thread};

/// Samples of one process on one core, in one layer and with the same aspects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The process, or the one that was there before and started it ([`Thread::started_by`]).
    pub pid: u32,
    /// True for a process that began while the profile was taken.
    pub is_started: bool,
    /// Its name.
    pub program: String,
    /// The core.
    pub cpu: u32,
    /// The layer.
    pub layer: Layer,
    /// Ids of aspects that the samples belong to, across layers: "tls-handshake".
    pub aspects: Vec<&'static str>,
    /// Number of samples.
    pub samples: u64,
    /// The sum of their weights.
    pub weight: u64,
}

/// A function's own time in one layer of one program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Name of the process.
    pub program: String,
    /// The layer.
    pub layer: Layer,
    /// Its name.
    pub name: String,
    /// The weight of its samples.
    pub weight: u64,
}

type Key<'a> = (u32, bool, &'a str, u32, Layer, Vec<&'static str>);

/// The parts of a profile, heaviest first. Beyond `parts_max` the rest of each core becomes one part without a process, so that sums are preserved.
pub fn parts(profile: &Profile, parts_max: usize) -> Vec<Part> {
    let aspects = aspects_of(profile);
    let mut counts: BTreeMap<Key<'_>, (u64, u64)> = BTreeMap::new();
    for (sample, stack, thread) in profile.busy() {
        let within = usize::try_from(sample.stack).ok().and_then(|index| aspects.get(index)).cloned().unwrap_or_default();
        let key = (
            thread.started_by.unwrap_or(thread.pid),
            thread.started_by.is_some(),
            thread.program.as_str(),
            sample.cpu,
            stack.layer,
            within,
        );
        let (samples, weight) = counts.entry(key).or_default();
        (*samples, *weight) = (*samples + 1, weight.saturating_add(sample.weight));
    }
    let mut parts: Vec<Part> = (counts.into_iter())
        .map(|((pid, is_started, program, cpu, layer, aspects), (samples, weight))| Part {
            pid,
            is_started,
            program: program.to_owned(),
            cpu,
            layer,
            aspects,
            samples,
            weight,
        })
        .collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.weight));
    let rest = parts.split_off(parts.len().min(parts_max));
    let mut others: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for part in rest {
        let (samples, weight) = others.entry(part.cpu).or_default();
        (*samples, *weight) = (*samples + part.samples, weight.saturating_add(part.weight));
    }
    let joined = |(cpu, (samples, weight))| {
        let program = "[others]".to_owned();
        Part { pid: u32::MAX, is_started: false, program, cpu, layer: Layer::Unknown, aspects: Vec::new(), samples, weight }
    };
    parts.extend(others.into_iter().map(joined));
    parts
}

/// The functions with the most own time, heaviest first.
pub fn functions(profile: &Profile, functions_max: usize) -> Vec<Function> {
    let mut weights: BTreeMap<(&str, Layer, &str), u64> = BTreeMap::new();
    for (sample, stack, thread) in profile.busy() {
        let Some(name) = leaf(profile, stack) else { continue };
        let Thread { program, .. } = thread;
        let weight = weights.entry((program, stack.layer, name)).or_default();
        *weight = weight.saturating_add(sample.weight);
    }
    let mut functions: Vec<Function> = (weights.into_iter())
        .map(|((program, layer, name), weight)| Function { program: program.to_owned(), layer, name: name.to_owned(), weight })
        .collect();
    functions.sort_by_key(|function| std::cmp::Reverse(function.weight));
    functions.truncate(functions_max);
    functions
}

fn leaf<'a>(profile: &'a Profile, stack: &Stack) -> Option<&'a str> {
    let frame = profile.frames.get(usize::try_from(*stack.frames.last()?).ok()?)?;
    Some(&frame.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::folded;

    const STACKS: &str = "\
nginx;main;entry_SYSCALL_64_[k];tcp_v4_connect_[k];inet_hash_connect_[k];__inet_check_established_[k] 30
nginx;main;SSL_do_handshake;bn_mul_mont 20
nginx;main;SSL_write;aes_gcm_encrypt 5
php-fpm;main;execute_ex 40
[idle];do_idle_[k] 500
";

    #[test]
    fn samples_are_counted_by_layer_and_aspects() {
        let profile = folded::read(STACKS).unwrap();
        let parts = parts(&profile, 100);
        let found: Vec<(&str, &str, &[&str], u64)> =
            parts.iter().map(|part| (part.program.as_str(), part.layer.def().id, part.aspects.as_slice(), part.samples)).collect();
        let expected: [(&str, &str, &[&str], u64); 4] = [
            ("php-fpm", "interpreter", &[], 40),
            ("nginx", "port-search", &["kernel-network", "connection"], 30),
            ("nginx", "tls", &["tls-handshake"], 20),
            ("nginx", "tls", &[], 5),
        ];
        assert_eq!(found, expected);
        let functions = functions(&profile, 2);
        let names: Vec<&str> = functions.iter().map(|function| function.name.as_str()).collect();
        assert_eq!(names, ["execute_ex", "__inet_check_established"]);
    }

    #[test]
    fn parts_beyond_the_limit_stay_in_the_sum() {
        let profile = folded::read(STACKS).unwrap();
        let few = parts(&profile, 2);
        assert_eq!(few.len(), 3);
        assert_eq!(few.iter().map(|part| part.samples).sum::<u64>(), 95);
        assert_eq!((few[2].program.as_str(), few[2].samples), ("[others]", 25));
    }
}
