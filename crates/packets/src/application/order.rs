//! Puts the payload of one direction in order. Early pieces wait, within a limit; bytes that never come are passed on as a hole.

/// Bytes of one direction that may wait for earlier ones. Above this, the missing bytes count as a hole.
const WAITING_BYTES_MAX: usize = 32 << 10;
/// Pieces that may wait.
const WAITING_MAX: usize = 32;
/// What an allocation takes beside its bytes.
const ALLOCATION_BYTES: usize = 16;

/// A piece of one direction, in order.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Piece<'a> {
    /// Bytes.
    Bytes(&'a [u8]),
    /// A number of bytes that the capture lacks.
    Hole(u64),
}

/// A piece that came too early.
#[derive(Debug)]
struct Early {
    start: i64,
    length: u32,
    bytes: Box<[u8]>,
}

/// Reorders one direction. Takes at most 32 KiB.
#[derive(Debug, Default)]
pub(super) struct Order {
    next: Option<i64>,
    early: Vec<Early>,
    early_bytes: usize,
}

impl Order {
    /// True if a piece waits.
    pub(super) fn waits(&self) -> bool {
        !self.early.is_empty()
    }

    /// Memory that waiting pieces take, bytes.
    pub(super) fn held(&self) -> usize {
        self.early_bytes + self.early.len() * ALLOCATION_BYTES + self.early.capacity() * size_of::<Early>()
    }

    /// Takes a piece that begins at `start`. Passes on everything that is in order now.
    pub(super) fn put(&mut self, start: i64, bytes: &[u8], length: u32, each: &mut dyn FnMut(Piece<'_>)) {
        let next = *self.next.get_or_insert(start);
        if start <= next {
            self.pass(next, start, bytes, length, each);
            self.drain(each);
            return;
        }
        if start + i64::from(length) <= next {
            return;
        }
        self.early_bytes += bytes.len();
        let place = self.early.partition_point(|early| early.start <= start);
        self.early.insert(place, Early { start, length, bytes: bytes.into() });
        while self.early.len() > WAITING_MAX || self.early_bytes > WAITING_BYTES_MAX {
            let Some(first) = self.early.first().map(|early| early.start) else { break };
            self.skip_to(first, each);
            self.drain(each);
        }
    }

    /// No bytes before `until` will come.
    pub(super) fn give_up(&mut self, until: i64, each: &mut dyn FnMut(Piece<'_>)) {
        while let Some(first) = self.early.first().map(|early| early.start) {
            if first > until {
                break;
            }
            self.skip_to(first, each);
            self.drain(each);
        }
    }

    fn skip_to(&mut self, to: i64, each: &mut dyn FnMut(Piece<'_>)) {
        if let Some(next) = self.next
            && let Ok(missing) = u64::try_from(to - next)
            && missing > 0
        {
            each(Piece::Hole(missing));
            self.next = Some(to);
        }
    }

    fn drain(&mut self, each: &mut dyn FnMut(Piece<'_>)) {
        while let (Some(next), Some(first)) = (self.next, self.early.first()) {
            if first.start > next {
                break;
            }
            let early = self.early.remove(0);
            self.early_bytes -= early.bytes.len();
            self.pass(next, early.start, &early.bytes, early.length, each);
        }
        if self.early.is_empty() {
            self.early = Vec::new(); // Few streams need it again.
        }
    }

    /// Passes on the new part of a piece. Bytes that were not captured are passed on as a hole.
    fn pass(&mut self, next: i64, start: i64, bytes: &[u8], length: u32, each: &mut dyn FnMut(Piece<'_>)) {
        let end = start + i64::from(length);
        if end <= next {
            return;
        }
        let old = usize::try_from(next - start).unwrap_or(usize::MAX);
        let new = bytes.get(old..).unwrap_or_default();
        if !new.is_empty() {
            each(Piece::Bytes(new));
        }
        let missing = u64::try_from(end - next).unwrap_or(0).saturating_sub(new.len() as u64);
        if missing > 0 {
            each(Piece::Hole(missing));
        }
        self.next = Some(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn collect(order: &mut Order, start: i64, bytes: &[u8], out: &mut Vec<Option<u8>>) {
        order.put(start, bytes, bytes.len() as u32, &mut |piece| match piece {
            Piece::Bytes(bytes) => out.extend(bytes.iter().copied().map(Some)),
            Piece::Hole(missing) => out.extend(std::iter::repeat_n(None, missing as usize)),
        });
    }

    #[test]
    fn bytes_that_were_not_captured_are_a_hole() {
        let (mut order, mut out) = (Order::default(), Vec::new());
        order.put(1, b"ab", 5, &mut |piece| out.push(format!("{piece:?}")));
        order.put(6, b"c", 1, &mut |piece| out.push(format!("{piece:?}")));
        assert_eq!(out, ["Bytes([97, 98])", "Hole(3)", "Bytes([99])"]);
    }

    #[test]
    fn above_the_limit_missing_bytes_are_a_hole() {
        let (mut order, mut out) = (Order::default(), Vec::new());
        collect(&mut order, 0, b"a", &mut out);
        for place in 0..=WAITING_MAX as i64 {
            collect(&mut order, 3 + place, b"x", &mut out);
        }
        assert_eq!(out[..3], [Some(b'a'), None, None]);
        assert_eq!(out.len(), 3 + WAITING_MAX + 1);
        assert!(!order.waits() && order.held() == 0);
    }

    proptest! {
        #[test]
        fn any_order_gives_the_same_bytes(cuts in proptest::collection::vec(1_usize..9, 1..20), seed in any::<u64>()) {
            let text: Vec<u8> = (0..cuts.iter().sum::<usize>()).map(|at| at as u8).collect();
            let mut pieces = Vec::new();
            let mut at = 0;
            for cut in &cuts {
                pieces.push((at, at + cut));
                at += cut;
            }
            let first = pieces[0];
            let mut seed = seed;
            pieces.sort_by_key(|_| { seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1); seed >> 33 });
            let (mut order, mut out) = (Order::default(), Vec::new());
            collect(&mut order, first.0 as i64, &text[first.0..first.1], &mut out);
            for (from, to) in pieces {
                collect(&mut order, from as i64, &text[from..to], &mut out);
            }
            prop_assert_eq!(out, text.into_iter().map(Some).collect::<Vec<_>>());
        }
    }
}
