//! Launches and copies through a runtime: the sum of all steps that do not overlap.
//!
//! | step | time |
//! | --- | --- |
//! | software | costs of runtime and driver, at the clock of the core |
//! | doorbell | one core round trip for the core; half of it, the links downstream, the card's ingress and one beat for the card |
//! | kernels | each starts when its doorbell has arrived and the previous one has ended |
//! | end of a kernel | the card's egress, the links upstream, the interrupt |
//! | end of a part of a copy | as in `dma_call.rs`, for a call whose descriptors are fetched |
//! | wake-up | leaving an idle state after a sufficiently long wait; handler and thread; nothing without a wait |
//!
//! A staged copy to the device overlaps with the following work: the core waits for it there.

use crate::bound::Bound;
use crate::bounds::Largest;
use crate::dma_call::{self, Rung};
use crate::path::{Hop, Path};
use crate::prediction::Prediction;
use lanemark_machine::{
    Allocation, Arguments, Completion, Descriptors, DmaCall, HostWait, Launch, Partner, Pattern, RuntimeCopy, Share,
    Transfer, Verb, Window,
};
use lanemark_platform::{Driver, Platform, RegionKind, Runtime};
use lanemark_units::Ticks;

/// Index of the card behind the queue.
const CARD: u32 = 0;
/// Bytes of a line that a core copies, of a register, and of an interrupt message.
const LINE: u64 = 64;
const REGISTER: u32 = 8;
const MESSAGE: u32 = 4;
/// Number of parts and iterations that are summed one by one; from the second on, all but the last are alike.
const TAKEN_APART: u64 = 4;

/// Conditions of validity.
pub(crate) const HOLDS_FOR: &str = "one program with one queue, no other traffic on its links";

/// Costs for the core.
pub(crate) struct Core<'a> {
    platform: &'a Platform,
    pub(crate) runtime: &'a Runtime,
    pub(crate) driver: &'a Driver,
    pub(crate) round_trip_ns: f64,
}

impl<'a> Core<'a> {
    pub(crate) fn of(platform: &'a Platform) -> Option<Core<'a>> {
        let (runtime, driver) = (platform.runtime.as_ref()?, platform.driver.as_ref()?);
        let half = Ticks(platform.root_complex.core_round_trip_ns.value.0 / 2);
        Some(Core { platform, runtime, driver, round_trip_ns: 2.0 * half.as_ns() })
    }

    /// Time of software at the clock of the core.
    pub(crate) fn ns(&self, span: Ticks) -> f64 {
        self.runtime.at_its_clock(self.platform, span).as_ns()
    }

    /// Time at which the core continues if it waits from `at` for a notification at `known`.
    pub(crate) fn woken(&self, at: f64, known: f64) -> f64 {
        if known <= at {
            return at;
        }
        let is_idle = known - at > self.runtime.idle_entry_ns.value.as_ns();
        let idle = if is_idle { self.runtime.idle_exit_ns.value.as_ns() } else { 0.0 };
        known + idle + self.ns(self.driver.handler_ns.value + self.driver.wake_ns.value)
    }
}

/// Predicts `passes` iterations of `launch`.
pub(crate) fn launches(platform: &Platform, launch: &Launch, passes: u64) -> Option<Prediction> {
    let (kernels, core) = (f64::from(launch.kernels), Core::of(platform)?);
    let Arguments { count, allocation } = launch.arguments;
    let is_argument = count == 0 || matches!(allocation, Allocation::Buffer | Allocation::Device);
    let is_few = (1..=Launch::MOST_KERNELS).contains(&launch.kernels) && count <= Arguments::MOST;
    if !launch.by.is_calls() || !is_argument || !is_few || passes == 0 {
        return None;
    }
    let runtime = core.runtime;
    let buffers = if allocation == Allocation::Buffer { count } else { 0 };
    let submit = core.ns(runtime.submit_ns.value) + core.ns(runtime.argument_ns.value) * f64::from(buffers);
    let has_event = launch.wait == HostWait::Event;
    let event = if has_event { core.ns(runtime.event_ns.value) } else { 0.0 };
    let finish = if has_event { 0.0 } else { core.ns(runtime.finish_ns.value) };
    let (down, up) = (Path::down(platform, CARD)?, Path::up(platform, CARD)?);
    let registers = platform.regions.iter().find(|region| region.kind.value == RegionKind::Registers)?;
    let bell = platform.kernel_doorbell(CARD)?;
    let header = |address: u64| if address >= 1 << 32 { 4 } else { 3 };
    let beats = registers.beat_ns.value * u64::from(REGISTER.div_ceil(registers.beat_bytes.value));
    let there = down.unloaded(header(bell.doorbell), REGISTER) + platform.endpoint.ingress_ns.value + beats;
    let there = core.round_trip_ns / 2.0 + there.as_ns();
    let kernel = (runtime.kernel_start_ns.value + runtime.kernel_end_ns.value).as_ns();
    let back = platform.endpoint.egress_ns.value + up.unloaded(header(bell.message), MESSAGE);
    let seen = platform.memory.as_ref()?.write_ns.value;
    let notice = back + core.driver.interrupt_ns.value.max(seen);
    // Time at which the card receives each doorbell, and at which the last kernel that starts then ends.
    let pace = submit + core.round_trip_ns;
    let rung = |nth: f64| nth * pace + submit + if nth + 1.0 == kernels { event } else { 0.0 };
    let over = |nth: f64| rung(nth) + there + (kernels - nth) * kernel;
    let last = rung(kernels - 1.0);
    let over = [0.0, (kernels - 2.0).max(0.0), kernels - 1.0].map(over).into_iter().fold(0.0, f64::max);
    let awake = core.woken(last + core.round_trip_ns, over + notice.as_ns());
    let ns = awake + core.ns(runtime.return_ns.value) + finish;
    // The serial resource may take longer than the interval between kernels.
    let hop = |hop: &Hop, address, bytes| hop.pace(header(address), bytes);
    let downstream = down.hops.iter().map(|one| hop(one, bell.doorbell, REGISTER)).max()?.max(beats);
    let upstream = up.hops.iter().map(|one| hop(one, bell.message, MESSAGE)).max()?;
    let memory = platform.memory.as_ref()?.write_tlp_ns.value;
    let upstream = upstream.max(platform.root_complex.request_ns.value).max(memory);
    let is_alone = launch.kernels == 1 && passes == 1;
    let is_clear = is_alone || downstream.as_ns() < pace.min(ns) && upstream.as_ns() < kernel.max(pace).min(ns);
    let software = kernels * submit + event + finish + core.ns(runtime.return_ns.value);
    let bound = Largest::of([
        (Bound::Runtime, software),
        (Bound::Kernels, kernels * kernel),
        (Bound::StrongOrdering, kernels * core.round_trip_ns),
        (Bound::Interrupt, notice.as_ns()),
    ]);
    let (ns, lead) = (ns * passes as f64, if is_clear { f64::INFINITY } else { 1.0 });
    Some(Prediction { issue_ns: ns, delivered_ns: ns, bound: bound.bound, lead, holds_for: HOLDS_FOR })
}

/// Parts of a copy.
struct Copying<'a> {
    core: Core<'a>,
    is_store: bool,
    is_staged: bool,
    /// Whether the program continues before the copy is complete.
    is_early: bool,
    parts: u64,
    /// Times of all parts but the last, and of the last.
    part: Part,
    last: Part,
    /// Software before the first part and after the last.
    before_ns: f64,
    leave_ns: f64,
    returns_ns: f64,
}

/// One part of a copy.
struct Part {
    copy_ns: f64,
    build_ns: f64,
    rung: Rung,
}

/// State of a core during copies, and the time at which its last request is known to be complete.
#[derive(Clone, Copy)]
struct At {
    ns: f64,
    known_ns: Option<f64>,
}

/// Predicts `passes` iterations of `asked`.
pub(crate) fn copies(platform: &Platform, asked: &RuntimeCopy, passes: u64) -> Option<Prediction> {
    if !(1..=RuntimeCopy::MOST_BYTES).contains(&asked.bytes) || passes == 0 {
        return None;
    }
    let copying = Copying::of(platform, asked)?;
    let mut at = At { ns: 0.0, known_ns: None };
    let mut pass_ns = 0.0;
    for _ in 0..passes.min(TAKEN_APART) {
        let next = copying.pass(at);
        (pass_ns, at) = (next.ns - at.ns, next);
    }
    let more_ns = passes.saturating_sub(TAKEN_APART) as f64 * pass_ns;
    let core = &copying.core;
    let over_ns = match at.known_ns {
        Some(known_ns) if copying.is_early => core.woken(at.ns, known_ns) + copying.returns_ns,
        _ => at.ns,
    };
    let finish = if asked.wait == HostWait::Finish { core.ns(core.runtime.finish_ns.value) } else { 0.0 };
    let (issue_ns, delivered_ns) = (at.ns + more_ns, over_ns + finish + more_ns);
    let software = copying.before_ns + copying.leave_ns + copying.returns_ns + finish;
    let parts = copying.parts as f64;
    let terms = [
        (Bound::Runtime, software + parts * copying.part.copy_ns),
        (copying.part.rung.known.bound, parts * copying.part.rung.known.ns),
    ];
    let bound = Largest::of(terms).bound;
    let all = [&copying.part, &copying.last];
    let is_clear = all.iter().all(|part| part.rung.period_ns < part.rung.known.ns);
    let lead = all.iter().map(|part| part.rung.known.lead()).fold(f64::INFINITY, f64::min);
    let lead = if is_clear { lead } else { 1.0 };
    Some(Prediction { issue_ns, delivered_ns, bound, lead, holds_for: HOLDS_FOR })
}

impl<'a> Copying<'a> {
    fn of(platform: &'a Platform, asked: &RuntimeCopy) -> Option<Copying<'a>> {
        let core = Core::of(platform)?;
        let (runtime, driver, bytes) = (core.runtime, core.driver, asked.bytes);
        let offset = if asked.allocation.is_in_place() { 0 } else { runtime.buffer_offset_bytes.value };
        let is_own = matches!(asked.allocation, Allocation::Buffer | Allocation::Device);
        let is_pinned = is_own && runtime.is_in_place(bytes);
        let is_staged = asked.allocation == Allocation::Mapped || is_own && !is_pinned;
        let longest = if is_own && is_staged { bytes.min(runtime.chunk_bytes.value) } else { bytes };
        let parts = bytes.div_ceil(longest);
        let place = if is_staged { (offset + bytes).next_multiple_of(Runtime::PAGE_BYTES) } else { offset };
        let kept = if is_pinned { 0 } else { Runtime::pages(place % Runtime::PAGE_BYTES, longest) };
        let is_room = place.saturating_add(longest) <= platform.bytes_for_plans();
        if kept * Runtime::PAGE_BYTES > runtime.pinned_bytes.value || !is_room {
            return None;
        }
        let part = |bytes| Part::of(&core, asked.verb, place, bytes, is_staged);
        let pages = if is_pinned { Runtime::pages(offset, bytes) } else { 0 };
        let (copy, calls) = match asked.allocation {
            Allocation::Buffer => (runtime.buffer_copy_ns.value, 1.0),
            Allocation::Mapped => (runtime.buffer_copy_ns.value, 2.0),
            Allocation::Device | Allocation::Host | Allocation::Registered | Allocation::Combining => {
                (runtime.usm_copy_ns.value, 1.0)
            }
        };
        let event = if asked.wait == HostWait::Event { core.ns(runtime.event_ns.value) } else { 0.0 };
        let lines = if asked.allocation == Allocation::Buffer { bytes.div_ceil(LINE) } else { 0 };
        let copy = core.ns(copy) + core.ns(runtime.buffer_line_ns.value) * lines as f64;
        let library = core.ns(runtime.submit_ns.value) * calls + copy + event;
        let half = core.ns(driver.call_ns.value) / 2.0;
        Some(Copying {
            is_store: asked.verb == Verb::Store,
            is_staged,
            is_early: is_staged && asked.verb == Verb::Store && asked.wait == HostWait::Finish,
            parts,
            part: part(longest)?,
            last: part(bytes - longest * (parts - 1))?,
            before_ns: library + half + core.ns(driver.pin_page_ns.value) * pages as f64,
            leave_ns: half + core.ns(driver.unpin_page_ns.value) * pages as f64,
            returns_ns: core.ns(runtime.return_ns.value),
            core,
        })
    }

    /// Time until the program continues, from `at`.
    fn pass(&self, mut at: At) -> At {
        at.ns += self.before_ns;
        let (mut part_ns, firsts) = (0.0, (self.parts - 1).min(TAKEN_APART));
        for _ in 0..firsts {
            let next = self.through(at, &self.part);
            (part_ns, at) = (next.ns - at.ns, next);
        }
        let more_ns = (self.parts - 1 - firsts) as f64 * part_ns;
        at = At { ns: at.ns + more_ns, known_ns: at.known_ns.map(|known_ns| known_ns + more_ns) };
        at = self.through(at, &self.last);
        if let Some(known_ns) = at.known_ns.filter(|_| !self.is_early) {
            at = At { ns: self.core.woken(at.ns, known_ns), known_ns: None };
        }
        at.ns += self.leave_ns + if self.is_early { 0.0 } else { self.returns_ns };
        at
    }

    /// One part of the copy.
    fn through(&self, at: At, part: &Part) -> At {
        let wait = |ns, known_ns: Option<f64>| known_ns.map_or(ns, |known_ns| self.core.woken(ns, known_ns));
        let brought = wait(at.ns, at.known_ns) + if self.is_store { part.copy_ns } else { 0.0 };
        let bell = brought + part.build_ns;
        let (goes_on, known_ns) = (bell + self.core.round_trip_ns, bell + part.rung.known.ns);
        if self.is_staged && self.is_store {
            return At { ns: goes_on, known_ns: Some(known_ns) };
        }
        let copy_ns = if self.is_store { 0.0 } else { part.copy_ns };
        At { ns: self.core.woken(goes_on, known_ns) + copy_ns, known_ns: None }
    }
}

impl Part {
    fn of(core: &Core<'_>, verb: Verb, place: u64, bytes: u64, is_staged: bool) -> Option<Part> {
        // The card reads data that a program stores.
        let of_card = if verb == Verb::Store { Verb::Load } else { Verb::Store };
        let window = Window { offset: place, len: bytes, pattern: Pattern::Sequential };
        let (partner, outstanding) = (Partner::Host, None);
        let transfer = Transfer { card: CARD, verb: of_card, partner, bytes, count: 1, window, outstanding };
        let (descriptors, completion) = (Descriptors::Fetched, Completion::Interrupt);
        let call = DmaCall { transfer, channel: 0, share: Share::List, descriptors, completion };
        let block = u64::from(core.platform.dma.as_ref()?.descriptor_bytes.value);
        let start = core.platform.memory.as_ref()?.address_bytes.value + place;
        let blocks = (start + bytes - 1) / block - start / block + 1;
        let lines = if is_staged { bytes.div_ceil(LINE) } else { 0 };
        Some(Part {
            copy_ns: core.ns(core.runtime.copy_line_ns.value) * lines as f64,
            build_ns: core.ns(core.driver.build_descriptor_ns.value) * blocks as f64,
            rung: dma_call::rung(core.platform, &call)?,
        })
    }
}
