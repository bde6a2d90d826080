//! The inventory of a machine.

use crate::{Address, Function, Iommu, Kernel, Mtrr, Pat, Processors, Seen, Tree, Unseen, Why};
use std::fmt;
use std::path::PathBuf;

/// All facts read of a machine, and a list of the facts that could not be read.
#[derive(Clone, PartialEq, Debug)]
pub struct Inventory {
    /// Source of the inventory.
    pub source: Source,
    /// Functions, sorted by address, without duplicates.
    pub functions: Vec<Function>,
    /// CPUs.
    pub processors: Processors,
    /// Variable MTRRs of `/proc/mtrr`. Linux does not export the default memory type.
    pub mtrrs: Seen<Vec<Mtrr>>,
    /// Page Attribute Table.
    pub pat: Pat,
    /// IOMMU.
    pub iommu: Iommu,
    /// Kernel.
    pub kernel: Kernel,
    /// Unseen facts for display: each fact and reason once, with the functions concerned. Gathered from the reasons in
    /// the other fields.
    pub unseen: Vec<Unseen>,
    /// Anomalies of the source: skipped lines, inconsistent bus numbers.
    pub notes: Vec<Note>,
}

impl Inventory {
    /// An inventory without functions and with every fact unseen, for `why`.
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

    /// The tree of functions.
    #[must_use]
    pub fn tree(&self) -> Tree {
        Tree::of(&self.functions)
    }
}

/// Source of an inventory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// The machine this runs on.
    ThisMachine,
    /// A folder with a copy of another machine's `/sys` and `/proc`.
    Folder(PathBuf),
    /// A tar of such a folder.
    Archive(PathBuf),
    /// Output of `lspci`.
    Lspci {
        /// The file.
        path: PathBuf,
        /// Whether it contains hexadecimal dumps (`-x`, `-xxx`, `-xxxx`).
        hex: bool,
        /// Whether it contains decoded text (`-v`, `-vv`, `-vvv`).
        text: bool,
    },
}

impl Source {
    /// Whether it is the machine this program runs on.
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
                    (true, false) => "lspci hex dump",
                    (false, true) => "lspci listing",
                    _ => "lspci output",
                };
                write!(f, "the {what} {}", path.display())
            }
        }
    }
}

/// An anomaly of the source that was skipped or worked around.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// Place: a file, a file and line, or a PCI address.
    pub at: String,
    /// The anomaly, and how it was treated.
    pub what: String,
}
