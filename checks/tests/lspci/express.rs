//! The lines that `lspci` prints for the PCI Express capability, from our decode.

use crate::decoded::{Decoded, Printer};
use lanemark_wire::config::{Bar, BarKind, Reading};

/// `lspci` shifts 128 by the code, reserved codes too: section 7.5.3.3 ends at 4096 bytes.
fn payload(register: Printer<'_, '_>, field: &str) -> String {
    match register.value(field).reading {
        Reading::Reserved(raw) => format!("{} bytes", 128 << raw),
        other => other.to_string(),
    }
}

/// Watts as `%g` prints them. From 300 W on, `lspci` ... see the tests of the caller.
fn watts(register: Printer<'_, '_>, field: &str) -> String {
    let value = register.value(field);
    match value.reading {
        Reading::Quantity(milliwatts, "mW") => format!("{}W", milliwatts as f64 / 1e3),
        other => panic!("{} is {other}", value.field),
    }
}

/// The title, behind the offset.
pub fn title(d: &Decoded<'_>) -> String {
    let r = d.register("Express");
    let kind = match r.value("Type").reading {
        Reading::Reserved(raw) => format!("Unknown type {raw}"),
        kind => kind.to_string(),
    };
    let slot = if matches!(r.raw("Type"), 4 | 6 | 8) { format!(" ({})", r.flag("Slot")) } else { String::new() };
    let flit = if r.on("FLIT Mode Supported") { ", FLIT Mode Supported" } else { "" };
    format!("Express (v{}) {kind}{slot}, IntMsgNum {}{flit}", r.text("Version"), r.text("IntMsgNum"))
}

/// The lines below it.
pub fn lines(d: &Decoded<'_>) -> Vec<String> {
    let kind = d.register("Express").raw("Type");
    let mut lines = device(d, kind);
    if d.has("LnkCap") {
        lines.extend(link(d, kind));
    }
    if d.has("SltCap") {
        lines.extend(slot(d));
    }
    if d.has("RootCtl") {
        let (cap, ctl, sta) = (d.register("RootCap"), d.register("RootCtl"), d.register("RootSta"));
        lines.push(format!("RootCap: {}", cap.flag("CRSVisible")));
        let names = ["ErrCorrectable", "ErrNon-Fatal", "ErrFatal", "PMEIntEna", "CRSVisible"];
        lines.push(format!("RootCtl: {}", ctl.flags(&names)));
        let flags = sta.flags(&["PMEStatus", "PMEPending"]);
        lines.push(format!("RootSta: PME ReqID {}, {flags}", sta.text("PME ReqID")));
    }
    if d.has("DevCap2") {
        lines.extend(device_2(d, kind));
    }
    if d.has("LnkCap2") {
        lines.extend(link_2(d, kind));
    }
    lines
}

fn device(d: &Decoded<'_>, kind: u64) -> Vec<String> {
    let cap = d.register("DevCap");
    let phantom = (1 << cap.raw("PhantFunc")) - 1;
    let mut first = format!("DevCap: MaxPayload {}, PhantFunc {phantom}", payload(cap, "MaxPayload"));
    if kind <= 1 {
        first += &format!(", Latency L0s {}, L1 {}", cap.text("Latency L0s"), cap.text("L1"));
    }
    first += &format!(" {}", cap.flag("ExtTag"));
    if matches!(kind, 0 | 1 | 5 | 7) {
        first += &format!(" {}", cap.flags(&["AttnBtn", "AttnInd", "PwrInd"]));
    }
    first += &format!(" {}", cap.flag("RBE"));
    if matches!(kind, 0 | 1 | 9) {
        first += &format!(" {}", cap.flag("FLReset"));
    }
    if matches!(kind, 0 | 5 | 7) {
        first += &format!(" SlotPowerLimit {}", watts(cap, "SlotPowerLimit"));
    }
    first += &format!(" {}", cap.flag("TEE-IO"));

    let ctl = d.register("DevCtl");
    let mut second = format!("DevCtl: {}", ctl.flags(&["CorrErr", "NonFatalErr", "FatalErr", "UnsupReq"]));
    second += &format!(" {}", ctl.flags(&["RlxdOrd", "ExtTag", "PhantFunc", "AuxPwr", "NoSnoop"]));
    let bit_15 = if ctl.on("BrConfRtry/FLReset") { '+' } else { '-' };
    if kind == 7 {
        second += &format!(" BrConfRtry{bit_15}");
    }
    if matches!(kind, 0 | 1 | 9) && cap.on("FLReset") {
        second += &format!(" FLReset{bit_15}");
    }
    second += &format!(" MaxPayload {}, MaxReadReq {}", payload(ctl, "MaxPayload"), payload(ctl, "MaxReadReq"));
    let names = ["CorrErr", "NonFatalErr", "FatalErr", "UnsupReq", "AuxPwr", "TransPend"];
    vec![first, second, format!("DevSta: {}", d.register("DevSta").flags(&names))]
}

/// `lspci` says how the link compares with the capability of this end, but not of downstream ports.
fn against(now: u64, most: u64, kind: u64) -> &'static str {
    match now.cmp(&most) {
        std::cmp::Ordering::Greater => " (overdriven)",
        std::cmp::Ordering::Less if !matches!(kind, 4 | 6 | 8) => " (downgraded)",
        _ => "",
    }
}

/// The code is the number of a bit in the vector of `LnkCap2`, from 1 on (section 7.5.3.6), so that 128 GT/s, bit 6, is
/// 7; lspci 3.15.0 has 8.
fn speed(register: Printer<'_, '_>, field: &str, otherwise: &str) -> String {
    match register.raw(field) {
        7 => otherwise.to_owned(),
        8 => "128GT/s".to_owned(),
        _ => register.or(field, otherwise),
    }
}

fn link(d: &Decoded<'_>, kind: u64) -> Vec<String> {
    let cap = d.register("LnkCap");
    let mut first = format!("LnkCap: Port #{}, Speed {}", cap.text("Port #"), speed(cap, "Speed", "unknown"));
    first += &format!(", Width x{}, ASPM {}", cap.text("Width"), cap.text("ASPM"));
    let aspm = cap.raw("ASPM");
    if aspm != 0 {
        let l0s = (aspm & 1 != 0).then(|| format!("L0s {}", cap.text("Exit Latency L0s")));
        let l1 = (aspm & 2 != 0).then(|| format!("L1 {}", cap.text("Exit Latency L1")));
        first += &format!(", Exit Latency {}", l0s.into_iter().chain(l1).collect::<Vec<_>>().join(", "));
    }
    first += &format!(" {}", cap.flags(&["ClockPM", "Surprise", "LLActRep", "BwNot", "ASPMOptComp"]));
    let ctl = d.register("LnkCtl");
    let mut second = format!("LnkCtl: ASPM {};", ctl.text("ASPM"));
    if matches!(kind, 0 | 1 | 4 | 7) {
        second += &format!(" RCB {},", ctl.text("RCB"));
    }
    let names = ["LnkDisable", "CommClk", "ExtSynch", "ClockPM", "AutWidDis", "BWInt", "AutBWInt", "FltModeDis"];
    second += &format!(" {}", ctl.flags(&names));
    let sta = d.register("LnkSta");
    let third = format!(
        "LnkSta: Speed {}{}, Width x{}{} {}",
        speed(sta, "Speed", "unknown"),
        against(sta.raw("Speed"), cap.raw("Speed"), kind),
        sta.text("Width"),
        against(sta.raw("Width"), cap.raw("Width"), kind),
        sta.flags(&["TrErr", "Train", "SlotClk", "DLActive", "BWMgmt", "ABWMgmt"])
    );
    vec![first, second, third]
}

fn slot(d: &Decoded<'_>) -> Vec<String> {
    let (cap, ctl, sta) = (d.register("SltCap"), d.register("SltCtl"), d.register("SltSta"));
    let names = ["AttnBtn", "PwrCtrl", "MRL", "AttnInd", "PwrInd", "HotPlug", "Surprise"];
    let enables = ["AttnBtn", "PwrFlt", "MRL", "PresDet", "CmdCplt", "HPIrq", "LinkChg"];
    let states = ["AttnBtn", "PowerFlt", "MRL", "CmdCplt", "PresDet", "Interlock"].map(|name| format!("Status {name}"));
    vec![
        format!(
            "SltCap: {} Slot #{}, PowerLimit {}; {}",
            cap.flags(&names),
            cap.text("Slot #"),
            watts(cap, "PowerLimit"),
            cap.flags(&["Interlock", "NoCompl"])
        ),
        format!(
            "SltCtl: Enable: {} Control: AttnInd {}, PwrInd {}, {}",
            ctl.flags(&enables),
            ctl.or("AttnInd", "Unknown"),
            ctl.or("PwrInd", "Unknown"),
            ctl.flags(&["Power", "Interlock"])
        ),
        format!(
            "SltSta: Status: {} Changed: {}",
            sta.flags(&states.each_ref().map(String::as_str)),
            sta.flags(&["Changed MRL", "Changed PresDet", "Changed LinkState"])
        ),
    ]
}

fn device_2(d: &Decoded<'_>, kind: u64) -> Vec<String> {
    let cap = d.register("DevCap2");
    let mut first = format!("DevCap2: Completion Timeout: {},", cap.or("Completion Timeout", "Unknown"));
    first += &format!(" {}", cap.flags(&["TimeoutDis", "NROPrPrP", "LTR", "10BitTagComp", "10BitTagReq"]));
    first += &format!(" OBFF {}, {}", cap.text("OBFF"), cap.flags(&["ExtFmt", "EETLPPrefix"]));
    if cap.on("EETLPPrefix") {
        first += &format!(", MaxEETLPPrefixes {}", cap.text("MaxEETLPPrefixes"));
    }
    first += &format!(" EmergencyPowerReduction {},", cap.or("EmergencyPowerReduction", "Reserved"));
    first += &format!(" {}", cap.flags(&["EmergencyPowerReductionInit", "FRS"]));
    if kind == 4 {
        first += &format!(" LN System CLS {},", cap.or("LN System CLS", "Reserved"));
    }
    if matches!(kind, 0 | 4) {
        first += match cap.raw("TPHComp") {
            0 => " TPHComp- ExtTPHComp-",
            1 => " TPHComp+ ExtTPHComp-",
            // Reserved.
            2 => "",
            _ => " TPHComp+ ExtTPHComp+",
        };
    }
    if matches!(kind, 4 | 6) {
        first += &format!(" {}", cap.flag("ARIFwd"));
    }
    let is_memory = |bar: Bar| !matches!(bar.kind, BarKind::Io | BarKind::Memory64WithoutUpperHalf);
    let completes = kind == 4 || d.region.space().bars().any(is_memory);
    if matches!(kind, 4..=6) || completes {
        first += " AtomicOpsCap:";
    }
    if matches!(kind, 4..=6) {
        first += &format!(" {}", cap.flag("Routing"));
    }
    if completes {
        first += &format!(" {}", cap.flags(&["32bit", "64bit", "128bitCAS"]));
    }
    let ctl = d.register("DevCtl2");
    let mut second = format!("DevCtl2: Completion Timeout: {},", ctl.or("Completion Timeout", "Unknown"));
    second += &format!(" {}", ctl.flag("TimeoutDis"));
    if matches!(kind, 4 | 6) {
        second += &format!(" {}", ctl.flag("ARIFwd"));
    }
    if matches!(kind, 0 | 1 | 4 | 5 | 6 | 9) {
        second += " AtomicOpsCtl:";
    }
    if matches!(kind, 0 | 1 | 4 | 9) {
        second += &format!(" {}", ctl.flag("ReqEn"));
    }
    if matches!(kind, 4..=6) {
        second += &format!(" {}", ctl.flag("EgressBlck"));
    }
    let names = ["IDOReq", "IDOCompl", "LTR", "EmergencyPowerReductionReq", "10BitTagReq"];
    second += &format!(" {} OBFF {}, {}", ctl.flags(&names), ctl.text("OBFF"), ctl.flag("EETLPPrefixBlk"));
    vec![first, second]
}

/// `lspci` prints the fastest of the vector and takes the slower ones for granted.
fn speeds(vector: u64) -> String {
    let names = ["", "5", "8", "16", "32", "64", "128"];
    match (0..7).rev().find(|bit| vector >> bit & 1 != 0) {
        None => "Unknown".to_owned(),
        Some(0) => "2.5GT/s".to_owned(),
        Some(bit) => format!("2.5-{}GT/s", names[bit]),
    }
}

fn link_2(d: &Decoded<'_>, kind: u64) -> Vec<String> {
    let cap = d.register("LnkCap2");
    let mut lines = Vec::new();
    if d.region.read(0x2c, 4) != Some(0) {
        let names = ["Crosslink", "Retimer", "2Retimers", "DRS"];
        let vector = speeds(cap.raw("Supported Link Speeds"));
        lines.push(format!("LnkCap2: Supported Link Speeds: {vector}, {}", cap.flags(&names)));
    }
    let ctl = d.register("LnkCtl2");
    // 0 is reserved; `lspci` takes it for 2.5 GT/s.
    let target = match ctl.raw("Target Link Speed") {
        0 => "2.5GT/s".to_owned(),
        _ => speed(ctl, "Target Link Speed", "Unknown"),
    };
    let mut second = format!("LnkCtl2: Target Link Speed: {target}, {}", ctl.flags(&["EnterCompliance", "SpeedDis"]));
    if kind == 6 {
        second += &format!(", Selectable De-emphasis: {}", ctl.text("Selectable De-emphasis"));
    }
    // Codes 2 to 5 lie between the two rows of the table, evenly spaced, as the device likes; lspci calls all the last.
    let margin = match ctl.raw("Transmit Margin") {
        2..=5 => "200-400mV(full-swing)/100-200mV(half-swing)".to_owned(),
        6 | 7 => "Unknown".to_owned(),
        _ => ctl.text("Transmit Margin"),
    };
    second += &format!(" Transmit Margin: {margin},");
    second += &format!(" {}", ctl.flags(&["EnterModifiedCompliance", "ComplianceSOS"]));
    let preset = ctl.or("Compliance Preset/De-emphasis", "Unknown");
    lines.push(format!("{second} Compliance Preset/De-emphasis: {preset}"));
    let sta = d.register("LnkSta2");
    let names = [
        "EqualizationComplete",
        "EqualizationPhase1",
        "EqualizationPhase2",
        "EqualizationPhase3",
        "LinkEqualizationRequest",
        "Retimer",
        "2Retimers",
    ];
    let mut third = format!("LnkSta2: Current De-emphasis Level: {},", sta.text("Current De-emphasis Level"));
    third += &format!(" {} CrosslinkRes: {}, {}", sta.flags(&names), sta.text("CrosslinkRes"), sta.flag("FltMode"));
    if matches!(kind, 4 | 6 | 8) && cap.on("DRS") {
        third += &format!(", {} DownstreamComp: {}", sta.flag("DRS"), sta.or("DownstreamComp", "Reserved"));
    }
    lines.push(third);
    lines
}
