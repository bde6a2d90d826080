//! How targets are opened.

use crate::changes::Changes;
use crate::error::RunError;
use crate::target::Target;
use lanemark_hw::linux_sysfs::{Consent, Range, System};
use std::path::PathBuf;

/// How targets are opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setup {
    /// Changes to simulated platforms.
    pub changes: Changes,
    /// Simulates every transfer: the same results, slower.
    pub no_fast_forward: bool,
    /// A file of kernels for devices behind runtimes that have no compiler.
    pub kernels: Option<PathBuf>,
    /// The ranges of a card that may be accessed.
    pub card: CardAccess,
}

/// What may be touched of a card, and what may be changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CardAccess {
    /// The ranges of BARs that may be loaded and stored; nothing else is.
    pub bars: Vec<Range>,
    /// A driver that is bound to the device, and memory decoding that is off.
    pub consent: Consent,
    /// Marks the record as made in an emulator, which is also detected.
    pub emulated: bool,
    /// A folder that stands for the root of the file system, for tests.
    pub system_root: Option<PathBuf>,
}

impl CardAccess {
    /// The first part that is given, by the name of its option.
    fn given(&self) -> Option<&'static str> {
        let given = [
            (!self.bars.is_empty(), "bar"),
            (self.consent.owns_device, "i_own_this_device"),
            (self.consent.enable, "enable"),
            (self.emulated, "emulated"),
            (self.system_root.is_some(), "system_root"),
        ];
        given.into_iter().find(|(is_given, _)| *is_given).map(|(_, field)| field)
    }

    /// Refuses access to a card where no card is asked, and ranges for several cards.
    pub(crate) fn check(&self, targets: &[Target]) -> Result<(), RunError> {
        let cards = targets.iter().filter(|target| matches!(target, Target::Card(_))).count();
        match self.given() {
            Some(field) if cards == 0 => Err(RunError::NoCard { field }),
            _ if cards > 1 => Err(RunError::SeveralCards),
            _ => Ok(()),
        }
    }

    /// The files of the kernel to look at.
    pub(crate) fn system(&self) -> System {
        self.system_root.as_deref().map_or_else(System::this, System::at)
    }
}
