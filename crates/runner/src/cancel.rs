//! Cancellation flag, shared between threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that ends a run early. Clones share it, so a signal handler or another thread can set it.
///
/// ```
/// let cancel = lanemark_runner::Cancel::new();
/// let other = cancel.clone();
/// assert!(!other.cancel(), "the flag was not set before");
/// assert!(cancel.is_cancelled() && cancel.cancel());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A flag that is not set.
    #[must_use]
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// Sets the flag; returns whether it had been set before.
    #[allow(clippy::must_use_candidate)] // Most callers need only the effect.
    pub fn cancel(&self) -> bool {
        self.0.swap(true, Ordering::Relaxed)
    }

    /// Whether the flag is set.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The shared flag, for machines that poll it during long plans.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}
