//! Machines under test.

use super::{Opened, Subject, WATCHED_BYTES};
use lanemark_hw::linux_lanemark;
use lanemark_hw::linux_nvme::{DriveNode, NvmeMachine};
use lanemark_hw::linux_sysfs::{Address, Attachment, Card, CardMachine, Consent, Device, Range, System};
use lanemark_hw::linux_vfio::{VfioMachine, VfioOptions};
use lanemark_hw::linux_xdma::{CardMemory, XdmaCard, XdmaMachine};
use lanemark_hw::{Destructive, DriveOptions, HostMemory};
use lanemark_machine::{Facts, Machine, MachineError, Plan, Samples, Unsupported};
use lanemark_model::FormulaMachine;
use lanemark_platform::{Platform, preset};
use lanemark_runner::device_file;
use lanemark_sim::SimulatedMachine;
use lanemark_units::MemoryType;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A built-in platform, simulated.
pub struct Simulation(pub &'static str);

/// The formulas of a built-in platform.
pub struct Formulas(pub &'static str);

/// The memory of this machine.
pub struct Host;

/// A storage range at the start of a BAR of a device, at least [`WATCHED_BYTES`] long.
pub struct Storage {
    /// Address of the device.
    pub address: Address,
    /// Range in the BAR.
    pub range: Range,
}

/// A storage range as in [`Storage`], of a device that is bound to `vfio-pci`.
pub struct StorageBehindVfio {
    /// Address of the device.
    pub address: Address,
    /// Range in the BAR.
    pub range: Range,
}

/// A storage range as in [`Storage`], of a device that is bound to our kernel module.
pub struct StorageBehindModule {
    /// Address of the device.
    pub address: Address,
    /// Range in the BAR.
    pub range: Range,
}

/// A namespace of an NVMe drive, read through the kernel's driver.
pub struct Drive {
    /// Path of its character device.
    pub path: PathBuf,
}

/// An NVMe drive that is bound to `vfio-pci`, by queues of this program.
pub struct DriveBehindVfio {
    /// Address of the drive.
    pub address: Address,
    /// The part of its namespace that may be overwritten.
    pub destructive: Option<Destructive>,
}

/// The DMA engine of a device that is bound to `vfio-pci`, as a device file describes it.
pub struct CardEngine {
    /// Address of the device.
    pub address: Address,
    /// The device file: the name of a built-in one, or a path.
    pub file: String,
}

/// A card with AMD's XDMA core, through its driver.
pub struct Xdma {
    /// Common part of the paths of its files.
    pub path: PathBuf,
    /// Range of its memory that may be overwritten.
    pub memory: CardMemory,
}

/// Whether this machine is emulated, as the test guest is.
fn is_emulated() -> bool {
    System::this().emulated().is_some()
}

/// # Panics
/// If the preset does not exist or is invalid, which other tests report too.
fn platform(name: &str) -> Platform {
    preset(name).unwrap_or_else(|| panic!("no platform {name}")).unwrap_or_else(|error| panic!("{error}"))
}

impl Subject for Simulation {
    fn name(&self) -> String {
        format!("{} (simulated)", self.0)
    }

    fn open(&self, interrupted: Arc<AtomicBool>) -> Box<dyn Opened> {
        let machine = SimulatedMachine::new(&platform(self.0)).unwrap_or_else(|error| panic!("{error}"));
        Box::new(machine.interrupted_by(interrupted))
    }
}

impl Opened for SimulatedMachine {
    fn machine(&mut self) -> &mut dyn Machine {
        self
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let name = self.facts().storage()?.name.clone();
        let mut bytes = vec![0; WATCHED_BYTES];
        self.board_mut().region_mut(&name)?.memory.read(0, &mut bytes);
        Some(bytes)
    }
}

impl Subject for Formulas {
    fn name(&self) -> String {
        format!("{} (formulas)", self.0)
    }

    fn open(&self, _interrupted: Arc<AtomicBool>) -> Box<dyn Opened> {
        let platform = platform(self.0);
        let simulated = SimulatedMachine::new(&platform).unwrap_or_else(|error| panic!("{error}"));
        Box::new(FormulaMachine::new(&platform, simulated.facts()))
    }

    fn takes_samples(&self) -> bool {
        false
    }
}

impl Opened for FormulaMachine {
    fn machine(&mut self) -> &mut dyn Machine {
        self
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        None
    }
}

impl Subject for Host {
    fn name(&self) -> String {
        "host".to_owned()
    }

    fn open(&self, interrupted: Arc<AtomicBool>) -> Box<dyn Opened> {
        let host = HostMemory::open().unwrap_or_else(|error| panic!("{error}"));
        Box::new(host.interrupted_by(interrupted))
    }
}

impl Opened for HostMemory {
    fn machine(&mut self) -> &mut dyn Machine {
        self
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        Some(HostMemory::bytes(self)[..WATCHED_BYTES].to_vec())
    }
}

/// A card, with a separate mapping to read its bytes.
struct AttachedStorage {
    machine: CardMachine,
    address: Address,
    range: Range,
}

impl Subject for Storage {
    fn name(&self) -> String {
        format!("{} {}", self.address, self.range)
    }

    fn open(&self, interrupted: Arc<AtomicBool>) -> Box<dyn Opened> {
        let attachment = Attachment::new(&System::this(), self.address, &[self.range], Consent::default());
        let machine = attachment.and_then(|attachment| CardMachine::open(attachment, is_emulated()));
        let machine = machine.unwrap_or_else(|error| panic!("{error}")).interrupted_by(interrupted);
        Box::new(AttachedStorage { machine, address: self.address, range: self.range })
    }
}

impl Subject for StorageBehindVfio {
    fn name(&self) -> String {
        format!("{} {} behind VFIO", self.address, self.range)
    }

    fn open(&self, interrupted: Arc<AtomicBool>) -> Box<dyn Opened> {
        let is_emulated = is_emulated();
        let options = VfioOptions { ranges: &[self.range], is_emulated, ..VfioOptions::default() };
        let machine = VfioMachine::open(&System::this(), self.address, &options);
        Box::new(machine.unwrap_or_else(|error| panic!("{error}")).interrupted_by(interrupted))
    }
}

impl Subject for DriveBehindVfio {
    fn name(&self) -> String {
        format!("drive {} behind VFIO", self.address)
    }

    fn open(&self, interrupted: Arc<AtomicBool>) -> Box<dyn Opened> {
        let drive = DriveOptions { destructive: self.destructive, ..DriveOptions::default() };
        let options = VfioOptions { drive, is_emulated: is_emulated(), ..VfioOptions::default() };
        let machine = VfioMachine::open(&System::this(), self.address, &options);
        let drive = machine.unwrap_or_else(|error| panic!("{error}")).interrupted_by(interrupted);
        Box::new(DmaAlone::of(drive))
    }
}

impl Subject for CardEngine {
    fn name(&self) -> String {
        format!("engine of {} by the device file {}", self.address, self.file)
    }

    fn open(&self, interrupted: Arc<AtomicBool>) -> Box<dyn Opened> {
        let file = device_file(&self.file).unwrap_or_else(|error| panic!("{error}"));
        let options = VfioOptions { file: Some(&file), is_emulated: is_emulated(), ..VfioOptions::default() };
        let machine = VfioMachine::open(&System::this(), self.address, &options);
        Box::new(DmaAlone::of(machine.unwrap_or_else(|error| panic!("{error}")).interrupted_by(interrupted)))
    }
}

/// A device behind VFIO, with its DMA alone.
struct DmaAlone {
    device: VfioMachine,
    facts: Facts,
}

impl DmaAlone {
    fn of(device: VfioMachine) -> DmaAlone {
        // Its memory is for mappings, and neither loaded nor stored by plans.
        let facts = Facts { regions: Vec::new(), ..device.facts().clone() };
        DmaAlone { device, facts }
    }
}

impl Machine for DmaAlone {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn supports(&self, plan: &Plan) -> Result<(), Unsupported> {
        self.device.supports(plan)
    }

    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        self.device.run(plan, samples)
    }
}

impl Subject for StorageBehindModule {
    fn name(&self) -> String {
        format!("{} {} behind our module", self.address, self.range)
    }

    fn open(&self, interrupted: Arc<AtomicBool>) -> Box<dyn Opened> {
        let machine = linux_lanemark::open(&System::this(), self.address, &[self.range], is_emulated());
        Box::new(machine.unwrap_or_else(|error| panic!("{error}")).interrupted_by(interrupted))
    }
}

impl Subject for Drive {
    fn name(&self) -> String {
        format!("{} through the kernel's driver", self.path.display())
    }

    fn open(&self, interrupted: Arc<AtomicBool>) -> Box<dyn Opened> {
        let node = DriveNode::find(&System::this(), &self.path).unwrap_or_else(|error| panic!("{error}"));
        // Opening reads from the drive, which the flag would end.
        let was = interrupted.swap(false, Ordering::Relaxed);
        let opened = NvmeMachine::open(&node, is_emulated(), Arc::clone(&interrupted));
        interrupted.store(was, Ordering::Relaxed);
        Box::new(opened.unwrap_or_else(|error| panic!("{error}")))
    }
}

impl Subject for Xdma {
    fn name(&self) -> String {
        format!("{} {} through the driver xdma", self.path.display(), self.memory)
    }

    fn open(&self, interrupted: Arc<AtomicBool>) -> Box<dyn Opened> {
        let card = XdmaCard::find(&System::this(), &self.path).unwrap_or_else(|error| panic!("{error}"));
        let device = Device::find(&System::this(), card.function()).unwrap_or_else(|error| panic!("{error}"));
        let attachment = Attachment { device, places: Vec::new(), driver: None, was_enabled: false };
        let machine = XdmaMachine::open(&card, Some(self.memory), attachment, is_emulated(), interrupted);
        Box::new(machine.unwrap_or_else(|error| panic!("{error}")))
    }
}

/// A machine whose bytes nothing else reads.
macro_rules! without_another_path {
    ($($machine:ty),*) => {$(
        impl Opened for $machine {
            fn machine(&mut self) -> &mut dyn Machine {
                self
            }

            fn bytes(&mut self) -> Option<Vec<u8>> {
                None
            }
        }
    )*};
}

without_another_path!(NvmeMachine, DmaAlone, XdmaMachine);

impl Opened for CardMachine {
    fn machine(&mut self) -> &mut dyn Machine {
        self
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        // Nothing else maps the BARs of a device behind our module.
        None
    }
}

impl Opened for VfioMachine {
    fn machine(&mut self) -> &mut dyn Machine {
        self
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        // The kernel lets nothing else map the BARs of a device behind VFIO.
        None
    }
}

impl Opened for AttachedStorage {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.machine
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let card = Card::attach(self.address, &[self.range], Consent::default()).ok()?;
        let mut bytes = vec![0; WATCHED_BYTES];
        card.map(0, MemoryType::Uc).ok()?.copy_from(self.range.from, &mut bytes).ok()?;
        Some(bytes)
    }
}
