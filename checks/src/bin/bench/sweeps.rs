//! Points per second of sweeps, on all cores and on one, compared with a plain loop over the same points.

use super::row;
use lanemark_bench::{Axes, Case, Effort, Question};
use lanemark_checks::root;
use lanemark_machine::Plan;
use lanemark_model::predict;
use lanemark_platform::{Origin, Platform};
use lanemark_record::{SweepLog, SweptBy};
use lanemark_runner::{Cancel, platform, question};
use lanemark_sim::SimulatedMachine;
use lanemark_sweep::{Points, Space, run};
use std::hint::black_box;
use std::num::NonZero;
use std::path::Path;
use std::time::Instant;

/// A round takes half a minute of processor time.
const ROUNDS: usize = 3;

/// One value of a key of `spaces/million.toml` that has ten.
const ALL_TAGS: &str = "\"16..160+16\"";

/// Small simulations: 6 numbers of tags, 3 maximum payloads and 151 latencies of memory.
const SIMULATIONS: &str = r#"
schema = 1
platforms = ["card-gen5-x16"]
by = "simulation"
[with]
dma.tags = "8..256*2"
link.mps_bytes = [128, 256, 512]
memory.read_ns = "100..400+2"
[[question]]
name = "dma_read_bandwidth"
flows = "host:0"
sizes = "64K"
iterations = 1
"#;

/// A tenth of the million points by formulas, and some thousand simulations.
pub fn sweeps() {
    let file = root().join("spaces/million.toml");
    let Ok(million) = std::fs::read_to_string(&file) else { return eprintln!("{} is not there", file.display()) };
    let tenth = million.replace(ALL_TAGS, "64");
    if tenth == million {
        return eprintln!("{} has other numbers of tags than this benchmark expects", file.display());
    }
    let folder = std::env::temp_dir().join(format!("lanemark-bench-sweeps-{}", std::process::id()));
    if std::fs::create_dir_all(&folder).is_err() {
        return eprintln!("cannot create {}", folder.display());
    }
    for (what, text) in
        [("formulas, a tenth of spaces/million.toml", tenth.as_str()), ("simulations of 64 KiB reads", SIMULATIONS)]
    {
        if let Err(error) = space(what, text, &folder) {
            eprintln!("sweep: {what}: {error}");
        }
    }
    if std::fs::remove_dir_all(&folder).is_err() {
        eprintln!("cannot remove {}", folder.display());
    }
}

/// Elapsed time and processor time of this process, in seconds.
#[derive(Clone, Copy)]
struct Taken {
    elapsed_s: f64,
    /// Absent if the kernel does not report it.
    cpu_s: Option<f64>,
}

/// Runs `work` and measures it.
fn taken(work: impl FnOnce() -> Result<(), Error>) -> Result<Taken, Error> {
    let (start, cpu_s) = (Instant::now(), cpu_s());
    work()?;
    let elapsed_s = start.elapsed().as_secs_f64();
    Ok(Taken { elapsed_s, cpu_s: cpu_s.zip(self::cpu_s()).map(|(from, to)| to - from) })
}

/// Processor time of this process so far, in steps of 10 ms.
fn cpu_s() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // Behind the name of the program, the state is the first field and the user and system time are the 12th and 13th.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks = |place: usize| fields.get(place)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / 100.0)
}

type Error = Box<dyn std::error::Error>;

/// Rounds of the same points on all cores, on one, and by a plain loop.
fn space(what: &str, text: &str, folder: &Path) -> Result<(), Error> {
    let space = Space::parse("bench.toml", text)?;
    let points = Points::of(&space)?;
    let work = Work::of(&space)?;
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let (mut all, mut one, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        all.push(swept(&points, cores, folder)?);
        one.push(swept(&points, 1, folder)?);
        plain.push(taken(|| work.plain(points.len()))?);
    }
    let count = points.len() as f64;
    let elapsed = |taken: &[Taken]| taken.iter().map(|taken| count / taken.elapsed_s).collect();
    let cpu = |taken: &[Taken]| taken.iter().filter_map(|taken| Some(count / taken.cpu_s?)).collect();
    row(&format!("sweep: {} {what}, {cores} threads, points/s", points.len()), elapsed(&all));
    row("  the same, 1 thread, points/s", elapsed(&one));
    row("  the same, 1 thread, points per second of processor time", cpu(&one));
    row("  baseline: a plain loop, no log, points per second of processor time", cpu(&plain));
    let ratios = one.iter().zip(&plain).filter_map(|(one, plain)| Some(one.cpu_s? / plain.cpu_s?));
    row("  processor time of the sweep over that of the plain loop, times", ratios.collect());
    Ok(())
}

/// Runs a whole sweep into a new log.
fn swept(points: &Points, threads: usize, folder: &Path) -> Result<Taken, Error> {
    let path = folder.join("bench.jsonl");
    let mut log = SweepLog::open(&path)?;
    let taken = taken(|| {
        let done = run(points, &mut log, threads, &mut |_| {}, &Cancel::new())?;
        if (done.run, done.without_figure) == (points.len(), 0) {
            return Ok(());
        }
        Err(format!("{} points run, {} without a figure", done.run, done.without_figure).into())
    });
    drop(log);
    std::fs::remove_file(&path)?;
    taken
}

/// The points of a space for a plain loop.
struct Work<'a> {
    space: &'a Space,
    platform: Platform,
    /// The question of each case, and its plan.
    cases: Vec<(&'static Question, Case, Plan)>,
    effort: Effort,
}

impl Work<'_> {
    fn of(space: &Space) -> Result<Work<'_>, Error> {
        let name = space.platforms.first().ok_or("no platform")?;
        let platform = platform(name)?;
        let machine = SimulatedMachine::new(&platform)?;
        let facts = lanemark_machine::Machine::facts(&machine);
        let effort = Effort { simulated_passes: Some(1), ..Effort::default() };
        let mut cases = Vec::new();
        for asked in &space.questions {
            let question = question(&asked.question)?;
            let mut axes = Axes::default();
            for (option, values) in &asked.options {
                match option.as_str() {
                    "sizes" => axes.sizes = Some(values.iter().filter_map(|size| size.parse().ok()).collect()),
                    "flows" => axes.flows = Some(values.iter().filter_map(|flow| flow.parse().ok()).collect()),
                    _ => {}
                }
            }
            for case in (question.cases)(facts, &axes) {
                let plan = (question.plan)(&case, 1);
                cases.push((question, case, plan));
            }
        }
        Ok(Work { space, platform, cases, effort })
    }

    /// Computes every point, of which there must be `points`.
    fn plain(&self, points: u64) -> Result<(), Error> {
        let mut answered = 0;
        for nth in 0..self.space.settings.len().unwrap_or(0) {
            let with = self.space.settings.combination(nth);
            let origin = || Origin::Assumed("varied".to_owned());
            let with = with.iter().map(|(key, value)| (key.as_str(), value.as_str(), origin()));
            let platform = self.platform.with_texts(with)?;
            for (question, case, plan) in &self.cases {
                match self.space.by {
                    SweptBy::Formulas => {
                        black_box(predict(&platform, plan).ok_or("no formula")?);
                    }
                    SweptBy::Simulation => {
                        let mut machine = SimulatedMachine::new(&platform)?;
                        black_box(lanemark_bench::ask(question, &mut machine, case, &self.effort)?);
                    }
                }
                answered += 1;
            }
        }
        if answered != points {
            return Err(format!("the plain loop has {answered} points instead of {points}").into());
        }
        Ok(())
    }
}
