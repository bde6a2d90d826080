//! The clock of the device: its step, and whether it agrees with that of the host.

#![allow(unsafe_code)]

use super::context::{Context, LONGEST};
use super::error::CudaError;
use super::kernel::Kernel;
use super::memory::DeviceMemory;
use super::ptx;
use crate::x86::timer::Timer;
use lanemark_units::Ticks;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

/// Clock of a device in nanoseconds (`%globaltimer`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Clock {
    /// Smallest difference between two readings, in nanoseconds.
    pub(super) step_ns: u64,
}

/// Readings from which the step follows.
const READINGS: u32 = 1 << 14;
/// Time between the readings that are compared with the host.
const APART: Duration = Duration::from_millis(50);
/// Shortest span of a sample.
const LEAST_SPAN_NS: u64 = 1_000_000;
/// Permitted disagreement with the host's clock beyond the uncertainty of the readings.
const AGREEMENT_PER_MILLION: u64 = 500;

impl Clock {
    /// Measures the step, and compares 50 ms with the host's clock.
    ///
    /// # Errors
    /// [`CudaError::Clock`] if the clock stands still or disagrees by more than 500 ppm, and errors of the driver.
    pub(super) fn checked(context: &Arc<Context>, timer: Timer) -> Result<Clock, CudaError> {
        let kernel = Kernel::new(context, "clock", ptx::CLOCK)?;
        let memory = DeviceMemory::new(context, READINGS as usize * 8)?;
        // The first launch loads the kernel.
        let readings = read(context, &kernel, &memory, READINGS)?;
        let first = Context::stamped(|| read(context, &kernel, &memory, 1));
        std::thread::sleep(APART);
        let last = Context::stamped(|| read(context, &kernel, &memory, 1));
        let span = |from: u64, to: u64| timer.ticks(to.saturating_sub(from)).as_ns() as u64;
        let (at_least, at_most) = (span(first.2, last.0), span(first.0, last.2));
        let passed = last.1?.first().copied().unwrap_or(0).wrapping_sub(first.1?.first().copied().unwrap_or(0));
        let step_ns = step(&readings)
            .ok_or_else(|| CudaError::Clock(format!("{READINGS} readings are all alike, or not in ascending order")))?;
        agree(passed, at_least, at_most, step_ns)?;
        Ok(Clock { step_ns })
    }

    /// Shortest span that is measured to some thousandths: a thousand steps, and a thousand times the microsecond within
    /// which the warps of a kernel start.
    pub(super) const fn least_span(self) -> Ticks {
        let steps_ns = self.step_ns * 1000;
        Ticks::whole_ns(if steps_ns > LEAST_SPAN_NS { steps_ns } else { LEAST_SPAN_NS })
    }
}

/// Whether the device's clock advanced by `passed_ns` while the host's advanced by `at_least` to `at_most`.
fn agree(passed_ns: u64, at_least_ns: u64, at_most_ns: u64, step_ns: u64) -> Result<(), CudaError> {
    let slack = at_most_ns / 1_000_000 * AGREEMENT_PER_MILLION + step_ns;
    if passed_ns + slack >= at_least_ns && passed_ns <= at_most_ns + slack {
        return Ok(());
    }
    Err(CudaError::Clock(format!(
        "it advanced by {passed_ns} ns while the processor's advanced by {at_least_ns} to {at_most_ns} ns"
    )))
}

/// Smallest difference of successive readings that is not 0; `None` if there is none, or a reading is below the one before.
fn step(readings: &[u64]) -> Option<u64> {
    if !readings.is_sorted() {
        return None;
    }
    readings.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step > 0).min()
}

fn read(context: &Context, kernel: &Kernel, memory: &DeviceMemory, mut count: u32) -> Result<Vec<u64>, CudaError> {
    let mut at = memory.at;
    let mut parameters = [ptr::from_mut(&mut at).cast(), ptr::from_mut(&mut count).cast()];
    // SAFETY: the kernel has these two parameters, and writes `count` readings, for which there is room.
    let status = unsafe { kernel.launch([1, 1], 1, &mut parameters) };
    CudaError::check("launching the kernel clock", status)?;
    context.finish(kernel.name(), LONGEST)?;
    let mut bytes = vec![0; count as usize * 8];
    context.read(memory.at, &mut bytes)?;
    Ok(bytes.as_chunks().0.iter().map(|reading| u64::from_le_bytes(*reading)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_is_the_smallest_difference_above_zero() {
        assert_eq!(step(&[5, 5, 37, 37, 101]), Some(32));
        assert_eq!(step(&[5, 5]), None);
        assert_eq!(step(&[37, 5]), None, "a clock that goes back is no clock");
        assert_eq!(Clock { step_ns: 1000 }.least_span(), Ticks::whole_ns(1_000_000));
        assert_eq!(Clock { step_ns: 1001 }.least_span(), Ticks::whole_ns(1_001_000));
    }

    #[test]
    fn the_clocks_may_differ_by_500_ppm_and_a_step() {
        let allowed = |passed| agree(passed, 49_000_000, 51_000_000, 32).is_ok();
        assert!(allowed(51_025_532) && !allowed(51_025_533));
        assert!(allowed(48_974_468) && !allowed(48_974_467));
    }
}
