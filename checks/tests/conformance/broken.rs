//! Machines that each break a promise, to show that its test body detects it.

use lanemark_checks::conformance::{Opened, PROMISES, Subject};
use lanemark_machine::{
    Access, Cause, Confirmed, Facts, Machine, MachineError, Plan, Region, Sample, Samples, Span, Step, Stream, Task,
    Unsupported, Verb, Wait, Width, Work,
};
use lanemark_platform::preset;
use lanemark_sim::SimulatedMachine;
use lanemark_units::{BarOffset, Ticks};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Fault that breaks a promise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    /// No fault.
    None,
    /// The name contains the number of runs.
    NewFacts,
    /// Two regions share a byte.
    OverlappingRegions,
    /// Reports every plan as supported, but refuses some.
    PromisesAll,
    /// Reports driver calls as unsupported, but runs them.
    PromisesLess,
    /// Runs a plan of zero iterations as one of one iteration.
    TakesNothing,
    /// Clears the samples before it checks whether it supports the plan.
    ClearsFirst,
    /// Stores bytes before it refuses a plan.
    StoresFirst,
    /// Reports a span outside every region as unsupported.
    OutsideIsUnsupported,
    /// Accepts a span that exceeds its region by one byte.
    OneByteFurther,
    /// Refuses the last byte of a region.
    OneByteShort,
    /// Takes one sample too few if more than two are requested.
    OneLess,
    /// Takes one sample too many.
    OneMore,
    /// Appends its samples to those of the previous run.
    KeepsOldSamples,
    /// Reports delivery at half of the issue time.
    DeliversTooEarly,
    /// Claims every byte but stores none.
    StoresNothing,
    /// Reports no confirmed bytes.
    ConfirmsNothing,
    /// Confirms one byte less than it claims.
    LosesAByte,
    /// Claims and confirms one byte too many.
    ClaimsMore,
    /// Stores a byte after the span.
    StoresFurther,
    /// Returns success at the timeout.
    HidesTimeout,
    /// Times out at a tenth of the timeout.
    EndsEarly,
    /// Fails every run after a timeout.
    BrokenByTimeout,
    /// Reports an interrupt as a timeout.
    HidesInterruption,
    /// Fails every run after an interrupt.
    BrokenByInterruption,
    /// Gets slower with every run.
    Tires,
    /// Adds the stall times of one run to the next.
    KeepsWaits,
}

/// Each fault with the promise that it breaks.
const FAULTS: &[(Fault, &str)] = &[
    (Fault::NewFacts, "facts are sound and never change"),
    (Fault::OverlappingRegions, "facts are sound and never change"),
    (Fault::PromisesAll, "supports agrees with run"),
    (Fault::PromisesLess, "supports agrees with run"),
    (Fault::TakesNothing, "supports agrees with run"),
    (Fault::ClearsFirst, "a refused plan has no effect"),
    (Fault::StoresFirst, "a refused plan has no effect"),
    (Fault::OutsideIsUnsupported, "a span outside every region is refused by name"),
    (Fault::OneByteFurther, "a span outside every region is refused by name"),
    (Fault::OneByteShort, "a span outside every region is refused by name"),
    (Fault::OneLess, "as many samples are taken as are wanted"),
    (Fault::OneMore, "as many samples are taken as are wanted"),
    (Fault::KeepsOldSamples, "as many samples are taken as are wanted"),
    (Fault::DeliversTooEarly, "nothing is delivered before it is issued"),
    (Fault::StoresNothing, "claimed bytes are changed, and no others"),
    (Fault::ConfirmsNothing, "claimed bytes are changed, and no others"),
    (Fault::LosesAByte, "claimed bytes are changed, and no others"),
    (Fault::ClaimsMore, "claimed bytes are changed, and no others"),
    (Fault::StoresFurther, "claimed bytes are changed, and no others"),
    (Fault::HidesTimeout, "a timeout ends a run and leaves the machine usable"),
    (Fault::EndsEarly, "a timeout ends a run and leaves the machine usable"),
    (Fault::BrokenByTimeout, "a timeout ends a run and leaves the machine usable"),
    (Fault::HidesInterruption, "an interrupt ends a run and leaves the machine usable"),
    (Fault::BrokenByInterruption, "an interrupt ends a run and leaves the machine usable"),
    (Fault::Tires, "runs do not influence each other"),
    (Fault::KeepsWaits, "runs do not influence each other"),
];

/// A simulation with a fault.
struct Broken(Fault);

struct BrokenMachine {
    fault: Fault,
    inner: SimulatedMachine,
    facts: Facts,
    runs: u64,
    waits: Vec<Wait>,
    is_of_no_use: bool,
}

impl Subject for Broken {
    fn name(&self) -> String {
        format!("{:?}", self.0)
    }

    fn open(&self, interrupted: Arc<AtomicBool>) -> Box<dyn Opened> {
        let platform = preset("tacc-stratix4").unwrap().unwrap();
        let inner = SimulatedMachine::new(&platform).unwrap().interrupted_by(interrupted);
        let mut facts = inner.facts().clone();
        if self.0 == Fault::OverlappingRegions {
            let mut again = facts.regions[0].clone();
            "again".clone_into(&mut again.name);
            facts.regions.push(again);
        }
        Box::new(BrokenMachine { fault: self.0, inner, facts, runs: 0, waits: Vec::new(), is_of_no_use: false })
    }
}

impl Opened for BrokenMachine {
    fn machine(&mut self) -> &mut dyn Machine {
        self
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        self.inner.bytes()
    }
}

impl BrokenMachine {
    /// Mutable steps of a plan.
    fn steps(plan: &mut Plan) -> impl Iterator<Item = &mut Step> {
        let lanes = if let Work::Cores(cores) = &mut plan.work { cores.lanes.as_mut_slice() } else { &mut [] };
        lanes
            .iter_mut()
            .flat_map(|lane| if let Task::Steps(steps) = &mut lane.task { steps.as_mut_slice() } else { &mut [] })
    }

    /// Mutable spans of a plan.
    fn spans(plan: &mut Plan) -> impl Iterator<Item = &mut Span> {
        Self::steps(plan).filter_map(|step| match step {
            Step::Stream(stream) => Some(&mut stream.span),
            Step::Driver(call) => Some(&mut call.span),
            Step::Map(span) | Step::FlushLines(span) => Some(span),
            _ => None,
        })
    }

    /// The plan that is run instead of the given one.
    fn instead_of(&self, plan: &Plan) -> Plan {
        let mut plan = plan.clone();
        match self.fault {
            Fault::TakesNothing => plan.passes = plan.passes.max(1),
            Fault::EndsEarly => plan.timeout = Ticks(plan.timeout.0 / 10),
            Fault::OneByteFurther => {
                for span in Self::spans(&mut plan) {
                    let beyond = |region: &&Region| {
                        region.at.bar == span.at.bar && region.at.offset + region.len + 1 == span.end()
                    };
                    span.len -= u64::from(span.len > 0 && self.facts.regions.iter().any(|region| beyond(&region)));
                }
            }
            Fault::StoresNothing => {
                for step in Self::steps(&mut plan) {
                    if let Step::Stream(stream) = step {
                        stream.verb = Verb::Load;
                        stream.access = Access::Plain(Width::B8);
                    }
                }
            }
            _ => {}
        }
        plan
    }

    /// A store of one byte to the storage region.
    fn store_a_byte(&mut self, at: BarOffset) {
        let span = Span { at, len: 1, memory_type: self.facts.memory_types[0] };
        let store = Step::Stream(Stream::over(Verb::Store, Access::Plain(Width::B1), span));
        self.inner.run(&Plan::new(store, 1), &mut Samples::wanted(1)).unwrap();
    }

    /// Modifies the result of a finished run.
    fn spoil(&mut self, plan: &Plan, samples: &mut Samples, old: &[Sample]) {
        match self.fault {
            Fault::NewFacts => self.facts.summary = format!("run {} times", self.runs),
            Fault::OneLess if samples.count_wanted() > 2 => drop(samples.taken.pop()),
            Fault::OneMore => samples.taken.push(samples.taken[0]),
            Fault::KeepsOldSamples => drop(samples.taken.splice(0..0, old.iter().copied())),
            Fault::DeliversTooEarly => {
                samples.taken.iter_mut().for_each(|sample| sample.delivered = Ticks(sample.issue.0 / 2));
            }
            Fault::StoresNothing => {
                let bytes = plan.bytes_per_sample() / plan.passes;
                samples.confirmed = Some(Confirmed { claimed_bytes: bytes, confirmed_bytes: bytes });
            }
            Fault::ConfirmsNothing => samples.confirmed = None,
            Fault::LosesAByte => samples.confirmed.iter_mut().for_each(|confirmed| confirmed.confirmed_bytes -= 1),
            Fault::ClaimsMore => samples.confirmed.iter_mut().for_each(|confirmed| {
                confirmed.claimed_bytes += 1;
                confirmed.confirmed_bytes += 1;
            }),
            Fault::StoresFurther => {
                let last = Self::spans(&mut plan.clone()).next().map(|span| (span.at.bar, span.end()));
                if let Some((bar, offset)) = last.filter(|_| samples.confirmed.is_some()) {
                    self.store_a_byte(BarOffset { bar, offset });
                }
            }
            Fault::Tires => samples.taken.iter_mut().for_each(|sample| sample.delivered += Ticks(self.runs)),
            Fault::KeepsWaits => {
                samples.waits.append(&mut self.waits);
                self.waits.push(Wait { cause: Cause::Issue, span: Ticks(1) });
            }
            _ => {}
        }
    }
}

impl Machine for BrokenMachine {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn supports(&self, plan: &Plan) -> Result<(), Unsupported> {
        let refused = |what: &str| {
            Err(Unsupported { what: what.to_owned(), machine: "broken".to_owned(), because: "it is".to_owned() })
        };
        let ends = |span: Span| {
            self.facts
                .regions
                .iter()
                .any(|region| region.at.bar == span.at.bar && region.at.offset + region.len == span.end())
        };
        match self.fault {
            Fault::PromisesAll => Ok(()),
            Fault::PromisesLess if plan.work.steps().any(|step| matches!(step, Step::Driver(_))) => {
                refused("a driver call")
            }
            Fault::OneByteShort if Self::spans(&mut plan.clone()).any(|span| ends(*span)) => refused("the last byte"),
            _ => self.inner.supports(&self.instead_of(plan)),
        }
    }

    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        self.runs += 1;
        let machine = || "broken".to_owned();
        if self.is_of_no_use {
            let source = std::io::Error::other("it was ended once");
            return Err(MachineError::Os { machine: machine(), doing: "running", source });
        }
        if self.fault == Fault::ClearsFirst {
            samples.clear();
        }
        let old = samples.taken.clone();
        let instead = self.instead_of(plan);
        let ended = self.inner.run(&instead, samples);
        match (self.fault, ended) {
            (_, Ok(())) => {
                self.spoil(plan, samples, &old);
                Ok(())
            }
            (Fault::StoresFirst, Err(error @ MachineError::Unsupported(_))) => {
                let at = self.facts.storage().unwrap().at;
                self.store_a_byte(at);
                Err(error)
            }
            (Fault::OutsideIsUnsupported, Err(MachineError::OutOfRange { .. })) => {
                Err(self.supports(plan).unwrap_err().into())
            }
            (Fault::HidesTimeout, Err(MachineError::Timeout { .. })) => {
                samples.taken.resize(samples.count_wanted(), Sample::default());
                Ok(())
            }
            (Fault::HidesInterruption, Err(MachineError::Interrupted { machine })) => {
                Err(MachineError::Timeout { machine, after: plan.timeout, waiting_for: "nobody".to_owned() })
            }
            (Fault::BrokenByTimeout, Err(error @ MachineError::Timeout { .. }))
            | (Fault::BrokenByInterruption, Err(error @ MachineError::Interrupted { .. })) => {
                self.is_of_no_use = true;
                Err(error)
            }
            (_, Err(error)) => Err(error),
        }
    }
}

#[test]
fn every_body_detects_machines_that_break_its_promise() {
    for (fault, promise) in FAULTS {
        let promise = PROMISES.iter().find(|known| known.name == *promise).expect(promise);
        let kept = (promise.body)(&Broken(*fault));
        assert!(kept.is_err(), "'{}' does not notice {fault:?}", promise.name);
    }
}

#[test]
fn the_wrapper_without_a_fault_keeps_every_promise() {
    for promise in PROMISES {
        assert_eq!((promise.body)(&Broken(Fault::None)), Ok(()), "{}", promise.name);
    }
}

#[test]
fn every_promise_has_a_machine_that_breaks_it() {
    let broken: BTreeSet<&str> = FAULTS.iter().map(|(_, promise)| *promise).collect();
    let promises: BTreeSet<&str> = PROMISES.iter().map(|promise| promise.name).collect();
    assert_eq!(broken, promises, "left: promises with a machine that breaks them; right: all");
}
