//! Methods for one direction, traffic and size.

use super::figure::figure;
use lanemark_bench::{Axes, Case, Effort, Question, question};
use lanemark_machine::{Completion, Descriptors, Fence, Share};
use lanemark_method::{AccessPath, CopyDirection, Flow, Method, Peer, Verb};
use lanemark_platform::Platform;
use lanemark_record::Answer;
use lanemark_record::guidance::Traffic;
use lanemark_runner::{Answerer, Cancel, OpenTarget};
use lanemark_units::MemoryType;

/// A method as a case of a question.
#[derive(Clone)]
pub(super) struct Candidate {
    pub(super) question: &'static Question,
    pub(super) case: Case,
    pub(super) traffic: Traffic,
    /// Its kind: methods of one kind differ in details only.
    pub(super) kind: Kind,
}

/// Kind of a method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Accesses of a core to memory of this type; WT stands for both cached types, WT and WP.
    Core(MemoryType),
    /// DMA whose descriptors are queued.
    Dma,
    /// DMA that a core starts and waits for.
    Call(Share, Completion),
    /// Copies by a runtime.
    Runtime,
}

impl Candidate {
    /// The figure by formula; `None` without one.
    pub(super) fn formula(&self, target: &mut OpenTarget) -> Option<f64> {
        let answer = target.ask_formulas(self.question, &self.case, &self.effort()).ok()?;
        figure(self.traffic, &answer, self.case.size)
    }

    /// The answer simulated on a new machine, with its limit, and its figure.
    ///
    /// DMA is simulated twice, and the second answer counts: its translations and descriptors are then as warm as those of
    /// a program that repeats its transfers.
    ///
    /// # Errors
    /// The reason why the platform has no answer; any, if `cancel` is set.
    pub(super) fn simulate(&self, platform: &Platform, cancel: &Cancel) -> Result<(Answer, f64), String> {
        let mut target = OpenTarget::cancelled_by(platform, cancel).map_err(|error| error.to_string())?;
        let mut answer = || target.answer(Answerer::Machines, self.question, &self.case, &self.effort());
        if !matches!(self.kind, Kind::Core(_)) {
            answer().map_err(|error| error.to_string())?;
        }
        let answer = answer().map_err(|error| error.to_string())?;
        let figure = figure(self.traffic, &answer, self.case.size).ok_or("it has no figure")?;
        Ok((answer, figure))
    }

    /// A single transfer is one iteration.
    fn effort(&self) -> Effort {
        let passes = (self.traffic == Traffic::Single).then_some(1);
        Effort { simulated_passes: passes, ..Effort::default() }
    }
}

/// The questions whose cases are methods of a direction and traffic.
fn questions(direction: CopyDirection, traffic: Traffic) -> &'static [&'static str] {
    match (direction, traffic) {
        (CopyDirection::ToDevice, Traffic::Single) => &["mmio_write_bandwidth", "dma_or_mmio", "runtime_copy"],
        (CopyDirection::FromDevice, Traffic::Single) => {
            &["mmio_read_bandwidth", "streaming_load_bandwidth", "dma_or_mmio", "runtime_copy"]
        }
        (CopyDirection::ToDevice, Traffic::Stream) => &["mmio_write_bandwidth", "dma_read_bandwidth"],
        (CopyDirection::FromDevice, Traffic::Stream) => {
            &["mmio_read_bandwidth", "streaming_load_bandwidth", "dma_write_bandwidth"]
        }
    }
}

/// All methods that the target has. Reasons why a question has none are added to `unanswered`, once.
pub(super) fn candidates(
    target: &OpenTarget,
    direction: CopyDirection,
    traffic: Traffic,
    size: u64,
    unanswered: &mut Vec<String>,
) -> Vec<Candidate> {
    let flow = Flow { card: 0, verb: Verb::Load, peer: Peer::Host };
    let mut found: Vec<Candidate> = Vec::new();
    for question in questions(direction, traffic).iter().filter_map(|name| question(name)) {
        // The question is about DMA writes to host memory unless a flow is named.
        let is_of_flow = question.name == "dma_or_mmio" && direction == CopyDirection::ToDevice;
        let flows = is_of_flow.then(|| vec![flow]);
        let axes = Axes { sizes: Some(vec![size]), flows, ..Axes::default() };
        let cases = target.cases(question, &axes);
        if cases.is_empty()
            && let Some(left_out) = (question.left_out)(target.facts())
            && question.name != "runtime_copy"
        {
            let text = format!("{}: {}", question.name, left_out.because);
            if !unanswered.contains(&text) {
                unanswered.push(text);
            }
        }
        for case in cases {
            let Some(kind) = kind(&case.method, direction) else { continue };
            if case.alignment == 0 {
                found.push(Candidate { question, case, traffic, kind });
            }
        }
    }
    with_every_call(&mut found);
    found
}

/// The kind of a method, if it moves bytes in this direction.
fn kind(method: &Method, direction: CopyDirection) -> Option<Kind> {
    match method {
        // Combined stores of a part of a line end with a fence.
        Method::Core(core) if matches!(core.fence, None | Some(Fence::Sfence)) => match core.path {
            AccessPath::Pointer => Some(Kind::Core(match core.memory_type {
                MemoryType::Wp => MemoryType::Wt,
                other => other,
            })),
            _ => None,
        },
        Method::Dma { outstanding: None, .. } => Some(Kind::Dma),
        Method::DmaCall { share, completion, .. } => Some(Kind::Call(*share, *completion)),
        Method::RuntimeCopy { direction: copied, .. } if *copied == direction => Some(Kind::Runtime),
        _ => None,
    }
}

/// Adds the calls that the question does not have: every notification and every transfer of descriptors, by a driver
/// and by a program that writes descriptors itself.
fn with_every_call(found: &mut Vec<Candidate>) {
    let Some(one) = found.iter().find(|candidate| matches!(candidate.kind, Kind::Call(..))).cloned() else { return };
    found.retain(|candidate| !matches!(candidate.kind, Kind::Call(..)));
    for share in [Share::List, Share::Call] {
        for completion in Completion::ALL {
            // Only a driver can sleep until an interrupt.
            if (share, completion) == (Share::List, Completion::Interrupt) {
                continue;
            }
            for descriptors in EVERY {
                found.push(one.called(share, descriptors, completion));
            }
        }
    }
}

/// All methods to pass descriptors to the device.
const EVERY: [Descriptors; 3] =
    [Descriptors::Written(MemoryType::Uc), Descriptors::Written(MemoryType::Wc), Descriptors::Fetched];

impl Candidate {
    /// The transfer with another descriptor method and notification of its DMA call; unchanged without a call.
    pub(super) fn called(&self, share: Share, descriptors: Descriptors, completion: Completion) -> Candidate {
        let mut called = self.clone();
        called.kind = Kind::Call(share, completion);
        if let Method::DmaCall { share: of, descriptors: by, completion: until, .. } = &mut called.case.method {
            (*of, *by, *until) = (share, descriptors, completion);
        }
        called
    }
}
