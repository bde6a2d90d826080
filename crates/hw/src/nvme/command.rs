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

/// First bit of the identifier in the first word of an entry. Source: NVM Express Base Specification 2.0, figure "Command Dword 0".
pub(super) const ID: u32 = 16;

/// The kind of a command: its opcode, and its name in messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    IdentifyController,
    IdentifyNamespace,
    ActiveNamespaces,
    NumberOfQueues,
    CreateCompletions,
    CreateSubmissions,
    Read,
    Write,
    Flush,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Kind::IdentifyController => "Identify (controller)",
            Kind::IdentifyNamespace => "Identify (namespace)",
            Kind::ActiveNamespaces => "Identify (active namespaces)",
            Kind::NumberOfQueues => "Set Features (Number of Queues)",
            Kind::CreateCompletions => "Create I/O Completion Queue",
            Kind::CreateSubmissions => "Create I/O Submission Queue",
            Kind::Read => "Read",
            Kind::Write => "Write",
            Kind::Flush => "Flush",
        }
    }

    const fn opcode(self) -> u64 {
        match self {
            Kind::IdentifyController | Kind::IdentifyNamespace | Kind::ActiveNamespaces => opcode::IDENTIFY,
            Kind::NumberOfQueues => opcode::SET_FEATURES,
            Kind::CreateCompletions => opcode::CREATE_CQ,
            Kind::CreateSubmissions => opcode::CREATE_SQ,
            Kind::Read => opcode::READ,
            Kind::Write => opcode::WRITE,
            Kind::Flush => opcode::FLUSH,
        }
    }
}

/// A command: a submission queue entry without its identifier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Command {
    pub(super) kind: Kind,
    /// The entry as eight words of 8 B, with the identifier 0.
    words: [u64; 8],
}

impl Command {
    /// Source: NVM Express Base Specification 2.0, figure "Common Command Format".
    const fn new(kind: Kind, namespace: u32, data: DataPointer, [ten, eleven, twelve]: [u32; 3]) -> Command {
        let sgl = if data.is_sgl { SGL } else { 0 };
        let first = kind.opcode() | sgl | (namespace as u64) << 32;
        let [low, high] = data.words;
        Command { kind, words: [first, 0, 0, low, high, ten as u64 | (eleven as u64) << 32, twelve as u64, 0] }
    }

    /// The entry as eight words of 8 B, with the identifier 0 at bit [`ID`] of the first.
    #[inline]
    pub(crate) const fn words(&self) -> &[u64; 8] {
        &self.words
    }

    const fn identify(kind: Kind, cns: u32, namespace: u32, data: u64) -> Command {
        Command::new(kind, namespace, DataPointer::prp([data, 0]), [cns, 0, 0])
    }

    pub(crate) const fn identify_controller(data: u64) -> Command {
        Command::identify(Kind::IdentifyController, cns::CONTROLLER, 0, data)
    }

    /// Those whose identifiers are greater than `after`.
    pub(super) const fn active_namespaces(after: u32, data: u64) -> Command {
        Command::identify(Kind::ActiveNamespaces, cns::ACTIVE_NAMESPACES, after, data)
    }

    pub(crate) const fn identify_namespace(namespace: u32, data: u64) -> Command {
        Command::identify(Kind::IdentifyNamespace, cns::NAMESPACE, namespace, data)
    }

    /// Requests `pairs` (1 to 65535) I/O queue pairs: NCQR and NSQR, which count from 0.
    pub(super) const fn number_of_queues(pairs: u32) -> Command {
        let dwords = [NUMBER_OF_QUEUES, (pairs - 1) << 16 | (pairs - 1), 0];
        Command::new(Kind::NumberOfQueues, 0, DataPointer::NONE, dwords)
    }

    /// A completion queue in contiguous memory (PC), whose completions are followed by this interrupt (IEN and IV).
    pub(super) const fn create_completions(queue: u16, entries: u16, at: u64, vector: Option<u16>) -> Command {
        let size = (entries as u32 - 1) << 16 | queue as u32;
        let interrupt = match vector {
            Some(vector) => (vector as u32) << 16 | 1 << 1,
            None => 0,
        };
        Command::new(Kind::CreateCompletions, 0, DataPointer::prp([at, 0]), [size, interrupt | 1, 0])
    }

    /// A submission queue in contiguous memory (PC), whose completions go to the queue of the same number.
    pub(super) const fn create_submissions(queue: u16, entries: u16, at: u64) -> Command {
        let size = (entries as u32 - 1) << 16 | queue as u32;
        Command::new(Kind::CreateSubmissions, 0, DataPointer::prp([at, 0]), [size, (queue as u32) << 16 | 1, 0])
    }

    /// Reads `blocks` (1 to 65536) logical blocks from `first` on to `data`.
    #[must_use]
    pub(crate) const fn read(namespace: u32, first: u64, blocks: u32, data: DataPointer) -> Command {
        Command::new(Kind::Read, namespace, data, moved(first, blocks))
    }

    /// Writes `blocks` (1 to 65536) logical blocks from `first` on with `data`: **their contents are lost**.
    #[must_use]
    pub(crate) const fn write(namespace: u32, first: u64, blocks: u32, data: DataPointer) -> Command {
        Command::new(Kind::Write, namespace, data, moved(first, blocks))
    }

    /// Writes back what the drive holds in a volatile cache; it transfers no data.
    #[must_use]
    pub(crate) const fn flush(namespace: u32) -> Command {
        Command::new(Kind::Flush, namespace, DataPointer::NONE, [0; 3])
    }
}

/// Dwords 10 to 12 of a read or a write.
const fn moved(first: u64, blocks: u32) -> [u32; 3] {
    [first as u32, (first >> 32) as u32, blocks - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_have_their_fields_where_the_standard_puts_them() {
        let entry = Command::read(7, 0x1_2345_6789, 8, DataPointer::prp([0x20_0000, 0x20_1000]));
        let entry = *entry.words();
        assert_eq!(entry, [0x7_0000_0002, 0, 0, 0x20_0000, 0x20_1000, 0x1_2345_6789, 7, 0]);
        let sgl = DataPointer { words: [0x20_0000, 4096], is_sgl: true };
        assert_eq!(Command::read(7, 0, 8, sgl).words()[..5], [0x7_0000_4002, 0, 0, 0x20_0000, 4096]);
        let write = Command::write(7, 0x1_2345_6789, 8, DataPointer::prp([0x20_0000, 0x20_1000]));
        let write = write.words();
        assert_eq!((write[0], &write[1..]), (0x7_0000_0001, &entry[1..]));
        assert_eq!(*Command::flush(7).words(), [0x7_0000_0000, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn queue_sizes_count_from_0() {
        assert_eq!(Command::create_completions(1, 64, 0x1000, None).words()[5], 0x1_003f_0001);
        assert_eq!(Command::create_completions(1, 64, 0x1000, Some(5)).words()[5], 0x5_0003_003f_0001);
        assert_eq!(Command::create_submissions(1, 2, 0x1000).words()[5], 0x1_0001_0001_0001);
        assert_eq!(Command::number_of_queues(4).words()[..6], [9, 0, 0, 0, 0, 0x3_0003_0000_0007]);
    }
}
