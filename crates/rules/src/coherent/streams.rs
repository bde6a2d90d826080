//! Device streams through an I/O TLB: number of misses by address allocation scheme.

use crate::rule::as_text;
use lanemark_coherent::{AdapterTlb, AdapterTlbSpec, PAGE_BYTES, PageEntry, TlbCommand};
use lanemark_dma::{AllocRequest, Device, IovaAllocator, IovaRange, Magazine, Ranges, Space};
use lanemark_sim::{Iotlb, IotlbSpec};
use lanemark_units::{HostPhys, Iova};

/// Load by a number of devices.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Number of devices; they take turns on the bus, one access each.
    pub devices: u32,
    /// Concurrently mapped buffers per device.
    pub buffers: usize,
    /// Number of these that a device moves concurrently, burst by burst in turn; the next buffer is a random one of the rest.
    pub active: usize,
    /// Size of a page-aligned buffer, in bytes.
    pub buffer_bytes: u64,
    /// Size of a burst, in bytes.
    pub burst_bytes: u64,
    /// Percentage of buffers that are moved by 16 B instead of 32 B.
    pub halves_percent: u64,
}

impl Load {
    /// Four disk adapters with four concurrent streams of 32 KiB each, in bursts of 1 KiB, by whole lines.
    pub const DISKS: Load =
        Load { devices: 4, buffers: 16, active: 4, buffer_bytes: 32 << 10, burst_bytes: 1024, halves_percent: 0 };
}

/// Address allocation scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// A chain ID per stream, until none are left.
    ChainIdAStream,
    /// A chain ID per device for all its pages.
    ChainIdADevice,
    /// Ranges of this many pages, in an order in which as many ranges as the TLB has entries share none.
    Ranges(u64),
    /// Magazines, with a set-associative IOTLB.
    Magazines(IotlbSpec),
}

/// Counts in the steady state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub accesses: u64,
    pub misses: u64,
    /// Pages of the buffers, partial ones included.
    pub pages: u64,
    /// Pages of the ranges allocated for them.
    pub held: u64,
    /// Ranges allocated for them.
    pub taken: u64,
    /// Number of moved buffers.
    pub buffers: u64,
}

/// Bits of a block ID; with 8 bits of chain ID, the directory has 2^20 pages.
const BLOCK_BITS: u32 = 12;
/// Entries of the TLB.
const ENTRIES: u64 = 256;
/// Average number of moves of each buffer before counting starts, and during counting.
const ROUNDS: u64 = 8;

/// A TLB of one of the schemes.
enum Tlb {
    Adapter(AdapterTlb),
    Sets(Iotlb),
}

impl Tlb {
    /// Whether the translation was present; inserts it if it was not.
    fn look(&mut self, at: Iova) -> bool {
        match self {
            Tlb::Adapter(tlb) => {
                let is_there = tlb.find(at).is_some();
                if !is_there {
                    tlb.insert(at, PageEntry::default());
                }
                is_there
            }
            Tlb::Sets(tlb) => {
                let page = at.0 / PAGE_BYTES;
                let is_there = tlb.find(page);
                if !is_there {
                    tlb.enter(page);
                }
                is_there
            }
        }
    }

    /// Invalidates the translation of an unmapped page.
    fn purge(&mut self, at: Iova) {
        match self {
            Tlb::Adapter(tlb) => tlb.command(TlbCommand::Purge { at }),
            Tlb::Sets(tlb) => tlb.leave(at.0 / PAGE_BYTES),
        }
    }
}

/// A mapped buffer and its progress.
#[derive(Default)]
struct Buffer {
    pieces: Vec<IovaRange>,
    moved_bytes: u64,
    access_bytes: u64,
}

impl Buffer {
    /// Address of the next access.
    fn at(&self) -> Iova {
        let mut left = self.moved_bytes;
        for piece in &self.pieces {
            if left < piece.len_bytes {
                return Iova(piece.at.0 + left);
            }
            left -= piece.len_bytes;
        }
        Iova(0)
    }
}

/// Device streams in progress.
struct Streams {
    load: Load,
    tlb: Tlb,
    /// One strategy per device, or one for all devices.
    strategies: Vec<Box<dyn IovaAllocator>>,
    found: Found,
    /// State of the random generator, with a fixed seed.
    state: u64,
}

/// Moves every buffer several times, then as many times again with counting; `None` if a buffer cannot be mapped.
///
/// # Errors
/// The error of an allocation strategy for the scheme.
pub fn counted(load: Load, scheme: Scheme) -> Result<Option<Found>, String> {
    let mut streams =
        Streams { load, tlb: tlb(scheme), strategies: strategies(load, scheme)?, found: Found::default(), state: 1 };
    let mut devices = Vec::new();
    for device in 0..load.devices {
        let mut buffers = Vec::new();
        for _ in 0..load.buffers {
            let Some(buffer) = streams.map(device) else { return Ok(None) };
            buffers.push(buffer);
        }
        devices.push(buffers);
    }
    // The first `active` buffers of each device are being moved; `turns` is the index of the next one.
    let mut turns = vec![0; devices.len()];
    for counts in [false, true] {
        streams.found = Found::default();
        let until = ROUNDS * u64::from(load.devices) * load.buffers as u64;
        while streams.found.buffers < until {
            for (device, (buffers, turn)) in (0..).zip(devices.iter_mut().zip(&mut turns)) {
                if streams.access(device, buffers, turn).is_none() {
                    return Ok(None);
                }
            }
        }
        if counts {
            return Ok(Some(streams.found));
        }
    }
    Ok(None)
}

/// An empty TLB of the scheme.
fn tlb(scheme: Scheme) -> Tlb {
    match scheme {
        Scheme::Magazines(spec) => Tlb::Sets(Iotlb::new(spec)),
        _ => Tlb::Adapter(AdapterTlb::new(AdapterTlbSpec {
            entries: ENTRIES,
            chain_bits: ENTRIES.trailing_zeros(),
            block_bits: BLOCK_BITS,
            directory: HostPhys(0),
        })),
    }
}

/// The allocation strategies of a scheme: one per device, or one for all.
fn strategies(load: Load, scheme: Scheme) -> Result<Vec<Box<dyn IovaAllocator>>, String> {
    let all = || Space::of_device(32).map_err(as_text);
    let chain_bytes = PAGE_BYTES << BLOCK_BITS;
    Ok(match scheme {
        Scheme::ChainIdAStream => vec![Box::new(Ranges::of_pages(all()?, 1 << BLOCK_BITS).map_err(as_text)?)],
        Scheme::ChainIdADevice => {
            let pages = load.buffer_bytes.div_ceil(PAGE_BYTES).next_power_of_two();
            let of = |device: u32| {
                let first = u64::from(device) * chain_bytes;
                let space = Space::between(Iova(first), Iova(first + chain_bytes - 1), PAGE_BYTES).map_err(as_text)?;
                Ok(Box::new(Ranges::of_pages(space, pages).map_err(as_text)?) as Box<dyn IovaAllocator>)
            };
            (0..load.devices).map(of).collect::<Result<_, String>>()?
        }
        Scheme::Ranges(pages) => {
            let ranges = Ranges::of_pages(all()?, pages).map_err(as_text)?;
            vec![Box::new(ranges.over_entries(ENTRIES).map_err(as_text)?)]
        }
        Scheme::Magazines(_) => vec![Box::new(Magazine::new(all()?, 1).map_err(as_text)?.core(0).map_err(as_text)?)],
    })
}

impl Streams {
    /// Performs one access of a device in its current stream; `None` if the next buffer cannot be mapped.
    fn access(&mut self, device: u32, buffers: &mut [Buffer], turn: &mut usize) -> Option<()> {
        let active = self.load.active.min(buffers.len());
        let buffer = buffers.get_mut(*turn)?;
        self.found.accesses += 1;
        self.found.misses += u64::from(!self.tlb.look(buffer.at()));
        buffer.moved_bytes += buffer.access_bytes;
        let is_over = buffer.moved_bytes >= self.load.buffer_bytes;
        if buffer.moved_bytes % self.load.burst_bytes != 0 && !is_over {
            return Some(());
        }
        if is_over {
            let done = std::mem::take(buffer);
            self.unmap(device, &done)?;
            *buffers.get_mut(*turn)? = self.map(device)?;
            // A random waiting buffer is next.
            let waiting = (buffers.len() - active) as u64;
            if waiting > 0 {
                let next = active + (self.random() % waiting) as usize;
                buffers.swap(*turn, next);
            }
        }
        *turn = (*turn + 1) % active;
        Some(())
    }

    fn strategy(&mut self, device: u32) -> Option<&mut Box<dyn IovaAllocator>> {
        let place = device as usize % self.strategies.len();
        self.strategies.get_mut(place)
    }

    /// Maps a new buffer, in as many pieces as necessary.
    fn map(&mut self, device: u32) -> Option<Buffer> {
        let access_bytes = if self.random() % 100 < self.load.halves_percent { 16 } else { 32 };
        let mut left = self.load.buffer_bytes;
        let mut pieces = Vec::new();
        self.found.pages += left.div_ceil(PAGE_BYTES);
        while left > 0 {
            let strategy = self.strategy(device)?;
            let len_bytes = left.min(strategy.longest_bytes());
            let piece = strategy.alloc(AllocRequest::bytes(Device(device), len_bytes)).ok()?;
            left -= len_bytes;
            self.found.held += piece.len_bytes / PAGE_BYTES;
            self.found.taken += 1;
            pieces.push(piece);
        }
        Some(Buffer { pieces, moved_bytes: 0, access_bytes })
    }

    /// Unmaps a buffer; `None` if a strategy refuses to free its range.
    fn unmap(&mut self, device: u32, buffer: &Buffer) -> Option<()> {
        self.found.buffers += 1;
        for piece in &buffer.pieces {
            let used = piece.len_bytes.min(self.load.buffer_bytes);
            for page in 0..used.div_ceil(PAGE_BYTES) {
                self.tlb.purge(Iova(piece.at.0 + page * PAGE_BYTES));
            }
            self.strategy(device)?.free(Device(device), *piece).ok()?;
        }
        Some(())
    }

    /// The next random number. Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014), `SplitMix64`.
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(load: Load, scheme: Scheme) -> Found {
        counted(load, scheme).unwrap().unwrap()
    }

    #[test]
    fn streams_without_shared_entries_miss_once_per_page() {
        for scheme in [Scheme::ChainIdAStream, Scheme::Ranges(8)] {
            let found = found(Load::DISKS, scheme);
            // Buffers in progress at the start and end of counting have misses outside of it.
            let streams = u64::from(Load::DISKS.devices) * Load::DISKS.active as u64;
            assert!(found.misses.abs_diff(found.pages) <= 8 * streams, "{scheme:?}: {found:?}");
            assert_eq!(found.buffers, ROUNDS * 4 * 16);
        }
    }

    #[test]
    fn streams_that_share_a_chain_id_miss_with_each_burst() {
        let found_of = |active, burst_bytes| {
            let load = Load { active, burst_bytes, ..Load::DISKS };
            let found = found(load, Scheme::ChainIdADevice);
            (found.misses * 100).div_ceil(found.accesses)
        };
        // A burst of 1 KiB has 32 accesses, one of 512 B has 16, a page has 128.
        assert_eq!([found_of(4, 1024), found_of(4, 512), found_of(1, 1024)], [4, 7, 1]);
    }

    #[test]
    fn chain_ids_per_stream_run_out_at_256_and_ranges_do_not() {
        let load = |buffers| Load { buffers, ..Load::DISKS };
        assert!(counted(load(64), Scheme::ChainIdAStream).unwrap().is_some());
        assert!(counted(load(65), Scheme::ChainIdAStream).unwrap().is_none());
        assert!(counted(load(65), Scheme::Ranges(8)).unwrap().is_some());
    }

    #[test]
    fn buffers_hold_whole_ranges() {
        let of = |buffer_bytes, pages| {
            let found = found(Load { buffer_bytes, ..Load::DISKS }, Scheme::Ranges(pages));
            (found.taken * 10 / found.buffers, found.held / found.pages)
        };
        assert_eq!((of(4096, 8), of(64 << 10, 8), of(64 << 10, 1)), ((10, 8), (20, 1), (160, 1)));
    }

    #[test]
    fn half_lines_double_the_accesses_and_not_the_misses() {
        let whole = found(Load::DISKS, Scheme::Ranges(8));
        let halves = found(Load { halves_percent: 100, ..Load::DISKS }, Scheme::Ranges(8));
        assert!(halves.accesses.abs_diff(2 * whole.accesses) < whole.accesses / 20);
        assert!(halves.misses.abs_diff(whole.misses) < whole.misses / 20);
    }
}
