//! Tables of a sweep as CSV and JSON lines.

use crate::sweep::column::Cell;
use crate::sweep::table::SweepTable;
use std::io::Write;

impl SweepTable {
    /// Formats the table as CSV, to be written by [`write_whole`](crate::file::write_whole). The first row names the
    /// columns; an absent value is empty.
    ///
    /// # Errors
    /// The error of the writer, which only a bug of this program can cause.
    pub fn csv(&self) -> std::io::Result<Vec<u8>> {
        let mut table = csv::Writer::from_writer(Vec::new());
        table.write_record(self.columns().iter().map(|column| column.name.as_str()))?;
        let mut field = Vec::new();
        for row in 0..self.rows() {
            for column in self.columns() {
                field.clear();
                match column.cell(row) {
                    Cell::Absent => {}
                    Cell::Text(text) => field.extend_from_slice(text.as_bytes()),
                    Cell::Whole(whole) => write!(field, "{whole}")?,
                    Cell::Number(number) => write!(field, "{number}")?,
                }
                table.write_field(&field)?;
            }
            table.write_record(None::<&[u8]>)?;
        }
        table.into_inner().map_err(csv::IntoInnerError::into_error)
    }

    /// Formats the table as JSON lines: one object per row, without its absent values.
    ///
    /// # Errors
    /// The error of the writer, which only a bug of this program can cause.
    pub fn json_lines(&self) -> std::io::Result<Vec<u8>> {
        let names: Vec<String> =
            self.columns().iter().map(|column| serde_json::json!(column.name).to_string()).collect();
        let mut lines = Vec::new();
        for row in 0..self.rows() {
            let mut begins = b'{';
            for (column, name) in self.columns().iter().zip(&names) {
                let cell = column.cell(row);
                if cell == Cell::Absent {
                    continue;
                }
                lines.push(begins);
                begins = b',';
                write!(lines, "{name}:")?;
                match cell {
                    Cell::Absent => {}
                    Cell::Text(text) => serde_json::to_writer(&mut lines, text)?,
                    Cell::Whole(whole) => write!(lines, "{whole}")?,
                    Cell::Number(number) => serde_json::to_writer(&mut lines, &number)?,
                }
            }
            lines.extend_from_slice(if begins == b'{' { b"{}\n" } else { b"}\n" });
        }
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use crate::sweep::row::{SweepRow, SweptBy};
    use crate::sweep::table::SweepTable;
    use std::collections::BTreeMap;

    #[test]
    fn csv_and_json_lines_have_a_column_per_changed_key() {
        let row = |key: &str, mps: &str, rate: Option<f64>, because: Option<&str>| SweepRow {
            varied: BTreeMap::from([("link.mps_bytes".to_owned(), mps.to_owned())]),
            delivered_rate_bytes_per_s: rate,
            because: because.map(str::to_owned),
            ..SweepRow::without_figure(key.to_owned(), "a, \"b\"".to_owned(), "q".to_owned(), SweptBy::Simulation)
        };
        let table = SweepTable::of(&[row("1", "256", Some(1e9), None), row("2", "128", None, Some("none"))]);
        let text = String::from_utf8(table.csv().unwrap()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("platform,link.mps_bytes,question,by,method,size_bytes,"), "{text}");
        assert!(lines[1].starts_with("\"a, \"\"b\"\"\",128,q,simulation,") && lines[1].ends_with(",none"), "{text}");
        assert!(lines[2].contains(",1000000000,"), "{text}");
        let text = String::from_utf8(table.json_lines().unwrap()).unwrap();
        let rows: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let first = serde_json::json!({"platform": "a, \"b\"", "link.mps_bytes": 128, "question": "q",
            "by": "simulation", "because": "none"});
        assert_eq!(rows[0], first);
        assert_eq!(rows[1]["delivered_rate_bytes_per_s"], 1e9);
    }
}
