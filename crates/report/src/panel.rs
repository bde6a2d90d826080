//! A record cut into panels: one question on one target, its methods as lines, best first.

use crate::figures::{self, Unit};
use lanemark_method::Method;
use lanemark_record::{Answer, Ceiling, CeilingKind, Quantity, Record, Target, TargetKind, WaitShare};

/// The answers of one target to one question.
pub(crate) struct Panel<'a> {
    /// The target's name.
    pub target: &'a str,
    /// The target's kind; `None` if the record does not list the target.
    pub kind: Option<TargetKind>,
    /// Whether the target is ordinary memory of this machine, as opposed to MMIO.
    pub is_memory: bool,
    /// The question, by its catalogue name.
    pub question: &'a str,
    /// Quantity of the figures.
    pub quantity: Quantity,
    /// Methods, best first. Neither the list nor any line is empty.
    pub lines: Vec<Line<'a>>,
    /// Unit of the figures.
    pub unit: Unit,
}

/// One method, by size.
pub(crate) struct Line<'a> {
    /// The method, with a nonzero alignment, and with the cores.
    pub name: String,
    /// The method and alignment without the cores.
    pub method: String,
    /// Answers, smallest size first; each size once.
    pub points: Vec<Point<'a>>,
}

/// One answer and its headline figure.
#[derive(Clone, Copy)]
pub(crate) struct Point<'a> {
    /// The whole answer.
    pub answer: &'a Answer,
    /// Figure in bytes per second or nanoseconds; for a target with formulas only, the formula's.
    pub value: Option<f64>,
}

impl<'a> Panel<'a> {
    /// Cuts `record` into panels, in the order of its targets and then of its questions.
    pub fn of(record: &'a Record) -> Vec<Panel<'a>> {
        let mut panels: Vec<Panel<'a>> = Vec::new();
        for answer in &record.answers {
            // Answers of a panel usually follow each other.
            let place = panels.iter().rposition(|panel| panel.holds(answer)).unwrap_or_else(|| {
                panels.push(Panel::empty(record, answer));
                panels.len() - 1
            });
            panels[place].add(answer);
        }
        for panel in &mut panels {
            panel.arrange();
        }
        let targets = &record.targets;
        let place = |name: &str| targets.iter().position(|target| target.name == name).unwrap_or(usize::MAX);
        panels.sort_by_cached_key(|panel| place(panel.target));
        panels
    }

    fn empty(record: &Record, answer: &'a Answer) -> Panel<'a> {
        let target = record.targets.iter().find(|target| target.name == answer.target);
        let is_memory = |target: &Target| {
            let is_measured = matches!(target.kind, TargetKind::Real | TargetKind::Emulated);
            is_measured && target.platform.is_none() && target.card.is_none() && target.runtime.is_none()
        };
        Panel {
            target: &answer.target,
            kind: target.map(|target| target.kind),
            is_memory: target.is_some_and(is_memory),
            question: &answer.question,
            quantity: answer.quantity,
            lines: Vec::new(),
            unit: Unit::Nanoseconds,
        }
    }

    fn holds(&self, answer: &Answer) -> bool {
        (self.target, self.question, self.quantity) == (&*answer.target, &*answer.question, answer.quantity)
    }

    /// Adds `answer` to the first line of its name without an answer of the same size, so that
    /// repeated answers stay visible.
    fn add(&mut self, answer: &'a Answer) {
        let point = Point { answer, value: headline(answer, self.kind) };
        let mut name = answer.method.to_string();
        if answer.alignment_bytes != 0 {
            name += &format!(" at +{} B", answer.alignment_bytes);
        }
        let method = name.clone();
        name += &cores_in_words(&answer.cores());
        for turn in 1.. {
            let name = if turn == 1 { name.clone() } else { format!("{name} (repeated: {turn})") };
            match self.lines.iter_mut().find(|line| line.name == name) {
                None => return self.lines.push(Line { name, method, points: vec![point] }),
                Some(line) if line.points.iter().all(|other| other.answer.size_bytes != answer.size_bytes) => {
                    return line.points.push(point);
                }
                Some(_) => {}
            }
        }
    }

    fn arrange(&mut self) {
        for line in &mut self.lines {
            line.points.sort_by_key(|point| point.answer.size_bytes);
        }
        let is_rate = self.is_rate();
        // Loads keep their order, from the lightest to the heaviest.
        let is_loaded = self.is_loaded();
        // A line without any figure comes last in either order.
        self.lines.sort_by(|a, b| {
            if is_loaded {
                return std::cmp::Ordering::Equal;
            }
            let [a, b] = [a, b].map(|line| line.largest().value.map(|value| if is_rate { -value } else { value }));
            a.unwrap_or(f64::INFINITY).total_cmp(&b.unwrap_or(f64::INFINITY))
        });
        let values = self.lines.iter().flat_map(|line| &line.points).filter_map(|point| point.value);
        self.unit = if is_rate {
            Unit::for_rates(values.fold(0.0, f64::max))
        } else {
            Unit::for_times(values.fold(f64::INFINITY, f64::min))
        };
    }

    /// Whether larger figures are better.
    pub fn is_rate(&self) -> bool {
        self.quantity == Quantity::Bandwidth
    }

    /// Whether its methods are one transfer under increasing load.
    pub fn is_loaded(&self) -> bool {
        let mut answers = self.lines.iter().flat_map(|line| &line.points).map(|point| point.answer);
        answers.any(|answer| matches!(answer.method, Method::DmaUnderLoad { .. }))
    }

    /// The quantity of the figures, in words.
    pub fn quantity_in_words(&self) -> &'static str {
        match self.quantity {
            Quantity::Bandwidth => "delivered rate",
            Quantity::RoundTripLatency => "round-trip latency",
            Quantity::OneWayLatency => "one-way latency",
            Quantity::Overhead => "overhead per call",
            Quantity::Cost => "cost",
        }
    }

    /// Source of the figures: samples, or a formula alone.
    pub fn statistic(&self) -> &'static str {
        let is_sampled = self.lines.iter().flat_map(|line| &line.points).any(|point| summary(point.answer).is_some());
        if self.kind == Some(TargetKind::Formula) && !is_sampled { "by formula" } else { "median" }
    }

    /// The question as a heading.
    pub fn title(&self) -> String {
        let of_memory = match self.question {
            "mmio_write_bandwidth" => Some("Store bandwidth to WB memory"),
            "mmio_write_latency" => Some("Store latency to WB memory"),
            "mmio_read_bandwidth" => Some("Load bandwidth from WB memory"),
            "mmio_read_latency" => Some("Load latency from WB memory"),
            "streaming_load_bandwidth" => Some("Streaming load bandwidth from WB memory"),
            _ => None,
        };
        of_memory.filter(|_| self.is_memory).map_or_else(|| title(self.question), str::to_owned)
    }

    /// Every size of any method, smallest first.
    pub fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> =
            self.lines.iter().flat_map(|line| &line.points).map(|point| point.answer.size_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Whether every method has only one size, so that there is no plot over sizes.
    pub fn has_one_size_per_method(&self) -> bool {
        self.lines.iter().all(|line| line.points.len() == 1)
    }

    /// Every distinct limit with its number of answers, that of the best method first.
    pub fn ceilings(&self) -> Vec<(&'a Ceiling, usize)> {
        let mut found: Vec<(&Ceiling, usize)> = Vec::new();
        let best = self.lines.first().map(Line::largest);
        for point in best.iter().chain(self.lines.iter().flat_map(|line| &line.points)) {
            let ceiling = &point.answer.ceiling;
            match found.iter_mut().find(|(other, _)| *other == ceiling) {
                Some((_, count)) => *count += 1,
                None => found.push((ceiling, 0)),
            }
        }
        found
    }

    /// The limit of the best method at its largest size, and the number of other limits, in one
    /// sentence.
    pub fn ceiling_in_words(&self) -> String {
        let ceilings = self.ceilings();
        let Some(((best, _), others)) = ceilings.split_first() else { return "limit: unknown".to_owned() };
        let mut text = format!("limit: {}", ceiling_in_words(best));
        let mut rates: Vec<f64> = others.iter().filter_map(|(ceiling, _)| ceiling.rate_bytes_per_s).collect();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        match (others.len(), &*rates) {
            (0, _) => {}
            (1, [rate]) => text += &format!(" (another, {}, for other methods or sizes)", figures::rate(*rate)),
            (count, [first, .., last]) => {
                text += &format!(
                    " ({count} others, {} to {}, for other methods or sizes)",
                    figures::rate(*first),
                    figures::rate(*last)
                );
            }
            (count, _) => text += &format!(" ({} for other methods or sizes)", figures::counted(count, "other")),
        }
        text
    }
}

impl<'a> Line<'a> {
    /// The answer at the largest size with a figure, else at the largest size.
    pub fn largest(&self) -> Point<'a> {
        let last = self.points.len() - 1;
        *self.points.iter().rev().find(|point| point.value.is_some()).unwrap_or(&self.points[last])
    }

    /// The answer at `size_bytes`.
    pub fn at(&self, size_bytes: u64) -> Option<Point<'a>> {
        self.points.iter().find(|point| point.answer.size_bytes == size_bytes).copied()
    }
}

impl Point<'_> {
    /// The formula's figure, in bytes per second or nanoseconds.
    pub fn formula(&self) -> Option<f64> {
        formula(self.answer)
    }

    /// Difference between formula and figure, in percent of the figure.
    pub fn formula_difference_percent(&self) -> Option<f64> {
        let (formula, value) = (self.formula()?, self.value?);
        (value != 0.0).then(|| 100.0 * (formula - value) / value)
    }

    /// The share of the limit: a percentage, or the word `unknown`.
    pub fn share_in_words(&self) -> Option<String> {
        let ceiling = &self.answer.ceiling;
        match (self.answer.share_of_ceiling_percent, ceiling.kind) {
            (Some(share), CeilingKind::Measured) => Some(format!("{} (measured)", figures::percent(share))),
            (Some(share), _) => Some(figures::percent(share)),
            (None, _) if self.answer.quantity != Quantity::Bandwidth => None,
            (None, CeilingKind::Measured) => Some("measured".to_owned()),
            (None, CeilingKind::Unknown) => Some("unknown".to_owned()),
            (None, CeilingKind::Computed) => None,
        }
    }

    /// The bottleneck of the transfer: the longest share of the critical path. Where nothing can be observed, as on a
    /// real machine, the bound of the formula.
    pub fn bound_in_words(&self) -> Option<String> {
        let formula = || self.answer.formula.as_ref().and_then(|formula| formula.bound.clone());
        let bound = self.answer.waits.first().map(WaitShare::in_words).or_else(formula)?;
        Some(if self.answer.twin.is_some() { format!("{bound}, by the twin") } else { bound })
    }

    /// Difference of the figure of the twin from this one, in percent; `None` without a twin.
    pub fn twin_difference_percent(&self) -> Option<f64> {
        let twin = self.answer.twin.as_ref()?;
        let figure = match self.answer.quantity {
            Quantity::Bandwidth => twin.delivered_rate_bytes_per_s,
            _ => twin.latency_ns,
        };
        let own = summary(self.answer)?.median;
        Some(100.0 * (figure? - own) / own).filter(|difference| difference.is_finite())
    }

    /// The 95 % interval of the figure, in bytes per second or nanoseconds.
    pub fn ci95(&self) -> Option<lanemark_record::Interval> {
        summary(self.answer)?.ci95
    }

    /// The 95 % interval in the unit of a panel.
    pub fn ci95_in(&self, unit: Unit) -> Option<String> {
        let interval = self.ci95()?;
        Some(format!("{} to {}", unit.figure(interval.low), unit.figure(interval.high)))
    }

    /// The median absolute deviation, in bytes per second or nanoseconds.
    pub fn mad(&self) -> Option<f64> {
        summary(self.answer).map(|summary| summary.mad)
    }
}

/// The summary of the samples whose median is the headline figure.
pub(crate) fn summary(answer: &Answer) -> Option<lanemark_record::Summary> {
    match answer.quantity {
        Quantity::Bandwidth => answer.delivered_rate_bytes_per_s,
        _ => answer.latency_ns,
    }
}

fn formula(answer: &Answer) -> Option<f64> {
    let formula = answer.formula.as_ref()?;
    match answer.quantity {
        Quantity::Bandwidth => formula.delivered_rate_bytes_per_s,
        _ => formula.latency_ns,
    }
}

pub(crate) fn headline(answer: &Answer, kind: Option<TargetKind>) -> Option<f64> {
    let fitted = || answer.fit.filter(|_| answer.quantity == Quantity::Overhead).map(|fit| fit.per_call_ns);
    let computed = || formula(answer).filter(|_| kind == Some(TargetKind::Formula));
    summary(answer).map(|summary| summary.median).or_else(fitted).or_else(computed).filter(|value| value.is_finite())
}

/// A limit in words: rate, kind and reason.
pub(crate) fn ceiling_in_words(ceiling: &Ceiling) -> String {
    let kind = match ceiling.kind {
        CeilingKind::Computed => "computed",
        CeilingKind::Measured => "measured",
        CeilingKind::Unknown => "unknown",
    };
    match ceiling.rate_bytes_per_s {
        Some(rate) => format!("{}, {kind}: {}", figures::rate(rate), ceiling.because),
        None => format!("{kind}: {}", ceiling.because),
    }
}

/// The suffix of a method's name that names the cores.
pub(crate) fn cores_in_words(cores: &[u32]) -> String {
    match cores {
        [] => String::new(),
        [core] => format!(", core {core}"),
        cores => {
            let cores: Vec<String> = cores.iter().map(u32::to_string).collect();
            format!(", cores {}", cores.join(" and "))
        }
    }
}

/// A catalogue name in words: underscores become spaces.
pub(crate) fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// A question's catalogue name as a heading: `mmio_read_latency` is "MMIO read latency".
pub(crate) fn title(question: &str) -> String {
    let words: Vec<String> = question
        .split('_')
        .map(|word| {
            if ["mmio", "dma", "bar", "iommu", "iotlb", "p2p", "wc"].contains(&word) {
                word.to_uppercase()
            } else {
                word.to_owned()
            }
        })
        .collect();
    let mut text = words.join(" ");
    if let Some(first) = text.get(..1).map(str::to_uppercase) {
        text.replace_range(..1, &first);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use lanemark_method::Access;

    #[test]
    fn a_panel_holds_every_answer_of_its_question_and_target_once() {
        let record = fixture::record();
        let panels = Panel::of(&record);
        let points: usize = panels.iter().flat_map(|panel| &panel.lines).map(|line| line.points.len()).sum();
        assert_eq!(points, record.answers.len());
        let names: Vec<_> = panels.iter().map(|panel| (panel.target, panel.question)).collect();
        assert_eq!(
            names,
            [
                ("card-gen5-x16", "mmio_write_bandwidth"),
                ("card-gen5-x16", "mmio_read_latency"),
                ("host", "mmio_write_bandwidth"),
            ]
        );
    }

    #[test]
    fn the_best_method_comes_first_for_rates_and_latencies() {
        let record = fixture::record();
        let panels = Panel::of(&record);
        let names = |panel: &Panel| panel.lines.iter().map(|line| line.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&panels[0]), ["WC movdir64b", "WC nt32+sfence", "UC 4"]);
        assert_eq!(names(&panels[1]), ["UC 4", "UC 8"]);
    }

    #[test]
    fn repeated_answers_are_shown_twice() {
        let mut record = fixture::record();
        record.answers.push(record.answers[0].clone());
        let mut unaligned = record.answers[0].clone();
        unaligned.alignment_bytes = 4;
        record.answers.push(unaligned);
        let panels = Panel::of(&record);
        let names: Vec<&str> = panels[0].lines.iter().map(|line| &*line.name).collect();
        assert!(names.iter().any(|name| name.ends_with("(repeated: 2)")), "{names:?}");
        assert!(names.iter().any(|name| name.ends_with("at +4 B")), "{names:?}");
    }

    #[test]
    fn a_method_without_a_figure_comes_last() {
        let mut record = fixture::record();
        for answer in record.answers.iter_mut().filter(|answer| answer.method.access() == Some(Access::Movdir64b)) {
            answer.delivered_rate_bytes_per_s = None;
        }
        assert_eq!(Panel::of(&record)[0].lines[2].name, "WC movdir64b");
    }

    #[test]
    fn a_formula_target_shows_its_formula() {
        let mut record = fixture::record();
        record.targets[0].kind = TargetKind::Formula;
        for answer in &mut record.answers {
            answer.delivered_rate_bytes_per_s = None;
        }
        let panels = Panel::of(&record);
        let largest = panels[0].lines[0].largest();
        assert!(largest.value.is_some());
        assert_eq!(largest.value, largest.formula());
        assert_eq!(panels[2].lines[0].largest().value, None, "a real target does not");
    }

    #[test]
    fn question_names_become_headings() {
        assert_eq!(title("mmio_read_latency"), "MMIO read latency");
        assert_eq!(title("driver_call_overhead"), "Driver call overhead");
        assert_eq!(title("éa"), "éa");
        assert_eq!(title(""), "");
    }

    #[test]
    fn other_limits_are_counted_after_that_of_the_best_method() {
        let record = fixture::record();
        let panels = Panel::of(&record);
        assert!(panels[2].ceiling_in_words().starts_with("limit: unknown: "));
        let mut record = record.clone();
        record.answers[0].ceiling.rate_bytes_per_s = Some(12e9);
        let text = Panel::of(&record)[0].ceiling_in_words();
        assert!(text.ends_with("(another, 12.0 GB/s, for other methods or sizes)"), "{text}");
    }
}
