//! DMA mappings of memory, made by the library that programs use: for a device that does not exist, or by an IOMMU.

use crate::x86::run::Clock;
use crate::x86::sample::{Limits, Stamps, timed};
use lanemark_dma::{
    AccessOrder, AllocRequest, Attributes, Backend, Buffer, DmaError, Domain, FreeList, IovaAllocator, IovaRange,
    MSI_WINDOW, Magazine, Mapping, NullBackend, PageTable, Permission, Pool, Ranges, Sequential, Space,
};
use lanemark_machine::{BounceBuffer, Invalidation, MachineError, MapUnmap, Means, Strategy, Table};
use lanemark_units::{HostPhys, Iova, Ticks};
use rustix::io::Errno;
use std::error::Error;
use std::hint::black_box;
use std::io;

/// Address of the mapped memory, which is never accessed.
const MEMORY: HostPhys = HostPhys(1 << 32);
const PAGE: u64 = 4096;
/// Number of objects in a pool.
const OBJECTS: u64 = 64;

/// Error of the library.
pub(crate) type LibraryError = Box<dyn Error + Send + Sync>;

/// Maps and unmaps memory. Everything is allocated before the first sample; a sample contains only library calls.
pub(crate) trait Mapper {
    /// Times `passes` iterations.
    ///
    /// # Errors
    /// Errors of the library.
    fn timed(&mut self, limits: &Limits<'_>, first: u64, passes: u64) -> Result<Stamps, LibraryError>;

    /// Clock of the times.
    fn clock(&self) -> Clock {
        Clock::Program
    }

    /// The use of a bounce buffer, if it is known.
    fn bounce_buffer(&self) -> Option<BounceBuffer> {
        None
    }
}

/// Creates a mapper for `asked`, for a device that does not exist, with an instance of the library of its own and no
/// mappings.
///
/// # Errors
/// Errors of the library.
pub(crate) fn mapper(asked: MapUnmap) -> Result<Box<dyn Mapper>, LibraryError> {
    let space = Space::of_device(32)?.without(MSI_WINDOW)?;
    match asked.means {
        Means::Map { table: Table::InMemory, .. } => mapper_by(asked, space, MEMORY, PageTable::new(PAGE)),
        _ => mapper_by(asked, space, MEMORY, NullBackend::new()),
    }
}

/// Creates a mapper of `memory` by `backend`, which has no mappings.
///
/// # Errors
/// Errors of the library.
pub(crate) fn mapper_by<B: Backend + 'static>(
    asked: MapUnmap,
    space: Space,
    memory: B::Memory,
    backend: B,
) -> Result<Box<dyn Mapper>, LibraryError> {
    /// Creates a mapper with this strategy, as a type of its own.
    fn over<A: IovaAllocator + 'static, B: Backend + 'static>(
        strategy: A,
        backend: B,
        memory: B::Memory,
        asked: MapUnmap,
    ) -> Result<Box<dyn Mapper>, LibraryError> {
        Ok(Box::new(Mapped::new(strategy, backend, memory, asked)?))
    }
    let MapUnmap { means, bytes, pairs } = asked;
    let strategy = match means {
        Means::Map { strategy, .. } => strategy,
        Means::Pool => {
            let range = IovaRange { at: Iova(1 << 32), len_bytes: OBJECTS * bytes };
            return Ok(Box::new(Pooled { pool: Pool::over(range, bytes)?, pairs }));
        }
        Means::Kernel { .. } => return Err("the kernel maps through its module only".into()),
    };
    match strategy {
        Strategy::Ranges => over(Ranges::new(space)?, backend, memory, asked),
        Strategy::Sequential => {
            let mut sequential = Sequential::new(Ranges::new(space)?)?;
            sequential.set_order(lanemark_dma::Device(0), AccessOrder::Sequential)?;
            over(sequential, backend, memory, asked)
        }
        Strategy::Magazine => over(Magazine::new(space, 1)?.core(0)?, backend, memory, asked),
        Strategy::FreeList => over(FreeList::new(space), backend, memory, asked),
        Strategy::Fixed => Ok(Box::new(Fixed::new(&space, backend, memory, asked)?)),
    }
}

/// Error of a machine for an error of the library.
pub(crate) fn refused(machine: &str, error: LibraryError) -> MachineError {
    MachineError::Os { machine: machine.to_owned(), doing: "mapping memory for DMA", source: io::Error::other(error) }
}

/// Times `passes` iterations of `pairs` pairs each. An error in a pair ends the sample.
#[inline(always)]
#[allow(clippy::inline_always)] // The bodies of all measurement loops are inlined.
pub(crate) fn pairs_timed<E: Error + Send + Sync + 'static>(
    limits: &Limits<'_>,
    first: u64,
    passes: u64,
    pairs: u64,
    mut pair: impl FnMut() -> Result<(), E>,
) -> Result<Stamps, LibraryError> {
    let mut failure = None;
    let stamps = timed(limits, first, passes, |_| {
        for _ in 0..pairs {
            if let Err(error) = pair() {
                failure = Some(error);
                return Err(Errno::IO);
            }
        }
        Ok(())
    });
    failure.map_or(Ok(stamps), |error| Err(error.into()))
}

/// Mapper that takes objects from a pool and returns them.
struct Pooled {
    pool: Pool,
    pairs: u64,
}

impl Mapper for Pooled {
    fn timed(&mut self, limits: &Limits<'_>, first: u64, passes: u64) -> Result<Stamps, LibraryError> {
        let Pooled { pool, pairs } = self;
        pairs_timed(limits, first, passes, *pairs, || {
            let object = black_box(pool.take()?);
            pool.give_back(object)
        })
    }
}

/// Mapper that maps buffers in a domain.
struct Mapped<A, B: Backend> {
    domain: Domain<A, B>,
    memory: B::Memory,
    request: lanemark_dma::MapRequest,
    bytes: u64,
    pairs: u64,
    /// Mappings of the current buffer, with enough capacity for any.
    mappings: Vec<Mapping>,
}

impl<A: IovaAllocator, B: Backend> Mapped<A, B> {
    fn new(strategy: A, backend: B, memory: B::Memory, asked: MapUnmap) -> Result<Mapped<A, B>, LibraryError> {
        let policy = match asked.means {
            Means::Map { invalidation: Invalidation::Deferred, .. } => lanemark_dma::Invalidation::DEFERRED,
            _ => lanemark_dma::Invalidation::Strict,
        };
        // Both ends of a buffer may need a mapping of their own.
        let most_mappings = asked.bytes.div_ceil(strategy.longest_bytes()) + 2;
        let mut domain = Domain::new("dma_map_cost", strategy, backend, policy)?;
        let device = domain.attach("a device")?;
        Ok(Mapped {
            domain,
            memory,
            request: lanemark_dma::MapRequest::new(device, Permission::ReadWrite),
            bytes: asked.bytes,
            pairs: asked.pairs,
            mappings: Vec::with_capacity(most_mappings as usize),
        })
    }

    /// Maps the buffer and unmaps it. Time does not advance: deferred invalidations are issued when the queue is full.
    #[inline(always)]
    #[allow(clippy::inline_always)] // The bodies of all measurement loops are inlined.
    fn pair(&mut self) -> Result<(), DmaError> {
        let mut rest = black_box(Buffer::new(self.memory, self.bytes));
        while !rest.is_empty() {
            self.mappings.push(self.domain.map(&mut rest, self.request, Ticks::ZERO)?);
        }
        for mapping in &self.mappings {
            self.domain.unmap(black_box(*mapping), Ticks::ZERO)?;
        }
        self.mappings.clear();
        Ok(())
    }
}

impl<A: IovaAllocator, B: Backend> Mapper for Mapped<A, B> {
    fn timed(&mut self, limits: &Limits<'_>, first: u64, passes: u64) -> Result<Stamps, LibraryError> {
        let pairs = self.pairs;
        let stamps = pairs_timed(limits, first, passes, pairs, || self.pair());
        if stamps.is_err() {
            // What is still mapped would collide with the next run on the same IOMMU. The error that is returned came first.
            for mapping in self.mappings.drain(..) {
                let _ = self.domain.unmap(mapping, Ticks::ZERO);
            }
        }
        stamps
    }
}

/// Mapper that maps the whole buffer at a fixed address: the cost of the backend alone.
struct Fixed<B: Backend> {
    backend: B,
    memory: B::Memory,
    range: IovaRange,
    attributes: Attributes,
    pairs: u64,
}

impl<B: Backend> Fixed<B> {
    fn new(space: &Space, backend: B, memory: B::Memory, asked: MapUnmap) -> Result<Fixed<B>, LibraryError> {
        let device = lanemark_dma::Device(0);
        let len_bytes = asked.bytes.next_multiple_of(space.page_bytes());
        let range = FreeList::new(space.clone()).alloc(AllocRequest::bytes(device, len_bytes))?;
        let attributes = lanemark_dma::MapRequest::new(device, Permission::ReadWrite).attributes();
        Ok(Fixed { backend, memory, range, attributes, pairs: asked.pairs })
    }
}

impl<B: Backend> Mapper for Fixed<B> {
    fn timed(&mut self, limits: &Limits<'_>, first: u64, passes: u64) -> Result<Stamps, LibraryError> {
        let Fixed { backend, memory, range, attributes, pairs } = self;
        pairs_timed(limits, first, passes, *pairs, || {
            backend.map(black_box(*range), *memory, *attributes)?;
            backend.unmap(black_box(*range))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x86::sample::{Delivery, Ending};
    use std::sync::atomic::AtomicBool;

    static NO: AtomicBool = AtomicBool::new(false);

    fn limits() -> Limits<'static> {
        Limits { timeout_cycles: u64::MAX, passes_per_check: 1, interrupted: &NO, delivery: Delivery::Drained }
    }

    fn mapped(strategy: Strategy, invalidation: Invalidation, bytes: u64, pairs: u64) -> MapUnmap {
        MapUnmap { means: Means::Map { strategy, table: Table::InMemory, invalidation }, bytes, pairs }
    }

    #[test]
    fn every_means_maps_every_size_repeatedly() {
        for means in Means::with(&[Table::Nothing, Table::InMemory]) {
            for bytes in [1, 64, 4096, 32 << 10, (32 << 10) + 1, 256 << 10] {
                let asked = MapUnmap { means, bytes, pairs: 3 };
                if asked.check().is_err() {
                    continue;
                }
                let stamps = mapper(asked).unwrap().timed(&limits(), 0, 2).unwrap();
                assert_eq!(stamps.ending, Ending::Done, "{means} {bytes}");
            }
        }
    }

    #[test]
    fn a_pair_maps_and_unmaps_the_whole_buffer_without_allocating() {
        let space = || Space::of_device(32).unwrap();
        for bytes in [1, 4096, (256 << 10) + 100] {
            let asked = mapped(Strategy::Ranges, Invalidation::Strict, bytes, 1);
            let mut mapped = Mapped::new(Ranges::new(space()).unwrap(), PageTable::new(PAGE), MEMORY, asked).unwrap();
            let capacity = mapped.mappings.capacity();
            for _ in 0..2 {
                mapped.pair().unwrap();
                assert_eq!((mapped.domain.live_mappings(), mapped.domain.backend().entries()), (0, 0));
            }
            let counts = mapped.domain.backend().counts();
            // If a buffer ends within a line, its last page is a mapping of its own.
            let mappings = bytes.div_ceil(32 << 10).max(1);
            assert_eq!((counts.entries + counts.matching, counts.all), (2 * mappings, 0), "{bytes}");
            assert_eq!(mapped.mappings.capacity(), capacity, "a sample must not allocate");
        }
    }

    #[test]
    fn a_fixed_address_is_mapped_and_unmapped_as_a_whole_each_time() {
        let space = Space::of_device(32).unwrap();
        for (bytes, pages) in [(1, 1), (4096, 1), ((256 << 10) + 100, 65)] {
            let asked = mapped(Strategy::Fixed, Invalidation::Strict, bytes, 3);
            let mut fixed = Fixed::new(&space, PageTable::new(PAGE), MEMORY, asked).unwrap();
            assert_eq!(fixed.range.len_bytes, pages * PAGE);
            assert_eq!(fixed.timed(&limits(), 0, 2).unwrap().ending, Ending::Done);
            assert_eq!(fixed.backend.entries(), 0, "{bytes}");
            fixed.backend.map(fixed.range, MEMORY, fixed.attributes).unwrap();
            let error = fixed.timed(&limits(), 0, 1).unwrap_err().to_string();
            assert!(error.contains("mapped"), "{error}");
        }
    }

    #[test]
    fn a_full_queue_is_flushed_and_left_empty() {
        let asked = mapped(Strategy::FreeList, Invalidation::Deferred, 4096, Invalidation::QUEUE);
        let list = FreeList::new(Space::of_device(32).unwrap());
        let mut mapped = Mapped::new(list, PageTable::new(PAGE), MEMORY, asked).unwrap();
        mapped.timed(&limits(), 0, 1).unwrap();
        assert_eq!((mapped.domain.waiting(), mapped.domain.backend().counts().all), (0, 1));
        mapped.pair().unwrap();
        assert_eq!(mapped.domain.waiting(), 1);
    }

    #[test]
    fn an_error_of_the_library_is_the_error_of_the_sample() {
        let page = Space::between(Iova(0), Iova(4095), PAGE).unwrap();
        let asked = mapped(Strategy::FreeList, Invalidation::Strict, 8192, 1);
        let error = Mapped::new(FreeList::new(page), NullBackend::new(), MEMORY, asked)
            .unwrap()
            .timed(&limits(), 0, 1)
            .unwrap_err();
        let error = refused("host", error);
        assert!(error.to_string().contains("mapping memory for DMA: "), "{error}");
        assert!(error.to_string().contains("8192 contiguous bytes"), "{error}");
    }
}
