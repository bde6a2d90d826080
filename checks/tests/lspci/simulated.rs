//! Configuration space of simulated platforms, decoded by the real `lspci`.

use crate::decoded::Seen;
use crate::{compare, dumps, golden, live, live_of, printed};
use lanemark_config_space::{SimulatedFunction, functions, lspci_text};
use lanemark_platform::{Origin, PRESETS, Platform, Slot, Switch, preset};
use lanemark_wire::config::PortType;

/// Every preset, the default one with the most tags, and one with a redirecting port.
fn platforms() -> Vec<Platform> {
    let mut all: Vec<Platform> = PRESETS.iter().map(|row| preset(row.name).unwrap().unwrap()).collect();
    all.push(many_tags());
    all.push(many_vectors());
    let rosta = preset("rosta-virtex7").unwrap().unwrap();
    all.push(rosta.with_acs_redirect("rc47a/fpga0", true, Origin::Given("a test".to_owned())).unwrap());
    all
}

/// The default card with the most vectors that fit below the descriptor list.
fn many_vectors() -> Platform {
    let text = PRESETS.iter().find(|row| row.name == "card-gen5-x16").unwrap().text;
    let number = |(key, value): (&str, u32)| format!("{key} = {{ value = {value}, source = \"a test\" }}\n");
    let places = [("vectors", 2000), ("bar", 0), ("table_offset_bytes", 0x10), ("pending_offset_bytes", 0x7e00)];
    Platform::parse("vectors", &format!("{text}\n[msi_x]\n{}", places.map(number).concat())).unwrap()
}

fn many_tags() -> Platform {
    let card = preset("card-gen5-x16").unwrap().unwrap();
    card.with("dma.tags", 768.0, Origin::Given("a test".to_owned())).unwrap()
}

/// Output of `lspci` for a function, one line per register.
struct Printed<'a> {
    function: &'a printed::Function,
    of: &'a SimulatedFunction,
}

impl Printed<'_> {
    fn header(&self, begins: &str) -> &str {
        let found = self.function.header.iter().find(|line| line.starts_with(begins));
        found.unwrap_or_else(|| panic!("{}: no line {begins} in {:?}", self.of.port, self.function.header))
    }

    fn capability(&self, title: &str) -> Option<&printed::Capability> {
        self.function.capabilities.iter().find(|capability| capability.title.starts_with(title))
    }

    /// The line of a register of the PCI Express capability.
    fn express(&self, register: &str) -> &str {
        let express = self.capability("Express").unwrap();
        express.lines.iter().find(|line| line.starts_with(&format!("{register}:"))).unwrap()
    }

    #[track_caller]
    fn says(&self, line: &str, wanted: &str) {
        assert!(line.contains(wanted), "{} at {}: no '{wanted}' in '{line}'", self.of.port, self.of.address);
    }
}

/// Speed and width of the link at a port, from the platform.
fn link_of(platform: &Platform, port: &str) -> (u32, u32) {
    let below = port.split_once('/').map_or(port, |(_, below)| below);
    let switch = platform.switches.iter().find(|switch| switch.name == below);
    let of_switch = |switch: &Switch| (switch.generation.value, switch.width_lanes.value);
    switch.map_or((platform.link.generation.value, platform.link.width_lanes.value), of_switch)
}

/// Checks every field that a platform determines, in the format of `lspci`.
fn check(platform: &Platform, seen: &Printed<'_>) {
    let (generation, lanes) = link_of(platform, &seen.of.port);
    let speed = ["2.5GT/s", "5GT/s", "8GT/s", "16GT/s", "32GT/s"][generation as usize - 1];
    for register in ["LnkCap", "LnkSta"] {
        seen.says(seen.express(register), &format!("Speed {speed}, Width x{lanes}"));
    }
    seen.says(seen.express("LnkCtl2"), &format!("Target Link Speed: {speed}"));
    let slowest = if generation == 1 { "2.5GT/s".to_owned() } else { format!("2.5-{speed}") };
    seen.says(seen.express("LnkCap2"), &format!("Supported Link Speeds: {slowest}"));
    seen.says(seen.express("LnkSta2"), if generation >= 3 { "EqualizationComplete+" } else { "EqualizationComplete-" });
    let port = &seen.of.port;
    seen.says(seen.express("DevCap"), &format!("MaxPayload {} bytes", platform.mps_supported_bytes_of(port)));
    seen.says(seen.express("DevCtl"), &format!("MaxPayload {} bytes", platform.mps_bytes_of(port)));
    let leads_to_card =
        platform.slots.iter().any(|slot: &Slot| port.ends_with(&format!("/{}", slot.name))) || port == "root/card";
    let kind = match seen.of.kind {
        PortType::RootPort => "Root Port",
        PortType::UpstreamPort => "Upstream Port",
        PortType::DownstreamPort => "Downstream Port",
        _ => "Endpoint",
    };
    let looks_down = matches!(seen.of.kind, PortType::RootPort | PortType::DownstreamPort);
    let slot = if leads_to_card { " (Slot+)" } else { " (Slot-)" };
    let title = format!("Express (v2) {kind}{}", if looks_down { slot } else { "" });
    assert!(seen.capability(&title).is_some(), "{port}: no {title}");
    if seen.of.kind == PortType::Endpoint {
        check_card(platform, seen);
    } else {
        seen.says(seen.header("I/O behind bridge"), "[disabled]");
        seen.says(seen.header("Bus:"), &format!("primary={:02x}", seen.of.address.bus()));
    }
    let lists = |title: &str| seen.capability(title).is_some();
    assert!(lists("Power Management version 3") && lists("MSI: Enable-") && lists("Advanced Error Reporting"));
    assert_eq!(lists("Access Control Services"), looks_down, "{port}");
    if let Some(control) = seen.capability("Access Control Services") {
        let line = control.lines.iter().find(|line| line.starts_with("ACSCtl:")).unwrap();
        seen.says(line, if platform.redirects(port) { "ReqRedir+" } else { "ReqRedir-" });
    }
    assert_eq!(lists("Secondary PCI Express"), generation >= 3, "{port}");
    assert_eq!((lists("Data Link Feature"), lists("Physical Layer 16.0 GT/s")), (generation >= 4, generation >= 4));
    assert_eq!(lists("Physical Layer 32.0 GT/s"), generation >= 5, "{port}");
}

fn check_card(platform: &Platform, seen: &Printed<'_>) {
    seen.says(seen.express("DevCtl"), &format!("MaxReadReq {} bytes", platform.link.mrrs_bytes.value));
    seen.says(seen.express("LnkCtl"), &format!("RCB {} bytes", platform.link.rcb_bytes.value));
    let vectors = seen.capability("MSI-X");
    assert_eq!(vectors.is_some(), platform.msi_x.is_some());
    if let (Some(seen), Some(msi_x)) = (vectors, &platform.msi_x) {
        assert_eq!(seen.title, format!("MSI-X: Enable+ Count={} Masked-", msi_x.vectors.value));
        let place = |what, offset| format!("{what}: BAR={} offset={offset:08x}", msi_x.bar.value);
        let meant =
            [place("Vector table", msi_x.table_offset_bytes.value), place("PBA", msi_x.pending_offset_bytes.value)];
        assert_eq!(seen.lines, meant);
    }
    let tags = platform.dma.as_ref().map_or(1, |dma| dma.tags.value);
    let on = |on: bool| if on { '+' } else { '-' };
    seen.says(seen.express("DevCtl"), &format!("ExtTag{}", on(tags > 32)));
    seen.says(seen.express("DevCtl2"), &format!("10BitTagReq{}", on(tags > 256)));
    seen.says(seen.express("DevCap2"), &format!("10BitTagReq{}", on(tags > 256)));
    assert_eq!(seen.of.bars.len(), platform.bars.len());
    for bar in &platform.bars {
        let number = seen.of.port.strip_prefix("fpga").map_or(0, |number| number.parse::<usize>().unwrap());
        let shift = platform.slots.get(number).map_or(0, |slot| slot.bar_shift_bytes.value);
        let (address, size) = (bar.address_bytes.value + shift, bar.size_bytes.value);
        let bits = if address + (size - 1) > 0xffff_ffff { 64 } else { 32 };
        let non = if bar.prefetchable.value { "" } else { "non-" };
        let line = seen.header(&format!("Region {}:", bar.index.value));
        seen.says(line, &format!("Memory at {address:x} ({bits}-bit, {non}prefetchable)"));
    }
}

fn check_all(platform: &Platform, listing: &str) {
    let made = functions(platform).unwrap();
    let seen = printed::functions(listing);
    assert_eq!(seen.len(), made.len(), "{}: lspci prints another number of functions", platform.name);
    for (function, of) in seen.iter().zip(&made) {
        assert!(function.title.starts_with(&of.address.to_string()), "{} for {}", function.title, of.address);
        check(platform, &Printed { function, of });
    }
}

/// The preset of the committed listing.
const COMMITTED: &str = "simulated-card-gen5-x16";

pub fn the_committed_listing_has_every_field_of_the_default_card() {
    if std::env::var_os("LANEMARK_BLESS").is_some() {
        let text = lspci_text(&functions(&many_tags()).unwrap());
        let version = live::version().unwrap_or_else(|why| panic!("nothing to bless with: {why}"));
        let listing = live::listing(&text).unwrap();
        std::fs::write(dumps(&format!("{COMMITTED}.lspci")), format!("# {}\n{listing}", version.trim())).unwrap();
    }
    check_all(&many_tags(), &golden(COMMITTED));
}

pub fn lspci_decodes_every_field_of_every_preset_correctly() {
    for platform in platforms() {
        check_all(&platform, &live_of(&lspci_text(&functions(&platform).unwrap())));
    }
}

pub fn lspci_prints_the_committed_listing() {
    let listing = live_of(&lspci_text(&functions(&many_tags()).unwrap()));
    assert_eq!(listing, golden(COMMITTED), "LANEMARK_BLESS=1 renews it");
}

pub fn lspci_and_our_decoder_agree_on_written_registers() {
    let spaces: Vec<Vec<u8>> =
        platforms().iter().flat_map(|platform| functions(platform).unwrap()).map(|function| function.bytes).collect();
    let listing = live(&spaces);
    let found = compare("simulated", &spaces, &listing, &Seen::default());
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found[..found.len().min(20)].join("\n"));
}
