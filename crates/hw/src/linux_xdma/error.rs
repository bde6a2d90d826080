//! Errors of opening a card.

use crate::linux_sysfs::CardError;
use std::io;
use std::path::PathBuf;

/// Error of opening a card through the character devices of the driver `xdma`.
///
/// Each message names the path and a remedy.
#[derive(Debug, thiserror::Error)]
pub enum XdmaError {
    /// The path is not that of a card.
    #[error("{} {is}: name a card by the common prefix of its device files, {hint}", path.display())]
    NotACard {
        /// The path given.
        path: PathBuf,
        /// Why the path is not that of a card, as the end of a sentence: `has no channel`.
        is: String,
        /// The cards of this machine, or how to get one.
        hint: String,
    },
    /// The user may not open the file.
    #[error("{}: permission denied: run as root", path.display())]
    Permission {
        /// The file.
        path: PathBuf,
    },
    /// Another program measures the card.
    #[error("{}: another program measures this card: end it first", path.display())]
    InUse {
        /// The file that it has locked.
        path: PathBuf,
    },
    /// Another program has opened a channel.
    #[error("{}: this channel is open in another program: end it first", path.display())]
    Open {
        /// The file.
        path: PathBuf,
    },
    /// The PCI function or its user BAR cannot be used.
    #[error(transparent)]
    Function(CardError),
    /// Neither a range of the card's memory nor one of its user BAR may be accessed.
    #[error(
        "{}: transfers overwrite the card's memory: name the addresses of memory on the card that nothing else uses, with --card-memory \
         FROM..TO; see the address map of the design; for loads and stores to its user BAR, name a range with --bar",
        path.display()
    )]
    NoMemory {
        /// The path given.
        path: PathBuf,
    },
    /// This card or machine cannot do it.
    #[error("{}: {because}", path.display())]
    Unsupported {
        /// The path given.
        path: PathBuf,
        /// The reason.
        because: String,
    },
    /// The operating system refused.
    #[error("{}: {doing} failed: {source}", path.display())]
    Os {
        /// The file.
        path: PathBuf,
        /// The operation.
        doing: &'static str,
        /// Error of the operating system.
        source: io::Error,
    },
}
