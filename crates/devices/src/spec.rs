//! Sections and keys of a device file, each declared once.

/// Version of the format.
pub const SCHEMA: u64 = 1;

/// Kind of the value of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// One line of text.
    Text,
    /// A whole number, both limits included.
    Number(u64, u64),
    /// A number of bytes, also as text with a unit, both limits included.
    Size(u64, u64),
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// A key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Value of a key that is not given; `None` if it must be given.
    pub(crate) default: Option<Fallback>,
    pub(crate) doc: &'static str,
}

/// Value of a key that is not given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fallback {
    /// No value: the device has none.
    Nothing,
    /// This number.
    Number(u64),
}

/// A section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section {
    /// Name; empty for the keys before the first section.
    pub(crate) name: &'static str,
    /// Whether the section may occur several times, as `[[name]]`.
    pub(crate) is_repeated: bool,
    pub(crate) is_required: bool,
    pub(crate) doc: &'static str,
    pub(crate) keys: &'static [Key],
}

/// Largest offset in a BAR.
const OFFSET: u64 = 1 << 48;
/// Largest number in TOML.
const MOST: u64 = i64::MAX as u64;

const fn key(name: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key { name, kind, default: None, doc }
}

const fn optional(name: &'static str, kind: Kind, default: Fallback, doc: &'static str) -> Key {
    Key { name, kind, default: Some(default), doc }
}

const BAR: Kind = Kind::Number(0, 5);
const REGISTER: Kind = Kind::Number(0, OFFSET);
const VALUE: Kind = Kind::Number(0, MOST);
const NONE: Fallback = Fallback::Nothing;

/// Kinds of harmless ranges, as in the option `--bar`.
pub(crate) const RANGE_KINDS: [&str; 4] = ["storage", "registers", "registers:write", "registers:write-only"];

/// Registers that can start a transfer.
pub(crate) const STARTED_BY: [&str; 2] = ["command", "count"];

/// Kinds of interrupts.
pub(crate) const INTERRUPT_KINDS: [&str; 2] = ["msi", "msi-x"];

/// Layouts of descriptors that the program can write.
pub(crate) const LAYOUTS: [&str; 1] = ["xdma"];

/// Places where a core polls for the end of a list of descriptors.
pub(crate) const POLLED: [&str; 2] = ["write-back", "status"];

/// Longest transfer of one descriptor: a field of 28 bits. Source: PG195, "Descriptor Format".
const DESCRIPTOR_BYTES: u64 = (1 << 28) - 1;

const ADDRESS_BITS: Key =
    key("address_bits", Kind::Number(12, 64), "width of its addresses of host memory; a real card needs at least 22");
const MEMORY_START: Key = key("memory_start", VALUE, "first address of the device's own memory, as the engine uses it");
const MEMORY_BYTES: Key =
    key("memory_bytes", Kind::Size(4, OFFSET), "length of the device's own memory; **its contents are lost**");
const MOST_BYTES: Key = key("most_bytes", Kind::Size(4, OFFSET), "largest transfer");
const ALIGNMENT_BYTES: Key =
    optional("alignment_bytes", Kind::Number(1, 4096), Fallback::Number(1), "alignment of addresses and lengths");
const LONGEST_MS: Key =
    key("longest_ms", Kind::Number(1, 60_000), "longest time of a transfer; then the engine counts as stuck");

/// All sections.
pub(crate) const SECTIONS: &[Section] = &[
    Section {
        name: "",
        is_repeated: false,
        is_required: true,
        doc: "before the first section",
        keys: &[
            key("schema", Kind::Number(SCHEMA, SCHEMA), "version of the format"),
            key("name", Kind::Text, "name, for people"),
            key("summary", Kind::Text, "description in one line"),
            key("source", Kind::Text, "where the registers are documented"),
        ],
    },
    Section {
        name: "id",
        is_repeated: false,
        is_required: true,
        doc: "identity; another device is refused",
        keys: &[
            key("vendor", Kind::Number(1, 0xfffe), "Vendor ID"),
            key("device", Kind::Number(0, 0xffff), "Device ID"),
            optional("subsystem_vendor", Kind::Number(0, 0xffff), NONE, "Subsystem Vendor ID; any if not given"),
            optional("subsystem_device", Kind::Number(0, 0xffff), NONE, "Subsystem ID; any if not given"),
            optional("revision", Kind::Number(0, 0xff), NONE, "Revision ID; any if not given"),
        ],
    },
    Section {
        name: "bar",
        is_repeated: true,
        is_required: true,
        doc: "a memory BAR that the device must have",
        keys: &[
            key("number", BAR, "number of the BAR"),
            key("len_bytes", Kind::Size(16, OFFSET), "length; a device with a shorter BAR is refused"),
        ],
    },
    Section {
        name: "engine",
        is_repeated: false,
        is_required: false,
        doc: "a DMA engine that is started by registers, one transfer at a time",
        keys: &[
            key("bar", BAR, "BAR of its registers"),
            key("register_bytes", Kind::Number(4, 8), "width of its registers: 4 or 8"),
            key("source_register", REGISTER, "address of the first byte to read"),
            optional("source_high_register", REGISTER, NONE, "upper half of the source address, for registers of 4 B"),
            key("destination_register", REGISTER, "address of the first byte to write"),
            optional(
                "destination_high_register",
                REGISTER,
                NONE,
                "upper half of the destination address, for registers of 4 B",
            ),
            key("count_register", REGISTER, "number of bytes"),
            key("command_register", REGISTER, "the register of the command"),
            optional(
                "started_by",
                Kind::Choice(&STARTED_BY),
                NONE,
                "the register that starts a transfer, written last: that of the command, unless it is given",
            ),
            key("to_device_command", VALUE, "command: host memory to the device"),
            key("to_host_command", VALUE, "command: the device to host memory"),
            optional("interrupt_command", VALUE, NONE, "bits added to a command for an interrupt at the end"),
            key("done_register", REGISTER, "the register that shows the end of a transfer"),
            key("done_mask", VALUE, "bits of done_register that are compared"),
            key("done_value", VALUE, "value of these bits after the end of a transfer"),
            optional("failed_mask", VALUE, NONE, "bits of done_register that are set after a failed transfer"),
            ADDRESS_BITS,
            optional(
                "host_start",
                VALUE,
                Fallback::Number(0),
                "address at which the engine sees address 0 of the host",
            ),
            MEMORY_START,
            MEMORY_BYTES,
            MOST_BYTES,
            ALIGNMENT_BYTES,
            LONGEST_MS,
        ],
    },
    Section {
        name: "descriptors",
        is_repeated: false,
        is_required: false,
        doc: "a DMA engine that fetches descriptors from host memory, instead of a section [engine]",
        keys: &[
            key("layout", Kind::Choice(&LAYOUTS), "layout of its descriptors and registers"),
            key("bar", BAR, "BAR of its registers"),
            optional("channel", Kind::Number(0, 3), Fallback::Number(0), "channel of each direction, counted from 0"),
            key(
                "polled",
                Kind::Choice(&POLLED),
                "place that a core polls for the end of a transfer: a word that the engine writes to host memory, or its status \
                 register",
            ),
            key(
                "descriptor_bytes",
                Kind::Size(4, DESCRIPTOR_BYTES),
                "largest transfer of one descriptor; a larger transfer is a list of several",
            ),
            ADDRESS_BITS,
            MEMORY_START,
            MEMORY_BYTES,
            MOST_BYTES,
            ALIGNMENT_BYTES,
            LONGEST_MS,
        ],
    },
    Section {
        name: "interrupt",
        is_repeated: false,
        is_required: false,
        doc: "the interrupt of the engine",
        keys: &[
            key("kind", Kind::Choice(&INTERRUPT_KINDS), "mechanism of the interrupt"),
            optional("vector", Kind::Number(0, 2047), Fallback::Number(0), "vector, counted from 0"),
            optional("register_bytes", Kind::Number(4, 8), Fallback::Number(4), "width of its registers: 4 or 8"),
            optional("raise_register", REGISTER, NONE, "a store to this register raises the interrupt"),
            optional("raise_value", VALUE, Fallback::Number(1), "value of that store"),
            optional("status_register", REGISTER, NONE, "register with one bit for each pending cause of an interrupt"),
            optional(
                "acknowledge_register",
                REGISTER,
                NONE,
                "a store of the pending bits to this register acknowledges the interrupt",
            ),
            optional("done_value", VALUE, Fallback::Number(1), "bit for the end of a transfer"),
        ],
    },
    Section {
        name: "design",
        is_repeated: false,
        is_required: false,
        doc: "times of a compiled card (`lanemark bench --on rtl:card.so`)",
        keys: &[optional(
            "ingress_clocks",
            Kind::Number(0, 4096),
            Fallback::Number(0),
            "clocks in `endpoint.ingress_ns` of the platform that belong to the design: they are subtracted from it",
        )],
    },
    Section {
        name: "harmless",
        is_repeated: true,
        is_required: false,
        doc: "a range that loads and stores may access without an effect elsewhere, for questions without `--bar`",
        keys: &[
            key("bar", BAR, "BAR"),
            key("from", REGISTER, "offset of the first byte"),
            key("to", REGISTER, "offset after the last byte"),
            key("kind", Kind::Choice(&RANGE_KINDS), "kind, as in `--bar`"),
        ],
    },
];
