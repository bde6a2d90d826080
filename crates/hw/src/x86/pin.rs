//! Pinning the calling thread to a core.

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// System numbers of the cores this thread may run on, in ascending order.
///
/// # Errors
/// Error of the system call.
pub(crate) fn allowed_cpus() -> Result<Vec<usize>, Errno> {
    let mask = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| mask.is_set(*cpu)).collect())
}

/// Number of `cpus` allowed cores that can be kept busy: a CPU quota may be smaller than the number of cores.
pub(crate) fn usable_cores(cpus: usize) -> u32 {
    std::thread::available_parallelism().map_or(1, usize::from).min(cpus) as u32
}

/// Pins the calling thread to one core; restores its affinity mask on drop.
#[derive(Debug)]
pub(crate) struct Pin {
    before: CpuSet,
}

impl Pin {
    /// Moves the calling thread to the core with system number `cpu`.
    ///
    /// # Errors
    /// Error of the system call, for example that the core is outside the process's cpuset.
    pub(crate) fn to(cpu: usize) -> Result<Pin, Errno> {
        let before = sched_getaffinity(None)?;
        let mut only = CpuSet::new();
        only.set(cpu);
        sched_setaffinity(None, &only)?;
        Ok(Pin { before })
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        // The kernel accepted this mask before; if the cpuset has shrunk since, it keeps the thread within it.
        let _ = sched_setaffinity(None, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_runs_on_one_core_and_its_mask_is_restored() {
        let before = allowed_cpus().unwrap();
        for cpu in &before {
            let pin = Pin::to(*cpu).unwrap();
            assert_eq!(allowed_cpus().unwrap(), [*cpu]);
            drop(pin);
            assert_eq!(allowed_cpus().unwrap(), before);
        }
    }

    #[test]
    fn a_missing_core_is_rejected_and_the_mask_is_unchanged() {
        let before = allowed_cpus().unwrap();
        assert_eq!(Pin::to(CpuSet::MAX_CPU - 1).unwrap_err(), Errno::INVAL);
        assert_eq!(allowed_cpus().unwrap(), before);
    }
}
