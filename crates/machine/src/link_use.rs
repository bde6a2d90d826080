//! Link utilization.

use crate::Direction;
use lanemark_units::Ticks;

/// Traffic in one direction of one link while samples were taken, without warm-up.
///
/// The observed time is that of the samples until delivery. If several devices transfer concurrently, it is the time
/// during which all of them are active.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkUse {
    /// Name of the device below the link.
    pub link: String,
    /// Direction.
    pub direction: Direction,
    /// Observed time, over all samples.
    pub span: Ticks,
    /// Part of it in which TLPs with their framing were transmitted, without padding before the start of the next
    /// TLP.
    pub tlps: Ticks,
    /// Part of it in which DLLPs were transmitted that could delay a TLP.
    pub dllps: Ticks,
    /// Payload bytes of the TLPs.
    pub payload_bytes: u64,
}

impl LinkUse {
    /// An idle direction.
    #[must_use]
    pub fn idle(link: &str, direction: Direction) -> LinkUse {
        let (span, tlps, dllps) = (Ticks::ZERO, Ticks::ZERO, Ticks::ZERO);
        LinkUse { link: link.to_owned(), direction, span, tlps, dllps, payload_bytes: 0 }
    }

    /// Fraction of the time in which TLPs were transmitted, 0 to 1; 0 without any observed time.
    ///
    /// ```
    /// use lanemark_machine::{Direction, LinkUse};
    /// use lanemark_units::Ticks;
    /// let link = "card".to_owned();
    /// let half = LinkUse {
    ///     link,
    ///     direction: Direction::Upstream,
    ///     span: Ticks(200),
    ///     tlps: Ticks(100),
    ///     dllps: Ticks(2),
    ///     payload_bytes: 64,
    /// };
    /// assert_eq!((half.tlp_share(), half.dllp_share()), (0.5, 0.01));
    /// ```
    #[must_use]
    pub fn tlp_share(&self) -> f64 {
        self.share(self.tlps)
    }

    /// Fraction of the time in which DLLPs were transmitted, 0 to 1; 0 without any observed time.
    #[must_use]
    pub fn dllp_share(&self) -> f64 {
        self.share(self.dllps)
    }

    /// Payload bytes per second; 0 without any observed time.
    #[must_use]
    pub fn payload_rate_bytes_per_s(&self) -> f64 {
        if self.span > Ticks::ZERO { self.payload_bytes as f64 * 1e9 / self.span.as_ns() } else { 0.0 }
    }

    fn share(&self, part: Ticks) -> f64 {
        if self.span > Ticks::ZERO { part.as_ns() / self.span.as_ns() } else { 0.0 }
    }
}
