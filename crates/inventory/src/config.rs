//! Decodes the configuration space of a function.

use crate::{
    Acs, Address, Aer, Class, Express, Feature, Function, Link, Note, Region, RegionKind, Seen, Sriov, Why, Width,
};
use lanemark_units::HostPhys;
use lanemark_wire::config::pcie::PCI_EXPRESS;
use lanemark_wire::config::{BarKind, BreakKind, CapabilityId, ConfigSpace, Pcie, PortType, Spot, Unknown};
use lanemark_wire::{Mps, Mrrs};
use std::ops::RangeInclusive;

/// The function with configuration space `bytes`, and notes on faults of its capability lists.
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
        let mut dead = unread(address, &Why::AllOnes);
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
    let acs = |supported| Ok(Acs { supported, enabled: space.access_control()? });
    function.acs = seen.optional(space.access_control_supported().and_then(acs));
    function.aer = seen.optional(space.error_reporting()).map(|aer| {
        aer.map(|aer| Aer {
            uncorrectable_status: seen.fact(aer.uncorrectable_status()).map(|errors| errors.raw),
            correctable_status: seen.fact(aer.correctable_status()).map(|errors| errors.raw),
            ..Aer::unseen(&Why::NotInDump)
        })
    });
    // Status is at 8; bit 0 is DPC Trigger Status. Source: PCI Express Base Specification 6.0, section 7.9.14.4.
    let containment = space.capability(CapabilityId::DOWNSTREAM_PORT_CONTAINMENT);
    function.containment = match seen.optional(containment) {
        Seen::Known(Some(found)) => {
            let status = found.region().read(8, 2);
            status.map_or_else(|| Seen::Unseen(seen.cut()), |status| Seen::Known(Some(status & 1 != 0)))
        }
        Seen::Known(None) => Seen::Known(None),
        Seen::Unseen(why) => Seen::Unseen(why),
    };
    function.sriov = seen.optional(space.virtual_functions()).map(|functions| {
        functions.map(|functions| Sriov {
            total: Seen::Known(functions.total),
            // `NumVFs` is meaningless while VFs are disabled.
            enabled: Seen::Known(if functions.enabled { functions.number } else { 0 }),
        })
    });
    let resizable = space.resizable_bars().and_then(Iterator::collect);
    function.resizable_bars = seen.optional(resizable).map(Option::unwrap_or_default);
    let faults = space.chain_faults().filter(|fault| {
        // A truncated dump is reported per missing fact, not as a fault of the list.
        !matches!(fault.what, BreakKind::NotVisible { .. } | BreakKind::BodyCut { .. })
    });
    let notes = faults.map(|fault| Note { at: address.to_string(), what: fault.to_string() }).collect();
    function.config = Seen::Known(bytes);
    clear_physical_settings(&mut function);
    (function, notes)
}

/// Clears facts of a virtual function that its registers do not hold: its IDs read as all ones, and settings of the
/// physical function that apply to both read as zero.
///
/// Source: PCI Express Base Specification 6.0, sections 9.3.4.1 and 9.3.5.
pub(crate) fn clear_physical_settings(function: &mut Function) {
    fn clear<T>(fact: &mut Seen<T>) {
        *fact = Seen::Unseen(Why::OfPhysicalFunction);
    }

    if !function.is_virtual() {
        return;
    }
    for id in [&mut function.vendor, &mut function.device] {
        if id.known().is_none_or(|id| *id == 0xffff) {
            clear(id);
        }
    }
    let Seen::Known(Some(express)) = &mut function.express else { return };
    clear(&mut express.mps);
    clear(&mut express.mrrs);
    for feature in [&mut express.extended_tags, &mut express.ten_bit_tags, &mut express.latency_tolerance_reporting] {
        clear(&mut feature.enabled);
    }
    clear(&mut express.relaxed_ordering_enabled);
    clear(&mut express.no_snoop_enabled);
    if let Seen::Known(Some(link)) = &mut express.link {
        clear(&mut link.speed);
        clear(&mut link.width);
        clear(&mut link.target);
        clear(&mut link.aspm_enabled);
    }
}

/// A function whose configuration space is not available for `why`; other facts are open.
pub(crate) fn unread(address: Address, why: &Why) -> Function {
    Function {
        config: Seen::Unseen(why.clone()),
        vendor: Seen::Unseen(why.clone()),
        device: Seen::Unseen(why.clone()),
        subsystem: Seen::Unseen(why.clone()),
        revision: Seen::Unseen(why.clone()),
        class: Seen::Unseen(why.clone()),
        command: Seen::Unseen(why.clone()),
        buses: Seen::Unseen(why.clone()),
        regions: Seen::Unseen(why.clone()),
        resizable_bars: Seen::Unseen(why.clone()),
        express: Seen::Unseen(why.clone()),
        acs: Seen::Unseen(why.clone()),
        aer: Seen::Unseen(why.clone()),
        containment: Seen::Unseen(why.clone()),
        sriov: Seen::Unseen(why.clone()),
        ..Function::unseen(address, &Why::NotInDump)
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
                let broken =
                    |what| matches!(what, BreakKind::Loop { .. } | BreakKind::BelowStart { .. } | BreakKind::AllOnes);
                if self.space.chain_faults().any(|fault| broken(fault.what)) {
                    Why::BrokenCapability
                } else {
                    self.cut()
                }
            }
            unknown => Why::Config(unknown),
        }
    }

    fn fact<T>(self, answer: Result<T, Unknown>) -> Seen<T> {
        answer.map_or_else(|unknown| Seen::Unseen(self.why(unknown)), Seen::Known)
    }

    /// An absent capability or register is `Known(None)`.
    fn optional<T>(self, answer: Result<T, Unknown>) -> Seen<Option<T>> {
        match answer {
            Err(Unknown::NoCapability { .. } | Unknown::NotThere { .. }) => Seen::Known(None),
            answer => self.fact(answer).map(Some),
        }
    }

    /// A missing register means that the feature is not supported.
    fn flag(self, answer: Result<bool, Unknown>) -> Seen<bool> {
        self.optional(answer).map(|flag| flag.unwrap_or(false))
    }

    /// A decoded size as a type that holds only the sizes of the specification.
    fn size<T>(self, answer: Result<u32, Unknown>, make: fn(u32) -> Option<T>) -> Seen<T> {
        let garbled = |bytes: u32| Seen::Unseen(Why::Garbled { at: "DevCtl".into(), text: bytes.to_string().into() });
        match self.fact(answer) {
            Seen::Known(bytes) => make(bytes).map_or_else(|| garbled(bytes), Seen::Known),
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
        let mps = |answer| self.size(answer, Mps::new);
        Express {
            kind,
            link,
            mps_supported: mps(pcie.max_payload_supported()),
            mps: mps(pcie.max_payload()),
            mrrs: self.size(pcie.max_read_request(), Mrrs::new),
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
        // A link that is down has width 0, which `Lanes` does not represent.
        let width = |spot| self.fact(pcie.region().bits(spot)).map(|bits| Width(bits as u8));
        Link {
            fastest: self.fact(pcie.max_link_speed()),
            widest: width(const { Spot::of(&PCI_EXPRESS, "LnkCap", "Width") }),
            speed: self.fact(pcie.link_speed()),
            width: width(const { Spot::of(&PCI_EXPRESS, "LnkSta", "Width") }),
            target: self.fact(pcie.target_link_speed()),
            aspm_supported: self.fact(pcie.aspm_supported()),
            aspm_enabled: self.fact(pcie.aspm_enabled()),
            l1_substates: self.optional(self.space.l1_substates()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trigger_bit_of_containment_is_read_from_its_status() {
        let with = |status: u8| {
            let mut bytes = vec![0; 4096];
            bytes[..4].copy_from_slice(&[0x86, 0x80, 0x34, 0x12]);
            bytes[0x06] = 0x10;
            bytes[0x34] = 0x40;
            bytes[0x40..0x44].copy_from_slice(&[0x10, 0x00, 0x42, 0x00]);
            bytes[0x100..0x104].copy_from_slice(&[0x1d, 0, 1, 0]);
            bytes[0x108] = status;
            bytes
        };
        let read = |bytes| function("00:01.0".parse().unwrap(), bytes).0.containment;
        assert_eq!(read(with(1)), Seen::Known(Some(true)));
        assert_eq!(read(with(2)), Seen::Known(Some(false)));
        assert!(read(with(1)[..0x108].to_vec()).why().is_some());
        let mut without = with(1);
        without[0x100] = 0x01;
        assert_eq!(read(without), Seen::Known(None));
    }
}
