//! Whether an observation is to end as soon as it can: everything that takes long asks for it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Says whether to end.
#[derive(Clone, Default)]
pub struct Stop {
    /// Set by the observation's owner when it lets go of it.
    abandoned: Arc<AtomicBool>,
    /// What the user asks for.
    asked: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
}

impl Stop {
    /// To end once this is true.
    pub fn when(asked: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { asked: Some(Arc::new(asked)), ..Self::default() }
    }

    /// For one observation that ends for the same reasons.
    pub(super) fn for_one(&self) -> Self {
        Self { abandoned: Arc::default(), asked: self.asked.clone() }
    }

    /// Asks to end.
    pub(super) fn set(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    /// True once it is to end.
    pub fn is_set(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed) || self.asked.as_ref().is_some_and(|asked| asked())
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stop").field("is_set", &self.is_set()).finish()
    }
}
