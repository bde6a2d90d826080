//! Commands through a queue pair in memory, by this driver and by a bare loop: what the driver adds, in instructions.
//!
//! The device is a function that copies the identifier of each command to a completion. It is the same for all.

use super::command::Command;
use super::controller::{Controller, IoQueues, queue_bytes};
use super::data::DataPointer;
use super::error::NvmeError;
use super::host_entry::store_entry;
use super::memory::{Bar, DmaMemory, PAGE};
use crate::host_pages::HostPages;
use rustix::io::Errno;
use std::cell::Cell;
use std::hint::black_box;

/// Entries of each queue.
const ENTRIES: u64 = 64;
/// Places of the admin and of the I/O queues: submissions, completions.
const QUEUES: [[u64; 2]; 2] = [[0, PAGE], [3 * PAGE, 4 * PAGE]];
/// Doorbells of the I/O queues: submissions, completions.
const DOORBELLS: [u64; 2] = [0x1008, 0x100c];

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
    match by {
        SubmittedBy::Driver => driver(&device, &memory, &prepared, commands).map_err(|error| error.to_string()),
        SubmittedBy::BareLoop => {
            bare_loop(&device, &memory, &prepared, commands);
            Ok(())
        }
        SubmittedBy::Nothing => {
            (0..commands).for_each(|_| device.complete(1));
            Ok(())
        }
    }
}

fn driver(device: &Device<'_>, memory: &Memory<'_>, prepared: &[Command], commands: u64) -> Result<(), NvmeError> {
    let mut check = || Ok(());
    let mut controller = Controller::enable(device, memory, 0, None, &mut check)?;
    controller.create_queues(IoQueues::Host, 1, None, &mut check)?;
    let mut nth = 0;
    let next = |_| {
        let command = prepared.get(nth as usize % 16).copied().filter(|_| nth < commands);
        nth += 1;
        command
    };
    controller.run(1, next, &mut check)
}

/// The same commands without a driver: there is one outstanding command, so its identifier is 0.
fn bare_loop(device: &Device<'_>, memory: &Memory<'_>, prepared: &[Command], commands: u64) {
    let [submissions, completions] = QUEUES[1];
    let (mut tail, mut phase) = (0, 1);
    for nth in 0..commands {
        let Some(command) = prepared.get(nth as usize % 16) else { return };
        store_entry(memory.0, submissions + tail * 64, command.entry(0));
        let completion = completions + tail * 16 + 8;
        tail = (tail + 1) % ENTRIES;
        device.ring(DOORBELLS[0], tail);
        while memory.0.load_word(completion) >> 48 & 1 != phase {
            std::hint::spin_loop();
        }
        phase ^= u64::from(tail == 0);
        device.ring(DOORBELLS[1], tail);
    }
}

/// Memory of queues, as a window of host memory.
#[derive(Debug)]
struct Memory<'a>(&'a HostPages);

impl DmaMemory for Memory<'_> {
    #[inline]
    fn load(&self, offset: u64) -> u64 {
        self.0.load_word(offset)
    }

    #[inline]
    fn store(&self, offset: u64, value: u64) {
        self.0.store_word(offset, value);
    }

    #[inline]
    fn store_entry(&self, offset: u64, entry: [u64; 8]) {
        store_entry(self.0, offset, entry);
    }

    #[inline]
    fn iova(&self, offset: u64) -> u64 {
        offset
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
        let id = self.memory.load(submissions + turn % ENTRIES * 64) >> 16 & 0xffff;
        let phase = u64::from((turn / ENTRIES).is_multiple_of(2));
        self.memory.store(completions + turn % ENTRIES * 16 + 8, (phase << 16 | id) << 32);
    }

    /// A store to a doorbell.
    #[inline]
    fn ring(&self, doorbell: u64, value: u64) {
        black_box(value);
        if doorbell == DOORBELLS[0] {
            self.complete(1);
        }
    }
}

impl Bar for Device<'_> {
    fn load(&self, offset: u64, _width: u8) -> Result<u64, Errno> {
        Ok(match offset {
            // CAP: 64 entries, and the NVM command set.
            0 => ENTRIES - 1,
            4 => 1 << 5,
            // CSTS follows CC.
            0x1c => self.is_enabled.get().into(),
            _ => 0,
        })
    }

    #[inline]
    fn store(&self, offset: u64, _width: u8, value: u64) -> Result<(), Errno> {
        match offset {
            0x1008.. => self.ring(offset, value),
            0x1000 => self.complete(0),
            0x14 => self.is_enabled.set(value & 1 == 1),
            _ => {}
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
