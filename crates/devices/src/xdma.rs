//! Registers and descriptors of AMD's DMA for PCI Express (XDMA), with memory-mapped AXI.
//!
//! A descriptor has 32 B, in little-endian words of 4 B:
//!
//! ```text
//!  0  magic 0xad4b [31:16], Nxt_adj [13:8], control [7:0]: STOP, COMPLETED, EOP
//!  1  length [27:0]
//!  2  source address        4  destination address        6  address of the next descriptor   (64 bits each)
//! ```
//!
//! `Nxt_adj` is the number of descriptors that follow the next one directly: the engine fetches them with it. Such a block does
//! not cross a boundary of 4 KiB.
//!
//! Source: AMD, PG195, "Register Space", "Descriptor Format" and "Poll Mode".

/// Bytes of a descriptor; its address is a multiple of this.
pub const DESCRIPTOR_BYTES: u64 = 32;

/// Largest vector number of an interrupt: a field of 5 bits.
pub(crate) const MOST_VECTOR: u64 = 31;

/// Bytes between the registers of two channels of a direction.
const CHANNEL_STRIDE: u64 = 0x100;

/// Channels of a direction, at most.
pub const CHANNELS: u64 = 4;

/// Direction of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Host to card.
    H2c,
    /// Card to host.
    C2h,
}

/// Offsets of the registers of a channel: of the channel itself, and of its fetcher of descriptors (SGDMA).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Channel {
    /// Identifier of the channel.
    pub identifier: u64,
    /// Control.
    pub control: u64,
    /// Status; it keeps its bits.
    pub status: u64,
    /// Status; a load clears its bits.
    pub status_clearing: u64,
    /// Completed Descriptor Count.
    pub completed: u64,
    /// Poll Mode Write Back Address, lower and upper half.
    pub write_back: [u64; 2],
    /// Interrupt Enable Mask.
    pub interrupts: u64,
    /// Identifier of the SGDMA registers.
    pub list_identifier: u64,
    /// Address of the first descriptor, lower and upper half.
    pub list: [u64; 2],
    /// Number of descriptors that follow the first one directly.
    pub adjacent: u64,
}

impl Channel {
    /// The registers of a channel.
    #[must_use]
    pub const fn new(direction: Direction, channel: u8) -> Channel {
        let (target, list_target) = match direction {
            Direction::H2c => (0x0000, 0x4000),
            Direction::C2h => (0x1000, 0x5000),
        };
        let (at, list) = (target + channel as u64 * CHANNEL_STRIDE, list_target + channel as u64 * CHANNEL_STRIDE);
        Channel {
            identifier: at,
            control: at + 0x04,
            status: at + 0x40,
            status_clearing: at + 0x44,
            completed: at + 0x48,
            write_back: [at + 0x88, at + 0x8c],
            interrupts: at + 0x90,
            list_identifier: list,
            list: [list + 0x80, list + 0x84],
            adjacent: list + 0x88,
        }
    }

    /// The identifier that a register must show, in the bits of [`IDENTIFIER_MASK`]: core, target, no stream, channel.
    #[must_use]
    pub const fn expected(register: u64) -> u32 {
        0x1fc0_0000 | ((register >> 12) as u32) << 16 | ((register >> 8 & 0xf) as u32) << 8
    }
}

/// Bits of an identifier that are compared: all but the version.
pub const IDENTIFIER_MASK: u32 = 0xffff_8f00;

/// The bit of an identifier that a channel of AXI4-Stream has.
pub const IDENTIFIER_STREAM: u32 = 0x8000;

/// Registers of the IRQ block.
pub mod irq {
    /// Identifier.
    pub const IDENTIFIER: u64 = 0x2000;
    /// Channel Interrupt Enable Mask: a store sets the bits that are 1.
    pub const ENABLE: u64 = 0x2014;
    /// Channel Interrupt Enable Mask: a store clears the bits that are 1.
    pub const DISABLE: u64 = 0x2018;
    /// Channel Vector Number: 8 bits for each of 4 channels.
    pub const VECTOR: u64 = 0x20a0;
}

/// Offsets of all registers that are used for channel number `channel` of each direction.
pub(crate) fn registers(channel: u8) -> impl Iterator<Item = u64> {
    let of = |direction| {
        let Channel {
            identifier,
            control,
            status,
            status_clearing,
            completed,
            write_back: [low, high],
            interrupts,
            list_identifier,
            list: [list_low, list_high],
            adjacent,
        } = Channel::new(direction, channel);
        let own = [identifier, control, status, status_clearing, completed, low, high, interrupts];
        own.into_iter().chain([list_identifier, list_low, list_high, adjacent])
    };
    // Vectors follow the number of H2C channels, which their identifiers tell.
    let others = (0..CHANNELS).map(|channel| channel * CHANNEL_STRIDE);
    let irq = [irq::IDENTIFIER, irq::ENABLE, irq::DISABLE, irq::VECTOR, irq::VECTOR + 4];
    of(Direction::H2c).chain(of(Direction::C2h)).chain(others).chain(irq)
}

/// Bits of Control.
pub mod control {
    /// Starts the channel.
    pub const RUN: u32 = 1;
    /// Writes the completed count to host memory.
    pub const WRITE_BACK: u32 = 1 << 26;
}

/// Bits of Status; those of the Interrupt Enable Mask are the same.
pub mod status {
    /// The channel is at work.
    pub const BUSY: u32 = 1;
    /// The descriptor with STOP is completed.
    pub const STOPPED: u32 = 1 << 1;
    /// Events that are logged: the end, and every error. Control enables their logging by the same bits.
    pub const LOGGED: u32 = STOPPED | ERRORS;
    /// Any error.
    pub const ERRORS: u32 = ALIGNMENT | MAGIC | LENGTH | READ | WRITE | DESCRIPTOR;
    /// Source and destination are not aligned to each other.
    pub const ALIGNMENT: u32 = 1 << 3;
    /// A descriptor has no magic number.
    pub const MAGIC: u32 = 1 << 4;
    /// A length is invalid.
    pub const LENGTH: u32 = 1 << 5;
    /// Errors of reads.
    pub const READ: u32 = 0x1f << 9;
    /// Errors of writes.
    pub const WRITE: u32 = 0x1f << 14;
    /// Errors of the fetches of descriptors.
    pub const DESCRIPTOR: u32 = 0x1f << 19;

    /// The errors of a status in words.
    #[must_use]
    pub fn in_words(status: u32) -> String {
        let kinds = [
            (ALIGNMENT, "source and destination not aligned to each other"),
            (MAGIC, "descriptor without magic number"),
            (LENGTH, "invalid length"),
            (READ, "error of a read"),
            (WRITE, "error of a write"),
            (DESCRIPTOR, "error of the fetch of a descriptor"),
        ];
        let found: Vec<&str> = kinds.iter().filter(|(bits, _)| status & bits != 0).map(|(_, words)| *words).collect();
        if found.is_empty() { "no error logged".to_owned() } else { found.join(", ") }
    }
}

/// The word that the engine writes to host memory: an error, and the lower bits of the completed count.
pub mod write_back {
    /// Any error is logged in Status.
    pub const ERROR: u32 = 1 << 31;
    /// Completed descriptors.
    pub const COUNT: u32 = 0xff_ffff;
}

/// A transfer as a list of descriptors, all in one buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct List {
    /// Address of the first descriptor, a multiple of 4 KiB.
    pub at: u64,
    /// First address to read.
    pub source: u64,
    /// First address to write.
    pub destination: u64,
    /// Bytes of the transfer.
    pub bytes: u64,
    /// Largest transfer of one descriptor.
    pub descriptor_bytes: u64,
}

/// Control bits of the last descriptor of a list: STOP, COMPLETED and EOP.
const LAST: u32 = 0b1_0011;
/// Descriptors of a block behind the first one, at most: a field of 6 bits.
const MOST_ADJACENT: u64 = 63;

impl List {
    /// Number of descriptors.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.bytes.div_ceil(self.descriptor_bytes)
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Number of descriptors that the engine may fetch together with descriptor `nth`, behind it and in its 4 KiB.
    #[must_use]
    pub fn adjacent(&self, nth: u64) -> u64 {
        let of_page = 4096 / DESCRIPTOR_BYTES;
        let (in_list, in_page) = (self.len().saturating_sub(nth + 1), of_page - nth % of_page - 1);
        in_list.min(in_page).min(MOST_ADJACENT)
    }

    /// Descriptor `nth` as four words of 8 B.
    #[must_use]
    pub fn descriptor(&self, nth: u64) -> [u64; 4] {
        let done = nth * self.descriptor_bytes;
        let bytes = self.descriptor_bytes.min(self.bytes - done);
        let is_last = nth + 1 == self.len();
        let (control, adjacent, next) =
            if is_last { (LAST, 0, 0) } else { (0, self.adjacent(nth + 1), self.at + (nth + 1) * DESCRIPTOR_BYTES) };
        let first = 0xad4b_0000 | adjacent << 8 | u64::from(control);
        [first | bytes << 32, self.source + done, self.destination + done, next]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: List =
        List { at: 0x20_0000, source: 0x1_2345_6780, destination: 0x40, bytes: 4096, descriptor_bytes: 4096 };

    #[test]
    fn one_descriptor_has_the_bytes_of_the_document() {
        assert_eq!(LIST.len(), 1);
        let bytes: Vec<u8> = LIST.descriptor(0).iter().flat_map(|word| word.to_le_bytes()).collect();
        let meant = [
            [0x13, 0, 0x4b, 0xad], // STOP, COMPLETED and EOP, Nxt_adj 0, magic number
            [0, 0x10, 0, 0],       // 4096 B
            [0x80, 0x67, 0x45, 0x23],
            [1, 0, 0, 0],
            [0x40, 0, 0, 0],
            [0; 4],
            [0; 4],
            [0; 4],
        ];
        assert_eq!(bytes, meant.concat());
    }

    #[test]
    fn a_list_covers_every_byte_once_and_only_its_last_descriptor_stops() {
        let list = List { bytes: 10_000, descriptor_bytes: 64, ..LIST };
        assert_eq!(list.len(), 157);
        let mut done = 0;
        for nth in 0..list.len() {
            let [first, source, destination, next] = list.descriptor(nth);
            assert_eq!((source, destination), (list.source + done, list.destination + done));
            let is_last = nth == list.len() - 1;
            assert_eq!(first & 0xff, if is_last { 0x13 } else { 0 });
            assert_eq!(next, if is_last { 0 } else { list.at + 32 * (nth + 1) });
            done += first >> 32;
        }
        assert_eq!(done, 10_000);
    }

    #[test]
    fn a_block_of_adjacent_descriptors_ends_at_4_kib_after_64_and_with_the_list() {
        let list = List { bytes: 200 * 64, descriptor_bytes: 64, ..LIST };
        assert_eq!([0, 64, 65, 127, 128, 198, 199].map(|nth| list.adjacent(nth)), [63, 63, 62, 0, 63, 1, 0]);
        // Nxt_adj counts behind the next descriptor.
        assert_eq!([0, 126, 197, 198].map(|nth| list.descriptor(nth)[0] >> 8 & 0x3f), [63, 0, 1, 0]);
    }

    #[test]
    fn registers_are_those_of_the_document() {
        let h2c = Channel::new(Direction::H2c, 0);
        assert_eq!((h2c.control, h2c.status, h2c.completed, h2c.list[0]), (0x4, 0x40, 0x48, 0x4080));
        let c2h = Channel::new(Direction::C2h, 1);
        assert_eq!(
            (c2h.control, c2h.write_back, c2h.interrupts, c2h.adjacent),
            (0x1104, [0x1188, 0x118c], 0x1190, 0x5188)
        );
        assert_eq!(Channel::expected(c2h.identifier), 0x1fc1_0100);
        assert_eq!(Channel::expected(h2c.list_identifier), 0x1fc4_0000);
        assert_eq!(Channel::expected(irq::IDENTIFIER), 0x1fc2_0000);
    }

    #[test]
    fn every_error_bit_has_words_and_the_end_has_none() {
        assert_eq!(status::LOGGED | control::RUN, 0x00ff_fe3b);
        assert_eq!(status::in_words(status::STOPPED | status::BUSY), "no error logged");
        for bit in (0..32).filter(|bit| status::ERRORS & 1 << bit != 0) {
            assert_ne!(status::in_words(1 << bit), "no error logged", "{bit}");
        }
    }
}
