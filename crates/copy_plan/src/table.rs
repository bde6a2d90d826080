//! Times of methods on one machine, as a file.

use lanemark_method::{CopyBy, CopyDirection};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the file format.
pub const SCHEMA: u32 = 1;

/// Times of all methods for some counts and sizes on one machine.
///
/// The times between them are interpolated: linearly between two counts, then between two sizes. Beyond the last count or
/// size they continue the line through the last two; below the first they are those of the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CopyTable {
    /// Version of the file format.
    pub schema: u32,
    /// The machine, as described by its target.
    pub machine: String,
    /// The measured times.
    pub points: Vec<CopyPoint>,
}

/// The time of a method for a number of pieces of one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CopyPoint {
    /// To the device or from it.
    pub direction: CopyDirection,
    /// The method.
    pub by: CopyBy,
    /// Number of pieces, at least 1.
    pub copies: u32,
    /// Bytes of a piece, at least 1.
    pub size_bytes: u64,
    /// Nanoseconds from the first call until all pieces have arrived, above 0.
    pub ns: f64,
}

/// A table that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The text is not a table.
    #[error("not a table of copies: {0}; 'lanemark tune' writes one")]
    NotATable(String),
    /// The version is another one.
    #[error(
        "the table of copies has schema {found}, and this program reads {SCHEMA}: run 'lanemark tune' of this version"
    )]
    Version {
        /// The version of the table.
        found: u64,
    },
    /// A point is impossible.
    #[error("point {number} of the table of copies: {because}")]
    Point {
        /// Number of the point, from 0.
        number: usize,
        /// The rule that it breaks.
        because: &'static str,
    },
    /// There is no point.
    #[error("the table of copies has no points: run 'lanemark tune' on a target that answers small_copies")]
    Empty,
}

impl CopyTable {
    /// Creates a table of the current version.
    ///
    /// # Errors
    /// [`TableError::Empty`] and [`TableError::Point`].
    pub fn new(machine: String, points: Vec<CopyPoint>) -> Result<CopyTable, TableError> {
        CopyTable { schema: SCHEMA, machine, points }.checked()
    }

    /// Reads a table in JSON.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn from_json(text: &str) -> Result<CopyTable, TableError> {
        // A key of the text may have line ends.
        let not_a_table = |error: serde_json::Error| TableError::NotATable(error.to_string().replace('\n', " "));
        // The version decides which other fields there are.
        let value: serde_json::Value = serde_json::from_str(text).map_err(not_a_table)?;
        match value.get("schema").and_then(serde_json::Value::as_u64) {
            Some(found) if found != u64::from(SCHEMA) => Err(TableError::Version { found }),
            // Read from the text, so that an error has its line.
            _ => serde_json::from_str::<CopyTable>(text).map_err(not_a_table)?.checked(),
        }
    }

    fn checked(self) -> Result<CopyTable, TableError> {
        if self.points.is_empty() {
            return Err(TableError::Empty);
        }
        let is_same = |one: &CopyPoint, other: &CopyPoint| {
            (one.direction, one.by, one.copies, one.size_bytes)
                == (other.direction, other.by, other.copies, other.size_bytes)
        };
        for (number, point) in self.points.iter().enumerate() {
            let because = if point.copies == 0 {
                "copies must be at least 1"
            } else if point.size_bytes == 0 {
                "size_bytes must be at least 1"
            } else if !(point.ns.is_finite() && point.ns > 0.0) {
                "ns must be above 0"
            } else if self.points[..number].iter().any(|other| is_same(point, other)) {
                "an earlier point has the same direction, method, count and size"
            } else {
                continue;
            };
            return Err(TableError::Point { number, because });
        }
        Ok(self)
    }

    /// The methods with points in a direction, in the order of [`CopyBy::ALL`].
    #[must_use]
    pub fn methods(&self, direction: CopyDirection) -> Vec<CopyBy> {
        let is_there = |by: &CopyBy| self.points.iter().any(|point| point.direction == direction && point.by == *by);
        CopyBy::ALL.into_iter().filter(is_there).collect()
    }

    /// Estimated nanoseconds of `copies` pieces of `size_bytes` bytes by a method; `None` without points of it.
    #[must_use]
    pub fn estimate(&self, direction: CopyDirection, by: CopyBy, copies: u32, size_bytes: u64) -> Option<f64> {
        interpolated(&self.by_size(direction, by, copies), size_bytes as f64)
    }

    /// Estimated nanoseconds of `copies` pieces by a method, for each size of the table in ascending order.
    fn by_size(&self, direction: CopyDirection, by: CopyBy, copies: u32) -> Vec<(f64, f64)> {
        let of_method = || self.points.iter().filter(move |point| point.direction == direction && point.by == by);
        let mut sizes: Vec<u64> = of_method().map(|point| point.size_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let at_size = |size: u64| {
            let mut line: Vec<(f64, f64)> = of_method()
                .filter(|point| point.size_bytes == size)
                .map(|point| (f64::from(point.copies), point.ns))
                .collect();
            line.sort_by(|one, other| one.0.total_cmp(&other.0));
            Some((size as f64, interpolated(&line, f64::from(copies))?))
        };
        sizes.into_iter().filter_map(at_size).collect()
    }

    /// The fastest method by estimate, with its time; of two that are equally fast the one that [`CopyBy::ALL`] has first.
    #[must_use]
    pub fn best(&self, direction: CopyDirection, copies: u32, size_bytes: u64) -> Option<(CopyBy, f64)> {
        self.best_of_sizes(direction, copies, &[size_bytes])[0]
    }

    /// The fastest method for each of these sizes, as [`best`](CopyTable::best) has it.
    pub(crate) fn best_of_sizes(
        &self,
        direction: CopyDirection,
        copies: u32,
        sizes_bytes: &[u64],
    ) -> Vec<Option<(CopyBy, f64)>> {
        let methods = self.methods(direction).into_iter();
        let lines: Vec<_> = methods.map(|by| (by, self.by_size(direction, by, copies))).collect();
        let best = |size: &u64| {
            let timed = lines.iter().filter_map(|(by, line)| Some((*by, interpolated(line, *size as f64)?)));
            timed.min_by(|one, other| one.1.total_cmp(&other.1))
        };
        sizes_bytes.iter().map(best).collect()
    }
}

/// Value at `x` of the straight lines through points in ascending order: beyond the last, of the last line if it ascends;
/// below the first, that of the first.
fn interpolated(points: &[(f64, f64)], x: f64) -> Option<f64> {
    let (first, last) = (points.first()?, points.last()?);
    if x <= first.0 {
        return Some(first.1);
    }
    let after = points.partition_point(|point| point.0 < x).min(points.len() - 1);
    let (from, to) = (points[after.max(1) - 1], points[after]);
    if from.0 >= to.0 {
        return Some(last.1);
    }
    let slope = (to.1 - from.1) / (to.0 - from.0);
    // A time that sinks by chance must not become negative.
    let slope = if x > last.0 { slope.max(0.0) } else { slope };
    Some(to.1 + slope * (x - to.0))
}

/// JSON Schema of the file format.
#[must_use]
pub fn schema() -> String {
    let schema = schemars::schema_for!(CopyTable);
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(by: CopyBy, copies: u32, size_bytes: u64, ns: f64) -> CopyPoint {
        CopyPoint { direction: CopyDirection::ToDevice, by, copies, size_bytes, ns }
    }

    fn table(points: Vec<CopyPoint>) -> CopyTable {
        CopyTable::new("a test".to_owned(), points).unwrap()
    }

    #[test]
    fn a_sum_of_fixed_and_proportional_costs_is_estimated_without_error() {
        let cost = |copies: u32, size: u64| 5000.0 + f64::from(copies) * (300.0 + size as f64 / 10.0);
        let grid = [1, 8, 64].into_iter().flat_map(|copies| [64, 4096].map(|size| (copies, size)));
        let table = table(grid.map(|(copies, size)| point(CopyBy::Loop, copies, size, cost(copies, size))).collect());
        for (copies, size) in [(1, 64), (3, 64), (3, 100), (64, 4000), (500, 64), (500, 1 << 20)] {
            let estimate = table.estimate(CopyDirection::ToDevice, CopyBy::Loop, copies, size).unwrap();
            assert!((estimate / cost(copies, size) - 1.0).abs() < 1e-9, "{copies} of {size}: {estimate}");
        }
        let small = table.estimate(CopyDirection::ToDevice, CopyBy::Loop, 8, 1).unwrap();
        assert!((small / cost(8, 64) - 1.0).abs() < 1e-9, "below the first size the time is that of the first");
        assert_eq!(table.estimate(CopyDirection::FromDevice, CopyBy::Loop, 1, 64), None);
    }

    #[test]
    fn a_time_that_sinks_is_not_continued_below_zero() {
        let table = table(vec![point(CopyBy::Batch, 1, 64, 900.0), point(CopyBy::Batch, 2, 64, 500.0)]);
        assert_eq!(table.estimate(CopyDirection::ToDevice, CopyBy::Batch, 400, 64), Some(500.0));
    }

    #[test]
    fn a_missing_long_size_is_continued_from_the_counts_that_have_it() {
        let all = [(1, 64, 100.0), (9, 64, 900.0), (1, 1000, 1000.0), (5, 1000, 5000.0)];
        let table = table(all.map(|(copies, size, ns)| point(CopyBy::Loop, copies, size, ns)).to_vec());
        let estimate = table.estimate(CopyDirection::ToDevice, CopyBy::Loop, 9, 1000);
        assert_eq!(estimate, Some(9000.0));
    }

    #[test]
    fn the_fastest_method_is_the_best() {
        let table = table(vec![point(CopyBy::Loop, 1, 64, 7.0), point(CopyBy::InPlace, 1, 64, 5.0)]);
        assert_eq!(table.best(CopyDirection::ToDevice, 1, 64), Some((CopyBy::InPlace, 5.0)));
        assert_eq!(table.best(CopyDirection::FromDevice, 1, 64), None);
        assert_eq!(table.methods(CopyDirection::ToDevice), [CopyBy::Loop, CopyBy::InPlace]);
    }

    #[test]
    fn a_table_survives_its_file_and_a_bad_file_is_refused_with_the_reason() {
        let table = table(vec![point(CopyBy::Packed, 3, 100, 12.5)]);
        let text = serde_json::to_string(&table).unwrap();
        assert_eq!(CopyTable::from_json(&text), Ok(table));
        let refused = |from: &str, to: &str| {
            assert!(text.contains(from), "{text}");
            CopyTable::from_json(&text.replace(from, to)).unwrap_err().to_string()
        };
        assert!(refused("\"schema\":1", "\"schema\":2").contains("has schema 2, and this program reads 1"));
        assert!(refused("\"packed\"", "\"pack\"").contains("loop, batch, packed, in_place, stores"));
        assert!(refused("12.5", "0.0").contains("point 0 of the table of copies: ns must be above 0"));
        assert!(refused("\"copies\":3", "\"copies\":0").contains("copies must be at least 1"));
        assert!(refused("\"size_bytes\":100", "\"size_bytes\":0").contains("size_bytes must be at least 1"));
        assert!(refused("\"machine\"", "\"host\"").contains("unknown field `host`"));
        assert!(refused("\"points\":[{", "\"points\":[],\"more\":[{").contains("not a table of copies"));
        let long = CopyTable::from_json("{ \"schema\": 1, \"a\\nb\": 2 }").unwrap_err().to_string();
        assert!(long.contains("unknown field `a b`"), "{long}");
        let twice = vec![point(CopyBy::Packed, 3, 100, 1.0), point(CopyBy::Packed, 3, 100, 2.0)];
        assert!(CopyTable::new(String::new(), twice).unwrap_err().to_string().starts_with("point 1 "));
        assert_eq!(CopyTable::new(String::new(), vec![]), Err(TableError::Empty));
    }
}
