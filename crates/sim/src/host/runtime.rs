//! A runtime: the instructions of a core that launches kernels or copies buffers through a runtime library.
//!
//! ```text
//!  launch:   (submit, ring)*, wait
//!  in place: submit --> [enter, pin] --> build, ring, wait --> [unpin, leave] --> return
//!  staged:   submit --> [enter] --> (wait for the previous part, copy, build, ring)* --> [leave]    host to device
//!                       [enter] --> (build, ring, wait, copy)* --> [leave] --> return               device to host
//! ```
//!
//! A copy of the program's own memory is staged through a pinned buffer if it is short, misaligned or larger than the
//! pinning limit. Host allocations of the runtime stay pinned and are copied in place. A mapped buffer is a copy in
//! host memory, as runtimes of PCIe cards implement it, because each load through a BAR takes a round trip. It is
//! staged through a buffer of its own length by the program's core.
//!
//! A staged copy to the device returns when the last part is in the pinned buffer; the next command waits for the
//! rest. If the program waits for an event, the copy waits, too.
//!
//! A core waits for a message. If it sleeps, it first leaves its idle state; then the interrupt handler and the
//! thread run.

use crate::host::driver::{self, blocks};
use crate::host::instruction::{Instruction, Manner, Touch, Wake};
use crate::host::pins::Pins;
use crate::host::small_copies::{self, Action, Group};
use lanemark_machine::{
    Allocation, Cause, Completion, Descriptors, DmaCall, HostWait, Launch, Partner, Pattern, RuntimeCopy, Share,
    SmallCopies, Transfer, Verb, Window,
};
use lanemark_platform::{Platform, Runtime};
use lanemark_units::Ticks;

/// The card of the program's queue.
pub(crate) const CARD: u32 = 0;

/// Bytes of a line that a core copies.
const LINE_BYTES: u64 = 64;

/// Constants of a runtime.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    submit: Ticks,
    returns: Ticks,
    argument: Ticks,
    buffer_copy: Ticks,
    buffer_line: Ticks,
    usm_copy: Ticks,
    finish: Ticks,
    event: Ticks,
    copy_line: Ticks,
    wake: Wake,
    /// Doorbell of kernels.
    bell: u64,
    /// Doorbell of copies.
    doorbell: u64,
    driver: driver::Spec,
    small_copies: Option<small_copies::Spec>,
    runtime: Runtime,
}

impl Spec {
    /// Reads the constants of a platform; `None` without a runtime.
    #[must_use]
    pub fn new(platform: &Platform) -> Option<Spec> {
        let runtime = platform.runtime.as_ref()?;
        let scaled = |span| runtime.at_its_clock(platform, span);
        let driver = driver::Spec::new(platform)?.scaled(scaled);
        Some(Spec {
            submit: scaled(runtime.submit_ns.value),
            returns: scaled(runtime.return_ns.value),
            argument: scaled(runtime.argument_ns.value),
            buffer_copy: scaled(runtime.buffer_copy_ns.value),
            buffer_line: scaled(runtime.buffer_line_ns.value),
            usm_copy: scaled(runtime.usm_copy_ns.value),
            finish: scaled(runtime.finish_ns.value),
            event: scaled(runtime.event_ns.value),
            copy_line: scaled(runtime.copy_line_ns.value),
            wake: Wake {
                idle_entry: runtime.idle_entry_ns.value,
                idle_exit: runtime.idle_exit_ns.value,
                woken: driver.woken,
            },
            bell: platform.kernel_doorbell(CARD)?.doorbell,
            doorbell: driver.doorbell(CARD)?,
            driver,
            small_copies: small_copies::Spec::new(platform),
            runtime: runtime.clone(),
        })
    }

    /// Returns the transfers of the card for a copy.
    #[must_use]
    pub fn parts(&self, asked: &RuntimeCopy) -> Parts {
        Parts::of(&self.runtime, asked)
    }

    /// Returns whether it copies many pieces at once, which needs a DMA engine.
    #[must_use]
    pub const fn copies_pieces(&self) -> bool {
        self.small_copies.is_some()
    }

    /// Returns the transfers of the card for many pieces; `None` without a DMA engine.
    #[must_use]
    pub fn group(&self, asked: &SmallCopies) -> Option<Group> {
        Some(Group::new(self.small_copies?, *asked))
    }

    fn ring(&self, address: u64, turn: u64) -> Instruction {
        let (verb, manner) = (Verb::Store, Manner::Uncached);
        Instruction::Touch(Touch { verb, manner, address, len: 8, turn, pace: self.driver.cycle })
    }
}

/// A copy of host memory by a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Source bus address.
    pub from: u64,
    /// Destination bus address.
    pub to: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// How a copy accesses host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In place, with pages pinned for this copy.
    Pinned,
    /// In place, with pages that stay pinned.
    InPlace,
    /// Through a pinned staging buffer.
    Staged,
}

/// The transfers of the card for a copy, and their host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// All parts, each with the length of the first.
    pub call: DmaCall,
    /// Bytes of the last part.
    pub last: u64,
    /// Offset of the program's bytes in the DMA memory.
    pub own_at: u64,
    /// How it accesses host memory.
    pub way: Way,
    /// Whether the program continues before the copy has completed.
    pub is_early: bool,
}

impl Parts {
    /// Plans a copy through the runtime of a platform.
    #[must_use]
    pub fn of(runtime: &Runtime, asked: &RuntimeCopy) -> Parts {
        let RuntimeCopy { verb, bytes, wait, allocation } = *asked;
        let (way, own_at, longest) = match allocation {
            Allocation::Host | Allocation::Registered | Allocation::Combining => (Way::InPlace, 0, bytes),
            Allocation::Mapped => (Way::Staged, runtime.buffer_offset_bytes.value, bytes),
            Allocation::Buffer | Allocation::Device => {
                let own_at = runtime.buffer_offset_bytes.value;
                if runtime.is_in_place(bytes) {
                    (Way::Pinned, own_at, bytes)
                } else {
                    (Way::Staged, own_at, bytes.min(runtime.chunk_bytes.value))
                }
            }
        };
        let staged_at = (own_at + bytes).next_multiple_of(Pins::PAGE);
        let offset = if way == Way::Staged { staged_at } else { own_at };
        let count = bytes.div_ceil(longest.max(1));
        // The card reads what the program writes to it.
        let of_card = if verb == Verb::Store { Verb::Load } else { Verb::Store };
        let window = Window { offset, len: longest, pattern: Pattern::Sequential };
        let (partner, outstanding) = (Partner::Host, None);
        let transfer = Transfer { card: CARD, verb: of_card, partner, bytes: longest, count, window, outstanding };
        let (descriptors, completion) = (Descriptors::Fetched, Completion::Interrupt);
        let is_early = way == Way::Staged && verb == Verb::Store && wait == HostWait::Finish;
        let call = DmaCall { transfer, channel: 0, share: Share::List, descriptors, completion };
        Parts { call, last: bytes - longest * count.saturating_sub(1), own_at, way, is_early }
    }

    /// Returns the bytes of part `nth`.
    #[must_use]
    pub const fn bytes_of(&self, nth: u64) -> u64 {
        if nth + 1 == self.call.transfer.count { self.last } else { self.call.transfer.bytes }
    }

    /// Returns the end of the host memory that it uses.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.call.transfer.window.offset + self.call.transfer.bytes
    }

    /// Returns the number of pages that stay pinned while the program runs.
    #[must_use]
    pub fn kept_pages(&self) -> u64 {
        if self.way == Way::Pinned { 0 } else { self.pages() }
    }

    /// Returns the number of pages of a part.
    fn pages(&self) -> u64 {
        blocks(self.call.transfer.window.offset, self.call.transfer.bytes, Pins::PAGE)
    }
}

/// The next step of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Submit,
    Enter,
    /// This page of the buffer could not be pinned.
    Refused(u64),
    /// Steps of part `nth`: wait for the previous part, copy to the staging buffer, build descriptors, ring the
    /// doorbell, wait for completion, copy from the staging buffer.
    Free(u64),
    Bring(u64),
    Build(u64),
    Ring(u64),
    Wait(u64),
    Take(u64),
    Leave,
    Return,
    /// Action of many copies, by number.
    Action(u64),
    Over,
}

/// A command of a program to its runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Kernel launches.
    Launch(Launch),
    /// A copy.
    Copy(RuntimeCopy, Parts),
    /// Copies of many pieces.
    Group(Group),
}

/// A command in progress, for one iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    asked: Asked,
    /// Completions notified up to the start of this command, and whether the program has waited for none of them.
    done: u64,
    none_before: bool,
    step: Step,
}

impl Command {
    /// Creates a command that starts at `done` completions; `is_first` if the program has waited for none of them.
    #[must_use]
    pub const fn new(asked: Asked, done: u64, is_first: bool) -> Command {
        let step = if matches!(asked, Asked::Group(_)) { Step::Action(0) } else { Step::Submit };
        Command { asked, none_before: is_first, done, step }
    }

    /// Returns the number of completions of one iteration.
    #[must_use]
    pub fn ends(asked: &Asked) -> u64 {
        match asked {
            Asked::Launch(launch) => launch.kernels.into(),
            Asked::Copy(_, parts) => parts.call.transfer.count,
            Asked::Group(group) => group.call.transfer.count,
        }
    }

    /// Returns whether its next instruction rings the doorbell of its first part.
    #[must_use]
    pub fn is_at_first_bell(&self) -> bool {
        match (self.step, &self.asked) {
            (Step::Action(nth), Asked::Group(group)) => group.is_first_bell(nth),
            (step, _) => matches!(step, Step::Ring(0)),
        }
    }

    /// Returns the instructions after the last iteration and the timestamp: waiting until the queue is empty.
    #[must_use]
    pub fn drain(asked: &Asked, spec: &Spec, done: u64) -> Vec<Instruction> {
        let Asked::Copy(RuntimeCopy { wait: HostWait::Finish, .. }, parts) = asked else { return Vec::new() };
        let mut all = vec![Instruction::Stamp];
        if parts.is_early {
            let (wake, reason) = (spec.wake, Cause::Transfer);
            all.extend([Instruction::Sleep { until: done, wake, reason }, Instruction::Library(spec.returns)]);
        }
        all.push(Instruction::Library(spec.finish));
        all
    }

    /// Pins its pages at the step that needs them; if one fails, the call ends there.
    pub fn pin(&mut self, spec: &Spec, pins: &mut Pins) {
        if let (Step::Enter, Asked::Copy(_, parts)) = (self.step, &self.asked)
            && parts.way == Way::Pinned
            && pins.card() == CARD
        {
            let at = spec.driver.mapped_at + parts.call.transfer.window.offset;
            if let Some(page) = pins.pin(at, parts.pages()) {
                self.step = Step::Refused(page.nth);
            }
        }
    }

    /// Returns the next instruction; `None` when the program continues.
    pub fn next(&mut self, spec: &Spec) -> Option<Instruction> {
        loop {
            let (instruction, step) = match &self.asked {
                Asked::Launch(launch) => self.launched(spec, launch)?,
                Asked::Copy(asked, parts) => self.copied(spec, asked, parts)?,
                Asked::Group(group) => self.grouped(spec, group)?,
            };
            self.step = step;
            if instruction.is_some() {
                return instruction;
            }
        }
    }

    fn launched(&self, spec: &Spec, launch: &Launch) -> Option<(Option<Instruction>, Step)> {
        let kernels = u64::from(launch.kernels);
        Some(match self.step {
            Step::Ring(nth) => {
                let step = if nth + 1 < kernels { Step::Build(nth + 1) } else { Step::Wait(nth) };
                (Some(spec.ring(spec.bell, self.done + nth + 1)), step)
            }
            Step::Wait(_) => {
                let (until, wake, reason) = (self.done + kernels, spec.wake, Cause::Compute);
                (Some(Instruction::Sleep { until, wake, reason }), Step::Return)
            }
            Step::Return => {
                let finish = if launch.wait == HostWait::Finish { spec.finish } else { Ticks::ZERO };
                (Some(Instruction::Library(spec.returns + finish)), Step::Over)
            }
            // The library call of a launch.
            Step::Submit | Step::Build(_) => {
                let nth = if let Step::Build(nth) = self.step { nth } else { 0 };
                let buffers =
                    if launch.arguments.allocation == Allocation::Buffer { launch.arguments.count } else { 0 };
                let has_event = launch.wait == HostWait::Event && nth + 1 == kernels;
                let event = if has_event { spec.event } else { Ticks::ZERO };
                let span = spec.submit + spec.argument * u64::from(buffers) + event;
                (Some(Instruction::Library(span)), Step::Ring(nth))
            }
            _ => return None,
        })
    }

    fn grouped(&self, spec: &Spec, group: &Group) -> Option<(Option<Instruction>, Step)> {
        let Step::Action(nth) = self.step else { return None };
        let until = self.done + group.call.transfer.count;
        let instruction = match group.action(nth)? {
            Action::Library(span) => Instruction::Library(span),
            Action::Kernel(span) => Instruction::Kernel(span),
            Action::Work(span) => Instruction::Work(span),
            Action::Copy { addresses: [from, to], span } => {
                Instruction::Copy { from, to, bytes: group.asked.bytes, span }
            }
            Action::Ring => spec.ring(spec.doorbell, until),
            Action::Wait => Instruction::Sleep { until, wake: spec.wake, reason: Cause::Transfer },
        };
        Some((Some(instruction), Step::Action(nth + 1)))
    }

    fn copied(&self, spec: &Spec, asked: &RuntimeCopy, parts: &Parts) -> Option<(Option<Instruction>, Step)> {
        let (driver, is_staged, is_store) = (&spec.driver, parts.way == Way::Staged, asked.verb == Verb::Store);
        let transfer = &parts.call.transfer;
        let own = |nth| driver.mapped_at + parts.own_at + nth * transfer.bytes;
        let staged = driver.mapped_at + transfer.window.offset;
        let lines = |nth| spec.copy_line * parts.bytes_of(nth).div_ceil(LINE_BYTES);
        let pinned = |page: Ticks| if parts.way == Way::Pinned { page * parts.pages() } else { Ticks::ZERO };
        let sleep = |until| Some(Instruction::Sleep { until, wake: spec.wake, reason: Cause::Transfer });
        Some(match self.step {
            Step::Submit => {
                let (copy, calls) = match asked.allocation {
                    Allocation::Buffer => (spec.buffer_copy + spec.buffer_line * asked.bytes.div_ceil(LINE_BYTES), 1),
                    Allocation::Device | Allocation::Host | Allocation::Registered | Allocation::Combining => {
                        (spec.usm_copy, 1)
                    }
                    // One call maps it, one unmaps it.
                    Allocation::Mapped => (spec.buffer_copy, 2),
                };
                let event = if asked.wait == HostWait::Event { spec.event } else { Ticks::ZERO };
                (Some(Instruction::Library(spec.submit * calls + copy + event)), Step::Enter)
            }
            Step::Enter => (Some(Instruction::Kernel(driver.call / 2 + pinned(driver.pin_page))), Step::Free(0)),
            Step::Refused(nth) => {
                let span = driver.call + driver.pin_page * nth + driver.unpin_page * (nth - 1);
                (Some(Instruction::Kernel(span)), Step::Over)
            }
            Step::Free(nth) if !is_staged || !is_store || self.none_before && nth == 0 => (None, Step::Bring(nth)),
            Step::Free(nth) => (sleep(self.done + nth), Step::Bring(nth)),
            Step::Bring(nth) => {
                let (from, to, bytes, span) = (own(nth), staged, parts.bytes_of(nth), lines(nth));
                let copy = (is_staged && is_store).then_some(Instruction::Copy { from, to, bytes, span });
                (copy, Step::Build(nth))
            }
            Step::Build(nth) => {
                let descriptors = blocks(staged, parts.bytes_of(nth), driver.descriptor_bytes);
                (Some(Instruction::Work(driver.build * descriptors)), Step::Ring(nth))
            }
            Step::Ring(nth) => {
                let is_last = nth + 1 == transfer.count;
                let step = match (is_staged && is_store, is_last) {
                    (true, false) => Step::Free(nth + 1),
                    (true, true) if parts.is_early => Step::Leave,
                    _ => Step::Wait(nth),
                };
                (Some(spec.ring(spec.doorbell, self.done + nth + 1)), step)
            }
            Step::Wait(nth) => (sleep(self.done + nth + 1), Step::Take(nth)),
            Step::Take(nth) => {
                let (from, to, bytes, span) = (staged, own(nth), parts.bytes_of(nth), lines(nth));
                let copy = (is_staged && !is_store).then_some(Instruction::Copy { from, to, bytes, span });
                (copy, if nth + 1 == transfer.count { Step::Leave } else { Step::Build(nth + 1) })
            }
            Step::Leave => {
                let kernel = driver.call - driver.call / 2 + pinned(driver.unpin_page);
                (Some(Instruction::Kernel(kernel)), if parts.is_early { Step::Over } else { Step::Return })
            }
            Step::Return => (Some(Instruction::Library(spec.returns)), Step::Over),
            Step::Action(_) | Step::Over => return None,
        })
    }
}
