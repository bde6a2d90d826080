//! Check of plans with DMA: the streams of transfers, one per channel, or the reason for a refusal.

use super::CardMemory;
use super::card_memory::BEAT;
use crate::x86::refusal::Refusal;
use lanemark_machine::{Completion, EngineJob, HostMemory, OnChannels, Partner, Plan, Transfer, Verb, Work};
use lanemark_units::format_size;
use std::fmt;

/// Properties of a card that decide which plans it can run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Range of the card's memory that may be overwritten; without one, there is no DMA.
    pub(super) memory: Option<CardMemory>,
    /// Channels that exist in both directions.
    pub(super) channels: u32,
    /// Most host memory of a plan.
    pub(super) mapped_bytes: u64,
}

/// Transfers of one channel, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stream {
    /// Number of the channel of its direction.
    pub(super) channel: u32,
    /// The job; this channel does every `every`th transfer of it, from number `first` on.
    pub(super) transfer: Transfer,
    pub(super) first: u64,
    pub(super) every: u64,
    pub(super) slots: Slots,
}

/// Places in the card's memory, as many as fit or as there are places in host memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slots {
    /// Address of the first one, a multiple of a beat.
    pub(super) start: u64,
    /// Distance, whole beats.
    pub(super) distance: u64,
    pub(super) count: u64,
}

impl Slots {
    /// Bytes from the first place to the end of the last one.
    pub(super) const fn len(&self) -> u64 {
        self.distance * self.count
    }
}

impl Stream {
    /// Number of its `nth` transfer in the job.
    pub(super) const fn number(&self, nth: u64) -> u64 {
        self.first + nth * self.every
    }

    /// How many of the first `transfers` transfers of the job are its own.
    pub(super) const fn share(&self, transfers: u64) -> u64 {
        transfers.saturating_sub(self.first).div_ceil(self.every)
    }

    /// Offset in host memory of a transfer of the job, and its address on the card.
    #[inline]
    pub(super) const fn places(&self, number: u64) -> (u64, u64) {
        let at = self.transfer.window.place(number, self.transfer.bytes);
        // A transfer has the same place in a beat on both sides.
        (at, self.slots.start + self.slot(at) * self.slots.distance + at % BEAT)
    }

    /// Number of the place on the card that belongs to an offset in host memory.
    pub(super) const fn slot(&self, at: u64) -> u64 {
        let Transfer { bytes, window, .. } = self.transfer;
        (at - window.offset) / window.step(bytes) % self.slots.count
    }
}

impl fmt::Display for Stream {
    /// The stream in words, for a dry run.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stream { channel, transfer: Transfer { bytes, count, window, verb, .. }, slots, .. } = *self;
        let (call, to, from) = match verb {
            Verb::Load => ("DMA reads by pwrite to h2c", "to", "from"),
            Verb::Store => ("DMA writes by pread from c2h", "from", "to"),
        };
        write!(
            f,
            "{call} channel {channel}: {} x {} per iteration, {from} offsets {:#x} to {:#x} of host memory, {to} addresses {:#x} to \
             {:#x} of the card, whose bytes are overwritten",
            self.share(count),
            format_size(bytes),
            window.offset,
            window.offset + window.len.max(bytes) - 1,
            slots.start,
            slots.start + slots.len() - 1,
        )
    }
}

/// The streams of a plan with DMA; `None` for other work.
pub(super) fn of(plan: &Plan, limits: &Limits) -> Option<Result<Vec<Stream>, Refusal>> {
    let asked = match &plan.work {
        Work::Engines(work) if work.memory != HostMemory::default() => refused(
            "this cache state or socket of host memory",
            "host memory is last written by a core of the local socket here",
        ),
        Work::Engines(work) => match limits.memory {
            Some(memory) => streams(&work.jobs, limits, memory),
            None => refused("DMA", "no addresses on the card may be overwritten: name them with --card-memory"),
        },
        // Both the question and its comparison are such calls.
        Work::Cores(_) if plan.work.dma_calls().any(|call| call.completion == Completion::Interrupt) => refused(
            "the interrupt at the end of a transfer",
            "it goes to the driver, whose call then returns; the files of events (xdma0_events_0) show interrupts of the design's \
             own logic, which no transfer raises: bind the card to vfio-pci, and use --device xdma",
        ),
        Work::Cores(_) if plan.work.dma_calls().next().is_some() => refused(
            "the parts of a driver call",
            "every transfer is a whole call of the driver here; pinning, mapping and DMA cannot be timed separately: \
             dma_read_bandwidth and dma_write_bandwidth include all of them",
        ),
        Work::Relay(_) => refused("a relay by cards", "the target is one card"),
        Work::Cores(_) | Work::Exchange(_) | Work::Queue(_) => return None,
    };
    let checked = plan.check().map_err(|impossible| Refusal::new(impossible.what, impossible.because));
    Some(checked.and(asked))
}

fn refused<T>(what: impl Into<String>, because: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(what, because))
}

/// The parts of each job as (transfer, channels).
fn streams(jobs: &[EngineJob], limits: &Limits, memory: CardMemory) -> Result<Vec<Stream>, Refusal> {
    let mut parts: Vec<(Transfer, u32)> = Vec::new();
    for job in jobs {
        match *job {
            EngineJob::Transfer(transfer) => parts.push((transfer, 1)),
            EngineJob::OnChannels(OnChannels { transfer, channels }) => parts.push((transfer, channels)),
            EngineJob::WriteRead(pairs) if pairs.is_mixed => parts.extend([(pairs.write, 1), (pairs.read(), 1)]),
            EngineJob::WriteRead(_) => {
                return refused("a read that follows a write", "h2c and c2h channels are not ordered with each other");
            }
        }
    }
    let all = parts.iter().map(|(_, channels)| u64::from(*channels)).sum::<u64>().max(1);
    let room = memory.len() / all / BEAT * BEAT;
    let mut streams: Vec<Stream> = Vec::new();
    for verb in [Verb::Load, Verb::Store] {
        let wanted: u64 = parts.iter().filter(|(one, _)| one.verb == verb).map(|(_, some)| u64::from(*some)).sum();
        if wanted > u64::from(limits.channels) {
            let because = format!("the design has {} of each direction", limits.channels);
            return refused(format!("the use of {wanted} channels of one direction"), because);
        }
    }
    for (transfer, channels) in parts {
        check(&transfer, channels, limits)?;
        for first in 0..u64::from(channels) {
            let is_like = |one: &&Stream| one.transfer.verb == transfer.verb;
            let channel = streams.iter().filter(is_like).count() as u32;
            let slots = slots(&transfer, memory.from + streams.len() as u64 * room, room)?;
            streams.push(Stream { channel, transfer, first, every: u64::from(channels), slots });
        }
    }
    let windows = |stream: &Stream| {
        let Transfer { window, bytes, .. } = stream.transfer;
        window.offset..window.offset + window.len.max(bytes)
    };
    let overlap = |one: &Stream, other: &Stream| {
        let (a, b) = (windows(one), windows(other));
        one.transfer != other.transfer && a.start < b.end && b.start < a.end
    };
    if streams.iter().any(|one| streams.iter().any(|other| overlap(one, other))) {
        return refused("several jobs with the same host memory", "their bytes could not be verified");
    }
    Ok(streams)
}

/// Checks a transfer of a job.
fn check(transfer: &Transfer, channels: u32, limits: &Limits) -> Result<(), Refusal> {
    let Transfer { card, partner, bytes, count, window, outstanding, .. } = *transfer;
    if card != 0 || partner != Partner::Host {
        return refused("DMA between cards", "the target is one card; use --peer with vfio-pci");
    }
    if bytes == 0 || count == 0 || channels == 0 {
        return refused("a transfer of nothing", "size, count and channels must be at least 1");
    }
    if outstanding.is_some_and(|outstanding| outstanding > 1) {
        return refused(
            format!("a depth of {} outstanding transfers", outstanding.unwrap_or(0)),
            "a call of the driver moves one transfer, and returns at its end: use several channels",
        );
    }
    let end = window.offset.checked_add(window.len.max(bytes));
    if end.is_none_or(|end| end > limits.mapped_bytes) {
        let because = format!("--window is at most {} here", format_size(limits.mapped_bytes));
        return refused(format!("a window of {} of host memory", format_size(window.len)), because);
    }
    // Otherwise two channels may be at the same place at once.
    let places = window.places(bytes);
    if channels > 1 && (window.pattern.is_random() || !places.is_multiple_of(u64::from(channels))) {
        return refused(
            format!("the use of {channels} channels for {places} offsets in host memory, or for random ones"),
            "each channel needs offsets of its own: use sequential ones, and a --window that is a multiple of channels x size",
        );
    }
    Ok(())
}

/// The places on the card of a stream, in `room` bytes from `start` on.
fn slots(transfer: &Transfer, start: u64, room: u64) -> Result<Slots, Refusal> {
    let Transfer { bytes, window, .. } = *transfer;
    let is_aligned = window.offset.is_multiple_of(BEAT) && window.step(bytes).is_multiple_of(BEAT);
    let beyond = if is_aligned { 0 } else { BEAT - 1 };
    let distance = bytes.saturating_add(beyond).checked_next_multiple_of(BEAT).unwrap_or(u64::MAX);
    // More places would only take time to verify.
    let count = (room.min(most_room(distance)) / distance).min(window.places(bytes));
    if count == 0 {
        return refused(
            format!("a transfer of {}", format_size(bytes)),
            format!(
                "each channel gets {} of --card-memory: make it at least {} for each channel",
                format_size(room),
                format_size(distance)
            ),
        );
    }
    Ok(Slots { start, distance, count })
}

/// Most bytes on the card of a stream, at least one place.
const fn most_room(distance: u64) -> u64 {
    const MOST: u64 = 64 << 20;
    if distance > MOST { distance } else { MOST }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_machine::{Descriptors, DmaCall, EngineWork, Fence, Pattern, Share, Step, Window, WriteRead, Writer};

    const MEMORY: CardMemory = CardMemory { from: 4096, to: 4096 + (64 << 10) };
    const LIMITS: Limits = Limits { memory: Some(MEMORY), channels: 2, mapped_bytes: 1 << 20 };

    fn transfer(verb: Verb, bytes: u64) -> Transfer {
        let window = Window { offset: 0, len: 256 << 10, pattern: Pattern::Sequential };
        Transfer { card: 0, verb, partner: Partner::Host, bytes, count: 4, window, outstanding: None }
    }

    fn of_jobs(jobs: Vec<EngineJob>) -> Result<Vec<Stream>, String> {
        match of(&Plan::new(EngineWork { jobs, memory: HostMemory::default() }, 1), &LIMITS).unwrap() {
            Ok(streams) => Ok(streams),
            Err(Refusal::Unsupported { what, because }) => Err(format!("{what}: {because}")),
            Err(Refusal::OutOfRange(_)) => Err("out of range".to_owned()),
        }
    }

    fn said(job: impl Into<Option<Transfer>>) -> String {
        let job = EngineJob::Transfer(job.into().unwrap());
        of_jobs(vec![job]).err().unwrap_or_default()
    }

    #[test]
    fn the_places_on_the_card_are_in_the_range_and_have_the_place_in_a_beat_of_those_in_host_memory() {
        for (bytes, offset) in [(64, 0), (100, 0), (1, 3), (4096, 64), (5000, 17), (16 << 10, 0)] {
            let window = Window { offset, len: 256 << 10, pattern: Pattern::Sequential };
            let asked = Transfer { window, ..transfer(Verb::Store, bytes) };
            let streams = of_jobs(vec![EngineJob::Transfer(asked)]).unwrap();
            let [stream] = streams.as_slice() else { panic!("{streams:?}") };
            let mut last_ends = 0;
            for number in 0..stream.slots.count {
                let (at, on_card) = stream.places(number);
                assert_eq!(at % BEAT, on_card % BEAT, "{bytes} B at {at}");
                assert!(on_card >= MEMORY.from.max(last_ends), "{bytes} B: {on_card:#x}");
                last_ends = on_card + bytes;
                assert!(last_ends <= MEMORY.to && last_ends <= stream.slots.start + stream.slots.len());
            }
        }
    }

    #[test]
    fn a_transfer_may_be_as_long_as_the_range_given_for_the_card_allows() {
        assert_eq!(said(transfer(Verb::Load, 64 << 10)), "");
        assert!(said(transfer(Verb::Load, (64 << 10) + 1)).contains("each channel gets 64KiB of --card-memory"));
        let odd = |bytes| {
            let window = Window { offset: 1, len: 256 << 10, pattern: Pattern::Sequential };
            said(Transfer { window, ..transfer(Verb::Load, bytes) })
        };
        assert_eq!(odd((64 << 10) - 63), "");
        assert!(odd((64 << 10) - 62).contains("make it at least"));
    }

    #[test]
    fn both_directions_and_several_channels_have_their_own_places() {
        let write = transfer(Verb::Store, 4096);
        let read = Window { offset: 256 << 10, ..write.window };
        let mixed = EngineJob::WriteRead(WriteRead { write, read, is_mixed: true });
        let streams = of_jobs(vec![mixed]).unwrap();
        let starts: Vec<_> = streams.iter().map(|one| (one.transfer.verb, one.channel, one.slots.start)).collect();
        assert_eq!(starts, [(Verb::Store, 0, 4096), (Verb::Load, 0, 4096 + (32 << 10))]);

        let dealt = |channels| EngineJob::OnChannels(OnChannels { transfer: write, channels });
        let streams = of_jobs(vec![dealt(2)]).unwrap();
        let mut numbers: Vec<u64> =
            streams.iter().flat_map(|one| (0..one.share(5)).map(|nth| one.number(nth))).collect();
        assert_eq!(streams.iter().map(|one| one.share(5)).collect::<Vec<_>>(), [3, 2]);
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 1, 2, 3, 4]);
        assert!(
            of_jobs(vec![dealt(3)]).unwrap_err().contains("the use of 3 channels of one direction: the design has 2")
        );
        let of_3_places = Transfer { window: Window { len: 3 << 12, ..write.window }, ..write };
        let two = EngineJob::OnChannels(OnChannels { transfer: of_3_places, channels: 2 });
        assert!(of_jobs(vec![two]).unwrap_err().contains("each channel needs offsets of its own"));
        let one = |transfer| EngineJob::OnChannels(OnChannels { transfer, channels: 1 });
        let both = vec![one(write), one(transfer(Verb::Load, 4096))];
        let said = of_jobs(both).unwrap_err();
        assert!(said.contains("the same host memory"), "{said}");
    }

    #[test]
    fn what_a_call_of_the_driver_cannot_do_is_refused() {
        let load = transfer(Verb::Load, 64);
        assert_eq!(said(Transfer { outstanding: Some(1), ..load }), "");
        assert!(said(Transfer { outstanding: Some(2), ..load }).contains("use several channels"));
        assert!(said(Transfer { card: 1, ..load }).contains("between cards"));
        let window = |len| said(Transfer { window: Window { len, ..load.window }, ..load });
        assert_eq!(window(1 << 20), "");
        assert!(window((1 << 20) + 1).contains("--window is at most 1MiB"));
        let followed =
            EngineJob::WriteRead(WriteRead { write: transfer(Verb::Store, 64), read: load.window, is_mixed: false });
        assert!(of_jobs(vec![followed]).unwrap_err().contains("not ordered"));
        let memory = HostMemory { written_by: Writer::Nobody, ..HostMemory::default() };
        let cold = EngineWork { jobs: vec![EngineJob::Transfer(load)], memory };
        assert!(of(&Plan::new(cold, 1), &LIMITS).unwrap().is_err());
        assert!(of(&Plan::new(Step::Fence(Fence::Sfence), 1), &LIMITS).is_none());
        let call = |completion| {
            let (share, descriptors) = (Share::Doorbell, Descriptors::Fetched);
            Plan::new(DmaCall { transfer: load, channel: 0, share, descriptors, completion }, 1)
        };
        let why = |plan: &Plan, limits: &Limits| match of(plan, limits).unwrap().unwrap_err() {
            Refusal::Unsupported { because, .. } => because,
            Refusal::OutOfRange(_) => "out of range".to_owned(),
        };
        assert!(why(&call(Completion::Interrupt), &LIMITS).contains("use --device xdma"));
        assert!(why(&call(Completion::Flag), &LIMITS).contains("a whole call of the driver"));
        let read = EngineWork { jobs: vec![EngineJob::Transfer(load)], memory: HostMemory::default() };
        assert!(why(&Plan::new(read, 1), &Limits { memory: None, ..LIMITS }).contains("name them with --card-memory"));
    }
}
