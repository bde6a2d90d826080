//! Several I/O queue pairs, served by one core in turns.

use super::command::Command;
use super::error::NvmeError;
use super::memory::{Bar, DmaMemory};
use super::polled::POLLS;
use super::queue::{QueueMemory, QueuePair};
use std::borrow::Borrow;

/// Most pairs: those of a bit set.
pub(crate) const MOST_PAIRS: u32 = u64::BITS;

/// Runs the commands of `next`, which are those of the pair with this number, with at most `depth` outstanding on each pair, until it
/// returns `None` for every pair and all have completed. `check` is called during long waits, and ends them with an error.
///
/// In each turn, a pair gets as many commands as it takes, and at most one of its completions is taken.
///
/// # Errors
/// [`NvmeError`] of the first command that fails, and of `check`.
pub(super) fn run<K: Borrow<Command>>(
    bar: &impl Bar,
    memory: &QueueMemory<'_, impl Bar, impl DmaMemory>,
    pairs: &mut [QueuePair<'_>],
    depth: u32,
    mut next: impl FnMut(usize) -> Option<K>,
    check: &mut impl FnMut() -> Result<(), NvmeError>,
) -> Result<(), NvmeError> {
    // Pairs that have not got all of their commands.
    let mut open = u64::MAX >> (u64::BITS - pairs.len() as u32);
    let mut fruitless = 0;
    loop {
        let (mut is_busy, mut is_taken) = (false, false);
        for (number, pair) in pairs.iter_mut().enumerate() {
            while open >> number & 1 == 1 && pair.outstanding() < depth {
                match next(number) {
                    Some(command) => pair.submit(bar, memory, command.borrow())?,
                    None => open &= !(1 << number),
                }
            }
            if pair.outstanding() > 0 {
                is_busy = true;
                is_taken |= pair.poll(bar, memory)?;
            }
        }
        if !is_busy {
            return Ok(());
        }
        if is_taken {
            fruitless = 0;
            continue;
        }
        fruitless += 1;
        match pairs.first().and_then(QueuePair::announced) {
            Some(arrived) => {
                let arrived = arrived?;
                for pair in &mut *pairs {
                    pair.notify(arrived);
                }
            }
            None if fruitless % POLLS != 0 => {
                std::hint::spin_loop();
                continue;
            }
            None => {}
        }
        // Interrupts without a completion do not extend the wait: a device may send them forever.
        if fruitless > 1 {
            checked(memory, pairs, check)?;
        }
    }
}

/// Calls `check`; names a completion that came without its interrupt.
fn checked(
    memory: &QueueMemory<'_, impl Bar, impl DmaMemory>,
    pairs: &[QueuePair<'_>],
    check: &mut impl FnMut() -> Result<(), NvmeError>,
) -> Result<(), NvmeError> {
    let Err(error) = check() else { return Ok(()) };
    let has_interrupts = error == NvmeError::Late && pairs.iter().any(QueuePair::has_interrupt);
    for pair in pairs.iter().filter(|pair| has_interrupts && pair.outstanding() > 0) {
        if pair.is_unannounced(memory)? {
            return Err(NvmeError::NoInterrupt { command: pair.waiting_for() });
        }
    }
    Err(error)
}

#[cfg(test)]
mod tests {
    use super::super::fake::{Bell, Fake, FakeCmb, FakeMemory, Fault, always, never};
    use super::super::{Cmb, CmbUses, Controller, DataPointer, IoInterrupts, IoQueues, MappedCmb, PAGE, queue_bytes};
    use super::*;
    use crate::drive_options::DataPointers;

    const PAIRS: u32 = Fake::PAIRS;
    const DATA: u64 = queue_bytes(PAIRS);

    fn memory() -> FakeMemory {
        FakeMemory::new(DATA + 16 * PAGE)
    }

    /// A read of one block, to a place of its own.
    fn read(memory: &FakeMemory, block: u64) -> Command {
        Command::read(5, block, 1, DataPointer::of(DataPointers::Prp, memory, memory.iova(DATA + block * 512), 512, 0))
    }

    #[test]
    fn commands_of_all_pairs_are_outstanding_at_once_and_the_bytes_are_those_of_the_blocks() {
        for (pairs, depth) in [(2, 1), (2, 5), (4, 1), (4, 16)] {
            let memory = memory();
            let fake = Fake::new(&memory, Fault::Batches(pairs * depth));
            let mut controller = Controller::enable(&fake, &memory, 0, None, &mut always).unwrap();
            assert_eq!(controller.create_queues(IoQueues::Host, pairs, None, &mut always).unwrap(), 63);
            // As many commands for each pair: the queues wrap.
            let each = 100 * u64::from(depth);
            let mut sent = vec![0; pairs as usize];
            let next = |pair: usize| {
                let nth = sent[pair] * u64::from(pairs) + pair as u64;
                sent[pair] += 1;
                (sent[pair] <= each).then(|| read(&memory, nth % 64))
            };
            controller.run(depth, next, &mut never).unwrap();
            let all = each * u64::from(pairs);
            assert_eq!((fake.reads(), fake.most_outstanding()), (all, pairs * depth), "{pairs} pairs");
            let blocks = all.min(64);
            assert_eq!(memory.bytes(DATA, blocks * 512), Fake::image(0, blocks * 512), "{pairs} pairs");
        }
    }

    #[test]
    fn interrupts_of_a_vector_of_each_pair_or_of_a_shared_one_announce_all_completions() {
        for vectors in [1, 2, 4] {
            let memory = memory();
            let fake = Fake::new(&memory, Fault::Batches(8));
            let event = Bell::new(&fake);
            let mut controller = Controller::enable(&fake, &memory, 0, None, &mut always).unwrap();
            let interrupts = Some(IoInterrupts { vectors, event: &event });
            controller.create_queues(IoQueues::Host, 4, interrupts, &mut always).unwrap();
            let mut reads = (0..800).map(|n| read(&memory, n % 64));
            controller.run(2, |_| reads.next(), &mut never).unwrap();
            assert_eq!((fake.reads(), fake.most_outstanding()), (800, 8), "{vectors} vectors");
            assert!(event.arrived() >= 100, "{} waits with {vectors} vectors", event.arrived());
        }
    }

    #[test]
    fn a_completion_of_any_pair_without_its_interrupt_is_named_and_empty_interrupts_do_not_extend_the_wait() {
        for (fault, error) in
            [(Fault::NoInterrupt, NvmeError::NoInterrupt { command: "Read" }), (Fault::OnlyInterrupts, NvmeError::Late)]
        {
            let memory = memory();
            let fake = Fake::new(&memory, fault);
            let event = Bell::new(&fake);
            let mut controller = Controller::enable(&fake, &memory, 0, None, &mut always).unwrap();
            let interrupts = Some(IoInterrupts { vectors: 2, event: &event });
            controller.create_queues(IoQueues::Host, 2, interrupts, &mut always).unwrap();
            let mut one_of_the_second = Some(read(&memory, 0));
            let next = |pair| if pair == 1 { one_of_the_second.take() } else { None };
            assert_eq!(controller.run(1, next, &mut never), Err(error));
        }
    }

    #[test]
    fn submission_queues_of_all_pairs_fit_into_the_memory_buffer() {
        for queues in [IoQueues::SubmissionsInCmb, IoQueues::InCmb] {
            let memory = memory();
            let fake = Fake::with_cmb(&memory, Fault::None, FakeCmb::Hidden);
            let uses = CmbUses { queues: true, data: false };
            let cmb = Cmb::find(&fake, uses).unwrap();
            assert_eq!(cmb.len, 8 * PAGE);
            let mapped = MappedCmb { cmb, memory: &fake, address: Fake::BAR + Fake::CMB, uses };
            let mut controller = Controller::enable(&fake, &memory, 0, Some(mapped), &mut always).unwrap();
            controller.create_queues(queues, 4, None, &mut always).unwrap();
            let mut reads = (0..400).map(|n| read(&memory, n % 64));
            controller.run(3, |_| reads.next(), &mut never).unwrap();
            assert_eq!((fake.reads(), memory.bytes(DATA, 64 * 512)), (400, Fake::image(0, 64 * 512)), "{queues:?}");
        }
    }

    #[test]
    fn more_pairs_than_the_controller_grants_are_refused_with_their_number() {
        let memory = memory();
        let fake = Fake::new(&memory, Fault::None);
        let mut controller = Controller::enable(&fake, &memory, 0, None, &mut always).unwrap();
        assert_eq!(controller.grant(MOST_PAIRS, &mut always), Ok(4));
        let said = controller.create_queues(IoQueues::Host, 5, None, &mut always).unwrap_err();
        assert_eq!(said, NvmeError::QueuePairs { wanted: 5, granted: 4 });
    }
}
