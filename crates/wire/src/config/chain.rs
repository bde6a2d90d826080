//! The two lists of capabilities, and where they are broken.

use super::ConfigSpace;
use super::capability::{Capability, CapabilityId};
use std::fmt;

/// Which list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChainList {
    /// From the Capabilities Pointer at 0x34, within the first 256 bytes.
    Standard,
    /// From 0x100 on.
    Extended,
}

/// A place where a list of capabilities is broken.
///
/// ```
/// use lanemark_wire::config::{BreakKind, ConfigSpace};
/// let mut bytes = [0u8; 256];
/// bytes[0x06] = 0x10;
/// bytes[0x34] = 0x40;
/// bytes[0x41] = 0x40; // the capability at 0x40 points to itself
/// let fault = ConfigSpace::new(&bytes).chain_faults().next().unwrap();
/// assert_eq!((fault.offset, fault.what), (0x41, BreakKind::Loop { target: 0x40 }));
/// assert_eq!(fault.to_string(), "standard capability list, 0x041: the pointer leads back to 0x040, read before");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChainFault {
    /// In which list.
    pub list: ChainList,
    /// Where: the offset of the pointer, or of the capability, that is wrong.
    pub offset: u16,
    /// What is wrong.
    pub what: BreakKind,
}

/// What is wrong with a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BreakKind {
    /// The pointer leads back to a capability that was read before. The list ends.
    Loop {
        /// Where it leads.
        target: u16,
    },
    /// The pointer leads into the header or, in the extended list, below 0x100. The list ends.
    BelowStart {
        /// Where it leads.
        target: u16,
    },
    /// The two lowest bits, which are reserved, are set; the list goes on without them, as the specification asks.
    Unaligned {
        /// The pointer as it is.
        target: u16,
    },
    /// The pointer leads behind the bytes that could be read. The list ends.
    NotVisible {
        /// Where it leads.
        target: u16,
        /// Bytes that could be read.
        visible: usize,
    },
    /// All ones stand where the capability should begin. The list ends.
    AllOnes,
    /// The capability is there, but not all of its registers: the bytes that could be read end, or the kind of
    /// space does. The list goes on.
    BodyCut {
        /// Which capability.
        id: CapabilityId,
        /// Bytes it takes.
        needed: u16,
        /// Bytes of it that are there.
        there: u16,
    },
}

impl ChainFault {
    /// Whether what follows in the list is unknown.
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
            BreakKind::Loop { target } => write!(f, "the pointer leads back to {target:#05x}, read before"),
            BreakKind::BelowStart { target } => write!(f, "the pointer leads to {target:#05x}, below the list's start"),
            BreakKind::Unaligned { target } => write!(f, "the pointer {target:#05x} has reserved low bits set"),
            BreakKind::NotVisible { target, visible } => {
                write!(f, "the pointer leads to {target:#05x}, outside the {visible} B that could be read; try as root")
            }
            BreakKind::AllOnes => f.write_str("all ones stand where a capability should begin"),
            BreakKind::BodyCut { id, needed, there } => {
                write!(f, "{id} takes {needed} B, of which {there} are there")
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Next {
    /// The Capabilities Pointer is to be looked at.
    Start,
    /// A pointer that stands at `from`.
    Standard { from: u16, target: u16 },
    /// A pointer that stands at `from`.
    Extended { from: u16, target: u16 },
    /// Both lists are done.
    Done,
}

/// The walk over both lists; see [`ConfigSpace::walk`].
#[derive(Clone, Debug)]
pub struct Chain<'a> {
    space: ConfigSpace<'a>,
    next: Next,
    /// Faults of the capability just given, to report before anything else: its pointer, its body.
    pending: [Option<ChainFault>; 2],
    /// A bit for each DW of configuration space: read before.
    seen: [u64; 16],
    /// Whether to look for bodies that are cut; that takes each capability's whole table.
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
        // An empty extended list is a header of zero; see section 7.6.3.
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

    /// What is wrong with following this pointer, or where it leads.
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
