//! Transfers requested by a driver: descriptor fetches before them, and the notification of completion.
//!
//! `dma_call.rs` describes what the requests of one call share with those of the next.

use super::packets::Packets;
use super::pools::longest;
use super::sum::Sum;
use super::way::{Way, in_dws};
use crate::bound::Bound;
use crate::bounds::Largest;
use crate::path::Path;
use lanemark_machine::{Transfer, Verb};
use lanemark_platform::Platform;
use lanemark_units::Ticks;
use lanemark_wire::Chunk;

/// Notification of the end of a transfer: a write of one DW.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    /// Address that is written.
    pub(crate) address: u64,
    /// From the root complex until the core is notified.
    pub(crate) known: Ticks,
}

/// Times of a transfer requested by a driver, from the acceptance of the doorbell by the card.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// Until the last byte has arrived.
    pub(crate) moved: Largest,
    /// Until the last request leaves the card. From then on, or from the arrival of the last byte, the status
    /// register reports completion.
    pub(crate) over_ns: f64,
    /// Until the core is notified, if there is a notification.
    pub(crate) known: Largest,
    /// Use of the serial resources by the requests of all calls.
    pub(crate) shared: [Shared; 3],
    /// Whether an effect without a term may take as long.
    pub(crate) is_open: bool,
}

/// Use of a serial resource, counted from the start of the engine, as if only this resource took time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shared {
    pub(crate) bound: Bound,
    /// Arrival of the first request of a call.
    pub(crate) first_ns: f64,
    /// Minimum time between the last request of the previous call and that of this one; 0 if the resource takes no
    /// time.
    pub(crate) period_ns: f64,
    /// From then on until the core is notified, or until the last byte has arrived without a notification. Excludes
    /// the time of the last request, for which nothing waits.
    pub(crate) rest_ns: f64,
}

impl Shared {
    /// Until the core is notified of one call.
    fn known_ns(&self) -> f64 {
        self.first_ns + self.period_ns + self.rest_ns
    }

    /// Use of the resource by this call and the next one.
    pub(crate) fn then(&self, next: &Shared) -> Shared {
        let rest_ns = self.rest_ns.min(next.rest_ns);
        Shared { period_ns: self.period_ns + next.period_ns, rest_ns, ..*self }
    }
}

/// Bytes of a notification.
const DW: u32 = 4;

/// Descriptor fetches.
struct Fetched {
    count: u64,
    /// Time of the first descriptor: until its read is at the root complex, and from there until its data have arrived.
    to_root: Ticks,
    answer: Ticks,
    /// Engine time of each.
    engine: Ticks,
}

/// Transfer number `nth`, started by a doorbell, with fetched descriptors of `entry_bytes` and notification `notice`.
pub(crate) fn asked(
    platform: &Platform,
    transfer: &Transfer,
    nth: u64,
    entry: Option<(u64, u32)>,
    notice: Option<Notice>,
) -> Option<Asked> {
    let way = Way::of(platform, transfer)?;
    if transfer.bytes == 0 {
        return None;
    }
    let start = way.dma.start_ns.value + way.queue();
    let sum = way.sum(nth, 1)?;
    let fetched = match entry {
        Some(entry) => Some(way.descriptors(nth, entry)?),
        None => None,
    };
    let (mut moved, mut engine) = (way.terms(&sum, 1.0), start + sum.engine);
    if let Some(fetched) = &fetched {
        moved = way.fetched(nth, &sum, moved, fetched)?;
        engine += fetched.to_root + fetched.answer;
    }
    let moved = moved.or_again(in_all(&way.shared(&sum, fetched.as_ref(), None)?)).times(1.0, start.as_ns());
    let last = *way.pieces(nth)?.last()?;
    let is_store = transfer.verb == Verb::Store;
    let on_link = moved.ns - sum.last_way.as_ns() + platform.endpoint.egress_ns.value.as_ns();
    let known = match notice {
        Some(notice) if is_store => {
            let first = engine - sum.engine + sum.first_engine;
            way.told_of_writes(&notice, &sum, last, [first.as_ns(), engine.as_ns(), on_link], moved)?
        }
        Some(notice) => moved.times(1.0, (way.notice_way(&notice)? + notice.known).as_ns()),
        None => moved,
    };
    let descriptors = fetched.as_ref().map_or(0, |fetched| fetched.count);
    let mut shared = way.shared(&sum, fetched.as_ref(), notice.as_ref())?;
    let over_ns = match &fetched {
        _ if !is_store => moved.ns,
        Some(fetched) if fetched.count > 1 => on_link,
        // What waits on a link behind the first packet has left the card.
        _ => on_link.min((engine - sum.engine + way.left(&sum, nth)?).as_ns()),
    };
    let known = known.or_again(in_all(&shared).times(1.0, start.as_ns()));
    let [_, reads, writes] = &mut shared;
    if let (Verb::Load, Some(notice)) = (transfer.verb, notice) {
        // Only the notification is written.
        writes.first_ns = known.ns - (start + notice.known).as_ns();
        writes.rest_ns = notice.known.as_ns() - writes.period_ns;
    } else if is_store && descriptors == 1 {
        // Only the descriptor is read. If it waits, later requests may not have to wait for the root complex.
        let known_ns = known.ns - (start + way.root_pace()).as_ns();
        reads.rest_ns = reads.rest_ns.max(known_ns - reads.first_ns - reads.period_ns);
    }
    Some(Asked { moved, over_ns, known, shared, is_open: descriptors > 1 })
}

/// Times of serial resources as terms.
fn in_all(shared: &[Shared]) -> Largest {
    Largest::of(shared.iter().filter(|shared| shared.period_ns > 0.0).map(|shared| (shared.bound, shared.known_ns())))
}

impl Way<'_> {
    /// Descriptors of transfer number `nth`.
    fn descriptors(&self, nth: u64, (ring, entry_bytes): (u64, u32)) -> Option<Fetched> {
        let header_dw = if ring >= 1 << 32 { 4 } else { 3 };
        let (up, down) = (Path::up(self.platform, self.transfer.card)?, Path::down(self.platform, self.transfer.card)?);
        let endpoint = &self.platform.endpoint;
        let engine = self.beats(header_dw, 0) + self.dma.read_request_ns.value + self.dma.shared_request_ns.value;
        let memory = self.memory()?;
        // A core has just written it.
        let is_cached = memory.cached_lines() > 0;
        let dram = memory.read_ns.value + self.mean_spread(1);
        let read = if is_cached { memory.cached_read_ns.value } else { dram };
        let block = u64::from(self.dma.descriptor_bytes.value);
        let place = self.base + self.transfer.window.place(nth, self.transfer.bytes);
        Some(Fetched {
            count: (place + self.transfer.bytes - 1) / block - place / block + 1,
            to_root: engine + endpoint.egress_ns.value + up.unloaded(header_dw, 0),
            answer: read + down.unloaded(3, entry_bytes) + endpoint.ingress_ns.value + self.beats(3, entry_bytes),
            engine,
        })
    }

    /// Use of the serial resources by the requests of this transfer.
    fn shared(&self, sum: &Sum, fetched: Option<&Fetched>, notice: Option<&Notice>) -> Option<[Shared; 3]> {
        let (memory, is_store) = (self.memory()?, self.transfer.verb == Verb::Store);
        let (root, read, write) = (self.root_pace(), memory.read_request_ns.value, memory.write_tlp_ns.value);
        // From the engine to the root complex, for the first data request, and from there to the end of the last one.
        let (to_root, behind) = if is_store {
            (sum.first_latency - memory.write_ns.value, memory.write_ns.value)
        } else {
            let up = Path::up(self.platform, self.transfer.card)?;
            let way = self.platform.endpoint.egress_ns.value + up.unloaded(self.header_dw, 0);
            (sum.first_engine + way, sum.last_way - way)
        };
        let (descriptors, data, notices) =
            (fetched.map_or(0, |fetched| fetched.count), sum.requests, u64::from(notice.is_some()));
        // Arrival of the first request at the root complex, and the delay of the first data request after it.
        let (first, unpaced) =
            fetched.map_or((to_root, Ticks::ZERO), |fetched| (fetched.to_root, fetched.answer + to_root));
        // From the last data request, or its data, to the notification, and from there to its receiver.
        let (to_notice, known) = match notice {
            Some(notice) if is_store => (Ticks::ZERO, notice.known),
            Some(notice) => (behind + self.notice_way(notice)?, notice.known),
            None => (Ticks::ZERO, behind),
        };
        let paced = |pace: Ticks, way: Ticks, is_there: bool| if is_there { pace.max(way) } else { Ticks::ZERO };
        let to_data = paced(root, unpaced, descriptors > 0);
        let by_root = to_data + root * (data - 1) + paced(root, to_notice, notices > 0);
        let by_root = by_root.max(root * (descriptors + data + notices - 1));
        let (reads, writes) = if is_store { (descriptors, notices + data) } else { (descriptors + data, notices) };
        let by_reads = read * reads.max(1) - read;
        let by_reads = match (self.transfer.verb, fetched) {
            (Verb::Load, _) => by_reads.max(unpaced + read * (data - 1)) + to_notice,
            // The last descriptor is followed by at least one write and the notification.
            (Verb::Store, Some(fetched)) => {
                by_reads + fetched.answer + sum.latency - memory.write_ns.value + root * notices
            }
            (Verb::Store, None) => Ticks::ZERO,
        };
        // A partial line occupies the port until the next write, which may be the notification.
        let lines = if notices > 0 { sum.of_lines } else { sum.of_lines - sum.last_of_lines };
        let by_writes = to_data + to_notice + write * writes.max(1) - write + lines;
        let all = |bound, pace: Ticks, took: Ticks, period: Ticks| {
            let period_ns = if pace > Ticks::ZERO { period.as_ns() } else { 0.0 };
            Shared { bound, first_ns: first.as_ns(), period_ns, rest_ns: (took + known).as_ns() - period_ns }
        };
        Some([
            all(Bound::RootComplex, root, by_root, root + by_root),
            all(Bound::Memory, read, by_reads, read * reads),
            all(Bound::Memory, write.max(sum.of_lines), by_writes, write * writes + sum.of_lines),
        ])
    }

    /// Time at which the last of these writes leaves the card, from the start of the engine, as far as they wait for
    /// the engine and the first link.
    fn left(&self, sum: &Sum, nth: u64) -> Option<Ticks> {
        let (hop, pieces) = (self.path.hops.first()?, self.pieces(nth)?);
        let (_, others) = pieces.split_last()?;
        let by_link: Ticks = others.iter().map(|piece| hop.pace(self.header_dw, in_dws(*piece))).sum();
        let first_link = Path { hops: vec![hop.clone()] };
        let wait = longest(&first_link, sum.packets, self.header_dw, |hop| hop.credits.posted, Ticks::ZERO);
        let by_link = sum.first_engine + by_link.max(Ticks::from_ns(wait.ns).ok()?);
        Some(sum.engine.max(by_link) + self.platform.endpoint.egress_ns.value)
    }

    /// The terms of a transfer with descriptor fetches: no data are requested before the first descriptor is available, and
    /// the last one arrives after rounds of as many as are prefetched.
    fn fetched(&self, nth: u64, sum: &Sum, moved: Largest, fetched: &Fetched) -> Option<Largest> {
        let latency = fetched.to_root + fetched.answer;
        let first = moved.times(1.0, latency.as_ns());
        if fetched.count == 1 {
            return Some(first);
        }
        let block = u64::from(self.dma.descriptor_bytes.value);
        let place = self.base + self.transfer.window.place(nth, self.transfer.bytes);
        let end = place + self.transfer.bytes;
        let rounds = 1 + (fetched.count - 1) / u64::from(self.dma.prefetch_descriptors.value);
        let of_last = Chunk { address: (end - 1) / block * block, ..*self.pieces(nth)?.last()? };
        let last = self.engine(of_last, of_last.address.saturating_sub(place)) + sum.shortest;
        let between = self.root_pace().max(self.memory()?.read_request_ns.value);
        let largest = first.or(Largest::of([
            (Bound::Descriptors, (latency * rounds + last).as_ns()),
            (Bound::Descriptors, (latency + between * (fetched.count - 1) + last).as_ns()),
            (Bound::Engine, (sum.engine + fetched.engine * fetched.count + sum.last_way).as_ns()),
        ]));
        // Fetches occupy engine and link, too; no term models both.
        Some(largest.blurred())
    }

    /// Time of a notification from the engine to the root complex.
    fn notice_way(&self, notice: &Notice) -> Option<Ticks> {
        let up = Path::up(self.platform, self.transfer.card)?;
        let egress = self.platform.endpoint.egress_ns.value;
        Some(self.notice_engine(notice) + egress + up.unloaded(notice.header_dw(), DW))
    }

    /// Engine time of the notification.
    fn notice_engine(&self, notice: &Notice) -> Ticks {
        self.beats(notice.header_dw(), DW) + self.dma.write_request_ns.value + self.dma.shared_request_ns.value
    }

    /// Time at which a core is notified of the end of writes. The engine sends the notification after the writes, and
    /// it follows the last one on every link.
    fn told_of_writes(
        &self,
        notice: &Notice,
        sum: &Sum,
        last: Chunk,
        [first_ns, engine_ns, over_ns]: [f64; 3],
        moved: Largest,
    ) -> Option<Largest> {
        let up = Path::up(self.platform, self.transfer.card)?;
        let egress = self.platform.endpoint.egress_ns.value;
        // Earliest time of the notification, relative to the last request.
        let ready = engine_ns + (self.notice_engine(notice) + egress).as_ns() - over_ns;
        let ready = Ticks::from_ns(ready.max(0.0)).ok()?;
        let arrives =
            up.behind(Some((self.header_dw, in_dws(last))), (notice.header_dw(), DW), ready, |hop| hop.credits.posted);
        let memory = self.memory()?;
        let taken = moved.ns - memory.write_ns.value.as_ns();
        let all = sum.packets.and(Packets::alike(1, DW));
        let wait = longest(&up, all, self.header_dw, |hop| hop.credits.posted, Ticks::ZERO);
        let behind_first = Ticks::from_ns(first_ns + wait.ns).ok()? + egress + up.unloaded(notice.header_dw(), DW);
        let at_root = [
            (moved.bound, over_ns + arrives.as_ns()),
            (wait.bound, behind_first.as_ns()),
            (Bound::Memory, taken + (memory.write_tlp_ns.value + sum.last_of_lines).as_ns()),
            (Bound::RootComplex, self.next_taken_after(sum).map_or(0.0, |next| taken + next.as_ns())),
            (Bound::RootComplex, self.accepted_after(sum)?.as_ns()),
        ];
        let latest = Largest::of(at_root);
        // Its delay after the last byte, whatever that waited for.
        let waits_longest = latest.ns > 2.0 * taken;
        let bound = if waits_longest { latest.bound } else { moved.bound };
        let known = Largest::leading(bound, latest.ns + notice.known.as_ns(), moved.lead());
        // No term models packets delayed by DLLPs.
        Some(if wait.ns > 0.0 { known.blurred() } else { known })
    }
}

impl Notice {
    fn header_dw(&self) -> u8 {
        if self.address >= 1 << 32 { 4 } else { 3 }
    }
}
