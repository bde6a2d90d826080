//! Copies of many pieces between page-locked host memory and the device.
//!
//! Never run on a GPU.

#![allow(unsafe_code)]

use super::api::{BatchAttributes, CopyBatch};
use super::context::{Context, LONGEST};
use super::error::CudaError;
use super::kernel::Kernel;
use super::memory::{DeviceMemory, HostMemory, Pinned};
use super::ptx::{self, PIECE_UNIT_BYTES, THREADS, slice_bytes};
use crate::NoHostMemory;
use crate::x86::buffer::Buffer;
use crate::x86::pattern;
use crate::x86::sample::{Limits, Stamps, timed};
use lanemark_machine::{Confirmed, CopyBy, SmallCopies, Verb};
use rustix::io::Errno;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

/// Kernels and memory of pieces; kept for the next plan as far as it can use them.
#[derive(Debug)]
pub(super) struct Pieces {
    context: Arc<Context>,
    /// Kernel per unit, in the order of [`PIECE_UNIT_BYTES`].
    kernels: [Option<Kernel>; PIECE_UNIT_BYTES.len()],
    memory: Option<Memory>,
}

/// The pieces with the gaps behind them, and a packed buffer after the last one, at both ends.
#[derive(Debug)]
struct Memory {
    context: Arc<Context>,
    own: HostMemory,
    device: DeviceMemory,
    /// Expected contents, for the comparison.
    other: Buffer,
}

/// Parameter of the kernel, which names the places of the fields.
#[repr(C, align(8))]
#[derive(Clone, Debug)]
struct Job {
    from: u64,
    to: u64,
    bytes: u64,
    /// Slices of a piece, and of all pieces.
    slices: [u64; 2],
    is_from_packed: u64,
    is_to_packed: u64,
    unused: [u64; 5],
    places: [u64; SmallCopies::MOST_COPIES as usize],
}

const _: () = assert!(size_of::<Job>() == 4096, "the kernel expects 4096 B");

/// `CU_MEMCPY_SRC_ACCESS_ORDER_STREAM`: the source is read in the order of the stream. Hints and flags are absent.
const IN_ORDER: BatchAttributes =
    BatchAttributes { source_order: 1, source_hint: [0; 2], destination_hint: [0; 2], flags: 0 };

impl Pieces {
    /// Compiles and allocates nothing yet.
    pub(super) fn new(context: &Arc<Context>) -> Pieces {
        let kernels = [const { None }; PIECE_UNIT_BYTES.len()];
        Pieces { context: Arc::clone(context), kernels, memory: None }
    }

    /// Allocates memory for these pieces, and compiles the kernel that copies them, if they need one.
    ///
    /// # Errors
    /// Errors of the driver or the system, usually too little memory; [`CudaError::NotBuilt`].
    pub(super) fn prepare(&mut self, asked: SmallCopies) -> Result<PreparedPieces<'_>, CudaError> {
        let len = (asked.memory_bytes() + asked.bytes_in_all()) as usize;
        if self.memory.as_ref().is_none_or(|memory| memory.own.len < len) {
            self.memory = None;
            self.memory = Some(Memory::new(&self.context, len)?);
        }
        let kernel = match asked.by {
            CopyBy::Packed | CopyBy::InPlace => Some(self.kernel(asked.bytes)?),
            CopyBy::Loop | CopyBy::Batch | CopyBy::Stores => None,
        };
        let Some(memory) = &mut self.memory else {
            return Err(CudaError::System("memory of pieces is missing".to_owned()));
        };
        let context = &self.context;
        let kernel = kernel.and_then(|place| Some((self.kernels[place].as_ref()?, PIECE_UNIT_BYTES[place])));
        let mut prepared = PreparedPieces { context, asked, method: By::Loop, memory };
        prepared.method = match (asked.by, kernel, context.api.copy_batch) {
            (CopyBy::Loop, ..) => By::Loop,
            (CopyBy::Batch, _, Some(call)) => By::Batch(prepared.batch(call)),
            (CopyBy::Packed, Some((kernel, unit)), _) => By::Packed(prepared.launch(kernel, unit)),
            (CopyBy::InPlace, Some((kernel, unit)), _) => By::InPlace(prepared.launch(kernel, unit)),
            (by, ..) => return Err(CudaError::System(format!("the device does not copy pieces by {}", by.in_words()))),
        };
        Ok(prepared)
    }

    /// Place of the kernel for pieces of `bytes`, which is compiled and launched without work if it is new: drivers do
    /// one-time work at the first launch.
    fn kernel(&mut self, bytes: u64) -> Result<usize, CudaError> {
        let divides = |unit: &u32| bytes.is_multiple_of(u64::from(*unit));
        let place = PIECE_UNIT_BYTES.iter().position(divides).unwrap_or(PIECE_UNIT_BYTES.len() - 1);
        if self.kernels[place].is_none() {
            let kernel = Kernel::new(&self.context, "pieces", &ptx::pieces(PIECE_UNIT_BYTES[place]))?;
            CudaError::check(
                "launching the kernel pieces",
                Launch { kernel: &kernel, job: Job::empty(), warps: 1 }.start(),
            )?;
            self.context.finish(kernel.name(), LONGEST)?;
            self.kernels[place] = Some(kernel);
        }
        Ok(place)
    }
}

impl Memory {
    fn new(context: &Arc<Context>, len: usize) -> Result<Memory, CudaError> {
        let own = HostMemory::new(context, len, Pinned::Plain)?;
        let device = DeviceMemory::new(context, len)?;
        let other = Buffer::new(len).map_err(|error| NoHostMemory { bytes: len as u64, because: error.to_string() })?;
        Ok(Memory { context: Arc::clone(context), own, device, other })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // A failed copy may still be in flight.
            // SAFETY: the stream is valid.
            unsafe { (self.context.api.wait_stream)(self.context.stream) };
        }
    }
}

impl Job {
    fn empty() -> Box<Job> {
        let places = [0; SmallCopies::MOST_COPIES as usize];
        let (slices, unused) = ([1, 0], [0; 5]);
        Box::new(Job { from: 0, to: 0, bytes: 0, slices, is_from_packed: 0, is_to_packed: 0, unused, places })
    }
}

/// A launch of the kernel.
#[derive(Debug)]
struct Launch<'a> {
    kernel: &'a Kernel,
    job: Box<Job>,
    warps: u32,
}

impl Launch<'_> {
    #[inline]
    fn start(&mut self) -> i32 {
        // SAFETY: the kernel has one parameter of 4096 B, which the driver copies; the memory of the pieces is not freed
        // before the stream has been waited for.
        unsafe { self.kernel.launch([self.warps, 1], THREADS, &mut [ptr::from_mut(&mut *self.job).cast()]) }
    }
}

/// Lists of the batch call.
#[derive(Debug)]
struct Batch {
    call: CopyBatch,
    to: Vec<u64>,
    from: Vec<u64>,
    lengths: Vec<usize>,
}

/// Method with what it needs.
#[derive(Debug)]
enum By<'a> {
    Loop,
    Batch(Batch),
    Packed(Launch<'a>),
    InPlace(Launch<'a>),
}

/// Pieces whose kernel and memory exist.
#[derive(Debug)]
pub(super) struct PreparedPieces<'a> {
    context: &'a Arc<Context>,
    asked: SmallCopies,
    method: By<'a>,
    memory: &'a mut Memory,
}

impl<'a> PreparedPieces<'a> {
    /// Offsets of the pieces from the start of the memory.
    fn places(&self) -> impl Iterator<Item = u64> + use<> {
        let SmallCopies { count, .. } = self.asked;
        let distance = self.asked.distance_bytes();
        (0..u64::from(count)).map(move |nth| nth * distance)
    }

    fn is_store(&self) -> bool {
        self.asked.verb == Verb::Store
    }

    fn batch(&self, call: CopyBatch) -> Batch {
        let addresses = |base: u64| self.places().map(|place| base + place).collect::<Vec<u64>>();
        // The call tells host memory from device memory by the address.
        let (own, device) = (addresses(self.memory.own.start as u64), addresses(self.memory.device.at));
        let (to, from) = if self.is_store() { (device, own) } else { (own, device) };
        let lengths = vec![self.asked.bytes as usize; to.len()];
        Batch { call, to, from, lengths }
    }

    fn launch(&self, kernel: &'a Kernel, unit: u32) -> Launch<'a> {
        let SmallCopies { bytes, count, by, .. } = self.asked;
        let (own, device, packed) = (self.memory.own.at, self.memory.device.at, self.asked.memory_bytes());
        let mut job = Job::empty();
        (job.from, job.to) = match (by, self.is_store()) {
            (CopyBy::Packed, true) => (device + packed, device),
            (CopyBy::Packed, false) => (device, device + packed),
            (_, true) => (own, device),
            (_, false) => (device, own),
        };
        job.is_from_packed = (by == CopyBy::Packed && self.is_store()).into();
        job.is_to_packed = (by == CopyBy::Packed && !self.is_store()).into();
        job.bytes = bytes;
        let slices = bytes.div_ceil(slice_bytes(unit));
        job.slices = [slices, slices * u64::from(count)];
        job.places.iter_mut().zip(self.places()).for_each(|(kept, place)| *kept = place);
        let device = &self.context.device;
        let most = device.multiprocessors.saturating_mul(device.blocks_per_multiprocessor);
        Launch { kernel, warps: job.slices[1].min(most.into()).max(1) as u32, job }
    }

    /// Bytes of the pieces with the gaps behind them.
    fn span(&self) -> Range<usize> {
        0..self.asked.memory_bytes() as usize
    }

    /// Fills the source and the destination, gaps included, with different values that depend on `seed`, and both packed
    /// buffers with those of the destination.
    ///
    /// # Errors
    /// Errors of the driver.
    pub(super) fn fill(&mut self, seed: u64) -> Result<(), CudaError> {
        let (span, is_store) = (self.span(), self.is_store());
        let all = 0..span.len() + self.asked.bytes_in_all() as usize;
        let Memory { own, device, other, .. } = &mut *self.memory;
        pattern::fill(&mut other.bytes_mut()[all.clone()], stale(seed));
        own.bytes_mut()[all.clone()].copy_from_slice(&other.bytes()[all.clone()]);
        if is_store {
            pattern::fill(&mut own.bytes_mut()[span.clone()], source(seed));
        }
        self.context.write(device.at, &other.bytes()[all])?;
        if !is_store {
            pattern::fill(&mut other.bytes_mut()[span.clone()], source(seed));
            self.context.write(device.at, &other.bytes()[span])?;
        }
        Ok(())
    }

    /// Number of bytes of the pieces that arrived, after [`fill`](PreparedPieces::fill) with the same `seed`. A piece
    /// counts as lost if the gap behind it has changed.
    ///
    /// # Errors
    /// Errors of the driver.
    pub(super) fn confirmed(&mut self, seed: u64) -> Result<Confirmed, CudaError> {
        let (span, is_store) = (self.span(), self.is_store());
        let (bytes, distance) = (self.asked.bytes as usize, self.asked.distance_bytes() as usize);
        let Memory { own, device, other, .. } = &mut *self.memory;
        if is_store {
            // If the read-back moves nothing, these bytes differ from the expected ones.
            own.bytes_mut()[span.clone()].fill(0);
            self.context.read(device.at, &mut own.bytes_mut()[span.clone()])?;
        }
        let (found, other) = (&own.bytes()[span.clone()], other);
        pattern::fill(&mut other.bytes_mut()[span.clone()], source(seed));
        let pairs = found.chunks(distance).zip(other.bytes().chunks(distance));
        let arrived: Vec<u64> =
            pairs.map(|(found, meant)| pattern::equal_bytes(&found[..bytes], &meant[..bytes])).collect();
        pattern::fill(&mut other.bytes_mut()[span], stale(seed));
        let pairs = found.chunks(distance).zip(other.bytes().chunks(distance));
        let is_gap_kept = pairs.map(|(found, meant)| found[bytes..] == meant[bytes..]);
        let confirmed_bytes =
            arrived.iter().zip(is_gap_kept).filter(|(_, kept)| *kept).map(|(arrived, _)| arrived).sum();
        Ok(Confirmed { claimed_bytes: self.asked.bytes_in_all(), confirmed_bytes })
    }

    /// Times `passes` iterations, each of which copies all pieces and waits.
    ///
    /// # Errors
    /// Errors of the driver.
    pub(super) fn timed(&mut self, limits: &Limits<'_>, first: u64, passes: u64) -> Result<Stamps, CudaError> {
        let mut done = Ok(());
        let stamps = timed(limits, first, passes, |_| {
            done = self.copy();
            if done.is_ok() { Ok(()) } else { Err(Errno::IO) }
        });
        done.map(|()| stamps)
    }

    #[inline]
    fn copy(&mut self) -> Result<(), CudaError> {
        let is_store = self.is_store();
        let (packed, bytes) = (self.asked.memory_bytes(), self.asked.bytes_in_all());
        match &mut self.method {
            By::Loop => self.places().try_for_each(|place| self.start(place, self.asked.bytes))?,
            By::Batch(batch) => CudaError::check("copying pieces by one batch call", batch.start(self.context))?,
            By::InPlace(_) => self.launch_kernel()?,
            By::Packed(_) if is_store => {
                self.pack();
                self.start(packed, bytes)?;
                self.launch_kernel()?;
            }
            By::Packed(_) => {
                self.launch_kernel()?;
                self.start(packed, bytes)?;
            }
        }
        // SAFETY: the stream is valid.
        let waited = unsafe { (self.context.api.wait_stream)(self.context.stream) };
        CudaError::check("waiting for copies of pieces", waited)?;
        if matches!(self.method, By::Packed(_)) && !is_store {
            self.pack();
        }
        Ok(())
    }

    /// Launches the kernel, if the method has one.
    #[inline]
    fn launch_kernel(&mut self) -> Result<(), CudaError> {
        match &mut self.method {
            By::Packed(launch) | By::InPlace(launch) => CudaError::check("launching the kernel pieces", launch.start()),
            By::Loop | By::Batch(_) => Ok(()),
        }
    }

    /// Starts a copy of the `bytes` bytes at `place`.
    #[inline]
    fn start(&self, place: u64, bytes: u64) -> Result<(), CudaError> {
        let (api, stream) = (&self.context.api, self.context.stream);
        let (own, device) = (self.memory.own.start.wrapping_add(place as usize), self.memory.device.at + place);
        // SAFETY: the bytes are within both memories, which are not freed before the stream has been waited for.
        let status = unsafe {
            match self.asked.verb {
                Verb::Store => (api.start_to_device)(device, own.cast_const().cast(), bytes as usize, stream),
                Verb::Load => (api.start_from_device)(own.cast(), device, bytes as usize, stream),
            }
        };
        CudaError::check("copying pieces between host and device", status)
    }

    /// Copies the pieces into the packed buffer of the host, or out of it.
    #[inline]
    fn pack(&mut self) {
        let (places, is_store, bytes) = (self.places(), self.is_store(), self.asked.bytes as usize);
        let (pieces, packed) = self.memory.own.bytes_mut().split_at_mut(self.asked.memory_bytes() as usize);
        for (place, packed) in places.zip(packed.chunks_exact_mut(bytes)) {
            let piece = &mut pieces[place as usize..place as usize + bytes];
            if is_store { packed.copy_from_slice(piece) } else { piece.copy_from_slice(packed) }
        }
    }
}

/// Seed of the contents of the source.
const fn source(seed: u64) -> u64 {
    seed.wrapping_mul(2)
}

/// Seed of the contents before a copy.
const fn stale(seed: u64) -> u64 {
    source(seed).wrapping_add(1)
}

impl Batch {
    #[inline]
    fn start(&mut self, context: &Context) -> i32 {
        let Batch { call, to, from, lengths } = self;
        let (mut attributes, mut first, mut failed) = ([IN_ORDER], [0_usize], 0_usize);
        // SAFETY: the lists have as many entries as told, and the call copies them; the memory of the pieces is not freed
        // before the stream has been waited for.
        unsafe {
            call(
                to.as_mut_ptr(),
                from.as_mut_ptr(),
                lengths.as_mut_ptr(),
                lengths.len(),
                attributes.as_mut_ptr(),
                first.as_mut_ptr(),
                1,
                &raw mut failed,
                context.stream,
            )
        }
    }
}
