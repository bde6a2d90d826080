//! Options for opening targets.

use crate::changes::Changes;
use crate::error::RunError;
use crate::target::Target;
use lanemark_devices::{DeviceFile, Harmless};
use lanemark_hw::dut_library::Hang;
use lanemark_hw::linux_sysfs::{Address, Consent, Device, Kind, Range, System};
use lanemark_hw::linux_vfio::{PeerRange, VfioInterface, VfioOptions};
use lanemark_hw::linux_xdma::CardMemory;
use lanemark_hw::{DriveOptions, HostPageSize};
use std::path::PathBuf;

/// Options for opening targets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setup {
    /// Changes to simulated platforms.
    pub changes: Changes,
    /// Disables the fast-forward of steady state: every transfer is simulated, with the same results, more slowly.
    pub no_fast_forward: bool,
    /// File of precompiled kernels, for runtime devices without a compiler.
    pub kernels: Option<PathBuf>,
    /// A platform that describes the real card or runtime device among the targets. Its simulation and its formula are
    /// recorded with each answer of that target, for which nothing can be traced. For a compiled card, it also supplies the
    /// host and the link.
    pub twin: Option<Target>,
    /// Permitted access to a card.
    pub card: CardAccess,
    /// What ends the process if a call into a compiled card does not return; without it, none is opened.
    pub on_hang: Option<OnHang>,
}

/// What ends the process if a call into a compiled card does not return: its thread cannot be ended.
#[derive(Clone, Copy, Debug)]
pub struct OnHang(pub fn(&Hang));

impl PartialEq for OnHang {
    fn eq(&self, other: &OnHang) -> bool {
        std::ptr::fn_addr_eq(self.0, other.0)
    }
}

/// Permitted accesses and changes to a card.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CardAccess {
    /// Ranges of BARs that may be loaded and stored; all other addresses stay untouched.
    pub bars: Vec<Range>,
    /// Memory of another card behind VFIO, which may be overwritten by the card's engine.
    pub peer: Option<PeerRange>,
    /// Range of the memory of a card with the driver `xdma` that may be overwritten.
    pub card_memory: Option<CardMemory>,
    /// Description of the card, for its DMA engine.
    pub device: Option<DeviceFile>,
    /// Interface of the kernel by which a card behind VFIO is opened; `None` for the best one.
    pub vfio: Option<VfioInterface>,
    /// Size of the pages of host memory for DMA by a card behind VFIO; `None` for 2 MiB if enough are reserved, else 4 KiB;
    /// with `no-iommu` 2 MiB.
    pub host_pages: Option<HostPageSize>,
    /// Options of an NVMe drive behind VFIO.
    pub drive: DriveOptions,
    /// Driver to which the card is bound before it is opened, `vfio-pci` or `lanemark`; for a dry run, which binds nothing.
    pub binds_to: Option<String>,
    /// Consent to use a device with a bound driver, and to enable memory decoding.
    pub consent: Consent,
    /// Marks the record as made in an emulator. Known emulators are also detected.
    pub emulated: bool,
    /// Root folder of a file system for tests, instead of `/`.
    pub system_root: Option<PathBuf>,
}

impl CardAccess {
    /// Whether the card is bound to this driver before it is opened.
    pub(crate) fn binds_to(&self, driver: &str) -> bool {
        self.binds_to.as_deref() == Some(driver)
    }

    /// The first given option that needs a card named by its PCI address. `has_xdma`: there is a target `xdma:`; `has_other`: that
    /// or `nvme:`; `has_compiled`: a compiled card.
    fn given(&self, has_xdma: bool, has_other: bool, has_compiled: bool) -> Option<&'static str> {
        let given = [
            (!self.bars.is_empty() && !has_xdma, "bar"),
            (self.device.is_some() && !has_compiled, "device"),
            (self.peer.is_some(), "peer"),
            (self.vfio.is_some(), "vfio"),
            (self.host_pages.is_some(), "host_pages"),
            (self.consent.owns_device, "i_own_this_device"),
            (self.consent.enable, "enable"),
            (self.emulated && !has_other, "emulated"),
            (self.system_root.is_some() && !has_other, "system_root"),
        ];
        given.into_iter().find(|(is_given, _)| *is_given).map(|(_, field)| field).or_else(|| self.drive.given())
    }

    /// Checks that card options come with exactly one card.
    pub(crate) fn check(&self, targets: &[Target]) -> Result<(), RunError> {
        let count = |is_one: fn(&Target) -> bool| targets.iter().filter(|target| is_one(target)).count();
        let cards = count(|target| matches!(target, Target::Card(_)));
        let xdma = count(|target| matches!(target, Target::Xdma(_)));
        let has_other = count(|target| matches!(target, Target::Nvme(_) | Target::Xdma(_))) > 0;
        let has_compiled = count(|target| matches!(target, Target::Rtl(_))) > 0;
        match self.given(xdma > 0, has_other, has_compiled) {
            Some(field) if cards == 0 => Err(RunError::NoCard { field }),
            _ if self.card_memory.is_some() && xdma == 0 => Err(RunError::NoXdma { field: "card_memory" }),
            // Ranges are those of one card.
            _ if cards > 1 || xdma > 1 || (cards + xdma > 1 && !self.bars.is_empty()) => Err(RunError::SeveralCards),
            _ => self.check_peer(targets),
        }
    }

    /// Checks that `--peer` names another card than the target, and that the target is a drive or its device file describes an
    /// engine. Opening reports an absent target.
    fn check_peer(&self, targets: &[Target]) -> Result<(), RunError> {
        let Some(peer) = self.peer else { return Ok(()) };
        let has_engine = self.device.as_ref().is_some_and(|file| file.limits().is_some());
        match targets.iter().find(|target| matches!(target, Target::Card(_))) {
            Some(Target::Card(address)) if *address == peer.device => Err(RunError::PeerIsTarget(address.to_string())),
            Some(Target::Card(_)) if has_engine => Ok(()),
            Some(Target::Card(address)) if self.is_drive(*address) => Ok(()),
            Some(Target::Card(address)) if Device::find(&self.system(), *address).is_err() => Ok(()),
            _ => Err(RunError::PeerWithoutEngine),
        }
    }

    /// Whether the card is driven as an NVMe drive.
    pub(crate) fn is_drive(&self, address: Address) -> bool {
        let options = VfioOptions { file: self.device.as_ref(), ..VfioOptions::default() };
        options.is_drive(&self.system(), address)
    }

    /// The ranges of BARs that may be accessed: the named ones, or the harmless ones of the device file.
    pub(crate) fn ranges(&self) -> Vec<Range> {
        let harmless = self.device.iter().flat_map(|device| &device.harmless);
        let range = |of: &Harmless| {
            let kind = Kind::ALL.iter().find(|(name, _)| *name == of.kind).map(|(_, kind)| *kind);
            Range { bar: of.bar, from: of.from, to: of.to, kind }
        };
        if self.bars.is_empty() { harmless.map(range).collect() } else { self.bars.clone() }
    }

    /// The system files to read.
    pub(crate) fn system(&self) -> System {
        self.system_root.as_deref().map_or_else(System::this, System::at)
    }
}
