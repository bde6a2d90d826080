//! From a plan to an answer: how often, and what the samples say.

use crate::case::Case;
use crate::delivery;
use crate::effort::Effort;
use crate::error::BenchError;
use crate::question::Question;
use lanemark_machine::{Cause, Clockwork, Facts, Machine, MachineError, Plan, Samples};
use lanemark_record::{Answer, Bytes, Ceiling, CeilingKind, Quantity, Summary, Tlps, WaitShare};
use lanemark_units::Ticks;

/// The plan a case becomes on a machine with this clockwork, as [`ask`] runs it.
#[must_use]
pub fn plan_for(question: &Question, case: &Case, clockwork: Clockwork, effort: &Effort) -> Plan {
    let passes = match clockwork {
        Clockwork::Simulated => effort.simulated_passes.unwrap_or_else(|| (question.simulated_passes)(case)),
        Clockwork::Real | Clockwork::Emulated => 1,
    };
    (question.plan)(case, passes)
}

/// Asks one case of one machine. The ceiling of the answer is unknown until somebody who knows it says so.
///
/// # Errors
/// [`BenchError::Machine`] with the machine's own reason.
pub fn ask(question: &Question, machine: &mut dyn Machine, case: &Case, effort: &Effort) -> Result<Answer, BenchError> {
    if let Some(ask) = question.ask {
        return ask(question, machine, case, effort);
    }
    let plan = plan_for(question, case, machine.facts().clockwork, effort);
    let measured = measure(machine, &plan, question.most_passes, effort)?;
    Ok(answer(question, case, machine.facts(), &measured))
}

/// Samples of a plan and how many passes each has.
pub(crate) struct Measured {
    samples: Samples,
    passes: u64,
    /// Instead of the samples' own times.
    latencies_ns: Option<Vec<f64>>,
}

impl Measured {
    /// The same run, standing for these latencies.
    pub(crate) fn with_latencies(mut self, latencies_ns: Vec<f64>) -> Measured {
        self.latencies_ns = Some(latencies_ns);
        self
    }

    /// The same run, counted as `times` times as many passes.
    pub(crate) fn counted_as(mut self, times: u64) -> Measured {
        self.passes *= times;
        self
    }

    /// Time to delivery of one pass, sample by sample.
    pub(crate) fn per_pass_delivered_ns(&self) -> Vec<f64> {
        self.samples.taken.iter().map(|sample| sample.delivered.as_ns() / self.passes as f64).collect()
    }

    /// Issue time of one pass, sample by sample.
    pub(crate) fn per_pass_issue_ns(&self) -> Vec<f64> {
        self.samples.taken.iter().map(|sample| sample.issue.as_ns() / self.passes as f64).collect()
    }

    /// The middle one of them.
    pub(crate) fn median_issue_ns(&self) -> f64 {
        Summary::of(&self.per_pass_issue_ns()).map_or(f64::NAN, |summary| summary.median)
    }
}

/// Runs a plan; where time is real, with as many passes as a sample of the wanted length takes.
pub(crate) fn measure(
    machine: &mut dyn Machine,
    plan: &Plan,
    most_passes: u64,
    effort: &Effort,
) -> Result<Measured, MachineError> {
    let mut plan = plan.clone();
    let wanted = match machine.facts().clockwork {
        Clockwork::Simulated => 1,
        Clockwork::Real | Clockwork::Emulated => {
            let sample = settle_passes(machine, &mut plan, most_passes, effort)?;
            let affordable = effort.plan_length.0.checked_div(sample.0).unwrap_or(u64::MAX);
            effort.samples.min(affordable.max(3) as usize)
        }
    };
    let mut samples = Samples::wanted(wanted);
    machine.run(&plan, &mut samples)?;
    Ok(Measured { samples, passes: plan.passes, latencies_ns: None })
}

/// Raises passes until a sample is long enough to be told from the timer's step; says how long it is then.
fn settle_passes(
    machine: &mut dyn Machine,
    plan: &mut Plan,
    most_passes: u64,
    effort: &Effort,
) -> Result<Ticks, MachineError> {
    let mut trial = Samples::wanted(1);
    loop {
        machine.run(plan, &mut trial)?;
        let sample = trial.taken.iter().map(|sample| sample.delivered).min().unwrap_or(Ticks::ZERO);
        if sample >= effort.sample_length || plan.passes >= most_passes {
            return Ok(sample);
        }
        let factor = effort.sample_length.0.checked_div(sample.0).unwrap_or(16).clamp(2, 16);
        plan.passes = (plan.passes * factor).min(most_passes);
    }
}

/// What the samples say.
pub(crate) fn answer(question: &Question, case: &Case, facts: &Facts, measured: &Measured) -> Answer {
    let (samples, passes) = (&measured.samples, measured.passes);
    let bytes = (case.size * passes) as f64;
    let spans = |of: fn(&lanemark_machine::Sample) -> Ticks| -> Vec<f64> {
        samples.taken.iter().map(|sample| of(sample).as_ns()).collect()
    };
    let (issue, delivered) = (spans(|sample| sample.issue), spans(|sample| sample.delivered));
    let rates = |spans: &[f64]| {
        let rates: Vec<f64> = spans.iter().filter(|ns| **ns > 0.0).map(|ns| bytes * 1e9 / ns).collect();
        Summary::of(&rates)
    };
    let per_access = (passes * (question.accesses_per_pass)(case)) as f64;
    let latencies = measured
        .latencies_ns
        .clone()
        .unwrap_or_else(|| delivered.iter().map(|ns| ns / per_access).collect::<Vec<f64>>());
    let is_bandwidth = question.quantity == Quantity::Bandwidth;
    let mut answer = Answer {
        question: question.name.to_owned(),
        target: facts.name.clone(),
        way: case.way(),
        size_bytes: case.size,
        alignment_bytes: case.alignment,
        quantity: question.quantity,
        latency_ns: if is_bandwidth { None } else { Summary::of(&latencies) },
        issue_rate_bytes_per_s: if is_bandwidth { rates(&issue) } else { None },
        delivered_rate_bytes_per_s: if is_bandwidth { rates(&delivered) } else { None },
        ceiling: Ceiling {
            kind: CeilingKind::Unknown,
            rate_bytes_per_s: None,
            because: if is_bandwidth { "nobody has said" } else { "a latency has no rate to limit it" }.to_owned(),
        },
        share_of_ceiling_percent: None,
        // An overhead is a difference of two runs, and so are some costs: what one of them waited for says nothing.
        waits: match question.quantity {
            Quantity::Overhead | Quantity::Cost => Vec::new(),
            _ => wait_shares(samples),
        },
        formula: None,
        tlps: samples.traffic.map(|traffic| Tlps {
            writes: traffic.write_tlps,
            reads: traffic.read_tlps,
            completions: traffic.completion_tlps,
            payload_bytes: traffic.payload_bytes,
        }),
        bytes: samples.confirmed.map(|confirmed| Bytes {
            claimed_bytes: confirmed.claimed_bytes,
            confirmed_bytes: confirmed.confirmed_bytes,
        }),
        timer_cost_ns: samples.timer_cost.as_ns(),
        passes,
        samples_ns: if is_bandwidth { delivered.iter().map(|ns| ns / passes as f64).collect() } else { latencies },
        delivery: None,
        fit: None,
        detail: None,
    };
    delivery::tell(&mut answer, samples.delivery);
    answer
}

/// The causes with their share of the samples' time, largest first.
///
/// Stores wait where they leave the store buffer, which can be after the last instruction was issued. What
/// of the time of issue is no wait is the core's own pace; what is left until delivery, the bytes are on
/// their way.
fn wait_shares(samples: &Samples) -> Vec<WaitShare> {
    let sum = |of: fn(&lanemark_machine::Sample) -> Ticks| samples.taken.iter().map(of).sum::<Ticks>().as_ns();
    let (issue, delivered) = (sum(|sample| sample.issue), sum(|sample| sample.delivered));
    if samples.traffic.is_none() || delivered <= 0.0 {
        return Vec::new();
    }
    let waited = samples.waits.iter().map(|wait| wait.span).sum::<Ticks>().as_ns();
    let scale = if waited > delivered { delivered / waited } else { 1.0 };
    let waits = samples.waits.iter().map(|wait| (wait.cause, wait.span.as_ns() * scale));
    let rest = delivered - waited * scale;
    let pace = (issue - waited * scale).clamp(0.0, rest);
    let others = [(Cause::Issue, pace), (Cause::Transit, rest - pace)];
    let mut shares: Vec<WaitShare> =
        waits.chain(others).map(|(cause, ns)| share(cause, 100.0 * ns / delivered)).collect();
    shares.retain(|share| share.share_percent > 0.05);
    shares.sort_by(|a, b| b.share_percent.total_cmp(&a.share_percent));
    shares
}

fn share(cause: Cause, share_percent: f64) -> WaitShare {
    WaitShare { cause: cause.name().to_owned(), explanation: cause.explanation().to_owned(), share_percent }
}
