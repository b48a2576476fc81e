//! The order of trials: blocks in which every variant has one trial, each time in another order.
//!
//! What changes slowly on a host (temperature, memory, other tenants) then changes all variants alike. Two variants alternate as ABBA. More variants
//! follow the rows of a Williams design (E. J. Williams, 1949): over as many blocks as there are variants, each has each place once, and each follows each
//! other one equally often; with an odd number the mirrored rows follow.

/// The variants of a block in the order of their trials.
pub fn block(number: usize, variants: usize) -> Vec<usize> {
    if variants == 0 {
        return Vec::new();
    }
    let row = number % variants;
    // 0, 1, n-1, 2, n-2, ...: neighbours have every difference once.
    let zigzag = |place: usize| if place % 2 == 1 { place.div_ceil(2) } else { (variants - place / 2) % variants };
    let mut order: Vec<usize> = (0..variants).map(|place| (zigzag(place) + row) % variants).collect();
    // An even number of variants is balanced within its rows, an odd one only with their mirror images.
    if variants % 2 == 1 && (number / variants) % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_variants_alternate_as_abba() {
        let all: Vec<usize> = (0..4).flat_map(|number| block(number, 2)).collect();
        assert_eq!(all, [0, 1, 1, 0, 0, 1, 1, 0]);
        assert!(block(3, 0).is_empty() && block(3, 1) == [0]);
    }

    #[test]
    fn every_variant_has_every_place_and_every_neighbour_equally_often() {
        for variants in 2..=9usize {
            let rows = if variants % 2 == 0 { variants } else { 2 * variants };
            let mut places = vec![0; variants * variants];
            let mut follows = vec![0; variants * variants];
            for number in 0..rows {
                let order = block(number, variants);
                for (place, variant) in order.iter().enumerate() {
                    places[variant * variants + place] += 1;
                }
                for pair in order.windows(2) {
                    follows[pair[0] * variants + pair[1]] += 1;
                }
            }
            assert!(places.iter().all(|count| *count == rows / variants), "{variants}: {places:?}");
            let expected = rows / variants;
            let is_equal = |(at, count): (usize, &usize)| *count == if at / variants == at % variants { 0 } else { expected };
            assert!(follows.iter().enumerate().all(is_equal), "{variants}: {follows:?}");
        }
    }
}
