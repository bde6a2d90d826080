//! CPUs, memory types, IOMMU and kernel of a machine.

use crate::{CpuSet, IommuFault, Seen, Why};
use lanemark_units::{HostPhys, MemoryType};

/// The CPUs of the machine.
#[derive(Clone, PartialEq, Debug)]
pub struct Processors {
    /// CPUID vendor: `GenuineIntel`, `AuthenticAMD`, ...
    pub vendor: Seen<String>,
    /// CPUID brand string.
    pub model: Seen<String>,
    /// CPUID family, model and stepping.
    pub signature: Seen<(u32, u32, u32)>,
    /// Microcode revision.
    pub microcode: Seen<u64>,
    /// Feature flags as named by the kernel, sorted.
    pub flags: Seen<Vec<String>>,
    /// Online CPUs.
    pub online: Seen<CpuSet>,
    /// Number of sockets.
    pub sockets: Seen<u32>,
    /// Sockets with their CPUs, by number.
    pub packages: Seen<Vec<Package>>,
    /// NUMA nodes, by number.
    pub nodes: Seen<Vec<NumaNode>>,
    /// Cpufreq governors with their CPUs; empty without cpufreq.
    pub governors: Seen<Vec<Governor>>,
    /// Idle states of the first online CPU.
    pub idle_states: Seen<Vec<IdleState>>,
}

/// A socket with its online CPUs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Package {
    /// Physical package ID.
    pub number: u32,
    /// Its CPUs.
    pub cpus: CpuSet,
    /// The first SMT thread of each core; empty if the topology is unknown.
    pub first_threads: CpuSet,
}

/// A NUMA node.
#[derive(Clone, PartialEq, Debug)]
pub struct NumaNode {
    /// Node number.
    pub number: u32,
    /// Its CPUs.
    pub cpus: Seen<CpuSet>,
    /// Size of its memory.
    pub memory_bytes: Seen<u64>,
    /// SLIT distances to the online nodes, in ascending order of nodes; 10 to itself.
    pub distances: Seen<Vec<u32>>,
}

/// A cpufreq governor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Governor {
    /// Name: `performance`, `powersave`, `schedutil`, ...
    pub name: String,
    /// Cpufreq driver, such as `intel_pstate`.
    pub driver: Seen<String>,
    /// CPUs with this governor.
    pub cpus: CpuSet,
}

/// A CPU idle state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdleState {
    /// Name: `POLL`, `C1E`, `C6`, ...
    pub name: String,
    /// Exit latency.
    pub exit_latency_us: Seen<u64>,
    /// Whether it is disabled.
    pub disabled: Seen<bool>,
}

/// A variable-range MTRR, from `/proc/mtrr`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mtrr {
    /// Register number.
    pub number: u32,
    /// Start of the range.
    pub base: HostPhys,
    /// Length of the range.
    pub bytes: u64,
    /// Memory type.
    pub memory_type: MemoryType,
}

/// The Page Attribute Table as configured by the kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Pat {
    /// Encodings of the eight entries (0 UC, 1 WC, 4 WT, 5 WP, 6 WB, 7 UC-), in the form that
    /// `lanemark_platform::memory_type::Pat::from_encoding` takes.
    pub entries: Seen<[u8; 8]>,
    /// Mapped ranges, sorted by start (`/sys/kernel/debug/x86/pat_memtype_list`).
    pub mapped: Seen<Vec<PatRange>>,
}

/// A range mapped with one PAT memory type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PatRange {
    /// Start of the range.
    pub base: HostPhys,
    /// Length of the range.
    pub bytes: u64,
    /// Memory type: 0 UC, 1 WC, 4 WT, 5 WP, 6 WB, 7 UC-.
    pub encoding: u8,
}

/// The IOMMU of the machine.
#[derive(Clone, PartialEq, Debug)]
pub struct Iommu {
    /// IOMMU units as named by the kernel: `dmar0`, `ivhd0`, ...; empty without an IOMMU.
    pub units: Seen<Vec<String>>,
    /// Number of IOMMU groups.
    pub groups: Seen<u32>,
    /// Refused requests in the kernel's log, by function and kind.
    pub faults: Seen<Vec<IommuFault>>,
}

/// The kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Kernel {
    /// Release, such as `6.12.4-amd64`.
    pub release: Seen<String>,
    /// Command line.
    pub command_line: Seen<String>,
    /// Lockdown mode: `none`, `integrity` or `confidentiality`; `Known(None)` if the kernel has no lockdown.
    pub lockdown: Seen<Option<String>>,
    /// ASPM policy: `default`, `performance`, `powersave`, ...
    pub aspm_policy: Seen<String>,
}

impl Processors {
    /// A value with every fact unseen, for `why`.
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
    /// A value with every fact unseen, for `why`.
    #[must_use]
    pub fn unseen(why: &Why) -> Pat {
        Pat { entries: Seen::Unseen(why.clone()), mapped: Seen::Unseen(why.clone()) }
    }
}

impl Iommu {
    /// A value with every fact unseen, for `why`.
    #[must_use]
    pub fn unseen(why: &Why) -> Iommu {
        Iommu { units: Seen::Unseen(why.clone()), groups: Seen::Unseen(why.clone()), faults: Seen::Unseen(why.clone()) }
    }
}

impl Kernel {
    /// A value with every fact unseen, for `why`.
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
