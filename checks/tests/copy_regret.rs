//! The cost of methods that a table of few times chooses, on random GPUs, by formula: two hundred, and a thousand in
//! `make test-long`.

mod random_platform;

use lanemark_bench::{Axes, question};
use lanemark_copy_plan::{CopyPlan, CopyPoint, CopyTable};
use lanemark_machine::{CopyBy, Plan, SmallCopies};
use lanemark_method::{CopyDirection, Method};
use lanemark_model::predict;
use lanemark_platform::{Origin, Platform, host_with_card};
use lanemark_sim::facts;
use random_platform::Random;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Random GPUs, and all of them with `LANEMARK_LONG`; held-back cells of each.
const GPUS: usize = 200;
const ALL_GPUS: usize = 1000;
const CELLS: usize = 8;
/// Largest extra cost of a good choice, and share of the cells that must be good.
const GOOD: f64 = 0.05;
const SHARE: f64 = 0.97;
const BOTH: [CopyDirection; 2] = [CopyDirection::ToDevice, CopyDirection::FromDevice];

fn gpu() -> Platform {
    host_with_card("xeon-spr", "gpu-h100").unwrap().complete().unwrap()
}

fn with(platform: &Platform, key: &str, value: f64) -> Platform {
    platform.with(key, value, Origin::Assumed("random".to_owned())).unwrap_or_else(|error| panic!("{key}: {error}"))
}

/// A GPU whose overheads are a quarter to four times those of the built-in one, on a link of any generation and width.
fn random_gpu(random: &mut Random) -> Platform {
    let mut gpu = gpu();
    for (key, usual) in [
        ("runtime.submit_ns", 1200.0),
        ("runtime.return_ns", 400.0),
        ("runtime.usm_copy_ns", 400.0),
        ("runtime.copy_entry_ns", 40.0),
        ("runtime.copy_line_ns", 6.0),
        ("runtime.kernel_start_ns", 2000.0),
        ("runtime.kernel_end_ns", 2000.0),
        ("driver.call_ns", 160.0),
        ("driver.build_descriptor_ns", 10.0),
        ("driver.wake_ns", 1200.0),
        ("memory.read_ns", 300.0),
        ("endpoint.egress_ns", 150.0),
    ] {
        gpu = with(&gpu, key, usual * random.between(0.25, 4.0));
    }
    gpu = with(&gpu, "link.generation", random.pick(&[3.0, 4.0, 5.0]));
    gpu = with(&gpu, "link.width_lanes", random.pick(&[4.0, 8.0, 16.0]));
    gpu = with(&gpu, "dma.tags", random.pick(&[32.0, 64.0, 128.0, 256.0]));
    with(&gpu, "dma.prefetch_descriptors", random.pick(&[1.0, 4.0, 8.0, 32.0, 64.0]))
}

fn time(gpu: &Platform, direction: CopyDirection, by: CopyBy, copies: u32, bytes: u64) -> Option<f64> {
    let asked = SmallCopies { verb: direction.verb(), bytes, count: copies, by };
    Some(predict(gpu, &Plan { warmup_passes: 1, ..Plan::new(asked, 1) })?.delivered_ns)
}

/// The table that `lanemark tune` makes of the question's cases.
fn table(gpu: &Platform) -> CopyTable {
    let small_copies = question("small_copies").unwrap();
    let points = (small_copies.cases)(&facts(gpu), &Axes::default()).into_iter().map(|case| {
        let Method::SmallCopies { direction, copies, by } = case.method else { panic!("{case:?}") };
        let ns = time(gpu, direction, by, copies, case.size).expect("every case has a formula");
        CopyPoint { direction, by, copies, size_bytes: case.size, ns }
    });
    CopyTable::new("random".to_owned(), points.collect()).unwrap()
}

/// Extra cost of the chosen method in each held-back cell of GPU `number`, and the best method.
fn cells(number: usize) -> Vec<(f64, CopyBy)> {
    let random = &mut Random(68 + number as u64);
    let gpu = random_gpu(random);
    let plan = CopyPlan::new(&table(&gpu));
    let cell = |_| {
        let direction = random.pick(&BOTH);
        let copies = random.between(1.0, 500.0).round() as u32;
        let bytes = random.between(16.0, 262_144.0).round() as u64;
        let timed = |by| Some((by, time(&gpu, direction, by, copies, bytes)?));
        let all: Vec<(CopyBy, f64)> = CopyBy::ALL.into_iter().filter_map(timed).collect();
        // Some cells need more memory than a plan may have.
        let best = all.iter().min_by(|one, other| one.1.total_cmp(&other.1))?;
        let chosen = plan.choose(bytes, copies, direction).expect("the table has both directions");
        let cost = all.iter().find(|(by, _)| *by == chosen).expect("only methods of the table are chosen").1;
        Some((cost / best.1 - 1.0, best.0))
    };
    (0..CELLS).filter_map(cell).collect()
}

#[test]
fn the_chosen_method_is_nearly_always_the_best_or_5_percent_slower() {
    let gpus = if std::env::var_os("LANEMARK_LONG").is_some() { ALL_GPUS } else { GPUS };
    let next = AtomicUsize::new(0);
    let work = || {
        let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)).filter(|number| *number < gpus));
        numbers.flat_map(cells).collect::<Vec<_>>()
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let all: Vec<(f64, CopyBy)> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let mut regrets: Vec<f64> = all.iter().map(|(regret, _)| *regret).collect();
    regrets.sort_by(f64::total_cmp);
    let good = regrets.iter().filter(|regret| **regret <= GOOD).count() as f64 / regrets.len() as f64;
    let at = |share: f64| regrets[((regrets.len() - 1) as f64 * share) as usize] * 100.0;
    let wins = CopyBy::ALL.map(|by| all.iter().filter(|(_, best)| *best == by).count());
    println!(
        "{} cells: {:.2} % cost at most 5 % more; 95 %, 99 % and all: {:.1}, {:.1}, {:.1} % more; best: {wins:?}",
        regrets.len(),
        good * 100.0,
        at(0.95),
        at(0.99),
        at(1.0)
    );
    assert!(regrets.len() > gpus * CELLS * 9 / 10, "{} cells", regrets.len());
    assert!(good >= SHARE, "only {good} of the cells");
    // If one method were always the best, a table would not be needed.
    assert!(wins.iter().filter(|count| **count * 20 > regrets.len()).count() >= 3, "{wins:?}");
}

/// Smallest count from which on `by` is not slower than a batch call, for pieces of 64 B to the device.
fn crossing(gpu: &Platform, by: CopyBy) -> u32 {
    let ns = |by, copies| time(gpu, CopyDirection::ToDevice, by, copies, 64).unwrap();
    (1..=SmallCopies::MOST_COPIES).find(|copies| ns(by, *copies) <= ns(CopyBy::Batch, *copies)).unwrap_or(u32::MAX)
}

#[test]
fn the_crossing_of_a_batch_and_a_kernel_moves_with_overheads_and_latencies() {
    let usual = crossing(&gpu(), CopyBy::InPlace);
    let with_key = |key: &str, value: f64| crossing(&with(&gpu(), key, value), CopyBy::InPlace);
    assert!(usual > 1 && usual < 100, "{usual}");
    assert!(with_key("runtime.kernel_start_ns", 8000.0) > usual, "a slow launch needs more pieces to pay off");
    assert!(with_key("runtime.kernel_start_ns", 200.0) < usual);
    assert!(with_key("dma.prefetch_descriptors", 64.0) > usual, "a batch with many descriptors in flight stays ahead");
    assert!(with_key("memory.read_ns", 2000.0) < usual, "descriptors of a batch wait for host memory");
}
