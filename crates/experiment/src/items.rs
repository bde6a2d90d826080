//! The rows of an experiment in their order: the cells of its columns, then its figures.

use crate::experiment::{Experiment, Figure, FigureQuery, Published, size_of};

/// One row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item<'a> {
    /// The published figure.
    pub(crate) published: &'a Published,
    /// Source of its value.
    pub(crate) source: Source<'a>,
    /// Whether it is compared with the published figure.
    pub(crate) is_compared: bool,
}

/// Source of a row's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Source<'a> {
    /// A question, and the size that replaces its own.
    Ask(&'a FigureQuery, Option<u64>),
    /// Arithmetic over other rows.
    Derive(&'a str),
    /// A number that is counted on a board.
    Measure,
    /// Rules that must hold.
    Rules,
    /// Not answered.
    Later,
    /// An input.
    Input,
}

impl Item<'_> {
    /// ID of the row.
    pub(crate) fn id(&self) -> &str {
        &self.published.id
    }

    /// Whether the value is a rate, so that its reciprocal is a time.
    pub(crate) fn is_rate(&self) -> bool {
        self.published.unit.ends_with("/s")
    }
}

/// The cells of `columns` by size, then the figures.
pub(crate) fn items(experiment: &Experiment) -> Vec<Item<'_>> {
    let mut items = Vec::with_capacity(experiment.published.len());
    for column in &experiment.columns {
        let mut cells: Vec<(u64, &Published)> =
            experiment.published.values().filter_map(|row| Some((size_of(&column.id, &row.id)?, row))).collect();
        cells.sort_by_key(|cell| cell.0);
        items.extend(cells.into_iter().map(|(size, published)| Item {
            published,
            source: Source::Ask(&column.ask, Some(size)),
            is_compared: column.tolerance_percent.is_some() && published.target().is_some(),
        }));
    }
    items.extend(experiment.figures.iter().filter_map(|figure| {
        Some(Item {
            published: experiment.published.get(&figure.id)?,
            source: source(figure),
            is_compared: figure.tolerance_percent.is_some()
                && !figure.sic
                && experiment.published.get(&figure.id)?.target().is_some(),
        })
    }));
    items
}

fn source(figure: &Figure) -> Source<'_> {
    match (&figure.ask, &figure.derive) {
        (Some(ask), _) => Source::Ask(ask, None),
        (_, Some(expression)) => Source::Derive(expression),
        _ if figure.measure.is_some() => Source::Measure,
        _ if !figure.rules.is_empty() => Source::Rules,
        _ if figure.later.is_some() => Source::Later,
        _ => Source::Input,
    }
}
