//! Reads an inventory: from this machine, from files, or from text.

use crate::files::{Files, Folder};
use crate::{Inventory, InventoryError, Source, lspci, recognise, sysfs};
use std::path::Path;

impl Inventory {
    /// Reads this machine from `/sys` and `/proc`.
    ///
    /// Writes nothing. Of a function only configuration space is read, through the kernel; a function in `D3cold` is
    /// not woken.
    ///
    /// # Errors
    /// If `/sys/bus/pci/devices` does not exist.
    ///
    /// ```no_run
    /// use lanemark_inventory::Inventory;
    /// for function in Inventory::of_this_machine()?.functions {
    ///     let link = function.link().map(|link| (link.speed.get(), link.width.get()));
    ///     println!("{} {link:?}", function.address);
    /// }
    /// # Ok::<(), lanemark_inventory::InventoryError>(())
    /// ```
    pub fn of_this_machine() -> Result<Inventory, InventoryError> {
        sysfs::read(&Files::new(&Folder::new(Path::new("/"))), Source::ThisMachine, true)
    }

    /// Parses output of `lspci`; `path` is its name in messages.
    ///
    /// # Errors
    /// If it contains no function, or a row of a dump is malformed.
    ///
    /// ```
    /// use lanemark_inventory::Inventory;
    /// use std::path::Path;
    /// let text = "01:00.0 Memory controller: Device 1d0f:f001\n00: 0f 1d 01 f0 06 00 00 00 00 00 80 05 00 00 00 00\n";
    /// let inventory = Inventory::from_lspci(text, Path::new("dump.txt"))?;
    /// assert_eq!(inventory.functions[0].device.get(), Some(0xf001));
    /// assert!(inventory.functions[0].express.why().is_some()); // 16 B do not reach the capability
    /// # Ok::<(), lanemark_inventory::InventoryError>(())
    /// ```
    pub fn from_lspci(text: &str, path: &Path) -> Result<Inventory, InventoryError> {
        lspci::read(text, path)
    }

    /// Reads another machine from a file or folder, with detection of the format.
    ///
    /// # Errors
    /// If it cannot be read, or has no supported format; the message lists the formats tried.
    pub fn from_path(path: &Path) -> Result<Inventory, InventoryError> {
        recognise::path(path)
    }

    /// As [`Inventory::from_path`], for a file with contents `bytes`.
    ///
    /// # Errors
    /// As [`Inventory::from_path`].
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Inventory, InventoryError> {
        recognise::bytes(bytes, path)
    }
}
