//! How many threads a load needs: more while the generator is the limit and cores are idle that neither it nor the server uses.
//!
//! A load begins with one thread. If all of its threads are busy all the time soon after the start, it begins anew with more of them: a load that is measured
//! has the same threads from its start to its end.

use std::time::Duration;

use chokepoint_model::load::GENERATOR_LIMITED;

use crate::host::cores::{self, CoreTimes, Used};
use crate::plan::Plan;

/// Time after the start at which the first look is taken. By then as many connections are open as one thread opens in that time.
const LOOK_FROM: Duration = Duration::from_millis(200);
/// Time between the two looks. The kernel counts the time of a core in ticks of up to 10 ms, so this is exact to a few hundredths.
const LOOK_FOR: Duration = Duration::from_millis(300);
/// The shortest load that is begun anew: in a shorter one the looks would be a good part of it.
const LOAD_MIN: Duration = Duration::from_secs(2);

/// The number of threads to begin with. The second value: whether there may be more.
pub(crate) fn at_first(plan: &Plan) -> (u32, bool) {
    let first = plan.threads.unwrap_or(1).min(plan.connections());
    // A number of requests is sent once, and stages need not reach the generator's limit at their start.
    let offers_time = plan.requests.is_none() && plan.duration.is_some_and(|duration| duration >= LOAD_MIN);
    (first, plan.threads.is_none() && offers_time && plan.options.stages.is_none())
}

/// The looks at a load that may need more threads.
#[derive(Debug)]
pub(crate) struct Looks {
    first: Option<(u64, Vec<u64>, CoreTimes)>,
    is_over: bool,
    cpus: Option<Vec<u32>>,
    most: u32,
    /// Share of its time on a core from which a thread is busy.
    limit: f64,
    /// Reads the times of all cores.
    read: fn() -> Option<CoreTimes>,
}

impl Looks {
    pub(crate) fn new(plan: &Plan, may_grow: bool) -> Self {
        // As many as cores, those of the process and of its cgroup's quota.
        let cores = std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX));
        let own = plan.cpus.as_ref().map_or(cores, |cpus| cores.min(cpus.len() as u32));
        let most = own.min(plan.connections());
        Self { first: None, is_over: !may_grow || most < 2, cpus: plan.cpus.clone(), most, limit: GENERATOR_LIMITED, read: cores::read }
    }

    /// To be called now and then. `spent_ns`: the time of each thread on a core so far. Returns the number of threads to begin anew with.
    pub(crate) fn look(&mut self, now_ns: u64, spent_ns: impl FnOnce() -> Vec<u64>) -> Option<u32> {
        if self.is_over || now_ns < LOOK_FROM.as_nanos() as u64 {
            return None;
        }
        let Some((at_ns, before, cores_before)) = &self.first else {
            let read = (self.read)();
            self.is_over = read.is_none();
            self.first = read.map(|cores| (now_ns, spent_ns(), cores));
            return None;
        };
        let elapsed_ns = now_ns - at_ns;
        if elapsed_ns < LOOK_FOR.as_nanos() as u64 {
            return None;
        }
        self.is_over = true;
        let spent = spent_ns();
        let shares = spent.iter().zip(before).map(|(now, before)| now.saturating_sub(*before) as f64 / elapsed_ns as f64);
        let is_limit = shares.clone().count() > 0 && shares.clone().all(|share| share >= self.limit);
        let used = (self.read)().and_then(|now| now.since(cores_before, self.cpus.as_deref())).filter(|_| is_limit)?;
        let threads = spent.len() as u32;
        let wanted = wanted(threads, &used).min(self.most);
        (wanted > threads).then_some(wanted)
    }
}

/// Threads for a load whose threads are all busy: at most twice as many. What is busy works for this load, so each further thread needs as much of the other
/// cores as the threads so far, besides one of the generator's own.
fn wanted(threads: u32, used: &Used) -> u32 {
    let of_each = used.busy / f64::from(threads);
    let room = (used.idle / of_each.max(1.0)).min(used.own_idle);
    threads + (room.floor() as u32).min(threads)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::plan::tests::plan;

    #[test]
    fn threads_are_added_while_what_they_ask_for_is_idle() {
        let used = |busy, idle, own_idle| Used { busy, idle, own_idle };
        assert_eq!(wanted(1, &used(2.5, 13.5, 7.0)), 2, "twice as many");
        assert_eq!(wanted(2, &used(5.0, 11.0, 6.0)), 4);
        assert_eq!(wanted(4, &used(10.0, 6.0, 4.0)), 6, "each takes two and a half cores with it");
        assert_eq!(wanted(6, &used(15.0, 1.0, 1.0)), 6, "none is left");
        assert_eq!(wanted(1, &used(1.2, 0.8, 0.8)), 1, "two cores, and the server needs a part of the other");
        assert_eq!(wanted(1, &used(8.0, 8.0, 0.2)), 1, "the generator has no core of its own left");
    }

    /// Sixteen cores, two of which are busy. Each reading is half a second after the one before.
    fn sixteen() -> Option<CoreTimes> {
        static TICKS: AtomicU64 = AtomicU64::new(0);
        let ticks = TICKS.fetch_add(50, Ordering::Relaxed);
        let core = |number: u32| {
            let (user, idle) = if number < 2 { (ticks, 0) } else { (0, ticks) };
            format!("cpu{number} {user} 0 0 {idle} 0 0 0 0 0 0\n")
        };
        cores::parse(&(0..16).map(core).collect::<String>())
    }

    fn looks(read: fn() -> Option<CoreTimes>) -> Looks {
        let plan = Plan { cpus: Some((0..16).collect()), ..plan() };
        Looks { is_over: false, most: 64, read, ..Looks::new(&plan, true) }
    }

    /// Looks at a machine with sixteen cores, for which every thread is busy.
    pub(crate) fn always_busy(plan: &Plan, may_grow: bool) -> Looks {
        let plan = Plan { cpus: Some((0..16).collect()), ..plan.clone() };
        Looks { is_over: !may_grow, most: 2, limit: 0.0, read: sixteen, ..Looks::new(&plan, true) }
    }

    #[test]
    fn the_second_look_decides_and_only_if_every_thread_was_busy() {
        let busy = 290_000_000;
        for (spent, wanted) in [(vec![busy], Some(2)), (vec![busy, busy], Some(4)), (vec![busy, 10], None), (vec![busy / 2], None)] {
            let mut looks = looks(sixteen);
            assert_eq!(looks.look(100_000_000, || unreachable!("too early")), None);
            assert_eq!(looks.look(200_000_000, || vec![0; spent.len()]), None);
            assert_eq!(looks.look(400_000_000, || unreachable!("too early")), None);
            assert_eq!(looks.look(500_000_000, || spent.clone()), wanted, "{spent:?}");
            assert_eq!(looks.look(900_000_000, || unreachable!("it is decided")), None);
        }
        let mut unread = looks(|| None);
        assert_eq!(unread.look(200_000_000, || vec![0]), None);
        assert_eq!(unread.look(500_000_000, || vec![busy]), None, "what is not read is not idle");
    }

    #[test]
    fn what_is_counted_or_changes_is_not_begun_anew() {
        let long = || Plan { duration: Some(Duration::from_secs(10)), threads: None, ..plan() };
        assert_eq!(at_first(&long()), (1, true));
        assert!(!at_first(&Plan { threads: Some(3), ..long() }).1);
        assert!(!at_first(&Plan { requests: Some(1_000_000), ..long() }).1);
        assert!(!at_first(&Plan { duration: Some(Duration::from_millis(900)), ..long() }).1);
    }
}
