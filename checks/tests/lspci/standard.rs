//! The lines that `lspci` prints for the header and for standard capabilities beside PCI Express, from our decode.

use crate::decoded::Decoded;
use lanemark_wire::config::{BarKind, ConfigSpace, HeaderType, Reading};

/// Title and lines of a standard capability.
pub fn print(id: u8, d: &Decoded<'_>) -> (String, Vec<String>) {
    let name = d.region.layout().name.to_owned();
    match id {
        0x00 | 0x0c => (name, Vec::new()),
        0x01 => power_management(d),
        // The data is read through the capability, which a file cannot do.
        0x03 => (name, vec!["Not readable".to_owned()]),
        0x04 => {
            let (slot, chassis) = (d.register("Expansion Slot"), d.register("Chassis Number"));
            let (slots, first) = (slot.text("slots"), slot.flag("First"));
            (format!("Slot ID: {slots} slots, {first}, chassis {}", chassis.text("chassis")), Vec::new())
        }
        0x05 => msi(d),
        0x06 | 0x0b | 0x0e | 0x0f => (format!("{name} <?>"), Vec::new()),
        0x09 => (format!("{name}: Len={:02x} <?>", d.register("Length").raw("Len")), Vec::new()),
        0x0a => {
            let r = d.register("Debug port");
            (format!("Debug port: BAR={} offset={}", r.text("BAR"), r.text("offset")), Vec::new())
        }
        0x0d => {
            let r = d.register("Subsystem");
            (format!("Subsystem: {}:{}", r.text("Vendor ID"), r.text("Device ID")), Vec::new())
        }
        0x11 => msi_x(d),
        0x12 => {
            let (version, place) = (d.register("SATACR0"), d.register("SATACR1"));
            let mut title = format!("SATA HBA v{}.{}", version.text("major"), version.text("minor"));
            title += &match place.value("BAR").reading {
                Reading::Reserved(raw) => format!(" BAR??{raw}"),
                // AHCI 1.3.1, section 2.4.2: the offset counts DWs; lspci prints it as it is.
                Reading::Number(bar) => format!(" BAR{bar} Offset={:08x}", place.raw("Offset")),
                other => format!(" {other}"),
            };
            (title, Vec::new())
        }
        0x13 => {
            let (cap, ctl, sta) = (d.register("AFCap"), d.register("AFCtrl"), d.register("AFStatus"));
            let cap = format!("AFCap: {}", cap.flags(&["TP", "FLR"]));
            (name, vec![cap, format!("AFCtrl: {}", ctl.flag("FLR")), format!("AFStatus: {}", sta.flag("TP"))])
        }
        _ => {
            let control = d.region.read(2, 2).unwrap_or(0);
            (format!("Capability ID {id:#02x} [{control:04x}]"), Vec::new())
        }
    }
}

fn power_management(d: &Decoded<'_>) -> (String, Vec<String>) {
    let (cap, ctl, bridge) = (d.register("PMC"), d.register("PMCSR"), d.register("PMCSR_BSE"));
    let pme = cap.raw("PME");
    let states = ["D0", "D1", "D2", "D3hot", "D3cold"];
    let flag = |(bit, name): (usize, &&str)| format!("{name}{}", if pme >> bit & 1 != 0 { '+' } else { '-' });
    let states: Vec<String> = states.iter().enumerate().map(flag).collect();
    let flags = cap.flags(&["PMEClk", "DSI", "D1", "D2"]);
    let (current, states) = (cap.text("AuxCurrent"), states.join(","));
    let mut lines = vec![
        format!("Flags: {flags} AuxCurrent={current} PME({states})"),
        format!(
            "Status: {} {} DSel={} DScale={} {}",
            ctl.text("PowerState"),
            ctl.flags(&["NoSoftRst", "PME-Enable"]),
            ctl.text("DSel"),
            ctl.text("DScale"),
            ctl.flag("PME")
        ),
    ];
    if d.region.read(6, 1) != Some(0) {
        let power = if bridge.on("BPCC_En") { '+' } else { '-' };
        // The bit is B2_B3#: set, the secondary bus goes to B2.
        let state = if bridge.on("B3") { '-' } else { '+' };
        lines.push(format!("Bridge: PM{power} B3{state}"));
    }
    (format!("Power Management version {}", cap.text("version")), lines)
}

fn msi(d: &Decoded<'_>) -> (String, Vec<String>) {
    let control = d.register("Message Control");
    let (set, able) = (1 << control.raw("Count"), 1 << control.raw("Capable"));
    let flags = control.flags(&["Maskable", "64bit"]);
    let title = format!("MSI: {} Count={set}/{able} {flags}", control.flag("Enable"));
    let (address, data) = (d.register("Address").text("Address"), d.register("Data").text("Data"));
    let mut lines = vec![format!("Address: {address} Data: {data}")];
    if control.on("Maskable") {
        let (mask, pending) = (d.register("Masking").text("Masking"), d.register("Pending").text("Pending"));
        lines.push(format!("Masking: {mask} Pending: {pending}"));
    }
    (title, lines)
}

fn msi_x(d: &Decoded<'_>) -> (String, Vec<String>) {
    let control = d.register("Message Control");
    let count = control.number("Count");
    let title = format!("MSI-X: {} Count={count} {}", control.flag("Enable"), control.flag("Masked"));
    let place = |name| {
        let r = d.register(name);
        format!("{name}: BAR={} offset={:08x}", r.raw("BAR"), r.number("offset"))
    };
    (title, vec![place("Vector table"), place("PBA")])
}

/// The first line, behind the address.
pub fn title(d: &Decoded<'_>) -> String {
    let class = d.register("Class Code");
    let (vendor, device) = (d.register("Vendor ID").text("Vendor ID"), d.register("Device ID").text("Device ID"));
    let mut title = format!("{}{}: {vendor}:{device}", class.text("Base Class"), class.text("Sub-Class"));
    let revision = d.register("Revision ID");
    if revision.on("Revision ID") {
        title += &format!(" (rev {})", revision.text("Revision ID"));
    }
    title
}

/// What the first line says of the programming interface, up to the name that lspci looks up.
pub fn programming_interface(d: &Decoded<'_>) -> String {
    format!(" (prog-if {}", d.register("Class Code").text("Programming Interface"))
}

/// The lines of the header.
pub fn header(space: ConfigSpace<'_>, d: &Decoded<'_>) -> Vec<String> {
    let kind = space.header_type().expect("lspci prints no lines for an unknown header");
    let mut lines = Vec::new();
    if let Ok((vendor, device)) = space.subsystem()
        && vendor != 0
        && vendor != 0xffff
    {
        lines.push(format!("Subsystem: {vendor:04x}:{device:04x}"));
        if kind == HeaderType::Endpoint {
            let r = d.register("Subsystem");
            assert_eq!((r.raw("Vendor ID"), r.raw("Device ID")), (vendor.into(), device.into()));
        }
    }
    let control = d.register("Control");
    let names = [
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
    lines.push(format!("Control: {}", control.flags(&names)));
    let status = d.register("Status");
    lines.push(format!(
        "Status: {} DEVSEL={} {}",
        status.flags(&["Cap", "66MHz", "UDF", "FastB2B", "ParErr"]),
        status.or("DEVSEL", "??"),
        status.flags(&[">TAbort", "<TAbort", "<MAbort", ">SERR", "<PERR", "INTx"])
    ));
    if control.on("BusMaster") {
        lines.push(latency(kind, d));
    }
    lines.extend(interrupt(d));
    let bist = d.register("BIST");
    if bist.on("Capable") {
        lines.push(if bist.on("Running") {
            "BIST is running".to_owned()
        } else {
            format!("BIST result: {:02x}", bist.raw("Result"))
        });
    }
    lines.extend(regions(space, d));
    if kind == HeaderType::Bridge {
        lines.extend(bridge(space, d));
    } else {
        lines.extend(rom(space, d));
    }
    lines
}

fn latency(kind: HeaderType, d: &Decoded<'_>) -> String {
    let mut line = format!("Latency: {}", d.register("Latency").text("Latency"));
    if kind == HeaderType::Endpoint {
        let (least, most) = (d.register("Min_Gnt").number("Min_Gnt"), d.register("Max_Lat").number("Max_Lat"));
        let parts: Vec<String> = [(least, "min"), (most, "max")]
            .iter()
            .filter(|(ns, _)| *ns != 0)
            .map(|(ns, word)| format!("{ns}ns {word}"))
            .collect();
        if !parts.is_empty() {
            line += &format!(" ({})", parts.join(", "));
        }
    }
    let cache = d.register("Cache Line Size");
    if cache.on("Cache Line Size") {
        line += &format!(", Cache Line Size: {}", cache.text("Cache Line Size"));
    }
    line
}

fn interrupt(d: &Decoded<'_>) -> Option<String> {
    let (pin, line) = (d.register("Interrupt Pin"), d.register("Interrupt Line").raw("Interrupt Line"));
    let disabled = d.register("Control").on("DisINTx");
    let name = match pin.value("Interrupt Pin").reading {
        Reading::Reserved(raw) => format!("pin #{raw}"),
        Reading::Name("none") if line == 0 || disabled => return None,
        Reading::Name("none") => "unknown pin".to_owned(),
        // Section 7.5.1.1.13: 1 is INTA; lspci 3.15.0 calls it B, as 3.13.0 did not.
        _ => format!("pin {}", char::from(b'A' + pin.raw("Interrupt Pin") as u8)),
    };
    Some(match line {
        _ if disabled => format!("Interrupts: {name} disabled"),
        0 => format!("Interrupts: {name}"),
        number => format!("Interrupts: {name} routed to IRQ {number}"),
    })
}

/// One line of a region whose low register is `low`, at `address`.
fn region(index: u8, low: u64, address: &str, d: &Decoded<'_>) -> String {
    let control = d.register("Control");
    if low & 1 != 0 {
        let state = if control.on("I/O") { "" } else { " [disabled]" };
        let address = if control.on("I/O") && address == UNASSIGNED { "0000" } else { address };
        return format!("Region {index}: I/O ports at {address}{state}");
    }
    let kind = ["32-bit", "low-1M", "64-bit", "type 3"][low as usize >> 1 & 3];
    let prefetchable = if low & 8 != 0 { "" } else { "non-" };
    let state = if control.on("Mem") { "" } else { " [disabled]" };
    format!("Region {index}: Memory at {address} ({kind}, {prefetchable}prefetchable){state}")
}

const UNASSIGNED: &str = "<unassigned>";

fn regions(space: ConfigSpace<'_>, d: &Decoded<'_>) -> Vec<String> {
    let raw = |index: u8| {
        let name = format!("BAR{index}");
        d.register(&name).raw(&name)
    };
    // lspci takes a register of all ones for one that is not there.
    let is_there = |low: u64| low != 0 && low != 0xffff_ffff;
    let mut lines = Vec::new();
    for bar in space.bars() {
        let low = raw(bar.index);
        assert_eq!(low, bar.raw & 0xffff_ffff);
        assert_eq!(bar.prefetchable, low & 1 == 0 && low & 8 != 0);
        if is_there(low) {
            let address = match (bar.kind, bar.address()) {
                (_, 0) | (BarKind::Memory64WithoutUpperHalf, _) => UNASSIGNED.to_owned(),
                (BarKind::Io, address) => format!("{address:04x}"),
                (_, address) => format!("{address:08x}"),
            };
            lines.push(region(bar.index, low, &address, d));
        }
        // lspci -F prints the upper half of a 64-bit BAR as a BAR of its own.
        if bar.kind == BarKind::Memory64 && is_there(raw(bar.index + 1)) {
            lines.push(region(bar.index + 1, raw(bar.index + 1), UNASSIGNED, d));
        }
    }
    lines
}

fn rom(space: ConfigSpace<'_>, d: &Decoded<'_>) -> Option<String> {
    let (address, enabled) = space.expansion_rom().expect("whole header")?;
    let r = d.register("Expansion ROM");
    assert_eq!((r.number("Address"), r.on("Enable")), (address.into(), enabled));
    let place = match address {
        0 => "<unassigned>".to_owned(),
        _ => format!("{address:08x}"),
    };
    let memory = d.register("Control").on("Mem");
    Some(match (enabled, memory) {
        (false, _) => format!("Expansion ROM at {place} [disabled]"),
        (true, false) => format!("Expansion ROM at {place} [disabled by cmd]"),
        (true, true) => format!("Expansion ROM at {place}"),
    })
}

/// Size of a window as lspci prints it.
fn size(bytes: u64) -> String {
    let mut bytes = bytes;
    for unit in ["", "K", "M", "G", "T"] {
        if !bytes.is_multiple_of(1024) {
            return format!("[size={bytes}{unit}]");
        }
        bytes /= 1024;
    }
    format!("[size={bytes}P]")
}

fn bridge(space: ConfigSpace<'_>, d: &Decoded<'_>) -> Vec<String> {
    let bus = d.register("Bus");
    let numbers =
        ["primary", "secondary", "subordinate", "sec-latency"].map(|name| format!("{name}={}", bus.text(name)));
    let mut lines = vec![format!("Bus: {}", numbers.join(", "))];
    lines.extend(windows(space, d));
    let status = d.register("Secondary status");
    let last = [">TAbort", "<TAbort", "<MAbort", "<SERR", "<PERR"];
    lines.push(format!(
        "Secondary status: {} DEVSEL={} {}",
        status.flags(&["66MHz", "FastB2B", "ParErr"]),
        status.or("DEVSEL", "??"),
        status.flags(&last)
    ));
    lines.extend(rom(space, d));
    let names = [
        "Parity",
        "SERR",
        "NoISA",
        "VGA",
        "VGA16",
        "MAbort",
        ">Reset",
        "FastB2B",
        "PriDiscTmr",
        "SecDiscTmr",
        "DiscTmrStat",
        "DiscTmrSERREn",
    ];
    lines.push(format!("BridgeCtl: {}", d.register("BridgeCtl").flags(&names)));
    lines
}

fn windows(space: ConfigSpace<'_>, d: &Decoded<'_>) -> Vec<String> {
    let (io, memory) = (d.register("I/O behind bridge"), d.register("Memory behind bridge"));
    let prefetchable = d.register("Prefetchable memory behind bridge");
    let base = |high: u64, low: u64, shift: u32| high << if shift == 12 { 16 } else { 32 } | low << shift;
    let upper = |name: &str, field: &str, wide: bool| if wide { d.register(name).raw(field) } else { 0 };
    let mut lines = Vec::new();
    let ranges = [
        ("I/O behind bridge", io, 12, 4, "16-bit", "32-bit"),
        ("Memory behind bridge", memory, 20, 8, "32-bit", "32-bit"),
        ("Prefetchable memory behind bridge", prefetchable, 20, 8, "32-bit", "64-bit"),
    ];
    for (name, register, shift, digits, narrow, broad) in ranges {
        let is_memory = name == "Memory behind bridge";
        let types = (register.raw("Base type"), register.raw("Limit type"));
        if types.0 != types.1 || types.0 > u64::from(!is_memory) {
            let what = match name {
                "I/O behind bridge" => "I/O",
                "Memory behind bridge" => "memory",
                _ => "prefetchable memory",
            };
            // lspci prints the whole registers as types.
            let whole = |field, kind| register.raw(field) << 4 | kind;
            let (base, limit) = (whole("Base", types.0), whole("Limit", types.1));
            lines.push(format!("!!! Unknown {what} range types {base:x}/{limit:x}"));
            continue;
        }
        let wide = types.0 == 1;
        let (low, high) = match name {
            "I/O behind bridge" => (upper("I/O Upper", "Base", wide), upper("I/O Upper", "Limit", wide)),
            "Memory behind bridge" => (0, 0),
            _ => (upper("Prefetchable Base Upper", "Base", wide), upper("Prefetchable Limit Upper", "Limit", wide)),
        };
        let first = base(low, register.raw("Base"), shift);
        let last = base(high, register.raw("Limit"), shift) | ((1 << shift) - 1);
        let bits = if wide { broad } else { narrow };
        let digits = if wide && digits == 8 {
            16
        } else if wide {
            8
        } else {
            digits
        };
        let digits = if is_memory { 8 } else { digits };
        let state = if first <= last { size(last - first + 1) } else { "[disabled]".to_owned() };
        lines.push(format!("{name}: {first:0digits$x}-{last:0digits$x} {state} [{bits}]"));
        // The typed answer must be the same.
        if let Ok(windows) = space.windows() {
            let window = match name {
                "I/O behind bridge" => windows.io,
                "Memory behind bridge" => windows.memory,
                _ => windows.prefetchable,
            };
            assert_eq!(window, (first <= last).then_some(first..=last), "{name}");
        }
    }
    lines
}
