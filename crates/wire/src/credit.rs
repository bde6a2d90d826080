//! Flow control credits.
//!
//! Each virtual channel has six counters: header and data credits of each [`crate::FlowClass`]. A TLP consumes one
//! header credit (digest included) and one data credit per 16 B of data, rounded up. The receiver advertises its
//! credits at initialization; 0 means infinite.

use std::ops::{Add, AddAssign, Sub, SubAssign};

/// Data bytes of one data credit: 4 DW.
///
/// Source: PCI Express Base Specification 5.0, section 2.6.1.
pub const DATA_CREDIT_BYTES: u32 = 16;

/// Header and data credits of one flow class: a cost, credits in use, or free credits.
///
/// ```
/// use lanemark_wire::Credits;
/// let write = Credits::of(256);
/// assert_eq!(write, Credits { header: 1, data: 16 });
/// assert_eq!(write + Credits::of(4), Credits { header: 2, data: 17 });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Credits {
    /// Header credits: number of TLPs.
    pub header: u16,
    /// Data credits of 16 B each.
    pub data: u16,
}

impl Credits {
    /// No credits.
    pub const NONE: Credits = Credits { header: 0, data: 0 };

    /// Credits that one TLP with `data_bytes` of data consumes.
    #[inline]
    #[must_use]
    pub const fn of(data_bytes: u32) -> Credits {
        Credits { header: 1, data: data_credits(data_bytes) }
    }
}

impl Add for Credits {
    type Output = Credits;
    #[inline]
    fn add(self, other: Credits) -> Credits {
        Credits { header: self.header + other.header, data: self.data + other.data }
    }
}

impl AddAssign for Credits {
    #[inline]
    fn add_assign(&mut self, other: Credits) {
        *self = *self + other;
    }
}

impl Sub for Credits {
    type Output = Credits;
    #[inline]
    fn sub(self, other: Credits) -> Credits {
        Credits { header: self.header - other.header, data: self.data - other.data }
    }
}

impl SubAssign for Credits {
    #[inline]
    fn sub_assign(&mut self, other: Credits) {
        *self = *self - other;
    }
}

/// Data credits for `data_bytes`: one per 16 B, rounded up.
///
/// ```
/// use lanemark_wire::data_credits;
/// assert_eq!([0, 1, 16, 17, 4096].map(data_credits), [0, 1, 1, 2, 256]);
/// ```
#[inline]
#[must_use]
pub const fn data_credits(data_bytes: u32) -> u16 {
    data_bytes.div_ceil(DATA_CREDIT_BYTES) as u16
}

/// Width and limit of one kind of counter: a row of [`COUNTERS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counter {
    /// `header` or `data`.
    pub name: &'static str,
    /// Width of the counter in the DLLP, in bits.
    pub bits: u8,
    /// Maximum number of unused credits: less than half of the counter range, so that modulo comparison works.
    pub max_outstanding: u16,
    /// Source of the row.
    pub source: &'static str,
}

/// Counters without Scaled Flow Control, header first.
pub const COUNTERS: [Counter; 2] = [
    Counter {
        name: "header",
        bits: 8,
        max_outstanding: 127,
        source: "PCI Express Base Specification 5.0, section 2.6.1",
    },
    Counter {
        name: "data",
        bits: 12,
        max_outstanding: 2047,
        source: "PCI Express Base Specification 5.0, section 2.6.1",
    },
];

/// Scaling factor of Scaled Flow Control: a row of [`SCALES`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    /// Credits that one unit of the field in a DLLP stands for.
    pub factor: u16,
    /// Maximum number of unused header credits.
    pub most_header: u16,
    /// Maximum number of unused data credits.
    pub most_data: u16,
    /// Source of the row.
    pub source: &'static str,
}

/// Scaling factors, ascending. The first applies without Scaled Flow Control; ports that support 16 GT/s (Gen4) or more
/// support all of them.
///
/// ```
/// use lanemark_wire::SCALES;
/// assert_eq!(SCALES.map(|scale| (scale.factor, scale.most_header)), [(1, 127), (4, 508), (16, 2032)]);
/// ```
pub const SCALES: [Scale; 3] = [
    Scale { factor: 1, most_header: 127, most_data: 2047, source: SCALED },
    Scale { factor: 4, most_header: 508, most_data: 8188, source: SCALED },
    Scale { factor: 16, most_header: 2032, most_data: 32_752, source: SCALED },
];

const SCALED: &str = "PCI Express Base Specification 5.0, section 3.4.2, table of scaling factors";

/// Credits of one counter that a receiver advertises.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Grant {
    /// A limited number.
    Finite(u16),
    /// Infinite credits.
    Infinite,
}

impl Grant {
    const fn new(counter: &Counter, advertised: u16) -> Option<Grant> {
        match advertised {
            0 => Some(Grant::Infinite),
            some if some <= counter.max_outstanding => Some(Grant::Finite(some)),
            _ => None,
        }
    }

    #[inline]
    const fn covers(self, credits: u16) -> bool {
        match self {
            Grant::Finite(most) => credits <= most,
            Grant::Infinite => true,
        }
    }
}

/// Credits that a receiver advertises for one flow class at initialization.
///
/// ```
/// use lanemark_wire::{CreditLimits, Credits};
/// let posted = CreditLimits::advertised(32, 0).unwrap(); // data: infinite
/// assert!(posted.covers(Credits { header: 32, data: 9999 }));
/// assert!(!posted.covers(Credits { header: 33, data: 1 }));
/// assert_eq!(CreditLimits::advertised(128, 0), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CreditLimits {
    /// Header credits.
    pub header: Grant,
    /// Data credits.
    pub data: Grant,
}

impl CreditLimits {
    /// Infinite credits, as an endpoint advertises for completions.
    pub const INFINITE: CreditLimits = CreditLimits { header: Grant::Infinite, data: Grant::Infinite };

    /// The values of an `InitFC` DLLP, 0 for infinite; `None` above the limits of [`COUNTERS`].
    #[must_use]
    pub const fn advertised(header: u16, data: u16) -> Option<CreditLimits> {
        match (Grant::new(&COUNTERS[0], header), Grant::new(&COUNTERS[1], data)) {
            (Some(header), Some(data)) => Some(CreditLimits { header, data }),
            _ => None,
        }
    }

    /// Whether `in_use` credits are within the limits.
    #[inline]
    #[must_use]
    pub const fn covers(&self, in_use: Credits) -> bool {
        self.header.covers(in_use.header) && self.data.covers(in_use.data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_credits_round_up_to_16_bytes() {
        for bytes in 0..=4096 {
            let credits = u32::from(data_credits(bytes));
            assert!(credits * 16 >= bytes && credits * 16 < bytes + 16, "{bytes}");
        }
    }

    #[test]
    fn limits_are_just_below_half_the_counter_range() {
        for counter in COUNTERS {
            assert_eq!(u32::from(counter.max_outstanding), (1 << (counter.bits - 1)) - 1, "{}", counter.name);
        }
        assert!(CreditLimits::advertised(127, 2047).is_some());
        assert_eq!(CreditLimits::advertised(128, 2047), None);
        assert_eq!(CreditLimits::advertised(127, 2048), None);
    }

    #[test]
    fn a_scale_multiplies_the_limits_without_it() {
        for scale in SCALES {
            let limits = COUNTERS.map(|counter| counter.max_outstanding * scale.factor);
            assert_eq!(limits, [scale.most_header, scale.most_data]);
        }
    }

    #[test]
    fn zero_at_initialization_is_infinite() {
        assert_eq!(CreditLimits::advertised(0, 0), Some(CreditLimits::INFINITE));
        assert!(CreditLimits::INFINITE.covers(Credits { header: u16::MAX, data: u16::MAX }));
    }

    #[test]
    fn limits_are_tight() {
        let limits = CreditLimits::advertised(2, 16).unwrap();
        assert!(limits.covers(Credits { header: 2, data: 16 }));
        assert!(!limits.covers(Credits { header: 3, data: 16 }));
        assert!(!limits.covers(Credits { header: 2, data: 17 }));
    }

    #[test]
    fn credits_are_added_and_subtracted() {
        let mut in_use = Credits::NONE;
        in_use += Credits::of(64);
        in_use += Credits::of(1);
        in_use -= Credits::of(64);
        assert_eq!(in_use, Credits::of(16));
    }
}
