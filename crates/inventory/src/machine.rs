//! The side of the processors: what lies between a core and the first bus.

use crate::{CpuSet, Seen, Why};
use lanemark_units::{HostPhys, MemoryType};

/// The processors of the machine.
#[derive(Clone, PartialEq, Debug)]
pub struct Processors {
    /// `GenuineIntel`, `AuthenticAMD`, ...
    pub vendor: Seen<String>,
    /// The name the processor gives itself.
    pub model: Seen<String>,
    /// Family, model and stepping.
    pub signature: Seen<(u32, u32, u32)>,
    /// The revision of its microcode.
    pub microcode: Seen<u64>,
    /// Features as the kernel names them, sorted.
    pub flags: Seen<Vec<String>>,
    /// Processors that are on.
    pub online: Seen<CpuSet>,
    /// How many sockets they are in.
    pub sockets: Seen<u32>,
    /// The same, each with its processors, by number.
    pub packages: Seen<Vec<Package>>,
    /// NUMA nodes, by number.
    pub nodes: Seen<Vec<NumaNode>>,
    /// Governors of the frequency, each with the processors it governs; empty where there are none.
    pub governors: Seen<Vec<Governor>>,
    /// Idle states of the first processor that is on.
    pub idle_states: Seen<Vec<IdleState>>,
}

/// A socket with processors that are on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Package {
    /// Its number.
    pub number: u32,
    /// Its processors.
    pub cpus: CpuSet,
    /// Those of them that are the first thread of their core; empty where the system does not tell which share one.
    pub first_threads: CpuSet,
}

/// A NUMA node.
#[derive(Clone, PartialEq, Debug)]
pub struct NumaNode {
    /// Its number.
    pub number: u32,
    /// Its processors.
    pub cpus: Seen<CpuSet>,
    /// Its memory.
    pub memory_bytes: Seen<u64>,
    /// Distances to the nodes that are on, in their order and without gaps, 10 to itself.
    pub distances: Seen<Vec<u32>>,
}

/// A governor of the frequency.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Governor {
    /// Its name: `performance`, `powersave`, `schedutil`, ...
    pub name: String,
    /// The driver below it, such as `intel_pstate`.
    pub driver: Seen<String>,
    /// The processors it governs.
    pub cpus: CpuSet,
}

/// An idle state of a processor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdleState {
    /// Its name: `POLL`, `C1E`, `C6`, ...
    pub name: String,
    /// The time to wake from it.
    pub exit_latency_us: Seen<u64>,
    /// Whether it is switched off.
    pub disabled: Seen<bool>,
}

/// A variable memory type range register, as `/proc/mtrr` shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mtrr {
    /// Its number.
    pub number: u32,
    /// Where the range begins.
    pub base: HostPhys,
    /// How long it is.
    pub bytes: u64,
    /// Its memory type.
    pub memory_type: MemoryType,
}

/// What the kernel chose through the page attribute table.
#[derive(Clone, PartialEq, Debug)]
pub struct Pat {
    /// The encodings of the eight entries (0 UC, 1 WC, 4 WT, 5 WP, 6 WB, 7 UC-), as
    /// `lanemark_platform::memory_type::Pat::from_encoding` takes them.
    pub entries: Seen<[u8; 8]>,
    /// Ranges that are mapped now, sorted by begin (`/sys/kernel/debug/x86/pat_memtype_list`).
    pub mapped: Seen<Vec<PatRange>>,
}

/// A range that is mapped with one encoding of the page attribute table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PatRange {
    /// Where it begins.
    pub base: HostPhys,
    /// How long it is.
    pub bytes: u64,
    /// 0 UC, 1 WC, 4 WT, 5 WP, 6 WB, 7 UC-.
    pub encoding: u8,
}

/// The IOMMU of the machine.
#[derive(Clone, PartialEq, Debug)]
pub struct Iommu {
    /// Units as the kernel names them: `dmar0`, `ivhd0`, ...; empty where there are none.
    pub units: Seen<Vec<String>>,
    /// How many groups there are.
    pub groups: Seen<u32>,
}

/// The kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Kernel {
    /// Its release, such as `6.12.4-amd64`.
    pub release: Seen<String>,
    /// Its command line.
    pub command_line: Seen<String>,
    /// `none`, `integrity` or `confidentiality`; `Known(None)` where the kernel has no lockdown.
    pub lockdown: Seen<Option<String>>,
    /// Policy for active state power management: `default`, `performance`, `powersave`, ...
    pub aspm_policy: Seen<String>,
}

impl Processors {
    /// Those of a machine of which nothing is seen.
    #[must_use]
    pub fn unseen(why: &Why) -> Processors {
        Processors {
            vendor: Seen::Unseen(why.clone()),
            model: Seen::Unseen(why.clone()),
            signature: Seen::Unseen(why.clone()),
            microcode: Seen::Unseen(why.clone()),
            flags: Seen::Unseen(why.clone()),
            online: Seen::Unseen(why.clone()),
            sockets: Seen::Unseen(why.clone()),
            packages: Seen::Unseen(why.clone()),
            nodes: Seen::Unseen(why.clone()),
            governors: Seen::Unseen(why.clone()),
            idle_states: Seen::Unseen(why.clone()),
        }
    }
}

impl Pat {
    /// That of a machine of which nothing is seen.
    #[must_use]
    pub fn unseen(why: &Why) -> Pat {
        Pat { entries: Seen::Unseen(why.clone()), mapped: Seen::Unseen(why.clone()) }
    }
}

impl Iommu {
    /// That of a machine of which nothing is seen.
    #[must_use]
    pub fn unseen(why: &Why) -> Iommu {
        Iommu { units: Seen::Unseen(why.clone()), groups: Seen::Unseen(why.clone()) }
    }
}

impl Kernel {
    /// That of a machine of which nothing is seen.
    #[must_use]
    pub fn unseen(why: &Why) -> Kernel {
        Kernel {
            release: Seen::Unseen(why.clone()),
            command_line: Seen::Unseen(why.clone()),
            lockdown: Seen::Unseen(why.clone()),
            aspm_policy: Seen::Unseen(why.clone()),
        }
    }
}
