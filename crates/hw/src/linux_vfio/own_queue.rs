//! The queues of a drive that this program owns.

use super::host_window::HostWindow;
use super::peer::Peer;
use super::registers::{RegisterDoorbell, Registers};
use super::{VfioDevice, VfioInterrupt};
use crate::drive_options::DataPointers;
use crate::nvme::{
    Bar, Command, Controller, DataAt, DataPointer, DmaMemory, Doorbell, DrivePlan, DriveQueue, HostSlots, NvmeError,
    PAGE, Places, Spot, list_bytes, queue_bytes,
};
use lanemark_machine::MachineError;
use rustix::io::Errno;
use std::borrow::Borrow;

/// Host memory of a run: the places of its reads, the queues, and lists of data pointers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) queues: u64,
    pub(super) lists: u64,
    /// Bytes of each list: one for each place of each window, and one for the scratch.
    pub(super) list: u64,
    pub(super) len: u64,
}

impl Layout {
    pub(super) fn of(asked: &DrivePlan, data: DataPointers) -> Layout {
        let queues = Places::of(asked).end;
        let (lists, list) = (queues + queue_bytes(asked.pairs), list_bytes(data, asked.transfer.bytes));
        let places: u64 = asked.transfers().map(|of| of.window.places(of.bytes)).sum();
        let len = (lists + (places + 1) * list).next_multiple_of(PAGE);
        Layout { queues, lists, list, len }
    }
}

impl Bar for Registers {
    type Doorbell<'a> = RegisterDoorbell<'a>;

    #[inline]
    fn load(&self, offset: u64, width: u8) -> Result<u64, Errno> {
        Registers::load(self, offset, width)
    }

    #[inline]
    fn store(&self, offset: u64, width: u8, value: u64) -> Result<(), Errno> {
        Registers::store(self, offset, width, value)
    }

    fn doorbell(&self, offset: u64) -> Result<RegisterDoorbell<'_>, Errno> {
        Registers::doorbell(self, offset)
    }
}

impl Doorbell for RegisterDoorbell<'_> {
    #[inline]
    fn ring(&self, value: u32) -> Result<(), Errno> {
        self.store(value)
    }
}

impl DmaMemory for HostWindow<'_> {
    type Slots<'a>
        = HostSlots<'a>
    where
        Self: 'a;

    #[inline]
    fn load(&self, offset: u64) -> u64 {
        self.load_word(offset)
    }

    #[inline]
    fn store(&self, offset: u64, value: u64) {
        self.store_word(offset, value);
    }

    #[inline]
    fn iova(&self, offset: u64) -> u64 {
        HostWindow::iova(self, offset)
    }

    fn slots(&self, offset: u64) -> HostSlots<'_> {
        HostSlots::new(self.memory(), offset)
    }
}

/// The I/O queue pairs of an enabled controller, and what its commands need.
pub(super) struct OwnQueue<'a> {
    pub(super) controller: Controller<'a, Registers, HostWindow<'a>>,
    pub(super) window: &'a HostWindow<'a>,
    pub(super) registers: &'a Registers,
    pub(super) namespace: u32,
    pub(super) layout: Layout,
    pub(super) data: DataPointers,
    /// Address of offset 0 of the memory for data outside of host memory: the window in the controller memory buffer, or the BAR of
    /// another card.
    pub(super) outside: u64,
    pub(super) is_destructive: bool,
    pub(super) name: &'a str,
    pub(super) device: &'a VfioDevice,
    pub(super) requested: Option<&'a VfioInterrupt>,
    /// The card of `--peer`, checked with the drive.
    pub(super) peer: Option<&'a Peer>,
}

impl OwnQueue<'_> {
    /// The data pointer of a command.
    fn pointer(&self, Spot { place, at, list }: Spot, bytes: u64) -> DataPointer {
        let address = match place {
            DataAt::Host => self.window.iova(at),
            DataAt::Cmb | DataAt::Peer => self.outside.wrapping_add(at),
        };
        DataPointer::of(self.data, self.window, address, bytes, self.layout.lists + list * self.layout.list)
    }
}

impl DriveQueue for OwnQueue<'_> {
    type Command = Command;

    fn read(&self, first: u64, blocks: u32, to: Spot, bytes: u64) -> Command {
        Command::read(self.namespace, first, blocks, self.pointer(to, bytes))
    }

    fn write(&self, first: u64, blocks: u32, from: Spot, bytes: u64) -> Option<Command> {
        let data = self.pointer(from, bytes);
        self.is_destructive.then(|| Command::write(self.namespace, first, blocks, data))
    }

    #[inline]
    fn run<K: Borrow<Command>>(
        &mut self,
        depth: u32,
        next: impl FnMut(usize) -> Option<K>,
        check: &mut impl FnMut() -> Result<(), NvmeError>,
    ) -> Result<(), NvmeError> {
        self.controller.run(depth, next, check)
    }

    fn waiting_for(&self) -> &'static str {
        self.controller.waiting_for()
    }

    /// Fails if the kernel requests the device or the other card back (it is being removed, or its driver unbound), or if one is gone.
    fn check(&self) -> Result<(), MachineError> {
        let is_requested = self.requested.is_some_and(|request| request.take().unwrap_or(false));
        let what = match (self.registers.check(), self.peer.map_or(Ok(()), Peer::check_device)) {
            _ if is_requested => self.device.requested().to_string(),
            (Err(gone), _) => gone.to_string(),
            (Ok(()), Err(of_peer)) => of_peer.to_string(),
            (Ok(()), Ok(())) => return Ok(()),
        };
        Err(MachineError::Device { machine: self.name.to_owned(), what })
    }
}
