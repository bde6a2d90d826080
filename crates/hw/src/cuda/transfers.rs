//! DMA transfers by the processors of the device.

#![allow(unsafe_code)]

use super::context::{Context, LONGEST};
use super::error::CudaError;
use super::kernel::Kernel;
use super::memory::{DeviceMemory, HostMemory, Pinned};
use super::ptx::{self, THREADS, UNIT_BYTES};
use super::walk::Walk;
use crate::runtime_common::contents::{FACTOR, content, sum_of};
use crate::x86::flush::flush_lines;
use lanemark_machine::{Confirmed, Partner, Pattern, Sample, Transfer, Verb, Window, Writer};
use lanemark_units::Ticks;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

/// Kernels and memory of transfers; kept for the next plan as far as it can use them.
#[derive(Debug)]
pub(super) struct Transfers {
    context: Arc<Context>,
    /// Kernel per unit, in the order of [`UNIT_BYTES`].
    kernels: [Option<Kernel>; UNIT_BYTES.len()],
    /// Host memory that the device reads and writes.
    host: Option<HostMemory>,
    /// Times of the last launch, as the kernel writes them.
    times: DeviceMemory,
    /// A sum per thread.
    sums: Option<DeviceMemory>,
}

/// Transfers of one plan.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// Reads, writes, or both at once.
    pub(super) transfers: Vec<Transfer>,
    /// Last writer of the host memory before a sample.
    pub(super) written_by: Writer,
}

/// A job as the kernel takes it; the kernel names the places of the fields.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default)]
struct Parameter {
    base: u64,
    times: u64,
    sums: u64,
    count: u64,
    bytes: u64,
    slices: u64,
    places: u64,
    step: u64,
    steps: [u64; 3],
    warps: u32,
    is_shared: u32,
    is_random: u32,
    is_write: u32,
    zero: u32,
    factor: u32,
    summand: u32,
    _unused: [u32; 3],
}

impl Parameter {
    /// The job of a walk through memory from `base` on.
    fn new(walk: &Walk, base: u64, times: &DeviceMemory, sums: &DeviceMemory, summand: u32) -> Parameter {
        let Transfer { window, bytes, verb, .. } = walk.transfer;
        Parameter {
            base,
            times: times.at,
            sums: sums.at,
            count: walk.count,
            bytes,
            slices: walk.slices,
            places: window.places(bytes),
            step: window.step(bytes),
            steps: walk.steps(),
            warps: walk.warps,
            is_shared: walk.is_shared.into(),
            is_random: window.pattern.is_random().into(),
            is_write: (verb == Verb::Store).into(),
            zero: 0,
            factor: FACTOR,
            summand,
            _unused: [0; 3],
        }
    }
}

const _: () = assert!(size_of::<Parameter>() == 128, "the kernel expects 128 B");

/// Summand of contents that no transfer stores.
const STALE: u32 = 0x5A5A_0000;
/// Window up to which a core writes it again before each sample.
const REWRITTEN_BYTES: u64 = 64 << 20;
/// Bytes of the times: start, issue and delivery, and the number of warps whose writes are issued.
const TIMES_BYTES: usize = 32;

impl Transfers {
    /// Allocates the place of the times; kernels are compiled when first needed.
    ///
    /// # Errors
    /// Errors of the driver.
    pub(super) fn new(context: &Arc<Context>) -> Result<Transfers, CudaError> {
        let times = DeviceMemory::new(context, TIMES_BYTES)?;
        let kernels = [const { None }; UNIT_BYTES.len()];
        Ok(Transfers { context: Arc::clone(context), kernels, host: None, times, sums: None })
    }

    /// Prepares transfers of a plan with some iterations of warm-up and some in a sample.
    ///
    /// # Errors
    /// Errors of the driver.
    pub(super) fn prepare(
        &mut self,
        asked: &Asked,
        [warmup_passes, passes]: [u64; 2],
        number: u64,
    ) -> Result<Prepared<'_>, CudaError> {
        let jobs = asked.transfers.len().max(1) as u32;
        let device = &self.context.device;
        let most_warps = (device.multiprocessors.saturating_mul(device.blocks_per_multiprocessor) / jobs).max(1);
        let walk = |transfer: &Transfer, passes: u64| {
            Walk::new(*transfer, transfer.count.saturating_mul(passes), most_warps)
                .ok_or_else(|| CudaError::System("a transfer is no multiple of 4 B".to_owned()))
        };
        let walks: Vec<Walk> = asked.transfers.iter().map(|one| walk(one, passes)).collect::<Result<_, _>>()?;
        // One kernel for all jobs, so all use the smallest unit.
        let unit = walks.iter().map(|walk| walk.unit).min().unwrap_or(UNIT_BYTES[0]);
        let place = UNIT_BYTES.iter().position(|bytes| *bytes == unit).unwrap_or(0);
        let walks: Vec<Walk> = walks.into_iter().map(|walk| walk.with_unit(unit, most_warps)).collect();
        let before = |walk: &Walk| {
            let count = walk.transfer.count.saturating_mul(warmup_passes);
            Walk { count, ..*walk }.with_unit(unit, most_warps)
        };
        let warm_up = if warmup_passes > 0 { walks.iter().map(before).collect() } else { Vec::new() };
        if self.kernels[place].is_none() {
            self.kernels[place] = Some(Kernel::new(&self.context, "transfers", &ptx::transfers(unit))?);
        }
        let end = |transfer: &Transfer| transfer.window.offset.saturating_add(transfer.window.len);
        let len = asked.transfers.iter().map(end).max().unwrap_or(1).max(4096) as usize;
        if self.host.as_ref().is_none_or(|memory| memory.len < len) {
            self.host = None;
            self.host = Some(HostMemory::new(&self.context, len, Pinned::Plain)?);
        }
        let sums_len = (most_warps * THREADS) as usize * 4;
        if self.sums.as_ref().is_none_or(|memory| memory.len < sums_len) {
            self.sums = Some(DeviceMemory::new(&self.context, sums_len)?);
        }
        let (Some(kernel), Some(host), Some(sums)) = (&self.kernels[place], &mut self.host, &self.sums) else {
            return Err(CudaError::System("memory of transfers is missing".to_owned()));
        };
        let (context, times) = (&self.context, &self.times);
        // The contents differ from those of earlier runs, so that stale data show.
        let summand = (number as u32).wrapping_mul(0x85EB_CA6B).wrapping_add(1);
        let prepared =
            Prepared { context, kernel, host, times, sums, warm_up, walks, written_by: asked.written_by, summand };
        Ok(prepared)
    }
}

impl Transfers {
    /// Latencies of random reads of these sizes (multiples of 16 B) from memory of the device, in a window of 4 MiB.
    ///
    /// # Errors
    /// Errors of the driver.
    pub(super) fn own_reads<const SIZES: usize>(&mut self, sizes: [u64; SIZES]) -> Result<[Ticks; SIZES], CudaError> {
        const READS: u64 = 4096;
        let window = Window { offset: 0, len: 4 << 20, pattern: Pattern::Random };
        let memory = DeviceMemory::new(&self.context, window.len as usize)?;
        let sums = DeviceMemory::new(&self.context, THREADS as usize * 4)?;
        let kernel = Kernel::new(&self.context, "transfers", &ptx::transfers(UNIT_BYTES[0]))?;
        let mut latencies = [Ticks::ZERO; SIZES];
        for (latency, bytes) in latencies.iter_mut().zip(sizes) {
            let (verb, partner, outstanding) = (Verb::Load, Partner::Host, Some(1));
            let read = Transfer { card: 0, verb, partner, bytes, count: READS, window, outstanding };
            let missing = || CudaError::System(format!("no kernel reads {bytes} B"));
            let walk = Walk::new(read, READS, 1).ok_or_else(missing)?.with_unit(UNIT_BYTES[0], 1);
            let mut job = [Parameter::new(&walk, memory.at, &self.times, &sums, 0)];
            let mut run = || launch(&self.context, &kernel, &self.times, &mut job, LONGEST);
            // The first launch loads the kernel and warms the caches of translations.
            run()?;
            *latency = Ticks(run()?.delivered.0 / READS);
        }
        Ok(latencies)
    }
}

/// Transfers whose kernel and memory exist.
#[derive(Debug)]
pub(super) struct Prepared<'a> {
    context: &'a Arc<Context>,
    kernel: &'a Kernel,
    host: &'a mut HostMemory,
    times: &'a DeviceMemory,
    sums: &'a DeviceMemory,
    /// Walks before each sample; empty without warm-up.
    warm_up: Vec<Walk>,
    /// Reads, writes, or one of each.
    walks: Vec<Walk>,
    written_by: Writer,
    /// Summand of the contents that this run reads and writes.
    summand: u32,
}

impl Prepared<'_> {
    /// Writes the contents of the windows: of reads what they expect, of writes something else.
    pub(super) fn fill(&mut self) {
        for place in 0..self.walks.len() {
            self.fill_window(place);
        }
    }

    /// Brings the windows to the state that each sample starts from, and does not time that.
    pub(super) fn before_sample(&mut self) {
        for place in 0..self.walks.len() {
            let Transfer { window, verb, .. } = self.walks[place].transfer;
            match self.written_by {
                Writer::Core if verb == Verb::Store && window.len <= REWRITTEN_BYTES => self.fill_window(place),
                Writer::Nobody => {
                    let window = &self.host.bytes()[window.offset as usize..(window.offset + window.len) as usize];
                    // SAFETY: the window is within the memory.
                    unsafe { flush_lines(window.as_ptr(), window.len()) };
                }
                Writer::Core | Writer::Device => {}
            }
        }
    }

    fn fill_window(&mut self, place: usize) {
        let Transfer { window, verb, .. } = self.walks[place].transfer;
        let summand = if verb == Verb::Load { self.summand } else { self.summand ^ STALE };
        let window = &mut self.host.bytes_mut()[window.offset as usize..(window.offset + window.len) as usize];
        for (number, word) in window.as_chunks_mut().0.iter_mut().enumerate() {
            *word = content(number as u64, summand).to_le_bytes();
        }
    }

    /// Makes all transfers once and returns their times: until the last write was issued, and until the last data
    /// arrived.
    ///
    /// # Errors
    /// Errors of the driver, and [`CudaError::Stuck`] after `limit`.
    pub(super) fn run(&mut self, limit: Duration) -> Result<Sample, CudaError> {
        let parameters = |walks: &[Walk]| walks.iter().map(|walk| self.parameter(walk)).collect::<Vec<_>>();
        launch(self.context, self.kernel, self.times, &mut parameters(&self.warm_up), limit)?;
        let mut parameters = parameters(&self.walks);
        launch(self.context, self.kernel, self.times, &mut parameters, limit)
    }

    fn parameter(&self, walk: &Walk) -> Parameter {
        let base = self.host.at + walk.transfer.window.offset;
        Parameter::new(walk, base, self.times, self.sums, self.summand)
    }

    /// Bytes of one iteration that moved correctly in the last launch.
    ///
    /// Reads are confirmed by the sums of all words that each warp read, writes by the contents of host memory.
    ///
    /// # Errors
    /// Errors of the driver.
    pub(super) fn confirmed(&self) -> Result<Confirmed, CudaError> {
        let mut both = Confirmed { claimed_bytes: 0, confirmed_bytes: 0 };
        for walk in &self.walks {
            let places = walk.last_places(walk.transfer.count);
            let claimed = places.len() as u64 * walk.transfer.bytes;
            let correct = match walk.transfer.verb {
                Verb::Load => claimed.saturating_sub(self.wrong_read_bytes(walk)?),
                Verb::Store => self.stored_bytes(walk, &places),
            };
            both.claimed_bytes += claimed;
            both.confirmed_bytes += correct;
        }
        Ok(both)
    }

    /// Bytes of warps whose sums are wrong.
    fn wrong_read_bytes(&self, walk: &Walk) -> Result<u64, CudaError> {
        let mut bytes = vec![0; (walk.warps * THREADS) as usize * 4];
        self.context.read(self.sums.at, &mut bytes)?;
        let sums: Vec<u32> = bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let mut wrong: u64 = 0;
        for (warp, sums) in (0..walk.warps).zip(sums.chunks(THREADS as usize)) {
            let (mut expected, mut len) = (0_u32, 0);
            for slice in walk.slices_of(warp) {
                expected = expected.wrapping_add(sum_of(slice.offset / 4, slice.len / 4, self.summand));
                len += slice.len;
            }
            if sums.iter().fold(0_u32, |sum, part| sum.wrapping_add(*part)) != expected {
                wrong = wrong.saturating_add(len);
            }
        }
        Ok(wrong)
    }

    /// Bytes at these places of the window that have the contents of this run.
    fn stored_bytes(&self, walk: &Walk, places: &[u64]) -> u64 {
        let Transfer { window, bytes, .. } = walk.transfer;
        let memory = self.host.bytes();
        let correct = |place: &u64| {
            let from = (window.offset + place) as usize;
            let words = memory[from..from + bytes as usize].as_chunks().0.iter().zip(place / 4..);
            words.filter(|(word, number)| u32::from_le_bytes(**word) == content(*number, self.summand)).count() as u64
        };
        4 * places.iter().map(correct).sum::<u64>()
    }
}

/// Runs one or two jobs at once, and returns their times as [`Prepared::run`] does. Their memory outlives the call.
fn launch(
    context: &Context,
    kernel: &Kernel,
    times: &DeviceMemory,
    jobs: &mut [Parameter],
    limit: Duration,
) -> Result<Sample, CudaError> {
    let columns = jobs.iter().map(|job| job.warps).max().unwrap_or(1);
    let rows = jobs.len() as u32;
    let mut unused = Parameter::default();
    let [first, second] = match jobs {
        [first, second, ..] => [ptr::from_mut(first), ptr::from_mut(second)],
        [first] => [ptr::from_mut(first), ptr::from_mut(&mut unused)],
        [] => return Ok(Sample::default()),
    };
    let mut pointers = [first.cast(), second.cast()];
    // SAFETY: the times are in device memory; the kernel has two parameters of 128 B, and the memory of both jobs outlives
    // the launch, which is waited for.
    let status = unsafe {
        let filled = (context.api.start_fill)(times.at, 0, TIMES_BYTES, context.stream);
        CudaError::check("clearing the times", filled)?;
        kernel.launch([columns, rows], THREADS, &mut pointers)
    };
    CudaError::check("launching the kernel transfers", status)?;
    context.finish(kernel.name(), limit)?;
    let mut read = [0; TIMES_BYTES];
    context.read(times.at, &mut read)?;
    let [start, issued, delivered, _] = words(&read);
    // The kernel keeps the largest complement of the start.
    let start = !start;
    let span = |end: u64| Ticks::whole_ns(end.saturating_sub(start).min(1 << 50));
    Ok(Sample { issue: span(issued), delivered: span(delivered) })
}

fn words(bytes: &[u8; TIMES_BYTES]) -> [u64; 4] {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}
