//! The lines that `lspci` prints for extended capabilities, from our decode.

use crate::decoded::{Decoded, Printer};
use lanemark_wire::config::Reading;

/// Stands for any run without a space or comma, where `lspci` prints something wrong; the place says what.
pub const ANYTHING: char = '\u{2026}';

/// Title and lines of the capability, and lines that `lspci` may print beside them because we do not decode them.
pub fn print(id: u16, d: &Decoded<'_>) -> (String, Vec<String>) {
    let name = d.region.layout().name.to_owned();
    let unknown = (format!("{name} <?>"), Vec::new());
    match id {
        0x01 => (name, errors(d)),
        0x02 | 0x09 => (name, channels(d)),
        0x03 => (serial_number(d), Vec::new()),
        // Of these lspci has the name only; we decode the first two.
        0x04 | 0x25 | 0x06 | 0x08 | 0x0a | 0x11 | 0x16 | 0x1a | 0x1c | 0x20 | 0x21 | 0x22 | 0x28 | 0x29 => unknown,
        0x05 => (name, root_complex_links(d)),
        0x0b => {
            let r = d.register("VSEC");
            let len = r.text("Len");
            (format!("{name}: ID={} Rev={} Len={len} <?>", r.text("ID"), r.text("Rev")), Vec::new())
        }
        0x0d => (name, access_control(d)),
        0x0e => (name, routing_id(d)),
        0x0f => (name, translation(d)),
        0x10 => (name, virtual_functions(d)),
        0x12 => (name, multicast(d)),
        0x13 => (name, page_requests(d)),
        0x15 | 0x24 => (name, resizable(d)),
        0x17 => (name, hints(d)),
        0x18 => (name, tolerance(d)),
        0x19 => (name, secondary(d)),
        0x1b => (name, process_spaces(d)),
        0x1d => (name, containment(d)),
        0x1e => (name, substates(d)),
        0x1f => (name, time(d)),
        0x23 => designated(d),
        0x26 => {
            let r = d.register("Phy16Sta");
            (name, vec![format!("Phy16Sta: {}", r.flags(&EQUALIZATION))])
        }
        0x27 => {
            let (cap, sta) = (d.register("PortCap"), d.register("PortSta"));
            let sta = format!("PortSta: {}", sta.flags(&["MargReady", "MargSoftReady"]));
            (name, vec![format!("PortCap: {}", cap.flag("Uses Driver")), sta])
        }
        0x2a => (name, physical_32(d)),
        0x2e => (name, exchange(d)),
        0x2f => (name, device_3(d)),
        0x30 => (name, encryption(d)),
        0x31 => {
            let more = ["TxPrecodeOn", "TxPrecodeReq", "NoEqualizationNeededRecv"];
            let r = d.register("Phy64Sta");
            (name, vec![format!("Phy64Sta: {} {}", r.flags(&EQUALIZATION), r.flags(&more))])
        }
        0x32 => (name, flits(d)),
        _ => (format!("Extended Capability ID {id:#02x}"), Vec::new()),
    }
}

const EQUALIZATION: [&str; 5] = ["EquComplete", "EquPhase1", "EquPhase2", "EquPhase3", "LinkEquRequest"];

fn errors(d: &Decoded<'_>) -> Vec<String> {
    let uncorrectable = [
        "DLP",
        "SDES",
        "TLP",
        "FCP",
        "CmpltTO",
        "CmpltAbrt",
        "UnxCmplt",
        "RxOF",
        "MalfTLP",
        "ECRC",
        "UnsupReq",
        "ACSViol",
        "UncorrIntErr",
        "BlockedTLP",
        "AtomicOpBlocked",
        "TLPBlockedErr",
        "PoisonTLPBlocked",
        "DMWrReqBlocked",
        "IDECheck",
        "MisIDETLP",
        "PCRC_CHECK",
        "TLPXlatBlocked",
    ];
    let correctable = ["RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout", "AdvNonFatalErr", "CorrIntErr", "HeaderOF"];
    let mut lines = Vec::new();
    for name in ["UESta", "UEMsk", "UESvrt"] {
        lines.push(format!("{name}: {}", d.register(name).flags(&uncorrectable)));
    }
    for name in ["CESta", "CEMsk"] {
        lines.push(format!("{name}: {}", d.register(name).flags(&correctable)));
    }
    let names = [
        "ECRCGenCap",
        "ECRCGenEn",
        "ECRCChkCap",
        "ECRCChkEn",
        "MultHdrRecCap",
        "MultHdrRecEn",
        "TLPPfxPres",
        "HdrLogCap",
    ];
    let cap = d.register("AERCap");
    lines.push(format!("AERCap: First Error Pointer: {}, {}", cap.text("First Error Pointer"), cap.flags(&names)));
    let log = ["HeaderLog 0", "HeaderLog 1", "HeaderLog 2", "HeaderLog 3"].map(|name| d.register(name).text(name));
    lines.push(format!("HeaderLog: {}", log.join(" ")));
    if d.has("RootCmd") {
        lines.push(format!("RootCmd: {}", d.register("RootCmd").flags(&["CERptEn", "NFERptEn", "FERptEn"])));
        let r = d.register("RootSta");
        let names = ["CERcvd", "MultCERcvd", "UERcvd", "MultUERcvd", "FirstFatal", "NonFatalMsg", "FatalMsg"];
        lines.push(format!("RootSta: {} IntMsgNum {}", r.flags(&names), r.text("IntMsgNum")));
        let r = d.register("ErrorSrc");
        let (correctable, fatal) = (r.text("ERR_COR"), r.text("ERR_FATAL/NONFATAL"));
        lines.push(format!("ErrorSrc: ERR_COR: {correctable} ERR_FATAL/NONFATAL: {fatal}"));
    }
    lines
}

/// A set of arbiters: the named ones as flags, then `??5+` for each reserved bit that is set.
fn arbiters(r: Printer<'_, '_>, names: &[&str]) -> String {
    let raw = r.raw("Arb");
    let flag = |(bit, name): (usize, &&str)| format!("{name}{}", if raw >> bit & 1 != 0 { '+' } else { '-' });
    let mut words: Vec<String> = names.iter().enumerate().map(flag).collect();
    words.extend((names.len()..8).filter(|bit| raw >> bit & 1 != 0).map(|bit| format!("??{bit}+")));
    words.join(" ")
}

fn unknown(r: Printer<'_, '_>, field: &str) -> String {
    r.or(field, &format!("??{}", r.raw(field)))
}

fn channels(d: &Decoded<'_>) -> Vec<String> {
    let r = d.register("Caps");
    let (groups, bits) = (r.text("LPEVC"), r.number("PATEntryBits"));
    let mut lines = vec![format!("Caps: LPEVC={groups} RefClk={} PATEntryBits={bits}", unknown(r, "RefClk"))];
    let arb = d.register("Arb");
    lines.push(format!("Arb: {}", arbiters(arb, &["Fixed", "WRR32", "WRR64", "WRR128"])));
    lines.push(format!("Ctrl: ArbSelect={}", unknown(d.register("Ctrl"), "ArbSelect")));
    lines.push(format!("Status: {}", d.register("Status").flag("InProgress")));
    let table = arb.raw("TableOffset");
    if table != 0 {
        // It is the table of VC arbitration, section 7.9.1.3; the word Port is lspci's.
        let at = u64::from(d.region.offset()) + 16 * table;
        lines.push(format!("Port Arbitration Table [{at:x}] <?>"));
    }
    for index in 0..d.instances() {
        let (cap, ctl, sta) =
            (d.instance(index, "VC Caps"), d.instance(index, "VC Ctrl"), d.instance(index, "VC Status"));
        let (offset, slots) = (cap.text("PATOffset"), cap.number("MaxTimeSlots"));
        let mut line =
            format!("VC{index}: Caps: PATOffset={offset} MaxTimeSlots={slots} {}", cap.flag("RejSnoopTrans"));
        let names = ["Fixed", "WRR32", "WRR64", "WRR128", "TWRR128", "WRR256"];
        line += &format!(" Arb: {} Ctrl: {}", arbiters(cap, &names), ctl.flag("Enable"));
        let (id, select) = (ctl.text("ID"), unknown(ctl, "ArbSelect"));
        line += &format!(" ID={id} ArbSelect={select} TC/VC={}", ctl.text("TC/VC"));
        line += &format!(" Status: {}", sta.flags(&["NegoPending", "InProgress"]));
        if cap.on("PATOffset") {
            line += " Port Arbitration Table <?>";
        }
        lines.push(line);
    }
    lines
}

fn serial_number(d: &Decoded<'_>) -> String {
    let bytes = d.register("Serial Number").raw("Serial Number").to_be_bytes();
    format!("Device Serial Number {}", bytes.map(|byte| format!("{byte:02x}")).join("-"))
}

fn root_complex_links(d: &Decoded<'_>) -> Vec<String> {
    let r = d.register("Desc");
    let (port, component) = (r.text("PortNumber"), r.text("ComponentID"));
    // Section 7.9.8.2: Element Type has four bits; lspci takes the four reserved ones above it too.
    let kind = match d.region.read(4, 1) {
        Some(whole @ 0x10..) => format!("??{whole}"),
        _ => unknown(r, "EltType"),
    };
    let mut lines = vec![format!("Desc: PortNumber={port} ComponentID={component} EltType={kind}")];
    assert_eq!(r.raw("Links"), u64::from(d.instances()));
    for index in 0..d.instances() {
        let (r, address) = (d.instance(index, "Link Desc"), d.instance(index, "Addr"));
        let (port, component) = (r.text("TargetPort"), r.text("TargetComponent"));
        let (parent, kind, valid) = (r.flag("AssocRCRB"), r.text("LinkType"), r.flag("LinkValid"));
        let mut line = format!("Link{index}: Desc: TargetPort={port} TargetComponent={component} {parent}");
        line += &format!(" LinkType={kind} {valid}");
        let raw = address.raw("Addr");
        if r.on("LinkType") {
            // Section 7.9.8.3.2.1: N in bits 2:0 says how many bus bits; function 14:12, device 19:15.
            let mut bits = raw & 7;
            if bits == 0 {
                bits = 8;
            }
            let bus = (raw >> 20) & ((1 << bits) - 1);
            let (device, function) = (raw >> 15 & 0x1f, raw >> 12 & 7);
            line += &format!(" Addr: {bus:02x}:{device:02x}.{function} CfgSpace={raw:016x}");
        } else {
            line += &format!(" Addr: {raw:016x}");
        }
        lines.push(line);
    }
    lines
}

fn access_control(d: &Decoded<'_>) -> Vec<String> {
    let names = ["SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans"];
    ["ACSCap", "ACSCtl"].map(|name| format!("{name}: {}", d.register(name).flags(&names))).to_vec()
}

fn routing_id(d: &Decoded<'_>) -> Vec<String> {
    let (cap, ctl) = (d.register("ARICap"), d.register("ARICtl"));
    vec![
        format!("ARICap: {}, Next Function: {}", cap.flags(&["MFVC", "ACS"]), cap.text("Next Function")),
        format!("ARICtl: {}, Function Group: {}", ctl.flags(&["MFVC", "ACS"]), ctl.text("Function Group")),
    ]
}

fn translation(d: &Decoded<'_>) -> Vec<String> {
    let (cap, ctl) = (d.register("ATSCap"), d.register("ATSCtl"));
    let unit = ctl.text("Smallest Translation Unit");
    vec![
        format!("ATSCap: Invalidate Queue Depth: {}", cap.text("Invalidate Queue Depth")),
        format!("ATSCtl: {}, Smallest Translation Unit: {unit}", ctl.flag("Enable")),
    ]
}

fn single(d: &Decoded<'_>, name: &str) -> String {
    format!("{name}: {}", d.register(name).text(name))
}

fn virtual_functions(d: &Decoded<'_>) -> Vec<String> {
    let (cap, ctl, sta) = (d.register("IOVCap"), d.register("IOVCtl"), d.register("IOVSta"));
    let names = ["Enable", "Migration", "Interrupt", "MSE", "ARIHierarchy", "10BitTagReq"];
    let counts = ["Initial VFs", "Total VFs", "Number of VFs", "Function Dependency Link"].map(|name| single(d, name));
    let mut lines = vec![
        format!("IOVCap: {} IntMsgNum {}", cap.flags(&["Migration", "10BitTagReq"]), cap.text("IntMsgNum")),
        format!("IOVCtl: {}", ctl.flags(&names)),
        format!("IOVSta: {}", sta.flag("Migration")),
        counts.join(", "),
        ["VF offset", "stride", "Device ID"].map(|name| single(d, name)).join(", "),
        ["Supported Page Size", "System Page Size"].map(|name| single(d, name)).join(", "),
    ];
    let mut index = 0;
    while index < 6 {
        let bar = |index| d.instance(index, "VF BAR").raw("VF BAR");
        let (at, raw) = (index, bar(index));
        index += 1;
        // lspci takes a register of all ones for one that is not there.
        if raw == 0 || raw == 0xffff_ffff {
            continue;
        }
        let (address, wide) = (raw & !0xf, raw & 6 == 4);
        let prefetchable = if raw & 8 != 0 { "" } else { "non-" };
        let high = match at {
            0..=4 if wide => format!("{:08x}", bar(at + 1)),
            // Behind the last BAR lspci takes VF Migration for its upper half.
            5 if wide => format!("{:08x}", d.region.read(0x3c, 4).unwrap_or(0)),
            _ => String::new(),
        };
        index += u16::from(wide);
        // Types 01 and 11 are reserved (section 9.3.3.14); lspci calls them 64-bit.
        let bits = if raw & 6 != 0 { 64 } else { 32 };
        lines.push(format!("Region {at}: Memory at {high}{address:08x} ({bits}-bit, {prefetchable}prefetchable)"));
    }
    let r = d.register("VF Migration");
    lines.push(format!("VF Migration: offset: {:08x}, BIR: {}", r.number("offset"), r.text("BIR")));
    lines
}

fn multicast(d: &Decoded<'_>) -> Vec<String> {
    let (cap, ctl, bar) = (d.register("McastCap"), d.register("McastCtl"), d.register("McastBAR"));
    let is_port = d.has("McastOverlayBAR");
    let groups = cap.number("MaxGroups");
    let ctl = format!("McastCtl: NumGroups {}, {}", ctl.number("NumGroups"), ctl.flag("Enable"));
    let base = format!("McastBAR: IndexPos {}, BaseAddr {:016x}", bar.text("IndexPos"), bar.number("BaseAddr"));
    let mut lines = Vec::new();
    let kind = d.region.space().pcie().expect("an extended list").region().read(2, 1).unwrap_or(0) >> 4;
    let is_endpoint = matches!(kind, 0 | 9);
    if is_port {
        lines.push(format!("McastCap: MaxGroups {groups}, {}", cap.flag("ECRCRegen")));
        lines.push(ctl);
    } else if is_endpoint {
        // lspci computes the window in 32 bits and ends this line without a line feed.
        let bits = cap.raw("WindowSz");
        let bytes = if bits < 31 { (1u64 << bits).to_string() } else { format!("{ANYTHING}") };
        lines.push(format!("McastCap: MaxGroups {groups}, WindowSz {bits} ({bytes} bytes) {ctl}"));
    } else {
        lines.push(format!("McastCap: MaxGroups {groups} {ctl}"));
    }
    lines.push(base);
    for name in ["McastReceiveVec", "McastBlockAllVec", "McastBlockUntransVec"] {
        lines.push(single(d, name));
    }
    if !is_endpoint {
        // Section 7.9.11.8: in ports only; lspci prints it of anything that it does not take for an endpoint.
        let raw = d.region.read(0x28, 8).unwrap_or(0);
        let (bits, base) = (raw & 0x3f, raw & !0x3f);
        if is_port {
            let r = d.register("McastOverlayBAR");
            assert_eq!((bits, base), (r.raw("OverlaySize"), r.number("BaseAddr")));
        }
        let size = match bits {
            0..=5 => "(disabled)".to_owned(),
            6..=30 => format!("({} bytes)", 1u64 << bits),
            _ => format!("({ANYTHING} bytes)"),
        };
        lines.push(format!("McastOverlayBAR: OverlaySize {bits} {size}, BaseAddr {base:016x}"));
    }
    lines
}

fn page_requests(d: &Decoded<'_>) -> Vec<String> {
    let (ctl, sta) = (d.register("PRICtl"), d.register("PRISta"));
    vec![
        format!("PRICtl: {}", ctl.flags(&["Enable", "Reset"])),
        format!("PRISta: {}", sta.flags(&["RF", "UPRGI", "Stopped", "PASID"])),
        ["Page Request Capacity", "Page Request Allocation"].map(|name| single(d, name)).join(", "),
    ]
}

fn size(code: u64) -> String {
    format!("{}{}", 1 << (code % 10), ["MB", "GB", "TB", "PB", "EB"][code as usize / 10])
}

fn resizable(d: &Decoded<'_>) -> Vec<String> {
    let number = d.register("Number").raw("Number of BARs");
    if !(1..=6).contains(&number) {
        return vec![format!("<error in resizable BAR: num_bars={number} is out of specification>")];
    }
    assert_eq!(u64::from(d.instances()), number);
    let mut lines = Vec::new();
    for index in 0..d.instances() {
        let (cap, ctl) = (d.instance(index, "ReBARCap"), d.instance(index, "ReBARCtl"));
        let current = match ctl.value("current size").reading {
            Reading::Reserved(_) => "<unknown>".to_owned(),
            _ => size(ctl.raw("current size")),
        };
        let vector = cap.raw("supported") | ctl.raw("supported above 128TB") << 28;
        let possible: Vec<String> = (0..44).filter(|code| vector >> code & 1 != 0).map(size).collect();
        let mut line = format!("BAR {}: current size: {current}", ctl.text("BAR"));
        if !possible.is_empty() {
            line += &format!(", supported: {}", possible.join(" "));
        }
        lines.push(line);
    }
    lines
}

fn hints(d: &Decoded<'_>) -> Vec<String> {
    let r = d.register("TPHCap");
    let mut lines = Vec::new();
    for (field, line) in [
        ("Interrupt vector mode", "Interrupt vector mode supported"),
        ("Device specific mode", "Device specific mode supported"),
        ("Extended requester", "Extended requester support"),
    ] {
        if r.on(field) {
            lines.push(line.to_owned());
        }
    }
    lines.push(match r.value("Steering table").reading {
        Reading::Name("none") => "No steering table available".to_owned(),
        Reading::Reserved(_) => "Reserved steering table location".to_owned(),
        place => format!("Steering table {place}"),
    });
    lines
}

fn tolerance(d: &Decoded<'_>) -> Vec<String> {
    ["Max snoop latency", "Max no snoop latency"]
        .map(|name| match d.register(name).value(name).reading {
            Reading::Quantity(ns, "ns") => format!("{name}: {ns}ns"),
            // Scales 6 and 7 are not permitted (section 6.18); lspci shifts an int by 30 and 35.
            Reading::Reserved(_) => format!("{name}: {ANYTHING}"),
            other => panic!("{name} is {other}"),
        })
        .to_vec()
}

fn secondary(d: &Decoded<'_>) -> Vec<String> {
    let flags = d.register("LnkCtl3").flags(&["LnkEquIntrruptEn", "PerformEqu"]);
    let errors = d.register("LaneErrStat").raw("LaneErrStat");
    // Section 7.7.3.3 has 32 lanes; lspci looks at 16.
    let lanes: Vec<String> = (0..16).filter(|lane| errors >> lane & 1 != 0).map(|lane| format!(" {lane}")).collect();
    let lanes = if lanes.is_empty() { "0".to_owned() } else { format!("LaneErr at lane:{}", lanes.concat()) };
    vec![format!("LnkCtl3: {flags}"), format!("LaneErrStat: {lanes}")]
}

fn process_spaces(d: &Decoded<'_>) -> Vec<String> {
    let (cap, ctl) = (d.register("PASIDCap"), d.register("PASIDCtl"));
    let width = cap.text("Max PASID Width");
    vec![
        format!("PASIDCap: {}, Max PASID Width: {width}", cap.flags(&["Exec", "Priv"])),
        format!("PASIDCtl: {}", ctl.flags(&["Enable", "Exec", "Priv"])),
    ]
}

fn containment(d: &Decoded<'_>) -> Vec<String> {
    let (cap, ctl, sta) = (d.register("DpcCap"), d.register("DpcCtl"), d.register("DpcSta"));
    let names = ["RPExt", "PoisonedTLP", "SwTrigger"];
    let log = cap.text("RP PIO Log");
    let controls = ["Cmpl", "INT", "ErrCor", "PoisonedTLP", "SwTrigger", "DL_ActiveErr"];
    let trigger = ctl.or("Trigger", "3");
    let pointer = sta.text("RP PIO ErrPtr");
    // lspci prints two digits of fields of two bits.
    let (reason, more) = (sta.raw("Reason"), sta.raw("TriggerExt"));
    vec![
        format!(
            "DpcCap: IntMsgNum {}, {} RP PIO Log {log}, {}",
            cap.text("IntMsgNum"),
            cap.flags(&names),
            cap.flag("DL_ActiveErr")
        ),
        format!("DpcCtl: Trigger:{trigger} {}", ctl.flags(&controls)),
        format!(
            "DpcSta: {} Reason:{reason:02x} {} TriggerExt:{more:02x} RP PIO ErrPtr:{pointer}",
            sta.flag("Trigger"),
            sta.flags(&["INT", "RPBusy"])
        ),
        single(d, "Source"),
    ]
}

fn microseconds(r: Printer<'_, '_>, field: &str) -> String {
    match r.value(field).reading {
        Reading::Quantity(number, unit) => format!("{number}{unit}"),
        Reading::Reserved(_) => "<error>".to_owned(),
        other => panic!("{field} is {other}"),
    }
}

fn substates(d: &Decoded<'_>) -> Vec<String> {
    let (cap, ctl, two) = (d.register("L1SubCap"), d.register("L1SubCtl1"), d.register("L1SubCtl2"));
    let names = ["PCI-PM_L1.2", "PCI-PM_L1.1", "ASPM_L1.2", "ASPM_L1.1"];
    let mut first = format!("L1SubCap: {} {}", cap.flags(&names), cap.flag("L1_PM_Substates"));
    let mut second = format!("L1SubCtl1: {}", ctl.flags(&names));
    let mut third = "L1SubCtl2:".to_owned();
    if cap.on("PCI-PM_L1.2") || cap.on("ASPM_L1.2") {
        let common = microseconds(cap, "PortCommonModeRestoreTime");
        first += &format!(" PortCommonModeRestoreTime={common}");
        first += &format!(" PortTPowerOnTime={}", microseconds(cap, "PortTPowerOnTime"));
        second += &format!(" T_CommonMode={}", microseconds(ctl, "T_CommonMode"));
        if cap.on("ASPM_L1.2") {
            second += &format!(" LTR1.2_Threshold={}", microseconds(ctl, "LTR1.2_Threshold"));
        }
        third += &format!(" T_PwrOn={}", microseconds(two, "T_PwrOn"));
    }
    vec![first, second, third]
}

fn time(d: &Decoded<'_>) -> Vec<String> {
    let (cap, ctl) = (d.register("PTMCap"), d.register("PTMControl"));
    let ns = |text: String| text.replace(" ns", "ns");
    vec![
        format!("PTMCap: {}", cap.flags(&["Requester", "Responder", "Root"])),
        format!("PTMClockGranularity: {}", ns(cap.text("PTMClockGranularity"))),
        format!("PTMControl: {}", ctl.flags(&["Enabled", "RootSelected"])),
        format!("PTMEffectiveGranularity: {}", ns(ctl.text("PTMEffectiveGranularity"))),
    ]
}

fn designated(d: &Decoded<'_>) -> (String, Vec<String>) {
    let (one, two) = (d.register("DVSEC1"), d.register("DVSEC2"));
    let (vendor, revision, len) = (one.text("Vendor"), one.text("Rev"), one.text("Len"));
    let title = format!("Designated Vendor-Specific: Vendor={vendor} ID={} Rev={revision} Len={len}", two.text("ID"));
    if !d.has("CXL") {
        return (format!("{title} <?>"), Vec::new());
    }
    let mut lines = vec![match d.register("CXL").value("CXL").reading {
        Reading::Reserved(id) => format!("Unknown ID {id:04x}"),
        Reading::Name("PCIe DVSEC for Test Capability") => "PCIe DVSEC for Test Capability <?>".to_owned(),
        name => name.to_string(),
    }];
    if d.has("CXLCap") {
        let (cap, ctl) = (d.register("CXLCap"), d.register("CXLCtl"));
        let names = ["Cache", "IO", "Mem", "MemHWInit"];
        let count = cap.text("HDMCount");
        lines.push(format!("CXLCap: {} HDMCount {count} {}", cap.flags(&names), cap.flag("Viral")));
        let (coverage, granularity) = (ctl.text("CacheSFCov"), ctl.text("CacheSFGran"));
        let first = ctl.flags(&["Cache", "IO", "Mem"]);
        let last = ctl.flags(&["CacheClean", "Viral"]);
        lines.push(format!("CXLCtl: {first} CacheSFCov {coverage} CacheSFGran {granularity} {last}"));
        lines.push(format!("CXLSta: {}", d.register("CXLSta").flag("Viral")));
        // lspci 3.15.0 uses the numbers 1 to 5 as masks of the bits 0 to 4; the first two happen to be right.
        let raw = d.region.read(0x10, 2).unwrap_or(0);
        let sign = |mask| if raw & mask != 0 { '+' } else { '-' };
        let first = d.register("CXLCtl2").flags(&["DisableCaching", "InitCacheWB&Inval"]);
        let mut line = format!("CXLCtl2: {first} InitRst{} RstMemClrEn{}", sign(3), sign(4));
        if d.has("CXLCap3") {
            line += &format!(" DesiredVolatileHDMStateAfterHotReset{}", sign(5));
        }
        lines.push(line);
        let names = ["ResetComplete", "ResetError", "PMComplete"];
        lines.push(format!("CXLSta2: {}", d.register("CXLSta2").flags(&names)));
        if d.has("CXLCap3") {
            // The same mistake as with CXLCtl2.
            let raw = d.region.read(0x38, 2).unwrap_or(0);
            let sign = |mask| if raw & mask != 0 { '+' } else { '-' };
            let flags = d.register("CXLCap3").flags(&["ColdReset", "WarmReset"]);
            let (hot, able) = (sign(3), sign(4));
            lines.push(format!(
                "CXLCap3: DefaultVolatile HDM State After: {flags} HotReset{hot} HotResetConfigurability{able}"
            ));
        }
    }
    (format!("{title}: CXL"), lines)
}

fn physical_32(d: &Decoded<'_>) -> Vec<String> {
    let (cap, ctl, sta) = (d.register("Phy32Cap"), d.register("Phy32Ctl"), d.register("Phy32Sta"));
    let caps = ["EqualizationBypass", "NoEqualizationNeeded", "ModTsMode0", "ModTsMode1", "ModTsMode2"];
    let controls = ctl.flags(&["EqualizationBypassDis", "NoEqualizationNeededDis"]);
    let mode = unknown(ctl, "Modified TS Usage Mode");
    let control = sta.text("Received Enhanced Link Behavior Control");
    let received = sta.flags(&["ModTsRecv", "TxPrecodeOn", "TxPrecodeReq", "NoEqualizationNeededRecv"]);
    let equalization = sta.flags(&EQUALIZATION);
    vec![
        format!("Phy32Cap: {}", cap.flags(&caps)),
        format!("Phy32Ctl: {controls} Modified TS Usage Mode: {mode}"),
        format!("Phy32Sta: {equalization} Received Enhanced Link Behavior Control: {control} {received}"),
    ]
}

fn exchange(d: &Decoded<'_>) -> Vec<String> {
    let (cap, ctl, sta) = (d.register("DOECap"), d.register("DOECtl"), d.register("DOESta"));
    let mut first = format!("DOECap: {}", cap.flag("IntSup"));
    if cap.on("IntSup") {
        first += &format!(" IntMsgNum {}", cap.text("IntMsgNum"));
    }
    vec![
        first,
        format!("DOECtl: {}", ctl.flag("IntEn")),
        format!("DOESta: {}", sta.flags(&["Busy", "IntSta", "Error", "ObjectReady"])),
    ]
}

fn width(r: Printer<'_, '_>, field: &str) -> String {
    r.or(field, &format!("Unknown ({})", r.raw(field)))
}

fn device_3(d: &Decoded<'_>) -> Vec<String> {
    let (cap, ctl, sta) = (d.register("DevCap3"), d.register("DevCtl3"), d.register("DevSta3"));
    let commas = |r: Printer<'_, '_>, names: &[&str]| r.flags(names).replace("+ ", "+, ").replace("- ", "-, ");
    // The names have spaces of their own, none of them behind a sign.
    let first = commas(cap, &["DMWr Request Routing", "14-Bit Tag Completer", "14-Bit Tag Requester"]);
    let mut first = format!("DevCap3: {first} {}", cap.flag("L0p"));
    if cap.on("L0p") {
        let (port, retimer) = (cap.text("Port L0p Exit Latency"), cap.text("Retimer L0p Exit Latency"));
        first += &format!(", Port L0p Exit Latency: {port}, Retimer L0p Exit Latency: {retimer}");
    }
    first += &format!(" {}", commas(cap, &["UIO Mem RdWr Completer", "UIO Mem RdWr Requester"]));
    let second = commas(ctl, &["DMWr Requester", "DMWr Egress Blocking", "14-Bit Tag Requester"]);
    let target = width(ctl, "Target Link Width");
    // Our flag is the bit, which disables; lspci prints its opposite.
    let boundary = if ctl.on("UIO Request 256B Boundary Dis") { '-' } else { '+' };
    let uio = ctl.flag("UIO Mem RdWr Requester");
    let second = format!(
        "DevCtl3: {second} {}, Target Link Width: {target} {uio}, UIO Request 256B Boundary{boundary}",
        ctl.flag("L0p")
    );
    let flags = commas(sta, &["Segment Captured", "Remote L0p"]);
    vec![first, second, format!("DevSta3: Initial Link Width: {}, {flags}", width(sta, "Initial Link Width"))]
}

fn encryption(d: &Decoded<'_>) -> Vec<String> {
    let (cap, ctl) = (d.register("IDECap"), d.register("IDECtl"));
    let link_streams = if cap.on("Lnk") { cap.number("TCs") } else { 0 };
    let selective = if cap.on("Sel") { cap.number("Sel streams") } else { 0 };
    let names = ["FlowThru", "PartHdr", "Aggr", "PCPC", "IDE_KM", "SelCfg"];
    let algorithm = cap.or("Alg", "reserved");
    let mut first = format!("IDECap: Lnk={link_streams} Sel={selective} {} Alg='{algorithm}'", cap.flags(&names));
    first += &format!(" TCs={} {}", cap.number("TCs"), cap.flags(&["TeeLim", "XT"]));
    let mut lines = vec![first, format!("IDECtl: {}", ctl.flag("FTEn"))];
    for index in 0..d.instances() {
        let (ctl, sta) = (d.instance(index, "LinkIDE Ctl"), d.instance(index, "LinkIDE Sta"));
        let at = |r: Printer<'_, '_>, field| r.value(field).register_offset;
        let aggregation = ["NPR", "PR", "CPL"].map(|name| format!("{name}{}", ctl.text(name))).join(" ");
        let header = unknown(ctl, "HdrEnc");
        lines.push(format!(
            "[{:x}]LinkIDE#{index} Ctl: {} {aggregation} {} HdrEnc={header} Alg='{}' TC{} ID{}",
            at(ctl, "En"),
            ctl.flags(&["En", "XT"]),
            // Section 7.9.26.4.1 has PCRC Enable in bit 8; lspci 3.15.0 prints bit 0.
            if ctl.on("En") { "PCRC+" } else { "PCRC-" },
            ctl.or("Alg", "reserved"),
            ctl.text("TC"),
            ctl.text("ID"),
        ));
        let status = match sta.raw("Status") {
            1 => "reserved".to_owned(),
            _ => unknown(sta, "Status"),
        };
        let offset = at(sta, "Status");
        lines.push(format!("[{offset:x}]LinkIDE#{index} Sta: Status={status} {}", sta.flag("RecvChkFail")));
    }
    lines
}

fn flits(d: &Decoded<'_>) -> Vec<String> {
    let (one, two, ctl, sta) = (d.register("Log1"), d.register("Log2"), d.register("CntCtl"), d.register("CntSts"));
    let measure = d.register("MeasCtl");
    let log = |r: Printer<'_, '_>, names: [&str; 2]| names.map(|name| format!("{name}: {}", r.text(name))).join(", ");
    let mut lines = vec![
        format!(
            "Log1: {}, Link Width: {} {} {}",
            one.flag("Valid"),
            width(one, "Link Width"),
            one.flags(&["More entries", "Unrecognized flit", "FEC uncorrectable"]),
            log(one, ["SyndParityGrp0", "SyndCheckGrp0"])
        ),
        format!(
            "Log2: {} {}",
            log(two, ["SyndParityGrp1", "SyndCheckGrp1"]),
            log(two, ["SyndParityGrp2", "SyndCheckGrp2"])
        ),
        format!(
            "CntCtl: {} Events to count: {}, Trigger Event on Error Count: {}",
            ctl.flags(&["Flit Error Counter En", "Flit Error Counter Interrupt En"]),
            ctl.text("Events to count"),
            ctl.text("Trigger Event on Error Count")
        ),
        // Section 7.7.8.5 has the interrupt in bit 3; lspci prints bit 2, which is of the width.
        format!(
            "CntSts: Link Width when Error Counter Started {} Interrupt Generated based on Trigger Event Count{ANYTHING}, FlitErr: {}",
            width(sta, "Link Width when Error Counter Started"),
            sta.text("FlitErr")
        ),
        format!("MeasCtl: {} Granularity: {}", measure.flag("En"), measure.text("Granularity")),
        format!("MeasSts1: Flit Counter: {}", d.register("MeasSts1").text("Flit Counter")),
        format!("MeasSts2: Invalid Flit Counter: {}", d.register("MeasSts2").text("Invalid Flit Counter")),
    ];
    for pair in 0..8 {
        let lane = |lane| format!("Lane{lane}: {}", d.instance(lane, "MeasSts").text("Lane"));
        lines.push(format!("MeasSts{}: {}, {}", pair + 3, lane(2 * pair), lane(2 * pair + 1)));
    }
    lines
}
