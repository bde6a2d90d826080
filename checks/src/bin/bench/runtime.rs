//! Launches and copies through an OpenCL runtime, beside a bare loop in C on the same runtime.

use super::{ROUNDS, beside_this_program, row};
use lanemark_record::{Answer, file};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Copied at once.
const BYTES: u64 = 8_000_000;
/// Eight ways or more share these seconds, and each begins with memory that caches do not hold.
const COPIES_S: &str = "8";

/// `launch_latency` told by finish, and `transfer` to the device by its faster wait, both of the first device: PoCL below `.tools/`, if nobody names runtimes.
pub fn runtime() {
    let Some(lanemark) = beside_this_program() else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (pocl, folder) =
        (root.join(".tools/pocl"), std::env::temp_dir().join(format!("lanemark-bare-{}", std::process::id())));
    let is_named = std::env::var_os("OCL_ICD_VENDORS").is_some();
    if !is_named && !pocl.is_dir() {
        return println!("{:<66} no runtime: make test-runtimes, or OCL_ICD_VENDORS", "runtime");
    }
    let libraries = pocl.join("root/usr/lib/x86_64-linux-gnu");
    if std::fs::create_dir_all(&folder).is_err() {
        return eprintln!("{} cannot be made", folder.display());
    }
    let bare = folder.join("bare");
    let with_runtime = |program: &PathBuf| {
        let mut command = Command::new(program);
        command.current_dir(&folder);
        if !is_named {
            let vendors = ("OCL_ICD_VENDORS", pocl.join("vendors"));
            command.envs([vendors, ("LD_LIBRARY_PATH", libraries.clone()), ("POCL_CACHE_DIR", pocl.join("cache"))]);
        }
        command
    };
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-o"]).arg(&bare).arg(root.join("checks/runtimes/bare.c"));
    // Linked against whatever loader the same variable finds.
    let searched = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
    let searched = if is_named { searched } else { libraries.display().to_string() };
    compile.args(searched.split(':').filter(|folder| !folder.is_empty()).map(|folder| format!("-L{folder}")));
    compile.args(["-l:libOpenCL.so.1", "-Wl,--allow-shlib-undefined"]);
    match compile.output() {
        Ok(done) if done.status.success() => {
            let of_bare = |arguments: &[&str]| said(with_runtime(&bare).args(arguments))?.trim().parse::<f64>().ok();
            let of_ours = |arguments: &[&str]| {
                let mut command = with_runtime(&lanemark);
                let fixed = ["bench", "--on", "opencl:0", "--json", "--question"];
                let text = said(command.args(fixed).args(arguments))?;
                Some(file::from_bytes(text.as_bytes(), Path::new("what lanemark said")).ok()?.answers)
            };
            launches(&of_ours, &of_bare);
            copies(&of_ours, &of_bare);
        }
        Ok(done) => println!("{:<66} not compiled: {}", "runtime", String::from_utf8_lossy(&done.stderr).trim()),
        Err(error) => println!("{:<66} no C compiler: {error}", "runtime"),
    }
    if std::fs::remove_dir_all(&folder).is_err() {
        eprintln!("{} is left behind", folder.display());
    }
}

type Ours<'a> = &'a dyn Fn(&[&str]) -> Option<Vec<Answer>>;
type Bare<'a> = &'a dyn Fn(&[&str]) -> Option<f64>;

fn launches(ours: Ours<'_>, bare: Bare<'_>) {
    let (mut of_ours, mut of_bare, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let answers = ours(&["launch_latency", "--budget", "1"]).unwrap_or_default();
        let is_alike = |answer: &&Answer| (&*answer.way.through, &*answer.way.access) == ("launch_1", "finish");
        let latency = answers.iter().find(is_alike).and_then(|answer| answer.latency_ns);
        let (Some(latency), Some(ns)) = (latency, bare(&["0", "launch"])) else { continue };
        of_ours.push(latency.median);
        of_bare.push(ns);
        ratios.push(latency.median / ns);
    }
    row("runtime: a launch that does nothing and clFinish, ns", of_ours);
    row("  baseline: a loop in C, ns", of_bare);
    row("  ours over baseline, times (wanted: 1.02 at most)", ratios);
}

fn copies(ours: Ours<'_>, bare: Bare<'_>) {
    let (mut of_ours, mut of_bare, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let bytes = BYTES.to_string();
    for _ in 0..ROUNDS {
        let answers = ours(&["transfer", "--sizes", &bytes, "--budget", COPIES_S]).unwrap_or_default();
        let to_buffer = answers.iter().filter(|answer| answer.way.through == "runtime_to_device");
        let rates = to_buffer.filter_map(|answer| answer.delivered_rate_bytes_per_s);
        let best = rates.map(|rate| rate.median / 1e9).max_by(f64::total_cmp);
        let (Some(rate), Some(ns)) = (best, bare(&["0", "copy", &bytes])) else { continue };
        of_ours.push(rate);
        of_bare.push(BYTES as f64 / ns);
        ratios.push(rate * ns / BYTES as f64);
    }
    row("runtime: 8 MB to a buffer, GB/s", of_ours);
    row("  baseline: a loop in C, the faster of two waits, GB/s", of_bare);
    row("  ours over baseline, times (wanted: 0.98 at least)", ratios);
}

fn said(command: &mut Command) -> Option<String> {
    let done = command.output().ok()?;
    if !done.status.success() {
        eprintln!("{}", String::from_utf8_lossy(&done.stderr).trim());
        return None;
    }
    String::from_utf8(done.stdout).ok()
}
