//! Invalidation policy of unmapped pages, and how long devices could access them.

use crate::allocator::{Device, IovaRange};
use lanemark_units::Ticks;

/// When translations of unmapped pages are invalidated.
///
/// Until then a device can access the memory behind them, even if it is in other use by now. No IOVA is reused before
/// its invalidation is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invalidation {
    /// Before `unmap` returns.
    Strict,
    /// In batches: all queued ranges, as soon as `entries` are queued or the oldest is queued for `longest`. Cheaper,
    /// but devices have a window of access.
    Deferred {
        /// Maximum length of the queue; 1 to [`Invalidation::MOST_ENTRIES`].
        entries: u32,
        /// Maximum time in the queue. Checked when the domain is called; call
        /// [`Domain::flush_due`](crate::Domain::flush_due) from a timer.
        longest: Ticks,
    },
}

impl Invalidation {
    /// Maximum length of the queue.
    pub const MOST_ENTRIES: u32 = 1 << 20;
    /// The policy of common kernels: batches of 256, at most 10 ms in the queue.
    pub const DEFERRED: Invalidation = Invalidation::Deferred { entries: 256, longest: Ticks::whole_ns(10_000_000) };
}

/// Distribution of access windows: how long devices could access pages after `unmap`.
///
/// A window starts at the `now` of the `unmap` and ends at the `now` of the call that invalidates, plus the duration
/// of the invalidation that the backend reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Windows {
    /// Longest window.
    pub longest: Ticks,
    /// Sum of all windows, in ticks.
    pub sum_ticks: u128,
    /// Histogram: index 0 counts windows of 0 ticks, index `i` windows of 2^(i-1) to 2^i - 1 ticks.
    pub by_length: [u64; 65],
}

impl Default for Windows {
    fn default() -> Windows {
        Windows { longest: Ticks::ZERO, sum_ticks: 0, by_length: [0; 65] }
    }
}

impl Windows {
    #[inline]
    pub(crate) fn add(&mut self, window: Ticks) {
        self.by_length[(u64::BITS - window.0.leading_zeros()) as usize] += 1;
        if window > Ticks::ZERO {
            self.longest = self.longest.max(window);
            self.sum_ticks += u128::from(window.0);
        }
    }

    /// Number of windows: one per `unmap` whose invalidation is complete.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.by_length.iter().sum()
    }

    /// Mean window; `None` if there were none.
    #[must_use]
    pub fn mean(&self) -> Option<Ticks> {
        let mean = self.sum_ticks.checked_div(u128::from(self.count()))?;
        u64::try_from(mean).ok().map(Ticks)
    }

    /// Upper bound of the quantile `share` (0 to 1): a power of two less one, in ticks, or the longest window. `None`
    /// if there were none.
    #[must_use]
    pub fn within(&self, share: f64) -> Option<Ticks> {
        let wanted = (share.clamp(0.0, 1.0) * self.count() as f64).ceil() as u64;
        let mut seen = 0;
        let length = self.by_length.iter().position(|count| {
            seen += count;
            seen >= wanted
        })?;
        let most = if length == 64 { u64::MAX } else { (1 << length) - 1 };
        (self.count() > 0).then_some(Ticks(most).min(self.longest))
    }
}

/// An unmapped IOVA range whose invalidation is pending.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unmapped {
    pub granted: IovaRange,
    pub device: Device,
    pub at: Ticks,
}

/// Queue of pending invalidations, oldest first.
#[derive(Debug)]
pub(crate) struct Waiting {
    entries: Vec<Unmapped>,
    most: usize,
    longest: Ticks,
}

impl Waiting {
    pub fn new(policy: Invalidation) -> Waiting {
        let (most, longest) = match policy {
            // Only a failed invalidation is queued; it is retried before anything else is unmapped.
            Invalidation::Strict => (1, Ticks::NEVER),
            Invalidation::Deferred { entries, longest } => (entries as usize, longest),
        };
        Waiting { entries: Vec::new(), most, longest }
    }

    pub fn entries(&self) -> &[Unmapped] {
        &self.entries
    }

    #[inline]
    pub fn is_full(&self) -> bool {
        self.entries.len() >= self.most
    }

    /// Whether the queue must be flushed now.
    pub fn is_due(&self, now: Ticks) -> bool {
        self.is_full() || self.entries.first().is_some_and(|oldest| now.since(oldest.at) >= self.longest)
    }

    #[inline]
    pub fn push(&mut self, unmapped: Unmapped) {
        self.entries.push(unmapped);
    }

    /// Removes the newest entry.
    pub fn pop(&mut self) -> Option<Unmapped> {
        self.entries.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_counted_by_powers_of_two() {
        let mut windows = Windows::default();
        assert_eq!((windows.mean(), windows.within(0.5)), (None, None));
        for ticks in [0, 1, 2, 3, 4, u64::MAX] {
            windows.add(Ticks(ticks));
        }
        assert_eq!(
            (windows.by_length[0], windows.by_length[1], windows.by_length[2], windows.by_length[3]),
            (1, 1, 2, 1)
        );
        assert_eq!((windows.by_length[64], windows.longest), (1, Ticks::NEVER));
        assert_eq!(windows.mean(), Some(Ticks(((u128::from(u64::MAX) + 10) / 6) as u64)));
        assert_eq!(windows.within(0.0), Some(Ticks(0)));
        assert_eq!(windows.within(4.0 / 6.0), Some(Ticks(3)));
        assert_eq!(windows.within(5.0 / 6.0), Some(Ticks(7)));
        assert_eq!(windows.within(1.0), Some(Ticks::NEVER));
    }

    #[test]
    fn the_queue_is_due_when_it_is_full_or_its_oldest_entry_is_too_old() {
        let mut waiting = Waiting::new(Invalidation::Deferred { entries: 2, longest: Ticks(10) });
        let granted = IovaRange { at: lanemark_units::Iova(0), len_bytes: 4096 };
        assert!(!waiting.is_due(Ticks::NEVER));
        waiting.push(Unmapped { granted, device: Device(0), at: Ticks(5) });
        assert!(!waiting.is_due(Ticks(14)) && waiting.is_due(Ticks(15)));
        waiting.push(Unmapped { granted, device: Device(0), at: Ticks(6) });
        assert!(waiting.is_due(Ticks(6)));
    }
}
