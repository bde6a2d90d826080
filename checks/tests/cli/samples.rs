//! Raw samples as a Parquet file, read back by another library than the one that wrote them.

use crate::folder::{Folder, small};
use lanemark_method::{Fence, Method};
use lanemark_record::{Answer, Record};
use lanemark_units::MemoryType;
use parquet2::deserialize::{BinaryPageState, DefLevelsDecoder, NativePageState, native_cast};
use parquet2::metadata::ColumnChunkMetaData;
use parquet2::page::{DataPage, DictPage, Page};
use parquet2::read::{decompress, get_page_iterator, read_metadata};
use parquet2::schema::types::PhysicalType;
use parquet2::types::{NativeType, decode};
use std::collections::BTreeMap;
use std::io::Cursor;

/// A value of a column.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Null,
    Text(String),
    Whole(i64),
    Time(f64),
}

/// The columns of a Parquet file, by name.
fn table(bytes: &[u8]) -> BTreeMap<String, Vec<Value>> {
    let metadata = read_metadata(&mut Cursor::new(bytes)).unwrap();
    let mut table: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for column in metadata.row_groups.iter().flat_map(parquet2::metadata::RowGroupMetaData::columns) {
        let name = column.descriptor().path_in_schema[0].clone();
        table.entry(name).or_default().extend(values(bytes, column));
    }
    table
}

/// The texts of a column of a Parquet file; `None` for an absent value.
pub fn text_column(bytes: &[u8], name: &str) -> Vec<Option<String>> {
    let metadata = read_metadata(&mut Cursor::new(bytes)).unwrap();
    let columns = metadata.row_groups.iter().flat_map(parquet2::metadata::RowGroupMetaData::columns);
    let text = |value: Value| match value {
        Value::Text(text) => Some(text),
        Value::Null => None,
        other => panic!("{other:?} is no text"),
    };
    let named = columns.filter(|column| column.descriptor().path_in_schema == [name]);
    named.flat_map(|column| values(bytes, column)).map(text).collect()
}

fn values(bytes: &[u8], column: &ColumnChunkMetaData) -> Vec<Value> {
    let pages = get_page_iterator(column, Cursor::new(bytes), None, Vec::new(), 1 << 30).unwrap();
    let (mut dictionary, mut values): (Option<DictPage>, _) = (None, Vec::new());
    for page in pages {
        match decompress(page.unwrap(), &mut Vec::new()).unwrap() {
            Page::Dict(page) => dictionary = Some(page),
            Page::Data(page) => values.extend(match column.physical_type() {
                PhysicalType::ByteArray => texts(&page, dictionary.as_ref()),
                PhysicalType::Int64 => numbers(&page, dictionary.as_ref(), Value::Whole),
                PhysicalType::Double => numbers(&page, dictionary.as_ref(), Value::Time),
                other => panic!("a column of {other:?}"),
            }),
        }
    }
    values
}

fn numbers<T: NativeType>(page: &DataPage, dictionary: Option<&DictPage>, value: fn(T) -> Value) -> Vec<Value> {
    let dictionary: Option<Vec<T>> =
        dictionary.map(|page| page.buffer.chunks_exact(size_of::<T>()).map(decode::<T>).collect());
    match NativePageState::<T, _>::try_new(page, dictionary).unwrap() {
        NativePageState::Required(_) => native_cast::<T>(page).unwrap().map(value).collect(),
        NativePageState::RequiredDictionary(found) => {
            found.indexes.map(|index| value(found.dict[index.unwrap() as usize])).collect()
        }
        NativePageState::Optional(levels, values) => there(levels, values.map(value)),
        NativePageState::OptionalDictionary(levels, found) => {
            there(levels, found.indexes.map(|index| value(found.dict[index.unwrap() as usize])))
        }
    }
}

/// The values of a page in which some may be null.
fn there(levels: DefLevelsDecoder<'_>, mut values: impl Iterator<Item = Value>) -> Vec<Value> {
    match levels {
        DefLevelsDecoder::Levels(levels, most) => {
            levels.map(|level| if level.unwrap() == most { values.next().unwrap() } else { Value::Null }).collect()
        }
        DefLevelsDecoder::Bitmap(runs) => {
            let mut all = Vec::new();
            for run in runs {
                match run.unwrap() {
                    parquet2::deserialize::HybridEncoded::Repeated(is_there, count) => {
                        all.extend((0..count).map(|_| if is_there { values.next().unwrap() } else { Value::Null }));
                    }
                    parquet2::deserialize::HybridEncoded::Bitmap(bits, count) => {
                        let is_there = |place: usize| bits[place / 8] >> (place % 8) & 1 == 1;
                        all.extend((0..count).map(
                            |place| {
                                if is_there(place) { values.next().unwrap() } else { Value::Null }
                            },
                        ));
                    }
                }
            }
            all
        }
    }
}

fn texts(page: &DataPage, dictionary: Option<&DictPage>) -> Vec<Value> {
    let text = |bytes: &[u8]| Value::Text(String::from_utf8(bytes.to_vec()).unwrap());
    let dictionary: Option<Vec<Value>> = dictionary.map(|page| {
        // A length of four bytes before each.
        let (mut rest, mut values) = (&page.buffer[..], Vec::new());
        while let Some((length, behind)) = rest.split_first_chunk::<4>() {
            let (bytes, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
            values.push(text(bytes));
            rest = behind;
        }
        values
    });
    match BinaryPageState::try_new(page, dictionary).unwrap() {
        BinaryPageState::Required(values) => values.map(|bytes| text(bytes.unwrap())).collect(),
        BinaryPageState::RequiredDictionary(found) => {
            found.indexes.map(|index| found.dict[index.unwrap() as usize].clone()).collect()
        }
        BinaryPageState::Optional(levels, values) => there(levels, values.map(|bytes| text(bytes.unwrap()))),
        BinaryPageState::OptionalDictionary(levels, found) => {
            let values = found.indexes.map(move |index| found.dict[index.unwrap() as usize].clone());
            there(levels, values)
        }
    }
}

/// The rows that the table should have for a record.
fn wanted(record: &Record) -> BTreeMap<String, Vec<Value>> {
    let mut table: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let text = |text: &str| Value::Text(text.to_owned());
    let whole = |number: u64| Value::Whole(i64::try_from(number).unwrap());
    let samples = |answer: &Answer| answer.raw.clone().into_iter().map(move |raw| (raw.round.len(), raw));
    for answer in &record.answers {
        for (count, raw) in samples(answer) {
            for place in 0..count {
                let dropped = raw.dropped.iter().find(|dropped| dropped.place == place as u64);
                let row = [
                    ("question", text(&answer.question)),
                    ("target", text(&answer.target)),
                    ("method", text(&answer.method.to_string())),
                    ("kind", text(answer.method.kind().name())),
                    ("memory_type", text(answer.method.memory_type().map_or("", MemoryType::name))),
                    ("access", text(&answer.method.access().map(|access| access.to_string()).unwrap_or_default())),
                    ("fence", text(fence_of(&answer.method))),
                    ("size_bytes", whole(answer.size_bytes)),
                    ("alignment_bytes", whole(answer.alignment_bytes)),
                    ("plan", text(&raw.plan)),
                    ("passes", whole(raw.passes)),
                    ("round", whole(raw.round[place])),
                    ("sample", whole(place as u64)),
                    ("issue_ns", Value::Time(raw.issue_ns[place])),
                    ("delivered_ns", Value::Time(raw.delivered_ns[place])),
                    ("dropped", dropped.map_or(Value::Null, |dropped| text(&dropped.reason))),
                ];
                for (name, value) in row {
                    table.entry(name.to_owned()).or_default().push(value);
                }
            }
        }
    }
    table
}

#[test]
fn every_raw_sample_is_in_the_table_and_another_library_reads_it() {
    let folder = Folder::new();
    let files = ["--record", "r.json", "--samples", "s.parquet", "--json"];
    let simulated = small("bench", "tacc-stratix4", &files);
    let host = [&["bench", "--on", "host", "--question", "mmio_read_latency,mmio_write_latency"], &files[..]].concat();
    for command in [simulated, host] {
        let outcome = folder.run(&command);
        if outcome.code == Some(77) {
            assert!(outcome.err.contains("skipped, because"), "{}", outcome.err);
            continue;
        }
        assert_eq!(outcome.code, Some(0), "{}", outcome.err);
        let record = lanemark_record::read(&folder.path("r.json")).unwrap();
        let wanted = wanted(&record);
        assert!(!wanted["sample"].is_empty());
        assert_eq!(table(&folder.content()["s.parquet"]), wanted);
    }
}

#[test]
fn dropped_samples_carry_their_reason_and_others_none() {
    let folder = Folder::new();
    folder.good(&small("bench", "card-gen5-x16", &["--record", "r.json", "--json"]));
    let mut record = lanemark_record::read(&folder.path("r.json")).unwrap();
    let raw = &mut record.answers[0].raw[0];
    (raw.round, raw.issue_ns, raw.delivered_ns) =
        (vec![0, 0, 1, 1], vec![1.5, 2.5, 3.5, 4.5], vec![2.0, 3.0, 4.0, 5.0]);
    let dropped = |place, reason: &str| lanemark_record::DroppedSample { place, reason: reason.to_owned() };
    raw.dropped = vec![dropped(1, "context_switch"), dropped(2, "clock_step")];
    let found = table(&lanemark_record::samples_table(&record).parquet("samples").unwrap());
    assert_eq!(found, wanted(&record));
    let text = |text: &str| Value::Text(text.to_owned());
    assert_eq!(found["dropped"], [Value::Null, text("context_switch"), text("clock_step"), Value::Null]);
    record.answers.clear();
    assert!(table(&lanemark_record::samples_table(&record).parquet("samples").unwrap()).values().all(Vec::is_empty));
}

#[test]
fn a_table_is_written_whole_or_not_at_all_and_never_over_another_file_of_the_command() {
    let folder = Folder::new();
    for (samples, reason) in [("no/such/s.parquet", "cannot be written"), ("r.json", "would overwrite")] {
        let outcome = folder.run(&small("bench", "card-gen5-x16", &["--record", "r.json", "--samples", samples]));
        assert_eq!(outcome.code, Some(2), "{}", outcome.err);
        assert!(outcome.err.contains(reason), "{}", outcome.err);
        assert!(folder.content().is_empty(), "nothing was asked");
    }
}

fn fence_of(method: &Method) -> &'static str {
    match method {
        Method::Core(core) => core.fence.map_or("", Fence::name),
        Method::Fence { fence } => fence.name(),
        _ => "",
    }
}
