//! Advice for a workload on a simulated platform: methods, changes of the machine, goals.
//!
//! Every method of a direction is predicted by its formula. The best of each kind are simulated, which also gives their
//! critical path. Changes of the machine are simulated with the same methods.

mod candidates;
mod changes;
mod compared;
mod figure;
mod goals;

use candidates::candidates;
use compared::Compared;
use lanemark_platform::Platform;
use lanemark_record::Tool;
use lanemark_record::guidance::{Choice, Guidance, SCHEMA, Traffic, Workload};
use lanemark_runner::{Cancel, Changes, OpenTarget, RunError, origins_of};
use lanemark_units::format_size;

/// Largest number of sizes, each of which takes seconds and a column.
const MOST_SIZES: usize = 12;

/// Largest transfer, in bytes. Every method has reached its final rate below it.
const LONGEST: u64 = 16 << 20;

/// A workload, and the platform to run it on.
pub struct WorkloadRequest {
    /// The platform, without unknown numbers.
    pub platform: Platform,
    /// Changed keys of the platform.
    pub with: Vec<(String, String)>,
    /// The workload and its goals.
    pub workload: Workload,
    /// The command line.
    pub command: Vec<String>,
}

/// Finds the best methods for a workload, the effect of changes of the machine, and whether the goals are met.
///
/// # Errors
/// [`RunError::NothingToAsk`] for sizes that are too many or too large, or that no method moves; another [`RunError`] if the
/// platform cannot be changed, or `cancel` is set.
pub fn advise(request: &WorkloadRequest, cancel: &Cancel) -> Result<Guidance, RunError> {
    if request.workload.sizes_bytes.len() > MOST_SIZES {
        let because =
            format!("--sizes: {} sizes are too many: use at most {MOST_SIZES}", request.workload.sizes_bytes.len());
        return Err(RunError::NothingToAsk { because });
    }
    if let Some(size) = request.workload.sizes_bytes.iter().find(|size| **size > LONGEST) {
        let (size, longest) = (format_size(*size), format_size(LONGEST));
        let because = format!(
            "--sizes: {size} is above the maximum of {longest}: use {longest}; the rate of longer transfers is the same, and \
             their latency grows with the size"
        );
        return Err(RunError::NothingToAsk { because });
    }
    let changes = Changes { with: request.with.clone(), ..Changes::default() };
    let (platform, warnings) = changes.apply(&request.platform)?;
    let mut target = OpenTarget::of_platform(&platform)?;
    let faults = platform.faults.iter().map(|fault| format!("{}: {fault} is simulated in every method", platform.name));
    let warnings: Vec<String> = warnings.into_iter().chain(faults).collect();
    let mut unanswered = Vec::new();
    let mut compared = Vec::new();
    for direction in &request.workload.directions {
        for traffic in traffics(&request.workload) {
            for size in &request.workload.sizes_bytes {
                let found = candidates(&target, *direction, traffic, *size, &mut unanswered);
                let of =
                    Compared::of(&platform, &mut target, (*direction, traffic, *size), found, &mut unanswered, cancel);
                compared.extend(of?);
            }
        }
    }
    if cancel.is_cancelled() {
        return Err(RunError::Interrupted);
    }
    if compared.is_empty() {
        let because = if unanswered.is_empty() {
            let sizes: Vec<String> = request.workload.sizes_bytes.iter().map(|size| format_size(*size)).collect();
            format!("no method of {} moves transfers of {}: use other --sizes", platform.name, sizes.join(", "))
        } else {
            unanswered.join("; ")
        };
        return Err(RunError::NothingToAsk { because });
    }
    let mut changes = changes::changes(&platform, &compared, cancel)?;
    if cancel.is_cancelled() {
        return Err(RunError::Interrupted);
    }
    let without_effect = changes::without_effect(&mut changes);
    let choices: Vec<Choice> = compared.into_iter().map(|compared| compared.choice).collect();
    Ok(Guidance {
        schema: SCHEMA,
        tool: Tool { name: "lanemark".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
        command: request.command.clone(),
        target: platform.name.clone(),
        summary: platform.summary.clone(),
        origins: origins_of(&platform.origins()),
        warnings,
        goals: goals::goals(&request.workload, &choices, &changes),
        workload: request.workload.clone(),
        choices,
        changes,
        without_effect,
        unanswered,
    })
}

/// The traffic that a workload is about: that of its goals, or both.
fn traffics(workload: &Workload) -> Vec<Traffic> {
    match (workload.latency_below_ns, workload.rate_bytes_per_s) {
        (Some(_), None) => vec![Traffic::Single],
        (None, Some(_)) => vec![Traffic::Stream],
        _ => vec![Traffic::Single, Traffic::Stream],
    }
}
