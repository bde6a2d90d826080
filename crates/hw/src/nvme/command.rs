//! Commands, as submission queue entries.

use super::data::DataPointer;

/// Opcodes. The NVM command set has others; of those that change the medium, only Write is needed.
mod opcode {
    /// Source: NVM Express Base Specification 2.0, figure "Opcodes for Admin Commands".
    pub(super) const CREATE_SQ: u64 = 0x01;
    pub(super) const CREATE_CQ: u64 = 0x05;
    pub(super) const IDENTIFY: u64 = 0x06;
    pub(super) const SET_FEATURES: u64 = 0x09;
    /// Source: NVM Command Set Specification 1.0, figure "Opcodes for NVM Commands".
    pub(super) const FLUSH: u64 = 0x00;
    pub(super) const WRITE: u64 = 0x01;
    pub(super) const READ: u64 = 0x02;
}

/// Data structures of Identify: CNS. Source: NVM Express Base Specification 2.0, figure "Identify - CNS Values".
mod cns {
    pub(super) const NAMESPACE: u32 = 0x00;
    pub(super) const CONTROLLER: u32 = 0x01;
    pub(super) const ACTIVE_NAMESPACES: u32 = 0x02;
}

/// Feature identifier of Number of Queues. Source: NVM Express Base Specification 2.0, figure "Set Features - Feature Identifiers".
const NUMBER_OF_QUEUES: u32 = 0x07;

/// Field PSDT of dword 0: the data pointer is an SGL descriptor. Source: NVM Express Base Specification 2.0, figure "Common
/// Command Format".
const SGL: u64 = 1 << 14;

/// A command without its identifier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Command {
    /// Name, for messages.
    pub(super) name: &'static str,
    opcode: u64,
    namespace: u32,
    data: DataPointer,
    /// Command dwords 10 to 12.
    dwords: [u32; 3],
}

impl Command {
    /// The entry as eight words of 8 B. Source: NVM Express Base Specification 2.0, figure "Common Command Format".
    #[inline]
    pub(crate) const fn entry(&self, id: u16) -> [u64; 8] {
        let [ten, eleven, twelve] = self.dwords;
        let sgl = if self.data.is_sgl { SGL } else { 0 };
        let first = self.opcode | sgl | (id as u64) << 16 | (self.namespace as u64) << 32;
        let [low, high] = self.data.words;
        [first, 0, 0, low, high, ten as u64 | (eleven as u64) << 32, twelve as u64, 0]
    }

    const fn identify(name: &'static str, cns: u32, namespace: u32, data: u64) -> Command {
        Command { name, opcode: opcode::IDENTIFY, namespace, data: DataPointer::prp([data, 0]), dwords: [cns, 0, 0] }
    }

    pub(crate) const fn identify_controller(data: u64) -> Command {
        Command::identify("Identify (controller)", cns::CONTROLLER, 0, data)
    }

    /// Those whose identifiers are greater than `after`.
    pub(super) const fn active_namespaces(after: u32, data: u64) -> Command {
        Command::identify("Identify (active namespaces)", cns::ACTIVE_NAMESPACES, after, data)
    }

    pub(crate) const fn identify_namespace(namespace: u32, data: u64) -> Command {
        Command::identify("Identify (namespace)", cns::NAMESPACE, namespace, data)
    }

    /// Requests `pairs` (1 to 65535) I/O queue pairs: NCQR and NSQR, which count from 0.
    pub(super) const fn number_of_queues(pairs: u32) -> Command {
        let (name, opcode, data) = ("Set Features (Number of Queues)", opcode::SET_FEATURES, DataPointer::NONE);
        Command { name, opcode, namespace: 0, data, dwords: [NUMBER_OF_QUEUES, (pairs - 1) << 16 | (pairs - 1), 0] }
    }

    /// A completion queue in contiguous memory (PC), whose completions are followed by this interrupt (IEN and IV).
    pub(super) const fn create_completions(queue: u16, entries: u16, at: u64, vector: Option<u16>) -> Command {
        let size = (entries as u32 - 1) << 16 | queue as u32;
        let (name, opcode) = ("Create I/O Completion Queue", opcode::CREATE_CQ);
        let interrupt = match vector {
            Some(vector) => (vector as u32) << 16 | 1 << 1,
            None => 0,
        };
        Command { name, opcode, namespace: 0, data: DataPointer::prp([at, 0]), dwords: [size, interrupt | 1, 0] }
    }

    /// A submission queue in contiguous memory (PC), whose completions go to the queue of the same number.
    pub(super) const fn create_submissions(queue: u16, entries: u16, at: u64) -> Command {
        let size = (entries as u32 - 1) << 16 | queue as u32;
        let (name, opcode) = ("Create I/O Submission Queue", opcode::CREATE_SQ);
        Command {
            name,
            opcode,
            namespace: 0,
            data: DataPointer::prp([at, 0]),
            dwords: [size, (queue as u32) << 16 | 1, 0],
        }
    }

    /// Reads `blocks` (1 to 65536) logical blocks from `first` on to `data`.
    #[must_use]
    pub(crate) const fn read(namespace: u32, first: u64, blocks: u32, data: DataPointer) -> Command {
        let dwords = [first as u32, (first >> 32) as u32, blocks - 1];
        Command { name: "Read", opcode: opcode::READ, namespace, data, dwords }
    }

    /// Writes `blocks` (1 to 65536) logical blocks from `first` on with `data`: **their contents are lost**.
    #[must_use]
    pub(crate) const fn write(namespace: u32, first: u64, blocks: u32, data: DataPointer) -> Command {
        Command { name: "Write", opcode: opcode::WRITE, ..Command::read(namespace, first, blocks, data) }
    }

    /// Writes back what the drive holds in a volatile cache; it transfers no data.
    #[must_use]
    pub(crate) const fn flush(namespace: u32) -> Command {
        Command { name: "Flush", opcode: opcode::FLUSH, namespace, data: DataPointer::NONE, dwords: [0; 3] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_have_their_fields_where_the_standard_puts_them() {
        let entry = Command::read(7, 0x1_2345_6789, 8, DataPointer::prp([0x20_0000, 0x20_1000])).entry(3);
        assert_eq!(entry, [0x7_0003_0002, 0, 0, 0x20_0000, 0x20_1000, 0x1_2345_6789, 7, 0]);
        let sgl = DataPointer { words: [0x20_0000, 4096], is_sgl: true };
        assert_eq!(Command::read(7, 0, 8, sgl).entry(3)[..5], [0x7_0003_4002, 0, 0, 0x20_0000, 4096]);
        let write = Command::write(7, 0x1_2345_6789, 8, DataPointer::prp([0x20_0000, 0x20_1000])).entry(3);
        assert_eq!((write[0], &write[1..]), (0x7_0003_0001, &entry[1..]));
        assert_eq!(Command::flush(7).entry(0), [0x7_0000_0000, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn queue_sizes_count_from_0() {
        assert_eq!(Command::create_completions(1, 64, 0x1000, None).entry(0)[5], 0x1_003f_0001);
        assert_eq!(Command::create_completions(1, 64, 0x1000, Some(5)).entry(0)[5], 0x5_0003_003f_0001);
        assert_eq!(Command::create_submissions(1, 2, 0x1000).entry(0)[5], 0x1_0001_0001_0001);
        assert_eq!(Command::number_of_queues(4).entry(0)[..6], [9, 0, 0, 0, 0, 0x3_0003_0000_0007]);
    }
}
