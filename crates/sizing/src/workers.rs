//! How many workers: from the time that a request takes, split into CPU and waiting, and the cores; and the memory that they need.

use chokepoint_model::{PoolMemory, Staffing};

/// What a request takes at one tier, and what the tier runs on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServiceTime {
    /// Time that a request holds a worker while no other request is under way, seconds.
    pub held_s: f64,
    /// CPU time of it at the highest load that was measured, seconds.
    pub cpu_s: f64,
    /// Cores that the tier may run on.
    pub cores: f64,
    /// Requests per second that these cores have time for, including what other tiers on them and the kernel take.
    pub core_ceiling_rps: f64,
    /// The rate that is to be carried, if it is less.
    pub wanted_rps: Option<f64>,
}

impl ServiceTime {
    /// CPU time that a request costs all cores of the tier, seconds: its own processes, other tiers on the same cores, and the kernel.
    pub fn cost_s(&self) -> f64 {
        self.cores / self.core_ceiling_rps
    }

    /// The requests that are to be carried, at most those that the cores have time for, and what each takes: what the remedies of the diagnosis compute with.
    pub fn staffing(&self) -> Staffing {
        Staffing { rate_rps: self.core_ceiling_rps.min(self.wanted_rps.unwrap_or(f64::INFINITY)), held_s: self.held_s, cpu_s: self.cpu_s }
    }

    /// The rest of the time: waiting for a disk, another server, a lock or a timer, seconds.
    pub fn wait_s(&self) -> f64 {
        self.staffing().wait_s()
    }

    /// True if a request hardly waits.
    pub fn is_cpu_bound(&self) -> bool {
        self.staffing().is_cpu_bound()
    }

    /// Workers that keep the cores full: those in service at once at the most that the cores carry, and a reserve; one for each core where requests compute.
    pub fn workers(&self) -> u32 {
        let cores = self.cores.max(1.0).ceil();
        let needed = self.staffing().workers();
        let workers = match self.wanted_rps {
            Some(wanted) if wanted < self.core_ceiling_rps => needed,
            _ if self.is_cpu_bound() => cores,
            _ => needed.max(cores),
        };
        workers.min(f64::from(u32::MAX)) as u32
    }
}

/// Memory of a tier's workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerMemory {
    /// Of the largest worker, and of all of them: what the remedies of the diagnosis compute with.
    pub pool: PoolMemory,
    /// MemAvailable of the host while they ran, bytes.
    pub available_bytes: Option<u64>,
}

impl WorkerMemory {
    /// Most workers for which there is memory: what is available, and what the present ones have. `None` if either is unknown.
    pub fn workers_max(&self) -> Option<u32> {
        let PoolMemory { worker_bytes, all_bytes, .. } = self.pool;
        let room = self.available_bytes?.saturating_add(all_bytes);
        (worker_bytes > 0).then(|| u32::try_from(room / worker_bytes).unwrap_or(u32::MAX))
    }
}

/// Requests that may wait in front of the workers and still meet the objective (Little's law). A longer queue only makes answers late.
pub fn queue(rate_rps: f64, objective_s: f64) -> u32 {
    (rate_rps * objective_s).ceil().clamp(1.0, f64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use chokepoint_model::MemoryMeasure;

    use super::*;

    fn of(held_ms: f64, cpu_ms: f64, cores: f64) -> ServiceTime {
        ServiceTime { held_s: held_ms / 1e3, cpu_s: cpu_ms / 1e3, cores, core_ceiling_rps: cores / cpu_ms * 1e3, wanted_rps: None }
    }

    #[test]
    fn cpu_bound_work_takes_as_many_workers_as_cores() {
        // The first thousand primes on two cores: 620 ms, all of it CPU.
        assert_eq!(of(620.0, 620.0, 2.0).workers(), 2);
        assert_eq!(of(620.0, 590.0, 2.0).workers(), 2);
        assert_eq!(of(1.0, 1.2, 8.0).workers(), 8);
        assert!(of(620.0, 600.0, 2.0).is_cpu_bound());
    }

    #[test]
    fn waiting_work_takes_cores_times_one_plus_wait_by_cpu() {
        // 9 ms of waiting for 1 ms of CPU: 2 cores x (1 + 9) = 20, and 4 more because the number that waits scatters (the square root of 18).
        assert_eq!(of(10.0, 1.0, 2.0).workers(), 24);
        // 99.5 ms of waiting, 0.5 ms of CPU, one core: 2,000/s x 100 ms = 200, and 14.1.
        assert_eq!(of(100.0, 0.5, 1.0).workers(), 214);
    }

    #[test]
    fn other_tiers_on_the_same_cores_leave_fewer_requests_to_wait() {
        let alone = of(10.0, 1.0, 2.0);
        let shared = ServiceTime { core_ceiling_rps: 1000.0, ..alone };
        assert!((alone.staffing().at_once() - 20.0).abs() < 1e-9 && (shared.staffing().at_once() - 10.0).abs() < 1e-9);
        assert!(shared.workers() < alone.workers());
    }

    #[test]
    fn a_rate_that_is_wanted_takes_no_more_than_it_needs() {
        // 230/s x 20.8 ms = 4.8, and the square root of 4.6 that wait.
        let wanted = ServiceTime { wanted_rps: Some(230.0), ..of(20.8, 0.6, 2.0) };
        assert_eq!((wanted.workers(), of(20.8, 0.6, 2.0).workers()), (7, 78));
        assert_eq!(ServiceTime { wanted_rps: Some(1e6), ..of(20.8, 0.6, 2.0) }.workers(), 78, "no more than the cores carry");
    }

    #[test]
    fn memory_bounds_the_number() {
        let pool = PoolMemory { worker_bytes: 20 << 20, all_bytes: 100 << 20, measure: MemoryMeasure::Private };
        let memory = WorkerMemory { pool, available_bytes: Some(900 << 20) };
        assert_eq!(memory.workers_max(), Some(50));
        assert_eq!(WorkerMemory { pool: PoolMemory { worker_bytes: 0, ..pool }, ..memory }.workers_max(), None);
        assert_eq!(WorkerMemory { available_bytes: None, ..memory }.workers_max(), None);
    }

    #[test]
    fn the_queue_is_as_long_as_the_objective_allows() {
        assert_eq!((queue(250.0, 0.2), queue(0.0, 0.2), queue(3.3, 1.0)), (50, 1, 4));
    }
}
