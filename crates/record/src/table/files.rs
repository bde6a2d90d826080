//! Tables as CSV and JSON lines.

use crate::table::Table;
use crate::table::column::Cell;
use std::io::Write;

impl Table {
    /// Formats the table as CSV, to be written by [`write_whole`](crate::file::write_whole). The first row names the
    /// columns; an absent value is empty.
    ///
    /// # Errors
    /// The error of the writer, which only a bug of this program can cause.
    pub fn csv(&self) -> std::io::Result<Vec<u8>> {
        let mut table = csv::Writer::from_writer(Vec::new());
        table.write_record(self.columns.iter().map(|column| column.name.as_str()))?;
        let mut field = Vec::new();
        for row in 0..self.rows {
            for column in &self.columns {
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
        let names: Vec<String> = self.columns.iter().map(|column| serde_json::json!(column.name).to_string()).collect();
        let mut lines = Vec::new();
        for row in 0..self.rows {
            let mut begins = b'{';
            for (column, name) in self.columns.iter().zip(&names) {
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
