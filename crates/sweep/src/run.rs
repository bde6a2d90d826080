//! All points of a space on several threads, appended to a log.

use crate::answer::Worker;
use crate::points::Points;
use lanemark_record::{RecordError, SweepLog, SweepRow, SweptBy};
use lanemark_runner::Cancel;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// State of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Number of points of the space.
    pub points: u64,
    /// Points that were in the log before.
    pub before: u64,
    /// Points that this run has appended.
    pub run: u64,
    /// Points of this run without a figure.
    pub without_figure: u64,
    /// Points without a figure that were in the log before.
    pub before_without_figure: u64,
    /// The reason of the first point of this run without a figure.
    pub because: Option<String>,
}

impl Progress {
    /// Points that are in the log.
    #[must_use]
    pub const fn done(&self) -> u64 {
        self.before + self.run
    }

    /// Whether there are points in the log, all without a figure.
    #[must_use]
    pub const fn has_no_figure(&self) -> bool {
        self.done() > 0 && self.before_without_figure + self.without_figure == self.done()
    }
}

/// Points that a thread takes at a time: consecutive formulas often share a platform with its keys.
const FORMULAS_AT_A_TIME: u64 = 64;

/// Time between two reports of the progress.
const REPORT: Duration = Duration::from_millis(100);

/// Largest number of rows that are written in one call.
const MOST_ROWS: usize = 4096;

/// Runs every point that is not in the log on `threads` threads, and appends each as soon as it has its row. `progress`
/// is called about ten times per second. Ends early, with the rows so far, when `cancel` is set.
///
/// Rows are appended in the order in which they are ready; their content does not depend on it.
///
/// # Errors
/// [`RecordError`] if the log cannot be written. Rows that were appended before remain.
pub fn run(
    points: &Points,
    log: &mut SweepLog,
    threads: usize,
    progress: &mut dyn FnMut(Progress),
    cancel: &Cancel,
) -> Result<Progress, RecordError> {
    let shared = Shared {
        points,
        next: AtomicU64::new(0),
        before: AtomicU64::new(0),
        before_without_figure: AtomicU64::new(0),
        without_figure: log.without_figure().clone(),
        taken: Mutex::new(log.done().clone()),
        has_failed: AtomicBool::new(false),
    };
    let mut state = Progress { points: points.len(), ..Progress::default() };
    progress(state.clone());
    std::thread::scope(|scope| {
        let (sender, rows) = sync_channel::<Vec<SweepRow>>(64);
        for number in 0..threads.max(1) {
            let (sender, shared) = (sender.clone(), &shared);
            let thread = std::thread::Builder::new().name(format!("sweep {number}"));
            let started = thread.spawn_scoped(scope, move || shared.work(&sender, cancel));
            if let Err(source) = started
                && number == 0
            {
                return Err(RecordError::Os {
                    doing: "starting a thread for",
                    path: Path::new("sweep").into(),
                    source,
                });
            }
        }
        drop(sender);
        loop {
            let mut ready = match rows.recv_timeout(REPORT) {
                Ok(ready) => ready,
                Err(RecvTimeoutError::Timeout) => Vec::new(),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            while ready.len() < MOST_ROWS
                && let Ok(more) = rows.try_recv()
            {
                ready.extend(more);
            }
            if let Err(error) = log.append(&ready) {
                shared.has_failed.store(true, Ordering::Relaxed);
                // Threads that wait for room in the channel see that it is closed.
                drop(rows);
                return Err(error);
            }
            state.run += ready.len() as u64;
            state.without_figure += ready.iter().filter(|row| row.because.is_some()).count() as u64;
            if state.because.is_none() {
                state.because = ready.iter().find_map(|row| row.because.clone());
            }
            shared.count_before(&mut state);
            progress(state.clone());
        }
        shared.count_before(&mut state);
        Ok(())
    })?;
    log.sync()?;
    progress(state.clone());
    Ok(state)
}

/// The state that the threads of a run share.
struct Shared<'a> {
    points: &'a Points,
    /// The next point that no thread has taken.
    next: AtomicU64,
    /// Points that were in the log.
    before: AtomicU64,
    /// Points without a figure that were in the log.
    before_without_figure: AtomicU64,
    /// Keys of all points in the log without a figure.
    without_figure: HashSet<u128>,
    /// Keys in the log, and of points that a thread has taken.
    taken: Mutex<HashSet<u128>>,
    /// Whether the log cannot be written.
    has_failed: AtomicBool,
}

impl Shared<'_> {
    /// Takes points until none is left.
    fn work(&self, rows: &SyncSender<Vec<SweepRow>>, cancel: &Cancel) {
        let at_a_time = if self.points.by == SweptBy::Formulas { FORMULAS_AT_A_TIME } else { 1 };
        let mut worker = Worker::new(self.points, cancel.clone());
        loop {
            let first = self.next.fetch_add(at_a_time, Ordering::Relaxed);
            let end = first.saturating_add(at_a_time).min(self.points.len());
            if first >= end {
                return;
            }
            let mut ready = Vec::new();
            let mut is_over = false;
            for index in first..end {
                is_over = cancel.is_cancelled() || self.has_failed.load(Ordering::Relaxed);
                if is_over {
                    break;
                }
                if self.take(index) {
                    ready.extend(self.answer(&mut worker, index, cancel));
                }
            }
            let is_closed = !ready.is_empty() && rows.send(ready).is_err();
            if is_closed || is_over {
                return;
            }
        }
    }

    /// Whether this point is to be run: it is not in the log, and no other thread runs it.
    fn take(&self, index: u64) -> bool {
        let Some(key) = self.points.key(index) else { return false };
        let is_new = self.taken.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
        if !is_new {
            self.before.fetch_add(1, Ordering::Relaxed);
            let without_figure = u64::from(self.without_figure.contains(&key));
            self.before_without_figure.fetch_add(without_figure, Ordering::Relaxed);
        }
        is_new
    }

    /// Adds the points that were in the log to the state.
    fn count_before(&self, state: &mut Progress) {
        state.before = self.before.load(Ordering::Relaxed);
        state.before_without_figure = self.before_without_figure.load(Ordering::Relaxed);
    }

    /// The row of a point. A defect of this program at one point is its reason, and not the end of the sweep.
    fn answer<'b>(&'b self, worker: &mut Worker<'b>, index: u64, cancel: &Cancel) -> Option<SweepRow> {
        let answer = catch_unwind(AssertUnwindSafe(|| worker.answer(index)));
        answer.unwrap_or_else(|panic| {
            *worker = Worker::new(self.points, cancel.clone());
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            let because = format!("a defect of this program: {}", text.unwrap_or_default());
            worker.row(index).map(|row| SweepRow { because: Some(because), ..row })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Space;
    use lanemark_record::{SweepTable, read_sweep_log};

    const SPACE: &str = r#"
schema = 1
platforms = ["card-gen5-x16"]
[with]
dma.tags = "1..2048*2"
link.mps_bytes = [128, 256, 512, 1024]
[[question]]
name = "dma_read_bandwidth"
sizes = "512,4K,64K"
flows = "host:0"
"#;

    fn points(text: &str) -> Points {
        Points::of(&Space::parse("a.toml", text).unwrap()).unwrap()
    }

    fn table(path: &Path) -> (SweepTable, usize) {
        let mut rows = Vec::new();
        read_sweep_log(path, |row| rows.push(row)).unwrap();
        (SweepTable::of(&rows), rows.len())
    }

    #[test]
    fn the_number_of_threads_does_not_change_a_row() {
        let (points, folder) = (points(SPACE), tempfile::tempdir().unwrap());
        let at = |threads: usize| {
            let path = folder.path().join(format!("{threads}.jsonl"));
            let mut log = SweepLog::open(&path).unwrap();
            let done = run(&points, &mut log, threads, &mut |_| {}, &Cancel::new()).unwrap();
            assert_eq!((done.run, done.before, done.points), (144, 0, 144));
            table(&path).0
        };
        let one = at(1);
        assert_eq!(one, at(4));
        assert_eq!(one.rows(), 144);
        let with = (0..144).filter(|row| one.cell("delivered_rate_bytes_per_s", *row).number().is_some()).count();
        let without = (0..144).filter(|row| one.cell("because", *row) != lanemark_record::Cell::Absent).count();
        assert!(with > 0 && without > 0 && with + without == 144, "{with} {without}");
    }

    #[test]
    fn a_run_continues_where_the_last_one_ended() {
        let (points, folder) = (points(SPACE), tempfile::tempdir().unwrap());
        let path = folder.path().join("a.jsonl");
        let cancel = Cancel::new();
        let mut log = SweepLog::open(&path).unwrap();
        run(
            &points,
            &mut log,
            2,
            &mut |state| {
                if state.run > 0 {
                    let _ = cancel.cancel();
                }
            },
            &cancel,
        )
        .unwrap();
        drop(log);
        let (_, before) = table(&path);
        let mut log = SweepLog::open(&path).unwrap();
        let done = run(&points, &mut log, 2, &mut |_| {}, &Cancel::new()).unwrap();
        assert_eq!((done.before, done.done()), (before as u64, 144));
        let (all, lines) = table(&path);
        assert_eq!((all.rows(), lines), (144, 144));
        drop(log);
        let mut log = SweepLog::open(&path).unwrap();
        assert_eq!(run(&points, &mut log, 2, &mut |_| {}, &Cancel::new()).unwrap().run, 0);
    }

    #[test]
    fn a_sweep_without_any_figure_is_known_as_such_when_it_is_run_again() {
        let only_refused = SPACE.replace("1..2048*2", "2048");
        let (points, folder) = (points(&only_refused), tempfile::tempdir().unwrap());
        let path = folder.path().join("a.jsonl");
        let run_again = || run(&points, &mut SweepLog::open(&path).unwrap(), 2, &mut |_| {}, &Cancel::new()).unwrap();
        let done = run_again();
        assert_eq!((done.without_figure, done.has_no_figure()), (12, true));
        assert!(done.because.is_some_and(|because| because.contains("dma.tags")));
        let again = run_again();
        assert_eq!((again.before_without_figure, again.run, again.has_no_figure()), (12, 0, true));
        assert!(!Progress::default().has_no_figure(), "nothing was run");
    }

    #[test]
    fn a_point_of_a_run_is_that_of_the_single_point() {
        let points = points(&SPACE.replace("schema = 1", "schema = 1\nby = \"simulation\"").replace("1..2048*2", "64"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let mut log = SweepLog::open(&path).unwrap();
        run(&points, &mut log, 3, &mut |_| {}, &Cancel::new()).unwrap();
        let mut rows = Vec::new();
        read_sweep_log(&path, |row| rows.push(row)).unwrap();
        assert_eq!(rows.len() as u64, points.len());
        for index in (0..points.len()).rev() {
            let row = points.answer(index).unwrap();
            assert!(rows.contains(&row), "{row:?}");
        }
    }
}
