//! Driver calls for DMA transfers: the sum of all steps, from call to return.
//!
//! | step | time |
//! | --- | --- |
//! | enter, pin, build | times of the operating system: per call, page and descriptor |
//! | write descriptors | UC: one core round trip per store; WC: a copy that drains, as in `store.rs` |
//! | doorbell | half a core round trip, the links downstream, the card's ingress, one beat; after the list on the slowest of them |
//! | transfer | as in `transfer.rs`, from there until the core is notified of completion |
//! | completion flag | its write after the last one, and a load of it |
//! | status register | loads in sequence, until the first that finds completion |
//! | interrupt | its message after the last write, interrupt delivery, handler and thread |
//! | unpin, return | times of the operating system |
//!
//! All steps but the transfer are exact on idle links; the lead is therefore that of the transfer.
//!
//! Back-to-back calls take at least the sum of the times of isolated calls. They also take at least as long as any
//! serial resource needs for all their requests:
//!
//! | serial resource | from the last request of a call to that of the next |
//! | --- | --- |
//! | root complex | its time per descriptor read, data request and notification; for requests that wait for a completion, the longer of both |
//! | reads at memory | its time per descriptor or data read |
//! | writes at memory | its time per data write, and the notification |
//!
//! The path of the first request of the first call is added before, and that of the notification of the last call
//! after. Doorbell stores and status loads do not pass the serial part of the root complex. Shortage of credits and
//! replay-buffer entries affects only the same call: the next call finds them free, because its doorbell takes longer
//! than their release.
//!
//! The prediction has no lead (a ratio of 1) if a call fetches several descriptors, if the doorbell waits for credits
//! after the list, or if status loads share a replay buffer with the transfer.
//!
//! Several threads ([`threads`]), each on a channel of one card, take at least as long as the slowest thread alone.
//! They also take at least as long as the first thread needs to ring its doorbell, all threads need of the shared
//! resources of the channels, and the last thread needs to return.

use crate::bound::Bound;
use crate::bounds::Largest;
use crate::costs::Costs;
use crate::path::{Hop, Path};
use crate::prediction::Prediction;
use crate::store::{self, End};
use crate::transfer::{self, Asked, Notice, Occupied, Packets, Shared};
use lanemark_machine::{Access, Completion, Descriptors, DmaCall, Share, Span, Stream, Verb, Width};
use lanemark_platform::{Driver, Mailbox, Platform, Region};
use lanemark_units::{BarOffset, MemoryType, Ticks};

/// Number of calls that are computed one by one; further calls are assumed to be like the first ones.
const MOST_CALLS: u64 = 64;

/// Bytes of a pinned page, and of a register.
const PAGE: u64 = 4096;
const REGISTER: u32 = 8;

/// Predicts `passes` iterations of `call`.
pub(crate) fn predict(platform: &Platform, call: &DmaCall, passes: u64) -> Option<Prediction> {
    let all = call.transfer.count.checked_mul(passes).filter(|all| *all > 0)?;
    let taken_apart = all.min(MOST_CALLS);
    let asking = Asking::of(platform, call)?;
    let first = asking.call(0)?;
    let (mut sum, mut shared, mut is_open) = (first.alone, first.shared, first.is_open);
    for nth in 1..taken_apart {
        let next = asking.call(nth)?;
        sum = sum.then(&next.alone);
        is_open |= next.is_open;
        for (shared, next) in shared.iter_mut().zip(next.shared) {
            *shared = shared.then(&next);
        }
    }
    // Each call alone, or the serial resources without a pause.
    let scale = all as f64 / taken_apart as f64;
    let sum = sum.times(scale, 0.0);
    let (before_ns, behind_ns) = asking.around()?;
    let one_by_one = shared.iter().filter(|shared| all > 1 && shared.period_ns > 0.0);
    let sum = sum.or_again(Largest::of(one_by_one.map(|shared| {
        let Shared { bound, first_ns, period_ns, rest_ns } = *shared;
        (bound, before_ns + first_ns + scale * period_ns + rest_ns + behind_ns)
    })));
    let (lead, holds_for) = if asking.polls_wait_for_places() {
        (1.0, "one core and one card, status loads share its replay buffers; a lower bound, up to one load")
    } else {
        (if is_open { 1.0 } else { sum.lead() }, "one core and one card, no other traffic on its links")
    };
    Some(Prediction { issue_ns: sum.ns, delivered_ns: sum.ns, bound: sum.bound, lead, holds_for })
}

/// Predicts several threads that start together, each with a call of its own on a channel of one card, until the last
/// is notified; `None` for calls of several cards.
pub(crate) fn threads(platform: &Platform, calls: &[DmaCall], passes: u64) -> Option<Prediction> {
    let first = calls.first()?;
    let is_alike =
        |call: &DmaCall| (call.transfer.card, call.transfer.verb) == (first.transfer.card, first.transfer.verb);
    if !calls.iter().all(is_alike) {
        return None;
    }
    let mut alone: Option<Prediction> = None;
    let (mut before_ns, mut behind_ns) = (f64::INFINITY, f64::INFINITY);
    let mut all: Option<[Occupied; 8]> = None;
    for call in calls {
        let one = predict(platform, call, passes)?;
        alone = Some(alone.filter(|most| most.delivered_ns >= one.delivered_ns).unwrap_or(one));
        let asking = Asking::of(platform, call)?;
        let ((before, behind), notice) = (asking.around()?, asking.notice());
        let known = notice.map_or(0.0, |notice| notice.known.as_ns());
        (before_ns, behind_ns) = (before_ns.min(before), behind_ns.min(known + behind));
        let (times, notices) = (call.transfer.count.checked_mul(passes)?, u64::from(notice.is_some()));
        let shared = transfer::shared(platform, &call.transfer, times, asking.least_fetches()?, notices)?;
        all = Some(all.map_or(shared, |all| {
            std::array::from_fn(|nth| Occupied { ns: all[nth].ns + shared[nth].ns, ..shared[nth] })
        }));
    }
    let (alone, all) = (alone?, all?);
    let is_fetch = |of: &&Occupied| first.transfer.verb == Verb::Store && of.bound == Bound::Memory;
    let fetches_ns = all.iter().find(is_fetch).map_or(0.0, |reads| reads.ns);
    let shared = all.map(|Occupied { bound, ns, last_ns }| (bound, before_ns + ns - last_ns + behind_ns));
    let is_credits = |of: &&Occupied| matches!(of.bound, Bound::Credits | Bound::Replay);
    let credits_ns = all.iter().filter(is_credits).map(|of| of.ns).sum::<f64>();
    let shared = Largest::of(shared);
    // No term models requests of one channel that wait for completions of another or for credits. Nor does one model
    // threads that share a link, finish together and then enter the kernel together.
    let doorbells_ns = Asking::of(platform, first)?.wait_of_doorbells(calls.len() as u64)?;
    let is_clear = first.transfer.verb == Verb::Store
        && matches!(shared.bound, Bound::Link | Bound::Engine | Bound::Memory)
        && calls.iter().all(|call| call.transfer.count * passes == 1)
        && shared.ns > alone.delivered_ns
        && shared.ns > 2.0 * (credits_ns + doorbells_ns + fetches_ns);
    let lead = if is_clear { shared.lead().min(shared.ns / alone.delivered_ns) } else { 1.0 };
    let alone = Largest::of([(alone.bound, alone.delivered_ns)]);
    let largest = if shared.ns > alone.ns { shared } else { alone };
    let issue_ns = predict(platform, first, passes)?.issue_ns;
    let holds_for = "threads of one card with a channel each, no other traffic on its links; a lower bound";
    Some(Prediction { issue_ns, delivered_ns: largest.ns, bound: largest.bound, lead, holds_for })
}

/// Times of a card from the doorbell store until the core is notified by an interrupt.
pub(crate) struct Rung {
    pub(crate) known: Largest,
    /// Minimum time between two such calls, given by the serial resources.
    pub(crate) period_ns: f64,
    /// From the doorbell store until the card has accepted it, and until the last byte has arrived.
    pub(crate) bell_ns: f64,
    pub(crate) moved_ns: f64,
}

/// Predicts the only transfer of `call`, whose descriptors are fetched.
pub(crate) fn rung(platform: &Platform, call: &DmaCall) -> Option<Rung> {
    let asking = Asking::of(platform, call)?;
    let entry = (asking.mailbox.ring, platform.dma.as_ref()?.descriptor_entry_bytes.value);
    rung_with(platform, &asking, Some(entry))
}

/// Predicts the only transfer of `call`, which a kernel makes without descriptors.
pub(crate) fn rung_by_kernel(platform: &Platform, call: &DmaCall) -> Option<Rung> {
    rung_with(platform, &Asking::of(platform, call)?, None)
}

fn rung_with(platform: &Platform, asking: &Asking<'_>, entry: Option<(u64, u32)>) -> Option<Rung> {
    let asked = transfer::asked(platform, &asking.call.transfer, 0, entry, asking.notice())?;
    let nothing = List { bound: Bound::StrongOrdering, ns: 0.0, writes: 0, bytes: 0 };
    let bell_ns = asking.doorbell(&nothing)?;
    let (ns, moved_ns) = (bell_ns + asked.known.ns, bell_ns + asked.moved.ns);
    let lead = if asked.is_open { 1.0 } else { asked.known.lead() };
    let period_ns = asked.shared.iter().map(|shared| shared.period_ns).fold(0.0, f64::max);
    Some(Rung { known: Largest::leading(asked.known.bound, ns, lead), period_ns, bell_ns, moved_ns })
}

/// Descriptors that the core writes to the card.
struct List {
    bound: Bound,
    /// Time until the doorbell can be rung.
    ns: f64,
    /// Number of writes on the links, and bytes of each.
    writes: u64,
    bytes: u32,
}

/// Bytes of a line.
const LINE: u64 = 64;

/// One call.
struct Called {
    /// From its first instruction to its last, without delays by other calls.
    alone: Largest,
    /// See [`Asked`].
    shared: [Shared; 3],
    /// See [`Asked`].
    is_open: bool,
}

struct Asking<'a> {
    platform: &'a Platform,
    call: &'a DmaCall,
    driver: &'a Driver,
    mailbox: Mailbox,
    /// The register region, which contains the doorbell and the list.
    registers: &'a Region,
    up: Path,
    down: Path,
}

impl<'a> Asking<'a> {
    fn of(platform: &'a Platform, call: &'a DmaCall) -> Option<Asking<'a>> {
        let card = call.transfer.card;
        let mailbox = platform.mailbox(card, call.channel)?;
        let kind = lanemark_platform::RegionKind::Registers;
        let registers = platform.regions.iter().find(|region| region.kind.value == kind)?;
        let (up, down) = (Path::up(platform, card)?, Path::down(platform, card)?);
        Some(Asking { platform, call, driver: platform.driver.as_ref()?, mailbox, registers, up, down })
    }

    /// Minimum time before the first transfer and after the last one.
    fn around(&self) -> Option<(f64, f64)> {
        let (transfer, driver) = (&self.call.transfer, self.driver);
        let dma = self.platform.dma.as_ref()?;
        let start = self.platform.memory.as_ref()?.address_bytes.value + transfer.window.place(0, transfer.bytes);
        let blocks = |block: u64| (start + transfer.bytes - 1) / block - start / block + 1;
        let (pages, descriptors) = (blocks(PAGE), blocks(u64::from(dma.descriptor_bytes.value)));
        let (mut before, mut behind) = (dma.start_ns.value, Ticks::ZERO);
        if self.call.share == Share::Call {
            let half = Ticks(driver.call_ns.value.0 / 2);
            before += half + driver.pin_page_ns.value * pages;
            // The last transfer may touch one page less than the first.
            behind += half + driver.unpin_page_ns.value * transfer.bytes.div_ceil(PAGE);
        }
        if self.call.share != Share::Doorbell {
            before += driver.build_descriptor_ns.value * descriptors;
        }
        let list = self.list(descriptors)?;
        behind += match self.call.completion {
            Completion::Flag => self.platform.core.cached_load_ns.value,
            Completion::Interrupt => driver.handler_ns.value + driver.wake_ns.value,
            // At least the return path of a load.
            Completion::Register => Ticks(self.platform.root_complex.core_round_trip_ns.value.0 / 2),
        };
        Some((before.as_ns() + self.doorbell(&list)?, behind.as_ns()))
    }

    /// The notification of completion, if it is a write.
    fn notice(&self) -> Option<Notice> {
        let write = self.platform.memory.as_ref()?.write_ns.value;
        let (address, known) = match self.call.completion {
            Completion::Flag => (self.mailbox.flag, write),
            Completion::Interrupt => (self.mailbox.message, write.max(self.driver.interrupt_ns.value)),
            Completion::Register => return None,
        };
        Some(Notice { address, known })
    }

    /// Minimum number of descriptors fetched for a call.
    fn least_fetches(&self) -> Option<u64> {
        let block = u64::from(self.platform.dma.as_ref()?.descriptor_bytes.value);
        let is_fetched = self.call.descriptors == Descriptors::Fetched;
        Some(if is_fetched { self.call.transfer.bytes.div_ceil(block) } else { 0 })
    }

    /// Whether completions of status loads find the replay buffers on their path filled by requests, and vice versa.
    fn polls_wait_for_places(&self) -> bool {
        self.call.completion == Completion::Register && self.up.hops.iter().any(|hop| hop.replay_tlps < u32::MAX)
    }

    /// Time of call number `nth`.
    fn call(&self, nth: u64) -> Option<Called> {
        let transfer = &self.call.transfer;
        let start = self.platform.memory.as_ref()?.address_bytes.value + transfer.window.place(nth, transfer.bytes);
        let blocks = |block: u64| (start + transfer.bytes - 1) / block - start / block + 1;
        let dma = self.platform.dma.as_ref()?;
        let (pages, descriptors) = (blocks(PAGE), blocks(u64::from(dma.descriptor_bytes.value)));
        let driver = self.driver;
        let mut kernel = Ticks::ZERO;
        if self.call.share == Share::Call {
            kernel += driver.call_ns.value + (driver.pin_page_ns.value + driver.unpin_page_ns.value) * pages;
        }
        if self.call.share != Share::Doorbell {
            kernel += driver.build_descriptor_ns.value * descriptors;
        }
        let list = self.list(descriptors)?;
        let is_fetched = self.call.descriptors == Descriptors::Fetched;
        let entry = is_fetched.then_some((self.mailbox.ring, dma.descriptor_entry_bytes.value));
        let asked = transfer::asked(self.platform, transfer, nth, entry, self.notice())?;
        // Counted from the issue of the doorbell store by the core.
        let rung = self.doorbell(&list)? - list.ns;
        let round_trip = self.platform.root_complex.core_round_trip_ns.value.as_ns();
        let cached_load = self.platform.core.cached_load_ns.value.as_ns();
        let (notice_ns, bound) = match self.call.completion {
            Completion::Flag => (cached_load, asked.known.bound),
            Completion::Interrupt => {
                kernel += driver.handler_ns.value + driver.wake_ns.value;
                let interrupt = driver.interrupt_ns.value.as_ns();
                let is_most = 2.0 * interrupt > asked.known.ns;
                (0.0, if is_most { Bound::Interrupt } else { asked.known.bound })
            }
            Completion::Register => (0.0, Bound::ReadRoundTrip),
        };
        // The core continues when its doorbell store is acknowledged.
        let known = match self.call.completion {
            Completion::Register => self.polled(&asked, rung, round_trip),
            _ => (rung + asked.known.ns).max(round_trip),
        };
        let parts = [(Bound::Driver, kernel.as_ns()), (list.bound, list.ns), (bound, known + notice_ns)];
        let longest = Largest::of(parts).bound;
        let ns = parts.iter().map(|part| part.1).sum();
        let alone = Largest::leading(longest, ns, asked.known.lead());
        // If the doorbell waits behind the list, no term models the other effects.
        Some(Called { alone, shared: asked.shared, is_open: asked.is_open || self.wait_behind(&list, 1) > 0.0 })
    }

    /// Descriptor writes to the card, if the core writes descriptors.
    fn list(&self, descriptors: u64) -> Option<List> {
        let entry_bytes = u64::from(self.platform.dma.as_ref()?.descriptor_entry_bytes.value);
        let (Share::Call | Share::List, Descriptors::Written(memory_type)) = (self.call.share, self.call.descriptors)
        else {
            return Some(List { bound: Bound::StrongOrdering, ns: 0.0, writes: 0, bytes: 0 });
        };
        let bytes = descriptors * entry_bytes;
        let width = u64::from(self.driver.copy_bytes.value).min(entry_bytes);
        let stores = bytes / width;
        let round_trip = self.platform.root_complex.core_round_trip_ns.value.as_ns();
        if memory_type != MemoryType::Wc {
            let ns = stores as f64 * round_trip;
            return Some(List { bound: Bound::StrongOrdering, ns, writes: stores, bytes: width as u32 });
        }
        let costs = Costs::new(self.platform, self.registers)?;
        let width = Width::ALL.into_iter().find(|known| known.bytes() == width)?;
        let offset = self.registers.offset_bytes.value + (self.mailbox.list - self.mailbox.doorbell);
        let at = BarOffset { bar: u8::try_from(self.registers.bar.value).ok()?, offset };
        let stream = Stream::over(Verb::Store, Access::Plain(width), Span { at, len: bytes, memory_type });
        let end = End { ns: 0.0, ahead_ns: 0.0, drains: true, bound: Bound::Buffers };
        let ns = store::predict(&costs, &stream, costs.numbers.cycle, Some(end), 1).issue_ns;
        Some(List { bound: Bound::Buffers, ns, writes: bytes / LINE, bytes: LINE as u32 })
    }

    /// From the first store of the list until the card has accepted the doorbell store, which follows the list.
    fn doorbell(&self, list: &List) -> Option<f64> {
        let half = Ticks(self.platform.root_complex.core_round_trip_ns.value.0 / 2).as_ns();
        let way =
            |bytes| (self.down.unloaded(self.header_dw(), bytes) + self.platform.endpoint.ingress_ns.value).as_ns();
        let (bell, beats) = (way(REGISTER) + self.beats(REGISTER).as_ns(), self.beats(list.bytes).as_ns());
        let times = list.writes as f64;
        let pace = |hop: &Hop| times * hop.pace(self.header_dw(), list.bytes).as_ns();
        let (first, others) = self.down.hops.split_first()?;
        let by_first = list.ns.max(pace(first)) + bell;
        let behind = others.iter().map(pace).fold(times * beats, f64::max);
        let by_others = behind + way(list.bytes.min(REGISTER)) + self.beats(REGISTER).as_ns();
        let by_pools = self.wait_behind(list, 1) + bell;
        Some(half + if list.writes > 0 { by_first.max(by_others).max(by_pools) } else { by_first })
    }

    /// Descriptor writes of this many threads, and their time on the slowest link.
    fn wait_of_doorbells(&self, threads: u64) -> Option<f64> {
        let block = u64::from(self.platform.dma.as_ref()?.descriptor_bytes.value);
        let list = self.list(self.call.transfer.bytes.div_ceil(block))?;
        let lists = if list.ns > 0.0 { threads * list.writes.max(1) } else { 0 };
        let time =
            |hop: &Hop| hop.pace(self.header_dw(), list.bytes) * lists + hop.pace(self.header_dw(), REGISTER) * threads;
        let on_link = self.down.hops.iter().map(time).max()?;
        Some(self.wait_behind(&list, threads) + on_link.as_ns())
    }

    /// Delay of the last doorbell store of this many threads by credits and replay-buffer entries behind their lists,
    /// from the first store.
    fn wait_behind(&self, list: &List, threads: u64) -> f64 {
        let of_list = match list.writes {
            // Writes that a gathered line is split into.
            0 => Packets::alike(if list.ns > 0.0 { threads } else { 0 }, REGISTER),
            writes => Packets::alike(writes * threads, list.bytes),
        };
        let all = of_list.and(Packets::alike(threads, REGISTER));
        let held = self.platform.endpoint.ingress_ns.value + self.beats(list.bytes.min(REGISTER));
        transfer::longest(&self.down, all, self.header_dw(), |hop| hop.credits.posted, held).ns
    }

    fn header_dw(&self) -> u8 {
        if self.mailbox.doorbell >= 1 << 32 { 4 } else { 3 }
    }

    /// Time of this many bytes at the register region.
    fn beats(&self, bytes: u32) -> Ticks {
        self.registers.beat_ns.value * u64::from(bytes.div_ceil(self.registers.beat_bytes.value))
    }

    /// Return time of the first status load that finds the transfer complete. Loads start when the doorbell is
    /// acknowledged.
    fn polled(&self, asked: &Asked, rung: f64, first: f64) -> f64 {
        let half = self.platform.root_complex.core_round_trip_ns.value.as_ns() / 2.0;
        let endpoint = &self.platform.endpoint;
        let there = self.down.unloaded(self.header_dw(), 0) + endpoint.ingress_ns.value;
        let looked = half + (there + self.registers.read_ns.value + self.beats(REGISTER)).as_ns();
        let back = (endpoint.egress_ns.value + self.up.unloaded(3, REGISTER)).as_ns() + half;
        let over = rung + asked.over_ns;
        let loads = ((over - first - looked) / (looked + back)).ceil().max(0.0);
        // Its completion waits for the only replay-buffer entry, and at the root complex for earlier writes of the
        // card.
        let pushed = if self.call.transfer.verb == Verb::Store {
            let only_place = self.up.hops.first().filter(|hop| hop.replay_tlps == 1);
            let goes = over + only_place.map_or(Ticks::ZERO, |hop| hop.ack_loop(3, 4)).as_ns();
            (rung + asked.moved.ns).max(goes + self.up.unloaded(3, REGISTER).as_ns()) + half
        } else {
            0.0
        };
        (first + loads * (looked + back) + looked + back).max(pushed)
    }
}
