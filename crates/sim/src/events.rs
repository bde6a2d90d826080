//! The events of a board: the current time, the time at which each [`Port`] is due, and the log of what each of them
//! waited for.

use crate::critical_path::CriticalPath;
use crate::ports::{Places, Port};
use crate::steady::Survey;
use lanemark_engine::Schedule;
use lanemark_units::Ticks;

/// The current time and the schedule of a board.
#[derive(Debug)]
pub(crate) struct Events {
    /// The current time.
    pub(crate) now: Ticks,
    /// The log of the milestones.
    pub(crate) path: CriticalPath,
    schedule: Schedule,
    places: Places,
    table: Vec<Port>,
}

impl Events {
    /// Creates the events of a board with these numbers of parts, at time zero and with no port due.
    pub(crate) fn new(cores: usize, directions: usize, root_ports: usize, endpoints: usize, regions: usize) -> Events {
        let (places, table) = Places::table(cores, directions, root_ports, endpoints, regions);
        Events { now: Ticks::ZERO, path: CriticalPath::default(), schedule: Schedule::new(table.len()), places, table }
    }

    /// Visits the due times of all ports.
    pub(crate) fn visit(&mut self, view: &mut impl Survey) {
        let Events { now: _, path: _, schedule, places: _, table: _ } = self;
        schedule.visit(view);
    }

    /// Makes `port` due at `at`; [`Ticks::NEVER`] makes it idle.
    // The port is a constant at each call, so its index compiles to a sum.
    #[allow(clippy::inline_always)]
    #[inline(always)]
    pub(crate) fn set(&mut self, port: Port, at: Ticks) {
        self.schedule.set(self.places.of(port), at);
    }

    /// Returns the time and the schedule index of the next due port; `None` if no port is due.
    #[inline]
    pub(crate) fn first(&self) -> Option<(Ticks, usize)> {
        self.schedule.first()
    }

    /// Advances to the time of an event that [`Events::first`] returned, and returns its port.
    #[inline]
    pub(crate) fn begin(&mut self, at: Ticks, index: usize) -> Port {
        debug_assert!(at >= self.now, "{:?} is due at {at:?}, and it is {:?}", self.table[index], self.now);
        self.now = at;
        self.table[index]
    }
}
