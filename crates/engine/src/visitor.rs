//! The visitor of the mutable state of a simulation.

use lanemark_units::Ticks;

/// Receives every value that changes during a run, classified by how later events depend on it.
///
/// A part lists its fields once, in its `visit`, by a pattern without `..`: a new field that is not listed does not
/// compile. One visitor records the state, to find out whether
/// a simulation repeats an earlier state; another adds a time to every instant. Both visit the same list.
pub trait Visitor {
    /// A value on which later events depend directly.
    fn state(&mut self, value: u64);

    /// An instant whose distance from now affects later events; [`Ticks::NEVER`] is kept as it is.
    fn moment(&mut self, at: &mut Ticks);

    /// An instant that is only compared with others. Once it is older than every instant that still advances, its age
    /// has no effect.
    fn time(&mut self, at: &mut Ticks);

    /// The last time of an event, for reports only; no later event depends on it.
    fn mark(&mut self, at: &mut Ticks);

    /// A monotonic counter, for reports only; no later event depends on it.
    fn counter(&mut self, count: &mut u64);

    /// A list of at most `most` recorded spans, for reports only; no later event depends on it.
    fn log(&mut self, entries: &mut Vec<Ticks>, most: usize);

    /// A number of items, visited as by [`Visitor::state`].
    fn count(&mut self, things: usize) {
        self.state(things as u64);
    }

    /// A boolean, visited as by [`Visitor::state`].
    fn flag(&mut self, is_so: bool) {
        self.state(u64::from(is_so));
    }

    /// An optional instant, visited as by [`Visitor::moment`].
    fn moment_if_any(&mut self, at: &mut Option<Ticks>) {
        self.flag(at.is_some());
        if let Some(at) = at {
            self.moment(at);
        }
    }
}
