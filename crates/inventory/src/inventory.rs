//! Everything that was seen of a machine.

use crate::files::{Files, Folder};
use crate::{
    Address, Function, InventoryError, Iommu, Kernel, Mtrr, Pat, Processors, Seen, Tree, Unseen, Why, lspci, sysfs,
    unseen,
};
use std::fmt;
use std::path::{Path, PathBuf};

/// Everything that was seen of a machine, and what was not.
#[derive(Clone, PartialEq, Debug)]
pub struct Inventory {
    /// Where it comes from.
    pub source: Source,
    /// The functions, sorted by address, no address twice.
    pub functions: Vec<Function>,
    /// The processors.
    pub processors: Processors,
    /// The memory type ranges of `/proc/mtrr`. The default type of what none covers is in no file of Linux.
    pub mtrrs: Seen<Vec<Mtrr>>,
    /// The page attribute table.
    pub pat: Pat,
    /// The IOMMU.
    pub iommu: Iommu,
    /// The kernel.
    pub kernel: Kernel,
    /// What was not seen, each thing and reason once, with the functions it is unseen of: the reasons in the
    /// facts above, gathered for a reader.
    pub unseen: Vec<Unseen>,
    /// What is strange about the source: lines that were passed over, bus numbers that fit no tree.
    pub notes: Vec<Note>,
}

impl Inventory {
    /// One without functions, of which nothing is seen for `why`.
    #[must_use]
    pub fn unseen(source: Source, why: &Why) -> Inventory {
        Inventory {
            source,
            functions: Vec::new(),
            processors: Processors::unseen(why),
            mtrrs: Seen::Unseen(why.clone()),
            pat: Pat::unseen(why),
            iommu: Iommu::unseen(why),
            kernel: Kernel::unseen(why),
            unseen: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The function at `address`.
    #[must_use]
    pub fn function(&self, address: Address) -> Option<&Function> {
        let at = self.functions.binary_search_by_key(&address, |function| function.address).ok()?;
        Some(&self.functions[at])
    }

    /// Which function is below which.
    #[must_use]
    pub fn tree(&self) -> Tree {
        Tree::of(&self.functions)
    }

    /// This machine, from `/sys` and `/proc`.
    ///
    /// Nothing is written, and of a function only config space is read, by way of the kernel; one that sleeps
    /// in `D3cold` is left asleep.
    ///
    /// # Errors
    /// If there is no `/sys/bus/pci/devices`.
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

    /// What `lspci` printed, from memory; `path` is its name in messages.
    ///
    /// # Errors
    /// If there is no function in it, or a line of a dump is wrong.
    ///
    /// ```
    /// use lanemark_inventory::Inventory;
    /// use std::path::Path;
    /// let text = "01:00.0 Memory controller: Device 1d0f:f001\n00: 0f 1d 01 f0 06 00 00 00 00 00 80 05 00 00 00 00\n";
    /// let inventory = Inventory::from_lspci(text, Path::new("dump.txt"))?;
    /// assert_eq!(inventory.functions[0].device.get(), Some(0xf001));
    /// assert!(inventory.functions[0].express.why().is_some()); // 16 B do not tell
    /// # Ok::<(), lanemark_inventory::InventoryError>(())
    /// ```
    pub fn from_lspci(text: &str, path: &Path) -> Result<Inventory, InventoryError> {
        lspci::read(text, path)
    }

    /// Another machine, from a file or a folder; which kind it is is found out.
    ///
    /// # Errors
    /// If it cannot be read, or is nothing that holds a PCI tree; the message says what was tried.
    pub fn from_path(path: &Path) -> Result<Inventory, InventoryError> {
        crate::recognise::path(path)
    }

    /// As [`Inventory::from_path`] of a file with these bytes.
    ///
    /// # Errors
    /// As [`Inventory::from_path`].
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Inventory, InventoryError> {
        crate::recognise::bytes(bytes, path)
    }

    /// Fills [`Inventory::unseen`] from the reasons in the facts. Readers do; who changes facts by hand may.
    pub fn gather_unseen(&mut self) {
        self.unseen = unseen::gather(self);
    }
}

/// Where an inventory comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// The machine this runs on.
    ThisMachine,
    /// A folder that holds a copy of another machine's `/sys` and `/proc`.
    Folder(PathBuf),
    /// A tar of such a folder.
    Archive(PathBuf),
    /// What `lspci` printed.
    Lspci {
        /// The file.
        path: PathBuf,
        /// Whether it has hexadecimal dumps (`-x`, `-xxx`, `-xxxx`).
        hex: bool,
        /// Whether it has decoded text (`-v`, `-vv`, `-vvv`).
        text: bool,
    },
}

impl Source {
    /// Whether it is the machine this runs on.
    #[must_use]
    pub const fn is_this_machine(&self) -> bool {
        matches!(self, Source::ThisMachine)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::ThisMachine => f.write_str("this machine"),
            Source::Folder(path) => write!(f, "the folder {}", path.display()),
            Source::Archive(path) => write!(f, "the archive {}", path.display()),
            Source::Lspci { path, hex, text } => {
                let what = match (hex, text) {
                    (true, false) => "hex dump of lspci",
                    (false, true) => "listing of lspci",
                    _ => "output of lspci",
                };
                write!(f, "the {what} {}", path.display())
            }
        }
    }
}

/// Something strange about the source, which was passed over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// Where: a file, a file and line, an address.
    pub at: String,
    /// What, and what was done about it.
    pub what: String,
}
