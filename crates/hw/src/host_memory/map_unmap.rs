//! Memory lent to a device that is not there, by the library that programs use.

use super::NAME;
use crate::x86::sample::{Limits, Stamps, timed};
use lanemark_dma::{
    AccessOrder, Backend, Buffer, DmaError, Domain, FreeList, IovaAllocator, IovaRange, MSI_WINDOW, Magazine, Mapping,
    Nothing, PageTable, Permission, Pool, Ranges, Sequential, Space,
};
use lanemark_machine::{Invalidation, MachineError, MapUnmap, Means, Strategy, Table};
use lanemark_units::{HostPhys, Iova, Ticks};
use rustix::io::Errno;
use std::error::Error;
use std::hint::black_box;
use std::io;

/// Where what is lent lies. Nobody touches it.
const MEMORY: HostPhys = HostPhys(1 << 32);
const PAGE: u64 = 4096;
/// Objects of a pool.
const OBJECTS: u64 = 64;

/// Whoever lends. What it needs is made before the first sample; in one, it does what the library does.
pub(super) trait Mapper {
    /// Times `passes` passes.
    ///
    /// # Errors
    /// What the library says, where it does not lend.
    fn timed(&mut self, limits: &Limits<'_>, first: u64, passes: u64) -> Result<Stamps, MachineError>;
}

/// Makes what `asked` wants: a library of its own, with nothing lent.
///
/// # Errors
/// What the library says.
pub(super) fn lender(asked: MapUnmap) -> Result<Box<dyn Mapper>, MachineError> {
    let MapUnmap { means, bytes, pairs } = asked;
    let Means::Map { strategy, .. } = means else {
        let range = IovaRange { at: Iova(1 << 32), len_bytes: OBJECTS * bytes };
        return Ok(Box::new(Pooled { pool: Pool::over(range, bytes).map_err(refused)?, pairs }));
    };
    let space = Space::of_device(32).and_then(|space| space.without(MSI_WINDOW)).map_err(refused)?;
    match strategy {
        Strategy::Ranges => over(Ranges::new(space).map_err(refused)?, asked),
        Strategy::Sequential => {
            let mut sequential = Sequential::new(Ranges::new(space).map_err(refused)?).map_err(refused)?;
            sequential.set_order(lanemark_dma::Device(0), AccessOrder::Sequential).map_err(refused)?;
            over(sequential, asked)
        }
        Strategy::Magazine => {
            let magazine = Magazine::new(space, 1).map_err(refused)?;
            over(magazine.core(0).map_err(refused)?, asked)
        }
        Strategy::FreeList => over(FreeList::new(space), asked),
    }
}

/// The same with this strategy: a type of its own with either table.
fn over<A: IovaAllocator + 'static>(strategy: A, asked: MapUnmap) -> Result<Box<dyn Mapper>, MachineError> {
    Ok(match asked.means {
        Means::Map { table: Table::InMemory, .. } => Box::new(Mapped::new(strategy, PageTable::new(PAGE), asked)?),
        _ => Box::new(Mapped::new(strategy, Nothing::new(), asked)?),
    })
}

fn refused(error: impl Error + Send + Sync + 'static) -> MachineError {
    MachineError::Os { machine: NAME.to_owned(), doing: "lending memory", source: io::Error::other(error) }
}

/// `passes` passes of `pairs` pairs each. An error of a pair ends the sample.
#[inline(always)]
#[allow(clippy::inline_always)] // As the passes of every other loop are.
fn pairs_timed<E: Error + Send + Sync + 'static>(
    limits: &Limits<'_>,
    first: u64,
    passes: u64,
    pairs: u64,
    mut pair: impl FnMut() -> Result<(), E>,
) -> Result<Stamps, MachineError> {
    let mut trouble = None;
    let stamps = timed(limits, first, passes, |_| {
        for _ in 0..pairs {
            if let Err(error) = pair() {
                trouble = Some(error);
                return Err(Errno::IO);
            }
        }
        Ok(())
    });
    trouble.map_or(Ok(stamps), |error| Err(refused(error)))
}

/// Objects of a pool.
struct Pooled {
    pool: Pool,
    pairs: u64,
}

impl Mapper for Pooled {
    fn timed(&mut self, limits: &Limits<'_>, first: u64, passes: u64) -> Result<Stamps, MachineError> {
        let Pooled { pool, pairs } = self;
        pairs_timed(limits, first, passes, *pairs, || {
            let object = black_box(pool.take()?);
            pool.give_back(object)
        })
    }
}

/// Buffers mapped by a domain.
struct Mapped<A, B> {
    domain: Domain<A, B>,
    lend: lanemark_dma::MapRequest,
    bytes: u64,
    pairs: u64,
    /// Of one buffer, with room for as many as there can be.
    pieces: Vec<Mapping>,
}

impl<A: IovaAllocator, B: Backend<Memory = HostPhys>> Mapped<A, B> {
    fn new(strategy: A, backend: B, asked: MapUnmap) -> Result<Mapped<A, B>, MachineError> {
        let policy = match asked.means {
            Means::Map { invalidation: Invalidation::Deferred, .. } => lanemark_dma::Invalidation::DEFERRED,
            _ => lanemark_dma::Invalidation::Strict,
        };
        // Both ends of a buffer may be pieces of their own.
        let most_pieces = asked.bytes.div_ceil(strategy.longest_bytes()) + 2;
        let mut domain = Domain::new(NAME, strategy, backend, policy).map_err(refused)?;
        let device = domain.attach("nobody").map_err(refused)?;
        Ok(Mapped {
            domain,
            lend: lanemark_dma::MapRequest::new(device, Permission::ReadWrite),
            bytes: asked.bytes,
            pairs: asked.pairs,
            pieces: Vec::with_capacity(most_pieces as usize),
        })
    }

    /// Maps the buffer and unmaps it. No clock is read for it: what is deferred goes when the queue is full.
    #[inline(always)]
    #[allow(clippy::inline_always)] // As above.
    fn pair(&mut self) -> Result<(), DmaError> {
        let mut rest = black_box(Buffer::new(MEMORY, self.bytes));
        while !rest.is_empty() {
            self.pieces.push(self.domain.map(&mut rest, self.lend, Ticks::ZERO)?);
        }
        for piece in self.pieces.drain(..) {
            self.domain.unmap(black_box(piece), Ticks::ZERO)?;
        }
        Ok(())
    }
}

impl<A: IovaAllocator, B: Backend<Memory = HostPhys>> Mapper for Mapped<A, B> {
    fn timed(&mut self, limits: &Limits<'_>, first: u64, passes: u64) -> Result<Stamps, MachineError> {
        pairs_timed(limits, first, passes, self.pairs, || self.pair())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x86::sample::{Delivery, Ending};
    use std::sync::atomic::AtomicBool;

    static NO: AtomicBool = AtomicBool::new(false);

    fn limits() -> Limits<'static> {
        Limits { timeout_cycles: u64::MAX, passes_per_look: 1, interrupted: &NO, delivery: Delivery::Drained }
    }

    fn mapped(strategy: Strategy, invalidation: Invalidation, bytes: u64, pairs: u64) -> MapUnmap {
        MapUnmap { means: Means::Map { strategy, table: Table::InMemory, invalidation }, bytes, pairs }
    }

    #[test]
    fn every_means_lends_every_size_again_and_again() {
        for means in Means::all() {
            for bytes in [1, 64, 4096, 32 << 10, (32 << 10) + 1, 256 << 10] {
                let asked = MapUnmap { means, bytes, pairs: 3 };
                if asked.nonsense().is_some() {
                    continue;
                }
                let stamps = lender(asked).unwrap().timed(&limits(), 0, 2).unwrap();
                assert_eq!(stamps.ending, Ending::Done, "{means} {bytes}");
            }
        }
    }

    #[test]
    fn a_pair_maps_all_of_the_buffer_takes_all_of_it_back_and_finds_room_for_its_pieces() {
        let space = || Space::of_device(32).unwrap();
        for bytes in [1, 4096, (256 << 10) + 100] {
            let asked = mapped(Strategy::Ranges, Invalidation::Strict, bytes, 1);
            let mut lends = Mapped::new(Ranges::new(space()).unwrap(), PageTable::new(PAGE), asked).unwrap();
            let room = lends.pieces.capacity();
            for _ in 0..2 {
                lends.pair().unwrap();
                assert_eq!((lends.domain.live_mappings(), lends.domain.backend().entries()), (0, 0));
            }
            let told = lends.domain.backend().counts();
            // Of a buffer that ends within a line, the last page is a piece of its own.
            let pieces = bytes.div_ceil(32 << 10).max(1);
            assert_eq!((told.entries + told.matching, told.all), (2 * pieces, 0), "{bytes}");
            assert_eq!(lends.pieces.capacity(), room, "nothing is allocated for pieces in a sample");
        }
    }

    #[test]
    fn as_many_pairs_as_the_queue_holds_leave_nothing_in_it() {
        let asked = mapped(Strategy::FreeList, Invalidation::Deferred, 4096, Invalidation::QUEUE);
        let list = FreeList::new(Space::of_device(32).unwrap());
        let mut lends = Mapped::new(list, PageTable::new(PAGE), asked).unwrap();
        lends.timed(&limits(), 0, 1).unwrap();
        assert_eq!((lends.domain.waiting(), lends.domain.backend().counts().all), (0, 1));
        lends.pair().unwrap();
        assert_eq!(lends.domain.waiting(), 1);
    }

    #[test]
    fn what_the_library_refuses_is_the_error_of_the_sample() {
        let page = Space::between(Iova(0), Iova(4095), PAGE).unwrap();
        let asked = mapped(Strategy::FreeList, Invalidation::Strict, 8192, 1);
        let error =
            Mapped::new(FreeList::new(page), Nothing::new(), asked).unwrap().timed(&limits(), 0, 1).unwrap_err();
        assert!(error.to_string().contains("lending memory: "), "{error}");
        assert!(error.to_string().contains("8192 B"), "{error}");
    }
}
