//! Figures between pairs of cores as matrices, one per method.

use crate::grid::{Column, Grid};
use crate::panel::Panel;
use lanemark_record::{CorePair, Detail};

/// One method between all pairs of cores.
pub(crate) struct Matrix {
    /// The method.
    pub name: String,
    /// The cores, ascending: the rows and the columns.
    pub cores: Vec<u32>,
    /// The figure from row to column; `None` on the diagonal and for pairs without an answer.
    pub cells: Vec<Vec<Option<f64>>>,
}

impl Matrix {
    /// The matrices of a panel, in the order of its methods; empty unless all answers are about
    /// several pairs.
    pub fn of(panel: &Panel) -> Vec<Matrix> {
        let answers: Vec<(&str, CorePair, Option<f64>)> = panel
            .lines
            .iter()
            .flat_map(|line| line.points.iter().map(move |point| (line, point)))
            .filter_map(|(line, point)| match point.answer.detail {
                Some(Detail::Pair(pair)) => Some((line.method.as_str(), pair, point.value)),
                _ => None,
            })
            .collect();
        let all = panel.lines.iter().map(|line| line.points.len()).sum::<usize>();
        if answers.is_empty() || answers.len() < all {
            return Vec::new();
        }
        let mut names: Vec<&str> = Vec::new();
        for (name, ..) in &answers {
            if !names.contains(name) {
                names.push(name);
            }
        }
        names.into_iter().map(|name| Matrix::method(name, &answers)).collect()
    }

    fn method(name: &str, answers: &[(&str, CorePair, Option<f64>)]) -> Matrix {
        let answers = || answers.iter().filter(|answer| answer.0 == name);
        let mut cores: Vec<u32> = answers().flat_map(|(_, pair, _)| [pair.from_core, pair.to_core]).collect();
        cores.sort_unstable();
        cores.dedup();
        let found = |from: u32, to: u32| {
            let is = |pair: &CorePair, from, to| pair.from_core == from && pair.to_core == to;
            let direct = answers().find(|(_, pair, _)| is(pair, from, to));
            // A round trip is the same from either end.
            direct.or_else(|| answers().find(|(_, pair, _)| is(pair, to, from))).and_then(|answer| answer.2)
        };
        let row = |from: u32| cores.iter().map(|to| found(from, *to).filter(|_| from != *to)).collect();
        Matrix { name: name.to_owned(), cells: cores.iter().map(|from| row(*from)).collect(), cores }
    }

    /// The smallest and the greatest figure.
    pub fn range(&self) -> Option<(f64, f64)> {
        let figures = || self.cells.iter().flatten().flatten().copied();
        Some((figures().reduce(f64::min)?, figures().reduce(f64::max)?))
    }

    /// Position of `value` between the smallest and the greatest figure, in percent.
    pub fn shade_percent(&self, value: f64) -> f64 {
        match self.range() {
            Some((least, most)) if most > least => 100.0 * (value - least) / (most - least),
            _ => 0.0,
        }
    }

    /// The matrix as a grid of figures.
    pub fn grid(&self, figure: impl Fn(f64) -> String) -> Grid {
        let head = std::iter::once(Column::words("core"));
        let columns = head.chain(self.cores.iter().map(|core| Column::figures(core.to_string()))).collect();
        let cell = |value: &Option<f64>| value.map_or_else(|| "-".to_owned(), &figure);
        let row = |(core, cells): (&u32, &Vec<Option<f64>>)| {
            std::iter::once(core.to_string()).chain(cells.iter().map(cell)).collect()
        };
        Grid { columns, rows: self.cores.iter().zip(&self.cells).map(row).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_matrix_is_symmetric_with_an_empty_diagonal() {
        let record = fixture::pairs();
        let panels = Panel::of(&record);
        let matrices = Matrix::of(&panels[0]);
        let names: Vec<&str> = matrices.iter().map(|matrix| &*matrix.name).collect();
        assert_eq!(names, ["WB 8, one line", "WB 8, two lines"]);
        let matrix = &matrices[0];
        assert_eq!(matrix.cores, [0, 1, 3]);
        let none = None;
        assert_eq!(matrix.cells, [[none, Some(60.0), Some(90.0)], [Some(60.0), none, None], [Some(90.0), None, none]]);
        assert_eq!((matrix.range(), matrix.shade_percent(75.0)), (Some((60.0, 90.0)), 50.0));
    }

    #[test]
    fn answers_that_are_not_all_about_pairs_make_no_matrix() {
        let mut record = fixture::pairs();
        record.answers[0].detail = None;
        assert!(Matrix::of(&Panel::of(&record)[0]).is_empty());
        assert!(Matrix::of(&Panel::of(&fixture::record())[0]).is_empty());
    }
}
