//! The journal of a binding: a file that says how a function was bound before.

use super::function::names_in;
use super::{DriverError, PciFunction};
use crate::linux_sysfs::{Address, Identity, System, text};
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;

/// Folder of the journals, in memory: a boot empties the folder and ends all bindings.
const FOLDER: &str = "run/lanemark";

/// State of a function before it was bound to another driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Journal {
    /// Function.
    pub function: Address,
    /// Device in the slot.
    pub identity: Identity,
    /// Former driver, if there was one.
    pub driver: Option<String>,
    /// Former driver override, if there was one.
    pub driver_override: Option<String>,
    /// Driver that the function was bound to.
    pub to: String,
}

impl Journal {
    /// Path of the journal of a function.
    #[must_use]
    pub fn path(system: &System, function: Address) -> PathBuf {
        system.path(FOLDER).join(format!("{function}.bound"))
    }

    /// Journals of all functions that have not been restored, sorted by address.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub fn all(system: &System) -> io::Result<Vec<Address>> {
        let names = names_in(&system.path(FOLDER))?;
        Ok(names.iter().filter_map(|name| name.strip_suffix(".bound")?.parse().ok()).collect())
    }

    /// Reads the journal of a function; `None` if there is none.
    ///
    /// # Errors
    /// [`DriverError::Journal`] and [`DriverError::Os`].
    pub fn read(system: &System, function: Address) -> Result<Option<Journal>, DriverError> {
        let path = Journal::path(system, function);
        let text = match text(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(DriverError::Os { function, doing: "reading", path, source }),
        };
        Journal::parse(function, &text).map(Some).map_err(|(line, what)| DriverError::Journal {
            journal: path,
            line,
            what,
        })
    }

    fn parse(function: Address, text: &str) -> Result<Journal, (usize, String)> {
        let [mut identity, mut driver, mut before, mut to] = [const { None }; 4];
        for (number, line) in text.lines().enumerate() {
            if line.starts_with('#') {
                continue;
            }
            let (key, value) = line.split_once(" =").ok_or_else(|| (number + 1, "no 'key = value'".to_owned()))?;
            let place = match key {
                "identity" => &mut identity,
                "driver" => &mut driver,
                "driver_override" => &mut before,
                "to" => &mut to,
                _ => return Err((number + 1, format!("unknown key '{key}'"))),
            };
            *place = Some(value.trim().to_owned());
        }
        // An empty value is stated; a missing line is not.
        let found = |value: Option<String>, key: &str| {
            value.ok_or_else(|| (text.lines().count(), format!("no '{key}' up to here")))
        };
        let named = |value: Option<String>, key: &str| found(value.filter(|value| !value.is_empty()), key);
        let (driver, before) = (found(driver, "driver")?, found(before, "driver_override")?);
        let stated = |value: String| Some(value).filter(|value| !value.is_empty());
        Ok(Journal {
            function,
            identity: Identity::of_text(&named(identity, "identity")?),
            driver: stated(driver),
            driver_override: stated(before),
            to: named(to, "to")?,
        })
    }

    fn text(&self) -> String {
        let Journal { function, identity, driver, driver_override, to } = self;
        let or_none = |name: &Option<String>| name.clone().unwrap_or_default();
        format!(
            "# How {function} was bound before; to restore it: lanemark unbind {function}\nidentity = {identity}\ndriver = {}\n\
             driver_override = {}\nto = {to}\n",
            or_none(driver),
            or_none(driver_override)
        )
    }

    /// Writes the journal, whole or not at all.
    pub(super) fn write(&self, function: &PciFunction) -> Result<(), DriverError> {
        let path = Journal::path(function.system(), self.function);
        let part = path.with_extension("part");
        let written = (|| {
            let mut file = File::create(&part)?;
            file.write_all(self.text().as_bytes())?;
            std::fs::rename(&part, &path)
        })();
        written.map_err(|source| function.os("writing", path, source))
    }

    /// Removes the journal after the function was restored.
    pub(super) fn remove(&self, function: &PciFunction) -> Result<(), DriverError> {
        let path = Journal::path(function.system(), self.function);
        std::fs::remove_file(&path).map_err(|source| function.os("removing", path, source))
    }
}

/// The right to change the driver of a function: one process at a time. The kernel ends it with the process.
#[derive(Debug)]
pub(super) struct Turn {
    _lock: File,
}

impl Turn {
    pub(super) fn take(function: &PciFunction) -> Result<Turn, DriverError> {
        let folder = function.system().path(FOLDER);
        std::fs::create_dir_all(&folder).map_err(|source| function.os("creating", folder.clone(), source))?;
        let lock = folder.join(format!("{}.lock", function.address()));
        let open = OpenOptions::new().create(true).truncate(false).write(true).open(&lock);
        let file = open.map_err(|source| function.os("opening", lock.clone(), source))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Turn { _lock: file }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(DriverError::Busy { function: function.address(), lock }),
            Err(error) => Err(function.os("locking", lock, error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function() -> Address {
        "0000:01:00.0".parse().unwrap()
    }

    #[test]
    fn a_journal_is_read_as_it_was_written() {
        let with = |driver: Option<&str>, before: Option<&str>| Journal {
            function: function(),
            identity: Identity::of_text("1b36:0010 1af4:1100 rev 02"),
            driver: driver.map(str::to_owned),
            driver_override: before.map(str::to_owned),
            to: "vfio-pci".to_owned(),
        };
        for journal in [with(None, None), with(Some("nvme"), None), with(None, Some("uio_pci_generic"))] {
            assert_eq!(Journal::parse(function(), &journal.text()), Ok(journal));
        }
    }

    #[test]
    fn a_damaged_journal_is_refused_with_its_line() {
        let whole = "identity = 1\ndriver =\ndriver_override =\nto = vfio-pci\n";
        assert!(Journal::parse(function(), whole).is_ok());
        for (text, line, word) in [
            ("identity = 1\ndriver =\ndriver_override =\n", 3, "'to'"),
            ("identity = 1\ndriver_override =\nto = vfio-pci\n", 3, "'driver'"),
            ("identity = 1\ndriver =\nto = vfio-pci\n", 3, "'driver_override'"),
            ("identity =\ndriver =\ndriver_override =\nto = vfio-pci\n", 4, "'identity'"),
            ("identity = 1\nto vfio-pci\n", 2, "key = value"),
            ("identity = 1\nfrom = nvme\n", 2, "'from'"),
            ("", 0, "'driver'"),
        ] {
            let (found, what) = Journal::parse(function(), text).unwrap_err();
            assert!(found == line && what.contains(word), "{text:?}: {found}: {what}");
        }
    }
}
