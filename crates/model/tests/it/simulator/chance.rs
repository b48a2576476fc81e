//! A random world: remedies that share settings, and random figures for every combination. The loop must end and do no harm.

use super::{Cure, Found, Random, Settings, Truth, World};
use chokepoint_model::report::{Role, Signal};

/// Settings that the remedies share.
const KEYS: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Debug, Clone)]
pub(crate) struct Chance {
    pub(crate) seed: u64,
    pub(crate) remedies: u32,
    /// Share of remedies that cannot be applied, that cannot be undone, and that cannot be put back.
    pub(crate) apply_fails: f64,
    pub(crate) undo_fails: f64,
    pub(crate) put_back_fails: f64,
    /// True if every second state loses a share of the clients' time.
    pub(crate) loses: bool,
}

impl Chance {
    fn draw(&self, what: u64) -> Random {
        let mut random = Random(self.seed ^ what.wrapping_mul(0xd134_2543_de82_ef95));
        random.next();
        random
    }

    fn cure(&self, number: u32) -> Cure {
        let mut random = self.draw(1_000 + u64::from(number));
        let mut sets: Vec<(String, u32)> = Vec::new();
        for key in KEYS {
            if random.share() < 0.5 {
                sets.push((key.to_owned(), 1 + (random.next() % 3) as u32));
            }
        }
        let sets = if sets.is_empty() { vec![("a".to_owned(), 1 + number % 3)] } else { sets };
        let signal = match random.next() % 3 {
            0 => Signal::Refusals { station: format!("station-{number}") },
            1 => Signal::Goodput,
            _ => Signal::LatencyP99,
        };
        let group = (random.share() < 0.3).then(|| "group".to_owned());
        Cure { id: format!("remedy-{number}"), sets, signal, group, starved_s: None }
    }
}

impl World for Chance {
    fn start(&self) -> Settings {
        KEYS.iter().map(|key| ((*key).to_owned(), 0)).collect()
    }

    fn truth(&self, settings: &Settings) -> Truth {
        let place = settings.values().fold(7, |sum: u64, value| sum * 5 + u64::from(*value));
        let mut random = self.draw(place);
        let mut truth = Truth {
            goodput_rps: 10.0_f64.powf(1.0 + 3.0 * random.share()),
            failed_rps: if random.share() < 0.5 { 0.0 } else { 1_000.0 * random.share() },
            latency_us_p99: 2_000_000.0 * random.share(),
            ..Truth::default()
        };
        let mut lot = self.draw(place ^ 0x5bd1);
        if self.loses && lot.share() < 0.5 {
            truth.lost_share = lot.share();
        }
        for number in 0..self.remedies {
            let rate = if random.share() < 0.5 { 0.0 } else { 1_000.0 * random.share() };
            truth.refusals.insert(format!("station-{number}"), rate);
            let cure = self.cure(number);
            let changes = cure.sets.iter().all(|(key, to)| settings[key] != *to);
            if changes && random.share() < 0.7 {
                let role = if random.share() < 0.9 { Role::Cause } else { Role::Symptom };
                // Some remedies share a finding.
                let (id, station) = (format!("finding-{}", number / 2), format!("station-{number}"));
                let found = Found { id, station, role, remedies: vec![cure, self.cure((number + 1) % self.remedies)] };
                if random.share() < 0.2 { truth.improvements.push(found) } else { truth.findings.push(found) }
            }
        }
        truth.findings.sort_by_key(|found| found.role == Role::Symptom);
        truth
    }

    fn apply_fails(&self, remedy: &str) -> bool {
        self.draw(remedy.bytes().fold(2, |sum, byte| sum * 31 + u64::from(byte))).share() < self.apply_fails
    }

    fn undo_fails(&self, remedy: &str) -> bool {
        self.draw(remedy.bytes().fold(3, |sum, byte| sum * 37 + u64::from(byte))).share() < self.undo_fails
    }

    fn put_back_fails(&self, remedy: &str) -> bool {
        self.draw(remedy.bytes().fold(4, |sum, byte| sum * 41 + u64::from(byte))).share() < self.put_back_fails
    }
}
