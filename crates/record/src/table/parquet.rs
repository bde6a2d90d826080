//! Tables as Parquet files.

use crate::table::Table;
use crate::table::column::{Column, Values};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use std::sync::Arc;

impl Table {
    /// Encodes the table as a Parquet file whose rows are called `name`, to be written by [`write_whole`](crate::file::write_whole). Every column
    /// is optional; a column is text, 64-bit whole numbers or doubles. The file is not compressed, so that every
    /// reader can read it; texts are stored once.
    ///
    /// # Errors
    /// The error of the writer, which only a bug of this program can cause.
    pub fn parquet(&self, name: &str) -> Result<Vec<u8>, ParquetError> {
        let fields: Result<Vec<Arc<Type>>, ParquetError> = self.columns.iter().map(field).collect();
        let schema = Arc::new(Type::group_type_builder(name).with_fields(fields?).build()?);
        let created_by = format!("lanemark version {} (build 0)", env!("CARGO_PKG_VERSION"));
        let properties = Arc::new(WriterProperties::builder().set_created_by(created_by).build());
        let mut bytes = Vec::new();
        let mut file = SerializedFileWriter::new(&mut bytes, schema, properties)?;
        let mut group = file.next_row_group()?;
        for column in &self.columns {
            write(column, &mut group)?;
        }
        group.close()?;
        file.close()?;
        Ok(bytes)
    }
}

fn field(column: &Column) -> Result<Arc<Type>, ParquetError> {
    let physical = match column.values {
        Values::Text { .. } => Physical::BYTE_ARRAY,
        Values::Whole(_) => Physical::INT64,
        Values::Number(_) => Physical::DOUBLE,
    };
    let is_text = physical == Physical::BYTE_ARRAY;
    let field = Type::primitive_type_builder(&column.name, physical).with_repetition(Repetition::OPTIONAL);
    Ok(Arc::new(field.with_logical_type(is_text.then_some(LogicalType::String)).build()?))
}

type Group<'a, 'b> = SerializedRowGroupWriter<'a, &'b mut Vec<u8>>;

fn write(column: &Column, group: &mut Group<'_, '_>) -> Result<(), ParquetError> {
    match &column.values {
        Values::Text { words, cells } => {
            let words: Vec<ByteArray> = words.iter().map(|word| ByteArray::from(word.as_bytes().to_vec())).collect();
            let cell = |word: &u32| word.checked_sub(1).and_then(|word| words.get(word as usize)).cloned();
            put::<ByteArrayType>(group, cells.iter().map(cell))
        }
        Values::Whole(cells) => put::<Int64Type>(group, cells.iter().copied()),
        Values::Number(cells) => put::<DoubleType>(group, cells.iter().copied()),
    }
}

fn put<T: DataType>(group: &mut Group<'_, '_>, cells: impl Iterator<Item = Option<T::T>>) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("the schema has too few columns".to_owned()));
    };
    let (mut values, mut there) = (Vec::new(), Vec::new());
    for cell in cells {
        there.push(i16::from(cell.is_some()));
        values.extend(cell);
    }
    column.typed::<T>().write_batch(&values, Some(&there), None)?;
    column.close()
}
