//! Verdicts of `compare` on this machine, which does not change: false alarms, and changes of 10 % that are found.

use crate::{beside_this_program, row};
use lanemark_advise::{Named, compare};
use lanemark_record::{Change, Comparison, Criteria, Pair, Record, records_in};
use std::path::Path;
use std::process::{Command, Stdio};

/// Whole comparisons: each group of records is compared with the next one.
const COMPARISONS: usize = 20;
/// Measured answers: some of each kind, in half a second.
const ASKED: [&str; 10] = [
    "--on",
    "host",
    "--question",
    "mmio_write_bandwidth,mmio_read_bandwidth,mmio_read_latency,fence_cost",
    "--access",
    "8,16,nt16,memcpy",
    "--sizes",
    "64,4K,256K",
    "--budget",
    "0.1",
];

/// Prints the rows of unchanged comparisons with five records a side, and with one.
pub fn false_alarms() {
    let Some(lanemark) = beside_this_program() else {
        return println!("lanemark is not built: cargo build --release");
    };
    let folder = std::env::temp_dir().join(format!("lanemark-bench-compare-{}", std::process::id()));
    if std::fs::create_dir_all(&folder).is_err() {
        return eprintln!("cannot create {}", folder.display());
    }
    let groups: Option<Vec<Vec<Record>>> = (0..=COMPARISONS).map(|group| measured(&lanemark, &folder, group)).collect();
    match groups {
        Some(groups) => rows(&groups),
        None => println!("compare: the host is not measured"),
    }
    if std::fs::remove_dir_all(&folder).is_err() {
        eprintln!("cannot remove {}", folder.display());
    }
}

/// Five records of this machine.
fn measured(lanemark: &Path, folder: &Path, group: usize) -> Option<Vec<Record>> {
    let records = folder.join(group.to_string());
    let mut command = Command::new(lanemark);
    command.arg("bench").args(ASKED).args(["--repeat", "5", "--record"]).arg(&records);
    let done = command.stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
    if !done.success() {
        return None;
    }
    records_in(&records).ok()?.iter().map(|path| lanemark_record::read(path).ok()).collect()
}

fn rows(groups: &[Vec<Record>]) {
    let (mut alarms, mut alarms_of_one, mut answers, mut tried, mut found) = (0, 0, 0, 0, 0);
    for sides in groups.windows(2) {
        let [base, new] = sides else { continue };
        let (Some(all), Some(one)) = (compared(base, new), compared(&base[..1], &new[..1])) else {
            return println!("compare: the records cannot be compared");
        };
        alarms += usize::from(is_alarmed(&all));
        alarms_of_one += usize::from(is_alarmed(&one));
        answers = all.pairs.len();
        for place in 0..new[0].answers.len() {
            let slower: Vec<Record> = new.iter().map(|record| slower(record, place, &new[0])).collect();
            let Some(judged) = compared(base, &slower) else { continue };
            tried += 1;
            // The verdict is due to the change: the answer itself became slower.
            let is_found = |(one, same): (&Pair, &Pair)| one.verdict == Change::Slower && one.after_ns != same.after_ns;
            let more = judged.pairs.iter().zip(&all.pairs).any(is_found);
            found += usize::from(more);
        }
    }
    let whole =
        format!("compare: of {COMPARISONS} unchanged comparisons of {answers} answers, with verdicts (target: 1)");
    row(&whole, vec![alarms as f64]);
    row("  the same with one record a side", vec![alarms_of_one as f64]);
    row("  changes of one answer by 10 % that are found, %", vec![100.0 * f64::from(found as u32) / f64::from(tried)]);
}

fn compared(base: &[Record], new: &[Record]) -> Option<Comparison> {
    fn named(side: &[Record]) -> Vec<Named<'_>> {
        side.iter().map(|record| Named { name: "a record", record }).collect()
    }
    compare(&named(base), &named(new), &Criteria::default()).ok()
}

fn is_alarmed(comparison: &Comparison) -> bool {
    comparison.pairs.iter().any(|pair| matches!(pair.verdict, Change::Slower | Change::Faster))
}

/// The record with one answer that takes 10 % longer: the answer at `place` of `first`.
fn slower(record: &Record, place: usize, first: &Record) -> Record {
    let mut record = record.clone();
    let asked = &first.answers[place];
    let is_asked = |answer: &&mut lanemark_record::Answer| {
        (&answer.question, &answer.method, answer.size_bytes) == (&asked.question, &asked.method, asked.size_bytes)
    };
    for answer in record.answers.iter_mut().filter(is_asked) {
        answer.samples_ns.iter_mut().for_each(|ns| *ns *= 1.1);
    }
    record
}
