//! CSV tables: a header line with the names of the columns, then one row per figure.

use super::rows::{MOST_ROWS, Reading, Row, Table, TableError, dma_question};
use super::units::figure;
use lanemark_method::Reach;
use lanemark_units::{did_you_mean, parse_size};

/// The first line of a table without optional columns.
pub const HEADER: &str = "question,size_bytes,figure";

/// Optional columns of a table, in the order of messages.
const OPTIONAL: [Column; 7] = [
    Column::Direction,
    Column::Stride,
    Column::Window,
    Column::Random,
    Column::Align,
    Column::Outstanding,
    Column::Channels,
];

/// Columns of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Question,
    Size,
    Figure,
    Direction,
    Stride,
    Window,
    Random,
    Align,
    Outstanding,
    Channels,
}

impl Column {
    /// Name in the header line.
    const fn name(self) -> &'static str {
        match self {
            Column::Question => "question",
            Column::Size => "size_bytes",
            Column::Figure => "figure",
            Column::Direction => "direction",
            Column::Stride => "stride",
            Column::Window => "window",
            Column::Random => "random",
            Column::Align => "align",
            Column::Outstanding => "outstanding",
            Column::Channels => "channels",
        }
    }
}

/// Directions of bandwidths, as seen by the card, with their questions.
const DIRECTIONS: [(&str, &str); 3] =
    [("read", "dma_read_bandwidth"), ("write", "dma_write_bandwidth"), ("both", "dma_read_write_mix")];

impl Table {
    /// Reads a CSV table: a header line, then one row per line, such as `dma_write_bandwidth,4KiB,11.2 GB/s`.
    ///
    /// The header line is [`HEADER`] and any of the optional columns `direction` (instead of `question`), `stride`,
    /// `window`, `random`, `align`, `outstanding` and `channels`. An empty cell is the default. Empty lines and lines
    /// that begin with `#` are skipped.
    ///
    /// # Errors
    /// [`TableError`] for the first invalid line.
    pub fn parse(file: &str, text: &str) -> Result<Table, TableError> {
        let wrong = |line: usize, message: String| TableError { file: file.to_owned(), line, message };
        let mut rows = Vec::new();
        let mut columns: Option<Vec<Column>> = None;
        for (line, text) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let cells: Vec<&str> = text.split(',').map(str::trim).collect();
            let Some(columns) = &columns else {
                columns = Some(header(&cells).map_err(|message| wrong(line, message))?);
                continue;
            };
            if rows.len() == MOST_ROWS {
                return Err(wrong(
                    line,
                    format!("a table has at most {MOST_ROWS} rows; about ten sizes per question are enough"),
                ));
            }
            rows.push(row(line, columns, &cells).map_err(|message| wrong(line, message))?);
        }
        if rows.is_empty() {
            return Err(wrong(1, format!("the table has no rows: write '{HEADER}' and one row per figure")));
        }
        Ok(Table { file: file.to_owned(), rows, reading: Reading::default() })
    }
}

/// The columns that a header line names.
fn header(cells: &[&str]) -> Result<Vec<Column>, String> {
    let required = [Column::Question, Column::Size, Column::Figure];
    let all = || required.into_iter().chain(OPTIONAL);
    let has = |column: Column| cells.contains(&column.name());
    if !((has(Column::Question) || has(Column::Direction)) && has(Column::Size) && has(Column::Figure)) {
        let optional = OPTIONAL.map(Column::name).join(", ");
        return Err(format!(
            "the first line of a table must be '{HEADER}'; optional columns may follow: {optional} (direction may replace question)"
        ));
    }
    let mut columns = Vec::new();
    for cell in cells {
        let column = all().find(|column| column.name() == *cell).ok_or_else(|| {
            let known = all().map(Column::name).collect::<Vec<_>>();
            let hint = did_you_mean(cell, known.iter().copied()).map(|hint| format!("{hint} ")).unwrap_or_default();
            format!("'{cell}' is not a column: {hint}use {}", known.join(", "))
        })?;
        if columns.contains(&column) {
            return Err(format!("the column {cell} occurs twice: name it once"));
        }
        columns.push(column);
    }
    Ok(columns)
}

fn row(line: usize, columns: &[Column], cells: &[&str]) -> Result<Row, String> {
    if cells.len() != columns.len() {
        let names = columns.iter().map(|column| column.name()).collect::<Vec<_>>().join(",");
        let (found, wanted) = (cells.len(), columns.len());
        return Err(format!("{found} columns instead of {wanted}: a row has the columns '{names}'"));
    }
    let cell = |column: Column| {
        let place = columns.iter().position(|one| *one == column);
        place.map(|place| cells[place]).filter(|cell| !cell.is_empty())
    };
    // A required cell that is empty is reported as an invalid value.
    let required = |column: Column| cell(column).unwrap_or_default();
    let size = |column: Column| {
        let parsed = cell(column).map(|text| match parse_size(text) {
            Ok(0) => Err(format!("{} is 0, but must be at least 1", column.name())),
            Ok(bytes) => Ok(bytes),
            Err(error) => Err(format!("{}: {error}", column.name())),
        });
        parsed.transpose()
    };
    let question = dma_question(asked(cell(Column::Question), cell(Column::Direction))?)?;
    let size_bytes = parse_size(required(Column::Size)).map_err(|error| format!("size_bytes: {error}"))?;
    let reach = Reach {
        stride_bytes: size(Column::Stride)?,
        window_bytes: size(Column::Window)?,
        is_random: cell(Column::Random).map_or(Ok(false), yes_or_no)?,
        outstanding: count(cell(Column::Outstanding), Column::Outstanding, 65536)?,
        channels: count(cell(Column::Channels), Column::Channels, 64)?,
        ..Reach::default()
    };
    let alignment = cell(Column::Align).map(parse_size).transpose().map_err(|error| format!("align: {error}"))?;
    let value = figure(required(Column::Figure), question, size_bytes)?;
    let row =
        Row { alignment_bytes: alignment.unwrap_or(0), reach, ..Row::new(line, question.name, size_bytes, value) };
    row.checked(question)
}

/// The name of the question that a row is about.
fn asked<'a>(question: Option<&'a str>, direction: Option<&str>) -> Result<&'a str, String> {
    let Some(direction) = direction else {
        let needed = "the row has neither a question, such as dma_read_latency, nor a direction";
        return question.ok_or_else(|| needed.to_owned());
    };
    let of_direction = DIRECTIONS.iter().find(|(name, _)| *name == direction).map(|(_, question)| *question);
    let of_direction = of_direction.ok_or_else(|| {
        let known = DIRECTIONS.map(|(name, question)| format!("{name} ({question})")).join(", ");
        format!("direction is '{direction}': write {known}")
    })?;
    match question {
        Some(question) if question != of_direction => {
            Err(format!("direction {direction} is {of_direction}, but question is {question}: leave one of them empty"))
        }
        _ => Ok(of_direction),
    }
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(format!("random is '{text}': write yes or no")),
    }
}

fn count(cell: Option<&str>, column: Column, most: u32) -> Result<Option<u32>, String> {
    let parsed = cell.map(|text| {
        let value = text.parse().ok().filter(|value| (1..=most).contains(value));
        value.ok_or_else(|| format!("{} is '{text}': write a whole number from 1 to {most}", column.name()))
    });
    parsed.transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(lines: &str) -> Result<Vec<(u64, f64)>, TableError> {
        let table = Table::parse("t.csv", &format!("{HEADER}\n{lines}"))?;
        Ok(table.rows.iter().map(|row| (row.size_bytes, row.figure)).collect())
    }

    fn refused(lines: &str) -> String {
        rows(lines).unwrap_err().to_string()
    }

    /// One row with these optional columns.
    fn with(columns: &str, question: &str, cells: &str) -> Result<Row, String> {
        let text = format!("{HEADER},{columns}\n{question},4KiB,9 GB/s,{cells}\n");
        Table::parse("t.csv", &text).map(|table| table.rows[0]).map_err(|error| error.to_string())
    }

    #[test]
    fn figures_are_read_in_the_units_of_their_question() {
        assert_eq!(rows("dma_read_latency,64,0.8us\ndma_read_latency,64,800 ns").unwrap(), [(64, 800.0), (64, 800.0)]);
        let lines = "dma_write_bandwidth , 4KiB , 2 GiB/s\r\n# a comment\n\ndma_read_bandwidth,4096,3.5 GB/s\r\n";
        assert_eq!(rows(lines).unwrap(), [(4096, 2.0 * 1_073_741_824.0), (4096, 3.5e9)]);
        assert_eq!(rows("dma_write_bandwidth,256,10 Mpps").unwrap(), [(256, 2.56e9)]);
    }

    #[test]
    fn errors_name_the_line_and_the_rule() {
        assert!(Table::parse("t.csv", "size,figure\n").unwrap_err().to_string().starts_with("t.csv:1: the first line"));
        assert!(Table::parse("t.csv", HEADER).unwrap_err().to_string().contains("the table has no rows"));
        assert!(refused("dma_read_latency,64").starts_with("t.csv:2: 2 columns instead of 3"));
        assert!(refused("dma_read_latency,64,1,5 us").contains("4 columns"));
        assert!(refused("mmio_read_latency,64,1 us").contains("question: use dma_"));
        assert!(refused("dma_read_latency,64,12 GB/s").contains("one of ns, us"));
        assert!(refused("dma_read_bandwidth,64,12 us").contains("one of B/s, kB/s"));
        for figure in ["0 ns", "-1 ns", "nan ns", "1e3 ns", "", "ns", "1.2.3 ns"] {
            assert!(refused(&format!("dma_read_latency,64,{figure}")).contains("is not a valid figure"), "{figure}");
        }
    }

    #[test]
    fn sizes_and_numbers_of_rows_are_limited() {
        assert!(refused("dma_read_latency,0,1 ns").contains("from 1 to 16777216"));
        assert!(refused("dma_read_latency,16777217,1 ns").contains("from 1 to 16777216"));
        assert!(rows("dma_read_latency,1,1 ns\ndma_read_latency,16MiB,1 ns").is_ok());
        assert!(rows(&"dma_read_latency,64,1 ns\n".repeat(256)).is_ok());
        assert!(
            refused(&"dma_read_latency,64,1 ns\n".repeat(257)).starts_with("t.csv:258: a table has at most 256 rows")
        );
    }

    #[test]
    fn optional_columns_are_the_options_of_bench_in_any_order() {
        let row = with("outstanding,random,window,channels", "dma_read_bandwidth", "4,yes,1MiB,3").unwrap();
        let reach = Reach { outstanding: Some(4), is_random: true, window_bytes: Some(1 << 20), ..Reach::default() };
        assert_eq!(row.reach, Reach { channels: Some(3), ..reach });
        let row = with("align,stride", "dma_write_bandwidth", "4095,8KiB").unwrap();
        assert_eq!((row.alignment_bytes, row.reach.stride_bytes), (4095, Some(8192)));
        let text = "figure,stride,size_bytes,question\n9 GB/s,64,64,dma_read_bandwidth\n";
        let row = Table::parse("t.csv", text).unwrap().rows[0];
        assert_eq!((row.size_bytes, row.figure), (64, 9e9));
    }

    #[test]
    fn an_empty_cell_and_the_default_value_are_the_same() {
        let usual = with("random", "dma_read_bandwidth", "").unwrap();
        assert_eq!((usual.alignment_bytes, usual.reach), (0, Reach::default()));
        assert_eq!(with("random,align,stride", "dma_read_bandwidth", "no,0,4096").unwrap(), usual);
        assert_eq!(
            with("stride,window,random,align,outstanding,channels", "dma_read_bandwidth", ",,,,,").unwrap(),
            usual
        );
        let text = format!("{HEADER},outstanding\ndma_read_latency,64,9 ns,1\n");
        assert_eq!(Table::parse("t.csv", &text).unwrap().rows[0].reach, Reach::default());
    }

    #[test]
    fn a_direction_is_the_question_of_a_bandwidth() {
        let text = "direction,size_bytes,figure\nread,64,1 GB/s\nwrite,64,1 GB/s\nboth,64,1 GB/s\n";
        let table = Table::parse("t.csv", text).unwrap();
        let questions: Vec<&str> = table.rows.iter().map(|row| row.question).collect();
        assert_eq!(questions, ["dma_read_bandwidth", "dma_write_bandwidth", "dma_read_write_mix"]);
        assert_eq!(with("direction", "", "write").unwrap().question, "dma_write_bandwidth");
        assert_eq!(with("direction", "dma_read_bandwidth", "read").unwrap().question, "dma_read_bandwidth");
        let differs = with("direction", "dma_read_bandwidth", "write").unwrap_err();
        assert!(differs.contains("but question is dma_read_bandwidth: leave one of them empty"), "{differs}");
        assert!(with("direction", "", "up").unwrap_err().contains("write read (dma_read_bandwidth), write"));
        assert!(with("direction", "", "").unwrap_err().contains("neither a question"));
    }

    #[test]
    fn errors_of_optional_columns_name_line_column_and_what_to_write() {
        let error = |columns, question, cells| with(columns, question, cells).unwrap_err();
        let (read, write) = ("dma_read_bandwidth", "dma_write_bandwidth");
        assert!(error("stride", read, "4095").starts_with("t.csv:2: stride is 4095B, but transfers of 4KiB overlap"));
        assert!(with("stride,random", read, "64,yes").is_ok(), "random offsets are aligned to 64 B");
        assert!(error("stride", read, "0").contains("stride is 0, but must be at least 1"));
        assert!(error("stride", read, "wide").contains("stride: 'wide' is not a size"));
        assert!(error("window", read, "4095").contains("window is 4095B, but one transfer needs 4KiB"));
        assert!(error("window,align", read, "4KiB,1").contains("one transfer needs 4097B"));
        assert!(with("window,align", read, "4KiB,0").is_ok());
        assert!(error("random", read, "true").contains("random is 'true': write yes or no"));
        assert!(
            error("align", read, "4096").contains("align is 4096, but an offset from a page boundary is from 0 to")
        );
        for cell in ["0", "65537", "-1", "all"] {
            assert!(error("outstanding", read, cell).contains("write a whole number from 1 to 65536"), "{cell}");
        }
        assert!(with("outstanding", read, "65536").is_ok());
        assert!(error("outstanding", write, "1").contains("a posted write is complete when it is sent"));
        assert!(with("outstanding", "dma_read_write_mix", "1").is_ok());
        assert!(error("channels", read, "65").contains("write a whole number from 1 to 64"));
        assert!(error("channels", "dma_read_write_mix", "1").contains("one each (2)"));
        assert!(with("channels", "dma_read_write_mix", "2").is_ok());
        let text = format!("{HEADER},outstanding\ndma_read_latency,64,9 ns,2\n");
        let error = Table::parse("t.csv", &text).unwrap_err().to_string();
        assert!(error.contains("dma_read_latency is of one transfer at a time"), "{error}");
    }

    #[test]
    fn unknown_and_repeated_columns_are_refused() {
        let error = with("strides", "dma_read_bandwidth", "64").unwrap_err();
        assert!(error.starts_with("t.csv:1: 'strides' is not a column: did you mean stride?"), "{error}");
        assert!(with("align,align", "dma_read_bandwidth", "0,0").unwrap_err().contains("align occurs twice"));
        assert!(with("align", "dma_read_bandwidth", "0,0").unwrap_err().contains("5 columns instead of 4"));
    }
}
