//! What a link carried.

use crate::Direction;
use lanemark_units::Ticks;

/// What one direction of one link carried while samples were taken (warm-up not counted).
///
/// The time looked at is that of the samples' delivery; where several devices move bytes at once, the time that all have
/// in common.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkUse {
    /// The link, by the name of what hangs below it.
    pub link: String,
    /// Which way.
    pub direction: Direction,
    /// The time looked at, of all samples together.
    pub span: Ticks,
    /// Of it, the time in which the line carried TLPs with their framing; what is left free up to the place where the next
    /// one can start does not count.
    pub tlps: Ticks,
    /// Of it, the time of DLLPs that a TLP could have waited for.
    pub dllps: Ticks,
    /// Bytes of payload in the TLPs.
    pub payload_bytes: u64,
}

impl LinkUse {
    /// A direction that nothing has crossed yet.
    #[must_use]
    pub fn idle(link: &str, direction: Direction) -> LinkUse {
        let (span, tlps, dllps) = (Ticks::ZERO, Ticks::ZERO, Ticks::ZERO);
        LinkUse { link: link.to_owned(), direction, span, tlps, dllps, payload_bytes: 0 }
    }

    /// The share of the time in which the line carried TLPs, 0 to 1; 0 where there was no time.
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

    /// The same of DLLPs.
    #[must_use]
    pub fn dllp_share(&self) -> f64 {
        self.share(self.dllps)
    }

    /// Bytes of payload a second; 0 where there was no time.
    #[must_use]
    pub fn payload_rate_bytes_per_s(&self) -> f64 {
        if self.span > Ticks::ZERO { self.payload_bytes as f64 * 1e9 / self.span.as_ns() } else { 0.0 }
    }

    fn share(&self, part: Ticks) -> f64 {
        if self.span > Ticks::ZERO { part.as_ns() / self.span.as_ns() } else { 0.0 }
    }
}
