//! Sensitivities: the same case on a platform with one parameter changed.

use crate::cancel::Cancel;
use crate::open_target::OpenTarget;
use lanemark_bench::{Case, Effort, Question};
use lanemark_platform::{Origin, Platform};
use lanemark_record::{Answer, Quantity, Sensitivity};

/// The factors by which each parameter is multiplied.
const FACTORS: [f64; 2] = [2.0, 0.5];

/// Changes each parameter of `platform` alone, to twice and to half its value, and returns the effect on the figure of
/// `answer`, the largest improvement first. A change that the platform refuses, or for which the case has no answer,
/// is left out.
pub fn sensitivities(
    platform: &Platform,
    question: &Question,
    case: &Case,
    answer: &Answer,
    effort: &Effort,
    cancel: &Cancel,
) -> Vec<Sensitivity> {
    // The unchanged platform is simulated again on a new machine, as each changed one: earlier cases of a run may have
    // warmed caches.
    let Ok(mut unchanged) = OpenTarget::cancelled_by(platform, cancel) else { return Vec::new() };
    let unchanged_answer = unchanged.ask(question, case, effort).ok();
    let Some(figure) = unchanged_answer.as_ref().and_then(self::figure) else { return Vec::new() };
    let formula = unchanged.ask_formulas(question, case, effort).ok().as_ref().and_then(self::figure);
    let formula = formula.filter(|_| answer.formula.is_some());
    let mut all = Vec::new();
    for parameter in platform.parameters() {
        for changed_to in FACTORS.into_iter().filter_map(|factor| parameter.scaled(factor)) {
            if cancel.is_cancelled() {
                return Vec::new();
            }
            let origin = Origin::Assumed(format!("what if; {} otherwise", parameter.value));
            let Ok(changed) = platform.with(&parameter.key, changed_to, origin) else { continue };
            let Ok(mut target) = OpenTarget::cancelled_by(&changed, cancel) else { continue };
            let simulated = target.ask(question, case, effort).ok();
            let Some(simulated) = simulated.as_ref().and_then(self::figure) else { continue };
            let predicted = formula.and_then(|formula| {
                let predicted = target.ask_formulas(question, case, effort).ok();
                Some(change_percent(formula, predicted.as_ref().and_then(self::figure)?))
            });
            all.push(Sensitivity {
                key: parameter.key.clone(),
                value: parameter.value,
                changed_to,
                change_percent: change_percent(figure, simulated),
                formula_change_percent: predicted,
            });
        }
    }
    let is_rate = answer.quantity == Quantity::Bandwidth;
    all.sort_by(|one, other| {
        let (one, other) = (one.change_percent, other.change_percent);
        if is_rate { other.total_cmp(&one) } else { one.total_cmp(&other) }
    });
    all
}

/// The figure of an answer: rate or latency.
pub(crate) fn figure(answer: &Answer) -> Option<f64> {
    let summary = match answer.quantity {
        Quantity::Bandwidth => answer.delivered_rate_bytes_per_s.as_ref(),
        _ => answer.latency_ns.as_ref(),
    };
    summary.map(|summary| summary.median).filter(|figure| *figure > 0.0)
}

fn change_percent(before: f64, after: f64) -> f64 {
    100.0 * (after - before) / before
}
