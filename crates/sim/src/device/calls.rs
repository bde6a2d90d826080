//! The driver interface of a job: its doorbell, and the notification of its end.

use crate::device::bells::Bells;
use lanemark_engine::Visitor;
use lanemark_machine::Completion;
use lanemark_platform::Mailbox;
use lanemark_units::Ticks;

/// Driver interface of a job: doorbell and notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Calls {
    pub mailbox: Mailbox,
    pub is_fetched: bool,
    pub completion: Completion,
    /// Completed transfers that were notified.
    pub notified: u64,
    /// Time until which a notification is delayed because its vector is masked.
    pub held_until: Ticks,
    /// Total stall time for descriptors.
    pub fetching: Ticks,
    /// What the doorbells start, if one notification reports the end of all transfers of an iteration.
    pub group: Option<Bells>,
}

impl Calls {
    /// Visits the state.
    pub(crate) fn visit(&mut self, view: &mut impl Visitor) {
        let Calls { mailbox: _, is_fetched: _, completion: _, notified, held_until, fetching, group } = self;
        view.state(*notified);
        view.time(held_until);
        view.counter(&mut fetching.0);
        if let Some(bells) = group {
            bells.visit(view);
        }
    }
}
