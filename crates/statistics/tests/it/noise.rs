//! Deterministic: simulated experiments on a noisy machine, from a seed.

use chokepoint_statistics::Random;

/// The noise of one trial's figure, in parts of it.
const SPREAD: f64 = 0.05;

/// A kind of noise that machines have.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Noise {
    /// Normal.
    Normal,
    /// Student's t with three degrees of freedom.
    Heavy,
    /// Normal, and a slow drift that both variants share: a random walk, and 1 % more in each trial.
    Drift,
    /// Normal, and in one of ten trials 30 % less.
    Outliers,
}

pub(crate) const KINDS: [Noise; 4] = [Noise::Normal, Noise::Heavy, Noise::Drift, Noise::Outliers];

/// The differences of an experiment with so many blocks of four trials, A B B A, where B is truly better by `shift` (of the logarithm).
pub(crate) fn experiment(noise: Noise, pairs: usize, shift: f64, random: &mut Random) -> Vec<f64> {
    let mut drift = 0.0;
    let mut trial = |random: &mut Random| match noise {
        Noise::Normal => SPREAD * random.normal(),
        Noise::Heavy => SPREAD * random.normal() / (random.chi_squared(3) / 3.0).sqrt(),
        Noise::Drift => {
            drift += 0.01 + 0.02 * random.normal();
            drift + SPREAD * random.normal()
        }
        Noise::Outliers => SPREAD * random.normal() + if random.uniform() < 0.1 { 0.7f64.ln() } else { 0.0 },
    };
    (0..pairs)
        .map(|_| {
            let [first, second, third, fourth] = [(); 4].map(|()| trial(random));
            (second + third - first - fourth) / 2.0 + shift
        })
        .collect()
}
