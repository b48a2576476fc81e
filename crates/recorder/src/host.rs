//! What the whole host did in a span of time: other programs than the watched servers may take what these need.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::largest::keep_largest;
use crate::sample::Sample;

/// Most names of programs and of disks in a sample: the largest.
const NAMES_MAX: usize = 8;
/// Most cores of a sample whose time is told by kind.
const CORES_MAX: usize = 64;
/// Programs that use less of a core than this more than before are not worth a word.
const CORES_MIN: f64 = 0.1;

/// The use of a host. Sums over its seconds, so that those of two spans add up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Seconds in which it was seen.
    pub seconds: f64,
    /// Cores that are online.
    pub cores: u32,
    /// CPU time that was used, seconds.
    pub busy_s: f64,
    /// CPU time of each core by kind, seconds: programs, the kernel, interrupts, and what a hypervisor took. Of a host with more cores the first 64.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub core_s: BTreeMap<u32, [f64; 4]>,
    /// CPU time by name of the program, seconds: the eight with most.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub programs: BTreeMap<String, f64>,
    /// Memory, bytes. `None` if it was not read.
    pub memory_total: Option<u64>,
    /// The least memory that programs could still get without swapping, bytes. `None` if it was not read.
    pub memory_available: Option<u64>,
    /// Time in which a disk had something to do, seconds, by disk: the eight busiest.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub disks: BTreeMap<String, f64>,
}

impl Host {
    /// Adds another span.
    pub fn merge(&mut self, other: &Self) {
        self.seconds += other.seconds;
        self.cores = other.cores;
        self.busy_s += other.busy_s;
        for (core, theirs) in &other.core_s {
            if self.core_s.len() < CORES_MAX || self.core_s.contains_key(core) {
                let ours = self.core_s.entry(*core).or_default();
                ours.iter_mut().zip(theirs).for_each(|(ours, theirs)| *ours += theirs);
            }
        }
        self.memory_total = other.memory_total.or(self.memory_total);
        self.memory_available = self.memory_available.into_iter().chain(other.memory_available).min();
        add(&mut self.programs, &other.programs);
        add(&mut self.disks, &other.disks);
    }

    /// Cores that a program used on average.
    pub fn cores_of(&self, program: &str) -> f64 {
        self.programs.get(program).map_or(0.0, |used_s| used_s / self.seconds.max(f64::MIN_POSITIVE))
    }
}

fn add(ours: &mut BTreeMap<String, f64>, theirs: &BTreeMap<String, f64>) {
    for (name, seconds) in theirs {
        *ours.entry(name.clone()).or_default() += seconds;
    }
    keep_largest(ours, NAMES_MAX, |seconds| *seconds);
}

/// A program that used more CPU time during a drop than before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BusierProgram {
    /// Its name.
    pub program: String,
    /// Cores that it used before.
    pub before: f64,
    /// Cores that it used during the drop.
    pub during: f64,
}

/// The programs that used more CPU time since a moment than before it, by at least a tenth of a core; those that grew most come first. Samples that reach over the moment
/// count for neither.
pub fn busier_programs(series: &[Sample], since_s: u64) -> Vec<BusierProgram> {
    let sum = |is_in: &dyn Fn(&Sample, u64) -> bool| {
        let hosts = series.iter().filter_map(|sample| Some((sample, sample.host.as_ref()?)));
        hosts.filter(|(sample, host)| is_in(sample, host.seconds.ceil() as u64)).fold(None, |sum: Option<Host>, (_, host)| {
            let mut sum = sum.unwrap_or_default();
            sum.merge(host);
            Some(sum)
        })
    };
    let before = sum(&|sample, _| sample.at_s < since_s);
    let during = sum(&|sample, seconds| sample.at_s >= since_s.saturating_add(seconds));
    let Some((before, during)) = before.zip(during) else { return Vec::new() };
    let round = |cores: f64| (100.0 * cores).round() / 100.0;
    let one = |program: &String| BusierProgram {
        program: program.clone(),
        before: round(before.cores_of(program)),
        during: round(during.cores_of(program)),
    };
    let mut busier: Vec<BusierProgram> = during.programs.keys().map(one).filter(|one| one.during - one.before >= CORES_MIN).collect();
    busier.sort_by(|a, b| (b.during - b.before).total_cmp(&(a.during - a.before)));
    busier
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(seconds: f64, programs: &[(&str, f64)]) -> Host {
        let programs = programs.iter().map(|(name, used_s)| ((*name).to_owned(), *used_s)).collect();
        Host { seconds, cores: 2, programs, memory_available: Some(7), ..Host::default() }
    }

    #[test]
    fn spans_add_up_and_the_largest_programs_stay() {
        let mut sum = host(5.0, &[("nginx", 1.0)]);
        sum.merge(&Host { memory_available: Some(3), ..host(5.0, &[("nginx", 2.0), ("php", 1.0)]) });
        assert_eq!((sum.cores_of("nginx"), sum.cores_of("none"), sum.memory_available), (0.3, 0.0, Some(3)));
        for number in 0..20 {
            sum.merge(&host(1.0, &[(&format!("p{number}"), 0.01 * f64::from(number))]));
        }
        assert!(sum.programs.len() == NAMES_MAX && sum.programs.contains_key("nginx") && !sum.programs.contains_key("p0"));
    }

    #[test]
    fn a_program_that_began_to_use_a_core_is_named() {
        let at = |at_s: u64, programs: &[(&str, f64)]| Sample { at_s, span_s: 1, targets: Vec::new(), host: Some(host(5.0, programs)) };
        let series = [
            at(10, &[("nginx", 1.0), ("cron", 0.1)]),
            at(15, &[("nginx", 1.0)]),
            // It reaches from before the drop into it.
            at(22, &[("nginx", 1.0), ("stress", 1.0)]),
            at(25, &[("nginx", 1.2), ("stress", 4.5), ("cron", 0.2)]),
        ];
        let found = busier_programs(&series, 20);
        assert_eq!(found, [BusierProgram { program: "stress".to_owned(), before: 0.0, during: 0.9 }]);
        assert_eq!(busier_programs(&series[..2], 20), []);
        assert_eq!(busier_programs(&[], 20), []);
    }
}
