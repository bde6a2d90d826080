//! Messages between two cores: one core sends a number and waits for the answer of the other.
//!
//! The message of iteration `n` is `2 n + 1`, its answer `2 n + 2`, so that no stale content of a line is taken for it. A
//! waiting core checks the flag and the clock only every few thousand loads, so a punctual wait contains no check. When
//! either side ends early, it wakes the other.

#![allow(unsafe_code)]
#![allow(clippy::inline_always)] // A function call between two timestamps would be measured too.

use super::pattern::Line;
use super::pin::Pin;
use super::sample::{Limits, Stamps, stamp_before, timed};
use lanemark_machine::{Access, Width};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, read, retry_on_intr, write};
use std::arch::asm;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Loads between two checks of the flag and the clock: about 10 us.
const LOADS_PER_CHECK: u32 = 1 << 12;
/// Time limit for the other thread to start on its core.
const START_LIMIT: Duration = Duration::from_secs(10);

/// Message exchange between two cores.
#[derive(Debug)]
pub(crate) enum Exchange {
    /// Through one cache line per direction, or one line for both.
    Lines { post: Post, there: *mut u8, back: *mut u8 },
    /// Through eventfds of the kernel, which wakes a sleeping thread.
    Events { there: OwnedFd, back: OwnedFd },
}

// SAFETY: the lines are process memory that two threads access by atomic loads and stores of 8 B, or by one instruction
// that stores the whole line; the pointers are valid as long as the machine that created them is borrowed.
unsafe impl Sync for Exchange {}

/// Instruction that stores a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Post {
    /// `MOV`.
    Plain,
    /// `MOVNTI` and `SFENCE`.
    NonTemporal,
    /// `MOVDIR64B`.
    Direct,
}

impl Post {
    /// Instruction for `access`, if messages can be stored by it.
    pub(crate) fn by(access: Access) -> Option<Post> {
        match access {
            Access::Plain(Width::B8) => Some(Post::Plain),
            Access::NonTemporal(Width::B8) => Some(Post::NonTemporal),
            Access::Movdir64b => Some(Post::Direct),
            _ => None,
        }
    }
}

/// Conditions that end a wait early.
struct Waiting<'a> {
    /// Longest wait in cycles of the time-stamp counter.
    timeout_cycles: u64,
    flag: &'a AtomicBool,
}

impl Exchange {
    /// Creates an exchange through eventfds.
    ///
    /// # Errors
    /// Error of the system call.
    pub(crate) fn by_events() -> Result<Exchange, Errno> {
        let event = || eventfd(0, EventfdFlags::CLOEXEC);
        Ok(Exchange::Events { there: event()?, back: event()? })
    }

    /// Runs `body` while another thread, pinned to `cpu`, answers.
    ///
    /// # Errors
    /// Error of creating or pinning the thread; [`Errno::TIMEDOUT`] if it does not start in time.
    ///
    /// # Safety
    /// The lines must be valid, aligned to 64 B, without other users, and must contain no number of this exchange.
    pub(crate) unsafe fn answered<R>(&self, cpu: usize, body: impl FnOnce() -> R) -> Result<R, Errno> {
        let (is_ready, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            // Ends the other thread on every return path.
            let _end = End { exchange: self, is_over: &is_over };
            let answering = std::thread::Builder::new().spawn_scoped(scope, || -> Result<(), Errno> {
                let _pin = Pin::to(cpu)?;
                is_ready.store(true, Ordering::Release);
                // SAFETY: guaranteed by the caller.
                unsafe { self.answer(&is_over) }
            });
            let answering = answering.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))?;
            let begun = Instant::now();
            while !is_ready.load(Ordering::Acquire) {
                if answering.is_finished() {
                    return Err(answering.join().ok().and_then(Result::err).unwrap_or(Errno::CANCELED));
                }
                if begun.elapsed() > START_LIMIT {
                    return Err(Errno::TIMEDOUT);
                }
                std::thread::yield_now();
            }
            Ok(body())
        })
    }

    /// Times `passes` round trips as the initiating side, numbered from `first` on.
    ///
    /// # Safety
    /// Same as for [`Exchange::answered`]; must run within its body.
    pub(crate) unsafe fn timed(&self, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
        let waiting = Waiting { timeout_cycles: limits.timeout_cycles, flag: limits.interrupted };
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self {
                Exchange::Lines { post: Post::Plain, there, back } => timed(limits, first, passes, |n| {
                    plain(*there, 2 * n + 1);
                    wait(*back, 2 * n + 2, &waiting)
                }),
                Exchange::Lines { post: Post::NonTemporal, there, back } => timed(limits, first, passes, |n| {
                    non_temporal(*there, 2 * n + 1);
                    wait(*back, 2 * n + 2, &waiting)
                }),
                Exchange::Lines { post: Post::Direct, there, back } => timed(limits, first, passes, |n| {
                    direct(*there, 2 * n + 1);
                    wait(*back, 2 * n + 2, &waiting)
                }),
                Exchange::Events { there, back } => timed(limits, first, passes, |_| {
                    wake(there)?;
                    sleep(back)
                }),
            }
        }
    }

    /// Answers messages until `is_over` is set.
    unsafe fn answer(&self, is_over: &AtomicBool) -> Result<(), Errno> {
        let waiting = Waiting { timeout_cycles: u64::MAX, flag: is_over };
        // SAFETY: guaranteed by the caller.
        let answer = |n: u64| unsafe {
            match self {
                Exchange::Lines { post, there, back } => {
                    wait(*there, 2 * n + 1, &waiting)?;
                    match post {
                        Post::Plain => plain(*back, 2 * n + 2),
                        Post::NonTemporal => non_temporal(*back, 2 * n + 2),
                        Post::Direct => direct(*back, 2 * n + 2),
                    }
                    Ok(())
                }
                Exchange::Events { there, back } => {
                    sleep(there)?;
                    wake(back)
                }
            }
        };
        let ended =
            (0..).try_for_each(|n| if is_over.load(Ordering::Relaxed) { Err(Errno::CANCELED) } else { answer(n) });
        match ended {
            Err(error) if error != Errno::CANCELED => {
                // Wake the initiating side, which would otherwise wait for ever.
                if let Exchange::Events { back, .. } = self {
                    let _ = wake(back);
                }
                Err(error)
            }
            _ => Ok(()),
        }
    }
}

/// Ends the answering thread when dropped.
struct End<'a> {
    exchange: &'a Exchange,
    is_over: &'a AtomicBool,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        if let Exchange::Events { there, .. } = self.exchange {
            // Cannot fail: the counter is far from its maximum.
            let _ = wake(there);
        }
    }
}

#[inline(always)]
unsafe fn plain(line: *mut u8, message: u64) {
    // SAFETY: the caller guarantees the line.
    unsafe { AtomicU64::from_ptr(line.cast()) }.store(message, Ordering::Release);
}

#[inline(always)]
unsafe fn non_temporal(line: *mut u8, message: u64) {
    // SAFETY: the caller guarantees the line.
    unsafe {
        asm!("movnti [{line}], {message}", "sfence", line = in(reg) line, message = in(reg) message,
            options(nostack, preserves_flags));
    }
}

#[inline(always)]
unsafe fn direct(line: *mut u8, message: u64) {
    let all = Line([message; 8]);
    // SAFETY: the caller guarantees the line, its alignment and support for the instruction.
    unsafe {
        asm!("movdir64b {line}, zmmword ptr [{all}]", line = in(reg) line, all = in(reg) &raw const all,
            options(nostack, preserves_flags));
    }
}

/// Polls the line until the message arrives.
#[inline(always)]
unsafe fn wait(line: *mut u8, message: u64, waiting: &Waiting<'_>) -> Result<(), Errno> {
    // SAFETY: the caller guarantees the line.
    let line = unsafe { AtomicU64::from_ptr(line.cast()) };
    let mut late_from = None;
    loop {
        for _ in 0..LOADS_PER_CHECK {
            if line.load(Ordering::Acquire) == message {
                return Ok(());
            }
        }
        if waiting.flag.load(Ordering::Relaxed) {
            return Err(Errno::CANCELED);
        }
        let now = stamp_before();
        if now.saturating_sub(*late_from.get_or_insert(now)) > waiting.timeout_cycles {
            return Err(Errno::TIMEDOUT);
        }
    }
}

fn wake(event: &OwnedFd) -> Result<(), Errno> {
    retry_on_intr(|| write(event, &1_u64.to_ne_bytes())).map(|_| ())
}

fn sleep(event: &OwnedFd) -> Result<(), Errno> {
    let mut count = [0; 8];
    retry_on_intr(|| read(event, &mut count)).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x86::cpu::Cpu;
    use crate::x86::pin::allowed_cpus;
    use crate::x86::sample::{Delivery, Ending};
    use lanemark_machine::Verb;

    #[repr(align(64))]
    struct Lines([[u8; 64]; 2]);

    fn limits(interrupted: &AtomicBool) -> Limits<'_> {
        Limits { timeout_cycles: u64::MAX, passes_per_check: 64, interrupted, delivery: Delivery::Drained }
    }

    /// Calls `check` with every kind of exchange that this processor supports, with zeroed lines.
    fn each(mut check: impl FnMut(&Exchange, usize)) {
        // With only one core the threads take turns, which is slow but correct.
        let cpu = *allowed_cpus().unwrap().last().unwrap();
        let cpu_features = Cpu::detected();
        for access in [Access::Plain(Width::B8), Access::NonTemporal(Width::B8), Access::Movdir64b] {
            if cpu_features.lacks(Verb::Store, access).is_some() {
                continue;
            }
            for back in [0, 1] {
                let mut lines = Lines([[0; 64]; 2]);
                let [there, other] = &mut lines.0;
                let (there, other) = (there.as_mut_ptr(), other.as_mut_ptr());
                let back = if back == 0 { there } else { other };
                check(&Exchange::Lines { post: Post::by(access).unwrap(), there, back }, cpu);
            }
        }
        check(&Exchange::by_events().unwrap(), cpu);
    }

    #[test]
    fn every_message_is_answered_and_the_other_thread_ends() {
        each(|exchange, cpu| {
            let no = AtomicBool::new(false);
            // SAFETY: the lines live as long as the exchange, and are zeroed.
            let stamps = unsafe { exchange.answered(cpu, || exchange.timed(&limits(&no), 0, 20)) }.unwrap();
            assert_eq!(stamps.ending, Ending::Done, "{exchange:?}");
        });
    }

    #[test]
    fn an_exchange_without_messages_ends() {
        // SAFETY: as above.
        each(|exchange, cpu| assert_eq!(unsafe { exchange.answered(cpu, || 7) }, Ok(7)));
    }

    #[test]
    fn a_missing_core_is_an_error_and_the_body_does_not_run() {
        each(|exchange, _| {
            let cpu = rustix::thread::CpuSet::MAX_CPU - 1;
            // SAFETY: as above.
            let refused = unsafe { exchange.answered(cpu, || panic!("the body must not run")) };
            assert_eq!(refused.map(|()| 0), Err(Errno::INVAL));
        });
    }

    #[test]
    fn a_wait_without_an_answer_ends_at_the_timeout_or_the_flag() {
        let mut lines = Lines([[0; 64]; 2]);
        let line = lines.0[0].as_mut_ptr();
        let exchange = Exchange::Lines { post: Post::Plain, there: line, back: line };
        let (no, yes) = (AtomicBool::new(false), AtomicBool::new(true));
        let late = Limits { timeout_cycles: 1000, ..limits(&no) };
        // SAFETY: the line is valid and aligned; no thread answers.
        unsafe {
            assert_eq!(exchange.timed(&late, 0, 1).ending, Ending::Failed(Errno::TIMEDOUT));
            assert_eq!(exchange.timed(&limits(&yes), 0, 1).ending, Ending::Failed(Errno::CANCELED));
        }
    }
}
