//! Traces of answers of a record, for its page.

use crate::panel::Panel;
use crate::timeline::{Traced, Waterfall};
use lanemark_record::{Record, TargetKind};

/// Largest size of a traced answer, in bytes: the first TLPs of a longer one are only its start.
const MOST_BYTES: u64 = 4096;

/// Largest number of TLPs of a waterfall in the page of a record, and of all of them.
const MOST: usize = 200;
const MOST_OF_ALL: usize = 4000;

/// The trace of an answer.
#[derive(Clone, Copy, Debug)]
pub struct AnswerTrace<'a> {
    /// Number of the answer in its record.
    pub answer: usize,
    /// Its trace.
    pub traced: Traced<'a>,
}

/// The answers whose traces the page of a record shows, by number: of each question of a simulated target whose platform is in
/// the record, the best method, at the largest size up to 4 KiB.
#[must_use]
pub fn answers_to_trace(record: &Record) -> Vec<usize> {
    let wanted = |panel: &Panel| {
        let target = record.targets.iter().find(|target| target.name == panel.target)?;
        if target.kind != TargetKind::Simulated || target.platform.is_none() {
            return None;
        }
        let points = &panel.lines.first()?.points;
        let size = |point: &&crate::panel::Point| point.answer.size_bytes;
        let short = points.iter().filter(|point| size(point) <= MOST_BYTES).max_by_key(size);
        let answer = short.or_else(|| points.iter().min_by_key(size))?.answer;
        record.answers.iter().position(|other| std::ptr::eq(other, answer))
    };
    Panel::of(record).iter().filter_map(wanted).collect()
}

/// The waterfall of a panel.
pub(crate) struct PanelWaterfall {
    /// Its number on the page.
    pub(crate) place: usize,
    pub(crate) waterfall: Waterfall,
}

impl PanelWaterfall {
    /// The waterfall of the first trace of an answer of `panel`.
    pub(crate) fn of(record: &Record, panel: &Panel, traces: &[AnswerTrace]) -> Option<PanelWaterfall> {
        let is_of_panel = |trace: &AnswerTrace| {
            let answer = record.answers.get(trace.answer);
            let is_it = |point: &crate::panel::Point| answer.is_some_and(|answer| std::ptr::eq(answer, point.answer));
            panel.lines.iter().flat_map(|line| &line.points).any(is_it)
        };
        let most = MOST.min(MOST_OF_ALL / traces.len().max(1));
        let place = traces.iter().position(is_of_panel)?;
        let found = &traces.get(place)?.traced;
        (!found.trace.frames.is_empty()).then(|| PanelWaterfall { place, waterfall: Waterfall::of(found, most) })
    }
}
