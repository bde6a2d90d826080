//! JSON output of fio, as in tables of DMA figures.
//!
//! Source: axboe/fio, HOWTO.rst and stat.c.

use super::collector::Collector;
use crate::table::reader::json;
use crate::table::{TableError, Tool};
use lanemark_record::Imported;
use serde_json::Value;

const LOOKED_FOR: &str = "a JSON document of fio (--output-format=json)";

/// Reads the output of fio.
///
/// # Errors
/// [`TableError`] for invalid JSON, an invalid figure, or no figure.
pub(super) fn read(file: &str, text: &str) -> Result<Imported, TableError> {
    let mut collector = Collector::new("fio", file);
    let table = Tool::Fio.read(file, text)?;
    collector.add_table(&table, |line| {
        let named = text.lines().nth(line.saturating_sub(1)).and_then(|text| text.split_once("\"jobname\""));
        let name = named.and_then(|(_, rest)| rest.split('"').nth(1));
        format!("job {}", name.unwrap_or("without a name"))
    })?;
    let version = json(text).and_then(|(_, document)| document.ok());
    let version = version.as_ref().and_then(|document| document.get("fio version")).and_then(Value::as_str);
    collector.imported.version = version.map(str::to_owned);
    collector.unknown("link of the drive, MPS, processor and NUMA node");
    collector.finish(text, LOOKED_FOR)
}
