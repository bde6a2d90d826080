//! One answer of a record whose formula is computed again.

use crate::change::OfMethods;
use lanemark_bench::{Effort, ask, case_again, has_formula, question};
use lanemark_machine::Facts;
use lanemark_model::{FormulaMachine, rate_ceiling};
use lanemark_platform::Platform;
use lanemark_record::{Answer, Method, Quantity};
use serde::{Deserialize, Serialize};

/// The question, method and size of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Name of the question.
    pub question: String,
    /// The method.
    pub method: Method,
    /// Bytes per iteration.
    pub size_bytes: u64,
    /// Offset of the first byte from a 64 B boundary.
    pub alignment_bytes: u64,
    /// Iterations per sample, if they are not those of the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
    /// Name of the requested region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
}

/// The figure of a formula.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Nanoseconds of a latency, or bytes per second of a delivered rate.
    pub value: f64,
    /// The bound that applies; `None` for a difference of two plans.
    pub bound: Option<&'static str>,
    /// The limit of a delivered rate, in bytes per second; `None` for a latency.
    pub limit: Option<f64>,
}

impl Point {
    /// The point of an answer; `region` is the requested region.
    #[must_use]
    pub fn of(answer: &Answer, iterations: Option<u64>, region: Option<String>) -> Point {
        Point {
            question: answer.question.clone(),
            method: answer.method.clone(),
            size_bytes: answer.size_bytes,
            alignment_bytes: answer.alignment_bytes,
            iterations,
            region,
        }
    }

    /// The formula of this point on a platform.
    ///
    /// # Errors
    /// A clause with the reason, if there is none.
    pub(crate) fn figure(
        &self,
        platform: &Platform,
        machine: &mut FormulaMachine,
        facts: &Facts,
        methods: OfMethods,
    ) -> Result<Figure, String> {
        let question =
            question(&self.question).ok_or_else(|| format!("this program has no question {}", self.question))?;
        let region = self.region.as_deref();
        let mut case = case_again(question, facts, region, &self.method, self.size_bytes, self.alignment_bytes)
            .ok_or_else(|| "the question has no such case on this platform".to_owned())?;
        methods.apply(&mut case);
        if !has_formula(question, &case) {
            return Err("for several threads a formula is a lower bound".to_owned());
        }
        if case.room(facts) < case.size {
            return Err("it does not fit the memory that it accesses".to_owned());
        }
        let effort = Effort { simulated_passes: self.iterations, ..Effort::default() };
        let answer = ask(question, machine, &case, &effort).map_err(|error| error.to_string())?;
        let summary = match answer.quantity {
            Quantity::Bandwidth => answer.delivered_rate_bytes_per_s,
            _ => answer.latency_ns,
        };
        let value = summary.ok_or_else(|| "the formula has no figure".to_owned())?.median;
        let bound = machine.last().filter(|_| !answer.is_difference()).map(|last| last.bound.name());
        let is_rate = answer.quantity == Quantity::Bandwidth;
        let limit = is_rate.then(|| rate_ceiling(platform, &case.rated())).flatten();
        Ok(Figure { value, bound, limit: limit.map(|limit| limit.rate.bytes_per_s()) })
    }
}
