//! Rules that every plan obeys, whatever machine runs it.

use crate::{
    Allocation, Arguments, BufferHandoff, Channel, CoreWork, Descriptors, DmaCall, DriverCall, EngineJob, Exchange,
    Launch, MapUnmap, Operation, Partner, Pattern, Plan, QueueRequest, Relay, RuntimeCopy, Step, Stream, Task,
    Transfer, Unsupported, Verb, Work,
};
use lanemark_compute::Workload;
use lanemark_units::{MemoryType, format_size};

/// A part of a plan that no machine runs, and the rule that it breaks.
///
/// ```
/// use lanemark_machine::{MapUnmap, Means, Plan};
/// let plan = Plan::new(MapUnmap { means: Means::Pool, bytes: 5000, pairs: 1 }, 1);
/// assert_eq!(
///     plan.check().unwrap_err().to_string(),
///     "mapping 5000 B by mapped pool is impossible: the size of a pool object must be a power of two"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} is impossible: {because}")]
pub struct Impossible {
    /// The part of the plan.
    pub what: String,
    /// The rule.
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
            .map_err(|because| Impossible::new(format!("{access} in interleaved lines"), because)),
        Step::Driver(DriverCall { call_bytes: 0, .. }) => {
            Err(Impossible::new("a driver call of 0 B", "such calls move no data"))
        }
        Step::Driver(_) | Step::Fence(_) | Step::Map(_) | Step::FlushLines(_) | Step::Pause(_) | Step::Copy(_) => {
            Ok(())
        }
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
        Operation::Clock(_) | Operation::KernelCall(_) | Operation::LineLoad(_) => Ok(()),
    }
}

fn check_call(call: &DmaCall) -> Checked {
    check_transfer(&call.transfer)?;
    let refused = |because: &str| Err(Impossible::new("a driver call for a transfer by a card", because));
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

fn check_exchange(Exchange { cores: [first, second], message, answer }: &Exchange) -> Checked {
    if first == second {
        return Err(Impossible::new("two lanes on one core", "each core runs one lane"));
    }
    match (message, answer) {
        (Channel::Event { number: there }, Channel::Event { number: back }) if there != back => Ok(()),
        (Channel::Line { access, span: there }, Channel::Line { access: other, span: back }) if access == other => {
            for span in [there, back] {
                if span.len != 64 || !span.at.offset.is_multiple_of(64) {
                    let what = format!("a message in {} B at {}", span.len, span.at);
                    return Err(Impossible::new(what, "a message line is 64 B at a multiple of 64 B"));
                }
            }
            Ok(())
        }
        _ => {
            let because = "both must be lines stored by the same instruction, or two different events";
            Err(Impossible::new("this pair of channels", because))
        }
    }
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
    let cards: Vec<u32> = jobs.iter().map(|job| job.transfer().card).collect();
    if repeated(&cards).is_some() {
        let because = "each card does one transfer at a time here";
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
        QueueRequest::Compute(compute) => match &compute.work {
            Workload::StreamCopy(copy) => {
                copy.check().map_err(|because| Impossible::new("kernels that copy streams", because))
            }
            Workload::Spmv(_) => Ok(()),
        },
    }
}
