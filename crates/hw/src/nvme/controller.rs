//! A controller: enabling, identification, its I/O queue pairs, and disabling.

use super::cmb::MappedCmb;
use super::command::Command;
use super::error::NvmeError;
use super::identify::{Active, ControllerData, Namespace};
use super::memory::{Bar, DmaMemory, ENTRIES, Interrupt, PAGE, Vector};
use super::queue::{Place, QueueMemory, QueuePair};
use super::register::{self, ACQ, AQA, ASQ, CAP, CC, CSTS, Capabilities, ENABLE, FATAL, READY};
use super::several;
use std::borrow::Borrow;
use std::sync::atomic::{Ordering, compiler_fence};
use std::time::{Duration, Instant};

/// Memory for the data of Identify, the admin queues and so many I/O queue pairs.
pub(crate) const fn queue_bytes(pairs: u32) -> u64 {
    IO + 2 * PAGE * pairs as u64
}

/// Pages of the memory for queues, in this order; those of the I/O queues follow, two for each pair.
const ADMIN: [u64; 2] = [0, PAGE];
const DATA: u64 = 2 * PAGE;
const IO: u64 = 3 * PAGE;

/// Longest time of an admin command; Linux waits as long (`admin_timeout` of its driver).
const ADMIN_TIME: Duration = Duration::from_mins(1);
/// Longest wait for a controller that is disabled after an error.
const AT_ONCE: Duration = Duration::from_secs(1);
/// Pause between two looks at CSTS.
const PAUSE: Duration = Duration::from_millis(1);

/// An enabled controller, until [`disable`](Controller::disable) or until it is dropped.
#[derive(Debug)]
pub(crate) struct Controller<'a, B: Bar, M: DmaMemory> {
    bar: &'a B,
    memory: QueueMemory<'a, B, M>,
    /// Offset of the memory for queues.
    at: u64,
    capabilities: Capabilities,
    admin: QueuePair<'a>,
    io: Vec<QueuePair<'a>>,
    is_enabled: bool,
    /// Whether the controller recognises the addresses of its memory buffer.
    has_cmb: bool,
}

/// Which I/O queues are in the controller memory buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IoQueues {
    /// None.
    Host,
    /// The submission queues.
    SubmissionsInCmb,
    /// Both.
    InCmb,
}

/// The interrupts after completions of the I/O queues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IoInterrupts<'a> {
    /// Number of vectors, from 0 on: one for each I/O completion queue, or fewer that they share. The admin queue has vector 0,
    /// too.
    pub(crate) vectors: u16,
    pub(crate) event: &'a dyn Interrupt,
}

impl<'a, B: Bar, M: DmaMemory> Controller<'a, B, M> {
    /// Disables and enables a controller. Its admin queues are in the [`queue_bytes`] of `memory` from `at`, a multiple of a
    /// page, on. Its I/O queues are there or in `cmb`, as [`create_queues`](Controller::create_queues) is told. `check` is
    /// called while it waits, and ends the wait with an error.
    ///
    /// # Errors
    /// [`NvmeError`] of a controller that does not become ready, and of `check`.
    pub(crate) fn enable(
        bar: &'a B,
        memory: &'a M,
        at: u64,
        cmb: Option<MappedCmb<'a, B>>,
        check: &mut impl FnMut() -> Result<(), NvmeError>,
    ) -> Result<Controller<'a, B, M>, NvmeError> {
        let capabilities = Capabilities(register::load(bar, CAP)?);
        if capabilities.0 == u64::MAX {
            return Err(NvmeError::Gone);
        }
        if !capabilities.has_nvm() {
            return Err(NvmeError::Unsupported("the controller has no NVM command set (CAP.CSS)"));
        }
        if capabilities.least_page() > PAGE {
            return Err(NvmeError::Unsupported("the controller has no pages of 4 KiB (CAP.MPSMIN)"));
        }
        let places = ADMIN.map(|page| Place::Host(at + page));
        let admin = QueuePair::new(0, entries(capabilities), places, capabilities, None);
        let queues = QueueMemory { host: memory, cmb };
        let (io, is_enabled, has_cmb) = (Vec::new(), false, false);
        let mut controller = Controller { bar, memory: queues, at, capabilities, admin, io, is_enabled, has_cmb };
        controller.set_enabled(false, check)?;
        for word in (at..at + IO).step_by(8) {
            memory.store(word, 0);
        }
        let size = u64::from(entries(capabilities) - 1);
        register::store(bar, AQA, size << 16 | size)?;
        let [submissions, completions] = ADMIN.map(|page| memory.iova(at + page));
        register::store(bar, ASQ, submissions)?;
        register::store(bar, ACQ, completions)?;
        controller.is_enabled = true;
        controller.set_enabled(true, check)?;
        Ok(controller)
    }

    /// Sets CC.EN and waits until CSTS.RDY follows.
    fn set_enabled(
        &self,
        is_enabled: bool,
        check: &mut impl FnMut() -> Result<(), NvmeError>,
    ) -> Result<(), NvmeError> {
        register::store(self.bar, CC, if is_enabled { ENABLE } else { 0 })?;
        let after_ms = self.capabilities.ready_ms();
        let end = Instant::now() + Duration::from_millis(after_ms);
        loop {
            let csts = register::load(self.bar, CSTS)?;
            if csts == u64::from(u32::MAX) {
                return Err(NvmeError::Gone);
            }
            if is_enabled && csts & FATAL != 0 {
                return Err(NvmeError::Fatal(csts));
            }
            if (csts & READY != 0) == is_enabled {
                return Ok(());
            }
            if Instant::now() > end {
                let wanted = if is_enabled { "ready" } else { "idle" };
                return Err(NvmeError::NotReady { wanted, after_ms, csts });
            }
            check()?;
            std::thread::sleep(PAUSE);
        }
    }

    /// Disables the controller, which ends its DMA.
    ///
    /// # Errors
    /// [`NvmeError::NotReady`] if it stays enabled: then only a reset ends its DMA.
    pub(crate) fn disable(mut self) -> Result<(), NvmeError> {
        self.is_enabled = false;
        self.set_enabled(false, &mut || Ok(()))?;
        self.release_cmb()
    }

    /// Ends the recognition of addresses of the memory buffer.
    fn release_cmb(&mut self) -> Result<(), NvmeError> {
        if std::mem::take(&mut self.has_cmb) { MappedCmb::<B>::disable(self.bar, self.capabilities) } else { Ok(()) }
    }

    /// Runs an admin command.
    fn admin(&mut self, command: &Command, check: &mut impl FnMut() -> Result<(), NvmeError>) -> Result<(), NvmeError> {
        self.admin.submit(self.bar, &self.memory, command)?;
        let (end, command) = (Instant::now() + ADMIN_TIME, command.kind.name());
        let after_ms = ADMIN_TIME.as_millis() as u64;
        let mut watched = || {
            let csts = register::load(self.bar, CSTS)?;
            match csts {
                _ if csts == u64::from(u32::MAX) => Err(NvmeError::Gone),
                _ if csts & FATAL != 0 => Err(NvmeError::Fatal(csts)),
                _ if Instant::now() > end => Err(NvmeError::NoCompletion { command, after_ms }),
                _ => check(),
            }
        };
        self.admin.wait(self.bar, &self.memory, &mut watched)
    }

    /// The page that Identify has filled.
    fn data(&self) -> Vec<u8> {
        let at = self.at + DATA;
        (at..at + PAGE).step_by(8).flat_map(|word| self.memory.host.load(word).to_le_bytes()).collect()
    }

    /// Identifies the controller and the active namespace `wanted`, or else the first one; `None` if none is active.
    ///
    /// # Errors
    /// [`NvmeError`] of a command, of a namespace that cannot be used, and of `check`.
    pub(crate) fn identify(
        &mut self,
        wanted: Option<u32>,
        check: &mut impl FnMut() -> Result<(), NvmeError>,
    ) -> Result<(ControllerData, Option<Namespace>), NvmeError> {
        let to = self.memory.host.iova(self.at + DATA);
        self.admin(&Command::identify_controller(to), check)?;
        let controller = ControllerData::of(&self.data(), self.capabilities.least_page());
        self.admin(&Command::active_namespaces(0, to), check)?;
        let active = Active::of(&self.data());
        let Some(id) = wanted.or(active.first()) else { return Ok((controller, None)) };
        let unusable = |because| NvmeError::Namespace { id, because, active };
        // The list that begins with it: a list has 1024 namespaces at most.
        self.admin(&Command::active_namespaces(id - 1, to), check)?;
        if Active::of(&self.data()).first() != Some(id) {
            return Err(unusable("it is not active"));
        }
        self.admin(&Command::identify_namespace(id, to), check)?;
        Ok((controller, Some(Namespace::readable(id, &self.data()).map_err(unusable)?)))
    }

    /// Requests `wanted` I/O queue pairs, before any is created; returns the number that the controller grants.
    ///
    /// # Errors
    /// [`NvmeError`] of the command, and of `check`.
    pub(crate) fn grant(
        &mut self,
        wanted: u32,
        check: &mut impl FnMut() -> Result<(), NvmeError>,
    ) -> Result<u32, NvmeError> {
        self.admin(&Command::number_of_queues(wanted), check)?;
        // Dword 0: NSQA in bits 15:0 and NCQA in bits 31:16, which count from 0.
        let granted = self.admin.result(&self.memory)?;
        Ok((granted & 0xffff).min(granted >> 16) + 1)
    }

    /// Creates `pairs` I/O queue pairs; returns the depth of each. Without interrupts, completions are polled.
    ///
    /// # Errors
    /// [`NvmeError`] of a command, of a memory buffer that is absent or refused, and of `check`.
    pub(crate) fn create_queues(
        &mut self,
        queues: IoQueues,
        pairs: u32,
        interrupts: Option<IoInterrupts<'a>>,
        check: &mut impl FnMut() -> Result<(), NvmeError>,
    ) -> Result<u32, NvmeError> {
        let granted = self.grant(pairs, check)?;
        if granted < pairs {
            return Err(NvmeError::QueuePairs { wanted: pairs, granted });
        }
        let is_used = |cmb: &&MappedCmb<'_, B>| queues != IoQueues::Host || cmb.uses.data;
        if let Some(cmb) = self.memory.cmb.as_ref().filter(is_used) {
            self.has_cmb = true;
            cmb.enable(self.bar, self.capabilities)?;
        }
        for nth in 0..pairs {
            let vector = interrupts.map(|by| Vector { number: nth as u16 % by.vectors.max(1), event: by.event });
            self.create_pair(self.places(queues, nth, pairs), vector, check)?;
        }
        Ok(self.io.first().map_or(0, QueuePair::depth))
    }

    /// Creates the next I/O queue pair at these places: submissions, completions.
    fn create_pair(
        &mut self,
        places: [Place; 2],
        vector: Option<Vector<'a>>,
        check: &mut impl FnMut() -> Result<(), NvmeError>,
    ) -> Result<(), NvmeError> {
        let (id, entries) = (self.io.len() as u16 + 1, entries(self.capabilities));
        for place in places {
            self.memory.clear(place, PAGE)?;
        }
        let [submissions, completions] = places.map(|place| self.memory.address(place));
        let (submissions, completions) = (submissions?, completions?);
        let number = vector.map(|vector| vector.number);
        self.admin(&Command::create_completions(id, entries, completions, number), check)?;
        self.admin(&Command::create_submissions(id, entries, submissions), check)?;
        self.io.push(QueuePair::new(id, entries, places, self.capabilities, vector));
        Ok(())
    }

    /// Places of a pair of I/O queues: submissions, completions. In the memory buffer, all submissions precede all completions.
    fn places(&self, queues: IoQueues, nth: u32, pairs: u32) -> [Place; 2] {
        let host = [0, PAGE].map(|page| Place::Host(self.at + IO + 2 * PAGE * u64::from(nth) + page));
        let cmb = [nth, pairs + nth].map(|page| Place::Cmb(PAGE * u64::from(page)));
        match queues {
            IoQueues::Host => host,
            IoQueues::SubmissionsInCmb => [cmb[0], host[1]],
            IoQueues::InCmb => cmb,
        }
    }

    /// Runs the commands of `next`, given the number of a queue pair, with at most `depth` outstanding on each pair, until it
    /// returns `None` and all have completed. `check` is called during long waits, and ends them with an error.
    ///
    /// # Errors
    /// [`NvmeError`] of the first command that fails, and of `check`.
    #[inline]
    pub(crate) fn run<K: Borrow<Command>>(
        &mut self,
        depth: u32,
        next: impl FnMut(usize) -> Option<K>,
        check: &mut impl FnMut() -> Result<(), NvmeError>,
    ) -> Result<(), NvmeError> {
        // Data are copied by accesses that are not volatile: before the first command, and after the last one.
        compiler_fence(Ordering::Release);
        let done = self.run_all(depth, next, check);
        compiler_fence(Ordering::Acquire);
        done
    }

    #[inline]
    fn run_all<K: Borrow<Command>>(
        &mut self,
        depth: u32,
        mut next: impl FnMut(usize) -> Option<K>,
        check: &mut impl FnMut() -> Result<(), NvmeError>,
    ) -> Result<(), NvmeError> {
        let Some(first) = self.io.first() else { return Err(NvmeError::Unsupported("there is no I/O queue")) };
        let depth = depth.clamp(1, first.depth());
        let [io] = self.io.as_mut_slice() else {
            return several::run(self.bar, &self.memory, &mut self.io, depth, next, check);
        };
        if !io.has_interrupt() {
            return io.run_polled((self.bar, &self.memory), depth, move || next(0), check);
        }
        while let Some(command) = next(0) {
            while io.outstanding() >= depth {
                io.wait(self.bar, &self.memory, check)?;
            }
            io.submit(self.bar, &self.memory, command.borrow())?;
        }
        while io.outstanding() > 0 {
            io.wait(self.bar, &self.memory, check)?;
        }
        Ok(())
    }

    /// Name of an outstanding I/O command.
    pub(crate) fn waiting_for(&self) -> &'static str {
        self.io.iter().map(QueuePair::waiting_for).find(|name| !name.is_empty()).unwrap_or("")
    }
}

impl<B: Bar, M: DmaMemory> Drop for Controller<'_, B, M> {
    fn drop(&mut self) {
        if self.is_enabled {
            // Whoever must know whether its DMA has ended calls `disable` or `is_stopped`. A run that was interrupted does not
            // wait for as long as CAP.TO permits.
            let end = Instant::now() + AT_ONCE;
            let mut soon = || if Instant::now() > end { Err(NvmeError::Late) } else { Ok(()) };
            // Commands of a drive that still runs may use the addresses of its buffer.
            if self.set_enabled(false, &mut soon).is_err() && !is_stopped(self.bar) {
                return;
            }
        }
        // A drive that does not respond recognises no address either.
        let _ = self.release_cmb();
    }
}

/// Whether a controller makes no DMA: it is disabled, and has acknowledged that. One whose registers read as all ones is gone.
pub(crate) fn is_stopped(bar: &impl Bar) -> bool {
    let gone = u64::from(u32::MAX);
    register::load(bar, CSTS).is_ok_and(|csts| csts == gone || csts & READY == 0)
        && register::load(bar, CC).is_ok_and(|cc| cc == gone || cc & 1 == 0)
}

/// Entries of each queue.
fn entries(capabilities: Capabilities) -> u16 {
    // A queue has at least two entries.
    capabilities.most_entries().clamp(2, u64::from(ENTRIES)) as u16
}

#[cfg(test)]
mod tests {
    use super::super::fake::{Bell, Fake, FakeMemory, Fault, always, never};
    use super::super::{DataPointer, list_bytes};
    use super::*;
    use crate::drive_options::DataPointers;

    /// Most I/O queue pairs of a test.
    const PAIRS: u32 = 4;
    /// Offsets of the queues, of a list and of data in the memory.
    const QUEUES: u64 = 0;
    const LIST: u64 = queue_bytes(PAIRS);
    const PLACE: u64 = LIST + PAGE;

    fn memory() -> FakeMemory {
        FakeMemory::new(PLACE + (64 << 10) + PAGE)
    }

    /// The data pointer of `bytes` bytes at the place for data.
    fn pointer(memory: &FakeMemory, bytes: u64) -> DataPointer {
        DataPointer::of(DataPointers::Prp, memory, memory.iova(PLACE), bytes, LIST)
    }

    #[test]
    fn reads_of_every_size_return_the_bytes_of_the_blocks() {
        let memory = memory();
        let fake = Fake::new(&memory, Fault::None);
        let mut controller = Controller::enable(&fake, &memory, QUEUES, None, &mut always).unwrap();
        let (data, namespace) = controller.identify(None, &mut always).unwrap();
        assert_eq!((data.model.as_str(), data.most_bytes), ("FAKE", Some(512 << 10)));
        let namespace = namespace.unwrap();
        assert_eq!((namespace.id, namespace.blocks, namespace.block_bytes), (5, Fake::BLOCKS, 512));
        assert_eq!(controller.create_queues(IoQueues::Host, 1, None, &mut always).unwrap(), 63);
        for by in DataPointers::ALL {
            for (first, bytes) in [(3, 512), (4, 4096), (5, 8192), (6, 12288), (7, 64 << 10)] {
                assert!(list_bytes(by, bytes) <= PAGE);
                for at in [PLACE, PLACE + 512] {
                    let to = DataPointer::of(by, &memory, memory.iova(at), bytes, LIST);
                    let mut once = Some(Command::read(namespace.id, first, (bytes / 512) as u32, to));
                    controller.run(1, |_| once.take(), &mut never).unwrap();
                    assert_eq!(memory.bytes(at, bytes), Fake::image(first * 512, bytes), "{by} {bytes} at {at}");
                }
            }
        }
        controller.disable().unwrap();
        assert!(!fake.is_enabled());
    }

    #[test]
    fn queues_wrap_and_no_more_than_the_depth_is_outstanding() {
        for depth in 1..=8 {
            let memory = memory();
            // Completions come when the controller has this many commands, and in reverse order.
            let fake = Fake::new(&memory, Fault::Batches(depth));
            let mut controller = Controller::enable(&fake, &memory, QUEUES, None, &mut always).unwrap();
            controller.create_queues(IoQueues::Host, 1, None, &mut always).unwrap();
            let mut reads = (0..200 * u64::from(depth)).map(|n| {
                let to = pointer(&memory, 512);
                Command::read(5, n % Fake::BLOCKS, 1, to)
            });
            controller.run(depth, |_| reads.next(), &mut never).unwrap();
            assert_eq!((fake.reads(), fake.most_outstanding()), (200 * u64::from(depth), depth));
        }
    }

    #[test]
    fn completions_by_interrupt_are_all_taken_although_interrupts_merge() {
        for depth in [1, 2, 8] {
            let memory = memory();
            let fake = Fake::new(&memory, Fault::Batches(depth));
            let event = Bell::new(&fake);
            let mut controller = Controller::enable(&fake, &memory, QUEUES, None, &mut always).unwrap();
            let interrupt = Some(IoInterrupts { vectors: 1, event: &event });
            controller.create_queues(IoQueues::Host, 1, interrupt, &mut always).unwrap();
            let mut reads = (0..200 * u64::from(depth)).map(|n| Command::read(5, n % 16, 1, pointer(&memory, 512)));
            controller.run(depth, |_| reads.next(), &mut never).unwrap();
            assert_eq!((fake.reads(), fake.most_outstanding()), (200 * u64::from(depth), depth));
            // Each wait takes all completions of a batch.
            assert_eq!(event.arrived(), 200, "depth {depth}");
        }
    }

    #[test]
    fn an_interrupt_that_never_comes_is_named_with_its_command() {
        let memory = memory();
        let fake = Fake::new(&memory, Fault::NoInterrupt);
        let event = Bell::new(&fake);
        let mut controller = Controller::enable(&fake, &memory, QUEUES, None, &mut always).unwrap();
        let interrupt = Some(IoInterrupts { vectors: 1, event: &event });
        controller.create_queues(IoQueues::Host, 1, interrupt, &mut always).unwrap();
        let mut once = Some(Command::flush(5));
        let said = controller.run(1, |_| once.take(), &mut never).unwrap_err();
        assert_eq!(said, NvmeError::NoInterrupt { command: "Flush" });
    }

    #[test]
    fn interrupts_without_a_completion_do_not_extend_the_wait() {
        let memory = memory();
        let fake = Fake::new(&memory, Fault::OnlyInterrupts);
        let event = Bell::new(&fake);
        let mut controller = Controller::enable(&fake, &memory, QUEUES, None, &mut always).unwrap();
        let interrupt = Some(IoInterrupts { vectors: 1, event: &event });
        controller.create_queues(IoQueues::Host, 1, interrupt, &mut always).unwrap();
        let (mut once, mut checks) = (Some(Command::flush(5)), 0);
        let mut third = || {
            checks += 1;
            if checks < 3 { Ok(()) } else { Err(NvmeError::Late) }
        };
        assert_eq!(controller.run(1, |_| once.take(), &mut third).unwrap_err(), NvmeError::Late);
        assert_eq!(event.arrived(), 3);
    }

    #[test]
    fn the_namespace_that_is_named_is_identified_and_one_that_cannot_be_used_is_refused_with_the_active_ones() {
        let memory = memory();
        let fake = Fake::new(&memory, Fault::None);
        let mut controller = Controller::enable(&fake, &memory, QUEUES, None, &mut always).unwrap();
        let mut id = |wanted| controller.identify(wanted, &mut always).map(|found| found.1.unwrap().id);
        assert_eq!((id(None), id(Some(5)), id(Some(9))), (Ok(5), Ok(5), Ok(9)));
        let mut said = |wanted| id(Some(wanted)).unwrap_err().to_string();
        let listed = "active namespaces: 5, 8, 9: name another one with --namespace";
        assert!(said(7).starts_with("namespace 7: it is not active; ") && said(7).contains(listed), "{}", said(7));
        assert!(said(8).starts_with("namespace 8: its logical blocks have metadata; "), "{}", said(8));
        assert!(said(10).contains("not active") && said(1).contains("not active"));
    }

    #[test]
    fn a_flush_completes_and_a_read_beyond_the_end_is_named() {
        let memory = memory();
        let fake = Fake::new(&memory, Fault::None);
        let mut controller = Controller::enable(&fake, &memory, QUEUES, None, &mut always).unwrap();
        controller.create_queues(IoQueues::Host, 1, None, &mut always).unwrap();
        let mut run = |command: Command| {
            let mut once = Some(command);
            controller.run(1, |_| once.take(), &mut never)
        };
        assert_eq!(run(Command::flush(5)), Ok(()));
        let to = pointer(&memory, 512);
        assert_eq!(run(Command::read(5, Fake::BLOCKS - 1, 1, to)), Ok(()));
        let said = run(Command::read(5, Fake::BLOCKS, 1, to)).unwrap_err().to_string();
        assert!(said.contains("refused the command Read: LBA Out of Range (SCT 0x0, SC 0x80)"), "{said}");
    }

    #[test]
    fn a_controller_that_is_never_ready_is_an_error_within_its_own_time() {
        let memory = memory();
        let fake = Fake::new(&memory, Fault::NeverReady);
        let said = Controller::enable(&fake, &memory, QUEUES, None, &mut always).unwrap_err();
        assert_eq!(said, NvmeError::NotReady { wanted: "ready", after_ms: 500, csts: 0 });
        assert!(!fake.is_enabled(), "it is disabled again");
    }

    #[test]
    fn an_interruption_ends_the_wait_for_a_controller_that_becomes_ready_late() {
        let memory = memory();
        let fake = Fake::new(&memory, Fault::NeverReady);
        let (begun, mut looks) = (Instant::now(), 0);
        let mut check = || {
            looks += 1;
            if looks > 3 { Err(NvmeError::Interrupted) } else { Ok(()) }
        };
        let said = Controller::enable(&fake, &memory, QUEUES, None, &mut check).unwrap_err();
        assert_eq!(said, NvmeError::Interrupted);
        assert!(begun.elapsed() < Duration::from_millis(400), "{:?} of the 500 ms of CAP.TO", begun.elapsed());
        assert!(!fake.is_enabled() && is_stopped(&fake), "it is disabled again");
    }

    #[test]
    fn an_enabled_controller_is_not_stopped_and_an_absent_one_is() {
        let memory = memory();
        let fake = Fake::new(&memory, Fault::None);
        let controller = Controller::enable(&fake, &memory, QUEUES, None, &mut always).unwrap();
        assert!(!is_stopped(&fake));
        controller.disable().unwrap();
        assert!(is_stopped(&fake) && is_stopped(&Fake::new(&memory, Fault::Gone)));
    }

    #[test]
    fn a_fatal_status_an_absent_drive_and_a_wrong_completion_are_named() {
        let memory = memory();
        for (fault, error) in [(Fault::Fatal, NvmeError::Fatal(2)), (Fault::Gone, NvmeError::Gone)] {
            let fake = Fake::new(&memory, fault);
            assert_eq!(Controller::enable(&fake, &memory, QUEUES, None, &mut always).unwrap_err(), error);
        }
        let fake = Fake::new(&memory, Fault::WrongIdentifier);
        let mut controller = Controller::enable(&fake, &memory, QUEUES, None, &mut always).unwrap();
        assert_eq!(controller.identify(None, &mut always).unwrap_err(), NvmeError::Unknown(9));
    }

    #[test]
    fn the_caller_ends_a_wait_for_a_completion_that_never_comes() {
        let memory = memory();
        let fake = Fake::new(&memory, Fault::Batches(2));
        let mut controller = Controller::enable(&fake, &memory, QUEUES, None, &mut always).unwrap();
        controller.create_queues(IoQueues::Host, 1, None, &mut always).unwrap();
        let mut once = Some(Command::flush(5));
        assert_eq!(controller.run(1, |_| once.take(), &mut never), Err(NvmeError::Late));
        assert_eq!(controller.waiting_for(), "Flush");
    }
}
