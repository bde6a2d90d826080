//! Who goes through everything that changes in a simulation, value by value.

use lanemark_units::Ticks;

/// Is shown every value that changes during a run, each by what the future does with it.
///
/// A part lists its fields once, in its `visit`, without a rest (`..`): a field that is added and not listed does not compile. One
/// visitor writes down what it is shown, to find out whether a simulation is where it has been before; another moves
/// everything on. Both see the same list.
pub trait Visitor {
    /// What the future depends on as it is.
    fn state(&mut self, value: u64);

    /// An instant on which the future depends by how far away it is; [`Ticks::NEVER`] is one as it is.
    fn moment(&mut self, at: &mut Ticks);

    /// An instant that is only ever compared with others and never subtracted from one: if it is older than all others that
    /// still move, it does not matter how old it is.
    fn time(&mut self, at: &mut Ticks);

    /// When something happened last; nothing depends on it.
    fn mark(&mut self, at: &mut Ticks);

    /// A count that nothing depends on, but for what grows with it.
    fn counter(&mut self, count: &mut u64);

    /// Spans that are kept one by one, `most` of them; nothing depends on them.
    fn log(&mut self, entries: &mut Vec<Ticks>, most: usize);

    /// A number of things, as [`Visitor::state`].
    fn count(&mut self, things: usize) {
        self.state(things as u64);
    }

    /// A yes or no, as [`Visitor::state`].
    fn flag(&mut self, is_so: bool) {
        self.state(u64::from(is_so));
    }

    /// An instant that there may be, as [`Visitor::moment`].
    fn moment_if_any(&mut self, at: &mut Option<Ticks>) {
        self.flag(at.is_some());
        if let Some(at) = at {
            self.moment(at);
        }
    }
}
