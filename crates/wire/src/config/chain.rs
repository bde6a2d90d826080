//! The two capability lists and their faults.

use super::capability::Capability;
use super::capability_id::CapabilityId;
use super::space::ConfigSpace;
use std::fmt;

/// A capability list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChainList {
    /// Starts at the Capabilities Pointer at 0x34; within the first 256 bytes.
    Standard,
    /// Starts at 0x100.
    Extended,
}

/// A fault of a capability list.
///
/// ```
/// use lanemark_wire::config::{BreakKind, ConfigSpace};
/// let mut bytes = [0u8; 256];
/// bytes[0x06] = 0x10;
/// bytes[0x34] = 0x40;
/// bytes[0x41] = 0x40; // the next pointer of the capability at 0x40 is 0x40
/// let fault = ConfigSpace::new(&bytes).chain_faults().next().unwrap();
/// assert_eq!((fault.offset, fault.what), (0x41, BreakKind::Loop { target: 0x40 }));
/// assert_eq!(fault.to_string(), "standard capability list, 0x041: the pointer leads back to 0x040, visited before");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChainFault {
    /// The list.
    pub list: ChainList,
    /// Offset of the wrong pointer or capability.
    pub offset: u16,
    /// The fault.
    pub what: BreakKind,
}

/// Kinds of faults of a capability list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BreakKind {
    /// The pointer leads back to a visited capability. Ends the list.
    Loop {
        /// Value of the pointer.
        target: u16,
    },
    /// The pointer is inside the header or, in the extended list, below 0x100. Ends the list.
    BelowStart {
        /// Value of the pointer.
        target: u16,
    },
    /// The two reserved low bits of the pointer are set; the list continues with them masked, as the specification
    /// requires.
    Unaligned {
        /// Value of the pointer.
        target: u16,
    },
    /// The pointer is beyond the visible bytes. Ends the list.
    NotVisible {
        /// Value of the pointer.
        target: u16,
        /// Number of visible bytes.
        visible: usize,
    },
    /// The capability header reads as all ones. Ends the list.
    AllOnes,
    /// Only part of the registers of the capability is visible, or fits the standard or extended space. The list
    /// continues.
    BodyCut {
        /// The capability.
        id: CapabilityId,
        /// Length of the capability, in bytes.
        needed: u16,
        /// Available bytes.
        there: u16,
    },
}

impl ChainFault {
    /// Whether the fault ends the list, so that later capabilities are unknown.
    #[must_use]
    pub const fn ends_list(&self) -> bool {
        !matches!(self.what, BreakKind::Unaligned { .. } | BreakKind::BodyCut { .. })
    }
}

impl fmt::Display for ChainFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = match self.list {
            ChainList::Standard => "standard",
            ChainList::Extended => "extended",
        };
        write!(f, "{list} capability list, {:#05x}: ", self.offset)?;
        match self.what {
            BreakKind::Loop { target } => write!(f, "the pointer leads back to {target:#05x}, visited before"),
            BreakKind::BelowStart { target } => write!(f, "the pointer {target:#05x} is below the start of the list"),
            BreakKind::Unaligned { target } => write!(f, "the pointer {target:#05x} has reserved low bits set"),
            BreakKind::NotVisible { target, visible } => {
                write!(f, "the pointer {target:#05x} is beyond the {visible} B that could be read; try as root")
            }
            BreakKind::AllOnes => f.write_str("the capability header reads as all ones"),
            BreakKind::BodyCut { id, needed, there } => {
                write!(f, "{id} has {needed} B, of which only {there} B are available")
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Next {
    /// Before the Capabilities Pointer is read.
    Start,
    /// Follows the pointer at `from`.
    Standard { from: u16, target: u16 },
    /// Follows the pointer at `from`.
    Extended { from: u16, target: u16 },
    /// Both lists are finished.
    Done,
}

/// Iterator over both lists; see [`ConfigSpace::walk`].
#[derive(Clone, Debug)]
pub struct Chain<'a> {
    space: ConfigSpace<'a>,
    next: Next,
    /// Faults to yield before the next capability: of the pointer, of the body.
    pending: [Option<ChainFault>; 2],
    /// One bit per DW of configuration space: visited.
    seen: [u64; 16],
    /// Whether to check for truncated bodies, which reads the table of each capability.
    bodies: bool,
}

impl<'a> Chain<'a> {
    pub(super) const fn new(space: ConfigSpace<'a>, bodies: bool) -> Chain<'a> {
        Chain { space, next: Next::Start, pending: [None; 2], seen: [0; 16], bodies }
    }

    fn was_seen(&mut self, target: u16) -> bool {
        let (word, bit) = (usize::from(target >> 8), 1u64 << ((target >> 2) & 63));
        let seen = self.seen[word] & bit != 0;
        self.seen[word] |= bit;
        seen
    }

    fn extended_start(&self) -> Next {
        // An empty extended list has a header of zero; see section 7.6.3.
        match self.space.read(0x100, 4) {
            None | Some(0) => Next::Done,
            Some(_) => Next::Extended { from: 0x100, target: 0x100 },
        }
    }

    fn start(&mut self) {
        let has_list = self.space.read(0x06, 2).is_some_and(|status| status & 0x10 != 0);
        let at = self.space.read(0x0e, 1).map_or(0x34, |kind| if kind & 0x7f == 2 { 0x14 } else { 0x34 });
        self.next = match self.space.read(at, 1) {
            Some(target) if has_list && !self.space.is_absent() => Next::Standard { from: at, target: target as u16 },
            _ => self.extended_start(),
        };
        if self.space.is_absent() {
            self.next = Next::Done;
        }
    }

    /// The target of a pointer, or its fault.
    fn follow(&mut self, list: ChainList, from: u16, target: u16) -> Result<u16, ChainFault> {
        let least = if list == ChainList::Standard { 0x40 } else { 0x100 };
        let header = if list == ChainList::Standard { 2 } else { 4 };
        if target & 3 != 0 {
            self.pending[0] = Some(ChainFault { list, offset: from, what: BreakKind::Unaligned { target } });
        }
        let target = target & !3;
        let what = if target < least {
            BreakKind::BelowStart { target }
        } else if self.space.read(target, header).is_none() {
            BreakKind::NotVisible { target, visible: self.space.bytes().len() }
        } else if self.was_seen(target) {
            BreakKind::Loop { target }
        } else {
            return Ok(target);
        };
        Err(ChainFault { list, offset: from, what })
    }

    fn standard(&mut self, from: u16, target: u16) -> Option<Result<Capability<'a>, ChainFault>> {
        self.next = self.extended_start();
        if target == 0 {
            return None;
        }
        let at = match self.follow(ChainList::Standard, from, target) {
            Ok(at) => at,
            Err(fault) => return Some(Err(fault)),
        };
        let header = self.space.read(at, 2)?;
        if header == 0xffff {
            return Some(Err(ChainFault { list: ChainList::Standard, offset: at, what: BreakKind::AllOnes }));
        }
        self.next = Next::Standard { from: at + 1, target: (header >> 8) as u16 };
        Some(Ok(Capability::new(self.space, at, CapabilityId::Standard(header as u8), None)))
    }

    fn extended(&mut self, from: u16, target: u16) -> Option<Result<Capability<'a>, ChainFault>> {
        self.next = Next::Done;
        if target == 0 {
            return None;
        }
        let at = match self.follow(ChainList::Extended, from, target) {
            Ok(at) => at,
            Err(fault) => return Some(Err(fault)),
        };
        let header = self.space.read(at, 4)?;
        if header == 0xffff_ffff {
            return Some(Err(ChainFault { list: ChainList::Extended, offset: at, what: BreakKind::AllOnes }));
        }
        self.next = Next::Extended { from: at + 2, target: (header >> 20) as u16 };
        let id = CapabilityId::Extended(header as u16);
        Some(Ok(Capability::new(self.space, at, id, Some((header >> 16) as u8 & 0xf))))
    }
}

impl<'a> Iterator for Chain<'a> {
    type Item = Result<Capability<'a>, ChainFault>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(fault) = self.pending.iter_mut().find_map(Option::take) {
                return Some(Err(fault));
            }
            let (list, met) = match self.next {
                Next::Done => return None,
                Next::Start => {
                    self.start();
                    continue;
                }
                Next::Standard { from, target } => (ChainList::Standard, self.standard(from, target)),
                Next::Extended { from, target } => (ChainList::Extended, self.extended(from, target)),
            };
            if self.bodies
                && let Some(Ok(capability)) = &met
            {
                self.pending[1] = body_cut(list, capability);
            }
            if met.is_some() {
                return met;
            }
        }
    }
}

fn body_cut(list: ChainList, capability: &Capability<'_>) -> Option<ChainFault> {
    let region = capability.region();
    let end = if list == ChainList::Standard { 0x100 } else { ConfigSpace::BYTES };
    let there = (region.space().bytes().len().min(end) as u16).saturating_sub(region.offset());
    let needed = region.needed_bytes();
    let what = BreakKind::BodyCut { id: capability.id(), needed, there };
    (needed > there).then_some(ChainFault { list, offset: region.offset(), what })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function with 4096 bytes, MSI at 0x40 and a serial number at 0x100.
    fn bytes() -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        bytes[0x06] = 0x10;
        bytes[0x34] = 0x40;
        bytes[0x40] = 0x05;
        bytes[0x100..0x104].copy_from_slice(&0x0001_0003u32.to_le_bytes());
        bytes
    }

    fn met(bytes: &[u8]) -> (Vec<u16>, Vec<(u16, BreakKind)>) {
        let space = ConfigSpace::new(bytes);
        let faults = space.chain_faults().map(|fault| (fault.offset, fault.what)).collect();
        (space.capabilities().map(|capability| capability.offset()).collect(), faults)
    }

    fn next(bytes: &mut [u8], at: usize, to: u32) {
        let header = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        bytes[at..at + 4].copy_from_slice(&(header & 0xf_ffff | to << 20).to_le_bytes());
    }

    #[test]
    fn a_valid_function_has_no_faults() {
        assert_eq!(met(&bytes()), (vec![0x40, 0x100], vec![]));
    }

    #[test]
    fn without_the_status_bit_there_is_no_standard_list() {
        let mut bytes = bytes();
        bytes[0x06] = 0;
        assert_eq!(met(&bytes), (vec![0x100], vec![]));
    }

    #[test]
    fn a_pointer_of_0x40_is_followed_and_one_of_0x3c_is_not() {
        let mut bytes = bytes();
        bytes[0x34] = 0x3c;
        assert_eq!(met(&bytes), (vec![0x100], vec![(0x34, BreakKind::BelowStart { target: 0x3c })]));
    }

    #[test]
    fn an_extended_pointer_of_0x104_is_followed_and_one_of_0x0fc_is_not() {
        let mut bytes = bytes();
        bytes[0x110..0x114].copy_from_slice(&0x0001_000eu32.to_le_bytes());
        next(&mut bytes, 0x100, 0x110);
        assert_eq!(met(&bytes), (vec![0x40, 0x100, 0x110], vec![]));
        next(&mut bytes, 0x100, 0x0fc);
        assert_eq!(met(&bytes), (vec![0x40, 0x100], vec![(0x102, BreakKind::BelowStart { target: 0x0fc })]));
    }

    #[test]
    fn a_loop_of_any_length_is_reported_once() {
        let mut bytes = bytes();
        for (at, to) in [(0x40, 0x60), (0x60, 0x80), (0x80, 0x60)] {
            bytes[at] = 0x0c;
            bytes[at + 1] = to;
        }
        next(&mut bytes, 0x100, 0x100);
        let faults = vec![(0x81, BreakKind::Loop { target: 0x60 }), (0x102, BreakKind::Loop { target: 0x100 })];
        assert_eq!(met(&bytes), (vec![0x40, 0x60, 0x80, 0x100], faults));
    }

    #[test]
    fn reserved_low_bits_of_a_pointer_are_reported_and_masked() {
        let mut bytes = bytes();
        bytes[0x34] = 0x43;
        assert_eq!(met(&bytes), (vec![0x40, 0x100], vec![(0x34, BreakKind::Unaligned { target: 0x43 })]));
    }

    #[test]
    fn all_ones_end_a_list() {
        let mut bytes = bytes();
        bytes[0x41] = 0x60;
        bytes[0x60..0x62].fill(0xff);
        bytes[0x100..0x104].fill(0xff);
        assert_eq!(met(&bytes), (vec![0x40], vec![(0x60, BreakKind::AllOnes), (0x100, BreakKind::AllOnes)]));
        assert_eq!(met(&[0xff; 4096]), (vec![], vec![]));
    }

    #[test]
    fn a_pointer_beyond_the_visible_bytes_ends_the_list() {
        let not_visible = |at, target, visible| (at, BreakKind::NotVisible { target, visible });
        assert_eq!(met(&bytes()[..64]), (vec![], vec![not_visible(0x34, 0x40, 64)]));
        assert_eq!(met(&bytes()[..65]), (vec![], vec![not_visible(0x34, 0x40, 65)]));
        assert_eq!(met(&bytes()[..256]), (vec![0x40], vec![]));
        let mut bytes = bytes();
        next(&mut bytes, 0x100, 0x200);
        assert_eq!(met(&bytes[..0x200]), (vec![0x40, 0x100], vec![not_visible(0x102, 0x200, 0x200)]));
    }

    #[test]
    fn a_truncated_body_is_reported_and_the_list_continues() {
        let mut bytes = bytes();
        // MSI with 32-bit addresses has 10 bytes.
        bytes[0x34] = 0xf8;
        bytes[0xf8..0xfa].copy_from_slice(&[0x05, 0x40]);
        let id = CapabilityId::MSI;
        let cut = (0xf8, BreakKind::BodyCut { id, needed: 10, there: 8 });
        assert_eq!(met(&bytes), (vec![0xf8, 0x40, 0x100], vec![cut]));
        bytes[0x34] = 0xf4;
        bytes.copy_within(0xf8..0xfa, 0xf4);
        assert_eq!(met(&bytes), (vec![0xf4, 0x40, 0x100], vec![]));
        // The serial number capability has 12.
        let id = CapabilityId::SERIAL_NUMBER;
        let cut = (0x100, BreakKind::BodyCut { id, needed: 12, there: 11 });
        assert_eq!(met(&bytes[..0x10b]), (vec![0xf4, 0x40, 0x100], vec![cut]));
        assert_eq!(met(&bytes[..0x10c]), (vec![0xf4, 0x40, 0x100], vec![]));
    }

    #[test]
    fn a_cardbus_bridge_has_its_pointer_at_0x14() {
        let mut bytes = bytes();
        bytes[0x0e] = 2;
        bytes[0x14] = 0x40;
        bytes[0x34] = 0x80;
        assert_eq!(met(&bytes), (vec![0x40, 0x100], vec![]));
    }
}
