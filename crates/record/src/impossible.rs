//! Figures that no measurement and no simulation can have.

use crate::{Answer, Record, Summary};
use lanemark_units::format_size;
use std::path::Path;

/// Largest time and largest rate of an answer: 31 years for an iteration, and ten million times the rate of a link.
const LARGEST: f64 = 1e18;

impl Record {
    /// Refuses a record with a figure that cannot be, such as a negative rate, before it is compared or reported.
    ///
    /// A rate above its ceiling is not refused: [`judge`](crate::gate::judge) reports it, with its cause.
    ///
    /// # Errors
    /// The file, the answer, the key and the figure of the first one, in words.
    pub fn refuse_impossible(&self, path: &Path) -> Result<(), String> {
        let found = self.answers.iter().find_map(|answer| Some((answer, impossible(answer)?)));
        found.map_or(Ok(()), |(answer, text)| {
            Err(format!(
                "{}: {} on {}, {}, {}: {text}; no machine has such a figure: use the file that the program wrote, or measure \
                 again",
                path.display(),
                answer.question,
                answer.target,
                answer.method,
                format_size(answer.size_bytes)
            ))
        })
    }
}

/// The first figure of an answer that cannot be, with its key.
pub(crate) fn impossible(answer: &Answer) -> Option<String> {
    // The difference of two plans may be negative by chance.
    let least_ns = if answer.is_difference() { f64::NEG_INFINITY } else { 0.0 };
    let summaries = [
        ("latency_ns", answer.latency_ns, least_ns),
        ("issue_rate_bytes_per_s", answer.issue_rate_bytes_per_s, 0.0),
        ("delivered_rate_bytes_per_s", answer.delivered_rate_bytes_per_s, 0.0),
    ];
    summaries.into_iter().find_map(|(name, summary, least)| {
        let Summary { min, p1, median, p99, max, mad, .. } = summary?;
        let fields = [("min", min), ("p1", p1), ("median", median), ("p99", p99), ("max", max), ("mad", mad)];
        let (field, value) = fields.into_iter().find(|(_, value)| !(least..=LARGEST).contains(value))?;
        let problem = match value {
            value if value.is_nan() => "not a number",
            value if value < least => "below 0",
            _ => "above 1e18",
        };
        Some(format!("{field} of '{name}' is {value:?}, {problem}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RawSamples;
    use crate::fixture::{answer, record};

    #[track_caller]
    fn refused(answer: Answer) -> String {
        record(vec![answer]).refuse_impossible(Path::new("r.json")).unwrap_err()
    }

    fn of(latency_ns: f64) -> Answer {
        Answer { latency_ns: Summary::of(&[latency_ns]), ..answer("8", 64, None) }
    }

    #[test]
    fn negative_and_absurd_figures_are_refused_with_file_answer_and_key() {
        let text = refused(of(-1.0));
        assert!(text.starts_with("r.json: mmio_write_bandwidth on card, "), "{text}");
        assert!(text.contains("64B: min of 'latency_ns' is -1.0, below 0; no machine has such a figure"), "{text}");
        assert!(refused(answer("8", 64, Some(1e308))).contains("'delivered_rate_bytes_per_s' is 1e308, above 1e18"));
        assert!(refused(answer("8", 64, Some(f64::INFINITY))).contains("above 1e18"));
        let mut summary = Summary::of(&[1.0]).unwrap();
        summary.median = f64::NAN;
        assert!(
            refused(Answer { latency_ns: Some(summary), ..of(1.0) })
                .contains("median of 'latency_ns' is NaN, not a number")
        );
    }

    #[test]
    fn figures_at_the_bounds_and_negative_differences_are_not_refused() {
        let difference = vec![RawSamples { is_subtracted: true, ..RawSamples::default() }];
        for answer in [of(0.0), of(1e18), answer("8", 64, Some(1e18)), Answer { raw: difference, ..of(-1.0) }] {
            assert_eq!(record(vec![answer]).refuse_impossible(Path::new("r.json")), Ok(()));
        }
    }
}
