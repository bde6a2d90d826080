//! Fuzzes the readers of tables, of tool output and of imports: an error has a line of the file, and accepted rows and figures
//! are possible.
#![no_main]

use lanemark_import::{ImportTool, Table, TableError, Tool};
use lanemark_record::{Imported, Measured};
use libfuzzer_sys::fuzz_target;

fn checked(text: &str, read: &Result<Table, TableError>) {
    // The line after the last one is that of a missing end.
    let lines = 1..=text.lines().count().max(1);
    match read {
        Err(error) => {
            assert!(lines.contains(&error.line) && error.message.lines().count() == 1, "{error}");
        }
        Ok(table) => {
            assert!((1..=256).contains(&table.rows.len()));
            for row in &table.rows {
                assert!(lines.contains(&row.line) && row.question.starts_with("dma_"), "{row:?}");
                assert!((1..=16 << 20).contains(&row.size_bytes) && row.alignment_bytes < 4096, "{row:?}");
                assert!(row.figure.is_finite() && row.figure > 0.0 && row.figure <= 1e14, "{row:?}");
                let stride = row.reach.stride_bytes.unwrap_or(row.size_bytes);
                assert!(stride >= 1 && row.reach.window_bytes.is_none_or(|window| window >= row.size_bytes), "{row:?}");
            }
            assert!(table.reading.refused.iter().all(|(line, _)| lines.contains(line)));
            assert!(table.rows.is_sorted_by_key(|row| row.line));
        }
    }
}

fn imported(text: &str, read: &Result<Imported, TableError>) {
    let lines = 1..=text.lines().count().max(1);
    match read {
        Err(error) => {
            assert!(lines.contains(&error.line) && error.message.lines().count() == 1, "{error}");
        }
        Ok(imported) => {
            assert!((1..=4096).contains(&imported.figures.len()));
            for figure in &imported.figures {
                let (Measured::RateBytesPerS(value) | Measured::LatencyNs(value)) = figure.value;
                assert!(value.is_finite() && value > 0.0 && value <= 1e14, "{figure:?}");
                assert!(lines.contains(&(figure.line as usize)), "{figure:?}");
                assert!(figure.test.lines().count() <= 1, "{figure:?}");
            }
            assert!(imported.left_out.iter().all(|left| lines.contains(&(left.line as usize))));
            let record = lanemark_import::record(imported.clone(), Vec::new());
            assert!(record.answers.len() <= imported.figures.len());
        }
    }
}

fuzz_target!(|text: &str| {
    checked(text, &Table::parse("t", text));
    for tool in Tool::ALL {
        checked(text, &tool.read("t", text));
    }
    for tool in ImportTool::ALL {
        imported(text, &tool.read("t", text));
    }
});
