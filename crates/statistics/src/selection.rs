//! The k-th smallest of many sums of two values, without a list of them: it is found by counting how many are at most x.

/// The bits of a finite number in the order of the numbers.
fn rank_of(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    if bits < 0 { i64::MIN.wrapping_sub(bits) } else { bits }
}

fn value_of(rank: i64) -> f64 {
    f64::from_bits(if rank < 0 { i64::MIN.wrapping_sub(rank) as u64 } else { rank as u64 })
}

/// The smallest number between `low` and `high` of which `count_at_most` says `k` or more; `high` if there is none below. The steps are at most 64.
pub(crate) fn kth(low: f64, high: f64, k: u64, count_at_most: impl Fn(f64) -> u64) -> f64 {
    let (mut low, mut high) = (rank_of(low), rank_of(high));
    while low < high {
        let middle = ((i128::from(low) + i128::from(high)).div_euclid(2)) as i64;
        if count_at_most(value_of(middle)) >= k {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    value_of(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranks_keep_the_order_of_numbers() {
        let values = [-f64::MAX, -1.0, -f64::MIN_POSITIVE, 0.0, 5e-324, 1.0, f64::MAX];
        assert!(values.windows(2).all(|pair| rank_of(pair[0]) < rank_of(pair[1])));
        assert!(values.iter().all(|value| value_of(rank_of(*value)) == *value));
        assert_eq!(rank_of(-0.0), rank_of(0.0));
    }

    proptest! {
        #[test]
        fn the_kth_is_that_of_the_sorted_list(mut values in proptest::collection::vec(-1e3..1e3f64, 1..40), at in any::<proptest::sample::Index>()) {
            values.sort_by(f64::total_cmp);
            let k = at.index(values.len());
            let found = kth(values[0], values[values.len() - 1], k as u64 + 1, |x| values.iter().filter(|value| **value <= x).count() as u64);
            prop_assert_eq!(found, values[k]);
        }
    }
}
