//! The types of a device file, and the rules of several keys.

use crate::descriptors::{self, DescriptorEngine, DmaLimits};
use crate::engine::{self, Engine};
use crate::error::DeviceFileError;
use crate::read::{Reader, Values};
use lanemark_units::format_size;

/// A real device as data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceFile {
    /// Name, for people.
    pub name: String,
    /// Description in one line.
    pub summary: String,
    /// Documentation of the registers.
    pub source: String,
    /// Identity.
    pub id: Identifiers,
    /// Memory BARs that the device must have.
    pub bars: Vec<BarOf>,
    /// DMA engine that is started by registers, if it has one.
    pub engine: Option<Engine>,
    /// DMA engine that fetches descriptors, if it has one; a device has at most one of both.
    pub descriptors: Option<DescriptorEngine>,
    /// Interrupt of the engine, if it has one.
    pub interrupt: Option<Interrupt>,
    /// Times of a compiled one.
    pub design: Design,
    /// Ranges that may be accessed without an effect elsewhere.
    pub harmless: Vec<Harmless>,
}

/// Identity of a device; an identifier that is not given may have any value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identifiers {
    /// Vendor ID.
    pub vendor: u16,
    /// Device ID.
    pub device: u16,
    /// Subsystem Vendor ID.
    pub subsystem_vendor: Option<u16>,
    /// Subsystem ID.
    pub subsystem_device: Option<u16>,
    /// Revision ID.
    pub revision: Option<u8>,
}

/// A memory BAR.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BarOf {
    /// Number, 0 to 5.
    pub number: u8,
    /// Smallest length in bytes.
    pub len_bytes: u64,
}

/// Times of a device that is compiled from its source.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Design {
    /// Clocks in `endpoint.ingress_ns` of its platform that belong to the design, not to the hard block before it.
    pub ingress_clocks: u32,
}

/// Kind of an interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InterruptKind {
    /// MSI.
    Msi,
    /// MSI-X.
    MsiX,
}

/// Interrupt of a device. Registers are offsets in the BAR of the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interrupt {
    /// Mechanism of the interrupt: MSI or MSI-X.
    pub kind: InterruptKind,
    /// Vector, counted from 0.
    pub vector: u16,
    /// Width of its registers: 4 or 8.
    pub register_bytes: u8,
    /// Register that raises the interrupt.
    pub raise: Option<u64>,
    /// Value stored to raise it.
    pub raise_value: u64,
    /// Register of the pending reasons.
    pub status: Option<u64>,
    /// Register that ends the interrupt.
    pub acknowledge: Option<u64>,
    /// Reason: a transfer has ended.
    pub done_value: u64,
}

/// A range of a BAR that may be accessed without an effect elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Harmless {
    /// BAR.
    pub bar: u8,
    /// Offset of the first byte.
    pub from: u64,
    /// Offset after the last byte.
    pub to: u64,
    /// Kind, as in the option `--bar`.
    pub kind: String,
}

impl DeviceFile {
    /// Reads a device file.
    ///
    /// # Errors
    /// [`DeviceFileError`] with every problem, each with line and key.
    pub fn parse(file: &str, text: &str) -> Result<DeviceFile, DeviceFileError> {
        // The rules below are about values that single keys permit.
        let mut reader = Reader::new(file, text).without_problems()?;
        let first = |name: &str| reader.all(name).first().cloned();
        let (top, id) = (first("").unwrap_or_default(), first("id").unwrap_or_default());
        let (engine, descriptors, interrupt) = (first("engine"), first("descriptors"), first("interrupt"));
        let device = DeviceFile {
            name: top.text("name"),
            summary: top.text("summary"),
            source: top.text("source"),
            id: identifiers(&id),
            bars: reader.all("bar").iter().map(bar).collect(),
            engine: engine.as_ref().map(engine::read),
            descriptors: descriptors.as_ref().map(descriptors::read),
            interrupt: interrupt.as_ref().map(self::interrupt),
            design: first("design").as_ref().map(design).unwrap_or_default(),
            harmless: reader.all("harmless").iter().map(harmless).collect(),
        };
        let mut rules = Rules { device: &device, broken: Vec::new() };
        rules.bars(reader.all("bar"));
        if let (Some(values), Some(engine)) = (&engine, &device.engine) {
            rules.engine(values, engine, interrupt.is_some());
        }
        if let (Some(values), Some(engine)) = (&descriptors, &device.descriptors) {
            rules.descriptors(values, engine);
        }
        if let (Some(values), Some(interrupt)) = (&interrupt, &device.interrupt) {
            rules.interrupt(values, interrupt);
        }
        rules.harmless(reader.all("harmless"));
        for (line, key, message) in rules.broken {
            reader.problem(line, key, message);
        }
        reader.without_problems()?;
        Ok(device)
    }
}

fn identifiers(values: &Values) -> Identifiers {
    let word = |key| values.some_number(key).map(|number| number as u16);
    Identifiers {
        vendor: values.number("vendor") as u16,
        device: values.number("device") as u16,
        subsystem_vendor: word("subsystem_vendor"),
        subsystem_device: word("subsystem_device"),
        revision: values.some_number("revision").map(|number| number as u8),
    }
}

fn bar(values: &Values) -> BarOf {
    BarOf { number: values.number("number") as u8, len_bytes: values.number("len_bytes") }
}

fn interrupt(values: &Values) -> Interrupt {
    Interrupt {
        kind: if values.text("kind") == "msi-x" { InterruptKind::MsiX } else { InterruptKind::Msi },
        vector: values.number("vector") as u16,
        register_bytes: values.number("register_bytes") as u8,
        raise: values.some_number("raise_register"),
        raise_value: values.number("raise_value"),
        status: values.some_number("status_register"),
        acknowledge: values.some_number("acknowledge_register"),
        done_value: values.number("done_value"),
    }
}

fn design(values: &Values) -> Design {
    Design { ingress_clocks: values.number("ingress_clocks") as u32 }
}

fn harmless(values: &Values) -> Harmless {
    Harmless {
        bar: values.number("bar") as u8,
        from: values.number("from"),
        to: values.number("to"),
        kind: values.text("kind"),
    }
}

/// Registers of an engine and of its interrupt, by the names of their keys.
const ENGINE_REGISTERS: [&str; 7] = [
    "source_register",
    "source_high_register",
    "destination_register",
    "destination_high_register",
    "count_register",
    "command_register",
    "done_register",
];
const INTERRUPT_REGISTERS: [&str; 3] = ["raise_register", "status_register", "acknowledge_register"];

/// Check of the rules of several keys.
struct Rules<'a> {
    device: &'a DeviceFile,
    /// Line, key and rule of each problem.
    broken: Vec<(usize, String, String)>,
}

impl Rules<'_> {
    fn broken(&mut self, values: &Values, key: &str, message: impl Into<String>) {
        self.broken.push((values.line_of(key), values.path_of(key), message.into()));
    }

    fn check(&mut self, is_kept: bool, values: &Values, key: &str, message: impl Into<String>) {
        if !is_kept {
            self.broken(values, key, message);
        }
    }

    fn bars(&mut self, bars: &[Values]) {
        for (place, values) in bars.iter().enumerate() {
            let number = values.number("number");
            let is_first = bars[..place].iter().all(|other| other.number("number") != number);
            self.check(is_first, values, "number", format!("BAR{number} has a section already"));
        }
    }

    /// Length of a BAR of the file; an error for `key` if the file has no such BAR.
    fn len_of(&mut self, values: &Values, key: &str, bar: u8) -> Option<u64> {
        let found = self.device.bars.iter().find(|of| of.number == bar).map(|of| of.len_bytes);
        if found.is_none() {
            self.broken(values, key, format!("BAR{bar} has no section [[bar]]"));
        }
        found
    }

    fn registers(&mut self, values: &Values, keys: &[&str], width: u8, len: u64) {
        for (place, key) in keys.iter().enumerate() {
            let Some(at) = values.some_number(key) else { continue };
            let is_inside = at.checked_add(u64::from(width)).is_some_and(|end| end <= len);
            self.check(
                is_inside,
                values,
                key,
                format!("{at:#x} and {width} B are beyond the BAR of {}", format_size(len)),
            );
            let is_aligned = at.is_multiple_of(u64::from(width));
            let below = at - at % u64::from(width);
            let message = format!(
                "{at:#x} is no multiple of register_bytes, {width}: use {below:#x} or {:#x}",
                below.saturating_add(u64::from(width))
            );
            self.check(is_aligned, values, key, message);
            // The command may show the end.
            let same = keys[..place]
                .iter()
                .find(|other| values.some_number(other) == Some(at) && **other != "command_register");
            if let Some(other) = same {
                self.broken(values, key, format!("{at:#x} is also {other}: give each register its own offset"));
            }
        }
    }

    fn engine(&mut self, values: &Values, engine: &Engine, has_interrupt: bool) {
        let width = engine.register_bytes;
        if !matches!(width, 4 | 8) {
            self.broken(values, "register_bytes", "must be 4 or 8");
            return;
        }
        if let Some(len) = self.len_of(values, "bar", engine.bar) {
            self.registers(values, &ENGINE_REGISTERS, width, len);
        }
        for (high, low) in
            [("source_high_register", engine.source_high), ("destination_high_register", engine.destination_high)]
        {
            self.check(low.is_none() || width == 4, values, high, "belongs to registers of 4 B");
            let is_reached = width == 8 || engine.limits.address_bits <= 32 || low.is_some();
            let message =
                format!("is missing: one register of 4 B does not hold {} address bits", engine.limits.address_bits);
            self.check(is_reached, values, high, message);
        }
        let most = if width == 8 { u64::MAX } else { u64::from(u32::MAX) };
        let command = engine.to_device | engine.to_host | engine.with_interrupt.unwrap_or(0);
        self.check(
            command <= most,
            values,
            "to_device_command",
            format!("commands are wider than a register of {width} B"),
        );
        for (key, message) in engine::broken(engine) {
            self.broken(values, key, message);
        }
        self.check(
            engine.done_mask != 0,
            values,
            "done_mask",
            "must not be 0: with no bit to compare, a transfer is always done",
        );
        self.check(engine.done_value & !engine.done_mask == 0, values, "done_value", "has bits outside done_mask");
        if engine.with_interrupt.is_some() {
            self.check(has_interrupt, values, "interrupt_command", "needs a section [interrupt]");
        }
        let holds = if width == 8 || engine.source_high.is_some() && engine.destination_high.is_some() {
            u64::MAX
        } else {
            most
        };
        self.limits(values, &engine.limits, holds);
    }

    /// Checks the memory of a device whose engine takes addresses of it up to `holds`.
    fn limits(&mut self, values: &Values, limits: &DmaLimits, holds: u64) {
        let DmaLimits { memory_start, memory_bytes, most_bytes, alignment_bytes: alignment, .. } = *limits;
        self.check(alignment.is_power_of_two(), values, "alignment_bytes", "must be a power of two");
        let fits = most_bytes <= memory_bytes;
        self.check(fits, values, "most_bytes", format!("is beyond memory_bytes, {}", format_size(memory_bytes)));
        let end = memory_start.checked_add(memory_bytes - 1);
        let message = "with memory_bytes it ends beyond what the address registers hold";
        self.check(end.is_some_and(|end| end <= holds), values, "memory_start", message);
        for (key, number) in [("memory_start", memory_start), ("most_bytes", most_bytes)] {
            let message = format!("is no multiple of alignment_bytes, {alignment}");
            self.check(number.is_multiple_of(alignment.max(1)), values, key, message);
        }
    }

    fn descriptors(&mut self, values: &Values, engine: &DescriptorEngine) {
        let is_only = self.device.engine.is_none();
        self.check(
            is_only,
            values,
            "layout",
            "a file describes one engine: remove the section [engine] or [descriptors]",
        );
        if let Some(len) = self.len_of(values, "bar", engine.bar) {
            let end = engine.registers().map(|at| at + 4).max().unwrap_or(0);
            let (size, channel) = (format_size(len), engine.channel);
            let message = format!("the registers of channel {channel} end at {end:#x}, beyond the BAR of {size}");
            self.check(end <= len, values, "bar", message);
        }
        self.limits(values, &engine.limits, u64::MAX);
        for (key, message) in descriptors::broken(engine) {
            self.broken(values, key, message);
        }
    }

    fn interrupt(&mut self, values: &Values, interrupt: &Interrupt) {
        if self.device.descriptors.is_some() {
            for (key, message) in descriptors::broken_interrupt(values) {
                self.broken(values, key, message);
            }
            return;
        }
        let Some(engine) = self.device.engine else {
            self.broken(values, "kind", "needs a section [engine] or [descriptors]");
            return;
        };
        if !matches!(interrupt.register_bytes, 4 | 8) {
            self.broken(values, "register_bytes", "must be 4 or 8");
            return;
        }
        if let Some(len) = self.len_of(values, "kind", engine.bar) {
            self.registers(values, &INTERRUPT_REGISTERS, interrupt.register_bytes, len);
        }
    }

    fn harmless(&mut self, ranges: &[Values]) {
        for (place, values) in ranges.iter().enumerate() {
            let Harmless { bar, from, to, .. } = harmless(values);
            let Some(len) = self.len_of(values, "bar", bar) else { continue };
            if from >= to || to > len {
                self.broken(
                    values,
                    "to",
                    format!("must be above from and at most {}, the length of the BAR", format_size(len)),
                );
                continue;
            }
            let others = ranges[..place].iter().map(harmless);
            let overlaps = others.filter(|other| other.bar == bar).any(|other| other.from < to && from < other.to);
            self.check(!overlaps, values, "from", "overlaps with the range of an earlier section");
            let register =
                self.device.registers().find(|(of, at, width)| *of == bar && *at < to && from < at + u64::from(*width));
            if let Some((_, at, _)) = register {
                self.broken(
                    values,
                    "from",
                    format!("the range contains the register {at:#x} of the engine, which is not harmless"),
                );
            }
        }
    }
}

impl DeviceFile {
    /// Addresses, memory and lengths of DMA transfers; `None` without an engine.
    #[must_use]
    pub fn limits(&self) -> Option<DmaLimits> {
        let by_registers = self.engine.as_ref().map(|engine| engine.limits);
        by_registers.or_else(|| self.descriptors.as_ref().map(|engine| engine.limits))
    }

    /// Whether the engine can send an interrupt at the end of a transfer.
    #[must_use]
    pub fn interrupts(&self) -> bool {
        let is_requested = self.engine.is_none_or(|engine| engine.with_interrupt.is_some());
        self.interrupt.is_some() && is_requested
    }

    /// Registers of engine and interrupt: BAR, offset and width.
    pub fn registers(&self) -> impl Iterator<Item = (u8, u64, u8)> + '_ {
        let of_lists = self.descriptors.iter().flat_map(|engine| engine.registers().map(|at| (engine.bar, at, 4)));
        let by_registers = self.engine.iter().flat_map(|engine| {
            let of_engine = [
                Some(engine.source),
                engine.source_high,
                Some(engine.destination),
                engine.destination_high,
                Some(engine.count),
                Some(engine.command),
                Some(engine.done),
            ];
            let of_engine = of_engine.into_iter().flatten().map(|at| (engine.bar, at, engine.register_bytes));
            let of_interrupt = self.interrupt.iter().flat_map(|interrupt| {
                let each = [interrupt.raise, interrupt.status, interrupt.acknowledge].into_iter().flatten();
                each.map(|at| (engine.bar, at, interrupt.register_bytes))
            });
            of_engine.chain(of_interrupt)
        });
        by_registers.chain(of_lists)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DEVICES;

    /// The file of `edu` with one text replaced.
    fn changed(from: &str, to: &str) -> Result<DeviceFile, DeviceFileError> {
        let text = DEVICES[0].text;
        assert!(text.contains(from), "{from}");
        DeviceFile::parse("mine.toml", &text.replacen(from, to, 1))
    }

    #[test]
    fn a_wrong_file_is_refused_with_line_and_key_and_the_last_right_value_is_accepted() {
        for (from, wrong, right, words) in [
            ("schema = 1", "schema = 2", "schema = 1", "mine.toml:2: schema: must be 1"),
            ("vendor = 0x1234", "vendor = 0xffff", "vendor = 0xfffe", "id.vendor: must be a whole number"),
            (
                "source_register = 0x80",
                "source_register = 0x84",
                "source_register = 0x78",
                "no multiple of register_bytes",
            ),
            (
                "source_register = 0x80",
                "source_register = 0x100000",
                "source_register = 0xffff8",
                "beyond the BAR of 1MiB",
            ),
            (
                "source_register = 0x80",
                "source_register = 0x90",
                "source_register = 0xa0",
                "0x90 is also source_register: give each register its own offset",
            ),
            ("done_mask = 0x1", "done_mask = 0x0", "done_mask = 0x3", "must not be 0"),
            ("done_value = 0x0", "done_value = 0x2", "done_value = 0x1", "bits outside done_mask"),
            (
                "to_host_command = 0x3",
                "to_host_command = 0x1",
                "to_host_command = 0x2",
                "equals to_device_command; each direction needs its own command",
            ),
            ("most_bytes = \"2KiB\"", "most_bytes = 4097", "most_bytes = 4096", "beyond memory_bytes, 4KiB"),
            ("alignment_bytes = 1", "alignment_bytes = 3", "alignment_bytes = 4", "power of two"),
            (
                "most_bytes = \"2KiB\"",
                "most_bytes = 2044\nalignment_byte = 8",
                "most_bytes = 2044",
                "alignment_byte: is unknown; did you mean",
            ),
            ("register_bytes = 8", "register_bytes = 6", "register_bytes = 4", "must be 4 or 8"),
            ("address_bits = 28", "address_bits = 65", "address_bits = 64", "engine.address_bits: must be"),
            ("kind = \"msi\"", "kind = \"intx\"", "kind = \"msi-x\"", "msi, msi-x"),
            ("to = 0x4", "to = 0x5", "to = 0x3", "overlaps with the range"),
            ("to = 0x8", "to = 0x25", "to = 0x24", "contains the register 0x24"),
            ("[[bar]]\nnumber = 0", "[[bar]]\nnumber = 1", "[[bar]]\nnumber = 0", "BAR0 has no section [[bar]]"),
        ] {
            let error = changed(from, wrong).unwrap_err().to_string();
            assert!(error.contains(words), "{wrong}: {error}");
            changed(from, right).unwrap_or_else(|error| panic!("{right}: {error}"));
        }
    }

    #[test]
    fn registers_of_4_b_need_an_upper_half_beyond_32_address_bits() {
        let narrow = |bits: u32, more: &str| {
            let text = DEVICES[0].text.replacen("register_bytes = 8", "register_bytes = 4", 1);
            let text = text.replacen("address_bits = 28", &format!("address_bits = {bits}{more}"), 1);
            DeviceFile::parse("mine.toml", &text).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(narrow(32, ""), Ok(()));
        assert!(narrow(33, "").unwrap_err().contains("does not hold 33 address bits"));
        assert_eq!(narrow(33, "\nsource_high_register = 0x84\ndestination_high_register = 0x8c"), Ok(()));
        assert!(changed("address_bits", "source_high_register = 0x84\naddress_bits").is_err(), "registers of 8 B");
    }

    #[test]
    fn a_missing_section_and_a_text_that_is_not_toml_are_named() {
        let error = DeviceFile::parse("mine.toml", "schema = 1\n").unwrap_err().to_string();
        for words in ["mine.toml:1: name: is missing", "id: is missing: write [id]", "bar: is missing: write [[bar]]"] {
            assert!(error.contains(words), "{words}: {error}");
        }
        let error = DeviceFile::parse("mine.toml", "schema = 1\nname = =\n").unwrap_err().to_string();
        assert!(error.starts_with("mine.toml:2: not TOML"), "{error}");
        let error = changed("[engine]", "[[engine]]").unwrap_err().to_string();
        assert!(error.contains("engine: is no section: write [engine]"), "{error}");
        let device = changed("[[harmless]]\nbar = 0\nfrom = 0x0\nto = 0x4\nkind = \"registers\"\n", "").unwrap();
        assert_eq!(device.harmless.len(), 1);
    }
}
