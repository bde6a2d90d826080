//! Commands through a queue pair in memory, by this driver and by a bare loop: what the driver adds, in instructions.
//!
//! The device is a function that copies the identifier of each command to a completion. It is the same for all.

use super::command::Command;
use super::controller::{Controller, IoQueues, queue_bytes};
use super::data::DataPointer;
use super::error::NvmeError;
use super::host_entry::HostSlots;
use super::memory::{Bar, COMPLETION, DmaMemory, Doorbell, ENTRIES, PAGE, SUBMISSION, Slots as _};
use crate::host_pages::HostPages;
use rustix::io::Errno;
use std::cell::Cell;
use std::hint::black_box;

/// Places of the admin and of the I/O queues: submissions, completions.
const QUEUES: [[u64; 2]; 2] = [[0, PAGE], [3 * PAGE, 4 * PAGE]];
/// Doorbells of the I/O queues: submissions, completions.
const DOORBELLS: [u64; 2] = [0x1008, 0x100c];
/// The phase in dword 3 of a completion.
const PHASE: u32 = 1 << 16;
/// Doorbell of the admin submissions.
const ADMIN_DOORBELL: u64 = 0x1000;

/// Code that submits the commands: the driver, or what it is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SubmittedBy {
    /// The queue pair of this driver.
    Driver,
    /// A bare loop: eight stores, the doorbell, polls of the phase, and the other doorbell.
    BareLoop,
    /// Nothing: the device alone, which both others include.
    Nothing,
}

/// Runs `commands` commands, one at a time.
///
/// # Errors
/// The error of the driver in words, or that of the allocation of memory.
pub fn submitted(by: SubmittedBy, commands: u64) -> Result<(), String> {
    let pages = HostPages::new(queue_bytes(1)).map_err(|error| error.to_string())?;
    let memory = Memory(&pages);
    let device = Device { memory: &memory, turns: Cell::default(), is_enabled: Cell::new(false) };
    let prepared: Vec<Command> =
        (0..16).map(|nth| Command::read(1, nth, 1, DataPointer::prp([PAGE * nth, 0]))).collect();
    let (prepared, mut nth) = (prepared.as_slice(), 0);
    let next = move || {
        let command = prepared.get(nth as usize % 16).filter(|_| nth < commands);
        nth += 1;
        command
    };
    match by {
        SubmittedBy::Driver => driver(&device, &memory, next).map_err(|error| error.to_string())?,
        SubmittedBy::BareLoop => bare_loop(&device, &memory, next),
        SubmittedBy::Nothing => (0..commands).for_each(|_| device.complete(1)),
    }
    let [_, completed] = device.turns.get();
    if completed == commands { Ok(()) } else { Err(format!("{completed} of {commands} commands were completed")) }
}

fn driver<'c>(
    device: &Device<'_>,
    memory: &Memory<'_>,
    mut next: impl FnMut() -> Option<&'c Command>,
) -> Result<(), NvmeError> {
    let mut check = || Ok(());
    let mut controller = Controller::enable(device, memory, 0, None, &mut check)?;
    controller.create_queues(IoQueues::Host, 1, None, &mut check)?;
    controller.run(1, move |_| next(), &mut check)
}

/// The same commands without a driver: there is one outstanding command, so its identifier is 0.
fn bare_loop<'c>(device: &Device<'_>, memory: &Memory<'_>, mut next: impl FnMut() -> Option<&'c Command>) {
    let [submissions, completions] = QUEUES[1].map(|place| memory.slots(place));
    let [Ok(submitted), Ok(taken)] = black_box(DOORBELLS).map(|offset| device.doorbell(offset)) else { return };
    let (mut tail, mut phase) = (0, PHASE);
    while let Some(command) = next() {
        let _ = submissions.submit(tail, command.words(), 0);
        let head = tail;
        tail = if tail + 1 == u32::from(ENTRIES) { 0 } else { tail + 1 };
        let _ = submitted.ring(tail);
        while completions.completion(head).is_ok_and(|last| (last >> 32) as u32 & PHASE != phase) {
            std::hint::spin_loop();
        }
        if tail == 0 {
            phase ^= PHASE;
        }
        let _ = taken.ring(tail);
    }
}

/// Memory of queues, as a window of host memory.
#[derive(Debug)]
struct Memory<'a>(&'a HostPages);

impl DmaMemory for Memory<'_> {
    type Slots<'a>
        = HostSlots<'a>
    where
        Self: 'a;

    #[inline]
    fn load(&self, offset: u64) -> u64 {
        self.0.load_word(offset)
    }

    #[inline]
    fn store(&self, offset: u64, value: u64) {
        self.0.store_word(offset, value);
    }

    #[inline]
    fn iova(&self, offset: u64) -> u64 {
        offset
    }

    fn slots(&self, offset: u64) -> HostSlots<'_> {
        HostSlots::new(self.0, offset)
    }
}

/// A device that completes each command of a queue at its doorbell.
#[derive(Debug)]
struct Device<'a> {
    memory: &'a Memory<'a>,
    /// Commands of each queue so far.
    turns: Cell<[u64; 2]>,
    is_enabled: Cell<bool>,
}

impl Device<'_> {
    /// Completes the next command of a queue.
    #[inline(never)]
    fn complete(&self, number: usize) {
        let [submissions, completions] = QUEUES[number];
        let mut turns = self.turns.get();
        let turn = turns[number];
        turns[number] += 1;
        self.turns.set(turns);
        let id = self.memory.load(submissions + turn % u64::from(ENTRIES) * SUBMISSION) >> 16 & 0xffff;
        let phase = u64::from((turn / u64::from(ENTRIES)).is_multiple_of(2));
        self.memory.store(completions + turn % u64::from(ENTRIES) * COMPLETION + 8, (phase << 16 | id) << 32);
    }
}

/// A doorbell, and the queue whose submissions it is for.
#[derive(Debug)]
struct Bell<'a> {
    device: &'a Device<'a>,
    queue: Option<usize>,
}

impl Doorbell for Bell<'_> {
    #[inline]
    fn ring(&self, value: u32) -> Result<(), Errno> {
        black_box(value);
        if let Some(queue) = self.queue {
            self.device.complete(queue);
        }
        Ok(())
    }
}

impl Bar for Device<'_> {
    type Doorbell<'a>
        = Bell<'a>
    where
        Self: 'a;

    fn doorbell(&self, offset: u64) -> Result<Bell<'_>, Errno> {
        let queue = [ADMIN_DOORBELL, DOORBELLS[0]].into_iter().position(|of| of == offset);
        Ok(Bell { device: self, queue })
    }

    fn load(&self, offset: u64, _width: u8) -> Result<u64, Errno> {
        Ok(match offset {
            // CAP: 64 entries, and the NVM command set.
            0 => u64::from(ENTRIES) - 1,
            4 => 1 << 5,
            // CSTS follows CC.
            0x1c => self.is_enabled.get().into(),
            _ => 0,
        })
    }

    #[inline]
    fn store(&self, offset: u64, _width: u8, value: u64) -> Result<(), Errno> {
        if offset == 0x14 {
            self.is_enabled.set(value & 1 == 1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_and_the_bare_loop_run_all_commands_over_several_rounds_of_the_queue() {
        for by in [SubmittedBy::Driver, SubmittedBy::BareLoop, SubmittedBy::Nothing] {
            assert_eq!(submitted(by, 1000), Ok(()), "{by:?}");
        }
    }
}
