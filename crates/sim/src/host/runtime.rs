//! A runtime: what a core executes where a program launches kernels or lets bytes be copied, and waits.
//!
//! ```text
//!  launch:   (submit, ring)*, wait
//!  in place: submit --> [enter, pin] --> build, ring, wait --> [unpin, leave] --> return
//!  staged:   submit --> [enter] --> (wait for the part before, copy, build, ring)* --> [leave]      to the device
//!                       [enter] --> (build, ring, wait, copy)* --> [leave] --> return               from there
//! ```
//!
//! A copy of a program's own memory is staged if it is short, not aligned or more than may be pinned: by way of a buffer that stays
//! pinned. Memory that the runtime gave out (host allocations) stays pinned, and is copied in place. What is mapped into the program
//! is a copy in host memory, as runtimes of PCIe cards make it, because loads through a BAR take a round trip each: it is
//! staged through a buffer as long as itself, by the program's own core.
//!
//! A staged copy to the device is over for the program when the last part of its bytes is in the pinned buffer; what comes next to
//! the runtime waits for the rest. Where the program waits by an event, the copy waits too.
//!
//! A core waits for a message. If it has to, an idle core wakes first, then the handler runs, then the thread.

use crate::host::driver::{self, blocks};
use crate::host::instruction::{Instruction, Manner, Touch, Wake};
use crate::host::pins::Pins;
use lanemark_machine::{
    Allocation, Cause, Completion, Descriptors, DmaCall, HostWait, Launch, MovedByRuntime, Partner, Pattern, Share,
    Transfer, Verb, Window,
};
use lanemark_platform::{Platform, Runtime};
use lanemark_units::Ticks;

/// The card that a program's queue is of.
pub(crate) const CARD: u32 = 0;

/// Bytes of a line that a core copies.
const LINE_BYTES: u64 = 64;

/// What never changes during a run.
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
    /// Where kernels are launched.
    bell: u64,
    /// Where copies are.
    doorbell: u64,
    driver: driver::Spec,
    runtime: Runtime,
}

impl Spec {
    /// From a platform; `None` if it has no runtime.
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
            bell: platform.kernel_bell(CARD)?.doorbell,
            doorbell: driver.doorbell(CARD)?,
            driver,
            runtime: runtime.clone(),
        })
    }

    /// What the card moves for a copy.
    #[must_use]
    pub fn parts(&self, asked: &MovedByRuntime) -> Parts {
        Parts::of(&self.runtime, asked)
    }

    fn ring(&self, address: u64, turn: u64) -> Instruction {
        let (verb, manner) = (Verb::Store, Manner::Uncached);
        Instruction::Touch(Touch { verb, manner, address, len: 8, turn, pace: self.driver.cycle })
    }
}

/// Host memory that a core copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Bus address of the first byte.
    pub from: u64,
    /// Where that goes.
    pub to: u64,
    /// How many.
    pub bytes: u64,
}

/// How the bytes of a copy get to the card, or from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Where they lie, the pages pinned for it.
    Pinned,
    /// Where they lie, in pages that stay pinned.
    InPlace,
    /// Through a buffer that stays pinned.
    Staged,
}

/// What the card moves for a copy, and where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// All parts, as long as the first.
    pub call: DmaCall,
    /// Bytes of the last one.
    pub last: u64,
    /// Where the program's bytes begin in what is lent.
    pub own_at: u64,
    /// How they get there.
    pub way: Way,
    /// Whether the program goes on before it is over.
    pub is_early: bool,
}

impl Parts {
    /// Of a copy through the runtime of a platform.
    #[must_use]
    pub fn of(runtime: &Runtime, asked: &MovedByRuntime) -> Parts {
        let MovedByRuntime { verb, bytes, told, allocation } = *asked;
        let (way, own_at, longest) = match allocation {
            Allocation::Host => (Way::InPlace, 0, bytes),
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
        // What a program stores, its card reads.
        let of_card = if verb == Verb::Store { Verb::Load } else { Verb::Store };
        let window = Window { offset, len: longest, pattern: Pattern::Sequential };
        let (partner, outstanding) = (Partner::Host, None);
        let transfer = Transfer { card: CARD, verb: of_card, partner, bytes: longest, count, window, outstanding };
        let (descriptors, completion) = (Descriptors::Fetched, Completion::Interrupt);
        let is_early = way == Way::Staged && verb == Verb::Store && told == HostWait::Finish;
        let call = DmaCall { transfer, channel: 0, share: Share::List, descriptors, completion };
        Parts { call, last: bytes - longest * count.saturating_sub(1), own_at, way, is_early }
    }

    /// Bytes of part `nth` of a copy.
    #[must_use]
    pub const fn bytes_of(&self, nth: u64) -> u64 {
        if nth + 1 == self.call.transfer.count { self.last } else { self.call.transfer.bytes }
    }

    /// Behind the last byte of host memory that it takes.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.call.transfer.window.offset + self.call.transfer.bytes
    }

    /// Pages that stay pinned while the program runs.
    #[must_use]
    pub fn kept_pages(&self) -> u64 {
        if self.way == Way::Pinned { 0 } else { self.pages() }
    }

    /// Pages of one part.
    fn pages(&self) -> u64 {
        blocks(self.call.transfer.window.offset, self.call.transfer.bytes, Pins::PAGE)
    }
}

/// Where in a command the core is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Submit,
    Enter,
    /// This page of the buffer could not be pinned.
    Refused(u64),
    /// Of this part: the one before it is waited for, its bytes are brought, its descriptors built, its bell rung, its end
    /// waited for, its bytes taken.
    Free(u64),
    Bring(u64),
    Build(u64),
    Ring(u64),
    Wait(u64),
    Take(u64),
    Leave,
    Return,
    Over,
}

/// What a program asks its runtime for, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Launches.
    Launch(Launch),
    /// A copy.
    Copy(MovedByRuntime, Parts),
}

/// One pass of it, under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    asked: Asked,
    /// Ends that the card had told of when this began, or will have; whether the program waited for none of them.
    done: u64,
    none_before: bool,
    step: Step,
}

impl Command {
    /// Begins when the card has told of `done` ends or will have; `is_first` if the program waited for none of them.
    #[must_use]
    pub const fn new(asked: Asked, done: u64, is_first: bool) -> Command {
        Command { asked, none_before: is_first, done, step: Step::Submit }
    }

    /// How many ends the card tells of for one pass.
    #[must_use]
    pub fn ends(asked: &Asked) -> u64 {
        match asked {
            Asked::Launch(launch) => launch.kernels.into(),
            Asked::Copy(_, parts) => parts.call.transfer.count,
        }
    }

    /// Whether its next instruction is to ring for the first part of it.
    #[must_use]
    pub const fn is_at_first_bell(&self) -> bool {
        matches!(self.step, Step::Ring(0))
    }

    /// What the program does behind its last pass, when it has stamped the time: waits until the queue is empty.
    #[must_use]
    pub fn drain(asked: &Asked, spec: &Spec, done: u64) -> Vec<Instruction> {
        let Asked::Copy(MovedByRuntime { told: HostWait::Finish, .. }, parts) = asked else { return Vec::new() };
        let mut all = vec![Instruction::Stamp];
        if parts.is_early {
            let (wake, reason) = (spec.wake, Cause::Transfer);
            all.extend([Instruction::Sleep { until: done, wake, reason }, Instruction::Library(spec.returns)]);
        }
        all.push(Instruction::Library(spec.finish));
        all
    }

    /// Pins what it needs, when it comes to that: if one page cannot be, the call ends there.
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

    /// The next instruction; `None` when the program goes on.
    pub fn next(&mut self, spec: &Spec) -> Option<Instruction> {
        loop {
            let (instruction, step) = match &self.asked {
                Asked::Launch(launch) => self.launched(spec, launch)?,
                Asked::Copy(asked, parts) => self.copied(spec, asked, parts)?,
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
                let finish = if launch.told == HostWait::Finish { spec.finish } else { Ticks::ZERO };
                (Some(Instruction::Library(spec.returns + finish)), Step::Over)
            }
            // The call that launches it.
            Step::Submit | Step::Build(_) => {
                let nth = if let Step::Build(nth) = self.step { nth } else { 0 };
                let buffers =
                    if launch.arguments.allocation == Allocation::Buffer { launch.arguments.count } else { 0 };
                let has_event = launch.told == HostWait::Event && nth + 1 == kernels;
                let event = if has_event { spec.event } else { Ticks::ZERO };
                let span = spec.submit + spec.argument * u64::from(buffers) + event;
                (Some(Instruction::Library(span)), Step::Ring(nth))
            }
            _ => return None,
        })
    }

    fn copied(&self, spec: &Spec, asked: &MovedByRuntime, parts: &Parts) -> Option<(Option<Instruction>, Step)> {
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
                    Allocation::Device | Allocation::Host => (spec.usm_copy, 1),
                    // It is mapped, and unmapped.
                    Allocation::Mapped => (spec.buffer_copy, 2),
                };
                let event = if asked.told == HostWait::Event { spec.event } else { Ticks::ZERO };
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
            Step::Over => return None,
        })
    }
}
