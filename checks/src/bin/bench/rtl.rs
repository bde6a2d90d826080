//! DMA of the card of `rtl/` behind an UltraScale+ block, compiled by Verilator: test benches in Python, and the native driver.

use super::{ROUNDS, row};
use lanemark_adversary::{Request, Target, campaign};
use lanemark_devices::DeviceFile;
use lanemark_hw::dut_library::{DutLibrary, Watchdog};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Seeds of the native driver in a round.
const SEEDS: u64 = 100;
/// The two test benches of `checks/cocotb/dma.py`, as it calls them.
const OURS: &str = "lanemark";
const THEIRS: &str = "cocotbext-pcie";

/// TLPs per second of three drivers.
pub fn rtl() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let printed = match benches(&root) {
        Ok(printed) => printed,
        Err(because) => return println!("  skipped: rtl, {because}"),
    };
    let rates = |name: &str| -> Vec<f64> {
        printed.lines().filter_map(|line| line.strip_prefix(name)?.trim().parse().ok()).collect()
    };
    let (ours, theirs) = (rates(OURS), rates(THEIRS));
    let (Some(our), Some(their)) = (median(&ours), median(&theirs)) else {
        return println!("  skipped: rtl, because checks/cocotb/dma.py printed no rates:\n{printed}");
    };
    row("rtl: TLPs of DMA per second, lanemark.cocotb, RTL in Verilator", ours);
    row("  baseline: cocotbext-pcie 0.2.16, the same transfers", theirs);
    row("  over the baseline, times, of the medians (target: 5)", vec![our / their]);
    match native(&root) {
        Ok(native) => {
            let times = median(&native).map_or(f64::NAN, |native| native / their);
            row("rtl: TLPs per second, fuzz-rtl with a legal partner, one thread", native);
            row("  over cocotbext-pcie, times, of the medians (target: 100)", vec![times]);
        }
        Err(because) => println!("  skipped: the native driver, {because}"),
    }
}

fn median(rates: &[f64]) -> Option<f64> {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// Files of the card behind the block.
fn files(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for folder in ["card", "adapters", "ultrascale"] {
        let entries = fs::read_dir(root.join("rtl").join(folder)).map_err(|error| format!("rtl/{folder}: {error}"))?;
        files.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
    }
    files.retain(|file| file.extension().is_some_and(|kind| kind == "sv"));
    files.sort();
    Ok(files)
}

fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("because {command:?} cannot be run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let error = String::from_utf8_lossy(&output.stderr);
    Err(format!("because {command:?} said: {}", error.lines().chain(text.lines()).last().unwrap_or("nothing")))
}

/// What both test benches print, with the Python package as users build it.
fn benches(root: &Path) -> Result<String, String> {
    run(Command::new(root.join("checks/python/install")).env("LANEMARK_WHEEL_PROFILE", "release"))?;
    // Other packages there are for another Python than that of Verilator and cocotb.
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let find = "import lanemark, pathlib; print(pathlib.Path(lanemark.__file__).parent)";
    let package = run(Command::new(root.join(".tools/python/bin/python")).args(["-c", find]))?;
    let link = std::os::unix::fs::symlink(package.trim(), folder.path().join("lanemark"));
    link.map_err(|error| error.to_string())?;
    run(Command::new(root.join("rtl/cocotb_run"))
        .args(["card_ultrascale", "checks/cocotb/dma.py", "-GWIDTH=128"])
        .args(files(root)?)
        .current_dir(root)
        .env("PYTHONPATH", folder.path()))
}

/// TLPs per second of the native driver.
fn native(root: &Path) -> Result<Vec<f64>, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let library = folder.path().join("card.so");
    run(Command::new(root.join("rtl/build"))
        .arg(&library)
        .args(["card_ultrascale", "-GWIDTH=128"])
        .args(files(root)?))?;
    let watchdog = Watchdog::start(Duration::from_mins(1), |hang| eprintln!("{hang}"));
    let library = DutLibrary::load(&library, &watchdog.map_err(|error| error.to_string())?);
    let library = library.map_err(|error| error.to_string())?;
    let text = fs::read_to_string(root.join("rtl/card.toml")).map_err(|error| error.to_string())?;
    let device = DeviceFile::parse("rtl/card.toml", &text).map_err(|error| error.to_string())?;
    let target = Target::new(&device, 2048).map_err(|error| error.to_string())?;
    let request = Request { seeds: 0..SEEDS, is_illegal: false, threads: 1 };
    let open = |_| library.open("bench").map_err(|error| error.to_string());
    let round = |_| {
        let start = Instant::now();
        let summary = campaign(&request, &target, open, || false)?;
        Ok(summary.tlps as f64 / start.elapsed().as_secs_f64())
    };
    (0..ROUNDS).map(round).collect()
}
