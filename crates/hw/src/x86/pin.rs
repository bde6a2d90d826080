//! The calling thread, held on one core.

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The system's numbers of the cores this thread may run on, ascending.
///
/// # Errors
/// What the kernel said.
pub(crate) fn allowed_cpus() -> Result<Vec<usize>, Errno> {
    let mask = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| mask.is_set(*cpu)).collect())
}

/// How many of `cpus` allowed cores can be kept busy: a quota may give less time than there are cores to run on.
pub(crate) fn usable_cores(cpus: usize) -> u32 {
    std::thread::available_parallelism().map_or(1, usize::from).min(cpus) as u32
}

/// Holds the calling thread on one core until dropped; then the old mask is back.
#[derive(Debug)]
pub(crate) struct Pin {
    before: CpuSet,
}

impl Pin {
    /// Moves the calling thread to `cpu`, by the system's number.
    ///
    /// # Errors
    /// What the kernel said, for example that the core is outside the process's cpuset.
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
        // The kernel accepted this mask before; if the cpuset has shrunk since, it keeps the thread inside anyway.
        let _ = sched_setaffinity(None, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_may_run_on_one_core_and_gets_its_cores_back() {
        let before = allowed_cpus().unwrap();
        for cpu in &before {
            let pin = Pin::to(*cpu).unwrap();
            assert_eq!(allowed_cpus().unwrap(), [*cpu]);
            drop(pin);
            assert_eq!(allowed_cpus().unwrap(), before);
        }
    }

    #[test]
    fn a_core_that_is_not_there_is_refused_and_nothing_changes() {
        let before = allowed_cpus().unwrap();
        assert_eq!(Pin::to(CpuSet::MAX_CPU - 1).unwrap_err(), Errno::INVAL);
        assert_eq!(allowed_cpus().unwrap(), before);
    }
}
