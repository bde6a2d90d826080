//! The figures of one point.

use crate::points::{Ask, Listed, Place, Points};
use lanemark_bench::{BenchError, Case, Effort};
use lanemark_machine::MachineError;
use lanemark_record::{Answer, Formula, SweepRow, SweptBy, WaitShare};
use lanemark_runner::{Answerer, Cancel, Changes, OpenTarget, Setup, Target};

impl Points {
    /// Runs point number `index`: a row with its figures, or with the reason why it has none. `None` if there are fewer
    /// points.
    #[must_use]
    pub fn answer(&self, index: u64) -> Option<SweepRow> {
        Worker::new(self, Cancel::new()).answer(index)
    }

    /// Runs these points one after the other, as [`Points::answer`] does; formulas of consecutive points share an open
    /// platform. Numbers beyond the last point are left out, and so are those after `cancel` was set.
    pub fn answers(&self, indices: &[u64], cancel: &Cancel) -> impl Iterator<Item = SweepRow> {
        let mut worker = Worker::new(self, cancel.clone());
        let left = indices.iter().take_while(|_| !cancel.is_cancelled());
        left.filter_map(move |index| worker.answer(*index))
    }
}

/// Runs points one after the other. Formulas keep the open platform and the cases of the last point: they have no
/// state. Every simulation starts with a new board.
pub(crate) struct Worker<'a> {
    points: &'a Points,
    cancel: Cancel,
    opened: Option<Opened>,
}

/// An open platform with changed keys, or the reason why there is none.
struct Opened {
    /// Number of the combination, and its platform.
    combination: u64,
    platform: String,
    target: Result<OpenTarget, String>,
    /// Cases of a group of asks, or the reason why there are none.
    cases: Option<(usize, Result<Vec<Case>, String>)>,
}

/// Why a point has no figure.
enum Without {
    Because(String),
    /// The run was cancelled.
    Interrupted,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(points: &'a Points, cancel: Cancel) -> Worker<'a> {
        Worker { points, cancel, opened: None }
    }

    /// The row of point number `index`; `None` if there are fewer points, or if it was interrupted.
    pub(crate) fn answer(&mut self, index: u64) -> Option<SweepRow> {
        let points = self.points;
        let place = points.place(index)?;
        let mut row = self.row(index)?;
        let answer = self.figures(&place);
        if points.by == SweptBy::Simulation {
            self.opened = None;
        }
        match answer {
            Ok(answer) => fill(&mut row, &answer, points.by),
            Err(Without::Because(because)) => row.because = Some(because),
            Err(Without::Interrupted) => return None,
        }
        Some(row)
    }

    /// The row of point number `index` without figures; `None` if there are fewer points.
    pub(crate) fn row(&self, index: u64) -> Option<SweepRow> {
        let point = self.points.point(index)?;
        let key = format!("{:032x}", point.key);
        let row = SweepRow::without_figure(key, point.platform, point.question.to_owned(), self.points.by);
        Some(SweepRow {
            varied: point.with.into_iter().collect(),
            options: point.options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            method: point.method,
            size_bytes: point.size_bytes,
            alignment_bytes: point.alignment_bytes,
            quantity: Some(point.quantity),
            ..row
        })
    }

    fn figures(&mut self, place: &Place<'_>) -> Result<Answer, Without> {
        let Place { listed, ask, combination } = place;
        let (answerer, by_formulas) = match self.points.by {
            SweptBy::Formulas => (Answerer::Formulas, true),
            SweptBy::Simulation => (Answerer::Machines, false),
        };
        let is_open = |opened: &Opened| {
            by_formulas && opened.combination == *combination && opened.platform == listed.platform.name
        };
        if !self.opened.as_ref().is_some_and(is_open) {
            self.opened = Some(self.open(listed, *combination));
        }
        let opened = self.opened.as_mut().ok_or(Without::Interrupted)?;
        let target = opened.target.as_mut().map_err(|because| Without::Because(because.clone()))?;
        let (group, cases) = opened.cases.get_or_insert_with(|| (ask.group, cases(target, ask)));
        if *group != ask.group {
            (*group, *cases) = (ask.group, self::cases(target, ask));
        }
        let cases = cases.as_ref().map_err(|because| Without::Because(because.clone()))?;
        let case = match &ask.case {
            Some(wanted) => wanted.find(cases),
            None => cases.first(),
        };
        let lacks = || Without::Because("the question has no such case on the platform with these keys".to_owned());
        let case = case.ok_or_else(lacks)?;
        let effort = Effort { simulated_passes: ask.asking.iterations, ..Effort::default() };
        target.answer(answerer, ask.question, case, &effort).map_err(|error| match error {
            BenchError::Machine(MachineError::Interrupted { .. }) => Without::Interrupted,
            error => Without::Because(error.to_string()),
        })
    }

    fn open(&self, listed: &Listed, combination: u64) -> Opened {
        let changes = Changes { with: self.points.with(listed, combination), ..Changes::default() };
        let setup = Setup { changes, no_fast_forward: self.points.no_fast_forward, ..Setup::default() };
        let target = Target::Platform(Box::new(listed.platform.clone()));
        let target = target.open(&setup, &self.cancel).map_err(|error| error.to_string());
        Opened { combination, platform: listed.platform.name.clone(), target, cases: None }
    }
}

/// The cases of a question, or the reason why there are none.
fn cases(target: &OpenTarget, ask: &Ask) -> Result<Vec<Case>, String> {
    let (cases, skipped) = target.planned_cases(ask.question, &ask.asking.axes).map_err(|error| error.to_string())?;
    if cases.is_empty() {
        let reasons: Vec<String> = skipped.into_iter().map(|skipped| skipped.because).collect();
        return Err(if reasons.is_empty() { "the question has no case here".to_owned() } else { reasons.join("; ") });
    }
    Ok(cases)
}

/// Copies the figures of an answer.
fn fill(row: &mut SweepRow, answer: &Answer, by: SweptBy) {
    let rate = |formula: &Formula| formula.delivered_rate_bytes_per_s;
    let formula = answer.formula.as_ref();
    row.quantity = Some(answer.quantity);
    row.ceiling_rate_bytes_per_s = answer.ceiling.rate_bytes_per_s;
    row.bound = formula.and_then(|formula| formula.bound.clone());
    row.bound_cause = formula.and_then(|formula| formula.cause.clone());
    match by {
        SweptBy::Formulas => {
            row.bound_by.clone_from(&row.bound);
            row.latency_ns = formula.and_then(|formula| formula.latency_ns);
            row.delivered_rate_bytes_per_s = formula.and_then(rate);
            row.share_of_ceiling_percent = match (row.delivered_rate_bytes_per_s, row.ceiling_rate_bytes_per_s) {
                (Some(rate), Some(ceiling)) if ceiling > 0.0 => Some(100.0 * rate / ceiling),
                _ => None,
            };
        }
        SweptBy::Simulation => {
            row.latency_ns = answer.latency_ns.map(|summary| summary.median);
            row.delivered_rate_bytes_per_s = answer.delivered_rate_bytes_per_s.map(|summary| summary.median);
            row.share_of_ceiling_percent = answer.share_of_ceiling_percent;
            row.bound_by = answer.waits.first().map(WaitShare::bound_by).or_else(|| row.bound.clone());
            row.longest_wait_cause = answer.waits.first().map(|wait| wait.cause.clone());
            row.longest_wait_percent = answer.waits.first().map(|wait| wait.share_percent);
            row.formula_latency_ns = formula.and_then(|formula| formula.latency_ns);
            row.formula_delivered_rate_bytes_per_s = formula.and_then(rate);
        }
    }
    if row.latency_ns.is_none() && row.delivered_rate_bytes_per_s.is_none() {
        row.because = Some("the answer has no figure".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use crate::{Points, Space};
    use lanemark_record::SweepRow;

    fn row(by: &str, with: &str, question: &str) -> SweepRow {
        let text = format!(
            "schema = 1\nplatforms = [\"card-gen5-x16\"]\nby = \"{by}\"\n[with]\n{with}\n[[question]]\n{question}"
        );
        Points::of(&Space::parse("a.toml", &text).unwrap()).unwrap().answer(0).unwrap()
    }

    const READS: &str = "name = \"dma_read_bandwidth\"\nflows = \"host:0\"\nsizes = \"1M\"";

    #[test]
    fn a_simulated_row_is_bound_by_the_largest_share_of_its_critical_path() {
        for (with, bound_by, cause) in [
            ("dma.tags = 8", "tag", "tag"),
            ("link.generation = 3\nlink.width_lanes = 1", "link busy (card down)", "link_busy"),
        ] {
            let row = row("simulation", with, READS);
            assert_eq!((row.bound_by.as_deref(), row.longest_wait_cause.as_deref()), (Some(bound_by), Some(cause)));
            assert!(row.longest_wait_percent > Some(50.0), "{row:?}");
            assert!(row.bound.is_some() && row.bound != row.bound_by, "the bound of the formula has its own column");
        }
    }

    #[test]
    fn a_row_of_formulas_is_bound_by_their_bound() {
        let row = row("formulas", "dma.tags = 8", READS);
        assert_eq!(row.bound_by.as_deref(), Some("outstanding reads per latency"));
        assert_eq!((row.bound, row.longest_wait_percent), (row.bound_by, None));
    }

    #[test]
    fn a_row_without_a_figure_has_no_bound() {
        let row = row("simulation", "dma.tags = 4096", READS);
        assert!(row.because.is_some() && row.bound_by.is_none(), "{row:?}");
    }
}
