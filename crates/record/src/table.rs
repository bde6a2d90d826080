//! Tidy tables: one row per observation, one column per variable, for files and other tools.

mod column;
mod files;
mod parquet;

pub(crate) use column::Words;
pub use column::{Cell, Column, Values};

/// A table whose columns have a name, which ends in the unit, and a type that does not depend on the values.
///
/// ```
/// # fn table() -> lanemark_record::Table { lanemark_record::answers_table(&lanemark_record::Record::new(Vec::new())) }
/// let table = table();
/// assert_eq!((table.rows(), table.columns()[0].name.as_str()), (0, "question"));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    pub(crate) rows: usize,
    pub(crate) columns: Vec<Column>,
}

impl Table {
    /// A table of these columns; those that are shorter than the longest one have no value in further rows.
    #[must_use]
    pub fn of(columns: Vec<Column>) -> Table {
        Table { rows: columns.iter().map(Column::len).max().unwrap_or(0), columns }
    }

    /// Number of rows.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// The columns, in the order of files.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The column of this name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// A value; absent if there is no such column or row.
    #[must_use]
    pub fn cell(&self, column: &str, row: usize) -> Cell<'_> {
        self.column(column).map_or(Cell::Absent, |column| column.cell(row))
    }
}
