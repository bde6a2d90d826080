//! What software tells an IOMMU to forget, one command after the other.
//!
//! ```text
//!  software --> commands in order --latency--> IOTLB forgets --> devices with ATS forget
//!                       --> what was translated before reaches memory --> the end is written
//! ```
//!
//! Ports: [`InvalidationQueue::put`] takes a command and says its number, [`InvalidationQueue::step`] says what is
//! [due](InvalidationQueue::due) of the first, and [`InvalidationQueue::wait_until`] how long the requests take that it waits for.
//! Where devices have to be asked first, [`InvalidationQueue::await_devices`] says whom, and [`InvalidationQueue::answered`] hears from
//! each. Which end was written last says [`InvalidationQueue::done`].
//!
//! A command ends behind the requests that used a translation before it was forgotten: those at the IOMMU first, then those on their way to
//! memory.
//!
//! Source: Intel Virtualization Technology for Directed I/O, sections 6.5.2 (queued invalidation) and 6.5.3 (draining).

use lanemark_units::Ticks;
use std::collections::VecDeque;

/// What never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// From the beginning of a command until its end is written, if nothing is to be waited for.
    pub latency: Ticks,
    /// Commands that wait or are under way at once.
    pub entries: usize,
}

/// What is to be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// The translations of so many pages from this one on: a power of two, and the first a multiple of it.
    Pages {
        /// The first.
        first: u64,
        /// How many.
        pages: u64,
    },
    /// All translations.
    All,
}

/// Where the first command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// There is none.
    Idle,
    /// It is read, and carried out then.
    Read(Ticks),
    /// The last request that was translated before has left the IOMMU then.
    Left(Ticks),
    /// Devices have to answer.
    Devices,
    /// It has reached memory then.
    Reached(Ticks),
    /// Nothing comes of it any more.
    Stuck,
}

/// What happens to the first command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// These are forgotten: when has the last request left that was translated before?
    Invalidate(Command),
    /// It has left: when has it reached memory?
    Left,
    /// The end of the command is written.
    Ended,
}

/// The queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the invalidation queue has {entries} entries, and all are in use: wait for the end of one")]
pub struct QueueFull {
    /// How many it has.
    pub entries: usize,
}

/// Everything that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidationQueue {
    spec: Spec,
    commands: VecDeque<Command>,
    stage: Stage,
    put: u64,
    done: u64,
    /// The number of the command that never ends.
    stuck: Option<u64>,
    /// Devices that have not answered, as requesters.
    asked: Vec<u16>,
}

impl InvalidationQueue {
    /// An empty one.
    #[must_use]
    pub const fn new(spec: Spec) -> InvalidationQueue {
        InvalidationQueue {
            spec,
            commands: VecDeque::new(),
            stage: Stage::Idle,
            put: 0,
            done: 0,
            stuck: None,
            asked: Vec::new(),
        }
    }

    /// Takes a command; its number is one more than that of the one before, and that of the first is 1.
    ///
    /// # Errors
    /// [`QueueFull`].
    pub fn put(&mut self, now: Ticks, command: Command) -> Result<u64, QueueFull> {
        if self.is_full() {
            return Err(QueueFull { entries: self.spec.entries });
        }
        self.commands.push_back(command);
        self.put += 1;
        if self.stage == Stage::Idle {
            self.begin(now);
        }
        Ok(self.put)
    }

    /// The command that is put next never ends, and none behind it begins.
    pub fn hang_next(&mut self) {
        self.stuck.get_or_insert(self.put + 1);
    }

    fn begin(&mut self, now: Ticks) {
        self.stage = match self.commands.is_empty() {
            true => Stage::Idle,
            false if self.stuck == Some(self.done + 1) => Stage::Stuck,
            false => Stage::Read(now + self.spec.latency),
        };
    }

    /// When something happens to the first command.
    #[must_use]
    pub fn due(&self) -> Ticks {
        match self.stage {
            Stage::Idle | Stage::Stuck | Stage::Devices => Ticks::NEVER,
            Stage::Read(at) | Stage::Left(at) | Stage::Reached(at) => at,
        }
    }

    /// What happens to it by `now`, if anything does. What it asks is answered by [`InvalidationQueue::wait_until`], before this
    /// is called again.
    pub fn step(&mut self, now: Ticks) -> Option<Step> {
        if self.due() > now {
            return None;
        }
        match self.stage {
            Stage::Read(_) => {
                self.stage = Stage::Left(now);
                self.commands.front().copied().map(Step::Invalidate)
            }
            Stage::Left(_) => {
                self.stage = Stage::Reached(now);
                Some(Step::Left)
            }
            Stage::Reached(_) => {
                self.commands.pop_front();
                self.done += 1;
                self.begin(now);
                Some(Step::Ended)
            }
            Stage::Idle | Stage::Stuck | Stage::Devices => None,
        }
    }

    /// What was asked last happens then.
    pub fn wait_until(&mut self, at: Ticks) {
        if let Stage::Left(until) | Stage::Reached(until) = &mut self.stage {
            *until = at.max(*until);
        }
    }

    /// What was asked last is asked again when these devices have answered; says which command they are to be told of, and by which
    /// `ITag`, for the message.
    pub fn await_devices(&mut self, devices: &[u16]) -> Option<(Command, u16)> {
        let command = self.commands.front().copied().filter(|_| !devices.is_empty())?;
        self.asked = devices.to_vec();
        self.stage = Stage::Devices;
        Some((command, self.itag()))
    }

    /// That of the first command: one of 32.
    const fn itag(&self) -> u16 {
        (self.done % 32) as u16
    }

    /// A device answers; says whether it was the last one.
    pub fn answered(&mut self, now: Ticks, device: u16, itag: u16) -> bool {
        if self.stage != Stage::Devices || itag != self.itag() {
            return false;
        }
        self.asked.retain(|other| *other != device);
        let are_all = self.asked.is_empty();
        if are_all {
            self.stage = Stage::Reached(now);
        }
        are_all
    }

    /// The links were reset: devices know no translation, and nobody answers.
    pub fn devices_are_new(&mut self, now: Ticks) {
        if self.stage == Stage::Devices {
            self.asked.clear();
            self.stage = Stage::Reached(now);
        }
    }

    /// Devices that have not answered, as requesters.
    #[must_use]
    pub fn silent(&self) -> &[u16] {
        &self.asked
    }

    /// Whether it takes no command now.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.commands.len() >= self.spec.entries
    }

    /// The number of the command whose end was written last; 0 for none.
    #[must_use]
    pub const fn done(&self) -> u64 {
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(entries: usize) -> InvalidationQueue {
        InvalidationQueue::new(Spec { latency: Ticks(10), entries })
    }

    /// Lets everything happen; requests take so long to leave, and to reach memory.
    fn run(queue: &mut InvalidationQueue, leaving: u64, reaching: u64) -> Vec<(u64, Step)> {
        let mut all = Vec::new();
        while queue.due() < Ticks::NEVER {
            let now = queue.due();
            while let Some(step) = queue.step(now) {
                match step {
                    Step::Invalidate(_) => queue.wait_until(now + Ticks(leaving)),
                    Step::Left => queue.wait_until(now + Ticks(reaching)),
                    Step::Ended => {}
                }
                all.push((now.0, step));
            }
        }
        all
    }

    #[test]
    fn commands_end_in_order_and_behind_the_requests_before_them() {
        let mut queue = queue(4);
        let one = Command::Pages { first: 4, pages: 4 };
        assert_eq!((queue.put(Ticks(5), one), queue.put(Ticks(6), Command::All)), (Ok(1), Ok(2)));
        let forget = [Step::Invalidate(one), Step::Invalidate(Command::All)];
        let all = [(15, forget[0]), (18, Step::Left), (22, Step::Ended)];
        let then = [(32, forget[1]), (35, Step::Left), (39, Step::Ended)];
        assert_eq!(run(&mut queue, 3, 4), [all, then].concat());
        assert_eq!(queue.done(), 2);
    }

    #[test]
    fn a_queue_takes_as_many_commands_as_it_has_entries_and_not_one_more() {
        let mut queue = queue(2);
        assert!(queue.put(Ticks(0), Command::All).is_ok() && queue.put(Ticks(0), Command::All).is_ok());
        assert_eq!(queue.put(Ticks(0), Command::All), Err(QueueFull { entries: 2 }));
        run(&mut queue, 0, 0);
        assert_eq!(queue.put(Ticks(50), Command::All), Ok(3));
    }

    #[test]
    fn a_command_ends_when_every_device_has_answered_to_it_and_not_to_another_one() {
        let mut queue = queue(4);
        let _ = (queue.put(Ticks(0), Command::All), queue.put(Ticks(0), Command::All));
        assert_eq!(queue.await_devices(&[]), None);
        for itag in [0, 1] {
            assert_eq!(queue.step(queue.due()), Some(Step::Invalidate(Command::All)));
            assert_eq!(queue.step(queue.due()), Some(Step::Left));
            assert_eq!(queue.await_devices(&[7, 8]), Some((Command::All, itag)));
            assert_eq!((queue.due(), queue.step(Ticks(90))), (Ticks::NEVER, None));
            assert!(!queue.answered(Ticks(90), 8, itag) && !queue.answered(Ticks(90), 8, itag));
            assert!(!queue.answered(Ticks(90), 7, itag + 1), "of another command");
            assert_eq!(queue.silent(), [7]);
            assert!(queue.answered(Ticks(90), 7, itag));
            queue.wait_until(Ticks(95));
            assert_eq!((queue.step(Ticks(94)), queue.step(Ticks(95))), (None, Some(Step::Ended)));
        }
        assert_eq!(queue.done(), 2);
    }

    #[test]
    fn a_command_that_hangs_keeps_those_behind_it() {
        let mut queue = queue(4);
        assert_eq!(queue.put(Ticks(0), Command::All), Ok(1));
        queue.hang_next();
        assert_eq!((queue.put(Ticks(0), Command::All), queue.put(Ticks(0), Command::All)), (Ok(2), Ok(3)));
        assert_eq!(run(&mut queue, 0, 0).len(), 3);
        assert_eq!(queue.done(), 1);
    }
}
