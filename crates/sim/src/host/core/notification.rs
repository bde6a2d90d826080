//! Notifications of cards to a core, and how it waits for them.

use super::{Core, Outcome, State};
use crate::critical_path::CriticalPath;
use crate::host::instruction::Wake;
use crate::host::root_port::Notice;
use lanemark_machine::Cause;
use lanemark_units::Ticks;

impl Core {
    /// Receives a notification that a card has completed `done` transfers.
    pub fn notify(&mut self, notice: Notice, done: u64) {
        let distance = if notice.interrupts { self.spec.distance } else { Ticks::ZERO };
        self.notifications.send(notice.known + distance, (notice, done));
    }

    /// Returns the stall cause, for messages. After a card has sent its interrupt, this is the interrupt.
    #[must_use]
    pub fn waiting_for(&self) -> Option<Cause> {
        let State::Waiting { reason, .. } = self.state else { return None };
        let waits_for_card = matches!(reason, Cause::Transfer | Cause::Compute);
        let is_late = waits_for_card && self.notifications.iter().any(|(_, (notice, _))| notice.interrupts);
        Some(if is_late { Cause::Interrupt } else { reason })
    }

    /// Processes arrived notifications. Of a wait, the time after the message is charged to the interrupt.
    #[cold]
    pub(super) fn process_notifications(&mut self, now: Ticks, path: &mut CriticalPath) {
        while let Some((notice, done)) = self.notifications.take(now) {
            self.completions_seen = self.completions_seen.max(done);
            if let State::Waiting { since, reason } = self.state {
                let cause = if notice.interrupts { Cause::Interrupt } else { Cause::Transit };
                let milestone = path.add(notice.milestone, now, self.place(), cause);
                (self.milestone, self.limit) = (milestone, reason);
                let is_for_it = matches!(reason, Cause::Transfer | Cause::Compute);
                let taken = if notice.interrupts && is_for_it { notice.taken.max(since) } else { now };
                self.waits[reason.index()] += taken - since;
                self.waits[Cause::Interrupt.index()] += now - taken;
                self.state = State::Ready(now);
            }
        }
    }

    /// Sleeps until a notification arrives; then the core wakes, and handler and thread run.
    pub(super) fn sleep(&mut self, now: Ticks, until: u64, wake: Wake, reason: Cause) -> Outcome {
        if self.completions_seen < until {
            self.asleep_since.get_or_insert(now);
            return Outcome::Blocked(reason);
        }
        let Some(since) = self.asleep_since.take() else { return Core::after(now, Ticks::ZERO) };
        let idle = if now - since > wake.idle_entry { wake.idle_exit } else { Ticks::ZERO };
        self.waits[Cause::Idle.index()] += idle;
        self.slept = idle;
        self.waits[Cause::Driver.index()] += wake.woken;
        Core::after(now, idle + wake.woken)
    }
}
