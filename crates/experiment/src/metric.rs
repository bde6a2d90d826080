//! A metric of an answer: the number that is compared with a published figure.

use lanemark_record::{Answer, Detail, Runs, Summary};
use serde::Deserialize;

/// Bytes of a MiB.
const MIB: f64 = (1 << 20) as f64;

/// Metric of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Median latency, cost or overhead in ns.
    #[default]
    LatencyNs,
    /// Median latency, cost or overhead in us.
    LatencyUs,
    /// Median latency, cost or overhead in ms.
    LatencyMs,
    /// Median latency, cost or overhead in s.
    LatencyS,
    /// Spread of the latency from p1 to p99, in ns.
    SpreadNs,
    /// Time of a whole run of copies in s, extrapolated from the copies that were made.
    WholeRunS,
    /// Time of the longest run of copies in s, extrapolated in the same way.
    WorstRunS,
    /// Median issue rate in GB/s.
    IssueGbPerS,
    /// Median delivered rate in GB/s.
    DeliveredGbPerS,
    /// Median delivered rate in MiB/s.
    DeliveredMibPerS,
    /// Mean rate of one of several concurrent flows, in MiB/s.
    FlowMibPerS,
}

impl Metric {
    /// Unit of the metric, as in `published.csv`.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Metric::LatencyNs | Metric::SpreadNs => "ns",
            Metric::LatencyUs => "us",
            Metric::LatencyMs => "ms",
            Metric::LatencyS | Metric::WholeRunS | Metric::WorstRunS => "s",
            Metric::IssueGbPerS | Metric::DeliveredGbPerS => "GB/s",
            Metric::DeliveredMibPerS | Metric::FlowMibPerS => "MiB/s",
        }
    }

    /// The time of a value in s: for a rate, that of `size` bytes; `None` for a spread and for a rate without a size.
    pub(crate) fn time_s(self, value: f64, size: Option<u64>) -> Option<f64> {
        let bytes = size.map(|size| size as f64);
        match self {
            Metric::LatencyNs => Some(value / 1e9),
            Metric::LatencyUs => Some(value / 1e6),
            Metric::LatencyMs => Some(value / 1e3),
            Metric::LatencyS | Metric::WholeRunS | Metric::WorstRunS => Some(value),
            Metric::IssueGbPerS | Metric::DeliveredGbPerS => Some(bytes? / (value * 1e9)),
            Metric::DeliveredMibPerS | Metric::FlowMibPerS => Some(bytes? / (value * MIB)),
            Metric::SpreadNs => None,
        }
    }

    /// Whether `one` is better than `other`: a shorter time, or a higher rate.
    pub(crate) fn is_better(self, one: f64, other: f64) -> bool {
        match self {
            Metric::IssueGbPerS | Metric::DeliveredGbPerS | Metric::DeliveredMibPerS | Metric::FlowMibPerS => {
                one > other
            }
            Metric::LatencyNs
            | Metric::LatencyUs
            | Metric::LatencyMs
            | Metric::LatencyS
            | Metric::SpreadNs
            | Metric::WholeRunS
            | Metric::WorstRunS => one < other,
        }
    }

    /// Value of the metric in `answer`; `None` if the answer lacks it.
    pub(crate) fn value(self, answer: &Answer) -> Option<f64> {
        Some(match self {
            Metric::LatencyNs => answer.latency_ns?.median,
            Metric::LatencyUs => answer.latency_ns?.median / 1e3,
            Metric::LatencyMs => answer.latency_ns?.median / 1e6,
            Metric::LatencyS => answer.latency_ns?.median / 1e9,
            Metric::SpreadNs => {
                let summary = answer.latency_ns.filter(|summary| summary.count > 1)?;
                summary.p99 - summary.p1
            }
            Metric::WholeRunS => {
                let (runs, times) = whole_runs(answer)?;
                runs.median_s * times
            }
            Metric::WorstRunS => {
                let (runs, times) = whole_runs(answer)?;
                runs.longest_s * times
            }
            Metric::IssueGbPerS => answer.issue_rate_bytes_per_s?.median / 1e9,
            Metric::DeliveredGbPerS => answer.delivered_rate_bytes_per_s?.median / 1e9,
            Metric::DeliveredMibPerS => answer.delivered_rate_bytes_per_s?.median / MIB,
            Metric::FlowMibPerS => match &answer.detail {
                Some(Detail::Flows(flows)) => flows.common_rate_bytes_per_s / flows.each.len() as f64 / MIB,
                _ => return None,
            },
        })
    }

    /// Range of the samples in the unit of the metric: p1 to p99, or the shortest to the longest run of copies.
    ///
    /// `None` for a single sample, and for a metric that is not a median.
    pub(crate) fn range(self, answer: &Answer) -> Option<[f64; 2]> {
        let percentiles = |summary: Option<Summary>, unit: f64| {
            let summary = summary.filter(|summary| summary.count > 1)?;
            Some([summary.p1 / unit, summary.p99 / unit])
        };
        match self {
            Metric::LatencyNs => percentiles(answer.latency_ns, 1.0),
            Metric::LatencyUs => percentiles(answer.latency_ns, 1e3),
            Metric::LatencyMs => percentiles(answer.latency_ns, 1e6),
            Metric::LatencyS => percentiles(answer.latency_ns, 1e9),
            Metric::WholeRunS => {
                let (runs, times) = whole_runs(answer)?;
                Some([runs.shortest_s * times, runs.longest_s * times])
            }
            Metric::IssueGbPerS => percentiles(answer.issue_rate_bytes_per_s, 1e9),
            Metric::DeliveredGbPerS => percentiles(answer.delivered_rate_bytes_per_s, 1e9),
            Metric::DeliveredMibPerS => percentiles(answer.delivered_rate_bytes_per_s, MIB),
            Metric::SpreadNs | Metric::WorstRunS | Metric::FlowMibPerS => None,
        }
    }
}

/// Runs of copies, and the factor from the copies that were made to those of a whole run.
fn whole_runs(answer: &Answer) -> Option<(&Runs, f64)> {
    match &answer.detail {
        Some(Detail::Runs(runs)) => Some((runs, runs.whole_copies as f64 / runs.copies as f64)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_rate_is_that_of_its_bytes() {
        assert_eq!(Metric::DeliveredMibPerS.time_s(2.0, Some(1 << 20)), Some(0.5));
        assert_eq!(Metric::DeliveredGbPerS.time_s(2.0, Some(4_000_000_000)), Some(2.0));
        assert_eq!(Metric::LatencyMs.time_s(2.0, None), Some(2e-3));
        assert_eq!((Metric::DeliveredGbPerS.time_s(2.0, None), Metric::SpreadNs.time_s(2.0, None)), (None, None));
    }

    #[test]
    fn shorter_times_and_higher_rates_are_better() {
        assert!(Metric::LatencyUs.is_better(1.0, 2.0) && !Metric::LatencyUs.is_better(2.0, 1.0));
        assert!(Metric::DeliveredGbPerS.is_better(2.0, 1.0) && !Metric::DeliveredGbPerS.is_better(1.0, 2.0));
        assert!(!Metric::LatencyNs.is_better(1.0, 1.0) && !Metric::FlowMibPerS.is_better(1.0, 1.0));
    }
}
