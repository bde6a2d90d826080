//! Figures of methods, and their order.

use lanemark_record::guidance::{Choice, Ranked, Traffic};
use lanemark_record::{Answer, Quantity};

/// The fastest of the methods of a choice; the first one may be plainer and up to 2 % slower.
pub(super) fn fastest(choice: &Choice) -> Option<&Ranked> {
    choice.ranked.iter().min_by(|one, other| order(choice.traffic, one.figure, other.figure))
}

/// The better of two figures.
pub(super) fn better(traffic: Traffic, one: f64, other: f64) -> f64 {
    match traffic {
        Traffic::Single => one.min(other),
        Traffic::Stream => one.max(other),
    }
}

pub(super) fn order(traffic: Traffic, one: f64, other: f64) -> std::cmp::Ordering {
    match traffic {
        Traffic::Single => one.total_cmp(&other),
        Traffic::Stream => other.total_cmp(&one),
    }
}

/// The factor by which `best` is faster than `figure`.
pub(super) fn times_slower(traffic: Traffic, best: f64, figure: f64) -> f64 {
    match traffic {
        Traffic::Single => figure / best,
        Traffic::Stream => best / figure,
    }
}

/// The figure of an answer: the rate of a stream, or the time of one transfer of `size_bytes`.
pub(super) fn figure(traffic: Traffic, answer: &Answer, size_bytes: u64) -> Option<f64> {
    let rate = answer.delivered_rate_bytes_per_s.map(|rate| rate.median);
    let figure = match (traffic, answer.quantity) {
        (Traffic::Stream, _) => rate,
        (Traffic::Single, Quantity::Bandwidth) => rate.map(|rate| size_bytes as f64 * 1e9 / rate),
        (Traffic::Single, _) => answer.latency_ns.map(|latency| latency.median),
    };
    figure.filter(|figure| figure.is_finite() && *figure > 0.0)
}
