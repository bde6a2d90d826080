//! The cores of the host, the constants of their programs, and the core that waits for each notification of a card.

use crate::events::Events;
use crate::host::core::Core;
use crate::host::pins::Pins;
use crate::host::program::{self, Program};
use crate::host::root_port::Notice;
use crate::host::runtime::Parts;
use crate::host::small_copies::Group;
use crate::index::CardIndex;
use crate::ports::Port;
use lanemark_machine::{QueueRequest, RuntimeCopy, SmallCopies, Task};
use lanemark_platform::Platform;
use std::ops::{Index, IndexMut};

/// State of the cores.
#[derive(Debug)]
pub(crate) struct Cores {
    all: Vec<Core>,
    /// Constants of programs.
    program: program::Spec,
    /// For each card, the core that last called the driver of each channel, and the core that launched its kernels.
    callers: Vec<Vec<usize>>,
}

impl Index<usize> for Cores {
    type Output = Core;

    #[inline]
    fn index(&self, number: usize) -> &Core {
        &self.all[number]
    }
}

impl IndexMut<usize> for Cores {
    #[inline]
    fn index_mut(&mut self, number: usize) -> &mut Core {
        &mut self.all[number]
    }
}

impl Cores {
    /// Creates the cores of a platform, without programs.
    pub(crate) fn new(platform: &Platform) -> Cores {
        Cores {
            all: (0..platform.core.cores.value).map(|number| Core::new(platform, number as u16)).collect(),
            program: program::Spec::new(platform),
            callers: vec![vec![0; platform.channels() as usize + 1]; platform.cards() as usize],
        }
    }

    /// Returns the number of cores.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns a core, if there is one of this number.
    pub(crate) fn get(&self, number: usize) -> Option<&Core> {
        self.all.get(number)
    }

    /// Schedules the next instruction of core `number`.
    #[inline]
    pub(crate) fn refresh(&self, events: &mut Events, number: usize) {
        events.set(Port::Core(number), self.all[number].due());
    }

    /// Returns the program of a lane's task, `passes` iterations.
    pub(crate) fn program(&self, task: &Task, passes: u64, first_pass: u64) -> Program {
        Program::new(self.program.clone(), task, passes, first_pass)
    }

    /// Returns the program of a request to the runtime, `passes` iterations.
    pub(crate) fn program_of(&self, request: &QueueRequest, passes: u64, first_pass: u64) -> Program {
        Program::of_request(self.program.clone(), request, passes, first_pass)
    }

    /// Returns the transfers of the card for a copy of the runtime; `None` without a runtime.
    pub(crate) fn parts(&self, copy: &RuntimeCopy) -> Option<Parts> {
        Some(self.program.runtime()?.parts(copy))
    }

    /// Returns the transfers of the card for many pieces; `None` without a runtime or a DMA engine.
    pub(crate) fn group(&self, copies: &SmallCopies) -> Option<Group> {
        self.program.runtime()?.group(copies)
    }

    /// Starts a program on core `number`.
    pub(crate) fn start(&mut self, events: &mut Events, number: usize, program: Program) {
        self.all[number].start(events.now, program);
        self.refresh(events, number);
    }

    /// Makes core `number` receive the notifications of a card's channel or, behind the channels, of its kernels.
    pub(crate) fn set_caller(&mut self, card: CardIndex, channel: usize, number: usize) {
        self.callers[card][channel] = number;
    }

    /// Notifies the core that called the driver of a card's channel; `done` is the number of completed transfers.
    pub(crate) fn notify(&mut self, events: &mut Events, card: CardIndex, notice: Notice, done: u64) {
        let number = self.callers[card][usize::from(notice.channel)];
        self.all[number].notify(notice, done);
        self.refresh(events, number);
    }

    /// Invalidates the lines that core `number` stored to in the other cores.
    #[inline]
    pub(crate) fn invalidate_others(&mut self, number: usize) {
        while let Some(line) = self.all[number].invalidate.pop() {
            for (place, core) in self.all.iter_mut().enumerate() {
                if place != number {
                    core.invalidate_line(line);
                }
            }
        }
    }

    /// Resets the coherent memory of every core: the caches hold every shared line.
    pub(crate) fn invalidate_shared(&mut self) {
        self.all.iter_mut().for_each(Core::invalidate_shared);
    }

    /// Returns the pin counters of the programs that have one, with their cores.
    pub(crate) fn pins(&self) -> impl Iterator<Item = (&Core, Pins)> {
        self.all.iter().filter_map(|core| Some((core, core.pins()?)))
    }
}
