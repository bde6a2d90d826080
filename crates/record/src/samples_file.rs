//! All raw samples of a record as a Parquet file, for analysis with other tools.

use crate::{Answer, RawSamples, Record};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use std::sync::Arc;

/// Encodes the table as a Parquet file, to be written by [`write_whole`](crate::file::write_whole).
///
/// One row per sample, including dropped ones, in the order of answers and then of time. Columns:
/// `question`, `target`, `method` (its label), `kind`, `memory_type`, `access` and `fence` (empty:
/// none), `size_bytes`, `alignment_bytes`, `plan` (empty if the question has only one), `passes`,
/// `round` and `sample` (from 0; within the answer and plan), `issue_ns` and `delivered_ns` of the
/// whole sample, and `dropped`, the reason, which is null for a counted sample. The file is not
/// compressed, so that every reader can read it; names are stored once.
///
/// # Errors
/// The error of the writer, which only a bug of this program can cause.
pub fn samples_table(record: &Record) -> Result<Vec<u8>, ParquetError> {
    let labels: Vec<String> = record.answers.iter().map(|answer| answer.method.to_string()).collect();
    let cells: Vec<Cells> = record.answers.iter().map(|answer| answer.method.cells()).collect();
    let described = record.answers.iter().zip(labels.iter().zip(&cells));
    let rows: Vec<Row> = described.flat_map(|(answer, (label, cells))| rows(answer, label, cells)).collect();
    let mut bytes = Vec::new();
    let properties = Arc::new(WriterProperties::builder().set_created_by(created_by()).build());
    let mut file = SerializedFileWriter::new(&mut bytes, schema()?, properties)?;
    let mut group = file.next_row_group()?;
    for (_, column) in COLUMNS {
        column.write(&rows, &mut group)?;
    }
    group.close()?;
    file.close()?;
    Ok(bytes)
}

fn created_by() -> String {
    format!("lanemark version {} (build 0)", env!("CARGO_PKG_VERSION"))
}

/// Fields of a method by column.
type Cells = Vec<(&'static str, String)>;

/// One sample.
struct Row<'a> {
    answer: &'a Answer,
    label: &'a str,
    cells: &'a Cells,
    raw: &'a RawSamples,
    place: usize,
    dropped: Option<&'a str>,
}

impl<'a> Row<'a> {
    /// A field of the method; empty if it has none of this name.
    fn cell(&self, column: &str) -> &'a str {
        self.cells.iter().find(|(name, _)| *name == column).map_or("", |(_, text)| text.as_str())
    }
}

fn rows<'a>(answer: &'a Answer, label: &'a str, cells: &'a Cells) -> impl Iterator<Item = Row<'a>> {
    answer.raw.iter().flat_map(move |raw| {
        // Lists of different lengths in a damaged record are truncated to the shortest.
        let count = raw.round.len().min(raw.issue_ns.len()).min(raw.delivered_ns.len());
        let reason = |place: usize| {
            raw.dropped.iter().find(|dropped| dropped.place == place as u64).map(|dropped| dropped.reason.as_str())
        };
        (0..count).map(move |place| Row { answer, label, cells, raw, place, dropped: reason(place) })
    })
}

/// Source of a column's values.
enum Column {
    Text(for<'a> fn(&Row<'a>) -> &'a str),
    TextOrNull(for<'a> fn(&Row<'a>) -> Option<&'a str>),
    Whole(fn(&Row) -> u64),
    Time(fn(&Row) -> f64),
}

const COLUMNS: [(&str, Column); 16] = [
    ("question", Column::Text(|row| &row.answer.question)),
    ("target", Column::Text(|row| &row.answer.target)),
    ("method", Column::Text(|row| row.label)),
    ("kind", Column::Text(|row| row.cell("kind"))),
    ("memory_type", Column::Text(|row| row.cell("memory_type"))),
    ("access", Column::Text(|row| row.cell("access"))),
    ("fence", Column::Text(|row| if row.cell("fence") == "none" { "" } else { row.cell("fence") })),
    ("size_bytes", Column::Whole(|row| row.answer.size_bytes)),
    ("alignment_bytes", Column::Whole(|row| row.answer.alignment_bytes)),
    ("plan", Column::Text(|row| &row.raw.plan)),
    ("passes", Column::Whole(|row| row.raw.passes)),
    ("round", Column::Whole(|row| row.raw.round[row.place])),
    ("sample", Column::Whole(|row| row.place as u64)),
    ("issue_ns", Column::Time(|row| row.raw.issue_ns[row.place])),
    ("delivered_ns", Column::Time(|row| row.raw.delivered_ns[row.place])),
    ("dropped", Column::TextOrNull(|row| row.dropped)),
];

fn schema() -> Result<Arc<Type>, ParquetError> {
    let columns: Result<Vec<Arc<Type>>, ParquetError> = COLUMNS
        .iter()
        .map(|(name, column)| {
            let (physical, repetition) = match column {
                Column::Text(_) => (Physical::BYTE_ARRAY, Repetition::REQUIRED),
                Column::TextOrNull(_) => (Physical::BYTE_ARRAY, Repetition::OPTIONAL),
                Column::Whole(_) => (Physical::INT64, Repetition::REQUIRED),
                Column::Time(_) => (Physical::DOUBLE, Repetition::REQUIRED),
            };
            let is_text = physical == Physical::BYTE_ARRAY;
            let column = Type::primitive_type_builder(name, physical).with_repetition(repetition);
            Ok(Arc::new(column.with_logical_type(is_text.then_some(LogicalType::String)).build()?))
        })
        .collect();
    Ok(Arc::new(Type::group_type_builder("samples").with_fields(columns?).build()?))
}

type Group<'a, 'b> = SerializedRowGroupWriter<'a, &'b mut Vec<u8>>;

impl Column {
    fn write(&self, rows: &[Row], group: &mut Group<'_, '_>) -> Result<(), ParquetError> {
        let text = |text: &str| ByteArray::from(text.as_bytes().to_vec());
        match self {
            Column::Text(of) => {
                put::<ByteArrayType>(group, &rows.iter().map(|row| text(of(row))).collect::<Vec<_>>(), None)
            }
            Column::TextOrNull(of) => {
                let there: Vec<i16> = rows.iter().map(|row| i16::from(of(row).is_some())).collect();
                let values: Vec<ByteArray> = rows.iter().filter_map(of).map(text).collect();
                put::<ByteArrayType>(group, &values, Some(&there))
            }
            // Sizes and counts stay far below 2^63.
            Column::Whole(of) => {
                let values = rows.iter().map(|row| i64::try_from(of(row)).unwrap_or(i64::MAX));
                put::<Int64Type>(group, &values.collect::<Vec<_>>(), None)
            }
            Column::Time(of) => put::<DoubleType>(group, &rows.iter().map(of).collect::<Vec<_>>(), None),
        }
    }
}

fn put<T: DataType>(group: &mut Group<'_, '_>, values: &[T::T], there: Option<&[i16]>) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("the schema has too few columns".to_owned()));
    };
    column.typed::<T>().write_batch(values, there, None)?;
    column.close()
}
