//! The facts of a simulated platform.

use crate::host::coherent_memory::disciplines;
use crate::host::program::load_from;
use crate::host::runtime::Spec;
use lanemark_machine::{
    Access, Allocation, CacheFacts, CopyBy, DeviceKind, DmaFacts, Facts, LaunchBy, LineSource, Region, RegionKind,
    RuntimeFacts, TimeBase, Width,
};
use lanemark_platform::{Dma, Memory, Platform, RegionKind as Kind};
use lanemark_units::{BarOffset, MemoryType, Ticks};

/// Channels of the first card of a relay, which reads and writes concurrently.
pub(super) const RELAY_CHANNELS: u32 = 2;

/// The facts that a simulation of `platform` reports, without a simulation.
///
/// ```
/// use lanemark_machine::Machine;
/// let card = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
/// assert_eq!(&lanemark_sim::facts(&card), lanemark_sim::SimulatedMachine::new(&card).unwrap().facts());
/// ```
#[must_use]
pub fn facts(platform: &Platform) -> Facts {
    let core = &platform.core;
    let vectors = |access: fn(Width) -> Access| {
        [Width::B16, Width::B32, Width::B64]
            .into_iter()
            .filter(|width| width.bytes() <= u64::from(core.vector_bytes.value))
            .map(access)
            .collect::<Vec<_>>()
    };
    let plain: Vec<Access> = [Width::B1, Width::B2, Width::B4, Width::B8].map(Access::Plain).to_vec();
    let copies = [Access::Memcpy, Access::RepMovsb];
    let mut stores = [&plain[..], &vectors(Access::Plain), &copies, &[Access::NonTemporal(Width::B8)]].concat();
    stores.extend(vectors(Access::NonTemporal));
    if core.direct_stores.value {
        stores.extend([Access::Movdiri(Width::B4), Access::Movdiri(Width::B8), Access::Movdir64b]);
    }
    let mut loads = [&plain[..], &vectors(Access::Plain), &copies].concat();
    loads.extend(vectors(Access::NonTemporal));
    let regions = platform.regions.iter().map(|region| Region {
        name: region.name.clone(),
        at: BarOffset { bar: region.bar.value as u8, offset: region.offset_bytes.value },
        len: region.size_bytes.value,
        kind: match region.kind.value {
            Kind::Registers => RegionKind::Registers,
            Kind::Sram | Kind::Ddr => RegionKind::Storage,
            Kind::Fifo => RegionKind::Fifo,
        },
    });
    Facts {
        name: platform.name.clone(),
        summary: platform.summary.clone(),
        time_base: TimeBase::Simulated,
        cores: core.cores.value,
        regions: regions.collect(),
        memory_types: vec![MemoryType::Uc, MemoryType::Wc, MemoryType::Wt, MemoryType::Wp],
        stores,
        loads,
        memcpy: core.memcpy.value.name().to_owned(),
        dma: platform.dma.as_ref().map(|dma| DmaFacts {
            cards: platform.cards(),
            mapped_bytes: platform.bytes_for_plans(),
            has_driver: (0..platform.cards()).all(|card| platform.mailbox(card, 0).is_some()),
            has_flag: true,
            fetches_only: false,
            cache: platform.memory.as_ref().filter(|memory| memory.cached_lines() > 0).map(|memory| CacheFacts {
                bytes: memory.cached_lines() * Memory::LINE_BYTES,
                device_bytes: memory.device_lines() * Memory::LINE_BYTES,
            }),
            is_partial_dearer: platform
                .memory
                .as_ref()
                .is_some_and(|memory| memory.partial_line_ns.value > Ticks::ZERO),
            has_remote: platform.memory.as_ref().is_some_and(|memory| memory.remote_ns.value > Ticks::ZERO),
            page_bytes: platform.iommu.as_ref().filter(|iommu| iommu.translates()).map(|iommu| iommu.page_bytes.value),
            tags: dma.tags.value,
            channels: dma.channels.value,
            peer: None,
            relays_at: relays_at(platform),
        }),
        tables: vec![],
        disciplines: disciplines(platform),
        line_sources: LineSource::ALL
            .into_iter()
            .filter(|holder| load_from(&platform.loads(), *holder).is_some())
            .collect(),
        runtime: runtime(platform),
        driver_width: platform.driver.as_ref().and_then(|driver| {
            Width::ALL.into_iter().find(|width| width.bytes() == u64::from(driver.copy_bytes.value))
        }),
    }
}

/// Returns whether an engine reads and writes concurrently, as the first card of a relay does.
pub(super) fn can_relay(dma: &Dma) -> bool {
    dma.channels.value >= RELAY_CHANNELS || dma.full_duplex.value
}

/// Returns the address at which a card that can relay receives writes of other cards.
fn relays_at(platform: &Platform) -> Option<BarOffset> {
    let region = platform.region(&platform.fifos.as_ref()?.ep_rx)?;
    can_relay(platform.dma.as_ref()?)
        .then_some(BarOffset { bar: region.bar.value as u8, offset: region.offset_bytes.value })
}

/// Memory of a simulated runtime: that of OpenCL and SYCL. Memory that the driver has locked otherwise costs the same.
const ALLOCATIONS: [Allocation; 4] = [Allocation::Buffer, Allocation::Device, Allocation::Host, Allocation::Mapped];

/// Methods of a simulated runtime for many pieces; loads and stores through a BAR are questions of their own.
const SMALL_COPIES: [CopyBy; 4] = [CopyBy::Loop, CopyBy::Batch, CopyBy::Packed, CopyBy::InPlace];

/// Returns the runtime facts; without a section `[runtime]`, nothing is launched or copied.
fn runtime(platform: &Platform) -> Option<RuntimeFacts> {
    let kernels = platform.device_memory.as_ref().filter(|_| platform.kernel.is_some());
    let (runtime, ports) = (Spec::new(platform), kernels.map(|memory| memory.ports.value));
    (runtime.is_some() || ports.is_some()).then(|| RuntimeFacts {
        kind: DeviceKind::Accelerator,
        is_emulated: false,
        allocations: runtime.as_ref().map_or_else(Vec::new, |_| ALLOCATIONS.to_vec()),
        launches: vec![LaunchBy::Calls],
        small_copies: runtime
            .map_or_else(Vec::new, |runtime| if runtime.copies_pieces() { SMALL_COPIES.to_vec() } else { Vec::new() }),
        memory_ports: ports.unwrap_or(1),
        computes: ports.is_some(),
    })
}
