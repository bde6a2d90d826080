//! Checks that relate several keys to each other.

use crate::fault::check_faults;
use crate::fifos::check_fifos;
use crate::iommu::check_iommu;
use crate::kernel::check_kernel;
use crate::mailbox::Mailbox;
use crate::msi_x::check_msi_x;
use crate::notes::Notes;
use crate::platform::{Platform, ROOT, Sections};
use crate::registers::check_registers;
use crate::retimer::check_retimers;
use crate::runtime::check_runtime;
use crate::spec::{Bar, Dma, Link, Memory, Region, Slot, Switch};
use lanemark_units::{Ticks, format_size};
use lanemark_wire::TagBits;

/// Bytes of a DW.
const DW: u64 = 4;

/// The sections that the checks below relate, each `None` if it could not be read.
pub(crate) struct Parts<'a> {
    link: Option<&'a Link>,
    bars: Option<&'a [Bar]>,
    regions: Option<&'a [Region]>,
    tree: Option<Tree<'a>>,
}

/// The topology, and the sections that describe DMA within it.
struct Tree<'a> {
    memory: Option<&'a Memory>,
    dma: Option<&'a Dma>,
    switches: &'a [Switch],
    slots: &'a [Slot],
}

impl<'a> Parts<'a> {
    /// The sections of a file, as far as they could be read.
    pub(crate) fn of(sections: &'a Sections) -> Parts<'a> {
        let tree = match (&sections.memory, &sections.dma, &sections.switches, &sections.slots) {
            (Ok(memory), Ok(dma), Ok(switches), Ok(slots)) => {
                Some(Tree { memory: memory.as_ref(), dma: dma.as_ref(), switches, slots })
            }
            _ => None,
        };
        let Sections { link, bars, regions, .. } = sections;
        Parts { link: link.as_ref().ok(), bars: bars.as_deref().ok(), regions: regions.as_deref().ok(), tree }
    }
}

/// Notes every inconsistency between the sections of a platform.
pub(crate) fn check_platform(platform: &Platform, notes: &mut Notes<'_>) {
    let Platform { link, bars, regions, memory, dma, switches, slots, .. } = platform;
    let tree = Tree { memory: memory.as_ref(), dma: dma.as_ref(), switches, slots };
    check_parts(&Parts { link: Some(link), bars: Some(bars), regions: Some(regions), tree: Some(tree) }, notes);
    check_whole(platform, notes);
}

/// Notes inconsistencies that can be found although some sections could not be read. A check whose sections are
/// missing is skipped.
pub(crate) fn check_parts(parts: &Parts<'_>, notes: &mut Notes<'_>) {
    let Parts { link, bars, regions, tree } = parts;
    let (link, bars, regions) = (*link, *bars, *regions);
    if let Some(link) = link {
        check_credits(link, notes);
    }
    if let Some(bars) = bars {
        check_bars(bars, notes);
        check_regions(bars, regions.unwrap_or_default(), notes);
    }
    if let Some(tree) = tree {
        check_switches(tree.switches, link, notes);
        check_slots(tree, bars.unwrap_or_default(), notes);
        check_tags(tree, link, notes);
        check_shared_part(tree, notes);
        if let Some(memory) = tree.memory {
            check_memory(memory, link, notes);
        }
    }
}

/// Notes inconsistencies of a platform of which every section could be read.
pub(crate) fn check_whole(platform: &Platform, notes: &mut Notes<'_>) {
    let checks: [fn(&Platform, &mut Notes<'_>); 10] = [
        check_ports,
        check_timeouts,
        check_faults,
        check_fifos,
        check_kernel,
        check_iommu,
        check_msi_x,
        check_registers,
        check_runtime,
        check_retimers,
    ];
    for check in checks {
        check(platform, notes);
    }
}

/// Memory is whole pages within the address space, and its completions are not smaller than the RCB.
fn check_memory(memory: &Memory, link: Option<&Link>, notes: &mut Notes<'_>) {
    let (address, size) = (memory.address_bytes.value, memory.size_bytes.value);
    for (key, bytes, line) in
        [("address_bytes", address, memory.address_bytes.line), ("size_bytes", size, memory.size_bytes.line)]
    {
        if !bytes.is_multiple_of(PAGE) {
            notes.at_line(
                line,
                format!("memory.{key}"),
                format!("is {bytes:#x}; must be a multiple of {PAGE} B, a page"),
            );
        }
    }
    if address.checked_add(size).is_none() {
        let message = format!("is {}; from {address:#x} it extends beyond the last address", format_size(size));
        notes.at_line(memory.size_bytes.line, "memory.size_bytes".to_owned(), message);
    }
    let (cache, cached, read) = (&memory.cache_bytes, &memory.cached_read_ns, &memory.read_ns);
    let set = Memory::CACHE_WAYS * Memory::LINE_BYTES;
    if !cache.value.is_multiple_of(set) {
        let message = format!("is {}; must be a multiple of {set} B, a set", cache.value);
        notes.at_line(cache.line, "memory.cache_bytes".to_owned(), message);
    }
    if cached.value > read.value {
        let message = format!("is {}; it must not exceed memory.read_ns, {}", cached.value.as_ns(), read.value.as_ns());
        notes.at_line(cached.line, "memory.cached_read_ns".to_owned(), message);
    }
    let finer = link.filter(|link| memory.completion_bytes.value < link.rcb_bytes.value);
    if let Some(link) = finer {
        let message = format!(
            "is {}; completions are split at multiples of link.rcb_bytes, {}, so each carries at least that much",
            memory.completion_bytes.value, link.rcb_bytes.value
        );
        notes.at_line(memory.completion_bytes.line, "memory.completion_bytes".to_owned(), message);
    }
}

/// Only a full-duplex engine has a part that both directions share.
fn check_shared_part(tree: &Tree<'_>, notes: &mut Notes<'_>) {
    let Some(dma) = tree.dma.filter(|dma| !dma.full_duplex.value) else { return };
    let shared = &dma.shared_request_ns;
    if shared.value > Ticks::ZERO {
        let message = format!("is {}; it applies to engines with dma.full_duplex = true only", shared.value.as_ns());
        notes.at_line(shared.line, "dma.shared_request_ns".to_owned(), message);
    }
}

/// The engine has no more tags than the link allows: 14 bits in FLIT mode, otherwise 10.
fn check_tags(tree: &Tree<'_>, link: Option<&Link>, notes: &mut Notes<'_>) {
    let (Some(dma), Some(link)) = (tree.dma, link) else { return };
    let most = if link.generation.value >= 6 { TagBits::Fourteen } else { TagBits::Ten }.usable();
    if dma.tags.value > u32::from(most) {
        let message = format!(
            "is {}; a requester can use {most} on a link of generation {}",
            dma.tags.value, link.generation.value
        );
        return notes.at_line(dma.tags.line, "dma.tags".to_owned(), message);
    }
    // Each channel fetches descriptors with tags of its own, numbered after those for data.
    let bits = if link.generation.value >= 6 { 14 } else { 10 };
    let fetched = u64::from(dma.channels.value) * u64::from(dma.prefetch_descriptors.value);
    let room = (1_u64 << bits) - u64::from(dma.tags.value);
    // With ATS, each channel has one more tag for translation requests.
    let asking = if dma.ats_entries.value > 0 { u64::from(dma.channels.value) } else { 0 };
    let needed = fetched + asking;
    if (dma.channels.value > 1 || asking > 0) && needed > room {
        let message = format!(
            "is {}; with {} prefetched descriptors each{} they need {needed} tags in addition to dma.tags; available: {room}",
            dma.channels.value,
            dma.prefetch_descriptors.value,
            if asking > 0 { " and a translation request" } else { "" },
        );
        notes.at_line(dma.channels.line, "dma.channels".to_owned(), message);
    }
}

/// Page size of the memory that is mapped for devices.
const PAGE: u64 = 4096;

/// Each switch is connected to the root, and has credits for one packet of the maximum payload.
fn check_switches(switches: &[Switch], link: Option<&Link>, notes: &mut Notes<'_>) {
    for switch in switches {
        let (name, at) = (&switch.name, switch.latency_ns.line);
        if name == ROOT {
            notes.at_line(at, format!("switch.{name}.name"), format!("is {ROOT:?}, which is the root complex"));
        }
        match path_to_root(switches, &switch.below) {
            Ok(()) => {}
            Err(because) => notes.at_line(at, format!("switch.{name}.below"), because),
        }
        let needed = link.map_or(0, |link| link.mps_bytes.value.div_ceil(16));
        for (key, credits) in [
            ("posted_data_credits", &switch.posted_data_credits),
            ("completion_data_credits", &switch.completion_data_credits),
        ] {
            if credits.value < needed {
                let message = format!("is {}; one payload of link.mps_bytes takes {needed}", credits.value);
                notes.at_line(credits.line, format!("switch.{name}.{key}"), message);
            }
        }
    }
}

/// Checks that the device called `below` is connected to the root. Returns the problem otherwise.
fn path_to_root(switches: &[Switch], below: &str) -> Result<(), String> {
    let mut at = below;
    for _ in 0..=switches.len() {
        if at == ROOT {
            return Ok(());
        }
        let Some(above) = switches.iter().find(|switch| switch.name == at) else {
            let names: Vec<&str> = switches.iter().map(|switch| switch.name.as_str()).chain([ROOT]).collect();
            return Err(format!("is {at:?}; known names: {}", names.join(", ")));
        };
        at = &above.below;
    }
    Err(format!("is {below:?}, which forms a cycle that never reaches {ROOT}"))
}

fn check_slots(tree: &Tree<'_>, bars: &[Bar], notes: &mut Notes<'_>) {
    if let (Some(dma), None) = (tree.dma, tree.memory) {
        let message = "needs a section [memory], the target of its reads and writes".to_owned();
        notes.at_line(dma.tags.line, Dma::PATH.to_owned(), message);
    }
    let windows = |slot: &Slot| -> Vec<(u64, u64)> {
        let shift = slot.bar_shift_bytes.value;
        let window = |bar: &Bar| {
            let start = bar.address_bytes.value.saturating_add(shift);
            (start, end_of(start, bar.size_bytes.value))
        };
        bars.iter().map(window).collect()
    };
    for (place, slot) in tree.slots.iter().enumerate() {
        let line = slot.bar_shift_bytes.line;
        if let Err(because) = path_to_root(tree.switches, &slot.below) {
            notes.at_line(line, format!("slot.{}.below", slot.name), because);
        }
        let beyond = bars.iter().find(|bar| {
            let start = bar.address_bytes.value.checked_add(slot.bar_shift_bytes.value);
            start.and_then(|start| start.checked_add(bar.size_bytes.value)).is_none()
        });
        if let Some(bar) = beyond {
            let (index, shift) = (bar.index.value, slot.bar_shift_bytes.value);
            let message = format!("is {shift:#x}; BAR{index} would extend beyond the last address");
            notes.at_line(line, format!("slot.{}.bar_shift_bytes", slot.name), message);
            continue;
        }
        let mine = windows(slot);
        let messages = Mailbox::MESSAGES;
        // Without a shift, the check of the BAR reports this.
        if slot.bar_shift_bytes.value > 0
            && mine.iter().any(|(start, end)| *start < messages.end && messages.start < *end)
        {
            let shift = format_size(slot.bar_shift_bytes.value);
            let message = format!(
                "is {shift}; a BAR of it would overlap the addresses of interrupt messages; use a larger shift"
            );
            notes.at_line(line, format!("slot.{}.bar_shift_bytes", slot.name), message);
        }
        let meets = |other: &&Slot| {
            let theirs = windows(other);
            mine.iter().any(|(start, end)| theirs.iter().any(|(from, to)| start < to && from < end))
        };
        if let Some(other) = tree.slots[..place].iter().find(meets) {
            let message = format!(
                "is {}; a BAR of it would overlap a BAR of slot {}; use a larger shift",
                format_size(slot.bar_shift_bytes.value),
                other.name
            );
            notes.at_line(line, format!("slot.{}.bar_shift_bytes", slot.name), message);
        }
        let misaligned = bars.iter().find(|bar| {
            bar.size_bytes.value.is_power_of_two() && !slot.bar_shift_bytes.value.is_multiple_of(bar.size_bytes.value)
        });
        if let Some(bar) = misaligned {
            let (index, size) = (bar.index.value, format_size(bar.size_bytes.value));
            let message =
                format!("is {:#x}; it must be a multiple of BAR{index}'s size {size}", slot.bar_shift_bytes.value);
            notes.at_line(line, format!("slot.{}.bar_shift_bytes", slot.name), message);
        }
    }
    if let Some(memory) = tree.memory {
        let (start, end) = (memory.address_bytes.value, end_of(memory.address_bytes.value, memory.size_bytes.value));
        let shifts = tree.slots.iter().map(|slot| slot.bar_shift_bytes.value);
        let shifts: Vec<u64> = if tree.slots.is_empty() { vec![0] } else { shifts.collect() };
        for bar in bars {
            let at = |shift: &u64| bar.address_bytes.value.saturating_add(*shift);
            if shifts.iter().any(|shift| at(shift) < end && start < end_of(at(shift), bar.size_bytes.value)) {
                let message = format!("from {start:#x} to {end:#x} overlaps BAR{}", bar.index.value);
                notes.at_line(memory.address_bytes.line, "memory.address_bytes".to_owned(), message);
            }
        }
    }
}

/// A receiver advertises credits for at least one packet of the maximum payload; otherwise the packet could never be
/// sent.
///
/// Source: `PCIe` Base Specification 5.0, section 2.6.1, table of minimum initial advertisements.
fn check_credits(link: &Link, notes: &mut Notes<'_>) {
    let (credits, mps) = (link.posted_data_credits.value, link.mps_bytes.value);
    let needed = mps.div_ceil(16);
    if credits < needed {
        let message = format!("is {credits}; one payload of {mps} B (mps_bytes) takes {needed}");
        notes.at_line(link.posted_data_credits.line, "link.posted_data_credits".to_owned(), message);
    }
    if link.tlps_per_error.value == 1 {
        let message = "is 1: every TLP would be corrupted; use 0 for an error-free link".to_owned();
        notes.at_line(link.tlps_per_error.line, "link.tlps_per_error".to_owned(), message);
    }
}

/// Each `[[port]]` exists, occurs once and supports its settings. Root ports accept one maximum payload.
fn check_ports(platform: &Platform, notes: &mut Notes<'_>) {
    let (granted, mps) = (&platform.root_complex.posted_data_credits, platform.link.mps_bytes.value);
    let root_is_set = platform.ports.iter().any(|port| port.name.starts_with(ROOT));
    if granted.value < mps.div_ceil(16) && !root_is_set {
        let message =
            format!("is {}; one payload of link.mps_bytes, {mps} B, takes {}", granted.value, mps.div_ceil(16));
        notes.at_line(granted.line, "root_complex.posted_data_credits".to_owned(), message);
    }
    if platform.ports.is_empty() {
        return;
    }
    let names = platform.port_names();
    for port in &platform.ports {
        let (name, line, mps) = (&port.name, port.mps_bytes.line, platform.mps_bytes_of(&port.name));
        let mut note = |key: &str, message: String| notes.at_line(line, format!("port.{name}.{key}"), message);
        match names.iter().filter(|other| *other == name).count() {
            0 => note("name", format!("is not a port of this platform; its ports: {}", names.join(", "))),
            1 => {}
            _ => note("name", "is both a slot and a switch; give them different names".to_owned()),
        }
        if port.acs_redirect.value && !platform.can_redirect(name) {
            let message = "is true; only downstream ports of switches, SWITCH/BELOW, can redirect".to_owned();
            notes.at_line(port.acs_redirect.line, format!("port.{name}.acs_redirect"), message);
            continue;
        }
        if port.mps_bytes.value == 0 {
            continue;
        }
        let mut note = |key: &str, message: String| notes.at_line(line, format!("port.{name}.{key}"), message);
        let supported = platform.mps_supported_bytes_of(name);
        if mps > supported {
            note("mps_bytes", format!("is {mps}; this port supports {supported} (mps_supported_bytes)"));
        }
        let (needed, credits) = (mps.div_ceil(16), platform.posted_data_credits_of(name));
        if credits < needed {
            let message = format!("is {mps}; one such payload takes {needed} posted data credits, it has {credits}");
            note("mps_bytes", message);
        }
    }
}

/// Minimum completion timeout, in nanoseconds.
///
/// Source: PCI Express Base Specification 6.0, section 7.5.3.16, ranges of the completion timeout.
const SHORTEST_TIMEOUT_NS: u64 = 50_000;

/// Completion timeouts are not below the minimum of the specification.
fn check_timeouts(platform: &Platform, notes: &mut Notes<'_>) {
    let (root, endpoint) = (&platform.root_complex.completion_timeout_ns, &platform.endpoint.completion_timeout_ns);
    for (section, timeout) in [("root_complex", root), ("endpoint", endpoint)] {
        if timeout.value < Ticks::whole_ns(SHORTEST_TIMEOUT_NS) {
            let message = format!("is {}; no requester gives up before {SHORTEST_TIMEOUT_NS} ns", timeout.value);
            notes.at_line(timeout.line, format!("{section}.completion_timeout_ns"), message);
        }
    }
}

fn check_bars(bars: &[Bar], notes: &mut Notes<'_>) {
    for (place, bar) in bars.iter().enumerate() {
        let (index, size, address) = (bar.index.value, bar.size_bytes.value, bar.address_bytes.value);
        if !size.is_power_of_two() {
            let right = format_size(size.next_power_of_two());
            let message = format!("is {}; a BAR's size is a power of two, such as {right}", format_size(size));
            notes.at_line(bar.size_bytes.line, format!("bar.{index}.size_bytes"), message);
        } else if !address.is_multiple_of(size) {
            let message = format!("is {address:#x}; it must be a multiple of the BAR's size {}", format_size(size));
            notes.at_line(bar.address_bytes.line, format!("bar.{index}.address_bytes"), message);
        }
        if address.checked_add(size).is_none() {
            let message = format!("is {address:#x}; {} from there extend beyond the last address", format_size(size));
            notes.at_line(bar.address_bytes.line, format!("bar.{index}.address_bytes"), message);
        }
        let messages = Mailbox::MESSAGES;
        if address < messages.end && messages.start < end_of(address, size) {
            let (start, end) = (messages.start, messages.end);
            let message = format!(
                "is {address:#x}; from {start:#x} to {end:#x} it would overlap the addresses of interrupt messages"
            );
            notes.at_line(bar.address_bytes.line, format!("bar.{index}.address_bytes"), message);
        }
        let before = &bars[..place];
        if before.iter().any(|other| other.index.value == index) {
            let message = "occurs twice; give each BAR its own index".to_owned();
            notes.at_line(bar.index.line, format!("bar.{index}.index"), message);
        }
        let overlapped = before.iter().find_map(|other| {
            let span = (other.address_bytes.value, end_of(other.address_bytes.value, other.size_bytes.value));
            (address < span.1 && span.0 < end_of(address, size)).then_some((other, span))
        });
        if let Some((other, (start, end))) = overlapped {
            let message = format!("overlaps BAR{}, which extends from {start:#x} to {end:#x}", other.index.value);
            notes.at_line(bar.address_bytes.line, format!("bar.{index}.address_bytes"), message);
        }
    }
}

fn check_regions(bars: &[Bar], regions: &[Region], notes: &mut Notes<'_>) {
    for (place, region) in regions.iter().enumerate() {
        let key = |key: &str| format!("region.{}.{key}", region.name);
        let Some(bar) = bars.iter().find(|bar| bar.index.value == region.bar.value) else {
            let message = format!("is {}; there is no such BAR in this file", region.bar.value);
            notes.at_line(region.bar.line, key("bar"), message);
            continue;
        };
        let (start, size) = (region.offset_bytes.value, region.size_bytes.value);
        let end = end_of(start, size);
        // Requests carry whole DWs: a region that starts inside a DW would share it with its neighbour.
        if !start.is_multiple_of(DW) || !size.is_multiple_of(DW) {
            let message = format!("extends from {start:#x} to {end:#x}; both must be multiples of {DW} B, a DW");
            notes.at_line(region.offset_bytes.line, key("offset_bytes"), message);
        }
        if end > bar.size_bytes.value {
            let message = format!(
                "is {}; from offset {start:#x} it extends beyond BAR{}, which is {}",
                format_size(size),
                bar.index.value,
                format_size(bar.size_bytes.value)
            );
            notes.at_line(region.size_bytes.line, key("size_bytes"), message);
        }
        let overlapped =
            regions[..place].iter().filter(|other| other.bar.value == region.bar.value).find_map(|other| {
                let span = (other.offset_bytes.value, end_of(other.offset_bytes.value, other.size_bytes.value));
                (start < span.1 && span.0 < end).then_some((other, span))
            });
        if let Some((other, (from, to))) = overlapped {
            let message = format!("overlaps region {}, which extends from {from:#x} to {to:#x}", other.name);
            notes.at_line(region.offset_bytes.line, key("offset_bytes"), message);
        }
    }
}

/// End of `size` bytes from `start`, saturating at the last address.
fn end_of(start: u64, size: u64) -> u64 {
    start.saturating_add(size)
}
