//! What an observation may cost: one bucket of CPU time, out of which everything is paid that its threads do.

/// One microsecond of CPU time flows in every so many microseconds: seven and a half thousandths of a core. The aim is one hundredth for all together, which an
/// observation of ten seconds reaches with what is in the bucket at first; wake-ups that no thread's clock shows come on top.
pub(crate) const FLOW_US: u64 = 133;
/// CPU time that is in it at first and at the most, microseconds: as much as flows in within nearly three seconds, for a load may last only four.
const CAPACITY_US: i64 = 20_000;
/// No more than this is owed, microseconds: a burst of work, such as the first look at hundreds of processes that joined, must not leave everything unread for
/// longer than a load lasts.
const OWED_MAX_US: i64 = 80_000;
/// What flowed in is divided when so much has come, microseconds: of less than that nothing would be left for each.
const POURED_MIN_US: u64 = 100;
/// While more was taken than there was, one of so many parts of what flows in still goes to the accounts that wait: so none waits for ever.
const WAITING_PART: i64 = 4;
/// One of so many parts of what flows in is for samples of requests, which the account of the clients' time rests on: they keep to a pace that this pays,
/// whatever else waits.
const SAMPLES_PART: u64 = 2;

/// What one kind of work saves for its next turn.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// What a turn took the last time, microseconds.
    cost_us: i64,
    /// Below zero where turns took more than was saved for them.
    saved_us: i64,
    /// What was spent on a turn that was given out and has not been answered.
    given_us: i64,
    /// It is due and has not got enough.
    waits: bool,
}

impl Account {
    /// Takes note of what a turn may take, where another one was not charged to it.
    pub(super) fn expect(&mut self, cost_us: u64) {
        self.cost_us = self.cost_us.max(cost_us as i64);
    }

    /// Takes note of what a turn takes that nothing is set aside for.
    pub(super) fn learn(&mut self, cost_us: u64) {
        self.cost_us = cost_us as i64;
    }

    /// Spends what was set aside for a turn, which is given out. What was spent on one that nobody has answered is there again.
    pub(super) fn give(&mut self) {
        self.saved_us += self.given_us - self.cost_us;
        self.given_us = self.cost_us;
        self.waits = false;
    }

    /// What a turn took the last time, microseconds.
    pub(super) fn cost_us(&self) -> u64 {
        self.cost_us as u64
    }

    fn lacks_us(&self) -> i64 {
        (self.cost_us - self.saved_us).max(0)
    }
}

/// The bucket of one observation.
#[derive(Debug)]
pub(super) struct Bucket {
    /// Below zero where more was taken than there was.
    level_us: i64,
    poured_us: u64,
    /// Namespaces of which a sample of requests is expensive.
    sampled: u64,
}

impl Bucket {
    /// A full one.
    pub(super) fn new(now_us: u64) -> Self {
        Self { level_us: CAPACITY_US, poured_us: now_us, sampled: 1 }
    }

    /// Tells of how many namespaces a sample of requests is expensive: they share what is for samples.
    pub(super) fn shared_by(&mut self, sampled: usize) {
        self.sampled = (sampled as u64).max(1);
    }

    /// The shortest time from one sample of a namespace to the next, where one takes so long.
    pub(super) fn sample_period_us(&self, cost_us: u64) -> u64 {
        cost_us * FLOW_US * SAMPLES_PART * self.sampled
    }

    /// Lets in what came since the last time and divides what is there among the accounts that wait, evenly, but to none more than it lacks. So what is
    /// cheap is paid at once, and what is expensive saves, while nothing else has to wait for it.
    pub(super) fn pour<'a>(&mut self, now_us: u64, accounts: impl Iterator<Item = &'a mut Account>) {
        let came = now_us.saturating_sub(self.poured_us) / FLOW_US;
        if came < POURED_MIN_US {
            return;
        }
        self.poured_us += came * FLOW_US;
        let mut waiting: Vec<&mut Account> = accounts.filter(|account| account.waits).collect();
        waiting.sort_by_key(|account| account.lacks_us());
        let came_us = came as i64;
        let theirs_us = if waiting.is_empty() { 0 } else { came_us / WAITING_PART };
        let repaid_us = (-self.level_us).clamp(0, came_us - theirs_us);
        let mut left_us = self.level_us.max(0) + came_us - repaid_us;
        let owed_us = self.level_us.min(0) + repaid_us;
        for (number, account) in (1..=waiting.len() as i64).rev().zip(waiting) {
            let part_us = account.lacks_us().min(left_us / number);
            account.saved_us += part_us;
            left_us -= part_us;
        }
        self.level_us = (left_us + owed_us).min(CAPACITY_US);
    }

    /// Takes what was used, whether it is there or not.
    pub(super) fn take(&mut self, cost_us: u64) {
        self.level_us = (self.level_us - cost_us as i64).max(-OWED_MAX_US);
    }

    /// Sets aside what the next turn will take if it costs as much as the last one; else the account waits.
    pub(super) fn pays(&mut self, account: &mut Account) -> bool {
        let lacks_us = account.lacks_us();
        account.waits = lacks_us > 0 && lacks_us > self.level_us;
        if !account.waits {
            account.saved_us += lacks_us;
            self.level_us -= lacks_us;
        }
        !account.waits
    }

    /// Has an account bear what was taken for its turn. What it took beyond what was spent on it the account owes alone; what it left comes back.
    pub(super) fn charge(&mut self, account: &mut Account, cost_us: u64) {
        account.cost_us = cost_us as i64;
        let left_us = std::mem::take(&mut account.given_us) - account.cost_us;
        account.saved_us += left_us.min(0);
        self.level_us += account.cost_us + left_us.max(0);
    }

    /// True where it is half full even after the next turn is paid: then what is useful but not needed is read, too.
    pub(super) fn is_plentiful(&self, account: &Account) -> bool {
        self.level_us - account.lacks_us() >= CAPACITY_US / 2
    }

    /// How many times as long as usual is between two readings of what does not wait: once, unless that alone has overdrawn the bucket by all that fits in.
    pub(super) fn stretch(&self) -> u64 {
        1 + (-self.level_us).max(0) as u64 / CAPACITY_US as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cost_us: u64) -> Account {
        Account { cost_us: cost_us as i64, waits: true, ..Account::default() }
    }

    #[test]
    fn a_part_of_a_core_flows_in_and_no_more_than_fits_is_kept() {
        let mut bucket = Bucket::new(0);
        bucket.take(25_000);
        for now_us in (0..=10_000 * FLOW_US).step_by(1_001) {
            bucket.pour(now_us, std::iter::empty());
        }
        assert!((4_900..=5_000).contains(&bucket.level_us), "{}", bucket.level_us);
        bucket.pour(1_000_000_000, std::iter::empty());
        assert_eq!(bucket.level_us, CAPACITY_US);
    }

    #[test]
    fn what_is_there_is_divided_evenly_and_the_cheap_is_paid_first() {
        let mut bucket = Bucket { level_us: 0, ..Bucket::new(0) };
        let mut accounts = [of(50_000), of(100), of(5_000), of(5_000)];
        bucket.pour(2_000 * FLOW_US, accounts.iter_mut());
        assert_eq!(accounts.each_ref().map(|account| account.saved_us), [634, 100, 633, 633]);
        assert_eq!(bucket.level_us, 0);
        assert!(bucket.pays(&mut accounts[1]) && !bucket.pays(&mut accounts[2]));
        bucket.pour(16_000 * FLOW_US, accounts.iter_mut());
        assert_eq!(accounts.each_ref().map(|account| account.saved_us), [5_900, 100, 5_000, 5_000]);
        assert!(bucket.pays(&mut accounts[2]), "nobody waits for the expensive one to have saved enough");
    }

    #[test]
    fn an_account_owes_alone_what_its_turn_took_beyond_its_savings() {
        let mut bucket = Bucket::new(0);
        let mut account = of(5_000);
        assert!(bucket.pays(&mut account));
        account.give();
        assert_eq!(account.lacks_us(), 5_000, "the next turn is not paid by what this one will take");
        bucket.take(30_000);
        bucket.charge(&mut account, 30_000);
        assert_eq!((bucket.level_us, account.saved_us, account.cost_us), (15_000, -25_000, 30_000));
        assert!(!bucket.pays(&mut account) && account.waits);
        let mut thrifty = of(4_000);
        assert!(bucket.pays(&mut thrifty));
        thrifty.give();
        bucket.take(1_000);
        bucket.charge(&mut thrifty, 1_000);
        assert_eq!((bucket.level_us, thrifty.saved_us, thrifty.cost_us), (14_000, 0, 1_000), "what is left comes back");
        for _ in 0..10 {
            assert!(bucket.pays(&mut thrifty));
            thrifty.give();
        }
        assert_eq!((bucket.level_us, thrifty.saved_us, thrifty.given_us), (12_000, 1_000, 1_000), "so does what nobody answers");
    }

    #[test]
    fn a_half_is_for_samples_of_all_namespaces_together() {
        let mut bucket = Bucket::new(0);
        bucket.shared_by(0);
        assert_eq!(bucket.sample_period_us(500), 500 * FLOW_US * 2);
        bucket.shared_by(2);
        assert_eq!(bucket.sample_period_us(1_700), 1_700 * FLOW_US * 4);
    }

    #[test]
    fn those_that_wait_get_a_part_however_much_was_taken() {
        let mut bucket = Bucket::new(0);
        bucket.take(1_020_000);
        let mut account = of(10_000);
        bucket.pour(40_000 * FLOW_US, std::iter::once(&mut account));
        assert_eq!((account.saved_us, bucket.level_us), (10_000, -50_000), "of 1,020,000 the most is owed");
        assert_eq!(bucket.stretch(), 3);
        bucket.pour(80_000 * FLOW_US, std::iter::empty());
        assert_eq!(bucket.level_us, -10_000, "all of it where nobody waits");
        assert_eq!(Bucket { level_us: 1 - CAPACITY_US, ..Bucket::new(0) }.stretch(), 1);
    }
}
