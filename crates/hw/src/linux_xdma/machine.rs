//! A card behind its driver as a machine.

use super::card::Direction;
use super::channel::{CallError, Channel, Memory};
use super::plan::{self, Limits, Stream};
use super::stream::{Crew, Failure, Job};
use super::user::UserBar;
use super::{CardMemory, XdmaCard, XdmaError};
use crate::host_pages::{HostPages, changed_beside, fill, filled};
use crate::linux_sysfs::{Attachment, BarFiles, CardMachine, Device, Mapping, Opened};
use crate::x86::cpu::Cpu;
use crate::x86::disturbance::Company;
use crate::x86::pattern;
use crate::x86::pin::{allowed_cpus, usable_cores};
use crate::x86::refusal::Refusal;
use crate::x86::run::{Numbering, Run};
use crate::x86::sample::{Delivery, Limits as SampleLimits, stamp_before};
use crate::x86::timer::Timer;
use lanemark_machine::{
    Confirmed, DmaFacts, Facts, Machine, MachineError, Plan, Samples, TimeBase, Transfer, Unsupported, Verb,
};
use lanemark_units::{MemoryType, Ticks};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Most host memory of a plan.
pub(super) const MAPPED: u64 = 64 << 20;
/// Bytes of the card's memory that are written or compared by one call.
const PIECE: u64 = 1 << 20;

/// A card with AMD's XDMA core, through the character devices of its driver.
///
/// - **Plans:** with a range of the card's memory, DMA reads and writes of host memory, by one channel or several, also in both
///   directions at once. With ranges of the user BAR, loads and stores to it, as [`CardMachine`], through the driver's file.
/// - **Checks:** before every sample, the same card must still have the same channels. Another process of Lanemark is refused.
/// - **Times:** as for [`HostMemory`](crate::HostMemory). A transfer is one system call. It includes the driver, which pins the
///   memory and maps it for the card, and its interrupt: an upper bound of the time of the DMA.
///   Those of loads and stores do not include the driver.
/// - **Timeout:** of each sample by the plan; of each call by the driver (its parameters `h2c_timeout` and `c2h_timeout`).
/// - **Confirmed:** of writes, the bytes of the last iteration in host memory, against those that were written to the card before;
///   of reads, the bytes that the card has at the end. Other bytes of host memory must be unchanged.
#[derive(Debug)]
pub struct XdmaMachine {
    facts: Facts,
    cpus: Vec<usize>,
    timer: Timer,
    card: XdmaCard,
    function: Device,
    opened: Opened,
    /// Named ranges of the user BAR.
    user: Option<CardMachine>,
    limits: Limits,
    /// Channels by their numbers: host to card, card to host.
    h2c: Vec<Channel>,
    c2h: Vec<Channel>,
    pages: Option<HostPages>,
    interrupted: Arc<AtomicBool>,
    runs: u64,
}

impl XdmaMachine {
    /// Opens the channels of a card. Runs with DMA overwrite `memory` on the card; loads and stores access the ranges of
    /// `attachment`. Setting the flag ends runs.
    ///
    /// # Errors
    /// [`XdmaError`].
    pub fn open(
        card: &XdmaCard,
        memory: Option<CardMemory>,
        attachment: Attachment,
        is_emulated: bool,
        interrupted: Arc<AtomicBool>,
    ) -> Result<XdmaMachine, XdmaError> {
        let unsupported = |because: String| XdmaError::Unsupported { path: card.path().to_owned(), because };
        let cpu = Cpu::detected();
        if !cpu.has_invariant_tsc && !is_emulated {
            let because = "the time-stamp counter of this processor is not invariant, so nothing can be timed";
            return Err(unsupported(because.to_owned()));
        }
        card.check_access(memory, &attachment)?;
        let cpus = allowed_cpus().map_err(|error| unsupported(format!("no CPU affinity mask can be read: {error}")))?;
        let open = |direction: Direction| {
            (0..card.channels()).map(|number| Channel::open(card, direction, number)).collect::<Result<Vec<_>, _>>()
        };
        let (h2c, c2h) = (open(Direction::H2c)?, open(Direction::C2h)?);
        let function = attachment.device.clone();
        let opened = Opened::new(&function).map_err(XdmaError::Function)?;
        let limits = Limits { memory, channels: card.channels(), mapped_bytes: MAPPED };
        let has_ranges = !attachment.places.is_empty();
        let files: Arc<dyn BarFiles> = Arc::new(UserBar(card.clone()));
        let user = has_ranges.then(|| CardMachine::through(&files, attachment, is_emulated));
        let user = user.transpose().map_err(XdmaError::Function)?;
        let user = user.map(|user| user.interrupted_by(Arc::clone(&interrupted)));
        let facts = facts(card, &cpu.brand, limits, usable_cores(cpus.len()), is_emulated);
        let facts = user.as_ref().map_or_else(|| facts.clone(), |user| with_user(&facts, user.facts()));
        let (card, timer) = (card.clone(), Timer::checked(cpu.tsc_hz));
        Ok(XdmaMachine {
            facts,
            cpus,
            timer,
            card,
            function,
            opened,
            user,
            limits,
            h2c,
            c2h,
            pages: None,
            interrupted,
            runs: 0,
        })
    }

    /// Mappings of the ranges of the user BAR.
    #[must_use]
    pub fn mappings(&self) -> &[Mapping] {
        self.user.as_ref().map_or(&[], CardMachine::mappings)
    }

    /// First address of the card's memory that may be overwritten.
    fn start(&self) -> u64 {
        self.limits.memory.map_or(0, |memory| memory.from)
    }

    fn device_error(&self, what: String) -> MachineError {
        MachineError::Device { machine: self.facts.name.clone(), what }
    }

    /// Fails if the card is gone, or another one has its files.
    fn check(&self) -> Result<(), MachineError> {
        if self.card.is_there() {
            return Ok(());
        }
        Err(self
            .device_error(format!("{}: the card is gone, or its channels have changed; see dmesg", self.facts.name)))
    }

    /// Fails as [`check`](XdmaMachine::check), and if identity or driver of the function have changed. It reads configuration
    /// space, so it is not called between samples.
    fn check_function(&self) -> Result<(), MachineError> {
        self.check()?;
        self.opened.check(&self.function).map_err(|error| {
            let name = &self.facts.name;
            self.device_error(format!("{name}: the card is gone, or is another one: {error}; see dmesg"))
        })
    }

    fn failed(&self, failure: Failure, plan: &Plan, channel: &Channel) -> MachineError {
        let machine = self.facts.name.clone();
        match failure {
            Failure::Call(error) => self.device_error(format!("{}: {error}", channel.path().display())),
            Failure::Late => {
                let waiting_for = "the end of the transfers".to_owned();
                MachineError::Timeout { machine, after: plan.timeout, waiting_for }
            }
            Failure::Interrupted => MachineError::Interrupted { machine },
            Failure::Thread(error) => {
                MachineError::Os { machine, doing: "starting a thread for a channel", source: error.into() }
            }
        }
    }

    /// Moves bytes outside of the samples.
    fn once(
        &self,
        direction: Direction,
        pages: &HostPages,
        at: u64,
        on_card: u64,
        bytes: u64,
    ) -> Result<(), MachineError> {
        let channels = match direction {
            Direction::H2c => &self.h2c,
            Direction::C2h => &self.c2h,
        };
        let Some(channel) = channels.first() else { return Ok(()) };
        let failed = |error: CallError| {
            let failure = || self.device_error(format!("{}: {error}", channel.path().display()));
            self.check().err().unwrap_or_else(failure)
        };
        let done = channel.transfer(Memory::of(pages), at, on_card, bytes, &self.interrupted).map_err(failed);
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(MachineError::Interrupted { machine: self.facts.name.clone() });
        }
        done
    }

    /// Seed of the bytes in host memory before the run, and of those on the card.
    const fn seeds(&self) -> [u64; 2] {
        [2 * self.runs, 2 * self.runs + 1]
    }

    /// Whether bytes of a transfer may still change after this error: then its memory is leaked.
    const fn is_in_doubt(error: &MachineError) -> bool {
        !matches!(error, MachineError::Interrupted { .. })
    }

    /// Runs the streams of a plan, and verifies their bytes.
    fn transfer(&mut self, plan: &Plan, streams: &[Stream], samples: &mut Samples) -> Result<(), MachineError> {
        let window_end = streams.iter().map(|one| end_of(&one.transfer)).max().unwrap_or(0);
        let scratch = window_end.next_multiple_of(PIECE);
        let longest = streams.iter().map(|one| one.transfer.bytes).max().unwrap_or(0).max(PIECE);
        // A transfer has its place in a beat.
        let len = scratch + longest + PIECE;
        let mut pages = match self.pages.take().filter(|pages| pages.len() >= len) {
            Some(pages) => pages,
            None => HostPages::new(len).map_err(|error| MachineError::Os {
                machine: self.facts.name.clone(),
                doing: "allocating memory",
                source: error.into(),
            })?,
        };
        let [on_host, _] = self.seeds();
        fill(&mut pages, window_end, on_host);
        let confirmed = self.measured(plan, streams, &mut pages, scratch, samples);
        let confirmed = confirmed.map(|confirmed| {
            let stores = streams.iter().map(|one| one.transfer).find(|transfer| transfer.verb == Verb::Store);
            let none = streams.first().map(|one| Transfer { count: 0, ..one.transfer });
            (confirmed, stores.or(none).and_then(|one| changed_beside(&pages, plan, &one, window_end, on_host)))
        });
        if confirmed.as_ref().is_err_and(XdmaMachine::is_in_doubt) {
            // The driver may have given up a transfer that its card goes on with.
            std::mem::forget(pages);
        } else {
            self.pages = Some(pages);
        }
        let (confirmed, changed) = confirmed?;
        samples.confirmed = Some(confirmed);
        let Some(changed) = changed else { return Ok(()) };
        Err(self.device_error(format!(
            "{}: the card has changed the byte at offset {changed} of the host memory, which is outside of every transfer",
            self.facts.name
        )))
    }

    fn measured(
        &self,
        plan: &Plan,
        streams: &[Stream],
        pages: &mut HostPages,
        scratch: u64,
        samples: &mut Samples,
    ) -> Result<Confirmed, MachineError> {
        // For DMA writes, the bytes that the card will send; for DMA reads, bytes that they must replace.
        for stream in streams {
            self.fill_card(stream, pages, scratch)?;
        }
        let jobs: Option<Vec<Job<'_>>> = streams
            .iter()
            .enumerate()
            .map(|(nth, stream)| {
                let of = if stream.transfer.verb == Verb::Load { &self.h2c } else { &self.c2h };
                let cpu = self.cpus.get(nth % self.cpus.len().max(1)).copied().unwrap_or_default();
                Some(Job { stream: *stream, channel: of.get(stream.channel as usize)?, cpu })
            })
            .collect();
        let jobs = jobs.filter(|jobs| !jobs.is_empty()).ok_or_else(|| refused().into_error(&self.facts))?;
        let measuring = Run {
            machine: &self.facts.name,
            timer: self.timer,
            plan,
            cpu: jobs[0].cpu,
            company: Company::Device,
            passes_per_check: 1,
            delivery: Delivery::Drained,
            interrupted: &self.interrupted,
            numbering: Numbering::EndingWith(self.runs),
        };
        let crew = Crew::new(&jobs, Memory::of(pages), &self.interrupted);
        thread::scope(|scope| {
            let threads =
                crew.start(scope).map_err(|error| self.failed(Failure::Thread(error), plan, jobs[0].channel))?;
            let take = |limits: &SampleLimits<'_>, _: u64, passes: u64| {
                self.check()?;
                let done = threads.sample(limits, passes);
                // A card that is gone explains every other failure.
                done.map_err(|(job, failure)| {
                    self.check().err().unwrap_or_else(|| self.failed(failure, plan, jobs[job].channel))
                })
            };
            measuring.take(samples, "calling the driver", || {}, take)
        })?;
        let mut confirmed = Confirmed { claimed_bytes: 0, confirmed_bytes: 0 };
        for stream in streams {
            let one = self.compared(plan, stream, pages, scratch)?;
            confirmed.claimed_bytes += one.claimed_bytes;
            confirmed.confirmed_bytes += one.confirmed_bytes;
        }
        Ok(confirmed)
    }

    /// Fills the places of a stream on the card.
    fn fill_card(&self, stream: &Stream, pages: &mut HostPages, scratch: u64) -> Result<(), MachineError> {
        let [_, on_card] = self.seeds();
        let end = stream.slots.start + stream.slots.len();
        for start in (stream.slots.start..end).step_by(PIECE as usize) {
            let len = PIECE.min(end - start);
            pages.write(scratch, &filled(start - self.start(), len, on_card));
            self.once(Direction::H2c, pages, scratch, start, len)?;
        }
        Ok(())
    }

    /// Compares the bytes of the last iteration at their destination.
    fn compared(
        &self,
        plan: &Plan,
        stream: &Stream,
        pages: &HostPages,
        scratch: u64,
    ) -> Result<Confirmed, MachineError> {
        let Transfer { bytes, count, verb, .. } = stream.transfer;
        let [on_host, on_card] = self.seeds();
        let (all, last) = (stream.share(plan.passes * count), stream.share((plan.passes - 1) * count));
        // By destination: a later transfer overwrites an earlier one. Without a transfer in the last iteration, its last one.
        let numbers = last.min(all.saturating_sub(1))..all;
        let places = numbers.map(|nth| stream.places(stream.number(nth)));
        let by_destination: BTreeMap<u64, (u64, u64)> = places
            .map(|(at, address)| (if verb == Verb::Load { stream.slot(at) } else { at }, (at, address)))
            .collect();
        let mut found = vec![0; bytes as usize];
        let mut confirmed_bytes = 0;
        for (at, address) in by_destination.values() {
            let (from, meant) = match verb {
                Verb::Load => {
                    let from = scratch + at % super::card_memory::BEAT;
                    self.once(Direction::C2h, pages, from, *address, bytes)?;
                    (from, filled(*at, bytes, on_host))
                }
                Verb::Store => (*at, filled(address - self.start(), bytes, on_card)),
            };
            pages.read(from, &mut found);
            confirmed_bytes += pattern::equal_bytes(&found, &meant);
        }
        Ok(Confirmed { claimed_bytes: bytes * by_destination.len() as u64, confirmed_bytes })
    }
}

impl Machine for XdmaMachine {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn supports(&self, plan: &Plan) -> Result<(), Unsupported> {
        match (plan::of(plan, &self.limits), &self.user) {
            (None, Some(user)) => user.supports(plan),
            (asked, _) => asked
                .unwrap_or_else(|| Err(refused()))
                .map(drop)
                .map_err(|refusal| refusal.into_unsupported(&self.facts)),
        }
    }

    fn least_sample(&self, plan: &Plan) -> Ticks {
        self.user.as_ref().map_or(Ticks::ZERO, |user| user.least_sample(plan))
    }

    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        let asked = plan::of(plan, &self.limits);
        if asked.is_none() && self.user.is_some() {
            self.check_function()?;
            return self.user.as_mut().map_or(Ok(()), |user| user.run(plan, samples));
        }
        let asked = asked.unwrap_or_else(|| Err(refused())).map_err(|refusal| refusal.into_error(&self.facts))?;
        samples.clear();
        let begun = stamp_before();
        self.runs += 1;
        self.check_function()?;
        self.transfer(plan, &asked, samples)?;
        samples.spent = self.timer.ticks(stamp_before().saturating_sub(begun));
        Ok(())
    }
}

/// The refusal of a plan without DMA.
pub(super) fn refused() -> Refusal {
    Refusal::new(
        "a plan without DMA",
        "the channels only make DMA (dma_read_bandwidth, dma_write_bandwidth, dma_read_write_mix, dma_read_latency); for loads and \
         stores to the user BAR, name a range of it with --bar",
    )
}

/// Offset behind the host memory of a transfer.
const fn end_of(transfer: &Transfer) -> u64 {
    let len = if transfer.window.len > transfer.bytes { transfer.window.len } else { transfer.bytes };
    transfer.window.offset + len
}

/// Adds the ranges of the user BAR, whose facts are `user`.
pub(super) fn with_user(facts: &Facts, user: &Facts) -> Facts {
    let Facts { name, summary, time_base, cores, dma, .. } = facts;
    let (name, summary) = (name.clone(), format!("{summary}; loads and stores to its user BAR"));
    Facts { name, summary, time_base: *time_base, cores: *cores, dma: *dma, ..user.clone() }
}

pub(super) fn facts(card: &XdmaCard, processor: &str, limits: Limits, cores: u32, is_emulated: bool) -> Facts {
    // The driver maps the memory of each call anew, so a window has no pages in an IOTLB.
    let dma = DmaFacts { page_bytes: None, channels: limits.channels, ..DmaFacts::of_register_engine(MAPPED, 0) };
    let ends = match card.polls() {
        Some(true) => "; the driver polls for the end of a transfer",
        Some(false) => "; the driver waits for the interrupt of a transfer",
        None => "",
    };
    Facts {
        name: format!("xdma:{}", card.path().display()),
        summary: format!("XDMA card {}, through its driver{ends}; {processor}", card.summary()),
        time_base: if is_emulated { TimeBase::Emulated } else { TimeBase::Real },
        cores,
        regions: vec![],
        memory_types: vec![MemoryType::Wb],
        stores: vec![],
        loads: vec![],
        memcpy: String::new(),
        dma: Some(dma),
        driver_width: None,
        tables: vec![],
        disciplines: vec![],
        line_sources: vec![],
        runtime: None,
    }
}
