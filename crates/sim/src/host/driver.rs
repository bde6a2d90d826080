//! A driver: the instructions by which a core starts a transfer of a card and waits for its completion.
//!
//! ```text
//!  [enter, pin] --> [build list --> write it to the card] --> ring --> wait --> [handler, thread] --> [unpin, return]
//! ```
//!
//! Operating system time is one instruction with a duration. Stores to the card and loads of its status are ordinary
//! instructions. The content of descriptors is not decoded: the plan has configured the card's engine.

use crate::host::instruction::{Instruction, Manner, Touch};
use crate::host::pins::Pins;
use lanemark_machine::{Completion, Descriptors, DmaCall, Share, Verb};
use lanemark_platform::{Mailbox, Platform};
use lanemark_units::{MemoryType, Ticks};

/// Constants of a driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    pub(crate) call: Ticks,
    pub(crate) pin_page: Ticks,
    pub(crate) unpin_page: Ticks,
    pub(crate) build: Ticks,
    /// Time of the interrupt handler and of waking the thread.
    pub(crate) woken: Ticks,
    /// Time of the load that finds the awaited word.
    cached_load: Ticks,
    entry_bytes: u64,
    /// Bytes of host memory that a descriptor covers.
    pub(crate) descriptor_bytes: u64,
    /// Bytes of a store to the descriptor list.
    store_bytes: u64,
    pub(crate) cycle: Ticks,
    /// Bus address of the DMA memory.
    pub(crate) mapped_at: u64,
    /// Driver interfaces of the channels of each card.
    mailboxes: Vec<Vec<Mailbox>>,
}

impl Spec {
    /// Reads the constants of a platform; `None` without a driver or a DMA engine.
    #[must_use]
    pub fn new(platform: &Platform) -> Option<Spec> {
        let (driver, dma) = (platform.driver.as_ref()?, platform.dma.as_ref()?);
        let entry_bytes = u64::from(dma.descriptor_entry_bytes.value);
        Some(Spec {
            call: driver.call_ns.value,
            pin_page: driver.pin_page_ns.value,
            unpin_page: driver.unpin_page_ns.value,
            build: driver.build_descriptor_ns.value,
            woken: driver.handler_ns.value + driver.wake_ns.value,
            cached_load: platform.core.cached_load_ns.value,
            entry_bytes,
            descriptor_bytes: u64::from(dma.descriptor_bytes.value),
            store_bytes: u64::from(driver.copy_bytes.value).min(entry_bytes),
            cycle: Ticks::from_ns(1.0 / platform.core.clock_ghz.value).unwrap_or(Ticks(1)),
            mapped_at: platform.memory.as_ref()?.address_bytes.value,
            mailboxes: (0..platform.cards()).map(|card| mailboxes(platform, card)).collect(),
        })
    }
}

/// Returns the driver interfaces of a card's channels; empty if they do not all fit.
pub(crate) fn mailboxes(platform: &Platform, card: u32) -> Vec<Mailbox> {
    (0..).map_while(|channel| platform.mailbox(card, channel)).collect()
}

/// Returns the number of blocks of `block` bytes that a range touches.
#[must_use]
pub const fn blocks(start: u64, bytes: u64, block: u64) -> u64 {
    (start + bytes - 1) / block - start / block + 1
}

impl Spec {
    /// Applies `scaled` to every software time.
    #[must_use]
    pub(crate) fn scaled(mut self, scaled: impl Fn(Ticks) -> Ticks) -> Spec {
        for span in [&mut self.call, &mut self.pin_page, &mut self.unpin_page, &mut self.build, &mut self.woken] {
            *span = scaled(*span);
        }
        self
    }

    /// Returns the doorbell of a card's first channel, if it has one.
    pub(crate) fn doorbell(&self, card: u32) -> Option<u64> {
        Some(self.mailboxes.get(card as usize)?.first()?.doorbell)
    }
}

/// The next step of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Enter,
    Build,
    /// This page of the buffer could not be pinned.
    Refused(u64),
    /// The number of stores to the list already done.
    Write(u64),
    Ring,
    Wait,
    Wake,
    Leave,
    Over,
}

/// A call in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    asked: DmaCall,
    mailbox: Mailbox,
    /// Number of transfers of the channel after this one.
    number: u64,
    start: u64,
    pages: u64,
    descriptors: u64,
    step: Step,
}

impl Call {
    /// Creates call number `nth` of a plan; `number` is the number of transfers of the channel after this one. `None`
    /// if the channel has no driver interface: such plans are refused before they run.
    #[must_use]
    pub fn new(spec: &Spec, call: &DmaCall, nth: u64, number: u64) -> Option<Call> {
        let mailbox = *spec.mailboxes.get(call.transfer.card as usize)?.get(call.channel as usize)?;
        let start = spec.mapped_at + call.transfer.window.place(nth, call.transfer.bytes);
        Some(Call {
            asked: *call,
            mailbox,
            number,
            start,
            pages: blocks(start, call.transfer.bytes, Pins::PAGE),
            descriptors: blocks(start, call.transfer.bytes, spec.descriptor_bytes),
            step: match call.share {
                Share::Call => Step::Enter,
                Share::List => Step::Build,
                Share::Doorbell => Step::Ring,
            },
        })
    }

    /// Pins its pages; if one cannot be pinned, the call ends at its start.
    pub fn pin(&mut self, pins: &mut Pins) {
        if self.step == Step::Enter
            && pins.card() == self.asked.transfer.card
            && let Some(page) = pins.pin(self.start, self.pages)
        {
            self.step = Step::Refused(page.nth);
        }
    }

    /// Returns the next instruction; `None` at the end of the call.
    pub fn next(&mut self, spec: &Spec) -> Option<Instruction> {
        let touch =
            |verb, manner, address, len| Touch { verb, manner, address, len, turn: self.number, pace: spec.cycle };
        loop {
            let (instruction, step) = match (self.step, self.asked.descriptors) {
                (Step::Enter, _) => {
                    (Some(Instruction::Kernel(spec.call / 2 + spec.pin_page * self.pages)), Step::Build)
                }
                (Step::Refused(nth), _) => {
                    // Pin up to the page that fails, and unpin.
                    let pinned = spec.pin_page * nth + spec.unpin_page * (nth - 1);
                    (Some(Instruction::Kernel(spec.call + pinned)), Step::Over)
                }
                (Step::Build, _) => (Some(Instruction::Work(spec.build * self.descriptors)), Step::Write(0)),
                (Step::Write(done), Descriptors::Written(memory_type))
                    if done * spec.store_bytes < self.descriptors * spec.entry_bytes =>
                {
                    let manner = if memory_type == MemoryType::Wc { Manner::Combining } else { Manner::Uncached };
                    let address = self.mailbox.list + done * spec.store_bytes % self.mailbox.list_bytes;
                    let store = touch(Verb::Store, manner, address, spec.store_bytes);
                    (Some(Instruction::Touch(store)), Step::Write(done + 1))
                }
                (Step::Write(_), _) => (None, Step::Ring),
                (Step::Ring, _) => {
                    let store = touch(Verb::Store, Manner::Uncached, self.mailbox.doorbell, 8);
                    (Some(Instruction::Touch(store)), Step::Wait)
                }
                (Step::Wait, _) => {
                    let instruction = match self.asked.completion {
                        Completion::Register => Instruction::Poll {
                            touch: touch(Verb::Load, Manner::Uncached, self.mailbox.status, 8),
                            until: self.number,
                        },
                        Completion::Flag | Completion::Interrupt => Instruction::Await { until: self.number },
                    };
                    (Some(instruction), Step::Wake)
                }
                (Step::Wake, _) => {
                    let instruction = match self.asked.completion {
                        Completion::Flag => Some(Instruction::Pause(spec.cached_load)),
                        Completion::Interrupt => Some(Instruction::Kernel(spec.woken)),
                        Completion::Register => None,
                    };
                    (instruction, Step::Leave)
                }
                (Step::Leave, _) => {
                    let kernel = spec.unpin_page * self.pages + (spec.call - spec.call / 2);
                    ((self.asked.share == Share::Call).then_some(Instruction::Kernel(kernel)), Step::Over)
                }
                (Step::Over, _) => return None,
            };
            self.step = step;
            if instruction.is_some() {
                return instruction;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_machine::{Partner, Pattern, Transfer, Window};

    /// Returns the instructions of one call of 8 KiB from `offset` on, on a card whose driver writes descriptors by 8
    /// B.
    fn instructions(share: Share, descriptors: Descriptors, completion: Completion, offset: u64) -> Vec<Instruction> {
        let platform = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
        let spec = Spec::new(&platform).unwrap();
        let window = Window { offset, len: 1 << 20, pattern: Pattern::Sequential };
        let partner = Partner::Host;
        let transfer =
            Transfer { card: 0, verb: Verb::Load, partner, bytes: 8192, count: 1, window, outstanding: None };
        let mut call =
            Call::new(&spec, &DmaCall { transfer, channel: 0, share, descriptors, completion }, 0, 7).unwrap();
        std::iter::from_fn(|| call.next(&spec)).collect()
    }

    fn stores(all: &[Instruction]) -> Vec<u64> {
        let address = |one: &Instruction| if let Instruction::Touch(touch) = one { Some(touch.address) } else { None };
        all.iter().filter_map(address).collect()
    }

    #[test]
    fn a_call_that_cannot_pin_a_page_unpins_the_others_and_rings_no_doorbell() {
        let platform = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
        let spec = Spec::new(&platform).unwrap();
        let window = Window { offset: 0, len: 1 << 20, pattern: Pattern::Sequential };
        let partner = Partner::Host;
        let transfer =
            Transfer { card: 0, verb: Verb::Load, partner, bytes: 8192, count: 1, window, outstanding: None };
        let (descriptors, completion) = (Descriptors::Fetched, Completion::Flag);
        let ends = |share, nth| {
            let mut call =
                Call::new(&spec, &DmaCall { transfer, channel: 0, share, descriptors, completion }, 0, 7).unwrap();
            call.pin(&mut Pins::until(0, nth));
            std::iter::from_fn(|| call.next(&spec)).collect::<Vec<_>>()
        };
        let kernel =
            |pinned, unpinned| Instruction::Kernel(spec.call + spec.pin_page * pinned + spec.unpin_page * unpinned);
        assert_eq!(ends(Share::Call, 1), [kernel(1, 0)]);
        assert_eq!(ends(Share::Call, 2), [kernel(2, 1)]);
        assert_eq!(ends(Share::Call, 3), instructions(Share::Call, descriptors, completion, 0), "it has two pages");
        assert_eq!(ends(Share::List, 1), instructions(Share::List, descriptors, completion, 0), "it pins nothing");
    }

    #[test]
    fn a_range_touches_every_page_from_its_start_to_its_end() {
        assert_eq!([blocks(0, 4096, 4096), blocks(0, 4097, 4096), blocks(4095, 2, 4096)], [1, 2, 2]);
    }

    #[test]
    fn a_list_on_the_card_is_written_before_the_doorbell() {
        let uc = Descriptors::Written(MemoryType::Uc);
        let written = instructions(Share::List, uc, Completion::Flag, 0);
        // Two pages and two descriptors of 16 B each; the last store is the doorbell.
        let (list, bell) = (0x200_1000_8000_u64, 0x200_1000_0000);
        assert_eq!(stores(&written), [list, list + 8, list + 16, list + 24, bell]);
        assert_eq!(written[written.len() - 2], Instruction::Await { until: 7 });
        assert_eq!(stores(&instructions(Share::List, Descriptors::Fetched, Completion::Flag, 0)), [bell]);
        // One byte more than two pages touches three.
        assert_eq!(stores(&instructions(Share::List, uc, Completion::Flag, 1)).len(), 7);
        assert_eq!(stores(&instructions(Share::Doorbell, uc, Completion::Flag, 1)), [bell]);
    }

    #[test]
    fn only_a_whole_call_enters_the_kernel_and_only_an_interrupt_wakes_the_thread() {
        let kernels = |share, completion| {
            let all = instructions(share, Descriptors::Fetched, completion, 0);
            all.iter().filter(|one| matches!(one, Instruction::Kernel(_))).count()
        };
        assert_eq!(kernels(Share::Call, Completion::Flag), 2);
        assert_eq!(kernels(Share::Call, Completion::Interrupt), 3);
        assert_eq!(kernels(Share::Doorbell, Completion::Register), 0);
    }
}
