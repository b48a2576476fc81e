//! A random share of the ports, spread over all of them, and the filter that makes the kernel return only sockets at these ports.

/// Number of windows of a share. Ephemeral ports lie in a part of the range, and few windows would often miss all of them. Before it accepts a program, the
/// kernel walks it once for each of its branches (inet_diag_bc_audit): twice as many windows cost four times as much.
const WINDOWS: u32 = 64;
/// Ports from one window to the next; a power of two.
pub(super) const STEP: u32 = 65_536 / WINDOWS;
/// Least ports of a window.
const WIDTH_MIN: u32 = 8;
/// Most shared local ports in a program.
pub(super) const PORTS_MAX: usize = 24;

/// Operations of `struct inet_diag_bc_op` (linux/inet_diag.h): {code, yes, no}. A comparison has its port in a second one.
const JUMP: u8 = 1;
const LOCAL_PORT_FROM: u8 = 2;
const LOCAL_PORT_TO: u8 = 3;
const REMOTE_PORT_FROM: u8 = 4;
const REMOTE_PORT_TO: u8 = 5;
const LOCAL_PORT_IS: u8 = 11;
/// Bytes of an operation, and of a comparison.
const OPERATION: usize = 4;
const COMPARISON: usize = 8;

/// Windows of equal width at equal distances: each port is in one of them with the same probability.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Windows {
    width: u32,
    place: u32,
}

impl Windows {
    /// About this share of the ports, at a random place.
    pub(super) fn of(share: f64, drawn: u64) -> Self {
        let width = (share * f64::from(STEP)).ceil() as u32;
        Self { width: width.clamp(WIDTH_MIN, STEP), place: (drawn % u64::from(STEP)) as u32 }
    }

    /// The share exactly.
    pub(super) fn share(&self) -> f64 {
        f64::from(self.width) / f64::from(STEP)
    }

    /// First and last port of each window, in order. A window that wraps around the end is two ranges.
    pub(super) fn ranges(&self) -> Vec<(u16, u16)> {
        let port = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
        let window = |number: u32| (number * STEP + self.place, number * STEP + self.place + self.width - 1);
        let over = window(WINDOWS - 1).1.checked_sub(65_536).map(|last| (0, port(last)));
        over.into_iter().chain((0..WINDOWS).map(window).map(|(first, last)| (port(first), port(last)))).collect()
    }

    /// The filter. The port that is specific to a connection decides: the remote port if the local one is shared, else the local port. The kernel accepts a
    /// program only if its paths of successful comparisons lead to its end (net/ipv4/inet_diag.c, inet_diag_bc_audit).
    pub(super) fn program(&self, shared: &[u16]) -> Vec<u8> {
        let ranges = self.ranges();
        let shared = &shared[..shared.len().min(PORTS_MAX)];
        let total = shared.len() * (COMPARISON + OPERATION) + 2 * search_bytes(ranges.len());
        let mut program = Vec::with_capacity(total);
        for port in shared {
            compare(&mut program, LOCAL_PORT_IS, *port, COMPARISON + OPERATION);
            let to_remote = total - search_bytes(ranges.len()) - program.len();
            jump(&mut program, to_remote);
        }
        search(&mut program, total, (LOCAL_PORT_FROM, LOCAL_PORT_TO), &ranges);
        search(&mut program, total, (REMOTE_PORT_FROM, REMOTE_PORT_TO), &ranges);
        program
    }
}

/// Bytes of the search among this many ranges.
fn search_bytes(ranges: usize) -> usize {
    ranges * (2 * COMPARISON + OPERATION) + (ranges - 1) * COMPARISON
}

/// Accepts a port in one of these ranges and refuses all others, by binary search: every socket goes through this.
fn search(program: &mut Vec<u8>, total: usize, codes: (u8, u8), ranges: &[(u16, u16)]) {
    // Four bytes beyond the end: the socket does not pass.
    let refuse = |program: &[u8]| total - program.len() + OPERATION;
    if let [(first, last)] = ranges {
        let no = refuse(program);
        compare(program, codes.0, *first, no);
        let no = refuse(program);
        compare(program, codes.1, *last, no);
        let accept = total - program.len();
        jump(program, accept);
        return;
    }
    let (lower, upper) = ranges.split_at(ranges.len() / 2);
    compare(program, codes.0, upper[0].0, COMPARISON + search_bytes(upper.len()));
    search(program, total, codes, upper);
    search(program, total, codes, lower);
}

fn compare(program: &mut Vec<u8>, code: u8, port: u16, no: usize) {
    operation(program, code, COMPARISON, no);
    program.extend_from_slice(&[0, 0]);
    program.extend_from_slice(&port.to_ne_bytes());
}

fn jump(program: &mut Vec<u8>, to: usize) {
    operation(program, JUMP, OPERATION, to);
}

fn operation(program: &mut Vec<u8>, code: u8, yes: usize, no: usize) {
    program.extend_from_slice(&[code, u8::try_from(yes).unwrap_or(u8::MAX)]);
    program.extend_from_slice(&u16::try_from(no).unwrap_or(u16::MAX).to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Runs a program like the kernel (inet_diag_bc_run).
    fn passes(program: &[u8], local: u16, remote: u16) -> bool {
        let (mut at, number) = (0, |at: usize| u16::from_ne_bytes([program[at], program[at + 1]]));
        while at < program.len() {
            let is = match program[at] {
                JUMP => false,
                LOCAL_PORT_FROM => local >= number(at + 6),
                LOCAL_PORT_TO => local <= number(at + 6),
                REMOTE_PORT_FROM => remote >= number(at + 6),
                REMOTE_PORT_TO => remote <= number(at + 6),
                LOCAL_PORT_IS => local == number(at + 6),
                other => panic!("operation {other}"),
            };
            at += if is { usize::from(program[at + 1]) } else { usize::from(number(at + 2)) };
        }
        at == program.len()
    }

    #[test]
    fn over_all_places_every_port_is_read_equally_often() {
        let mut times = vec![0_u32; 65_536];
        for place in 0..STEP {
            for (first, last) in (Windows { width: 70, place }).ranges() {
                (first..=last).for_each(|port| times[usize::from(port)] += 1);
            }
        }
        assert!(times.iter().all(|count| *count == 70));
    }

    #[test]
    fn a_share_is_at_least_a_few_ports_and_at_most_all() {
        assert_eq!(Windows::of(7.0, 3).share(), 1.0);
        assert_eq!(Windows::of(0.0, 3).share(), f64::from(WIDTH_MIN) / f64::from(STEP));
        assert_eq!(Windows::of(0.25, u64::MAX).share(), 0.25);
    }

    proptest! {
        #[test]
        fn the_specific_port_of_a_socket_decides(share in 0.0..1.0_f64, place: u64, local: u16, remote: u16, shared in proptest::collection::vec(any::<u16>(), 0..40)) {
            let windows = Windows::of(share, place);
            let program = windows.program(&shared);
            let inside = |port: u16| windows.ranges().iter().any(|(first, last)| (*first..=*last).contains(&port));
            let used = &shared[..shared.len().min(PORTS_MAX)];
            prop_assert_eq!(passes(&program, local, remote), inside(if used.contains(&local) { remote } else { local }));
            for port in used {
                prop_assert_eq!(passes(&program, *port, remote), inside(remote));
            }
        }
    }
}
