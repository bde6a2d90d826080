//! Export of a slot as a platform file: facts that were read are given, facts that need measurement are unknown.

use super::DiagnosisRequest;
use super::case::Case;
use super::link::is_gpu;
use super::memory_type::memory_bars;
use super::tags::tags;
use lanemark_inventory::{Address, Function, Inventory, Source, Why};
use lanemark_platform::Draft;
use lanemark_record::diagnosis::LinkRate;
use lanemark_units::format_size;
use lanemark_wire::config::{BarKind, ConfigSpace, PortType, TagBits};
use lanemark_wire::{Generation, Lanes, SCALES, bytes_per_s};
use std::fmt::Write;

/// Measurements from which a fit will determine the numbers that no register shows; the other numbers are assumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figures {
    /// Latencies and bandwidths of a DMA engine, from any tool.
    Dma,
    /// A record of loads and stores of a core.
    Mmio,
}

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
    /// No card, or several, and no address.
    #[error("{what}")]
    WhichCard {
        /// Number of cards and their addresses.
        what: String,
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

/// Writes a platform file for the function at `address`, or for the only card: link, sizes, BARs and limits as they were
/// read; numbers that `figures` can determine unknown, all others assumed. [`Draft`] can read it.
///
/// # Errors
/// [`NoPlatform`] if the function, its link or its memory BARs do not exist or were not seen, or if there is no address
/// and not exactly one card.
pub fn as_platform(inventory: &Inventory, address: Option<Address>, figures: Figures) -> Result<String, NoPlatform> {
    let address = address.map_or_else(|| only_card(inventory), Ok)?;
    let Some(function) = inventory.function(address) else {
        let all = inventory.functions.iter().map(|function| function.address.to_string());
        return Err(NoPlatform::NoFunction {
            address: address.to_string(),
            source_name: inventory.source.to_string(),
            known: first_of(&all.collect::<Vec<_>>()),
        });
    };
    let mut file = File {
        text: String::new(),
        from: read_from(if function.config.known().is_some() { "config space" } else { files_of(inventory) }, function),
        measure: format!("measure it: lanemark bench --on {address} --record card.json, then lanemark fit card.json"),
        figures,
    };
    file.head(function);
    file.core(inventory);
    // The link decides about the credits of the root port above it.
    let before = std::mem::take(&mut file.text);
    let rate = file.link(inventory, function)?;
    let link = std::mem::replace(&mut file.text, before);
    file.root_complex(rate);
    file.memory(function);
    file.text += &link;
    file.endpoint(function);
    file.dma(function, rate);
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

/// Address of the only card: an endpoint with a memory BAR. Function 0 stands for a device whose functions are all cards.
fn only_card(inventory: &Inventory) -> Result<Address, NoPlatform> {
    let is_endpoint = |function: &&Function| {
        let kind = function.pcie().and_then(|express| express.kind.get());
        matches!(kind, Some(PortType::Endpoint | PortType::LegacyEndpoint)) && memory_bars(function).next().is_some()
    };
    let cards: Vec<&Function> = inventory.functions.iter().filter(is_endpoint).collect();
    let device = |card: &Function| (card.address.domain, card.address.function.bus(), card.address.function.device());
    match &cards[..] {
        [] => {
            let what = format!("no PCI Express endpoint with a memory BAR in {}; name an address", inventory.source);
            Err(NoPlatform::WhichCard { what })
        }
        [card, rest @ ..] if rest.iter().all(|other| device(other) == device(card)) => Ok(card.address),
        _ => {
            let all = cards.iter().map(|card| format!("{} ({})", card.address, name(card)));
            let what = format!(
                "{} cards in {}; name one: {}",
                cards.len(),
                inventory.source,
                first_of(&all.collect::<Vec<_>>())
            );
            Err(NoPlatform::WhichCard { what })
        }
    }
}

/// At most eight names, and the number of the others.
fn first_of(all: &[String]) -> String {
    match all.len() {
        0..=8 => all.join(", "),
        more => format!("{} and {} more", all[..8].join(", "), more - 8),
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
    figures: Figures,
}

/// Reason of an assumption that loads and stores of a core would replace.
const BY_LOADS: &str = "no DMA figure depends on it";

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

    /// Writes a number that loads and stores of a core determine: unknown, or assumed to be `typical`.
    fn by_loads(&mut self, key: &str, more: &str, typical: f64, why: &str) {
        match self.figures {
            Figures::Mmio => {
                let how = format!("{}{more}", self.measure);
                self.unknown(key, &how);
            }
            Figures::Dma => self.assumed(key, typical, why),
        }
    }

    /// Writes an unknown number that DMA figures determine.
    fn by_dma(&mut self, key: &str, figures: &str) {
        self.unknown(key, &format!("{figures}: lanemark fit TABLE --on FILE"));
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
        let clock = "the clock during measurements: /proc/cpuinfo, with the governor performance";
        match self.figures {
            Figures::Mmio => self.unknown("clock_ghz", clock),
            Figures::Dma => self.assumed("clock_ghz", 3.0, BY_LOADS),
        }
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
        for (key, typical) in [
            ("cached_load_ns", 1.7),
            ("sfence_ns", 2.0),
            ("lfence_ns", 2.0),
            ("mfence_ns", 12.0),
            ("timestamp_ns", 10.0),
        ] {
            match self.figures {
                Figures::Mmio => {
                    self.unknown(key, "a property of the core: its optimization manual, or lanemark bench --on host");
                }
                Figures::Dma => self.assumed(key, typical, BY_LOADS),
            }
        }
    }

    fn root_complex(&mut self, link: Option<(Generation, Lanes)>) {
        self.line("\n[root_complex]");
        self.by_loads("core_round_trip_ns", "; UC stores show it", 120.0, BY_LOADS);
        self.assumed("posted_queue_entries", 64, "not published, and in no register");
        self.credits(link);
    }

    fn memory(&mut self, function: &Function) {
        if self.figures == Figures::Mmio {
            return;
        }
        self.line("\n[memory]");
        self.by_dma("read_ns", "latencies of DMA reads of several sizes");
        // Others have it as a mechanism of the search: a GPU's latencies of 64 B to 4 KiB show it first.
        if is_gpu(function) {
            self.by_dma("read_spread_ns", "latencies of DMA reads from 64 B to 4 KiB, which wait for the slowest line");
        }
        self.assumed(
            "write_ns",
            150,
            "bandwidths hardly depend on it; latencies of a write until a core observes it do",
        );
    }

    fn link(&mut self, inventory: &Inventory, function: &Function) -> Result<Option<(Generation, Lanes)>, NoPlatform> {
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
        let rate = self.generation(inventory, function, rate);
        self.given("width_lanes", rate.width_lanes);
        self.given("mps_bytes", mps.bytes());
        if let Some(mrrs) = express.mrrs.get() {
            self.given("mrrs_bytes", mrrs.bytes());
        }
        let bytes = function.config.known().map(Vec::as_slice).unwrap_or_default();
        if let Ok(rcb) = ConfigSpace::new(bytes).pcie().and_then(|pcie| pcie.read_completion_boundary()) {
            self.given("rcb_bytes", rcb);
        }
        self.by_loads(
            "latency_ns",
            "; only its sum with endpoint.ingress_ns and egress_ns can be measured",
            120.0,
            "PHY and data link layer of a hard block; DMA reads show only the sum with memory.read_ns and endpoint, \
             mmio_read_latency shows it without memory",
        );
        let rate = Generation::from_number(rate.generation).zip(Lanes::new(rate.width_lanes));
        self.credits(rate);
        Ok(rate)
    }

    /// States the generation of the link: the trained one, or for a GPU below it, the one that both ends support.
    ///
    /// Other devices do not change the speed of their link on their own, so theirs is as figures find it.
    fn generation(&mut self, inventory: &Inventory, function: &Function, trained: LinkRate) -> LinkRate {
        let ask = DiagnosisRequest::default();
        let case = Case::new(inventory, &ask);
        let place = inventory.functions.binary_search_by_key(&function.address, |one| one.address).unwrap_or_default();
        let edge = case.edge_above(place);
        let of_both = edge.and_then(|edge| edge.both_can(&case).or_else(|| edge.lower_can(&case)));
        let most = of_both.map_or(0, |rate| rate.generation).min(6);
        if !is_gpu(function) || most <= trained.generation {
            self.given("generation", trained.generation);
            return trained;
        }
        let why = format!(
            "an idle GPU lowers the speed of its link: it is Gen{} now, and the link supports Gen{most}; if lspci -vv under load \
             still shows the lower one, write that",
            trained.generation
        );
        self.assumed("generation", most, &why);
        LinkRate { generation: most, ..trained }
    }

    /// Credits that a receiver at this link advertises.
    fn credits(&mut self, link: Option<(Generation, Lanes)>) {
        let [plain, scaled, _] = SCALES;
        let (scale, why) = match link {
            Some((generation, _)) if generation >= Generation::Gen4 => {
                (scaled, "the maximum with Scaled Flow Control by 4, which such links have; no register shows it")
            }
            _ => (plain, "the maximum without Scaled Flow Control; no register shows it"),
        };
        self.assumed("posted_header_credits", scale.most_header, why);
        self.assumed("posted_data_credits", scale.most_data, why);
        self.assumed("nonposted_header_credits", scale.most_header, why);
    }

    fn endpoint(&mut self, function: &Function) {
        self.line("\n[endpoint]");
        self.line(&format!("name = {}", quoted(&name(function))));
        let why = "about 15 cycles at 250 MHz; DMA reads show only the sum with memory.read_ns and link.latency_ns";
        self.by_loads("ingress_ns", "", 60.0, why);
        self.by_loads("egress_ns", "", EGRESS_NS, why);
        if let Some(mps) = function.pcie().and_then(|express| express.mps_supported.get()) {
            self.given("mps_supported_bytes", mps.bytes());
        }
    }

    fn dma(&mut self, function: &Function, link: Option<(Generation, Lanes)>) {
        if self.figures == Figures::Mmio {
            return;
        }
        self.line("\n[dma]");
        let limit = function.pcie().zip(link).and_then(|(express, (generation, _))| tags(express, generation.number()));
        let reads = "bandwidths of reads";
        match limit {
            None => self.by_dma("tags", &format!("{reads} (whether extended tags are enabled was not seen)")),
            Some(bits) => {
                let (most, from) = (bits.tags(), &self.from);
                let how = format!("{reads}; {} tags ({from}): lanemark fit TABLE --on FILE", in_words(bits));
                self.line(&format!("tags = {{ unknown = {}, at_most = {most} }}", quoted(&how)));
            }
        }
        let bytes = link.map_or(32, beat_bytes);
        let why = "the narrowest data path that carries the link at 250 MHz; the manual of the DMA engine states it";
        self.assumed("beat_bytes", bytes, why);
        self.by_dma("beat_ns", "bandwidths of large transfers");
        self.by_dma("send_buffers", "bandwidths of transfers smaller than 256 B");
        let why = "an interface of its own for each direction, as in most engines; dma_read_write_mix shows it";
        self.assumed("full_duplex", true, why);
        if is_gpu(function) && function.vendor.get() == Some(NVIDIA) {
            let why =
                "cache line of such a GPU: a request of a GPU kernel to host memory does not cross a line boundary";
            self.assumed("read_boundary_bytes", GPU_LINE_BYTES, why);
            self.assumed("write_boundary_bytes", GPU_LINE_BYTES, why);
        }
        self.by_dma("read_request_ns", "bandwidths of reads smaller than 1 KiB");
        self.by_dma("write_request_ns", "bandwidths of writes smaller than 1 KiB");
        self.by_dma("descriptor_ns", "bandwidths of transfers smaller than 4 KiB");
        // A kernel times its reads from a multiprocessor, and tags are at the other end of the network inside of the GPU.
        if is_gpu(function) {
            self.line("\n[dma_read]");
            self.by_dma(
                "queue_ns",
                "latencies and bandwidths of reads of 64 B: reads of a kernel cross the GPU before they take a tag",
            );
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
            self.by_loads("beat_ns", "", 4.0, BY_LOADS);
            self.by_loads("read_ns", "", 40.0, BY_LOADS);
        }
        Ok(())
    }
}

/// Tag bits, as Device Control says.
const fn in_words(bits: TagBits) -> &'static str {
    match bits {
        TagBits::Five => "extended tags are disabled, so at most 32",
        TagBits::Eight => "8-bit tags are enabled, so at most 256",
        TagBits::Ten => "10-bit tags are enabled, so at most 768",
        TagBits::Fourteen => "14-bit tags are enabled, so at most 15360",
    }
}

/// Bytes of the narrowest data path that carries a link with one beat every 4 ns, in 4 to 128.
fn beat_bytes((generation, lanes): (Generation, Lanes)) -> u32 {
    let in_a_beat = bytes_per_s(generation, lanes) / 250_000_000;
    [4, 8, 16, 32, 64].into_iter().find(|bytes| u64::from(*bytes) >= in_a_beat).unwrap_or(128)
}

/// Vendor ID of NVIDIA, in the PCI ID database.
const NVIDIA: u16 = 0x10de;

/// Bytes of a cache line of a GPU of NVIDIA. A warp that reads 128 aligned bytes makes one request of 128 B, and never a
/// larger one.
///
/// Source: Min and others, "EMOGI: Efficient Memory-access for Out-of-memory Graph-traversal in GPUs", VLDB 2021.
const GPU_LINE_BYTES: u32 = 128;

/// Latency from the engine to the link that a draft assumes, in nanoseconds.
const EGRESS_NS: f64 = 60.0;

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
    use lanemark_wire::config::LinkSpeed::{Gt8, Gt16};

    fn card(machine: &Inventory) -> Result<String, NoPlatform> {
        as_platform(machine, Some(machine.functions[CARD].address), Figures::Mmio)
    }

    fn unknown_keys(text: &str) -> Vec<String> {
        let draft = Draft::parse("card.toml", text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        draft.unknowns().iter().map(|unknown| unknown.key.clone()).collect()
    }

    #[test]
    fn dma_figures_leave_only_numbers_unknown_that_they_determine() {
        let text = as_platform(&sample::healthy(), None, Figures::Dma).unwrap();
        let of_engine = ["tags", "beat_ns", "read_request_ns", "write_request_ns", "descriptor_ns", "send_buffers"];
        let mut wanted = vec!["memory.read_ns".to_owned()];
        wanted.extend(of_engine.map(|key| format!("dma.{key}")));
        assert_eq!(unknown_keys(&text), wanted);
        let json = Draft::parse("card.toml", &text).unwrap().to_json();
        assert_eq!(json["dma"]["beat_bytes"]["value"], 128, "31.5 GB/s in 4 ns are 126 B");
        assert_eq!(json["dma"]["full_duplex"]["value"], true);
        for section in ["memory", "dma"] {
            for key in wanted.iter().filter_map(|key| key.strip_prefix(section)?.strip_prefix('.')) {
                let reason = json[section][key]["unknown"].as_str().unwrap();
                assert!(reason.contains("lanemark fit TABLE --on FILE"), "{key}: {reason}");
            }
        }
    }

    #[test]
    fn tags_are_at_most_those_that_device_control_enables() {
        let most = |generation, extended, ten: Option<bool>| {
            let mut machine = sample::healthy();
            for place in [PORT, CARD] {
                sample::link(&mut machine, place).speed = known(generation);
            }
            let express = sample::express(&mut machine, CARD);
            express.extended_tags.enabled = extended;
            express.ten_bit_tags.enabled = ten.map_or_else(sample::unseen, known);
            let text = as_platform(&machine, None, Figures::Dma).unwrap();
            let json = Draft::parse("card.toml", &text).unwrap().to_json();
            json["dma"]["tags"]["at_most"].as_u64()
        };
        assert_eq!(most(Gt16, known(false), Some(false)), Some(32));
        assert_eq!(most(Gt16, known(true), Some(false)), Some(256));
        assert_eq!(most(Gt16, known(true), Some(true)), Some(768));
        assert_eq!(most(Gt8, known(true), Some(true)), Some(256), "10-bit tags need Gen4");
        assert_eq!(most(Gt16, sample::unseen(), Some(false)), None);
        assert_eq!(most(Gt16, known(true), None), None);
    }

    #[test]
    fn a_gpu_below_its_speed_is_assumed_to_reach_it_under_load_and_another_device_is_not() {
        let draft = |class: u32, now, below| {
            let mut machine = sample::healthy();
            machine.functions[CARD].class = known(lanemark_inventory::Class(class));
            for place in [PORT, CARD] {
                sample::link(&mut machine, place).speed = known(now);
            }
            sample::link(&mut machine, PORT).fastest = known(below);
            machine.functions[CARD].vendor = known(0x10de);
            let text = as_platform(&machine, None, Figures::Dma).unwrap();
            let json = Draft::parse("card.toml", &text).unwrap().to_json();
            let entry = &json["link"]["generation"];
            let why = entry["assumed"].as_str().map(str::to_owned);
            let has_queue = json["dma_read"]["queue_ns"]["unknown"].is_string();
            assert_eq!(json["memory"]["read_spread_ns"]["unknown"].is_string(), has_queue);
            for key in ["read_boundary_bytes", "write_boundary_bytes"] {
                assert_eq!(json["dma"][key]["value"].as_u64(), Some(if has_queue { 128 } else { 4096 }), "{key}");
            }
            (entry["value"].as_u64().unwrap(), why, has_queue)
        };
        let (gpu, network) = (0x03_02_00, 0x02_00_00);
        let (value, why, has_queue) = draft(gpu, Gt8, Gt16);
        let why = why.unwrap();
        assert!(value == 4 && why.contains("it is Gen3 now") && why.contains("under load"), "{value} {why}");
        assert!(has_queue, "reads of a kernel cross the GPU");
        assert_eq!(draft(gpu, Gt8, Gt8), (3, None, true), "the port is no faster");
        assert_eq!(draft(gpu, Gt16, Gt16), (4, None, true));
        assert_eq!(draft(network, Gt8, Gt16), (3, None, false));
    }

    #[test]
    fn the_only_card_needs_no_address_and_one_of_several_does() {
        let as_only = |machine: &Inventory| as_platform(machine, None, Figures::Mmio);
        let mut machine = sample::healthy();
        assert_eq!(as_only(&machine), card(&machine));
        let mut second = machine.functions[CARD].clone();
        second.address = "0000:01:00.1".parse().unwrap();
        machine.functions.push(second.clone());
        assert_eq!(as_only(&machine), card(&machine), "two functions of one device");
        machine.functions[2].address = "0000:02:00.0".parse().unwrap();
        let error = as_only(&machine).unwrap_err().to_string();
        assert!(error.starts_with("2 cards in this machine; name one: 0000:01:00.0 (PCI function"), "{error}");
        machine.functions.truncate(1);
        let error = as_only(&machine).unwrap_err().to_string();
        assert!(error.starts_with("no PCI Express endpoint with a memory BAR in this machine"), "{error}");
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
        let error =
            as_platform(&sample::healthy(), Some("05:00.0".parse().unwrap()), Figures::Dma).unwrap_err().to_string();
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
