//! Rules that every plan obeys, whatever machine runs it.

use crate::{
    Allocation, Arguments, BlockCopy, BufferHandoff, CoreWork, Descriptors, DmaCall, DriverCall, EngineJob, Exchange,
    Handshake, Launch, MapUnmap, Medium, Operation, Partner, Pattern, Plan, QueueRequest, Relay, RuntimeCopy,
    SmallCopies, Step, Stream, Task, Transfer, Unsupported, Verb, Work,
};
use lanemark_compute::{Spmv, Workload};
use lanemark_units::{MemoryType, format_size};

/// A part of a plan that no machine runs, and the rule that it breaks.
///
/// ```
/// use lanemark_machine::{MapUnmap, Means, Plan};
/// let plan = Plan::new(MapUnmap { means: Means::Pool, bytes: 5000, pairs: 1 }, 1);
/// assert_eq!(
///     plan.check().unwrap_err().to_string(),
///     "mapping 5000 B by pool take is impossible: the size of a pool object must be a power of two"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} is impossible: {because}")]
pub struct Impossible {
    /// The part of the plan, as a noun phrase: the subject of the message.
    pub what: String,
    /// The rule that it breaks, as a clause.
    pub because: String,
}

impl Impossible {
    fn new(what: impl Into<String>, because: impl Into<String>) -> Impossible {
        Impossible { what: what.into(), because: because.into() }
    }

    /// The refusal of a machine of this name.
    #[must_use]
    pub fn on(self, machine: &str) -> Unsupported {
        Unsupported { what: self.what, machine: machine.to_owned(), because: self.because }
    }
}

type Checked = Result<(), Impossible>;

impl Work {
    /// Checks that the cores exist, of which a machine has `cores`.
    ///
    /// # Errors
    /// The first core that does not exist.
    pub fn check_cores(&self, cores: u32) -> Checked {
        match self.cores().into_iter().find(|core| *core >= cores) {
            None => Ok(()),
            Some(core) => Err(Impossible::new(
                format!("core {core}"),
                format!("{cores} cores are usable, counted from 0, and each thread takes one"),
            )),
        }
    }
}

impl Work {
    /// Checks that the DMA engine of each card has the channels that the work uses. `is_full_duplex`: whether it reads
    /// and writes concurrently with one channel.
    ///
    /// # Errors
    /// The first job or call with more channels.
    pub fn check_channels(&self, channels: u32, is_full_duplex: bool) -> Checked {
        for lane in self.lanes() {
            let Task::DmaCall(call) = &lane.task else { continue };
            if call.channel >= channels {
                return Err(Impossible::new(
                    format!("a driver call on channel {} of a card", call.channel),
                    format!("its DMA engine has {channels} (dma.channels), counted from 0"),
                ));
            }
        }
        for job in self.jobs() {
            let EngineJob::OnChannels(dealt) = job else { continue };
            if dealt.channels > channels {
                let wanted = dealt.channels;
                return Err(Impossible::new(
                    format!("{wanted} channels of a card"),
                    format!(
                        "its DMA engine has {channels} (dma.channels): use at most as many, or --with dma.channels={wanted}"
                    ),
                ));
            }
        }
        let cards: Vec<u32> = self.jobs().iter().map(|job| job.transfer().card).collect();
        if repeated(&cards).is_some() && channels < 2 && !is_full_duplex {
            let because = "its DMA engine does one job at a time (dma.full_duplex is false, dma.channels is 1): use --with \
                           dma.channels=2 or --with dma.full_duplex=true";
            return Err(Impossible::new("a write and a read of one card as two jobs", because));
        }
        Ok(())
    }
}

impl Plan {
    /// Checks the rules that hold on every machine. A machine that accepts a plan may rely on them.
    ///
    /// # Errors
    /// The first rule that the plan breaks.
    pub fn check(&self) -> Checked {
        let is_empty = match &self.work {
            Work::Cores(cores) => cores.lanes.is_empty(),
            Work::Engines(engines) => engines.jobs.is_empty(),
            Work::Exchange(_) | Work::Relay(_) | Work::Queue(_) => false,
        };
        if self.passes == 0 {
            return Err(Impossible::new("a plan with no iterations", "an empty sample measures only the timer"));
        }
        if is_empty {
            return Err(Impossible::new("an empty plan", "there is nothing to time"));
        }
        match &self.work {
            Work::Cores(cores) => check_cores(cores),
            Work::Exchange(exchange) => check_exchange(exchange),
            Work::Engines(engines) => check_jobs(&engines.jobs),
            Work::Relay(relay) => check_relay(relay),
            Work::Queue(queue) => check_request(&queue.request),
        }
    }
}

/// The first value that an earlier one equals.
fn repeated<T: PartialEq + Copy>(values: &[T]) -> Option<T> {
    (1..values.len()).find(|place| values[..*place].contains(&values[*place])).map(|place| values[place])
}

fn check_cores(CoreWork { lanes, before }: &CoreWork) -> Checked {
    let cores: Vec<u32> = lanes.iter().map(|lane| lane.core).collect();
    if repeated(&cores).is_some() {
        return Err(Impossible::new("two lanes on one core", "each core runs one lane"));
    }
    let mut channels = Vec::new();
    for lane in lanes {
        match &lane.task {
            Task::Steps(steps) if steps.is_empty() => {
                return Err(Impossible::new("an iteration without steps", "there is nothing to time"));
            }
            Task::Steps(steps) => steps.iter().try_for_each(check_step)?,
            Task::Operation(operation) => check_operation(operation)?,
            Task::DmaCall(call) => {
                check_call(call)?;
                channels.push([call.transfer.card, call.channel]);
            }
        }
    }
    if repeated(&channels).is_some() {
        let because = "its driver makes one call at a time on each channel; use other channels for further calls";
        return Err(Impossible::new("two concurrent driver calls for one channel of a card", because));
    }
    before.iter().try_for_each(check_step)
}

fn check_step(step: &Step) -> Checked {
    match step {
        Step::Stream(Stream { access, span, order, .. }) => (order.check(*access, span))
            .map_err(|because| Impossible::new(format!("{access} over {} B, {order}", span.len), because)),
        Step::Driver(DriverCall { call_bytes: 0, .. }) => {
            Err(Impossible::new("a driver call that copies 0 B", "such calls move no data"))
        }
        Step::Copy(BlockCopy { access, zone, block_bytes }) => {
            if *block_bytes == 0 || zone.len == 0 || !zone.len.is_multiple_of(*block_bytes) {
                let what = format!("copies of {block_bytes} B by {access} to {} B", zone.len);
                return Err(Impossible::new(what, "the zone must be one or more whole blocks"));
            }
            Ok(())
        }
        Step::Driver(_) | Step::Fence(_) | Step::Map(_) | Step::FlushLines(_) | Step::Pause(_) => Ok(()),
    }
}

fn check_operation(operation: &Operation) -> Checked {
    match operation {
        Operation::MapUnmap(mapping) => mapping.check().map_err(|because| {
            let MapUnmap { means, bytes, .. } = mapping;
            Impossible::new(format!("mapping {bytes} B by {means}"), because)
        }),
        Operation::BufferHandoff(handoff) => handoff.check().map_err(|because| {
            let BufferHandoff { bytes, discipline, .. } = handoff;
            Impossible::new(format!("sharing {bytes} B with a device, {discipline}"), because)
        }),
        Operation::Handshake(handshake) => handshake.check().map_err(|because| {
            let Handshake { data, access, .. } = handshake;
            Impossible::new(format!("a request of {} B by {access} to a device", data.len), because)
        }),
        Operation::Clock(_) | Operation::KernelCall(_) | Operation::LineLoad(_) => Ok(()),
    }
}

fn check_call(call: &DmaCall) -> Checked {
    check_transfer(&call.transfer)?;
    let refused = |because: &str| Err(Impossible::new("a driver call that starts DMA", because));
    if call.transfer.partner != Partner::Host {
        return refused("the driver maps host memory, not other cards");
    }
    if call.transfer.outstanding.is_some() {
        return refused("a call is one transfer, and the next call begins after it");
    }
    match call.descriptors {
        Descriptors::Written(memory_type) if !matches!(memory_type, MemoryType::Uc | MemoryType::Wc) => {
            refused("descriptors are written through a mapping that is UC or WC")
        }
        _ => Ok(()),
    }
}

fn check_exchange(Exchange { cores: [first, second], medium }: &Exchange) -> Checked {
    if first == second {
        return Err(Impossible::new("two lanes on one core", "each core runs one lane"));
    }
    let Medium::Lines { message, answer, .. } = medium else { return Ok(()) };
    for span in [message, answer] {
        if span.len != 64 || !span.at.offset.is_multiple_of(64) {
            let what = format!("a message in {} B at {}", span.len, span.at);
            return Err(Impossible::new(what, "a message line is 64 B at a multiple of 64 B"));
        }
    }
    Ok(())
}

fn check_transfer(transfer: &Transfer) -> Checked {
    let Transfer { verb, bytes, count, outstanding, card, partner, .. } = *transfer;
    let refused = |because: String| {
        let verb = if verb == Verb::Store { "a write" } else { "a read" };
        Err(Impossible::new(format!("{verb} by a card's DMA engine"), because))
    };
    if bytes == 0 || count == 0 || outstanding == Some(0) {
        return refused("it moves nothing".to_owned());
    }
    match partner {
        Partner::Peer { card: peer, .. } if peer == card => refused(format!("card {card} is no peer of card {card}")),
        Partner::Peer { .. } | Partner::Host => Ok(()),
    }
}

fn check_jobs(jobs: &[EngineJob]) -> Checked {
    for job in jobs {
        job.directions().try_for_each(|transfer| check_transfer(&transfer))?;
        match job {
            EngineJob::WriteRead(pairs) if (pairs.write.verb, pairs.write.partner) != (Verb::Store, Partner::Host) => {
                let because = "the write must be to host memory, which is then read";
                return Err(Impossible::new("a write and a read by a card's DMA engine", because));
            }
            EngineJob::OnChannels(dealt) if dealt.channels == 0 => {
                return Err(Impossible::new("0 channels of a card", "a transfer needs a channel"));
            }
            EngineJob::Transfer(_) | EngineJob::WriteRead(_) | EngineJob::OnChannels(_) => {}
        }
    }
    let is_single = |job: &EngineJob| match job {
        EngineJob::Transfer(_) => true,
        EngineJob::OnChannels(dealt) => dealt.channels == 1,
        EngineJob::WriteRead(_) => false,
    };
    let is_refused = |one: &EngineJob, other: &EngineJob| {
        let is_pair = is_single(one) && is_single(other) && one.transfer().verb != other.transfer().verb;
        one.transfer().card == other.transfer().card && !is_pair
    };
    if jobs.iter().enumerate().any(|(nth, one)| jobs[..nth].iter().any(|other| is_refused(one, other))) {
        let because = "each card does one transfer at a time in each direction; a write and a read of one card need \
                       --channels 2, on an engine with dma.channels of 2 or dma.full_duplex";
        return Err(Impossible::new("two concurrent transfers of one card", because));
    }
    Ok(())
}

fn check_relay(relay: &Relay) -> Checked {
    let refused = |because: String| Err(Impossible::new("a relay by cards", because));
    if relay.cards.is_empty() {
        return refused("it has no cards".to_owned());
    }
    if let Some(card) = repeated(&relay.cards) {
        return refused(format!("card {card} is listed twice, but has each of its queues once"));
    }
    relay.transfers().iter().try_for_each(check_transfer)?;
    let (from, to) = (&relay.from, &relay.to);
    if (from.pattern, from.len) != (to.pattern, to.len) || from.pattern != Pattern::Sequential {
        return refused(
            "the windows of the reads and the writes must have the same length and be sequential".to_owned(),
        );
    }
    let [from, to] =
        [from, to].map(|window| (window.offset, window.offset.saturating_add(window.len.max(relay.bytes))));
    if from.0 < to.1 && to.0 < from.1 {
        return refused("it would overwrite its source; use windows that do not overlap".to_owned());
    }
    Ok(())
}

fn check_request(request: &QueueRequest) -> Checked {
    match request {
        QueueRequest::Launch(Launch { kernels, arguments: Arguments { count, allocation }, .. }) => {
            if *kernels == 0 || *kernels > Launch::MOST_KERNELS {
                let because = format!("one iteration launches 1 to {} kernels", Launch::MOST_KERNELS);
                return Err(Impossible::new(format!("{kernels} launches"), because));
            }
            if *count > Arguments::MOST {
                let because = format!("a kernel has at most {} arguments", Arguments::MOST);
                return Err(Impossible::new(format!("a kernel with {count} arguments"), because));
            }
            if *count > 0 && !matches!(allocation, Allocation::Buffer | Allocation::Device) {
                let because = "kernel arguments are buffers or USM device memory";
                return Err(Impossible::new(format!("an argument as {allocation}"), because));
            }
            Ok(())
        }
        QueueRequest::Copy(RuntimeCopy { bytes, .. }) => {
            if *bytes == 0 || *bytes > RuntimeCopy::MOST_BYTES {
                let because = format!("a copy has 1 B to {}", format_size(RuntimeCopy::MOST_BYTES));
                return Err(Impossible::new(format!("a copy of {bytes} B"), because));
            }
            Ok(())
        }
        QueueRequest::SmallCopies(copies) => check_small_copies(copies),
        QueueRequest::Compute(compute) => match &compute.work {
            Workload::StreamCopy(copy) => {
                copy.check().map_err(|because| Impossible::new("kernels that copy streams", because))
            }
            Workload::Spmv(Spmv { kernels, ports_each, .. }) if *kernels == 0 || *ports_each == 0 => {
                let what = format!("{kernels} kernels with {ports_each} memory ports each");
                Err(Impossible::new(what, "at least one kernel and one port per kernel are needed"))
            }
            Workload::Spmv(_) => Ok(()),
        },
    }
}

fn check_small_copies(copies: &SmallCopies) -> Checked {
    let SmallCopies { bytes, count, .. } = *copies;
    if count == 0 || count > SmallCopies::MOST_COPIES {
        let because = format!("one iteration copies 1 to {} pieces", SmallCopies::MOST_COPIES);
        return Err(Impossible::new(format!("{count} pieces"), because));
    }
    if bytes == 0 || copies.memory_bytes() > SmallCopies::MOST_BYTES {
        let most = format_size(SmallCopies::MOST_BYTES);
        let because = format!("the pieces and the gaps between them take 1 B to {most} of host memory");
        return Err(Impossible::new(format!("{count} pieces of {bytes} B"), because));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Access, Completion, CopyBy, Discipline, EngineWork, HostMemory, HostWait, Lane, LaunchBy, Medium, OnChannels,
        Order, Share, Span, Verb, Width, Window, WriteRead,
    };
    use lanemark_units::{BarOffset, Ticks};

    const WINDOW: Window = Window { offset: 0, len: 4096, pattern: Pattern::Sequential };
    const WRITE: Transfer = Transfer {
        card: 0,
        verb: Verb::Store,
        partner: Partner::Host,
        bytes: 64,
        count: 1,
        window: WINDOW,
        outstanding: None,
    };
    const LAUNCH: Launch =
        Launch { kernels: 1, by: LaunchBy::Calls, wait: HostWait::Finish, arguments: Arguments::NONE };

    fn span(offset: u64, len: u64) -> Span {
        Span { at: BarOffset { bar: 0, offset }, len, memory_type: MemoryType::Wb }
    }

    fn store(len: u64, order: Order) -> Step {
        Step::Stream(Stream { order, ..Stream::over(Verb::Store, Access::Plain(Width::B8), span(0, len)) })
    }

    fn call() -> DmaCall {
        let descriptors = Descriptors::Written(MemoryType::Uc);
        DmaCall { transfer: WRITE, channel: 0, share: Share::Doorbell, descriptors, completion: Completion::Flag }
    }

    fn relay() -> Relay {
        let (from, to) = (WINDOW, Window { offset: 4096, ..WINDOW });
        Relay { cards: vec![0, 1], bar: 0, at_peers: WINDOW, bytes: 64, count: 1, from, to, is_stored: false }
    }

    fn lines(message: Span) -> Medium {
        Medium::Lines { access: Access::Plain(Width::B8), message, answer: span(64, 64) }
    }

    fn pieces(bytes: u64, count: u32) -> SmallCopies {
        SmallCopies { verb: Verb::Store, bytes, count, by: CopyBy::Loop }
    }

    fn copy(bytes: u64) -> RuntimeCopy {
        RuntimeCopy { verb: Verb::Store, bytes, wait: HostWait::Event, allocation: Allocation::Buffer }
    }

    /// The rule of each row: a plan that obeys it, one that just breaks it, and a word of the message.
    #[test]
    fn a_plan_one_step_beyond_a_rule_is_refused_and_one_at_the_rule_is_not() {
        let lane = |core| Lane { core, task: store(64, Order::Ascending).into() };
        let jobs =
            |cards: [u32; 2]| Plan::new(cards.map(|card| EngineJob::Transfer(Transfer { card, ..WRITE })).to_vec(), 1);
        let calls = |channels: [u32; 2]| {
            let lane = |(core, channel)| Lane { core, task: DmaCall { channel, ..call() }.into() };
            Plan::new((0..).zip(channels).map(lane).collect::<Vec<Lane>>(), 1)
        };
        let copy_to = |len| BlockCopy { access: Access::Memcpy, zone: span(0, len), block_bytes: 64 };
        let driver =
            |call_bytes| Step::Driver(DriverCall { verb: Verb::Load, span: span(0, 64), call_bytes, width: Width::B8 });
        let handoff = |bytes| BufferHandoff { verb: Verb::Store, discipline: Discipline::Coherent, bytes };
        let request = |len, status, memory_type| {
            let data = Span { memory_type, ..span(64, len) };
            let status = BarOffset { bar: 0, offset: status };
            Handshake { data, access: Access::Plain(Width::B8), status, busy: Ticks::ZERO }
        };
        let asked = request(8, 56, MemoryType::Wc);
        let pairs = |verb| WriteRead { write: Transfer { verb, ..WRITE }, read: WINDOW, is_mixed: false };
        let arguments = |count| Launch { arguments: Arguments { count, allocation: Allocation::Buffer }, ..LAUNCH };
        let times = |times| store(8, Order::SameAddress { times });
        let peer = Transfer { partner: Partner::Peer { card: 1, bar: 0 }, ..WRITE };
        let empty = EngineWork { jobs: Vec::new(), memory: HostMemory::default() };
        let rows = [
            (Plan::new(lane(0).task, 1), Plan::new(lane(0).task, 0), "no iterations"),
            (Plan::new(WRITE, 1), Plan::new(empty, 1), "an empty plan"),
            (Plan::new(vec![lane(0)], 1), Plan::new(Vec::<Lane>::new(), 1), "an empty plan"),
            (Plan::new(vec![lane(0)], 1), Plan::new(Vec::<Step>::new(), 1), "without steps"),
            (Plan::new(vec![lane(0), lane(1)], 1), Plan::new(vec![lane(1), lane(1)], 1), "two lanes on one core"),
            (Plan::new(times(9), 1), Plan::new(store(16, Order::SameAddress { times: 9 }), 1), "cover the whole span"),
            (Plan::new(Step::Copy(copy_to(128)), 1), Plan::new(Step::Copy(copy_to(127)), 1), "whole blocks"),
            (Plan::new(driver(1), 1), Plan::new(driver(0), 1), "move no data"),
            (Plan::new(handoff(64), 1), Plan::new(handoff(65), 1), "64 B lines"),
            (Plan::new(asked, 1), Plan::new(request(12, 56, MemoryType::Wc), 1), "whole accesses"),
            (Plan::new(asked, 1), Plan::new(request(8, 57, MemoryType::Wc), 1), "aligned to its 8 B"),
            (Plan::new(asked, 1), Plan::new(request(8, 64, MemoryType::Wc), 1), "outside the data"),
            (
                Plan::new(request(8, 72, MemoryType::Uc), 1),
                Plan::new(request(16, 72, MemoryType::Uc), 1),
                "outside the data",
            ),
            (Plan::new(asked, 1), Plan::new(request(8, 56, MemoryType::Wt), 1), "keep the old result"),
            (Plan::new(asked, 1), Plan::new(Handshake { access: Access::Memcpy, ..asked }, 1), "fixed width"),
            (Plan::new(call(), 1), Plan::new(DmaCall { transfer: peer, ..call() }, 1), "not other cards"),
            (
                Plan::new(call(), 1),
                Plan::new(DmaCall { transfer: Transfer { outstanding: Some(1), ..WRITE }, ..call() }, 1),
                "begins after it",
            ),
            (
                Plan::new(DmaCall { descriptors: Descriptors::Written(MemoryType::Wc), ..call() }, 1),
                Plan::new(DmaCall { descriptors: Descriptors::Written(MemoryType::Wb), ..call() }, 1),
                "UC or WC",
            ),
            (calls([0, 1]), calls([1, 1]), "one call at a time"),
            (
                Plan::new(Exchange { cores: [0, 1], medium: Medium::Events }, 1),
                Plan::new(Exchange { cores: [1, 1], medium: Medium::Events }, 1),
                "two lanes on one core",
            ),
            (
                Plan::new(Exchange { cores: [0, 1], medium: lines(span(0, 64)) }, 1),
                Plan::new(Exchange { cores: [0, 1], medium: lines(span(32, 64)) }, 1),
                "a multiple of 64 B",
            ),
            (Plan::new(WRITE, 1), Plan::new(Transfer { count: 0, ..WRITE }, 1), "moves nothing"),
            (Plan::new(peer, 1), Plan::new(Transfer { card: 1, ..peer }, 1), "no peer"),
            (jobs([0, 1]), jobs([1, 1]), "one transfer at a time"),
            (
                Plan::new(OnChannels { transfer: WRITE, channels: 1 }, 1),
                Plan::new(OnChannels { transfer: WRITE, channels: 0 }, 1),
                "needs a channel",
            ),
            (Plan::new(pairs(Verb::Store), 1), Plan::new(pairs(Verb::Load), 1), "to host memory"),
            (Plan::new(relay(), 1), Plan::new(Relay { cards: vec![0, 0], ..relay() }, 1), "listed twice"),
            (Plan::new(relay(), 1), Plan::new(Relay { cards: vec![], ..relay() }, 1), "no cards"),
            (
                Plan::new(relay(), 1),
                Plan::new(Relay { to: Window { offset: 4095, ..WINDOW }, ..relay() }, 1),
                "overwrite its source",
            ),
            (
                Plan::new(Launch { kernels: Launch::MOST_KERNELS, ..LAUNCH }, 1),
                Plan::new(Launch { kernels: Launch::MOST_KERNELS + 1, ..LAUNCH }, 1),
                "1 to 10000 kernels",
            ),
            (Plan::new(arguments(Arguments::MOST), 1), Plan::new(arguments(Arguments::MOST + 1), 1), "at most 16"),
            (
                Plan::new(copy(RuntimeCopy::MOST_BYTES), 1),
                Plan::new(copy(RuntimeCopy::MOST_BYTES + 1), 1),
                "1 B to 256MiB",
            ),
            (
                Plan::new(pieces(64, SmallCopies::MOST_COPIES), 1),
                Plan::new(pieces(64, SmallCopies::MOST_COPIES + 1), 1),
                "1 to 500 pieces",
            ),
            (Plan::new(pieces(1 << 20, 128), 1), Plan::new(pieces(1 << 20, 129), 1), "1 B to 256MiB of host memory"),
        ];
        for (good, bad, word) in rows {
            assert_eq!(good.check(), Ok(()), "{good:?}");
            let error = bad.check().unwrap_err().to_string();
            assert!(error.contains(word), "{error}: {word}");
        }
    }

    #[test]
    fn as_many_channels_as_the_engine_has_are_usable() {
        let on = |channels| Work::from(OnChannels { transfer: WRITE, channels });
        assert_eq!(on(2).check_channels(2, false), Ok(()));
        let error = on(3).check_channels(2, true).unwrap_err();
        assert_eq!(error.what, "3 channels of a card");
        assert!(error.because.starts_with("its DMA engine has 2 (dma.channels)"), "{}", error.because);
        let one = |verb| EngineJob::OnChannels(OnChannels { transfer: Transfer { verb, ..WRITE }, channels: 1 });
        let both = Work::from(vec![one(Verb::Store), one(Verb::Load)]);
        assert_eq!([both.check_channels(2, false), both.check_channels(1, true)], [Ok(()), Ok(())]);
        assert!(both.check_channels(1, false).unwrap_err().because.contains("dma.channels is 1"));
    }

    #[test]
    fn the_last_core_is_usable_and_the_next_one_is_not() {
        let work = Work::from(Exchange { cores: [0, 3], medium: Medium::Events });
        assert_eq!(work.check_cores(4), Ok(()));
        assert_eq!(work.check_cores(3).unwrap_err().what, "core 3");
        assert_eq!(Work::from(WRITE).check_cores(0), Ok(()), "a card needs no core");
    }
}
