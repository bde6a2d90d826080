//! Runs of DMA plans: memory is mapped, transfers are timed, and the bytes are verified.

use super::device::BusMaster;
use super::dma_plan::DmaPlan;
use super::engine::{Deadline, EngineDriver};
use super::faults::FaultLog;
use super::host_window::HostWindow;
use super::job::{DmaMemory, Job, Stuck};
use super::peer::Peer;
use super::{AddressSpace, VfioInterrupt};
use crate::host_pages::{HostPages, changed_beside, fill, filled};
use crate::linux_sysfs::Address;
use crate::x86::disturbance::Company;
use crate::x86::pattern;
use crate::x86::run::{Numbering, Run};
use crate::x86::sample::{Delivery, Limits, Stamps, stamp_before, timed};
use crate::x86::timer::Timer;
use lanemark_machine::{Completion, Confirmed, MachineError, Partner, Plan, Samples, Transfer, Verb};
use lanemark_units::Ticks;
use rustix::io::Errno;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Bytes of a page.
const PAGE: u64 = 4096;
/// Time within which the kernel reports a fault.
pub(super) const REPORT: Duration = Duration::from_millis(100);

/// The parts of a machine that a run of DMA uses.
pub(super) struct Bench<'a> {
    pub(super) name: &'a str,
    pub(super) address_space: &'a Arc<AddressSpace>,
    pub(super) driver: &'a mut EngineDriver,
    /// Memory of another device, for transfers between both.
    pub(super) peer: Option<&'a Peer>,
    /// Memory to map, as long as the longest so far.
    pub(super) pages: &'a mut Option<HostPages>,
    pub(super) cpu: usize,
    pub(super) timer: Timer,
    pub(super) interrupted: &'a AtomicBool,
    /// The kernel's request to give the device back.
    pub(super) requested: Option<&'a VfioInterrupt>,
    /// The kernel's log.
    pub(super) log: &'a Path,
    /// Number of this run, from which its data follow.
    pub(super) number: u64,
}

/// Host memory of a run: the window of the plan, unless it is at another device; behind it a place for one more transfer, and
/// the memory for descriptors.
#[derive(Clone, Copy, Debug)]
struct Layout {
    window_end: u64,
    scratch: u64,
    list: u64,
    len: u64,
}

impl Layout {
    fn of(asked: &DmaPlan, most_bytes: u64, list_bytes: u64) -> Layout {
        let end = |of: Transfer| match of.partner {
            Partner::Host => of.window.offset + of.window.len.max(of.bytes),
            Partner::Peer { .. } => 0,
        };
        let window_end = asked.transfers().map(end).max().unwrap_or(0);
        let scratch = window_end.next_multiple_of(PAGE);
        let list = scratch + most_bytes.next_multiple_of(PAGE);
        Layout { window_end, scratch, list, len: list + list_bytes }
    }
}

/// Maps memory of another device for an engine or a drive. Returns the IOVA of offset 0 of its BAR, which may not be mapped.
#[allow(unsafe_code)]
pub(super) fn map_peer(peer: &Peer, window: &mut HostWindow<'_>) -> Result<u64, String> {
    let memory = peer.address().map_err(|error| error.to_string())?;
    // SAFETY: the peer keeps its memory mapped longer than this window.
    let iova = unsafe { window.map_peer(memory, peer.range().len()) };
    let remedy = "mapping memory of the other card for DMA failed";
    let iova = iova.map_err(|error| format!("{remedy}: {error}"))?;
    Ok(iova.0.wrapping_sub(peer.range().from))
}

/// The error of memory of another card in which bytes differ although nothing was to write there.
pub(super) fn not_kept(name: &str, at: u64, bar: u8, other: Address) -> String {
    format!(
        "{name}: the memory of {other} did not keep the bytes stored to it at offset {at:#x} of BAR{bar}: is it memory?"
    )
}

impl Bench<'_> {
    /// Runs a plan and verifies its bytes.
    pub(super) fn run(mut self, plan: &Plan, asked: &DmaPlan, samples: &mut Samples) -> Result<(), MachineError> {
        let transfer = asked.transfer;
        let layout = Layout::of(asked, self.driver.limits().most_bytes, self.driver.list_bytes());
        let peer = self.peer.filter(|_| transfer.partner != Partner::Host);
        if let Some(peer) = peer {
            let filled = peer.check_device().map_err(|error| error.to_string());
            let fill = || peer.fill(self.seed(), self.interrupted).map_err(|error| error.to_string());
            filled.and_then(|()| fill()).map_err(|error| self.device_error(error))?;
            self.check_interrupted()?;
        }
        let log = FaultLog::from_now(self.log);
        let mut pages = self.allocated(layout.len)?;
        fill(&mut pages, layout.window_end, self.seed());
        let device = Arc::clone(self.address_space.device());
        let done = {
            let address_bits = self.driver.limits().address_bits;
            let mapped = HostWindow::map(self.address_space, &mut pages, layout.len, address_bits, None);
            let mut window = mapped.map_err(|error| self.os("mapping memory for DMA", std::io::Error::other(error)))?;
            let iova = peer.map_or(Ok(window.iova(0)), |peer| map_peer(peer, &mut window));
            let done = iova.map_err(|error| self.device_error(error));
            let done = done.and_then(|iova| self.measured(plan, asked, layout, (&mut window, iova), samples));
            // Without an interrupt to disable, nothing can fail.
            let _ = self.driver.set_vector(false);
            if done.is_err() {
                self.driver.stop();
            }
            if done.is_err() && device.can_reset() {
                // A transfer may still be going on: it must end before its memory is unmapped and reused.
                let _ = device.reset();
            }
            done
        };
        let confirmed = done.and_then(|from_device| {
            let of_host = match (peer, &from_device) {
                (Some(_), None) => None,
                _ => self.confirmed(plan, asked, &pages, from_device.as_deref())?,
            };
            peer.map_or(Ok(of_host), |peer| self.confirmed_at(plan, &transfer, peer, of_host))
        });
        let is_complete = confirmed
            .as_ref()
            .is_ok_and(|confirmed| confirmed.is_none_or(|bytes| bytes.confirmed_bytes == bytes.claimed_bytes));
        let mut faults = log.faults_of(device.address());
        if !is_complete && faults.is_empty() {
            // The kernel reports a fault after the request.
            std::thread::sleep(REPORT);
            faults = log.faults_of(device.address());
        }
        *self.pages = Some(pages);
        if !faults.is_empty() {
            let first = faults.first().map_or("", String::as_str);
            let what = format!(
                "{}: the IOMMU has blocked {} of its DMA requests; the kernel reports: {first}; check address_bits of the device file, and its registers and commands if it has an [engine]",
                self.name,
                faults.len()
            );
            return Err(MachineError::Device { machine: self.name.to_owned(), what });
        }
        samples.confirmed = confirmed.map_err(|error| match (error, device.check()) {
            (error @ (MachineError::Interrupted { .. } | MachineError::Device { .. }), _) | (error, Ok(())) => error,
            (_, Err(gone)) => MachineError::Device { machine: self.name.to_owned(), what: gone.to_string() },
        })?;
        Ok(())
    }

    /// Memory of at least `len` bytes.
    fn allocated(&mut self, len: u64) -> Result<HostPages, MachineError> {
        if let Some(pages) = self.pages.take().filter(|pages| pages.len() >= len) {
            return Ok(pages);
        }
        let pages = self.address_space.allocate_whole(len);
        pages.map_err(|error| self.os("allocating memory for DMA", error))
    }

    /// Seed of the bytes in the window before the run.
    const fn seed(&self) -> u64 {
        2 * self.number
    }

    /// The bytes that the device has before it writes.
    fn data(&self, bytes: u64) -> Vec<u8> {
        let mut data = vec![0; bytes as usize];
        pattern::fill(&mut data, (2 * self.number + 1) << 20);
        data
    }

    /// Makes the transfers while the device may be bus master. Returns the bytes that its memory has at the end, if the
    /// host wrote them.
    fn measured(
        &mut self,
        plan: &Plan,
        asked: &DmaPlan,
        layout: Layout,
        (window, iova): (&mut HostWindow<'_>, u64),
        samples: &mut Samples,
    ) -> Result<Option<Vec<u8>>, MachineError> {
        let bytes = asked.transfer.bytes;
        let has = |verb| asked.transfers().any(|transfer| transfer.verb == verb);
        self.driver.check_identity().map_err(|stuck| self.stuck(stuck, plan.timeout))?;
        let vector = self.driver.set_vector(asked.completion == Completion::Interrupt);
        vector.map_err(|error| self.device_error(error.to_string()))?;
        let master = BusMaster::enable(Arc::clone(self.address_space.device()));
        let master = master.map_err(|error| self.os("enabling bus mastering", error))?;
        let deadline = self.deadline(plan.timeout);
        self.driver.check_idle(&deadline).map_err(|stuck| self.stuck(stuck, plan.timeout))?;
        if asked.completion == Completion::Interrupt {
            self.driver.route_interrupts().map_err(|stuck| self.stuck(stuck, plan.timeout))?;
        }
        let own = window.iova(0)..window.iova(layout.list);
        let of_peer = self.peer.filter(|_| asked.transfer.partner != Partner::Host).map_or(0..0, |peer| {
            let from = iova.wrapping_add(peer.range().from);
            from..from.saturating_add(peer.range().len())
        });
        let places = [own, of_peer];
        let by = asked.polled;
        // Moves bytes to the place of the device that the transfers of direction `of` use, or from it.
        let scratch = window.iova(layout.scratch);
        let job = |verb, of| Job { verb, iova: scratch, own: self.own(asked, of), bytes };
        if has(Verb::Store) {
            let data = self.data(bytes);
            window.pages().write(layout.scratch, &data);
            let job = job(Verb::Load, Verb::Store);
            self.once(job, (plan, by), &DmaMemory { window, list: layout.list, data: places.clone() })?;
        }
        self.sampled(plan, asked, (iova, &DmaMemory { window, list: layout.list, data: places.clone() }), samples)?;
        let mut found = None;
        if has(Verb::Load) {
            window.pages().write(layout.scratch, &vec![0; bytes as usize]);
            let job = job(Verb::Store, Verb::Load);
            self.once(job, (plan, by), &DmaMemory { window, list: layout.list, data: places })?;
            let mut bytes = vec![0; bytes as usize];
            window.pages().read(layout.scratch, &mut bytes);
            found = Some(bytes);
        }
        drop(master);
        Ok(found)
    }

    /// Address of the device's own memory that the transfers of a direction use.
    const fn own(&self, asked: &DmaPlan, verb: Verb) -> u64 {
        self.driver.limits().memory_start + asked.own(verb)
    }

    /// One transfer outside of the samples.
    fn once(&self, job: Job, (plan, by): (&Plan, Completion), memory: &DmaMemory<'_>) -> Result<(), MachineError> {
        let done = self.driver.transfer(job, by, &self.deadline(plan.timeout), memory);
        done.map_err(|stuck| self.stuck(stuck, plan.timeout))
    }

    fn deadline(&self, timeout: Ticks) -> Deadline<'_> {
        let end = stamp_before().saturating_add(self.timer.cycles(timeout));
        Deadline { interrupted: self.interrupted, end }
    }

    fn sampled(
        &self,
        plan: &Plan,
        asked: &DmaPlan,
        (iova, memory): (u64, &DmaMemory<'_>),
        samples: &mut Samples,
    ) -> Result<(), MachineError> {
        let count = asked.transfer.count;
        let job = |of: &Transfer, nth: u64| {
            let at = iova.wrapping_add(of.window.place(nth, of.bytes));
            Job { verb: of.verb, iova: at, own: self.own(asked, of.verb), bytes: of.bytes }
        };
        let run = Run {
            machine: self.name,
            timer: self.timer,
            plan,
            cpu: self.cpu,
            company: Company::Device,
            passes_per_check: 1,
            delivery: Delivery::Drained,
            interrupted: self.interrupted,
            numbering: Numbering::EndingWith(self.number),
        };
        let take = |limits: &Limits<'_>, first: u64, passes: u64| -> Result<Stamps, MachineError> {
            self.check_requested()?;
            let (stuck, deadline) = (Cell::new(None), self.deadline(plan.timeout));
            let mut nth = 0;
            let stamps = timed(limits, first, passes, |_| {
                let done = match &asked.reads {
                    None => (nth..nth + count).try_for_each(|nth| {
                        self.driver.transfer(job(&asked.transfer, nth), asked.completion, &deadline, memory)
                    }),
                    Some(reads) => {
                        let of = |verb| if verb == Verb::Load { reads } else { &asked.transfer };
                        self.driver.both(count, |verb, of_pass| job(of(verb), nth + of_pass), &deadline, memory)
                    }
                };
                nth += count;
                done.map_err(|why| {
                    stuck.set(Some(why));
                    Errno::IO
                })
            });
            self.driver.registers().check().map_err(|error| self.device_error(error.to_string()))?;
            stuck.get().map_or(Ok(stamps), |stuck| Err(self.stuck(stuck, plan.timeout)))
        };
        run.take(samples, "starting DMA", || {}, take).map(drop)
    }

    /// Fails if the kernel requests the device back: it is being removed, or its driver unbound.
    fn check_requested(&self) -> Result<(), MachineError> {
        if let Some(peer) = self.peer {
            peer.check_device().map_err(|error| self.device_error(error.to_string()))?;
        }
        let is_requested = self.requested.is_some_and(|request| request.take().unwrap_or(false));
        if !is_requested {
            return Ok(());
        }
        Err(self.device_error(self.address_space.device().requested().to_string()))
    }

    /// Compares the bytes of DMA writes of the last iteration in host memory, and those of the last DMA read with `from_device`,
    /// the bytes read back from the device. Bytes of the window beside the writes must be unchanged.
    fn confirmed(
        &self,
        plan: &Plan,
        asked: &DmaPlan,
        pages: &HostPages,
        from_device: Option<&[u8]>,
    ) -> Result<Option<Confirmed>, MachineError> {
        let end = Layout::of(asked, 0, 0).window_end;
        let mut sum = Confirmed { claimed_bytes: 0, confirmed_bytes: 0 };
        for transfer in asked.transfers() {
            let one = match (transfer.verb, from_device) {
                (Verb::Load, Some(found)) => self.confirmed_read(plan, &transfer, found),
                _ => self.confirmed_writes(plan, &transfer, pages, end)?,
            };
            sum.claimed_bytes += one.claimed_bytes;
            sum.confirmed_bytes += one.confirmed_bytes;
        }
        Ok(Some(sum))
    }

    fn confirmed_read(&self, plan: &Plan, transfer: &Transfer, found: &[u8]) -> Confirmed {
        let Transfer { bytes, count, window, .. } = *transfer;
        let meant = filled(window.place(plan.passes * count - 1, bytes), bytes, self.seed());
        Confirmed { claimed_bytes: bytes, confirmed_bytes: pattern::equal_bytes(found, &meant) }
    }

    fn confirmed_writes(
        &self,
        plan: &Plan,
        transfer: &Transfer,
        pages: &HostPages,
        end: u64,
    ) -> Result<Confirmed, MachineError> {
        let Transfer { bytes, count, window, .. } = *transfer;
        let place = |nth: u64| window.place(nth, bytes);
        let transfers = plan.passes * count;
        let data = self.data(bytes);
        let last: BTreeSet<u64> = (transfers - count..transfers).map(place).collect();
        let mut found = vec![0; bytes as usize];
        let equal = last.iter().map(|at| {
            pages.read(*at, &mut found);
            pattern::equal_bytes(&found, &data)
        });
        let confirmed = Confirmed { claimed_bytes: bytes * last.len() as u64, confirmed_bytes: equal.sum() };
        if let Some(changed) = changed_beside(pages, plan, transfer, end, self.seed()) {
            return Err(self.device_error(format!(
                "{}: DMA has changed the byte at offset {changed} of the host memory, which is outside of every transfer: check \
                 count_register and the commands of an [engine] in the device file, alignment_bytes of [descriptors]",
                self.name
            )));
        }
        Ok(confirmed)
    }

    fn check_interrupted(&self) -> Result<(), MachineError> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(MachineError::Interrupted { machine: self.name.to_owned() });
        }
        Ok(())
    }

    /// As [`confirmed`](Bench::confirmed), of transfers with another device, whose reads have arrived as `of_reads` says.
    fn confirmed_at(
        &self,
        plan: &Plan,
        transfer: &Transfer,
        peer: &Peer,
        of_reads: Option<Confirmed>,
    ) -> Result<Option<Confirmed>, MachineError> {
        let Transfer { bytes, count, window, .. } = *transfer;
        let found = peer.bytes(self.interrupted);
        let found = found.map_err(|error| self.device_error(error.to_string()))?;
        self.check_interrupted()?;
        let transfers = plan.passes * count;
        let place = |nth: u64| (window.place(nth, bytes) - peer.range().from) as usize;
        let last: BTreeSet<usize> = (transfers - count..transfers).map(place).collect();
        let data = self.data(bytes);
        let equal = last.iter().map(|at| pattern::equal_bytes(&found[*at..][..data.len()], &data));
        let confirmed = Confirmed { claimed_bytes: bytes * last.len() as u64, confirmed_bytes: equal.sum() };
        let Some(at) = peer.changed_beside(plan, transfer, found, self.seed()) else {
            return Ok(Some(of_reads.unwrap_or(confirmed)));
        };
        let (name, bar, other) = (self.name, peer.range().bar, peer.device().address());
        Err(self.device_error(match transfer.verb {
            Verb::Load => not_kept(name, at, bar, other),
            Verb::Store => format!(
                "{name}: the byte at offset {at:#x} of BAR{bar} of {other} has changed, outside all transfers: check count_register \
                 and the commands of an [engine] in the device file, alignment_bytes of [descriptors]; or {other} writes to \
                 its own memory"
            ),
        }))
    }

    fn device_error(&self, what: String) -> MachineError {
        MachineError::Device { machine: self.name.to_owned(), what }
    }

    fn os(&self, doing: &'static str, source: std::io::Error) -> MachineError {
        MachineError::Os { machine: self.name.to_owned(), doing, source }
    }

    fn stuck(&self, stuck: Stuck, timeout: Ticks) -> MachineError {
        let machine = self.name.to_owned();
        let longest = Ticks::whole_ns(u64::from(self.driver.limits().longest_ms) * 1_000_000);
        match stuck {
            Stuck::Register | Stuck::WriteBack | Stuck::Interrupt => {
                let waiting_for = format!("{stuck} ({}.longest_ms of the device file)", self.driver.section());
                MachineError::Timeout { machine, after: longest, waiting_for }
            }
            Stuck::Plan => MachineError::Timeout { machine, after: timeout, waiting_for: stuck.to_string() },
            Stuck::Interrupted => MachineError::Interrupted { machine },
            Stuck::Os(error) => self.os("starting DMA", error.into()),
            Stuck::Beyond(_)
            | Stuck::Identifier { .. }
            | Stuck::Failed { .. }
            | Stuck::FailedBits { .. }
            | Stuck::Count { .. } => self.device_error(format!("{}: {stuck}", self.name)),
        }
    }
}
