//! Doorbells: a kernel that waits for stores of the host, moves data and answers.

#![allow(unsafe_code)]

use super::context::{Context, LONGEST};
use super::error::CudaError;
use super::kernel::Kernel;
use super::memory::{HostMemory, Pinned};
use super::ptx::{self, THREADS};
use crate::x86::sample::{Ending, Limits, Stamps, stamp_before, timed};
use crate::x86::timer::Timer;
use lanemark_machine::{Confirmed, Transfer, Verb};
use rustix::io::Errno;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Kernel and memory of doorbells.
#[derive(Debug)]
pub(super) struct Ping {
    context: Arc<Context>,
    kernel: Kernel,
    /// Doorbell and answer, a page each, and the data after them.
    memory: HostMemory,
    /// Number of the last doorbell; numbers do not repeat, so a late answer is not taken for another.
    last: u64,
}

/// Bytes that a thread moves with one instruction; transfers are multiples of it.
pub(super) const UNIT_BYTES: u64 = 16;
/// Number that ends the kernel.
const STOP: u64 = u64::MAX;
/// Distance of doorbell, answer and data: no two share a line or a page.
const APART: usize = 4096;
/// Longest time from the launch of the kernel to its first store.
const LONGEST_START: Duration = Duration::from_secs(5);
/// Shortest time of one load of the kernel from host memory, by which its longest wait is bounded.
const POLL_NS: f64 = 200.0;

impl Ping {
    /// Compiles the kernel, and allocates memory for transfers in a window of `window_bytes`.
    ///
    /// # Errors
    /// Errors of the driver.
    pub(super) fn new(context: &Arc<Context>, window_bytes: u64) -> Result<Ping, CudaError> {
        let kernel = Kernel::new(context, "ping", ptx::PING)?;
        let memory = HostMemory::new(context, 2 * APART + window_bytes as usize, Pinned::Plain)?;
        // The memory is zero, so a kernel that has not started must not be expected to answer 0.
        Ok(Ping { context: Arc::clone(context), kernel, memory, last: 1 })
    }

    /// Whether the memory suffices for a window of `window_bytes`.
    pub(super) fn fits(&self, window_bytes: u64) -> bool {
        2 * APART as u64 + window_bytes <= self.memory.len as u64
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the word is within the memory and aligned; the device and this thread access it atomically.
        unsafe { AtomicU64::from_ptr(self.memory.start.add(offset).cast()) }
    }

    /// Fills the data with values that no doorbell has.
    pub(super) fn fill(&mut self) {
        self.memory.bytes_mut()[2 * APART..].fill(0xFF);
    }

    /// Times `passes` iterations, each of `count` doorbells with a transfer; returns the stamps.
    ///
    /// # Errors
    /// Errors of the driver, and [`CudaError::Stuck`] if the kernel does not start or end.
    pub(super) fn timed(
        &mut self,
        transfer: &Transfer,
        limits: &Limits<'_>,
        timer: Timer,
        passes: u64,
    ) -> Result<Stamps, CudaError> {
        let Transfer { bytes, count, window, verb, .. } = *transfer;
        let first = self.last + 1;
        let all = count.saturating_mul(passes);
        let timeout_ns = timer.ticks(limits.timeout_cycles).as_ns();
        let polls = (timeout_ns / POLL_NS) as u64;
        self.launch(first, all, polls.max(1), bytes, window.places(bytes), verb)?;
        self.wait_for_start(first, LONGEST_START.min(Duration::from_secs_f64(timeout_ns / 1e9)))?;
        self.last = first + all;
        let mut next = first;
        let start = stamp_before();
        let stamps = timed(limits, 0, passes, |_| {
            for _ in 0..count {
                self.ring(next, start, limits)?;
                next += 1;
            }
            Ok(())
        });
        if stamps.ending != Ending::Done {
            // The kernel ends at once. Without this it would end by itself, once its loads are used up.
            self.word(0).store(STOP, Ordering::Release);
        }
        self.context.finish(self.kernel.name(), LONGEST)?;
        match stamps.ending {
            Ending::Failed(Errno::TIMEDOUT) => {
                let seconds = (timeout_ns / 1e9) as u64;
                Err(CudaError::Stuck { kernel: "answering a doorbell", seconds })
            }
            _ => Ok(stamps),
        }
    }

    /// Launches the kernel.
    fn launch(
        &self,
        mut first: u64,
        mut count: u64,
        mut polls: u64,
        mut bytes: u64,
        mut places: u64,
        verb: Verb,
    ) -> Result<(), CudaError> {
        let [mut doorbell, mut flag, mut data] = [0, 1, 2].map(|page| self.memory.at + page * APART as u64);
        let (mut is_write, mut zero) = (u32::from(verb == Verb::Store), 0_u32);
        let mut parameters = [
            ptr::from_mut(&mut doorbell).cast(),
            ptr::from_mut(&mut flag).cast(),
            ptr::from_mut(&mut first).cast(),
            ptr::from_mut(&mut count).cast(),
            ptr::from_mut(&mut polls).cast(),
            ptr::from_mut(&mut data).cast(),
            ptr::from_mut(&mut bytes).cast(),
            ptr::from_mut(&mut places).cast(),
            ptr::from_mut(&mut is_write).cast(),
            ptr::from_mut(&mut zero).cast(),
        ];
        // SAFETY: the kernel has these parameters; its memory lives as long as self, and it ends before `timed` does.
        let status = unsafe { self.kernel.launch([1, 1], THREADS, &mut parameters) };
        CudaError::check("launching the kernel ping", status)
    }

    /// Waits at most `longest` until the kernel runs.
    fn wait_for_start(&self, first: u64, longest: Duration) -> Result<(), CudaError> {
        let begun = Instant::now();
        while self.word(APART).load(Ordering::Acquire) != first - 1 {
            if begun.elapsed() > longest {
                return Err(self.context.give_up(self.kernel.name(), longest));
            }
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Rings the doorbell with `number` and waits for the answer.
    #[inline]
    fn ring(&self, number: u64, start: u64, limits: &Limits<'_>) -> Result<(), Errno> {
        self.word(0).store(number, Ordering::Release);
        let answer = self.word(APART);
        // A check of the clock takes 20 ns, a load of the answer less.
        while answer.load(Ordering::Acquire) != number {
            std::hint::spin_loop();
            if stamp_before().saturating_sub(start) > limits.timeout_cycles {
                return Err(Errno::TIMEDOUT);
            }
            if limits.interrupted.load(Ordering::Relaxed) {
                return Err(Errno::CANCELED);
            }
        }
        Ok(())
    }

    /// Bytes of the last transfer that arrived in host memory; of reads nothing is known.
    pub(super) fn confirmed(&self, transfer: &Transfer) -> Option<Confirmed> {
        let Transfer { bytes, window, verb, .. } = *transfer;
        if verb == Verb::Load {
            return None;
        }
        let number = self.last.wrapping_sub(1);
        let expected = (number as u32).to_le_bytes();
        // Places go round from the first doorbell of a sample on, so the last number is somewhere in the window.
        let data = &self.memory.bytes()[2 * APART..][..(window.places(bytes) * bytes) as usize];
        let of_place = |place: &[u8]| 4 * place.as_chunks().0.iter().filter(|word| **word == expected).count() as u64;
        let confirmed_bytes = data.chunks(bytes as usize).map(of_place).max().unwrap_or(0);
        Some(Confirmed { claimed_bytes: bytes, confirmed_bytes })
    }
}
