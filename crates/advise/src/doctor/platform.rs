//! Export of a slot as a platform file: facts that were read are given, facts that need measurement are unknown.

use super::DiagnosisRequest;
use super::case::Case;
use super::memory_type::memory_bars;
use super::tags::tags;
use lanemark_inventory::{Address, Function, Inventory, Source, Why};
use lanemark_platform::Draft;
use lanemark_units::format_size;
use lanemark_wire::config::{BarKind, ConfigSpace};
use std::fmt::Write;

/// Reason why a slot cannot be exported as a platform file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoPlatform {
    /// No function has this address.
    #[error("no function {address} in {source_name}; it has {known}")]
    NoFunction {
        /// Requested address.
        address: String,
        /// Source of the inventory.
        source_name: String,
        /// Available functions.
        known: String,
    },
    /// A required fact was not seen.
    #[error("{address}: {what} was not seen ({because}), but a platform file needs it: {enable}")]
    Unseen {
        /// Function.
        address: String,
        /// Missing fact.
        what: &'static str,
        /// Reason.
        because: String,
        /// Remedy.
        enable: String,
    },
    /// A platform file cannot describe the function.
    #[error("{address}: {what}")]
    CannotSay {
        /// Function.
        address: String,
        /// Fact and reason.
        what: String,
    },
}

/// Writes a platform file for the function at `address`: link, sizes and BARs as they were read, latencies unknown.
/// [`Draft`] can read it.
///
/// # Errors
/// [`NoPlatform`] if the function, its link or its memory BARs do not exist or were not seen.
pub fn as_platform(inventory: &Inventory, address: Address) -> Result<String, NoPlatform> {
    let Some(function) = inventory.function(address) else {
        let all: Vec<String> = inventory.functions.iter().map(|function| function.address.to_string()).collect();
        let known = match all.len() {
            0..=8 => all.join(", "),
            more => format!("{} and {} more", all[..8].join(", "), more - 8),
        };
        return Err(NoPlatform::NoFunction {
            address: address.to_string(),
            source_name: inventory.source.to_string(),
            known,
        });
    };
    let mut file = File {
        text: String::new(),
        from: read_from(if function.config.known().is_some() { "config space" } else { files_of(inventory) }, function),
        measure: format!("measure it: lanemark bench --on {address} --record card.json, then lanemark fit card.json"),
    };
    file.head(function);
    file.core(inventory);
    file.root_complex();
    file.link(inventory, function)?;
    file.endpoint(function);
    // BAR sizes are not in configuration space.
    file.from = read_from(files_of(inventory), function);
    file.bars(function)?;
    // Check that the file can be read back; a failure is a defect of this exporter.
    match Draft::parse("platform", &file.text) {
        Ok(_) => Ok(file.text),
        Err(error) => Err(NoPlatform::CannotSay {
            address: address.to_string(),
            what: format!("its values do not form a valid platform:\n{error}"),
        }),
    }
}

/// Name of the files read beside configuration space.
fn files_of(inventory: &Inventory) -> &'static str {
    match inventory.source {
        Source::Lspci { .. } => "what lspci lists",
        Source::ThisMachine | Source::Folder(_) | Source::Archive(_) => "/sys",
    }
}

/// Source of a number, for the platform file.
fn read_from(place: &str, function: &Function) -> String {
    format!("read from {place} of {} by lanemark doctor", function.address)
}

/// TOML string literal.
fn quoted(text: &str) -> String {
    let visible: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    toml::Value::String(visible).to_string()
}

/// Error for a required fact that was not seen.
fn unseen(function: &Function, what: &'static str, why: Option<&Why>) -> NoPlatform {
    NoPlatform::Unseen {
        address: function.address.to_string(),
        what,
        because: why.map_or_else(|| "it is missing in the source".to_owned(), Why::because),
        enable: why.map_or_else(|| "read the machine directly".to_owned(), Why::enable),
    }
}

struct File {
    text: String,
    /// Source of the facts.
    from: String,
    /// Command that finds a number by measurement.
    measure: String,
}

impl File {
    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn given(&mut self, key: &str, value: impl std::fmt::Display) {
        let source = quoted(&self.from);
        self.line(&format!("{key} = {{ value = {value}, source = {source} }}"));
    }

    fn assumed(&mut self, key: &str, value: impl std::fmt::Display, why: &str) {
        self.line(&format!("{key} = {{ value = {value}, assumed = {} }}", quoted(why)));
    }

    fn unknown(&mut self, key: &str, how: &str) {
        self.line(&format!("{key} = {{ unknown = {} }}", quoted(how)));
    }

    /// Writes an unknown number that needs measurement, with an additional note.
    fn measured(&mut self, key: &str, more: &str) {
        let how = format!("{}{more}", self.measure);
        self.unknown(key, &how);
    }

    fn head(&mut self, function: &Function) {
        let address = function.address;
        let what = name(function);
        self.line(&format!("# {address}, written by lanemark doctor --as-platform. Values marked unknown need a"));
        self.line("# measurement; docs/guide/doctor.md describes how a fit fills them in.");
        self.line("schema = 2");
        let plain: String = address.to_string().replace([':', '.'], "-");
        self.line(&format!("name = {}", quoted(&format!("card-{plain}"))));
        self.line(&format!("summary = {}", quoted(&format!("{what} at {address}"))));
    }

    fn core(&mut self, inventory: &Inventory) {
        let processors = &inventory.processors;
        self.line("\n[core]");
        let model = processors.model.known().map_or("processor not seen", String::as_str);
        self.line(&format!("name = {}", quoted(model)));
        match processors.vendor.known().map(String::as_str) {
            Some("GenuineIntel") => self.line("vendor = { value = \"intel\", source = \"/proc/cpuinfo\" }"),
            Some("AuthenticAMD") => self.line("vendor = { value = \"amd\", source = \"/proc/cpuinfo\" }"),
            _ => self.assumed("vendor", "\"intel\"", "the processor was not seen; set yours"),
        }
        self.unknown("clock_ghz", "the clock during measurements: /proc/cpuinfo, with the governor performance");
        match processors.flags.known() {
            Some(flags) => {
                let has = |name: &str| flags.iter().any(|flag| flag == name);
                let bytes = if has("avx512f") {
                    64
                } else if has("avx") {
                    32
                } else {
                    16
                };
                self.line(&format!("vector_bytes = {{ value = {bytes}, source = \"flags of /proc/cpuinfo\" }}"));
                let direct = has("movdiri") && has("movdir64b");
                self.line(&format!("direct_stores = {{ value = {direct}, source = \"flags of /proc/cpuinfo\" }}"));
            }
            None => self.assumed("vector_bytes", 32, "the processor was not seen; AVX2 is common"),
        }
        self.assumed("memcpy", "\"glibc-2.24-avx-unaligned-erms\"", "the newest variant described here");
        self.assumed("store_buffer_entries", 56, "a common size; see the processor's optimization manual");
        let buffers = "a common number; measure it: lanemark bench --on host --question wc_buffers";
        self.assumed("wc_buffers", 12, buffers);
        self.line("wc_partial_flush = { value = \"8B\", source = \"Intel SDM volume 3, Write Combining\" }");
        self.assumed("streaming_load_buffers", 12, "MOVNTDQA uses the fill buffers");
        self.assumed("fill_buffers", 12, "as many as write-combining buffers");
        for key in ["cached_load_ns", "sfence_ns", "lfence_ns", "mfence_ns", "timestamp_ns"] {
            self.unknown(key, "a property of the core: its optimization manual, or lanemark bench --on host");
        }
    }

    fn root_complex(&mut self) {
        self.line("\n[root_complex]");
        self.measured("core_round_trip_ns", "; UC stores show it");
        self.assumed("posted_queue_entries", 64, "not published, and in no register");
    }

    fn link(&mut self, inventory: &Inventory, function: &Function) -> Result<(), NoPlatform> {
        let address = function.address.to_string();
        let Some(express) = function.pcie() else {
            return Err(match function.express.why() {
                Some(why) => unseen(function, "its PCI Express capability", Some(why)),
                None => NoPlatform::CannotSay {
                    address,
                    what: "it has no PCI Express capability: a conventional or virtual device has no link".to_owned(),
                },
            });
        };
        let ask = DiagnosisRequest::default();
        let case = Case::new(inventory, &ask);
        let place = inventory.functions.binary_search_by_key(&function.address, |one| one.address).unwrap_or_default();
        let own = function.link().and_then(|link| super::link_state::rate(&link.speed, &link.width).get());
        let rate = case.edge_above(place).and_then(|edge| edge.trained(&case)).or(own);
        let Some(rate) = rate else {
            let why = function.link().and_then(|link| link.speed.why());
            return Err(match why {
                Some(why) => unseen(function, "the state of its link", Some(why)),
                None => NoPlatform::CannotSay { address, what: "it has no link".to_owned() },
            });
        };
        if rate.generation > 6 || rate.width_lanes == 0 {
            let what = format!("its link is {rate}, but a platform file describes Gen1 to Gen6 and links that are up");
            return Err(NoPlatform::CannotSay { address, what });
        }
        let Some(mps) = express.mps.get() else {
            return Err(unseen(function, "its Max_Payload_Size", express.mps.why()));
        };
        self.line("\n[link]");
        self.given("generation", rate.generation);
        self.given("width_lanes", rate.width_lanes);
        self.given("mps_bytes", mps.bytes());
        if let Some(mrrs) = express.mrrs.get() {
            self.given("mrrs_bytes", mrrs.bytes());
        }
        let bytes = function.config.known().map(Vec::as_slice).unwrap_or_default();
        if let Ok(rcb) = ConfigSpace::new(bytes).pcie().and_then(|pcie| pcie.read_completion_boundary()) {
            self.given("rcb_bytes", rcb);
        }
        if let Some(tags) = tags(express, rate.generation) {
            let count = tags.tags();
            self.line(&format!("# {count} tags; there is no key for tags outside the [dma] section."));
        }
        self.measured("latency_ns", "; only its sum with endpoint.ingress_ns and egress_ns can be measured");
        let credits = "the maximum without scaled flow control; no register shows it";
        self.assumed("posted_header_credits", 127, credits);
        self.assumed("posted_data_credits", 2047, credits);
        self.assumed("nonposted_header_credits", 127, credits);
        Ok(())
    }

    fn endpoint(&mut self, function: &Function) {
        self.line("\n[endpoint]");
        self.line(&format!("name = {}", quoted(&name(function))));
        self.measured("ingress_ns", "");
        self.measured("egress_ns", "");
        if let Some(mps) = function.pcie().and_then(|express| express.mps_supported.get()) {
            self.given("mps_supported_bytes", mps.bytes());
        }
    }

    fn bars(&mut self, function: &Function) -> Result<(), NoPlatform> {
        let address = function.address.to_string();
        let Some(regions) = function.regions.known() else {
            return Err(unseen(function, "its BARs", function.regions.why()));
        };
        let memory = regions.iter().filter(|region| region.bar().is_some() && region.space != BarKind::Io);
        for region in memory {
            if let Some(why) = region.bytes.why().or(region.base.why()) {
                return Err(unseen(function, "the size or place of a BAR", Some(why)));
            }
        }
        let bars: Vec<_> = memory_bars(function).filter(|(.., bytes)| *bytes >= 16).collect();
        if bars.is_empty() {
            let what = "it has no memory BAR with an address, so there is nothing to load from or store to".to_owned();
            return Err(NoPlatform::CannotSay { address, what });
        }
        for (bar, region, base, bytes) in &bars {
            self.line("\n[[bar]]");
            self.given("index", bar);
            self.given("address_bytes", format!("{base:#x}"));
            self.given("size_bytes", quoted(&format_size(*bytes)));
            self.given("prefetchable", region.prefetchable);
        }
        for (bar, region, _, bytes) in &bars {
            let (kind, beat) = if region.prefetchable { ("sram", 64) } else { ("registers", 8) };
            let _ = write!(self.text, "\n[[region]]\nname = \"bar{bar}\"\n");
            self.assumed("bar", bar, "one region per BAR");
            self.assumed("offset_bytes", 0, "from the start of the BAR");
            self.assumed("size_bytes", quoted(&format_size(*bytes)), "the whole BAR: see the card's manual");
            self.assumed("kind", quoted(kind), "from the prefetchable bit; sram, ddr, registers or fifo");
            self.assumed("beat_bytes", beat, "the width of the card's data path: see its manual");
            self.measured("beat_ns", "");
            self.measured("read_ns", "");
        }
        Ok(())
    }
}

/// Description of the function.
fn name(function: &Function) -> String {
    if let Some(name) = function.name.known() {
        return name.clone();
    }
    match (function.vendor.get(), function.device.get()) {
        (Some(vendor), Some(device)) => format!("PCI function {vendor:04x}:{device:04x}"),
        _ => "PCI function".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::sample::{self, CARD, PORT, known};
    use lanemark_platform::Platform;
    use lanemark_units::HostPhys;

    fn card(machine: &Inventory) -> Result<String, NoPlatform> {
        as_platform(machine, machine.functions[CARD].address)
    }

    #[test]
    fn an_exported_slot_contains_what_was_read_and_marks_the_rest_unknown() {
        let mut machine = sample::healthy();
        machine.functions[CARD].config = known(sample::config(|_| ()));
        let text = card(&machine).unwrap();
        let draft = Draft::parse("card.toml", &text).unwrap();
        let json = draft.to_json();
        let value = |path: &str| json.pointer(path).unwrap().clone();
        assert_eq!(value("/link/generation/value"), 4);
        assert_eq!(value("/link/width_lanes/value"), 16);
        assert_eq!(value("/link/mrrs_bytes/value"), 4096);
        assert_eq!(value("/link/mps_bytes/source"), "read from config space of 0000:01:00.0 by lanemark doctor");
        assert_eq!(value("/bar/0/address_bytes/value"), sample::BAR_BASE);
        assert!(text.contains("# 256 tags"), "{text}");
        let latency = |key: &&str| draft.unknowns().iter().any(|unknown| unknown.key == **key);
        let all = [
            "root_complex.core_round_trip_ns",
            "link.latency_ns",
            "endpoint.ingress_ns",
            "endpoint.egress_ns",
            "region.bar2.read_ns",
            "region.bar2.beat_ns",
        ];
        assert_eq!(all.iter().filter(|key| latency(key)).count(), all.len());
        assert!(draft.unknowns().iter().all(|unknown| !unknown.is_whole), "a fit must be able to fill in everything");
        assert!(Platform::parse("card.toml", &text).is_err());
    }

    #[test]
    fn the_source_of_a_number_is_the_file_it_was_read_from() {
        let source = |machine: &Inventory| {
            let json = Draft::parse("card.toml", &card(machine).unwrap()).unwrap().to_json();
            let of = |path: &str| json.pointer(path).unwrap().as_str().unwrap().to_owned();
            (of("/link/mps_bytes/source"), of("/bar/0/size_bytes/source"))
        };
        let from = |place: &str| format!("read from {place} of 0000:01:00.0 by lanemark doctor");
        let mut machine = sample::healthy();
        assert_eq!(source(&machine), (from("/sys"), from("/sys")));
        machine.functions[CARD].config = known(sample::config(|_| ()));
        assert_eq!(source(&machine), (from("config space"), from("/sys")));
        machine.source = Source::Lspci { path: "slot.txt".into(), hex: true, text: true };
        assert_eq!(source(&machine), (from("config space"), from("what lspci lists")));
        machine.functions[CARD].config = sample::unseen();
        assert_eq!(source(&machine), (from("what lspci lists"), from("what lspci lists")));
    }

    #[test]
    fn a_required_fact_that_was_not_seen_is_named() {
        let mut machine = sample::healthy();
        machine.functions[CARD].express = sample::unseen();
        let error = card(&machine).unwrap_err().to_string();
        assert!(error.starts_with("0000:01:00.0: its PCI Express capability was not seen ("), "{error}");
        let mut machine = sample::healthy();
        sample::bar(&mut machine, CARD).bytes = sample::unseen();
        assert!(card(&machine).unwrap_err().to_string().contains("the size or place of a BAR was not seen"));
        let mut machine = sample::healthy();
        machine.functions[CARD].regions = known(vec![]);
        assert!(matches!(card(&machine), Err(NoPlatform::CannotSay { .. })));
        for place in [PORT, CARD] {
            sample::link(&mut machine, place).speed = sample::unseen();
        }
        assert!(card(&machine).unwrap_err().to_string().contains("the state of its link was not seen"));
    }

    #[test]
    fn a_virtual_function_refers_to_its_physical_function() {
        let mut machine = sample::healthy();
        let bytes = sample::config(|bytes| bytes[..4].fill(0xff));
        machine.functions[CARD].express =
            lanemark_inventory::config::function(machine.functions[CARD].address, bytes).0.express;
        // The link is known from the port above, but the payload size is a property of the physical function.
        for what in ["its Max_Payload_Size", "the state of its link"] {
            let error = card(&machine).unwrap_err().to_string();
            assert!(error.starts_with(&format!("0000:01:00.0: {what} was not seen (it is a virtual")), "{error}");
            assert!(error.ends_with("look at the physical function, usually .0 of the same device"), "{error}");
            machine.functions[PORT].express = sample::unseen();
        }
    }

    #[test]
    fn a_missing_address_lists_the_available_functions() {
        let error = as_platform(&sample::healthy(), "05:00.0".parse().unwrap()).unwrap_err().to_string();
        assert_eq!(error, "no function 0000:05:00.0 in this machine; it has 0000:00:01.0, 0000:01:00.0");
    }

    #[test]
    fn foreign_names_cannot_break_the_file() {
        let mut machine = sample::healthy();
        machine.functions[CARD].name = known("a \"card\"\n[core]\\ \u{7}".to_owned());
        let (base, bytes) = (known(Some(HostPhys(1 << 40))), known(1 << 20));
        let region = sample::bar(&mut machine, CARD);
        (region.base, region.bytes) = (base, bytes);
        assert!(card(&machine).is_ok(), "{:?}", card(&machine));
    }
}
