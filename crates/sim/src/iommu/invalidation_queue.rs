//! The invalidation queue of an IOMMU: commands that are executed in order.
//!
//! ```text
//!  software --> commands in order --latency--> IOTLB invalidated --> ATCs of devices invalidated
//!                       --> earlier translated requests reach memory --> completion is written
//! ```
//!
//! Ports: [`InvalidationQueue::put`] queues a command and returns its number. [`InvalidationQueue::step`] returns the
//! next step of the first command when it is [due](InvalidationQueue::due), and [`InvalidationQueue::wait_until`]
//! sets when the requests it waits for have drained.
//! With ATS, [`InvalidationQueue::await_devices`] starts the Invalidate Requests, and [`InvalidationQueue::answered`]
//! receives each Invalidate Completion. [`InvalidationQueue::done`] is the number of the last completed command.
//!
//! A command completes after the requests that used an invalidated translation: first those in the IOMMU, then those
//! on their way to memory.
//!
//! Source: Intel Virtualization Technology for Directed I/O, sections 6.5.2 (queued invalidation) and 6.5.3 (draining).

use lanemark_units::Ticks;
use std::collections::VecDeque;

/// Constants of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// From the start of a command to the write of its completion, without waiting for requests.
    pub latency: Ticks,
    /// Capacity: outstanding commands.
    pub entries: usize,
}

/// The scope of an invalidation command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// The translations of a naturally aligned block of pages, whose number is a power of two.
    Pages {
        /// The first page.
        first: u64,
        /// Number of pages.
        pages: u64,
    },
    /// Every translation.
    All,
}

/// Stage of the first command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// There is no command.
    Idle,
    /// The command is executed at this time.
    Read(Ticks),
    /// The last earlier translated request has left the IOMMU at this time.
    Left(Ticks),
    /// Invalidate Completions of devices are outstanding.
    Devices,
    /// The last earlier translated request has reached memory at this time.
    Reached(Ticks),
    /// The command hangs (injected fault).
    Stuck,
}

/// A step of the first command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Invalidate these translations; return when the last earlier request has left the IOMMU.
    Invalidate(Command),
    /// The last earlier request has left; return when it has reached memory.
    Left,
    /// The completion is written.
    Ended,
}

/// The queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the invalidation queue has {entries} entries, all in use; wait for a command to complete")]
pub struct QueueFull {
    /// Capacity of the queue.
    pub entries: usize,
}

/// State of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidationQueue {
    spec: Spec,
    commands: VecDeque<Command>,
    stage: Stage,
    put: u64,
    done: u64,
    /// Number of the command that hangs.
    stuck: Option<u64>,
    /// Requester IDs of devices whose Invalidate Completion is outstanding.
    asked: Vec<u16>,
}

impl InvalidationQueue {
    /// Creates an empty queue.
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

    /// Queues a command and returns its number. Numbers are consecutive from 1.
    ///
    /// # Errors
    /// [`QueueFull`] if all entries are in use.
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

    /// Makes the next command hang, with every command behind it (injected fault).
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

    /// Returns when the next step of the first command is due.
    #[must_use]
    pub fn due(&self) -> Ticks {
        match self.stage {
            Stage::Idle | Stage::Stuck | Stage::Devices => Ticks::NEVER,
            Stage::Read(at) | Stage::Left(at) | Stage::Reached(at) => at,
        }
    }

    /// Returns the step of the first command that is due by `now`. The caller answers it by
    /// [`InvalidationQueue::wait_until`] before the next call.
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

    /// Sets when the requests of the last step have drained.
    pub fn wait_until(&mut self, at: Ticks) {
        if let Stage::Left(until) | Stage::Reached(until) = &mut self.stage {
            *until = at.max(*until);
        }
    }

    /// Repeats the last step after these devices have answered. Returns the command and the `ITag` of its Invalidate
    /// Requests.
    pub fn await_devices(&mut self, devices: &[u16]) -> Option<(Command, u16)> {
        let command = self.commands.front().copied().filter(|_| !devices.is_empty())?;
        self.asked = devices.to_vec();
        self.stage = Stage::Devices;
        Some((command, self.itag()))
    }

    /// Returns the `ITag` of the first command, one of 32.
    const fn itag(&self) -> u16 {
        (self.done % 32) as u16
    }

    /// Receives an Invalidate Completion; returns whether it was the last one.
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

    /// Handles a link reset: the ATCs are empty, and no Invalidate Completion will arrive.
    pub fn devices_are_new(&mut self, now: Ticks) {
        if self.stage == Stage::Devices {
            self.asked.clear();
            self.stage = Stage::Reached(now);
        }
    }

    /// Returns the requester IDs of devices that have not answered.
    #[must_use]
    pub fn silent(&self) -> &[u16] {
        &self.asked
    }

    /// Returns whether the queue is full.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.commands.len() >= self.spec.entries
    }

    /// Returns the number of the last completed command; 0 for none.
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

    /// Runs the queue to its end; requests take `leaving` to leave the IOMMU and `reaching` to reach memory.
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
    fn commands_complete_in_order_and_after_earlier_requests() {
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
    fn a_full_queue_rejects_a_command() {
        let mut queue = queue(2);
        assert!(queue.put(Ticks(0), Command::All).is_ok() && queue.put(Ticks(0), Command::All).is_ok());
        assert_eq!(queue.put(Ticks(0), Command::All), Err(QueueFull { entries: 2 }));
        run(&mut queue, 0, 0);
        assert_eq!(queue.put(Ticks(50), Command::All), Ok(3));
    }

    #[test]
    fn a_command_completes_when_every_device_has_answered_with_its_itag() {
        let mut queue = queue(4);
        let _ = (queue.put(Ticks(0), Command::All), queue.put(Ticks(0), Command::All));
        assert_eq!(queue.await_devices(&[]), None);
        for itag in [0, 1] {
            assert_eq!(queue.step(queue.due()), Some(Step::Invalidate(Command::All)));
            assert_eq!(queue.step(queue.due()), Some(Step::Left));
            assert_eq!(queue.await_devices(&[7, 8]), Some((Command::All, itag)));
            assert_eq!((queue.due(), queue.step(Ticks(90))), (Ticks::NEVER, None));
            assert!(!queue.answered(Ticks(90), 8, itag) && !queue.answered(Ticks(90), 8, itag));
            assert!(!queue.answered(Ticks(90), 7, itag + 1), "the ITag of another command");
            assert_eq!(queue.silent(), [7]);
            assert!(queue.answered(Ticks(90), 7, itag));
            queue.wait_until(Ticks(95));
            assert_eq!((queue.step(Ticks(94)), queue.step(Ticks(95))), (None, Some(Step::Ended)));
        }
        assert_eq!(queue.done(), 2);
    }

    #[test]
    fn a_hung_command_blocks_the_commands_behind_it() {
        let mut queue = queue(4);
        assert_eq!(queue.put(Ticks(0), Command::All), Ok(1));
        queue.hang_next();
        assert_eq!((queue.put(Ticks(0), Command::All), queue.put(Ticks(0), Command::All)), (Ok(2), Ok(3)));
        assert_eq!(run(&mut queue, 0, 0).len(), 3);
        assert_eq!(queue.done(), 1);
    }
}
