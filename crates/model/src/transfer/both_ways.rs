//! Concurrent DMA writes and reads of host memory by one card.
//!
//! Each direction takes at least as long as alone, and both together at least as long as a resource that they share:
//!
//! | shared resource | time |
//! | --- | --- |
//! | link upstream | packets of all writes and of all read requests on the slowest link + path of the last write |
//! | engine, one channel | engine time of all requests |
//! | engine, two channels | beats of all requests on the data path |
//! | engine, full duplex | time of all requests in the part that both directions share |
//! | root complex | its interval between requests, for all |
//!
//! A formula of one channel is a lower bound only: it issues in order, and its writes wait while its reads have no tag.
//! So is every other one whose bounds are near each other, and one of requests of different size: link and root port
//! serve both directions in turns, so the direction with more requests goes on alone.
//!
//! Reads that overlap with writes may have completions of another size (`memory.loaded_completion_bytes`). If these
//! take longer, the reads that end after the last write have the usual ones.

use super::sum::Sum;
use super::way::Way;
use crate::bound::Bound;
use crate::bounds::Largest;
use crate::prediction::Prediction;
use lanemark_machine::{Partner, Plan, Transfer, Verb, Writer};
use lanemark_platform::{Iommu, Platform};
use lanemark_units::Ticks;

/// The part of an engine that its writes and reads share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// A channel, which issues both in order.
    OneChannel,
    /// The data path.
    DataPath,
    /// The shared part of a full-duplex engine, if it has one.
    SharedPart,
}

impl Engine {
    /// Shared part of the engine of a platform, for both directions as one job or as two.
    pub(crate) fn of(platform: &Platform, is_one_job: bool) -> Option<Engine> {
        let dma = platform.dma.as_ref()?;
        match dma.channels.value {
            _ if dma.full_duplex.value => Some(Engine::SharedPart),
            _ if is_one_job => Some(Engine::OneChannel),
            2.. => Some(Engine::DataPath),
            _ => None,
        }
    }
}

/// One direction, without the other.
struct Alone<'a> {
    way: Way<'a>,
    sum: Sum,
    scale: f64,
    taken: Largest,
}

impl<'a> Alone<'a> {
    fn of(way: Way<'a>, passes: u64) -> Option<Alone<'a>> {
        let all = way.transfer.count.checked_mul(passes).filter(|all| *all > 0 && way.transfer.bytes > 0)?;
        let part = way.part(all)?;
        let (sum, scale) = (way.sum(0, part.transfers)?, part.times);
        let taken = way.translated(way.terms(&sum, scale), all, false, way.beyond(&sum));
        Some(Alone { way, sum, scale, taken })
    }

    /// The reads after their queue. One channel issues both directions in order, and its reads pass no queue.
    fn queued(self, is_one_channel: bool) -> Alone<'a> {
        let queue = if is_one_channel { Ticks::ZERO } else { self.way.queue() };
        Alone { taken: self.taken.times(1.0, queue.as_ns()), ..self }
    }

    /// Number of requests.
    fn requests(&self) -> f64 {
        self.sum.requests as f64 * self.scale
    }

    /// A time of all its requests.
    fn all(&self, of: fn(&Sum) -> Ticks) -> f64 {
        self.scale * of(&self.sum).as_ns()
    }
}

/// Predicts the iterations of a plan over a write and a read of one card that go on at the same time.
pub(crate) fn both_ways<'a>(
    platform: &'a Platform,
    [write, read]: [&'a Transfer; 2],
    engine: Engine,
    plan: &Plan,
    written_by: Writer,
) -> Option<Prediction> {
    let are_of_host = [write, read].iter().all(|transfer| transfer.partner == Partner::Host);
    if !are_of_host || (write.verb, read.verb) != (Verb::Store, Verb::Load) || read.outstanding.is_some() {
        return None;
    }
    let is_warm = plan.warmup_passes > 0;
    let found = |transfer: &'a Transfer| {
        let warmed = plan.warmup_passes.saturating_mul(transfer.count);
        Some(Way { is_warm, warmed, ..Way::found(platform, transfer, written_by)? })
    };
    let is_one_channel = engine == Engine::OneChannel;
    let reads = Alone::of(found(read)?, plan.passes)?.queued(is_one_channel);
    let against = Some(reads.way.payload_bytes);
    let writes = Alone::of(Way { against, ..found(write)? }, plan.passes)?;
    // Writes may evict the lines that are read.
    if !reads.way.cached.is_empty() || reads.way.asks_again() || writes.way.asks_again() {
        return None;
    }
    let loaded = Alone::of(found(read)?.during_writes()?, plan.passes)?.queued(is_one_channel);
    let while_written = behind_writes(&writes, &reads, &loaded);
    let first = writes.sum.first_engine.min(reads.sum.first_engine).as_ns();
    let requests = writes.requests() + reads.requests();
    let shortest = writes.sum.shortest.min(reads.sum.shortest).as_ns();
    let besides_memory = writes.sum.besides_memory.min(reads.sum.besides_memory).as_ns();
    // On the link whose time the writes have: the first one if it is the slowest with its pauses.
    let request = writes.way.slowest_for_writes()?.0.pace(reads.way.header_dw, 0).as_ns();
    let upstream = writes.all(|sum| sum.link) + reads.requests() * request;
    let behind_upstream = writes.sum.before_link.as_ns().min(reads.sum.shortest.as_ns() - request);
    let at_engine = match engine {
        Engine::OneChannel => writes.all(|sum| sum.engine) + reads.all(|sum| sum.engine),
        Engine::DataPath => writes.all(|sum| sum.request_beats) + reads.all(|sum| sum.request_beats),
        Engine::SharedPart => requests * writes.way.dma.shared_request_ns.value.as_ns(),
    };
    let shared = Largest::of([
        (Bound::Link, first + upstream + behind_upstream),
        (Bound::Engine, at_engine + shortest),
        (Bound::RootComplex, first + besides_memory + (requests - 1.0) * writes.way.root_pace().as_ns()),
    ]);
    let largest = writes.taken.or_again(while_written).or_again(shared);
    // The second bound of a direction may become its first beside the other direction.
    let parts = [writes.taken, while_written].into_iter().filter(|part| 1.5 * part.ns > largest.ns);
    let largest = parts.fold(largest, |largest, part| largest.no_clearer_than(&part));
    let is_clear = writes.way.knows_lines(write.count.saturating_mul(plan.passes), written_by)
        && !platform.iommu.as_ref().is_some_and(Iommu::translates);
    // A channel issues in order: its writes wait while its reads have no tag, which no term models.
    // Nor does one model requests behind writes whose link pauses.
    let is_clear = is_clear && engine != Engine::OneChannel && !writes.way.pauses_on_link();
    let largest = if is_clear { largest } else { largest.blurred() };
    // A read request may arrive behind as many writes as fit between the engine and memory, and it holds its tag and
    // its credit meanwhile.
    let writes_ahead: u32 = writes.way.path.hops.iter().map(|hop| hop.credits.posted.headers).sum();
    let writes_ahead = f64::from(writes_ahead.saturating_add(writes.way.dma.send_buffers.value));
    let ahead_ns = writes_ahead.min(writes.requests()) * writes.taken.ns / writes.requests();
    let np_credits = writes.way.path.hops.iter().map(|hop| hop.credits.nonposted.headers).min()?;
    let at_once = f64::from(np_credits.min(reads.way.dma.tags.value));
    let held_ns = (reads.all(|sum| sum.latencies) + reads.requests() * ahead_ns) / at_once;
    let largest = largest.beside(held_ns);
    // A link and a root port serve both in turns, so that the faster one may be as slow as the slower one while both
    // have requests; no bound models that.
    let fewer = writes.requests().min(reads.requests());
    let [write_ns, read_ns] = [&writes, &reads].map(|one| one.taken.ns / one.requests());
    let pair_ns =
        write_ns.max(read_ns).max(writes.all(|sum| sum.link) / writes.requests() + request).max(match engine {
            Engine::SharedPart => 2.0 * writes.way.dma.shared_request_ns.value.as_ns(),
            Engine::OneChannel | Engine::DataPath => 0.0,
        });
    let in_turns = fewer * pair_ns
        + (writes.requests() - fewer) * write_ns
        + (reads.requests() - fewer) * read_ns.max(while_written.ns / reads.requests());
    let waits_for_credits = matches!(largest.bound, Bound::Credits | Bound::Replay);
    let largest = if in_turns > 1.02 * largest.ns || waits_for_credits { largest.blurred() } else { largest };
    let delivered_ns = platform.dma.as_ref()?.start_ns.value.as_ns() + largest.ns;
    let last = if while_written.ns > writes.taken.ns { &reads } else { &writes };
    let issue_ns = (delivered_ns - last.sum.last_way.as_ns()).max(0.0);
    let holds_for = if largest.lead() > 1.0 {
        "one card, as many bytes in each direction, no other traffic on its links"
    } else {
        "one card, as many bytes in each direction, no other traffic on its links; a lower bound of the time"
    };
    Some(Prediction { issue_ns, delivered_ns, bound: largest.bound, lead: largest.lead(), holds_for })
}

/// The reads beside `writes`: `loaded` as long as there are writes, and then as `reads` alone.
fn behind_writes(writes: &Alone<'_>, reads: &Alone<'_>, loaded: &Alone<'_>) -> Largest {
    if loaded.taken.ns <= reads.taken.ns {
        // The last reads may end after the last write.
        return if loaded.taken.ns < reads.taken.ns { loaded.taken.blurred() } else { reads.taken };
    }
    // A write arrives during each read only if the interval of writes is shorter than a read.
    let read = reads.way.memory().map_or(Ticks::ZERO, |memory| memory.read_ns.value);
    if (writes.sum.most_engine + writes.sum.most_link) * 2 > read {
        return reads.taken.blurred();
    }
    let [latency, alone] = [loaded, reads].map(|one| one.sum.first_latency.as_ns());
    // Reads that end after the last write has been accepted may be short ones.
    let accepted_ns = writes.taken.ns - writes.sum.besides_memory.as_ns();
    let part = (accepted_ns - latency) / (loaded.taken.ns - latency).max(1.0);
    if part >= 1.0 {
        return loaded.taken;
    }
    let rest_ns = (1.0 - part.max(0.0)) * (reads.taken.ns - alone) - 2.0 * (latency - alone).max(0.0);
    Largest::leading(loaded.taken.bound, (accepted_ns.max(0.0) + rest_ns).max(reads.taken.ns), 1.0)
}
