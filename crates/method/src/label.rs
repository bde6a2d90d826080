//! Labels of methods in tables and messages.

use crate::compute::WORD;
use crate::{
    AccessPath, Allocation, ComputeWork, CopyDirection, Descriptors, Flow, LaunchBy, LineSource, Lines, Method, Peer,
    Share, Verb,
};
use std::fmt;

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Method::Core(core) => {
                write!(f, "{} {}", core.memory_type, core.access)?;
                if let Some(fence) = core.fence {
                    write!(f, "+{fence}")?;
                }
                f.write_str(path(core.path))
            }
            Method::Fence { fence } => write!(f, "{fence} alone"),
            Method::Clock { clock } => write!(f, "{clock}"),
            Method::KernelCall { call } => write!(f, "{call}"),
            Method::Wake { by } => write!(f, "{} that wakes a thread, one way", by.name()),
            Method::CacheLines { memory_type, access, lines: Lines::One } => {
                write!(f, "{memory_type} {access}, one line")
            }
            Method::CacheLines { memory_type, access, lines: Lines::Two } => {
                write!(f, "{memory_type} {access}, two lines")
            }
            Method::LineLoad { source } => f.write_str(match source {
                LineSource::Memory => "WB 8 from memory",
                LineSource::RemoteMemory => "WB 8 from memory of the other socket",
                LineSource::Core => "WB 8 from another core",
                LineSource::RemoteCore => "WB 8 from a core of the other socket",
            }),
            Method::Dma { flows, outstanding: _, reach } => write!(f, "{} by DMA{reach}", flows_in_words(flows)),
            Method::DmaPages { flows, pages, reach } => {
                write!(f, "{} by DMA, {pages} pages in turn{reach}", flows_in_words(flows))
            }
            Method::DmaUnderLoad { flows, outstanding, reach } => {
                match flows.split_first() {
                    Some((timed, others @ [_, ..])) => write!(f, "{timed} beside {}", flows_in_words(others))?,
                    _ => f.write_str(&flows_in_words(flows))?,
                }
                write!(f, " by DMA, {outstanding} outstanding{reach}")
            }
            Method::DmaCall { flows, share, descriptors, completion, reach } => {
                write!(f, "{} by DMA, ", flows_in_words(flows))?;
                match (share, descriptors) {
                    (Share::Doorbell, Descriptors::Written(_)) => {}
                    (Share::List | Share::Call, Descriptors::Written(_)) | (_, Descriptors::Fetched) => {
                        write!(f, "{} ", descriptors.name())?;
                    }
                }
                write!(f, "{}, {completion}{reach}", share.name())
            }
            Method::Relay { cards, reach } => write!(f, "{} by DMA, relayed{reach}", chain_in_words(cards)),
            Method::RuntimeCopy { direction, wait, allocation } => {
                match allocation {
                    Allocation::Buffer => {}
                    Allocation::Device
                    | Allocation::Host
                    | Allocation::Registered
                    | Allocation::Combining
                    | Allocation::Mapped => {
                        write!(f, "{} ", spaced(allocation.name()))?;
                    }
                }
                write!(f, "{} by runtime, wait by {wait}", direction_in_words(*direction))
            }
            Method::SmallCopies { direction, copies, by } => {
                write!(f, "{copies} {}, {}", direction_in_words(*direction), by.in_words())
            }
            Method::Launch { kernels, by, wait, arguments, pinned } => {
                match (by, kernels) {
                    (LaunchBy::Graph, 1) => f.write_str("graph of 1 kernel")?,
                    (LaunchBy::Graph, kernels) => write!(f, "graph of {kernels} kernels")?,
                    (_, 1) => f.write_str("launch")?,
                    (_, kernels) => write!(f, "{kernels} launches")?,
                }
                if *by == LaunchBy::StreamWait {
                    f.write_str(" by a word that the stream waits for")?;
                }
                if let Some(arguments) = arguments {
                    write!(f, " with {} {}", arguments.count, spaced(arguments.allocation.name()))?;
                }
                write!(f, ", wait by {wait}{}", if *pinned { "" } else { ", unpinned" })
            }
            Method::Argument { wait, allocation } => {
                write!(f, "one more {} argument, wait by {wait}", spaced(allocation.name()))
            }
            Method::Compute { work, wait } => write!(f, "{work}, wait by {wait}"),
            Method::MapUnmap { means } => write!(f, "{}, {}", spaced(means.strategy_name()), spaced(means.name())),
            Method::SharedBuffer { direction, discipline } => {
                write!(f, "{}, {discipline}", direction_in_words(*direction))
            }
        }
    }
}

const fn path(path: AccessPath) -> &'static str {
    match path {
        AccessPath::Pointer => "",
        AccessPath::Driver => " via driver",
        AccessPath::DriverPoll => " via driver, polling",
        AccessPath::Mmap => " via mmap",
        AccessPath::Loads => ", loads",
        AccessPath::Handshake => ", handshake",
        AccessPath::HotCopy => ", hot",
        AccessPath::ColdCopy => ", cold",
    }
}

const fn direction_in_words(direction: CopyDirection) -> &'static str {
    match direction {
        CopyDirection::ToDevice => "to device",
        CopyDirection::FromDevice => "from device",
    }
}

fn spaced(name: &str) -> String {
    name.replace('_', " ")
}

impl fmt::Display for ComputeWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let several = |count: u32, one: &str| if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") };
        match self {
            ComputeWork::StreamCopy { ports, first_port, vector_words, stride_bytes } => {
                write!(f, "stream copy {}", several(*ports, "port"))?;
                if *first_port > 0 {
                    write!(f, " from {first_port} on")?;
                }
                match vector_words {
                    1 => f.write_str(" plain")?,
                    words => write!(f, " vectors of {words}")?,
                }
                if *stride_bytes == WORD { Ok(()) } else { write!(f, " every {stride_bytes} B") }
            }
            ComputeWork::Spmv { matrix, kernels, ports_each } => {
                write!(f, "spmv {matrix} {} {} each", several(*kernels, "kernel"), several(*ports_each, "port"))
            }
        }
    }
}

/// Flows in words: the direction for a single flow between a card and the host, else each flow,
/// with consecutive cards merged.
fn flows_in_words(flows: &[Flow]) -> String {
    match flows {
        [Flow { card: 0, verb: Verb::Store, peer: Peer::Host }] => return "device-to-host".to_owned(),
        [Flow { card: 0, verb: Verb::Load, peer: Peer::Host }] => return "host-to-device".to_owned(),
        _ => {}
    }
    let mut words: Vec<String> = Vec::new();
    let follows = |one: &Flow, other: &Flow| {
        (other.verb, other.peer) == (one.verb, Peer::Host)
            && one.peer == Peer::Host
            && Some(other.card) == one.card.checked_add(1)
    };
    for row in flows.chunk_by(follows) {
        words.push(match row {
            [first, .., last] if first.verb == Verb::Store => format!("{}-{}:host", first.card, last.card),
            [first, .., last] => format!("host:{}-{}", first.card, last.card),
            [one] => one.to_string(),
            [] => String::new(),
        });
    }
    words.join(" ")
}

/// The chain of cards between host memory and host memory; consecutive cards are merged.
fn chain_in_words(cards: &[u32]) -> String {
    let rows = cards.chunk_by(|one, other| one.checked_add(1) == Some(*other)).map(|row| match row {
        [first, .., last] => format!("{first}-{last}"),
        row => row.iter().map(u32::to_string).collect(),
    });
    format!("host:{}:host", rows.collect::<Vec<_>>().join(":"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Access, Arguments, Clock, Completion, CopyBy, CoreAccess, Discipline, Fence, Flush, HostWait, Invalidation,
        Means, Reach, Strategy, Table, Width,
    };
    use lanemark_units::MemoryType;

    fn core(path: AccessPath, memory_type: MemoryType, access: Access, fence: Option<Fence>) -> String {
        Method::Core(CoreAccess { path, verb: Verb::Store, memory_type, access, fence }).to_string()
    }

    fn flows(words: &[&str]) -> Vec<Flow> {
        words.iter().map(|word| word.parse().unwrap()).collect()
    }

    #[test]
    fn labels_of_core_accesses_have_type_instruction_fence_and_path() {
        let eight = Access::Plain(Width::B8);
        let nt32 = Access::NonTemporal(Width::B32);
        assert_eq!(core(AccessPath::Pointer, MemoryType::Wc, nt32, Some(Fence::Sfence)), "WC nt32+sfence");
        assert_eq!(core(AccessPath::Driver, MemoryType::Wb, eight, None), "WB 8 via driver");
        assert_eq!(core(AccessPath::ColdCopy, MemoryType::Wb, Access::Memcpy, None), "WB memcpy, cold");
        assert_eq!(Method::Clock { clock: Clock::Rdtscp }.to_string(), "rdtscp");
        assert_eq!(Method::Fence { fence: Fence::Sfence }.to_string(), "sfence alone");
        let line = Method::CacheLines { memory_type: MemoryType::Wb, access: eight, lines: Lines::One };
        assert_eq!(line.to_string(), "WB 8, one line");
    }

    #[test]
    fn labels_of_dma_have_flows_and_parameters() {
        let reach = Reach::default();
        let dma = |words: &[&str]| Method::Dma { flows: flows(words), outstanding: Some(1), reach }.to_string();
        assert_eq!(dma(&["0:host"]), "device-to-host by DMA");
        assert_eq!(dma(&["0:host", "1:host", "2:host", "0:1", "1:0:read"]), "0-2:host 0:1 1:0:read by DMA");
        let relay = Method::Relay { cards: (0..8).collect(), reach };
        assert_eq!(relay.to_string(), "host:0-7:host by DMA, relayed");
        let call = |share, descriptors, completion| {
            Method::DmaCall { flows: flows(&["1:host"]), share, descriptors, completion, reach }.to_string()
        };
        let fetched = call(Share::Call, Descriptors::Fetched, Completion::Interrupt);
        assert_eq!(fetched, "1:host by DMA, fetched call, interrupt");
        let written = Descriptors::Written(MemoryType::Uc);
        assert_eq!(call(Share::Doorbell, written, Completion::Flag), "1:host by DMA, doorbell, flag");
        assert_eq!(call(Share::List, written, Completion::Register), "1:host by DMA, uc list, register");
        let loaded = |words: &[&str]| Method::DmaUnderLoad { flows: flows(words), outstanding: 16, reach }.to_string();
        assert_eq!(loaded(&["host:0"]), "host-to-device by DMA, 16 outstanding");
        assert_eq!(loaded(&["host:0", "host:1", "host:2"]), "host:0 beside host:1-2 by DMA, 16 outstanding");
        let paged = Method::DmaPages {
            flows: flows(&["host:0"]),
            pages: 16,
            reach: Reach { stride_bytes: Some(4096), ..reach },
        };
        assert_eq!(paged.to_string(), "host-to-device by DMA, 16 pages in turn, every 4KiB");
    }

    #[test]
    fn labels_of_runtime_methods_have_the_kind_of_wait() {
        let launch = |kernels, wait, arguments| {
            Method::Launch { kernels, by: LaunchBy::Calls, wait, arguments, pinned: true }.to_string()
        };
        assert_eq!(launch(1, HostWait::Event, None), "launch, wait by event");
        let four = Arguments { count: 4, allocation: Allocation::Device };
        assert_eq!(launch(100, HostWait::Finish, Some(four)), "100 launches with 4 usm, wait by finish");
        let by = |by, kernels| {
            Method::Launch { kernels, by, wait: HostWait::Finish, arguments: None, pinned: true }.to_string()
        };
        assert_eq!(by(LaunchBy::Graph, 1), "graph of 1 kernel, wait by finish");
        assert_eq!(by(LaunchBy::Graph, 256), "graph of 256 kernels, wait by finish");
        assert_eq!(by(LaunchBy::StreamWait, 1), "launch by a word that the stream waits for, wait by finish");
        let (by, wait) = (LaunchBy::Calls, HostWait::Finish);
        let free = Method::Launch { kernels: 1, by, wait, arguments: None, pinned: false };
        assert_eq!(free.to_string(), "launch, wait by finish, unpinned");
        assert_eq!(free.pinned().to_string(), "launch, wait by finish");
        let argument = Method::Argument { wait: HostWait::Event, allocation: Allocation::Host };
        assert_eq!(argument.to_string(), "one more host usm argument, wait by event");
        let copy = |allocation| {
            Method::RuntimeCopy { direction: CopyDirection::ToDevice, wait: HostWait::Event, allocation }.to_string()
        };
        assert_eq!(copy(Allocation::Host), "host usm to device by runtime, wait by event");
        assert_eq!(copy(Allocation::Buffer), "to device by runtime, wait by event");
        let direction = CopyDirection::FromDevice;
        let small = |by| Method::SmallCopies { direction, copies: 16, by }.to_string();
        assert_eq!(small(CopyBy::Loop), "16 from device, a loop of copies");
        let compute = |work| Method::Compute { work, wait: HostWait::Finish }.to_string();
        let stream = ComputeWork::StreamCopy { ports: 2, first_port: 3, vector_words: 4, stride_bytes: 64 };
        assert_eq!(compute(stream), "stream copy 2 ports from 3 on vectors of 4 every 64 B, wait by finish");
        let spmv = ComputeWork::Spmv { matrix: "a_b".to_owned(), kernels: 1, ports_each: 4 };
        assert_eq!(compute(spmv), "spmv a_b 1 kernel 4 ports each, wait by finish");
    }

    #[test]
    fn labels_of_mapping_and_sharing_have_their_parameters() {
        let means =
            Means::Map { strategy: Strategy::FreeList, table: Table::InMemory, invalidation: Invalidation::Strict };
        assert_eq!(Method::MapUnmap { means }.to_string(), "baseline free list, page table strict");
        let discipline = Discipline::Flushed(Flush::Clwb);
        let shared = Method::SharedBuffer { direction: CopyDirection::ToDevice, discipline };
        assert_eq!(shared.to_string(), "to device, flushed by clwb");
    }
}
