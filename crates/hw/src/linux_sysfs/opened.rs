//! A device that this process has opened: its lock, and its identity and driver at opening.

use super::{Address, CardError, Device, Identity, System};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// Locked configuration files of this process: one for each device, however often it is opened.
static LOCKED: Mutex<Vec<(PathBuf, Weak<File>)>> = Mutex::new(Vec::new());

/// Time in which a thread closes a file.
const SOON: Duration = Duration::from_millis(2);

/// Identity and driver of a device when it was opened. Only one process of Lanemark at a time has it open.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    identity: Identity,
    driver: Option<String>,
    /// Holds the lock. The kernel releases it when the process ends, also when it is killed.
    ///
    /// A child made by `fork` shares the lock, as it shares the mappings of BARs: while either of both lives, it may access the
    /// device, so the lock lasts until both have ended. A program started by `exec` has neither (`O_CLOEXEC`).
    _config: Arc<File>,
}

impl Opened {
    /// Locks the device.
    ///
    /// # Errors
    /// [`CardError::InUse`] if another process has opened it, and errors of its files.
    pub(crate) fn new(device: &Device) -> Result<Opened, CardError> {
        Ok(Opened { _config: locked(device)?, identity: device.identity()?, driver: device.driver()? })
    }

    /// Fails if the device does not respond, if the slot has another device than at opening, or if it has another driver.
    ///
    /// # Errors
    /// [`CardError::Gone`] and [`CardError::Changed`].
    pub(crate) fn check(&self, device: &Device) -> Result<(), CardError> {
        device.check_present()?;
        let (identity, driver) = (device.identity()?, device.driver()?);
        if identity.is_same(&self.identity) && driver == self.driver {
            return Ok(());
        }
        let with = |identity: &Identity, driver: Option<&str>| {
            format!(
                "{identity} with {}",
                driver.map_or_else(|| "no driver".to_owned(), |name| format!("driver '{name}'"))
            )
        };
        Err(CardError::Changed {
            device: device.address(),
            was: with(&self.identity, self.driver.as_deref()),
            is: with(&identity, driver.as_deref()),
        })
    }
}

/// Whether another process has locked the device at this address.
pub(crate) fn is_locked(system: &System, address: Address) -> bool {
    let locked = Device::find(system, address).and_then(|device| locked(&device).map(drop));
    matches!(locked, Err(CardError::InUse { .. }))
}

/// The locked file of a device. The same for all users in this process.
///
/// # Errors
/// [`CardError::InUse`] if another process has locked it, and errors of the file.
pub(crate) fn locked(device: &Device) -> Result<Arc<File>, CardError> {
    let path = device.path("config");
    let mut all = LOCKED.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|(_, file)| file.strong_count() > 0);
    if let Some(file) = all.iter().filter(|(other, _)| *other == path).find_map(|(_, file)| file.upgrade()) {
        return Ok(file);
    }
    let file = File::open(&path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => device.gone(format!("{} has vanished", path.display())),
        _ => device.os("opening", path.clone(), source),
    })?;
    let lock = || flock(&file, FlockOperation::NonBlockingLockExclusive);
    // Another thread of this process may be about to close the file.
    let again = |error| match error {
        Errno::WOULDBLOCK => {
            std::thread::sleep(SOON);
            lock()
        }
        other => Err(other),
    };
    lock().or_else(again).map_err(|error| match error {
        Errno::WOULDBLOCK => CardError::InUse { device: device.address(), path: path.clone() },
        other => device.os("locking", path.clone(), other.into()),
    })?;
    let file = Arc::new(file);
    all.push((path, Arc::downgrade(&file)));
    Ok(file)
}
