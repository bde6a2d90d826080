//! Parses the indented lines of a function: output of `lspci -v`, `-vv` and `-vvv`.
//!
//! A line of a register (`LnkSta: ...`) is continued by lines without a name. Registers are searched inside their
//! capability only, so that `Region 0` of virtual functions is not taken for BAR 0.

use super::heading;
use crate::files::garbled;
use crate::link::speed_in;
use crate::{Acs, Address, Aer, Express, Feature, Function, Link, Region, RegionKind, Seen, Sriov, Why, Width};
use lanemark_units::HostPhys;
use lanemark_wire::config::{
    AccessControl, Aspm, BarKind, BusNumbers, Errors, L1Substates, LinkSpeed, PortType, ResizableBar,
};
use lanemark_wire::{Mps, Mrrs};

/// The indented lines of one function.
#[derive(Default)]
pub(super) struct Listing<'a> {
    lines: Vec<&'a str>,
}

/// Optional lines that occur for some function of the text. If they do, another function without such a line is known
/// to have no driver, node or group.
#[derive(Default)]
pub(super) struct Kinds {
    driver: bool,
    numa_node: bool,
    iommu_group: bool,
}

impl Kinds {
    pub(super) fn of<'a, 'b: 'a>(listings: impl Iterator<Item = &'a Listing<'b>>) -> Kinds {
        let mut kinds = Kinds::default();
        for line in listings.flat_map(|listing| &listing.lines) {
            let line = line.trim_start();
            kinds.driver |= line.starts_with("Kernel driver in use:");
            kinds.numa_node |= line.starts_with("NUMA node:");
            kinds.iommu_group |= line.starts_with("IOMMU group:");
        }
        kinds
    }
}

/// A capability with its lines.
struct Capability<'a> {
    /// The text after `Capabilities: [40]` or `[100 v1]`.
    title: &'a str,
    /// Whether it is an extended capability.
    extended: bool,
    lines: Vec<&'a str>,
}

/// The lines of a function by section.
#[derive(Default)]
struct Sections<'a> {
    /// Lines outside of capabilities.
    plain: Vec<&'a str>,
    capabilities: Vec<Capability<'a>>,
    denied: bool,
}

/// Registers that are continued by lines without a name.
const REGISTERS: [&str; 25] = [
    "DevCap",
    "DevCtl",
    "DevSta",
    "DevCap2",
    "DevCtl2",
    "LnkCap",
    "LnkCtl",
    "LnkSta",
    "LnkCap2",
    "LnkCtl2",
    "LnkSta2",
    "SltCap",
    "SltCtl",
    "SltSta",
    "UESta",
    "UEMsk",
    "UESvrt",
    "CESta",
    "CEMsk",
    "ACSCap",
    "ACSCtl",
    "L1SubCtl1",
    "DpcCap",
    "DpcCtl",
    "DpcSta",
];
/// Prefixes of the lines that can follow the heading of a function.
const FIRST: [&str; 12] = [
    "Subsystem:",
    "DeviceName:",
    "Physical Slot:",
    "Control:",
    "Flags:",
    "Capabilities:",
    "Region ",
    "Memory at ",
    "I/O ports at ",
    "Kernel driver in use:",
    "Kernel modules:",
    "!!! ",
];
/// Prefixes of lines outside of capabilities.
const PLAIN: [&str; 5] = ["Kernel driver in use:", "Kernel modules:", "NUMA node:", "IOMMU group:", "Capabilities:"];

impl<'a> Listing<'a> {
    pub(super) fn push(&mut self, line: &'a str) {
        self.lines.push(line);
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Whether a line without indentation can be the first of a listing.
    pub(super) fn can_begin(line: &str) -> bool {
        FIRST.iter().any(|first| line.starts_with(first))
    }

    /// Whether any line is one that lspci prints.
    pub(super) fn is_of_lspci(&self) -> bool {
        self.lines.iter().any(|line| Listing::can_begin(line.trim_start()))
    }

    /// Whether the header reads as all ones: lspci masks the bit for several functions.
    pub(super) fn is_all_ones(&self) -> bool {
        self.lines.iter().any(|line| line.trim_start().starts_with("!!! Unknown header type 7f"))
    }

    fn sections(&self) -> Sections<'a> {
        let mut sections = Sections::default();
        let mut inside = false;
        for line in self.lines.iter().map(|line| line.trim()) {
            if let Some(rest) = line.strip_prefix("Capabilities: ") {
                inside = false;
                if rest.starts_with("<access denied>") {
                    sections.denied = true;
                } else if let Some((place, title)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                    // Extended capabilities start at offset 100 and have a version: [100 v1].
                    let extended = place.split(' ').next().is_some_and(|offset| offset.len() > 2);
                    sections.capabilities.push(Capability { title: title.trim(), extended, lines: Vec::new() });
                    inside = true;
                }
                continue;
            }
            inside &= !PLAIN.iter().any(|plain| line.starts_with(plain));
            match sections.capabilities.last_mut() {
                Some(capability) if inside => capability.lines.push(line),
                _ => sections.plain.push(line),
            }
        }
        sections
    }

    /// The facts in the lines.
    pub(super) fn function(&self, address: Address, kinds: &Kinds) -> Function {
        let sections = self.sections();
        let listed = |name: &'static str| value(&sections.plain, name);
        let verbose = Why::NotListed("of the kind, which lspci -vvv prints");
        let own = |there: bool, name: &'static str, parse: fn(&str) -> Option<u32>| match listed(name) {
            Some(text) => {
                parse(text).map_or_else(|| Seen::Unseen(garbled(name, text)), |number| Seen::Known(Some(number)))
            }
            None if there => Seen::Known(None),
            None => Seen::Unseen(Why::NotListed(name)),
        };
        let number = |text: &str| text.parse().ok();
        let mut function = Function {
            local_cpus: Seen::Unseen(Why::NotPrinted),
            iommu_domain: Seen::Unseen(Why::NotPrinted),
            power_state: Seen::Unseen(Why::NotPrinted),
            d3cold_allowed: Seen::Unseen(Why::NotPrinted),
            enable_count: Seen::Unseen(Why::NotPrinted),
            interrupts: Seen::Unseen(Why::NotPrinted),
            ..Function::unseen(address, &verbose)
        };
        function.driver = match listed("Kernel driver in use") {
            Some(driver) => Seen::Known(Some(driver.to_owned())),
            None if kinds.driver => Seen::Known(None),
            None => Seen::Unseen(Why::NotListed("Kernel driver in use")),
        };
        function.numa_node = own(kinds.numa_node, "NUMA node", number);
        function.iommu_group = own(kinds.iommu_group, "IOMMU group", number);
        function.command = listed("Control").map_or(Seen::Unseen(Why::NotListed("Control")), command);
        function.buses = match listed("Bus") {
            Some(text) => {
                buses(text).map_or_else(|| Seen::Unseen(garbled("Bus", text)), |buses| Seen::Known(Some(buses)))
            }
            // lspci prints this line for every bridge, and a line of the command register for every function.
            None if listed("Control").is_some() || listed("Flags").is_some() => Seen::Known(None),
            None => Seen::Unseen(Why::NotListed("Bus")),
        };
        function.regions = regions(&sections);
        let capability = sections.known(listed("Status").and_then(|status| flag(status, "Cap")));
        function.subsystem = match listed("Subsystem") {
            Some(text) => subsystem(text),
            // A bridge has its subsystem IDs in a capability.
            None if function.is_bridge() => match capability.find(false, "Subsystem") {
                Seen::Known(Some(found)) => subsystem(found.title.trim_start_matches("Subsystem: ")),
                Seen::Known(None) => Seen::Known(None),
                Seen::Unseen(why) => Seen::Unseen(why),
            },
            None => Seen::Unseen(Why::NotListed("Subsystem")),
        };
        function.express = capability
            .find(false, "Express")
            .map(|express| express.map(|express| express_of(express, listed("Physical Slot"), &capability)));
        function.acs = capability.find(true, "Access Control Services").and_then_present(|acs| {
            let bits = |name| register(&acs.lines, name).map(|text| access_control(&text));
            Some(Acs { supported: bits("ACSCap")?, enabled: bits("ACSCtl")? })
        });
        function.aer = capability.find(true, "Advanced Error Reporting").map(|aer| aer.map(aer_of));
        function.containment = capability
            .find(true, "Downstream Port Containment")
            .and_then_present(|containment| flag(&register(&containment.lines, "DpcSta")?, "Trigger"));
        function.sriov = capability.find(true, "Single Root I/O Virtualization").map(|sriov| sriov.map(sriov_of));
        function.resizable_bars = capability
            .find(true, "Physical Resizable BAR")
            .and_then_present(|bars| {
                bars.lines.iter().filter(|line| line.starts_with("BAR ")).map(|line| resizable(line)).collect()
            })
            .map(Option::unwrap_or_default);
        function
    }
}

/// Looks up capabilities; tells an absent capability from an unlisted one.
struct Known<'a, 'b> {
    sections: &'b Sections<'a>,
    /// The Capabilities List bit of the status register, if it is listed.
    list: Option<bool>,
}

impl<'a> Sections<'a> {
    fn known<'b>(&'b self, list: Option<bool>) -> Known<'a, 'b> {
        Known { sections: self, list }
    }
}

impl<'a, 'b> Known<'a, 'b> {
    fn find(&self, extended: bool, title: &'static str) -> Seen<Option<&'b Capability<'a>>> {
        let sections = self.sections;
        let mut of_list = sections.capabilities.iter().filter(|capability| capability.extended == extended).peekable();
        let is_listed = of_list.peek().is_some();
        // lspci -vv prints `Express (v2) Endpoint`; the title must match as a whole word.
        let found = of_list.find(|capability| {
            capability.title.strip_prefix(title).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
        });
        // An older lspci prints `Resizable BAR <?>` where a newer one prints `Physical` or `Virtual`.
        let undecoded = |capability: &Capability<'_>| {
            capability.title.strip_suffix(" <?>").is_some_and(|name| title.ends_with(name))
        };
        match found {
            Some(capability) => Seen::Known(Some(capability)),
            None if sections.capabilities.iter().any(undecoded) => {
                Seen::Unseen(Why::NotListed("of the kind, which a newer lspci prints"))
            }
            None if sections.denied => Seen::Unseen(Why::ListingDenied),
            None if is_listed || self.list == Some(false) => Seen::Known(None),
            None => Seen::Unseen(Why::NotListed("Capabilities")),
        }
    }
}

trait Present<T> {
    /// Converts a present value; a missing line makes it unseen.
    fn and_then_present<U>(self, read: impl FnOnce(T) -> Option<U>) -> Seen<Option<U>>;
}

impl<T> Present<T> for Seen<Option<T>> {
    fn and_then_present<U>(self, read: impl FnOnce(T) -> Option<U>) -> Seen<Option<U>> {
        match self {
            Seen::Known(Some(present)) => read(present)
                .map_or(Seen::Unseen(Why::NotListed("of the kind, which lspci -vv prints")), |read| {
                    Seen::Known(Some(read))
                }),
            Seen::Known(None) => Seen::Known(None),
            Seen::Unseen(why) => Seen::Unseen(why),
        }
    }
}

/// The text after `name:` in the first line with this prefix.
fn value<'a>(lines: &[&'a str], name: &str) -> Option<&'a str> {
    lines.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// The text after `name:`, with its continuation lines.
fn register(lines: &[&str], name: &str) -> Option<String> {
    let begins = |line: &str| line.split_once(':').is_some_and(|(word, _)| REGISTERS.contains(&word));
    let at = lines.iter().position(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':')))?;
    let mut text = lines[at][name.len() + 1..].trim().to_owned();
    for line in lines[at + 1..].iter().take_while(|line| !begins(line)) {
        text.push(' ');
        text.push_str(line);
    }
    Some(text)
}

/// Parses a flag: `ExtTag+` is on, `ExtTag-` is off.
fn flag(text: &str, name: &str) -> Option<bool> {
    text.split([' ', ',', ';', '(', ')']).find_map(|word| match word.strip_prefix(name)? {
        "+" => Some(true),
        "-" => Some(false),
        _ => None,
    })
}

/// The text after `name ` up to a comma, a semicolon or the end of the line.
fn after<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let at = text
        .match_indices(name)
        .map(|(at, _)| at)
        .find(|at| *at == 0 || text[..*at].ends_with([' ', ',', ';', '\t']))?;
    text[at + name.len()..].strip_prefix(' ')?.split([',', ';']).next().map(str::trim)
}

fn subsystem(text: &str) -> Seen<Option<(u16, u16)>> {
    let unseen = Seen::Unseen(Why::NotListed("of ids, which lspci -nn prints"));
    heading::subsystem(text).map_or(unseen, |ids| Seen::Known(Some(ids)))
}

fn command(text: &str) -> Seen<u16> {
    // In bit order.
    const BITS: [&str; 11] = [
        "I/O",
        "Mem",
        "BusMaster",
        "SpecCycle",
        "MemWINV",
        "VGASnoop",
        "ParErr",
        "Stepping",
        "SERR",
        "FastB2B",
        "DisINTx",
    ];
    let mut bits = 0;
    for (bit, name) in BITS.iter().enumerate() {
        match flag(text, name) {
            Some(on) => bits |= u16::from(on) << bit,
            None => return Seen::Unseen(garbled("Control", text)),
        }
    }
    Seen::Known(bits)
}

/// Parses `primary=00, secondary=01, subordinate=01, sec-latency=0`.
fn buses(text: &str) -> Option<BusNumbers> {
    let number = |name: &str| {
        let text = text.split(", ").find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='))?;
        u8::from_str_radix(text, 16).ok()
    };
    Some(BusNumbers {
        primary: number("primary")?,
        secondary: number("secondary")?,
        subordinate: number("subordinate")?,
    })
}

/// Parses a size such as `64K`, `1M`, `128G`, in units of 1024.
fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match text[digits.len()..].trim_end_matches('B') {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        "P" => 50,
        "E" => 60,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << scale)
}

fn bytes_of(text: &str) -> Seen<u64> {
    let size = text.split_once("[size=").and_then(|(_, rest)| size(rest.split_once(']')?.0));
    size.map_or(Seen::Unseen(Why::NotListed("[size=...], which lspci prints on the machine itself")), Seen::Known)
}

/// BARs, ROM and windows, and the BARs of virtual functions.
fn regions(sections: &Sections<'_>) -> Seen<Vec<Region>> {
    let mut regions = Vec::new();
    for line in &sections.plain {
        if let Some(rest) = line.strip_prefix("Region ") {
            let Some(region) = bar(rest, RegionKind::Bar) else { return Seen::Unseen(garbled("Region", line)) };
            // lspci -F prints the upper half of a 64-bit BAR as a separate BAR.
            let is_upper_half = regions.last().is_some_and(|before: &Region| {
                before.space == BarKind::Memory64 && before.bar().map(|number| number + 1) == region.bar()
            });
            if !is_upper_half {
                regions.push(region);
            }
        } else if line.starts_with("Memory at ") || line.starts_with("I/O ports at ") {
            // lspci -v prints BARs without numbers.
            return Seen::Unseen(Why::NotListed("Region, which lspci -vv prints"));
        } else if let Some(rest) = line.strip_prefix("Expansion ROM at ") {
            regions.push(region(RegionKind::Rom, BarKind::Memory32, rest, false));
        } else if let Some((number, space, rest)) = window(line) {
            regions.extend(window_of(number, space, rest));
        }
    }
    let virtual_functions = (sections.capabilities.iter())
        .filter(|capability| capability.title.starts_with("Single Root I/O Virtualization"))
        .flat_map(|capability| &capability.lines);
    let of_virtual_function = |line: &&str| bar(line.strip_prefix("Region ")?, RegionKind::VirtualFunctionBar);
    regions.extend(virtual_functions.filter_map(of_virtual_function));
    let is_verbose = value(&sections.plain, "Control").is_some() || value(&sections.plain, "Flags").is_some();
    if regions.is_empty() && !is_verbose {
        return Seen::Unseen(Why::NotListed("Region, which lspci -vv prints"));
    }
    Seen::Known(regions)
}

/// Parses `0: Memory at c4000000 (32-bit, non-prefetchable) [size=32M]`.
fn bar(text: &str, kind: fn(u8) -> RegionKind) -> Option<Region> {
    let (number, text) = text.split_once(": ")?;
    let number = number.parse().ok().filter(|number| *number < 6)?;
    // Marks of lspci for a BAR emulated by the kernel or described by Enhanced Allocation.
    let text = text.trim_start_matches("[virtual] ").trim_start_matches("[enhanced] ");
    if let Some(rest) = text.strip_prefix("I/O ports at ") {
        return Some(region(kind(number), BarKind::Io, rest, false));
    }
    let rest = text.strip_prefix("Memory at ")?;
    let described = rest.split_once('(')?.1.split_once(')')?.0;
    let (width, prefetchable) = described.split_once(", ")?;
    let space = match width {
        "64-bit" => BarKind::Memory64,
        "32-bit" => BarKind::Memory32,
        "low-1M" => BarKind::MemoryBelow1Mib,
        _ => BarKind::MemoryReserved,
    };
    Some(region(kind(number), space, rest, prefetchable == "prefetchable"))
}

/// A region whose text begins with its address, or with `<unassigned>` or `<ignored>`.
fn region(kind: RegionKind, space: BarKind, at: &str, prefetchable: bool) -> Region {
    let word = at.split([' ', '\t']).next().unwrap_or("");
    let base = match u64::from_str_radix(word, 16) {
        Ok(base) => Seen::Known(Some(HostPhys(base))),
        Err(_) if word.starts_with('<') => Seen::Known(None),
        Err(_) => Seen::Unseen(garbled("Region", at)),
    };
    let write_combining_file = match kind {
        RegionKind::Bar(_) => Seen::Unseen(Why::NotPrinted),
        _ => Seen::Known(false),
    };
    Region { kind, space, base, bytes: bytes_of(at), prefetchable, write_combining_file }
}

fn window(line: &str) -> Option<(u8, BarKind, &str)> {
    [
        ("I/O behind bridge:", 0, BarKind::Io),
        ("Memory behind bridge:", 1, BarKind::Memory32),
        ("Prefetchable memory behind bridge:", 2, BarKind::Memory64),
    ]
    .into_iter()
    .find_map(|(name, number, space)| Some((number, space, line.strip_prefix(name)?.trim())))
}

/// Parses `f7c00000-f7cfffff [size=1M] [32-bit]`; `None` for a disabled window.
fn window_of(number: u8, space: BarKind, text: &str) -> Option<Region> {
    let (first, last) = text.split([' ', '\t']).next()?.split_once('-')?;
    let first = u64::from_str_radix(first, 16).ok()?;
    let last = u64::from_str_radix(last, 16).ok()?;
    if last < first || text.contains("[disabled]") {
        return None;
    }
    Some(Region {
        kind: RegionKind::Window(number),
        space,
        base: Seen::Known(Some(HostPhys(first))),
        bytes: Seen::Known((last - first).saturating_add(1)),
        prefetchable: number == 2,
        write_combining_file: Seen::Known(false),
    })
}

/// Parses `Express (v2) Root Port (Slot+), MSI 00`.
fn port_type(title: &str) -> Option<PortType> {
    let words = title.strip_prefix("Express ")?;
    let words = match words.strip_prefix('(') {
        Some(rest) => rest.split_once(") ")?.1,
        None => words,
    };
    let name = words.split([',', '(']).next()?.trim();
    Some(match name {
        "Endpoint" => PortType::Endpoint,
        "Legacy Endpoint" => PortType::LegacyEndpoint,
        "Root Port" => PortType::RootPort,
        "Upstream Port" => PortType::UpstreamPort,
        "Downstream Port" => PortType::DownstreamPort,
        "PCI-Express to PCI/PCI-X Bridge" => PortType::PciBridge,
        "PCI/PCI-X to PCI-Express Bridge" => PortType::ReverseBridge,
        "Root Complex Integrated Endpoint" => PortType::IntegratedEndpoint,
        "Root Complex Event Collector" => PortType::EventCollector,
        _ => return None,
    })
}

fn aspm(text: &str) -> Aspm {
    Aspm { l0s: text.contains("L0s"), l1: text.contains("L1") }
}

/// A fact from a register that may not be listed.
fn fact<T>(register: Option<&String>, name: &'static str, read: impl FnOnce(&str) -> Option<T>) -> Seen<T> {
    let unlisted = || Seen::Unseen(Why::NotListed(name));
    register.map_or_else(unlisted, |text| read(text).map_or_else(unlisted, Seen::Known))
}

fn express_of(express: &Capability<'_>, physical_slot: Option<&str>, known: &Known<'_, '_>) -> Express {
    let of = |name| register(&express.lines, name);
    let [capable, control, capable_2, control_2] = [of("DevCap"), of("DevCtl"), of("DevCap2"), of("DevCtl2")];
    let kind =
        port_type(express.title).map_or_else(|| Seen::Unseen(garbled("Capabilities", express.title)), Seen::Known);
    let bit = |register: &Option<String>, line, name| fact(register.as_ref(), line, |text| flag(text, name));
    let bytes = |text: &str, name| {
        after(text, name)?.strip_suffix(" bytes").or(after(text, name))?.split(' ').next()?.parse().ok()
    };
    let has_slot = express.title.contains("(Slot+)");
    let slot =
        register(&express.lines, "SltCap").and_then(|text| after(&text, "Slot")?.strip_prefix('#')?.parse().ok());
    Express {
        link: match kind {
            Seen::Known(PortType::IntegratedEndpoint | PortType::EventCollector) => Seen::Known(None),
            _ => Seen::Known(Some(link_of(express, known))),
        },
        kind,
        mps_supported: fact(capable.as_ref(), "DevCap", |text| Mps::new(bytes(text, "MaxPayload")?)),
        mps: fact(control.as_ref(), "DevCtl", |text| Mps::new(bytes(text, "MaxPayload")?)),
        mrrs: fact(control.as_ref(), "DevCtl", |text| Mrrs::new(bytes(text, "MaxReadReq")?)),
        extended_tags: Feature {
            supported: bit(&capable, "DevCap", "ExtTag"),
            enabled: bit(&control, "DevCtl", "ExtTag"),
        },
        ten_bit_tags: Feature {
            supported: bit(&capable_2, "DevCap2", "10BitTagReq"),
            enabled: bit(&control_2, "DevCtl2", "10BitTagReq"),
        },
        ten_bit_tag_completer: bit(&capable_2, "DevCap2", "10BitTagComp"),
        relaxed_ordering_enabled: bit(&control, "DevCtl", "RlxdOrd"),
        no_snoop_enabled: bit(&control, "DevCtl", "NoSnoop"),
        latency_tolerance_reporting: Feature {
            supported: bit(&capable_2, "DevCap2", "LTR"),
            enabled: bit(&control_2, "DevCtl2", "LTR"),
        },
        slot: match slot.or_else(|| physical_slot?.parse().ok()) {
            Some(slot) => Seen::Known(Some(slot)),
            None if !has_slot => Seen::Known(None),
            None => Seen::Unseen(Why::NotListed("SltCap")),
        },
    }
}

fn link_of(express: &Capability<'_>, known: &Known<'_, '_>) -> Link {
    let of = |name| register(&express.lines, name);
    let [capable, control, status, control_2] = [of("LnkCap"), of("LnkCtl"), of("LnkSta"), of("LnkCtl2")];
    let speed = |text: &str| -> Option<LinkSpeed> { speed_in(after(text, "Speed")?) };
    let width = |text: &str| {
        let lanes = after(text, "Width")?.strip_prefix('x')?;
        lanes.split(' ').next()?.parse().ok().map(Width)
    };
    let reports = capable.as_ref().and_then(|text| flag(text, "LLActRep"));
    Link {
        fastest: fact(capable.as_ref(), "LnkCap", speed),
        widest: fact(capable.as_ref(), "LnkCap", width),
        speed: fact(status.as_ref(), "LnkSta", speed),
        width: fact(status.as_ref(), "LnkSta", width),
        target: fact(control_2.as_ref(), "LnkCtl2", |text| {
            speed_in(after(text, "Target Link Speed:").or(after(text, "Target Link Speed"))?)
        }),
        aspm_supported: fact(capable.as_ref(), "LnkCap", |text| Some(aspm(after(text, "ASPM")?))),
        aspm_enabled: fact(control.as_ref(), "LnkCtl", |text| Some(aspm(after(text, "ASPM")?))),
        l1_substates: known.find(true, "L1 PM Substates").and_then_present(|substates| {
            let text = register(&substates.lines, "L1SubCtl1")?;
            Some(L1Substates {
                pci_pm_l1_2: flag(&text, "PCI-PM_L1.2")?,
                pci_pm_l1_1: flag(&text, "PCI-PM_L1.1")?,
                aspm_l1_2: flag(&text, "ASPM_L1.2")?,
                aspm_l1_1: flag(&text, "ASPM_L1.1")?,
            })
        }),
        data_link_active: match reports {
            Some(false) => Seen::Known(None),
            Some(true) => fact(status.as_ref(), "LnkSta", |text| flag(text, "DLActive").map(Some)),
            None => Seen::Unseen(Why::NotListed("LnkCap")),
        },
    }
}

/// Bits that lspci does not print are taken as 0.
fn access_control(text: &str) -> AccessControl {
    let bit = |name| flag(text, name).unwrap_or(false);
    AccessControl {
        source_validation: bit("SrcValid"),
        translation_blocking: bit("TransBlk"),
        request_redirect: bit("ReqRedir"),
        completion_redirect: bit("CmpltRedir"),
        upstream_forwarding: bit("UpstreamFwd"),
        egress_control: bit("EgressCtrl"),
        direct_translated: bit("DirectTrans"),
    }
}

fn aer_of(aer: &Capability<'_>) -> Aer {
    // The error names of `wire` are those of lspci.
    let status = |line, errors: fn(u32) -> Errors| {
        fact(register(&aer.lines, line).as_ref(), line, |text| {
            let mut flags = (0..u32::BITS).filter_map(|bit| {
                let name = errors(1 << bit).names().next()?;
                flag(text, name).map(|on| u32::from(on) << bit)
            });
            // A line without any known name is unseen; newer versions of lspci print more names.
            let first = flags.next()?;
            Some(flags.fold(first, |bits, bit| bits | bit))
        })
    };
    Aer {
        uncorrectable_status: status("UESta", Errors::uncorrectable),
        correctable_status: status("CESta", Errors::correctable),
        ..Aer::unseen(&Why::NotPrinted)
    }
}

/// Parses `Initial VFs: 8, Total VFs: 8, Number of VFs: 0, ...`.
fn sriov_of(sriov: &Capability<'_>) -> Sriov {
    let number = |name: &'static str| {
        let text = sriov.lines.iter().find_map(|line| after(line, name));
        text.and_then(|text| text.parse().ok()).map_or(Seen::Unseen(Why::NotListed(name)), Seen::Known)
    };
    let on = sriov.lines.iter().find_map(|line| flag(line.strip_prefix("IOVCtl:")?.trim(), "Enable"));
    let enabled = if on == Some(false) { Seen::Known(0) } else { number("Number of VFs:") };
    Sriov { total: number("Total VFs:"), enabled }
}

/// Parses `BAR 0: current size: 256MB, supported: 256MB 512MB 1GB`.
fn resizable(line: &str) -> Option<ResizableBar> {
    let (bar, rest) = line.strip_prefix("BAR ")?.split_once(": current size: ")?;
    let (current, supported) = rest.split_once(", supported:")?;
    let code = |text: &str| {
        let bytes = size(text).filter(|bytes| bytes.is_power_of_two() && *bytes >= 1 << 20)?;
        Some(bytes.trailing_zeros() as u8 - 20)
    };
    let possible = supported.split_whitespace().try_fold(0, |bits, text| Some(bits | 1 << code(text)?));
    Some(ResizableBar {
        bar: bar.trim().parse().ok().filter(|bar| *bar < 6)?,
        possible: possible?,
        size_code: code(current.trim())?,
    })
}
