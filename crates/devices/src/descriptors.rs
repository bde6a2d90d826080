//! Engines that fetch descriptors from host memory, and the limits of any DMA engine.

use crate::read::Values;
use crate::xdma::{MOST_VECTOR, registers};
use lanemark_units::format_size;

/// Addresses, memory and lengths of an engine's transfers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DmaLimits {
    /// Width of the addresses of host memory, in bits.
    pub address_bits: u32,
    /// First address of the device's own memory, as the engine uses it.
    pub memory_start: u64,
    /// Length of the device's own memory.
    pub memory_bytes: u64,
    /// Largest transfer, in bytes.
    pub most_bytes: u64,
    /// Alignment of addresses and lengths, in bytes.
    pub alignment_bytes: u64,
    /// Longest time of a transfer, in ms.
    pub longest_ms: u32,
}

/// Layout of descriptors and registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// AMD's DMA for PCI Express: [`xdma`](crate::xdma).
    Xdma,
}

/// Place that a core polls for the end of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Polled {
    /// A word in host memory, which the engine writes.
    WriteBack,
    /// The status register.
    Status,
}

/// A DMA engine that fetches descriptors from host memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DescriptorEngine {
    /// Layout of its descriptors and registers.
    pub layout: Layout,
    /// BAR of its registers.
    pub bar: u8,
    /// Channel of each direction, counted from 0.
    pub channel: u8,
    /// Place that a core polls for the end of a list.
    pub polled: Polled,
    /// Largest transfer of one descriptor, in bytes.
    pub descriptor_bytes: u64,
    /// Addresses, memory and lengths of its transfers.
    pub limits: DmaLimits,
}

/// Most descriptors of a transfer: 128 KiB of host memory.
const MOST_DESCRIPTORS: u64 = 4096;

impl DescriptorEngine {
    /// Number of descriptors of a transfer of `bytes`.
    #[must_use]
    pub const fn descriptors(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.descriptor_bytes)
    }

    /// Offsets of its registers, 4 B each.
    pub fn registers(&self) -> impl Iterator<Item = u64> + use<> {
        registers(self.channel)
    }
}

pub(crate) fn read(values: &Values) -> DescriptorEngine {
    DescriptorEngine {
        // The reader accepts no other layout.
        layout: Layout::Xdma,
        bar: values.number("bar") as u8,
        channel: values.number("channel") as u8,
        polled: if values.text("polled") == "status" { Polled::Status } else { Polled::WriteBack },
        descriptor_bytes: values.number("descriptor_bytes"),
        limits: limits(values),
    }
}

/// The limits that the section of any engine has.
pub(crate) fn limits(values: &Values) -> DmaLimits {
    DmaLimits {
        address_bits: values.number("address_bits") as u32,
        memory_start: values.number("memory_start"),
        memory_bytes: values.number("memory_bytes"),
        most_bytes: values.number("most_bytes"),
        alignment_bytes: values.number("alignment_bytes"),
        longest_ms: values.number("longest_ms") as u32,
    }
}

/// Keys of an engine that break a rule of its layout, with the rule.
pub(crate) fn broken(engine: &DescriptorEngine) -> Vec<(&'static str, String)> {
    let DmaLimits { alignment_bytes, most_bytes, .. } = engine.limits;
    let mut broken = Vec::new();
    if !engine.descriptor_bytes.is_multiple_of(alignment_bytes.max(1)) {
        broken.push(("descriptor_bytes", format!("is no multiple of alignment_bytes, {alignment_bytes}")));
    }
    let count = engine.descriptors(most_bytes);
    if count > MOST_DESCRIPTORS {
        let least = format_size(most_bytes.div_ceil(MOST_DESCRIPTORS));
        let rule = format!("most_bytes needs {count} descriptors, and a list has at most {MOST_DESCRIPTORS}");
        broken.push(("descriptor_bytes", format!("{rule}: use at least {least}")));
    }
    broken
}

/// Keys of the section [interrupt] that break a rule of an engine with descriptors, with the rule.
pub(crate) fn broken_interrupt(values: &Values) -> Vec<(&'static str, String)> {
    let mut broken = Vec::new();
    let vector = values.number("vector");
    if vector > MOST_VECTOR {
        broken.push(("vector", format!("the layout xdma has vectors 0 to {MOST_VECTOR}")));
    }
    let given = ["raise_register", "status_register", "acknowledge_register"];
    let given = given.into_iter().filter(|key| values.some_number(key).is_some());
    let changed = [("register_bytes", 4), ("raise_value", 1), ("done_value", 1)];
    let changed = changed.into_iter().filter(|(key, default)| values.number(key) != *default).map(|(key, _)| key);
    let rule = "belongs to a section [engine]: the layout of [descriptors] defines these registers";
    broken.extend(given.chain(changed).map(|key| (key, rule.to_owned())));
    broken
}

#[cfg(test)]
mod tests {
    use crate::{DEVICES, DeviceFile, DeviceFileError};

    /// The file of XDMA with one text replaced.
    fn changed(from: &str, to: &str) -> Result<DeviceFile, DeviceFileError> {
        let text = DEVICES.iter().find(|device| device.name == "xdma").unwrap().text;
        assert!(text.contains(from), "{from}");
        DeviceFile::parse("mine.toml", &text.replacen(from, to, 1))
    }

    const ENGINE: &str = "[engine]
bar = 0
register_bytes = 4
source_register = 0x9000
destination_register = 0x9008
count_register = 0x9010
command_register = 0x9018
to_device_command = 1
to_host_command = 2
done_register = 0x9018
done_mask = 1
done_value = 0
address_bits = 32
memory_start = 0
memory_bytes = 4096
most_bytes = 4096
longest_ms = 1

[interrupt]";

    #[test]
    fn a_wrong_descriptor_engine_is_refused_with_the_key_and_the_last_right_value_is_accepted() {
        for (from, wrong, right, words) in [
            ("layout = \"xdma\"", "layout = \"qdma\"", "layout = \"xdma\"", "descriptors.layout: must be one of"),
            ("channel = 0", "channel = 4", "channel = 3", "descriptors.channel: must be a whole number"),
            ("polled = \"write-back\"", "polled = \"flag\"", "polled = \"status\"", "write-back, status"),
            (
                "descriptor_bytes = \"128MiB\"",
                "descriptor_bytes = 0x10000000",
                "descriptor_bytes = 0xfffffff",
                "descriptors.descriptor_bytes: must be a size",
            ),
            (
                "descriptor_bytes = \"128MiB\"\naddress_bits = 64\n",
                "descriptor_bytes = 6\naddress_bits = 64\nalignment_bytes = 4\n",
                "descriptor_bytes = 8\naddress_bits = 64\nalignment_bytes = 4\n",
                "descriptors.descriptor_bytes: is no multiple of alignment_bytes, 4",
            ),
            (
                "descriptor_bytes = \"128MiB\"\naddress_bits = 64\nmemory_start = 0x0\nmemory_bytes = \"4KiB\"\nmost_bytes = \"4KiB\"",
                "descriptor_bytes = 4\naddress_bits = 64\nmemory_start = 0x0\nmemory_bytes = 16388\nmost_bytes = 16388",
                "descriptor_bytes = 4\naddress_bits = 64\nmemory_start = 0x0\nmemory_bytes = 16388\nmost_bytes = 16384",
                "needs 4097 descriptors, and a list has at most 4096: use at least 5B",
            ),
            ("most_bytes = \"4KiB\"", "most_bytes = 4097", "most_bytes = 4096", "beyond memory_bytes, 4KiB"),
            ("channel = 0", "channels = 0", "channel = 0", "descriptors.channels: is unknown; did you mean channel?"),
            ("len_bytes = \"64KiB\"", "len_bytes = 0x508b", "len_bytes = 0x508c", "channel 0 end at 0x508c"),
            ("bar = 0\nchannel", "bar = 1\nchannel", "bar = 0\nchannel", "BAR1 has no section [[bar]]"),
            ("vector = 0", "vector = 32", "vector = 31", "interrupt.vector: the layout xdma has vectors 0 to 31"),
            (
                "vector = 0",
                "vector = 0\nstatus_register = 0x2044",
                "vector = 0",
                "interrupt.status_register: belongs to a section [engine]",
            ),
            ("vector = 0", "done_value = 2", "done_value = 1", "interrupt.done_value: belongs to a section [engine]"),
            ("[interrupt]", ENGINE, "[interrupt]", "a file describes one engine"),
            ("from = 0x3000", "from = 0x2014", "from = 0x20a8", "contains the register 0x2014"),
        ] {
            // The key is given once.
            let (once, again) = ("alignment_bytes = 1\n", wrong.contains("alignment_bytes"));
            let of = |to: &str| {
                let text = DEVICES.iter().find(|device| device.name == "xdma").unwrap().text;
                let text = text.replace("# Assumed: a block RAM of 4 KiB at AXI address 0.\n", "");
                let text = if again { text.replace(once, "") } else { text };
                assert!(text.contains(from), "{from}");
                DeviceFile::parse("mine.toml", &text.replacen(from, to, 1))
            };
            let error = of(wrong).unwrap_err().to_string();
            assert!(error.contains(words), "{wrong}: {error}");
            of(right).unwrap_or_else(|error| panic!("{right}: {error}"));
        }
    }

    #[test]
    fn the_interrupt_of_an_engine_with_descriptors_needs_a_section_and_no_command() {
        let device = changed("channel = 0", "channel = 1").unwrap();
        assert!(device.interrupts() && device.engine.is_none());
        assert_eq!(device.limits(), device.descriptors.map(|engine| engine.limits));
        assert!(!changed("[interrupt]\nkind = \"msi\"\nvector = 0\n", "").unwrap().interrupts());
    }

    #[test]
    fn a_transfer_one_byte_longer_than_a_descriptor_needs_two() {
        let engine = changed("\"128MiB\"", "1024").unwrap().descriptors.unwrap();
        assert_eq!([1024, 1025].map(|bytes| engine.descriptors(bytes)), [1, 2]);
    }
}
