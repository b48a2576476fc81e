//! How often one client is answered. Each answer costs the one thread of the server time, which is root's: a user who asks as fast as it can gets no more of it than this.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::shares::Client;

/// The time between two answers to one client, if it asks all the time: a page asks for what changed once a second, and Prometheus every few seconds.
const APART: Duration = Duration::from_millis(50);
/// As much of it may have been saved: a page that is opened asks for a dozen files and documents at once.
const SAVED_MAX: Duration = Duration::from_secs(2);

/// When each client may be answered next.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pace {
    /// When all that a client was given is used up. One that is not here has saved all that it may.
    used_until: Arc<Mutex<HashMap<Client, Instant>>>,
}

impl Pace {
    /// How long the next answer to this client is to wait; it counts as given (the generic cell rate algorithm, ITU-T I.371).
    pub(crate) fn wait(&self, client: Client, now: Instant) -> Duration {
        let mut used_until = self.used_until.lock().unwrap_or_else(PoisonError::into_inner);
        used_until.retain(|_, until| *until > now);
        let until = used_until.entry(client).or_insert(now);
        let wait = until.saturating_duration_since(now).saturating_sub(SAVED_MAX);
        *until += APART;
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_all_the_time_gets_so_many_answers_and_nobody_else_fewer() {
        let (pace, begin) = (Pace::default(), Instant::now());
        let mut now = begin;
        let mut answers = 0;
        while now < begin + Duration::from_secs(60) {
            now += pace.wait(Client::User(65_534), now);
            answers += 1;
        }
        let most = (Duration::from_secs(60) + SAVED_MAX).as_millis() / APART.as_millis() + 2;
        assert!((1_000..=most).contains(&answers), "{answers}");
        assert_eq!(pace.wait(Client::User(1_000), now), Duration::ZERO, "another one");
        let at_once = (0..30).map(|_| pace.wait(Client::User(1_001), now)).max();
        assert_eq!(at_once, Some(Duration::ZERO), "a page that is opened");
        now += Duration::from_secs(60);
        assert_eq!(pace.wait(Client::User(65_534), now), Duration::ZERO, "after a pause");
        assert_eq!(pace.used_until.lock().unwrap().len(), 1, "who asked long ago is forgotten");
    }
}
