//! The page of a record, with traces of its simulated answers.

use crate::failure::Failure;
use lanemark_platform::Platform;
use lanemark_record::{Record, Reproduction};
use lanemark_report::{AnswerTrace, Traced, answers_to_trace, html_with_traces, requested_region};
use lanemark_runner::{Cancel, TracedCase, trace_again};

/// The HTML page of a record and of reproductions. Answers of simulated platforms are traced again for it.
///
/// # Errors
/// [`Failure::Check`] through a bug of this program; every record can be rendered.
pub fn record_page(record: &Record, reproductions: &[Reproduction]) -> Result<String, Failure> {
    let cases: Vec<(usize, TracedCase)> =
        answers_to_trace(record).into_iter().filter_map(|answer| Some((answer, traced(record, answer)?))).collect();
    let found = cases.iter().filter_map(|(answer, case)| {
        let of = record.answers.get(*answer)?;
        let again = Traced {
            target: &case.target,
            question: &of.question,
            method: &case.case.method,
            size_bytes: case.case.size,
            passes: case.passes,
            case: (case.nth, case.cases),
            sample: case.sample,
            trace: &case.trace,
            error: case.error.as_deref(),
        };
        Some(AnswerTrace { answer: *answer, traced: again })
    });
    let traces: Vec<AnswerTrace> = found.collect();
    html_with_traces(record, reproductions, &traces).map_err(|error| Failure::Check(error.to_string()))
}

/// The trace of an answer; `None` if this program has no such platform or case.
fn traced(record: &Record, answer: usize) -> Option<TracedCase> {
    let answer = record.answers.get(answer)?;
    let target = record.targets.iter().find(|target| target.name == answer.target)?;
    let table: toml::Value = serde_json::from_value(target.platform.clone()?).ok()?;
    let platform = Platform::parse("the platform of the record", &toml::to_string(&table).ok()?).ok()?;
    trace_again(&platform, answer, requested_region(&record.command), &Cancel::new()).ok()?
}
