//! The CPU budget of an observation: one token bucket of CPU time that pays for everything its threads do.

/// One microsecond of CPU time flows in every `FLOW_US` microseconds: 0.75 % of a core. The aim is 1 % in total. An observation of ten seconds reaches it with
/// the first content of the bucket; wake-ups, which no thread's clock shows, come on top.
pub(crate) const FLOW_US: u64 = 133;
/// The same for an observation without an end: 0.5 % of a core. With the account of each second, logs and the history that is less than 1 % beside ten thousand
/// connections: nobody waits for its next sample, and it goes on for months.
pub(super) const FLOW_RECORDER_US: u64 = 200;
/// In the first seconds of watching, samples of requests may take one part in so many of a core, beside the budget: six of them, the fewest from which the judge tells how
/// requests vary, come in five seconds even if each takes 25 ms.
pub(crate) const EARLY_PART: u64 = 20;
/// Under a load of this process it is one part in so many, for the length of a usual load: the search for the processes of a busy host, or the first reads of hundreds of them, must not leave it with two
/// samples, of which no verdict follows. That is the usual pace, four a second, as long as a sample takes 5 ms.
pub(crate) const LOADED_PART: u64 = 50;
/// How long a usual load is.
pub(crate) const LOADED_US: u64 = 10_000_000;
/// How long these first seconds are. Whoever watches without saying for how long watches for five; an observation of a minute spends no more than 0.4 % of a core on them.
pub(crate) const EARLY_US: u64 = 5_000_000;
/// The inflow of two cores at most so many times.
const CORES_TIMES_MAX: u64 = 8;
/// First and largest content, microseconds: the inflow of nearly three seconds, since a load may last only four.
const CAPACITY_US: i64 = 20_000;
/// Largest debt, microseconds. A burst of work, such as the first reads of hundreds of new processes, must not leave everything unread for longer than a load
/// lasts.
const OWED_MAX_US: i64 = 80_000;
/// The inflow is divided in portions of at least this, microseconds. Smaller portions would leave nothing for each account.
const REFILL_MIN_US: u64 = 100;
/// Longest wait for payment. After one turn that took very long, whatever the reason, nothing stays undone for longer.
const WAIT_MAX_US: u64 = 60_000_000;
/// While the bucket is in debt, `1 / WAITING_PART` of the inflow still goes to the waiting accounts, so that none waits for ever.
const WAITING_PART: i64 = 4;
/// `1 / SAMPLES_PART` of the inflow is for samples of requests, on which the account of the clients' time rests. Samples keep the pace that this part pays
/// for, whatever else waits.
const SAMPLES_PART: u64 = 2;

/// The savings of one kind of work for its next turn.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// Expected cost of the next turn, microseconds: that of the last one, or of the one before if that was less. Of one slow turn the machine is the reason.
    cost_us: i64,
    /// Cost of the last turn.
    last_us: i64,
    /// Negative if turns cost more than was saved for them.
    saved_us: i64,
    /// Spent on a turn that is under way.
    turn_paid_us: i64,
    /// It is due and has not saved enough.
    waits: bool,
    /// Since when.
    since_us: Option<u64>,
}

impl Account {
    /// Raises the expected cost of a turn, for a cost that was not charged.
    pub(super) fn raise_cost(&mut self, cost_us: u64) {
        self.cost_us = self.cost_us.max(cost_us as i64);
    }

    /// Sets the expected cost of a turn that is not paid for beforehand.
    pub(super) fn set_cost(&mut self, cost_us: u64) {
        let last_us = std::mem::replace(&mut self.last_us, cost_us as i64);
        self.cost_us = if last_us > 0 { last_us.min(cost_us as i64) } else { cost_us as i64 };
    }

    /// Begins a turn: spends what was set aside for it. The payment for a turn without an answer comes back.
    pub(super) fn begin_turn(&mut self) {
        self.saved_us += self.turn_paid_us - self.cost_us;
        self.turn_paid_us = self.cost_us;
        self.waits = false;
    }

    /// Expected cost of the next turn, microseconds.
    pub(super) fn cost_us(&self) -> u64 {
        self.cost_us as u64
    }

    fn shortfall_us(&self) -> i64 {
        (self.cost_us - self.saved_us).max(0)
    }
}

/// The bucket of one observation.
#[derive(Debug)]
pub(super) struct Bucket {
    /// Negative: a debt.
    level_us: i64,
    refilled_us: u64,
    /// One microsecond of CPU time flows in in so many.
    flow_us: u64,
    /// Namespaces with expensive samples of requests.
    sampled: u64,
}

impl Bucket {
    /// A full bucket.
    pub(super) fn new(now_us: u64) -> Self {
        Self { level_us: CAPACITY_US, refilled_us: now_us, flow_us: FLOW_US, sampled: 1 }
    }

    /// The same for a host with so many cores. The inflow is a part of the host: of sixteen cores eight times as much is as little as of two, and more is never asked for. With fewer cores it is that of two.
    pub(super) fn for_cores(self, cores: usize) -> Self {
        let times = (cores as u64 / 2).clamp(1, CORES_TIMES_MAX);
        Self { flow_us: self.flow_us / times, ..self }
    }

    /// The same with another inflow.
    pub(super) fn with_flow(self, flow_us: u64) -> Self {
        Self { flow_us, ..self }
    }

    /// Sets the number of namespaces with expensive samples of requests. They share the part for samples.
    pub(super) fn shared_by(&mut self, sampled: usize) {
        self.sampled = (sampled as u64).max(1);
    }

    /// The shortest time between two samples of a namespace, for samples of this cost.
    pub(super) fn sample_period_us(&self, cost_us: u64) -> u64 {
        cost_us * self.flow_us * SAMPLES_PART * self.sampled
    }

    /// The same in the first seconds, in which samples may take one part in so many of a core.
    pub(super) fn early_sample_period_us(&self, cost_us: u64, part: u64) -> u64 {
        cost_us * part * self.sampled
    }

    /// Adds the inflow since the last call and divides the content evenly among the waiting accounts, to none more than it lacks. So cheap work is paid at
    /// once, and expensive work saves while nothing else has to wait for it.
    pub(super) fn refill<'a>(&mut self, now_us: u64, accounts: impl Iterator<Item = &'a mut Account>) {
        let came = now_us.saturating_sub(self.refilled_us) / self.flow_us;
        if came < REFILL_MIN_US {
            return;
        }
        self.refilled_us += came * self.flow_us;
        let mut waiting: Vec<&mut Account> = accounts.filter(|account| account.waits).collect();
        waiting.sort_by_key(|account| account.shortfall_us());
        let came_us = came as i64;
        let theirs_us = if waiting.is_empty() { 0 } else { came_us / WAITING_PART };
        let repaid_us = (-self.level_us).clamp(0, came_us - theirs_us);
        let mut left_us = self.level_us.max(0) + came_us - repaid_us;
        let owed_us = self.level_us.min(0) + repaid_us;
        for (number, account) in (1..=waiting.len() as i64).rev().zip(waiting) {
            let part_us = account.shortfall_us().min(left_us / number);
            account.saved_us += part_us;
            left_us -= part_us;
        }
        self.level_us = (left_us + owed_us).min(CAPACITY_US);
    }

    /// Spends CPU time that was used, even beyond the content.
    pub(super) fn spend(&mut self, cost_us: u64) {
        self.level_us = (self.level_us - cost_us as i64).max(-OWED_MAX_US);
    }

    /// Gives back what was spent on work that the budget does not pay.
    pub(super) fn give_back(&mut self, cost_us: u64) {
        self.level_us = (self.level_us + cost_us as i64).min(CAPACITY_US);
    }

    /// Sets aside the cost of the next turn, taken as that of the last one. False if the content does not suffice; then the account waits, but never too long.
    pub(super) fn reserve(&mut self, account: &mut Account) -> bool {
        let shortfall_us = account.shortfall_us();
        account.waits = shortfall_us > 0 && shortfall_us > self.level_us;
        if account.waits {
            let since_us = *account.since_us.get_or_insert(self.refilled_us);
            account.waits = self.refilled_us.saturating_sub(since_us) < WAIT_MAX_US;
        }
        if !account.waits {
            account.since_us = None;
            account.saved_us += shortfall_us;
            self.level_us = (self.level_us - shortfall_us).max(self.level_us.min(-OWED_MAX_US));
        }
        !account.waits
    }

    /// Charges an account for its finished turn, which the bucket has paid. The account alone owes the excess over its payment, within the bound of all debts; what is
    /// left comes back.
    pub(super) fn settle(&mut self, account: &mut Account, cost_us: u64) {
        account.set_cost(cost_us);
        let left_us = std::mem::take(&mut account.turn_paid_us) - cost_us as i64;
        account.saved_us = (account.saved_us + left_us.min(0)).max(-OWED_MAX_US);
        self.level_us += cost_us as i64 + left_us.max(0);
    }

    /// True if the bucket stays half full after the next turn. Then readings that are useful but not needed are taken too.
    pub(super) fn is_plentiful(&self, account: &Account) -> bool {
        self.level_us - account.shortfall_us() >= CAPACITY_US / 2
    }

    /// Backoff factor for the periods of sources that do not wait for payment: 1 unless they alone have put the bucket into a debt of its capacity.
    pub(super) fn backoff(&self) -> u64 {
        1 + (-self.level_us).max(0) as u64 / CAPACITY_US as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cost_us: u64) -> Account {
        Account { cost_us: cost_us as i64, last_us: cost_us as i64, waits: true, ..Account::default() }
    }

    #[test]
    fn a_part_of_a_core_flows_in_up_to_the_capacity() {
        let mut bucket = Bucket::new(0);
        bucket.spend(25_000);
        for now_us in (0..=10_000 * FLOW_US).step_by(1_001) {
            bucket.refill(now_us, std::iter::empty());
        }
        assert!((4_900..=5_000).contains(&bucket.level_us), "{}", bucket.level_us);
        bucket.refill(1_000_000_000, std::iter::empty());
        assert_eq!(bucket.level_us, CAPACITY_US);
    }

    #[test]
    fn the_content_is_divided_evenly_and_cheap_work_is_paid_first() {
        let mut bucket = Bucket { level_us: 0, ..Bucket::new(0) };
        let mut accounts = [of(50_000), of(100), of(5_000), of(5_000)];
        bucket.refill(2_000 * FLOW_US, accounts.iter_mut());
        assert_eq!(accounts.each_ref().map(|account| account.saved_us), [634, 100, 633, 633]);
        assert_eq!(bucket.level_us, 0);
        assert!(bucket.reserve(&mut accounts[1]) && !bucket.reserve(&mut accounts[2]));
        bucket.refill(16_000 * FLOW_US, accounts.iter_mut());
        assert_eq!(accounts.each_ref().map(|account| account.saved_us), [5_900, 100, 5_000, 5_000]);
        assert!(bucket.reserve(&mut accounts[2]), "cheap work does not wait for the expensive account");
    }

    #[test]
    fn an_account_alone_owes_the_cost_beyond_its_savings() {
        let mut bucket = Bucket::new(0);
        let mut account = of(5_000);
        assert!(bucket.reserve(&mut account));
        account.begin_turn();
        assert_eq!(account.shortfall_us(), 5_000, "the next turn is not paid by what this one will take");
        bucket.spend(30_000);
        bucket.settle(&mut account, 30_000);
        assert_eq!((bucket.level_us, account.saved_us, account.cost_us), (15_000, -25_000, 5_000), "another one may be as cheap as before");
        assert!(!bucket.reserve(&mut account) && account.waits, "but this one has to be paid first");
        let mut cheap = of(4_000);
        assert!(bucket.reserve(&mut cheap));
        cheap.begin_turn();
        bucket.spend(1_000);
        bucket.settle(&mut cheap, 1_000);
        assert_eq!((bucket.level_us, cheap.saved_us, cheap.cost_us), (14_000, 0, 1_000), "what is left comes back");
        for _ in 0..10 {
            assert!(bucket.reserve(&mut cheap));
            cheap.begin_turn();
        }
        assert_eq!(
            (bucket.level_us, cheap.saved_us, cheap.turn_paid_us),
            (12_000, 1_000, 1_000),
            "so does the payment for turns without an answer"
        );
    }

    #[test]
    fn nothing_waits_for_ever_after_a_turn_that_took_very_long() {
        let (mut bucket, mut slow) = (Bucket::new(0), of(3_600_000_000));
        let mut now_us = 0;
        while !bucket.reserve(&mut slow) {
            now_us += 250_000;
            bucket.refill(now_us, std::iter::once(&mut slow));
            assert!(now_us <= WAIT_MAX_US + 1_000_000, "it waits for {now_us} us");
        }
        assert!(now_us >= WAIT_MAX_US && bucket.level_us >= -OWED_MAX_US);
        slow.begin_turn();
        bucket.settle(&mut slow, 100);
        assert!(bucket.reserve(&mut slow), "its next turn is paid for as usual");
    }

    #[test]
    fn half_of_the_inflow_is_for_samples_of_all_namespaces() {
        let mut bucket = Bucket::new(0);
        bucket.shared_by(0);
        assert_eq!(bucket.sample_period_us(500), 500 * FLOW_US * 2);
        bucket.shared_by(2);
        assert_eq!(bucket.sample_period_us(1_700), 1_700 * FLOW_US * 4);
    }

    #[test]
    fn waiting_accounts_get_a_part_however_large_the_debt() {
        let mut bucket = Bucket::new(0);
        bucket.spend(1_020_000);
        let mut account = of(10_000);
        bucket.refill(40_000 * FLOW_US, std::iter::once(&mut account));
        assert_eq!((account.saved_us, bucket.level_us), (10_000, -50_000), "of 1,020,000 the most is owed");
        assert_eq!(bucket.backoff(), 3);
        bucket.refill(80_000 * FLOW_US, std::iter::empty());
        assert_eq!(bucket.level_us, -10_000, "all of it where nobody waits");
        assert_eq!(Bucket { level_us: 1 - CAPACITY_US, ..Bucket::new(0) }.backoff(), 1);
    }
}
