//! What the bytes of config space say about a function.

use crate::{
    Acs, AcsBits, Address, Aer, Class, Express, Feature, Function, L1Substates, Link, Note, Region, RegionKind,
    ResizableBar, Seen, Sriov, Why, Width,
};
use lanemark_units::HostPhys;
use lanemark_wire::config::pcie::PCI_EXPRESS;
use lanemark_wire::config::{BarKind, BreakKind, Capability, CapabilityId, ConfigSpace, Pcie, PortType, Spot, Unknown};
use lanemark_wire::{Mps, Mrrs};
use std::ops::RangeInclusive;

const AER: CapabilityId = CapabilityId::Extended(0x01);
const ACS: CapabilityId = CapabilityId::Extended(0x0d);
const SRIOV: CapabilityId = CapabilityId::Extended(0x10);
const RESIZABLE_BAR: CapabilityId = CapabilityId::Extended(0x15);
const L1_SUBSTATES: CapabilityId = CapabilityId::Extended(0x1e);

/// The function whose config space begins with `bytes`, and what is strange about its capability lists.
///
/// ```
/// use lanemark_inventory::config;
/// let mut bytes = vec![0; 64];
/// bytes[..4].copy_from_slice(&[0x0f, 0x1d, 0x01, 0xf0]);
/// let (function, notes) = config::function("00:1d.0".parse().unwrap(), bytes);
/// assert_eq!(function.vendor.get(), Some(0x1d0f));
/// assert!(function.driver.why().is_some() && notes.is_empty());
/// ```
#[must_use]
pub fn function(address: Address, bytes: Vec<u8>) -> (Function, Vec<Note>) {
    let mut function = Function::unseen(address, &Why::NotInDump);
    let space = ConfigSpace::new(&bytes);
    if space.is_absent() {
        let mut dead = Function::unseen(address, &Why::AllOnes);
        dead.config = Seen::Known(bytes);
        let what = "config space reads as all ones: the function does not answer".to_owned();
        return (dead, vec![Note { at: address.to_string(), what }]);
    }
    let seen = Bytes { space };
    function.vendor = seen.fact(space.vendor_id());
    function.device = seen.fact(space.device_id());
    function.subsystem = seen.optional(space.subsystem());
    function.revision = seen.fact(space.revision());
    function.class = seen.fact(space.class_code()).map(Class);
    function.command = space.read(4, 2).map_or(Seen::Unseen(seen.cut()), |bits| Seen::Known(bits as u16));
    function.buses = seen.optional(space.bus_numbers());
    function.regions = seen.regions();
    function.express = seen.optional(space.pcie()).map(|pcie| pcie.map(|pcie| seen.express(&pcie)));
    function.acs = seen.capability(ACS, |acs| {
        let bits = |at| acs.region().read(at, 2).map(|bits| AcsBits(bits as u16));
        Some(Acs { supported: bits(4)?, enabled: bits(6)? })
    });
    function.aer = seen.capability(AER, |aer| {
        let status = |at| aer.region().read(at, 4).map(|bits| Seen::Known(bits as u32));
        let counters = Aer::unseen(&Why::NotInDump);
        Some(Aer { uncorrectable_status: status(4)?, correctable_status: status(0x10)?, ..counters })
    });
    function.sriov = seen.capability(SRIOV, |sriov| {
        let count = |at| sriov.region().read(at, 2).map(|count| Seen::Known(count as u16));
        Some(Sriov { total: count(0x0e)?, enabled: count(0x10)? })
    });
    function.resizable_bars =
        seen.capability(RESIZABLE_BAR, |capability| resizable_bars(&capability)).map(Option::unwrap_or_default);
    let faults = space.chain_faults().filter(|fault| {
        // What was cut off by who read it is said where it is missed.
        !matches!(fault.what, BreakKind::NotVisible { .. }) && !(fault.is_cut() && bytes.len() < ConfigSpace::BYTES)
    });
    let notes = faults.map(|fault| Note { at: address.to_string(), what: fault.to_string() }).collect();
    function.config = Seen::Known(bytes);
    (function, notes)
}

trait IsCut {
    fn is_cut(&self) -> bool;
}

impl IsCut for lanemark_wire::config::ChainFault {
    fn is_cut(&self) -> bool {
        matches!(self.what, BreakKind::BodyCut { .. })
    }
}

#[derive(Clone, Copy)]
struct Bytes<'a> {
    space: ConfigSpace<'a>,
}

impl<'a> Bytes<'a> {
    fn cut(self) -> Why {
        Why::BeyondConfig { bytes: self.space.bytes().len() as u16 }
    }

    fn why(self, unknown: Unknown) -> Why {
        match unknown {
            Unknown::NotVisible { .. } => self.cut(),
            Unknown::ListCut { .. } => {
                let broken = |what| matches!(what, BreakKind::Loop { .. } | BreakKind::BelowStart { .. } | BreakKind::AllOnes);
                if self.space.chain_faults().any(|fault| broken(fault.what)) { Why::BrokenCapability } else { self.cut() }
            }
            unknown => Why::Config(unknown),
        }
    }

    fn fact<T>(self, answer: Result<T, Unknown>) -> Seen<T> {
        answer.map_or_else(|unknown| Seen::Unseen(self.why(unknown)), Seen::Known)
    }

    /// What is not there is known not to be there.
    fn optional<T>(self, answer: Result<T, Unknown>) -> Seen<Option<T>> {
        match answer {
            Err(Unknown::NoCapability { .. } | Unknown::NotThere { .. }) => Seen::Known(None),
            answer => self.fact(answer).map(Some),
        }
    }

    /// A function without the register cannot do what a bit of it would say.
    fn flag(self, answer: Result<bool, Unknown>) -> Seen<bool> {
        self.optional(answer).map(|flag| flag.unwrap_or(false))
    }

    fn capability<T>(self, id: CapabilityId, read: impl FnOnce(Capability<'a>) -> Option<T>) -> Seen<Option<T>> {
        match self.optional(self.space.capability(id)) {
            Seen::Known(Some(capability)) => read(capability).map_or(Seen::Unseen(self.cut()), |read| Seen::Known(Some(read))),
            Seen::Known(None) => Seen::Known(None),
            Seen::Unseen(why) => Seen::Unseen(why),
        }
    }

    fn regions(self) -> Seen<Vec<Region>> {
        if self.space.bytes().len() < 64 {
            return Seen::Unseen(self.cut());
        }
        let unsized_at = |kind, space, base: u64, prefetchable| Region {
            kind,
            space,
            base: Seen::Known((base != 0).then_some(HostPhys(base))),
            bytes: Seen::Unseen(Why::NotInDump),
            prefetchable,
            write_combining_file: Seen::Unseen(Why::NotInDump),
        };
        let mut regions: Vec<Region> = (self.space.bars())
            .map(|bar| unsized_at(RegionKind::Bar(bar.index), bar.kind, bar.address(), bar.prefetchable))
            .collect();
        if let Ok(Some((base, _))) = self.space.expansion_rom() {
            regions.push(unsized_at(RegionKind::Rom, BarKind::Memory32, base.into(), false));
        }
        if let Ok(windows) = self.space.windows() {
            let prefetchable = windows.prefetchable.map(|range| (2, BarKind::Memory64, range));
            let memory = windows.memory.map(|range| (1, BarKind::Memory32, range));
            let io = windows.io.map(|range| (0, BarKind::Io, range));
            let all = [io, memory, prefetchable].into_iter().flatten();
            regions.extend(all.map(|(number, space, range)| window(number, space, &range)));
        }
        Seen::Known(regions)
    }

    fn express(self, pcie: &Pcie<'a>) -> Express {
        let bit = |spot| self.flag(pcie.region().flag(spot));
        let kind = self.fact(pcie.port_type());
        let link = match kind {
            Seen::Known(PortType::IntegratedEndpoint | PortType::EventCollector) => Seen::Known(None),
            _ => Seen::Known(Some(self.link(pcie))),
        };
        // An answer of the decoder is one of the six sizes.
        let size = |answer: Result<u32, Unknown>| self.fact(answer);
        let reserved = |bytes: u32| Seen::Unseen(Why::Garbled { at: "DevCtl".into(), text: bytes.to_string().into() });
        let mps = |answer| match size(answer) {
            Seen::Known(bytes) => Mps::new(bytes).map_or_else(|| reserved(bytes), Seen::Known),
            Seen::Unseen(why) => Seen::Unseen(why),
        };
        let mrrs = match size(pcie.max_read_request()) {
            Seen::Known(bytes) => Mrrs::new(bytes).map_or_else(|| reserved(bytes), Seen::Known),
            Seen::Unseen(why) => Seen::Unseen(why),
        };
        Express {
            kind,
            link,
            mps_supported: mps(pcie.max_payload_supported()),
            mps: mps(pcie.max_payload()),
            mrrs,
            extended_tags: Feature {
                supported: self.flag(pcie.extended_tags_supported()),
                enabled: self.flag(pcie.extended_tags()),
            },
            ten_bit_tags: Feature {
                supported: self.flag(pcie.ten_bit_tag_requester_supported()),
                enabled: self.flag(pcie.ten_bit_tag_requester()),
            },
            ten_bit_tag_completer: self.flag(pcie.ten_bit_tag_completer()),
            relaxed_ordering_enabled: self.flag(pcie.relaxed_ordering()),
            no_snoop_enabled: self.flag(pcie.no_snoop()),
            latency_tolerance_reporting: Feature {
                supported: bit(const { Spot::of(&PCI_EXPRESS, "DevCap2", "LTR") }),
                enabled: bit(const { Spot::of(&PCI_EXPRESS, "DevCtl2", "LTR") }),
            },
            slot: match pcie.has_slot() {
                Ok(false) => Seen::Known(None),
                _ => self.optional(pcie.slot()).map(|slot| slot.map(|(number, _)| u32::from(number))),
            },
        }
    }

    fn link(self, pcie: &Pcie<'a>) -> Link {
        // A link that is down has width 0, which no `Lanes` is.
        let width = |spot| self.fact(pcie.region().bits(spot)).map(|bits| Width(bits as u8));
        Link {
            fastest: self.fact(pcie.max_link_speed()),
            widest: width(const { Spot::of(&PCI_EXPRESS, "LnkCap", "Width") }),
            speed: self.fact(pcie.link_speed()),
            width: width(const { Spot::of(&PCI_EXPRESS, "LnkSta", "Width") }),
            target: self.fact(pcie.target_link_speed()),
            aspm_supported: self.fact(pcie.aspm_supported()),
            aspm_enabled: self.fact(pcie.aspm_enabled()),
            l1_substates: self.capability(L1_SUBSTATES, |capability| {
                capability.region().read(8, 1).map(|bits| L1Substates(bits as u8 & 0xf))
            }),
            data_link_active: self.fact(pcie.link_active()),
        }
    }
}

fn window(number: u8, space: BarKind, range: &RangeInclusive<u64>) -> Region {
    Region {
        kind: RegionKind::Window(number),
        space,
        base: Seen::Known(Some(HostPhys(*range.start()))),
        bytes: Seen::Known((range.end() - range.start()).saturating_add(1)),
        prefetchable: number == 2,
        write_combining_file: Seen::Known(false),
    }
}

/// PCI Express Base Specification 6.0, section 7.8.6: bit 4 of the capability is 1 MiB, and so on through the
/// upper half of the control register.
fn resizable_bars(capability: &Capability<'_>) -> Option<Vec<ResizableBar>> {
    let region = capability.region();
    let count = region.read(8, 4)? >> 5 & 7;
    let bar = |index: u16| {
        let (can, control) = (region.read(4 + 8 * index, 4)?, region.read(8 + 8 * index, 4)?);
        let can = can >> 4 | (control >> 16) << 28;
        let size = |code: u64| 1_u64.checked_shl(20 + code as u32);
        Some(ResizableBar {
            bar: (control & 7) as u8,
            sizes: (0..44).filter(|code| can & 1 << code != 0).filter_map(size).collect(),
            size: size(control >> 8 & 0x3f).map_or(
                Seen::Unseen(Why::Garbled { at: "BAR Size".into(), text: format!("{control:#x}").into() }),
                Seen::Known,
            ),
        })
    };
    (0..count as u16).map(bar).collect()
}
