//! Aggregates over samples: means, and the maximum of each second.

/// The maximum of each second. Values that are read several times a second count once, by their peak.
pub(crate) fn per_second(values: impl Iterator<Item = (u64, u32)>) -> Vec<u32> {
    let mut highest: std::collections::BTreeMap<u64, u32> = std::collections::BTreeMap::new();
    for (at_us, value) in values {
        let second = highest.entry(at_us / 1_000_000).or_insert(value);
        *second = value.max(*second);
    }
    highest.into_values().collect()
}

/// The mean of counts; zero if there are none.
pub(crate) fn mean(counts: impl IntoIterator<Item = u64>) -> f64 {
    let (sum, number) = counts.into_iter().fold((0, 0_u64), |(sum, number), count| (sum + count, number + 1));
    sum as f64 / number.max(1) as f64
}
