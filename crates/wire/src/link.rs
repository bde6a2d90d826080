//! Link rates, and the time that a packet occupies the link.
//!
//! [`LINK_RATES`] has one row per generation: transfer rate, encoding, framing. The functions compute with a row and a
//! link width. They do not include SKP ordered sets, flow control updates and Acks: a caller that models DLLPs adds
//! [`LinkRate::dllp_bytes`] for each.
//!
//! Gen6 has no per-TLP framing: its flits carry 236 B of TLPs in 256 B, which is treated as a line code here.
//! [`crate::flit`] gives the exact time when a TLP is received.

use crate::split::Mps;
use lanemark_units::Ticks;
use std::fmt;

/// A link generation, by its data rate: Gen1 is 2.5 GT/s, Gen6 is 64 GT/s.
///
/// ```
/// use lanemark_wire::Generation;
/// assert_eq!(Generation::from_number(3), Some(Generation::Gen3));
/// assert_eq!(Generation::from_number(7), None);
/// assert_eq!(Generation::Gen3.to_string(), "Gen3");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Generation {
    /// 2.5 GT/s, 8b/10b.
    Gen1,
    /// 5 GT/s, 8b/10b.
    Gen2,
    /// 8 GT/s, 128b/130b.
    Gen3,
    /// 16 GT/s, 128b/130b.
    Gen4,
    /// 32 GT/s, 128b/130b.
    Gen5,
    /// 64 GT/s, flits of 256 B.
    Gen6,
}

impl Generation {
    /// Every generation, slowest first: the order of [`LINK_RATES`].
    pub const ALL: [Generation; 6] =
        [Generation::Gen1, Generation::Gen2, Generation::Gen3, Generation::Gen4, Generation::Gen5, Generation::Gen6];

    /// The generation with this number (1 to 6); also the code of Current Link Speed in Link Status.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Generation> {
        match number {
            1 => Some(Generation::Gen1),
            2 => Some(Generation::Gen2),
            3 => Some(Generation::Gen3),
            4 => Some(Generation::Gen4),
            5 => Some(Generation::Gen5),
            6 => Some(Generation::Gen6),
            _ => None,
        }
    }

    /// Number, 1 to 6.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8 + 1
    }

    /// The row of this generation in [`LINK_RATES`].
    #[must_use]
    pub const fn rate(self) -> &'static LinkRate {
        &LINK_RATES[self as usize]
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gen{}", self.number())
    }
}

/// Width of a link in lanes: 1, 2, 4, 8, 12, 16 or 32.
///
/// ```
/// use lanemark_wire::Lanes;
/// assert_eq!(Lanes::new(16), Some(Lanes::X16));
/// assert_eq!(Lanes::new(3), None);
/// assert_eq!(Lanes::X8.to_string(), "x8");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Lanes(u8);

impl Lanes {
    /// One lane.
    pub const X1: Lanes = Lanes(1);
    /// Two lanes.
    pub const X2: Lanes = Lanes(2);
    /// Four lanes.
    pub const X4: Lanes = Lanes(4);
    /// Eight lanes.
    pub const X8: Lanes = Lanes(8);
    /// Twelve lanes: the only width with a DW time that is not a whole number of ticks, see [`dw_ticks`].
    pub const X12: Lanes = Lanes(12);
    /// Sixteen lanes.
    pub const X16: Lanes = Lanes(16);
    /// Thirty-two lanes.
    pub const X32: Lanes = Lanes(32);
    /// Every width, narrowest first.
    pub const ALL: [Lanes; 7] = [Self::X1, Self::X2, Self::X4, Self::X8, Self::X12, Self::X16, Self::X32];

    /// A link of `count` lanes; `None` if the specification does not define that width.
    #[must_use]
    pub const fn new(count: u8) -> Option<Lanes> {
        match count {
            1 | 2 | 4 | 8 | 12 | 16 | 32 => Some(Lanes(count)),
            _ => None,
        }
    }

    /// Number of lanes.
    #[must_use]
    pub const fn count(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "x{}", self.0)
    }
}

/// Properties of one generation: a row of [`LINK_RATES`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkRate {
    /// The generation.
    pub generation: Generation,
    /// Transfers per second and lane, in millions: 2500 is 2.5 GT/s.
    pub megatransfers_per_s: u32,
    /// Data bits of one encoded block; at 64 GT/s, DWs for TLPs in a flit.
    pub payload_bits: u8,
    /// Bits of that block on the lane; at 64 GT/s, DWs of a flit.
    pub line_bits: u8,
    /// Framing of every TLP: start, sequence number, LCRC, end.
    pub framing_bytes: u8,
    /// Size of a DLLP with framing; 0 where every flit contains one.
    pub dllp_bytes: u8,
    /// Internal delay of a receiver before it acknowledges a TLP, in symbol times.
    pub internal_delay_symbols: u16,
    /// Source of the row.
    pub source: &'static str,
}

const SOURCE_8B10B: &str = "PCI Express Base Specification 5.0, section 4.2.1; sequence number and LCRC: section 3.6";
const SOURCE_128B130B: &str = "PCI Express Base Specification 5.0, section 4.2.2; LCRC: section 3.6";

/// 8b/10b: a TLP is STP 1 + sequence number 2 + LCRC 4 + END 1; a DLLP is SDP 1 + 4 + CRC 2 + END 1.
const fn row_8b10b(generation: Generation, megatransfers_per_s: u32, internal_delay_symbols: u16) -> LinkRate {
    LinkRate {
        generation,
        megatransfers_per_s,
        payload_bits: 8,
        line_bits: 10,
        framing_bytes: 1 + 2 + 4 + 1,
        dllp_bytes: 1 + 4 + 2 + 1,
        internal_delay_symbols,
        source: SOURCE_8B10B,
    }
}

/// 128b/130b: a TLP is an STP token of 4 (with the sequence number) + LCRC 4; a DLLP is an SDP token of 2 + 4 + CRC 2.
const fn row_128b130b(generation: Generation, megatransfers_per_s: u32, internal_delay_symbols: u16) -> LinkRate {
    LinkRate {
        generation,
        megatransfers_per_s,
        payload_bits: 128,
        line_bits: 130,
        framing_bytes: 4 + 4,
        dllp_bytes: 2 + 4 + 2,
        internal_delay_symbols,
        source: SOURCE_128B130B,
    }
}

/// Flits: sequence number, CRC and DLLPs belong to the flit.
const GEN6: LinkRate = LinkRate {
    generation: Generation::Gen6,
    megatransfers_per_s: 64_000,
    payload_bits: crate::flit_size::TLP_DWS as u8,
    line_bits: crate::flit_size::DWS as u8,
    framing_bytes: 0,
    dllp_bytes: 0,
    internal_delay_symbols: 0,
    source: "PCI Express Base Specification 6.0, section 4.2.3",
};

/// One row per generation, in the order of [`Generation::ALL`].
///
/// | generation | GT/s | encoding | framing of a TLP | DLLP |
/// | --- | --- | --- | --- | --- |
/// | Gen1 | 2.5 | 8b/10b | 8 B | 8 B |
/// | Gen2 | 5 | 8b/10b | 8 B | 8 B |
/// | Gen3 | 8 | 128b/130b | 8 B | 8 B |
/// | Gen4 | 16 | 128b/130b | 8 B | 8 B |
/// | Gen5 | 32 | 128b/130b | 8 B | 8 B |
/// | Gen6 | 64 | flits, 236 B of 256 B | in the flit | in the flit |
pub const LINK_RATES: [LinkRate; 6] = [
    row_8b10b(Generation::Gen1, 2_500, 19),
    row_8b10b(Generation::Gen2, 5_000, 70),
    row_128b130b(Generation::Gen3, 8_000, 115),
    row_128b130b(Generation::Gen4, 16_000, 230),
    row_128b130b(Generation::Gen5, 32_000, 460),
    GEN6,
];

/// Numerator of the DW time in ticks, `32 bit × line / payload ÷ (transfers/s × lanes)`; the denominator is
/// [`dw_denominator`].
const fn dw_numerator(rate: &LinkRate) -> u64 {
    // ticks per ns × ns per us × 32 bit × line bits; the transfers are per us.
    Ticks::PER_NS * 1_000 * 32 * rate.line_bits as u64
}

const fn dw_denominator(rate: &LinkRate, lanes: Lanes) -> u64 {
    rate.payload_bits as u64 * rate.megatransfers_per_s as u64 * lanes.0 as u64
}

/// Time of one DW (4 B) on the link.
///
/// `32 bit × line bits / payload bits ÷ (transfers/s × lanes)`. Exact on every width but x12, where it is rounded up by
/// less than one tick, so that a modelled x12 link is never faster than a real one. At 64 GT/s it is the mean over a
/// flit, rounded up; [`tlp_ticks`] rounds the time of a whole TLP instead.
///
/// ```
/// use lanemark_units::Ticks;
/// use lanemark_wire::{Generation, Lanes, dw_ticks};
/// assert_eq!(dw_ticks(Generation::Gen3, Lanes::X16), Ticks(1040)); // 0.2539 ns
/// ```
#[must_use]
pub const fn dw_ticks(generation: Generation, lanes: Lanes) -> Ticks {
    let rate = generation.rate();
    Ticks(dw_numerator(rate).div_ceil(dw_denominator(rate, lanes)))
}

/// `AckFactor` in tenths: maximum time over which a receiver may coalesce acknowledgements, in units of the time of the
/// largest TLP. By width, for MPS up to 256 B and above.
const ACK_FACTOR_TENTHS: [(Lanes, [u64; 2]); 7] = [
    (Lanes::X1, [14, 10]),
    (Lanes::X2, [14, 10]),
    (Lanes::X4, [14, 10]),
    (Lanes::X8, [25, 10]),
    (Lanes::X12, [30, 20]),
    (Lanes::X16, [30, 20]),
    (Lanes::X32, [30, 20]),
];

/// Ack Transmission Latency Limit: the maximum time from receiving a TLP to acknowledging it. By the guideline, the
/// same limit applies to returning credits.
///
/// `(MPS + 28 B) × factor / lanes + internal delay`, in symbol times: 10 bits with 8b/10b, 8 bits with 128b/130b. From
/// 16 GT/s on, the delay is assumed to be as long as at 8 GT/s.
///
/// Source: PCI Express Base Specification 3.0, section 3.5.3.1, Ack Transmission Latency Limit, and section 2.6.1.2.
///
/// ```
/// use lanemark_wire::{Generation, Lanes, Mps, ack_latency_limit};
/// // 73 symbol times of 4 ns.
/// let limit = ack_latency_limit(Generation::Gen1, Lanes::X4, Mps::new(128).unwrap());
/// assert_eq!((limit.as_ns() / 4.0) as u32, 73);
/// ```
#[must_use]
pub fn ack_latency_limit(generation: Generation, lanes: Lanes, mps: Mps) -> Ticks {
    let rate = generation.rate();
    let above_256 = usize::from(mps.bytes() > 256);
    let tenths =
        ACK_FACTOR_TENTHS.iter().find(|(width, _)| *width == lanes).map_or(10, |(_, tenths)| tenths[above_256]);
    let symbols_tenths =
        (u64::from(mps.bytes()) + 28) * tenths / u64::from(lanes.0) + 10 * u64::from(rate.internal_delay_symbols);
    let bits = if rate.payload_bits == 8 { u64::from(rate.line_bits) } else { 8 };
    // Tenths of symbols × bits / (transfers per us) in us, as ticks.
    Ticks(symbols_tenths * bits * Ticks::PER_NS * 100 / u64::from(rate.megatransfers_per_s))
}

/// Interval between SKP ordered sets, which compensate clock differences, and the duration of one on every lane.
///
/// 8b/10b: 4 symbols every 1180 to 1538 symbols; 128b/130b: one block every 370 to 375 blocks. The shortest interval is
/// used. `None` at 64 GT/s, where they lie between flits and are not in the tables yet.
///
/// Source: PCI Express Base Specification 5.0, section 4.2.7, Clock Tolerance Compensation.
///
/// ```
/// use lanemark_units::Ticks;
/// use lanemark_wire::{Generation, skp_ticks};
/// assert_eq!(skp_ticks(Generation::Gen2), Some((Ticks::whole_ns(2360), Ticks::whole_ns(8))));
/// ```
#[must_use]
pub const fn skp_ticks(generation: Generation) -> Option<(Ticks, Ticks)> {
    let rate = generation.rate();
    // In units of symbols or blocks, each of `line_bits` bits on the lane.
    let (interval, length) = match (rate.payload_bits, generation) {
        (_, Generation::Gen6) => return None,
        (8, _) => (1180, 4),
        _ => (370, 1),
    };
    let bits = rate.line_bits as u64;
    let per_unit = bits * Ticks::PER_NS * 1000;
    let per_us = rate.megatransfers_per_s as u64;
    Some((Ticks(interval * per_unit / per_us), Ticks(length * per_unit / per_us)))
}

/// Data rate in bytes per second and direction after line encoding, before packet overhead.
///
/// `transfers/s × lanes × payload bits / line bits / 8`, rounded down.
///
/// ```
/// use lanemark_wire::{Generation, Lanes, bytes_per_s};
/// assert_eq!(bytes_per_s(Generation::Gen3, Lanes::X16), 15_753_846_153);
/// ```
#[must_use]
pub const fn bytes_per_s(generation: Generation, lanes: Lanes) -> u64 {
    let rate = generation.rate();
    let bits_per_s = rate.megatransfers_per_s as u64 * 1_000_000 * lanes.0 as u64;
    bits_per_s * rate.payload_bits as u64 / (rate.line_bits as u64 * 8)
}

/// Bytes of one TLP on the link: framing, header, data rounded up to whole DWs, and ECRC.
///
/// ```
/// use lanemark_wire::{Generation, tlp_wire_bytes};
/// // MWr of 256 B with a 4 DW header: 8 B framing + 16 B header + 256 B.
/// assert_eq!(tlp_wire_bytes(Generation::Gen3, 4, 256, false), 280);
/// ```
#[must_use]
pub const fn tlp_wire_bytes(generation: Generation, header_dw: u8, payload_bytes: u32, ecrc: bool) -> u32 {
    let digest = if ecrc { 4 } else { 0 };
    generation.rate().framing_bytes as u32 + 4 * header_dw as u32 + payload_bytes.next_multiple_of(4) + digest
}

/// Time that `wire_bytes` (of [`tlp_wire_bytes`], or of a DLLP) occupy the link, in whole DWs. At 64 GT/s the mean over
/// all positions in a flit, rounded down to a tick: a lower bound.
///
/// ```
/// use lanemark_wire::{Generation, Lanes, tlp_ticks, tlp_wire_bytes};
/// let bytes = tlp_wire_bytes(Generation::Gen3, 4, 256, false);
/// assert_eq!(tlp_ticks(Generation::Gen3, Lanes::X16, bytes).as_ns(), 17.7734375);
/// ```
#[must_use]
pub const fn tlp_ticks(generation: Generation, lanes: Lanes, wire_bytes: u32) -> Ticks {
    let dws = wire_bytes.div_ceil(4) as u64;
    if matches!(generation, Generation::Gen6) {
        let rate = generation.rate();
        return Ticks(dws * dw_numerator(rate) / dw_denominator(rate, lanes));
    }
    Ticks(dw_ticks(generation, lanes).0 * dws)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_the_generations() {
        for (index, generation) in Generation::ALL.into_iter().enumerate() {
            assert_eq!(LINK_RATES[index].generation, generation);
            assert_eq!(Generation::from_number(generation.number()), Some(generation));
            assert_eq!(generation.to_string(), format!("Gen{}", index + 1));
            assert!(generation.rate().source.contains("section"));
        }
        assert_eq!(Generation::from_number(0), None);
        assert_eq!(Generation::from_number(7), None);
    }

    #[test]
    fn only_the_seven_widths_are_accepted() {
        let accepted: Vec<u8> = (0..=u8::MAX).filter(|count| Lanes::new(*count).is_some()).collect();
        assert_eq!(accepted, Lanes::ALL.map(Lanes::count));
    }

    #[test]
    fn the_time_of_a_dw_is_whole_ticks_on_every_width_but_x12_up_to_gen5() {
        for generation in Generation::ALL {
            for lanes in Lanes::ALL {
                let rate = generation.rate();
                let (over, under) = (dw_numerator(rate), dw_denominator(rate, lanes));
                let is_whole = lanes != Lanes::X12 && generation != Generation::Gen6;
                assert_eq!(over % under == 0, is_whole, "{generation} {lanes}");
                let ticks = dw_ticks(generation, lanes).0;
                assert!(ticks * under >= over && (ticks - 1) * under < over, "{generation} {lanes}");
            }
        }
    }

    #[test]
    fn dw_times_of_known_links() {
        assert_eq!(dw_ticks(Generation::Gen1, Lanes::X1), Ticks::whole_ns(16));
        assert_eq!(dw_ticks(Generation::Gen2, Lanes::X4), Ticks::whole_ns(2));
        assert_eq!(dw_ticks(Generation::Gen3, Lanes::X1), Ticks(16_640));
        assert_eq!(dw_ticks(Generation::Gen4, Lanes::X16), Ticks(520));
        assert_eq!(dw_ticks(Generation::Gen5, Lanes::X32), Ticks(130));
        assert_eq!(dw_ticks(Generation::Gen1, Lanes::X12), Ticks(5_462)); // 5461.33
    }

    #[test]
    fn rates_of_known_links() {
        assert_eq!(bytes_per_s(Generation::Gen1, Lanes::X1), 250_000_000);
        assert_eq!(bytes_per_s(Generation::Gen2, Lanes::X8), 4_000_000_000);
        assert_eq!(bytes_per_s(Generation::Gen3, Lanes::X8), 7_876_923_076);
        assert_eq!(bytes_per_s(Generation::Gen3, Lanes::X16), 15_753_846_153);
        assert_eq!(bytes_per_s(Generation::Gen5, Lanes::X16), 63_015_384_615);
        assert_eq!(bytes_per_s(Generation::Gen6, Lanes::X16), 118_000_000_000);
    }

    #[test]
    fn the_rate_agrees_with_the_dw_time() {
        for generation in Generation::ALL.into_iter().filter(|generation| *generation != Generation::Gen6) {
            for lanes in Lanes::ALL.into_iter().filter(|lanes| *lanes != Lanes::X12) {
                let from_time = 4e9 / dw_ticks(generation, lanes).as_ns();
                assert!((from_time - bytes_per_s(generation, lanes) as f64).abs() < 1.0, "{generation} {lanes}");
            }
        }
    }

    #[test]
    fn wire_bytes_round_the_payload_up_to_dws() {
        assert_eq!(tlp_wire_bytes(Generation::Gen1, 3, 0, false), 20);
        assert_eq!(tlp_wire_bytes(Generation::Gen3, 3, 1, false), 24);
        assert_eq!(tlp_wire_bytes(Generation::Gen3, 3, 4, false), 24);
        assert_eq!(tlp_wire_bytes(Generation::Gen3, 3, 5, false), 28);
        assert_eq!(tlp_wire_bytes(Generation::Gen5, 4, 4096, true), 8 + 16 + 4096 + 4);
    }

    #[test]
    fn tlp_time_rounds_up_to_whole_dws() {
        let dw = dw_ticks(Generation::Gen4, Lanes::X8);
        for (bytes, dws) in [(0, 0), (1, 1), (4, 1), (5, 2), (280, 70)] {
            assert_eq!(tlp_ticks(Generation::Gen4, Lanes::X8, bytes), dw * dws);
        }
    }
}
