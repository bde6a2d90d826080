//! Effective memory types from MTRR and PAT: one table per vendor.
//!
//! A page has two memory types: that of the MTRR that covers its physical address, and that of the PAT entry selected
//! by its page table entry. The manuals of the vendors define the combined type.

use lanemark_units::MemoryType;
use std::fmt;

/// Memory type selected by a page table entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pat {
    /// Strong uncacheable, encoding 0.
    Uc,
    /// Write combining, encoding 1.
    Wc,
    /// Write through, encoding 4.
    Wt,
    /// Write protected, encoding 5.
    Wp,
    /// Write back, encoding 6.
    Wb,
    /// Uncacheable, unless the MTRR is write combining; encoding 7.
    UcMinus,
}

/// Effective memory type of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effective {
    /// An ordinary memory type.
    Type(MemoryType),
    /// AMD's cache-disable type: behaves as uncacheable, but caches are snooped.
    Cd,
    /// Undefined by the manual, or a reserved encoding.
    Undefined,
}

impl fmt::Display for Effective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Effective::Type(kind) => kind.fmt(f),
            Effective::Cd => f.write_str("CD"),
            Effective::Undefined => f.write_str("Undefined"),
        }
    }
}

/// The manual that defines the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manual {
    /// Intel SDM volume 3, "Effective Page-Level Memory Types for Pentium III and More Recent Processor
    /// Families", in the editions of the last decade, which define every combination.
    Intel,
    /// The same table for processors for which earlier editions said *undefined* (its note 3).
    IntelEarlier,
    /// AMD64 APM volume 2, "Combined Effect of MTRR and PAT Memory Types".
    Amd,
}

impl Pat {
    /// All PAT types, by encoding.
    pub const ALL: [Pat; 6] = [Pat::Uc, Pat::Wc, Pat::Wt, Pat::Wp, Pat::Wb, Pat::UcMinus];

    /// The type of a PAT encoding; 2 and 3 are reserved.
    #[must_use]
    pub const fn from_encoding(encoding: u8) -> Option<Pat> {
        match encoding {
            0 => Some(Pat::Uc),
            1 => Some(Pat::Wc),
            4 => Some(Pat::Wt),
            5 => Some(Pat::Wp),
            6 => Some(Pat::Wb),
            7 => Some(Pat::UcMinus),
            _ => None,
        }
    }
}

/// The type of an MTRR encoding: 0 UC, 1 WC, 4 WT, 5 WP, 6 WB; others are reserved.
#[must_use]
pub const fn mtrr_from_encoding(encoding: u8) -> Option<MemoryType> {
    match encoding {
        0 => Some(MemoryType::Uc),
        1 => Some(MemoryType::Wc),
        4 => Some(MemoryType::Wt),
        5 => Some(MemoryType::Wp),
        6 => Some(MemoryType::Wb),
        _ => None,
    }
}

const UC: Effective = Effective::Type(MemoryType::Uc);
const WC: Effective = Effective::Type(MemoryType::Wc);
const WT: Effective = Effective::Type(MemoryType::Wt);
const WP: Effective = Effective::Type(MemoryType::Wp);
const WB: Effective = Effective::Type(MemoryType::Wb);
const CD: Effective = Effective::Cd;
const NO: Effective = Effective::Undefined;

/// Rows: MTRR UC, WC, WT, WP, WB. Columns: PAT UC, WC, WT, WP, WB, UC-.
type Table = [[Effective; 6]; 5];

#[rustfmt::skip]
const INTEL: Table = [
    //        UC  WC  WT  WP  WB  UC-
    /* UC */ [UC, WC, UC, UC, UC, UC],
    /* WC */ [UC, WC, UC, UC, WC, WC],
    /* WT */ [UC, WC, WT, WP, WT, UC],
    /* WP */ [UC, WC, WT, WP, WP, WC],
    /* WB */ [UC, WC, WT, WP, WB, UC],
];

#[rustfmt::skip]
const INTEL_EARLIER: Table = [
    //        UC  WC  WT  WP  WB  UC-
    /* UC */ [UC, WC, UC, UC, UC, UC],
    /* WC */ [UC, WC, NO, NO, WC, WC],
    /* WT */ [UC, WC, WT, NO, WT, UC],
    /* WP */ [UC, WC, NO, WP, WP, NO],
    /* WB */ [UC, WC, WT, WP, WB, UC],
];

#[rustfmt::skip]
const AMD: Table = [
    //        UC  WC  WT  WP  WB  UC-
    /* UC */ [UC, WC, UC, UC, UC, UC],
    /* WC */ [UC, WC, CD, CD, WC, WC],
    /* WT */ [CD, WC, WT, CD, WT, CD],
    /* WP */ [CD, WC, CD, WP, WP, CD],
    /* WB */ [CD, WC, WT, WP, WB, CD],
];

/// Effective type for an MTRR type and a PAT type.
///
/// ```
/// use lanemark_platform::memory_type::{Effective, Manual, Pat, effective};
/// use lanemark_units::MemoryType;
/// // A BAR's MTRR type is UC; a driver that asks for WC through the PAT gets it.
/// assert_eq!(effective(Manual::Intel, MemoryType::Uc, Pat::Wc), Effective::Type(MemoryType::Wc));
/// // The way the report of 2014 wanted to try and could not: an MTRR of type WT under ordinary pages.
/// assert_eq!(effective(Manual::Intel, MemoryType::Wt, Pat::Wb), Effective::Type(MemoryType::Wt));
/// ```
#[must_use]
pub fn effective(manual: Manual, mtrr: MemoryType, pat: Pat) -> Effective {
    let table = match manual {
        Manual::Intel => &INTEL,
        Manual::IntelEarlier => &INTEL_EARLIER,
        Manual::Amd => &AMD,
    };
    table[mtrr as usize][Pat::ALL.iter().position(|other| *other == pat).unwrap_or(0)]
}

/// As [`effective`], from the encodings in the registers; reserved ones are [`Effective::Undefined`].
#[must_use]
pub fn effective_of_encodings(manual: Manual, mtrr: u8, pat: u8) -> Effective {
    match (mtrr_from_encoding(mtrr), Pat::from_encoding(pat)) {
        (Some(mtrr), Some(pat)) => effective(manual, mtrr, pat),
        _ => Effective::Undefined,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANUALS: [Manual; 3] = [Manual::Intel, Manual::IntelEarlier, Manual::Amd];

    #[test]
    fn pat_wc_overrides_every_mtrr_type() {
        for manual in MANUALS {
            for mtrr in MemoryType::ALL {
                assert_eq!(effective(manual, mtrr, Pat::Wc), WC);
            }
        }
    }

    #[test]
    fn wb_pages_take_the_mtrr_type() {
        for manual in MANUALS {
            for mtrr in MemoryType::ALL {
                assert_eq!(effective(manual, mtrr, Pat::Wb), Effective::Type(mtrr));
            }
        }
    }

    #[test]
    fn wb_results_only_from_wb_mtrr_and_wb_pat() {
        for manual in MANUALS {
            for mtrr in MemoryType::ALL {
                for pat in Pat::ALL {
                    let both = mtrr == MemoryType::Wb && pat == Pat::Wb;
                    assert_eq!(effective(manual, mtrr, pat) == WB, both, "{manual:?} {mtrr} {pat:?}");
                }
            }
        }
    }

    #[test]
    fn wc_mtrr_overrides_uc_minus_but_not_uc() {
        for manual in MANUALS {
            assert_eq!(effective(manual, MemoryType::Wc, Pat::UcMinus), WC);
            assert_eq!(effective(manual, MemoryType::Wc, Pat::Uc), UC);
        }
    }

    #[test]
    fn earlier_intel_manuals_differ_only_in_undefined_entries() {
        let mut undefined = 0;
        for mtrr in MemoryType::ALL {
            for pat in Pat::ALL {
                match effective(Manual::IntelEarlier, mtrr, pat) {
                    Effective::Undefined => undefined += 1,
                    other => assert_eq!(other, effective(Manual::Intel, mtrr, pat)),
                }
            }
        }
        assert_eq!(undefined, 5);
    }

    #[test]
    fn reserved_encodings_are_undefined() {
        for manual in MANUALS {
            for reserved in [2, 3, 7] {
                assert_eq!(effective_of_encodings(manual, reserved, 6), NO);
            }
            for reserved in [2, 3, 8] {
                assert_eq!(effective_of_encodings(manual, 6, reserved), NO);
            }
            assert_eq!(effective_of_encodings(manual, 6, 6), WB);
            assert_eq!(effective_of_encodings(manual, 6, 7), effective(manual, MemoryType::Wb, Pat::UcMinus));
        }
    }
}
