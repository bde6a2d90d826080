//! What a core waits for that asks a driver for a device's transfer: a sum, from the call to the return.
//!
//! | part | takes |
//! | --- | --- |
//! | enter, pin, build | times of the operating system: per call, page and descriptor |
//! | descriptors written | UC: a core round trip for each store; WC: as `store.rs` says of a copy that drains |
//! | doorbell | half a core round trip, the links down, the card's way in, a beat; behind the list on the slowest of them |
//! | transfer | as `transfer.rs` says, from there until the core knows of the end |
//! | told by a word | its write behind the last one, and a load of it |
//! | told by a register | loads one behind the other; the first that finds it |
//! | told by a message | its write behind the last one, the interrupt, handler and thread |
//! | unpin, return | times of the operating system |
//!
//! All but the transfer is exact where nothing else uses the links, so the lead is the transfer's.
//!
//! Several threads ([`threads`]), each on a channel of one card, take no less than the longest of them alone, and no less than the
//! first of them needs until its doorbell is rung, all of them of what the channels share, and the last of them to return.

use crate::bounds::Largest;
use crate::costs::Costs;
use crate::path::{Hop, Path};
use crate::predict::{Bound, Prediction};
use crate::store::{self, End};
use crate::transfer::{self, Asked, Notice};
use lanemark_machine::{Access, Completion, Descriptors, DmaCall, Share, Span, Stream, Verb, Width};
use lanemark_platform::{Driver, Mailbox, Platform, Region};
use lanemark_units::{BarOffset, MemoryType, Ticks};

/// Calls up to which each is taken apart; of more, all are taken to be like the first ones.
const MOST_CALLS: u64 = 64;

/// Bytes of a page that is pinned, and of a register.
const PAGE: u64 = 4096;
const REGISTER: u32 = 8;

/// The formula's answer for `passes` times `call`.
pub(crate) fn predict(platform: &Platform, call: &DmaCall, passes: u64) -> Option<Prediction> {
    let all = call.transfer.count.checked_mul(passes).filter(|all| *all > 0)?;
    let taken_apart = all.min(MOST_CALLS);
    let asking = Asking::of(platform, call)?;
    let mut sum = asking.call(0)?;
    for nth in 1..taken_apart {
        sum = sum.then(&asking.call(nth)?);
    }
    let sum = sum.times(all as f64 / taken_apart as f64, 0.0);
    let holds_for = "one core and one card, nothing else on its links";
    Some(Prediction { issue_ns: sum.ns, delivered_ns: sum.ns, bound: sum.bound, lead: sum.lead(), holds_for })
}

/// The same of several threads that begin at once, each with a call of its own on a channel of one card, until the last of them
/// knows; `None` for calls of several cards.
pub(crate) fn threads(platform: &Platform, calls: &[DmaCall], passes: u64) -> Option<Prediction> {
    let first = calls.first()?;
    let is_alike =
        |call: &DmaCall| (call.transfer.card, call.transfer.verb) == (first.transfer.card, first.transfer.verb);
    if !calls.iter().all(is_alike) {
        return None;
    }
    let mut alone: Option<Prediction> = None;
    let (mut before_ns, mut behind_ns) = (f64::INFINITY, f64::INFINITY);
    let mut all: Option<[(Bound, f64); 6]> = None;
    for call in calls {
        let one = predict(platform, call, passes)?;
        alone = Some(alone.filter(|most| most.delivered_ns >= one.delivered_ns).unwrap_or(one));
        let (before, behind) = Asking::of(platform, call)?.around()?;
        (before_ns, behind_ns) = (before_ns.min(before), behind_ns.min(behind));
        let shared = transfer::shared(platform, &call.transfer, call.transfer.count.checked_mul(passes)?)?;
        all = Some(all.map_or(shared, |all| std::array::from_fn(|nth| (shared[nth].0, all[nth].1 + shared[nth].1))));
    }
    let (alone, all) = (alone?, all?);
    let shared = all.map(|(bound, ns)| (bound, before_ns + ns + behind_ns));
    let is_credits = |bound: &Bound| matches!(bound, Bound::Credits | Bound::Replay);
    let credits_ns = all.iter().filter(|(bound, _)| is_credits(bound)).map(|(_, ns)| *ns).sum::<f64>();
    let shared = Largest::of(shared);
    // What requests of one channel wait for answers to those of others, and words for credits, no term tells of; and threads that
    // share a link are done together, and go to the kernel together before their next calls.
    let is_clear = first.transfer.verb == Verb::Store
        && calls.iter().all(|call| call.transfer.count * passes == 1)
        && shared.ns > alone.delivered_ns
        && shared.ns > 2.0 * credits_ns;
    let lead = if is_clear { shared.lead().min(shared.ns / alone.delivered_ns) } else { 1.0 };
    let alone = Largest::of([(alone.bound, alone.delivered_ns)]);
    let largest = if shared.ns > alone.ns { shared } else { alone };
    let issue_ns = predict(platform, first, passes)?.issue_ns;
    let holds_for = "threads of one card with a channel each, nothing else on its links; no less than this";
    Some(Prediction { issue_ns, delivered_ns: largest.ns, bound: largest.bound, lead, holds_for })
}

/// Descriptors that the core writes to the card.
struct List {
    bound: Bound,
    /// Until the doorbell can be rung.
    ns: f64,
    /// As so many writes on the links, of so many bytes each.
    writes: u64,
    bytes: u32,
}

/// Bytes of a line.
const LINE: u64 = 64;

struct Asking<'a> {
    platform: &'a Platform,
    call: &'a DmaCall,
    driver: &'a Driver,
    mailbox: Mailbox,
    /// What the doorbell and the list are in.
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

    /// The least before the first transfer, and behind the last one.
    fn around(&self) -> Option<(f64, f64)> {
        let (transfer, driver) = (&self.call.transfer, self.driver);
        let dma = self.platform.dma.as_ref()?;
        let start = self.platform.memory.as_ref()?.address_bytes.value + transfer.window.place(0, transfer.bytes);
        let blocks = |block: u64| (start + transfer.bytes - 1) / block - start / block + 1;
        let (pages, descriptors) = (blocks(PAGE), blocks(u64::from(dma.descriptor_bytes.value)));
        let mut list = List { bound: Bound::StrongOrder, ns: 0.0, writes: 0, bytes: 0 };
        let (mut before, mut behind) = (dma.start_ns.value, Ticks::ZERO);
        if self.call.share == Share::Call {
            let half = Ticks(driver.call_ns.value.0 / 2);
            before += half + driver.pin_page_ns.value * pages;
            // The last one may touch a page less than the first.
            behind += half + driver.unpin_page_ns.value * transfer.bytes.div_ceil(PAGE);
        }
        if self.call.share != Share::Doorbell {
            before += driver.build_descriptor_ns.value * descriptors;
            if let Descriptors::Written(memory_type) = self.call.descriptors {
                list = self.list(memory_type, descriptors * u64::from(dma.descriptor_entry_bytes.value))?;
            }
        }
        behind += match self.call.completion {
            Completion::Flag => self.platform.core.cached_load_ns.value,
            Completion::Interrupt => driver.handler_ns.value + driver.wake_ns.value,
            Completion::Register => Ticks::ZERO,
        };
        Some((before.as_ns() + self.doorbell(&list)?, behind.as_ns()))
    }

    /// Call number `nth`, from its first instruction to its last.
    fn call(&self, nth: u64) -> Option<Largest> {
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
        let mut list = List { bound: Bound::StrongOrder, ns: 0.0, writes: 0, bytes: 0 };
        if self.call.share != Share::Doorbell {
            kernel += driver.build_descriptor_ns.value * descriptors;
            if let Descriptors::Written(memory_type) = self.call.descriptors {
                list = self.list(memory_type, descriptors * u64::from(dma.descriptor_entry_bytes.value))?;
            }
        }
        let is_fetched = self.call.descriptors == Descriptors::Fetched;
        let entry = is_fetched.then_some((self.mailbox.ring, dma.descriptor_entry_bytes.value));
        let write = self.platform.memory.as_ref()?.write_ns.value;
        let notice = match self.call.completion {
            Completion::Flag => Some(Notice { address: self.mailbox.flag, known: write }),
            Completion::Interrupt => {
                Some(Notice { address: self.mailbox.message, known: write.max(driver.interrupt_ns.value) })
            }
            Completion::Register => None,
        };
        let asked = transfer::asked(self.platform, transfer, nth, entry, notice)?;
        // Counted from when the core issues the store to the doorbell.
        let rung = self.doorbell(&list)? - list.ns;
        let round_trip = self.platform.root_complex.core_round_trip_ns.value.as_ns();
        let cached_load = self.platform.core.cached_load_ns.value.as_ns();
        let (told, bound) = match self.call.completion {
            Completion::Flag => (cached_load, asked.moved.bound),
            Completion::Interrupt => {
                kernel += driver.handler_ns.value + driver.wake_ns.value;
                let interrupt = driver.interrupt_ns.value.as_ns();
                let is_most = interrupt > asked.moved.ns;
                (0.0, if is_most { Bound::Interrupt } else { asked.moved.bound })
            }
            Completion::Register => (0.0, Bound::ReadRoundTrip),
        };
        // The core goes on when its store to the doorbell is acknowledged.
        let known = match self.call.completion {
            Completion::Register => self.polled(&asked, rung, round_trip),
            _ => (rung + asked.known_ns).max(round_trip),
        };
        let parts = [(Bound::Driver, kernel.as_ns()), (list.bound, list.ns), (bound, known + told)];
        let longest = Largest::of(parts).bound;
        Some(Largest::leading(longest, parts.iter().map(|part| part.1).sum(), asked.moved.lead()))
    }

    /// Descriptors of so many bytes on their way to the card.
    fn list(&self, memory_type: MemoryType, bytes: u64) -> Option<List> {
        let width = u64::from(self.driver.copy_bytes.value)
            .min(u64::from(self.platform.dma.as_ref()?.descriptor_entry_bytes.value));
        let stores = bytes / width;
        let round_trip = self.platform.root_complex.core_round_trip_ns.value.as_ns();
        if memory_type != MemoryType::Wc {
            let ns = stores as f64 * round_trip;
            return Some(List { bound: Bound::StrongOrder, ns, writes: stores, bytes: width as u32 });
        }
        let costs = Costs::new(self.platform, self.registers)?;
        let width = Width::ALL.into_iter().find(|known| known.bytes() == width)?;
        let offset = self.registers.offset_bytes.value + (self.mailbox.list - self.mailbox.doorbell);
        let at = BarOffset { bar: u8::try_from(self.registers.bar.value).ok()?, offset };
        let stream = Stream::over(Verb::Store, Access::Plain(width), Span { at, len: bytes, memory_type });
        let end = End { ns: 0.0, ahead_ns: 0.0, drains: true, bound: Bound::Buffers };
        let ns = store::predict(&costs, &stream, costs.cycle, Some(end), 1).issue_ns;
        Some(List { bound: Bound::Buffers, ns, writes: bytes / LINE, bytes: LINE as u32 })
    }

    /// From the first store of the list until the card has accepted the one to the doorbell, which goes behind it.
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
        Some(half + if list.writes > 0 { by_first.max(by_others) } else { by_first })
    }

    fn header_dw(&self) -> u8 {
        if self.mailbox.doorbell >= 1 << 32 { 4 } else { 3 }
    }

    /// Time of so many bytes at the region of registers.
    fn beats(&self, bytes: u32) -> Ticks {
        self.registers.beat_ns.value * u64::from(bytes.div_ceil(self.registers.beat_bytes.value))
    }

    /// When the load of the status comes back that is the first to find the transfer over; loads begin when the doorbell is
    /// acknowledged.
    fn polled(&self, asked: &Asked, rung: f64, first: f64) -> f64 {
        let half = self.platform.root_complex.core_round_trip_ns.value.as_ns() / 2.0;
        let endpoint = &self.platform.endpoint;
        let there = self.down.unloaded(self.header_dw(), 0) + endpoint.ingress_ns.value;
        let looked = half + (there + self.registers.read_ns.value + self.beats(REGISTER)).as_ns();
        let back = (endpoint.egress_ns.value + self.up.unloaded(3, REGISTER)).as_ns() + half;
        let over = rung + asked.over_ns;
        let loads = ((over - first - looked) / (looked + back)).ceil().max(0.0);
        // Its completion waits at the root complex for what the card wrote before.
        let pushed = if self.call.transfer.verb == Verb::Store { rung + asked.moved.ns + half } else { 0.0 };
        (first + loads * (looked + back) + looked + back).max(pushed)
    }
}
