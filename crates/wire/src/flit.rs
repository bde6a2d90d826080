//! Placement and timing of TLPs in the flits of a 64 GT/s link.
//!
//! At 64 GT/s a link sends flits of 256 B back to back: 236 B of TLPs, 6 of data link layer payload, 8 of CRC and 6 of
//! forward error correction. A TLP starts at any of the 59 DWs for TLPs and may continue in the next flit. A receiver
//! corrects and checks whole flits, so a TLP is received when the last flit that it touches is complete.
//!
//! Source: PCI Express Base Specification 6.0, section 4.2.3, FLIT Mode Operation.

pub use crate::flit_size::{DWS, TLP_DWS};
use crate::link::{Generation, Lanes};
use lanemark_units::Ticks;

/// One direction of a link that sends flits from time 0 on.
///
/// ```
/// use lanemark_units::Ticks;
/// use lanemark_wire::{Lanes, flit::FlitLine};
/// let line = FlitLine::new(Lanes::X16);
/// assert_eq!(line.flit(), Ticks::whole_ns(2)); // 256 B at 128 GB/s
/// // A TLP of 20 DWs that starts with a flit is received when that flit is complete.
/// let first = line.slot(Ticks::ZERO);
/// assert_eq!(line.checked(first + 19), Ticks::whole_ns(2));
/// // The 60th DW is in the next flit.
/// assert_eq!(line.checked(first + 59), Ticks::whole_ns(4));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlitLine {
    dw: Ticks,
}

impl FlitLine {
    /// A 64 GT/s link of this width. On x12 the time of a DW is rounded up to a tick.
    #[must_use]
    pub const fn new(lanes: Lanes) -> FlitLine {
        // 32 bit ÷ (transfers per ns × lanes).
        let per_us = Generation::Gen6.rate().megatransfers_per_s as u64 * lanes.count() as u64;
        FlitLine { dw: Ticks((Ticks::PER_NS * 32 * 1000).div_ceil(per_us)) }
    }

    /// Time of a flit.
    #[must_use]
    pub const fn flit(self) -> Ticks {
        Ticks(self.dw.0 * DWS)
    }

    /// Index of the first TLP DW that starts at `at` or later, counted from time 0.
    #[inline]
    #[must_use]
    pub const fn slot(self, at: Ticks) -> u64 {
        let flit = at.0 / self.flit().0;
        let dw = (at.0 % self.flit().0).div_ceil(self.dw.0);
        if dw < TLP_DWS { flit * TLP_DWS + dw } else { (flit + 1) * TLP_DWS }
    }

    /// Start time of TLP DW `slot`.
    #[inline]
    #[must_use]
    pub const fn starts(self, slot: u64) -> Ticks {
        Ticks(slot / TLP_DWS * self.flit().0 + slot % TLP_DWS * self.dw.0)
    }

    /// Time when the flit of TLP DW `slot` has been sent completely, so that the receiver can check it.
    #[inline]
    #[must_use]
    pub const fn checked(self, slot: u64) -> Ticks {
        Ticks((slot / TLP_DWS + 1) * self.flit().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_flit_is_whole_ticks_on_every_width_but_x12() {
        for lanes in Lanes::ALL {
            let exact = 256.0 * 8.0 / (64.0 * f64::from(lanes.count()));
            let is_exact = (FlitLine::new(lanes).flit().as_ns() - exact).abs() < 1e-12;
            assert_eq!(is_exact, lanes != Lanes::X12, "{lanes}");
        }
    }

    #[test]
    fn the_dw_after_the_59th_is_the_first_of_the_next_flit() {
        let line = FlitLine::new(Lanes::X16);
        let at = |dw: u64| Ticks(line.dw.0 * dw);
        assert_eq!(line.slot(at(58)), 58);
        assert_eq!(line.slot(Ticks(at(58).0 + 1)), 59);
        assert_eq!(line.slot(at(63)), 59);
        assert_eq!(line.slot(at(64)), 59);
        assert_eq!(line.starts(59), at(64));
    }

    #[test]
    fn slot_is_the_first_dw_that_starts_at_the_given_time_or_later() {
        let line = FlitLine::new(Lanes::X4);
        for at in (0..3 * line.flit().0).step_by(101) {
            let slot = line.slot(Ticks(at));
            assert!(line.starts(slot) >= Ticks(at));
            assert!(slot == 0 || line.starts(slot - 1) < Ticks(at));
            assert!(line.checked(slot) > line.starts(slot));
        }
    }

    #[test]
    fn flit_sizes_match_the_table_of_link_rates() {
        let rate = Generation::Gen6.rate();
        assert_eq!((u64::from(rate.payload_bits), u64::from(rate.line_bits)), (TLP_DWS, DWS));
    }
}
