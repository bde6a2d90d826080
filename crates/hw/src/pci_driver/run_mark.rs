//! The mark of a binding for one run: it separates bindings that a killed process left from those that a user made.

use super::{DriverError, Journal, PciFunction};
use crate::linux_sysfs::{Address, System};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::path::PathBuf;

/// A locked file beside the journal. The kernel ends the lock with the process, and the file stays if the process was killed.
#[derive(Debug)]
pub struct RunMark {
    file: PathBuf,
    journal: PathBuf,
    _lock: File,
}

impl RunMark {
    /// Marks the binding of a function that follows as one for the life of this process.
    ///
    /// # Errors
    /// [`DriverError::Busy`] if another process has the mark, and [`DriverError::Os`].
    pub fn new(system: &System, address: Address) -> Result<RunMark, DriverError> {
        let function = PciFunction::find(system, address)?;
        let journal = Journal::path(system, address);
        let file = RunMark::path(system, address);
        let folder = file.parent().map(PathBuf::from).unwrap_or_default();
        std::fs::create_dir_all(&folder).map_err(|source| function.os("creating", folder, source))?;
        let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&file);
        let lock = opened.map_err(|source| function.os("opening", file.clone(), source))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(RunMark { file, journal, _lock: lock }),
            Err(Errno::WOULDBLOCK) => Err(DriverError::Busy { function: address, lock: file }),
            Err(error) => Err(function.os("locking", file, error.into())),
        }
    }

    fn path(system: &System, function: Address) -> PathBuf {
        Journal::path(system, function).with_extension("run")
    }

    /// Bindings of runs whose process was killed before it restored the driver, sorted by address. What cannot be read is
    /// left out.
    #[must_use]
    pub fn left(system: &System) -> Vec<Journal> {
        let is_left = |function: &Address| is_free(system, *function);
        let all = Journal::all(system).unwrap_or_default();
        all.into_iter().filter(is_left).filter_map(|function| Journal::read(system, function).ok().flatten()).collect()
    }
}

impl Drop for RunMark {
    fn drop(&mut self) {
        // With a journal, the binding is left behind, and so is its mark.
        if !self.journal.exists() {
            let _ = std::fs::remove_file(&self.file);
        }
    }
}

/// Whether there is a mark that no process has.
fn is_free(system: &System, function: Address) -> bool {
    let mark = File::open(RunMark::path(system, function));
    mark.is_ok_and(|mark| flock(&mark, FlockOperation::NonBlockingLockShared).is_ok())
}

/// Removes a mark that no process has.
pub(super) fn remove_stale(system: &System, function: Address) {
    if is_free(system, function) {
        remove(system, function);
    }
}

/// Removes the mark of a binding that has ended.
pub(super) fn remove(system: &System, function: Address) {
    let _ = std::fs::remove_file(RunMark::path(system, function));
}
