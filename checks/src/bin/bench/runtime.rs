//! Launches and copies through an OpenCL runtime, compared with a bare loop in C on the same runtime.
//!
//! An OpenCL whose calls do nothing shows exactly what our loop adds. On a real runtime the variation of launches and copies
//! hides it. Both programs stay in memory and alternate every few milliseconds, because the machine and the placement of
//! the runtime's threads drift by more than the difference. Each round has new processes and memory, to vary page placement.

use super::row;
use lanemark_hw::opencl::OpenClMachine;
use lanemark_machine::{
    Allocation, Arguments, HostWait, Launch, LaunchBy, Machine, Plan, QueueRequest, RuntimeCopy, Samples, Verb,
};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

/// Argument: measure in this process, whose environment names the runtimes.
pub const WITHIN: &str = "runtime-within";
/// Argument: measure in this process with the runtime that does nothing.
pub const NOTHING: &str = "runtime-nothing";

/// Bytes of a copy.
const BYTES: u64 = 8_000_000;
const ROUNDS: usize = 31;
/// Turns of each program per round, and samples per turn; with fewer samples, the cache state left by the other program
/// dominates.
const TURNS: usize = 4;
const SAMPLES: usize = 50;
/// Launches per sample; a sample has one copy.
const LAUNCHES: u64 = 4;

/// Prints the overhead of our loop, a launch by `clFinish`, and a copy to a buffer by either wait, on the first device. The
/// default runtime is PoCL in `.tools/`.
pub fn runtime() {
    if let Err(why) = on_nothing() {
        println!("{:<66} {why}", "runtime");
    }
    if std::env::var_os("OCL_ICD_VENDORS").is_some() {
        return within();
    }
    let pocl = root().join(".tools/pocl");
    if !pocl.is_dir() {
        return println!("{:<66} no runtime: make test-runtimes, or OCL_ICD_VENDORS", "runtime");
    }
    let libraries = ("LD_LIBRARY_PATH", pocl.join("root/usr/lib/x86_64-linux-gnu"));
    let environment = [("OCL_ICD_VENDORS", pocl.join("vendors")), libraries, ("POCL_CACHE_DIR", pocl.join("cache"))];
    again(WITHIN, &environment);
}

/// Runs this program again, because the library search path is fixed at process start.
fn again(what: &str, environment: &[(&str, PathBuf)]) {
    let environment = environment.iter().map(|(name, value)| (name, value));
    let done = std::env::current_exe().and_then(|this| Command::new(this).arg(what).envs(environment).status());
    match done {
        Ok(status) if status.success() => {}
        Ok(status) => eprintln!("runtime: ended with {status}"),
        Err(error) => eprintln!("runtime: this program cannot be started again: {error}"),
    }
}

/// Builds the OpenCL that does nothing, and measures it in a new process.
fn on_nothing() -> Result<(), String> {
    let folder = std::env::temp_dir().join(format!("lanemark-nothing-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-shared", "-fPIC", "-o"]).arg(folder.join("libOpenCL.so.1"));
    let done = well(compile.arg(root().join("crates/hw/tests/fake_opencl/opencl.c")));
    if done.is_ok() {
        again(NOTHING, &[("LD_LIBRARY_PATH", folder.clone()), ("FAKE_FAILS", PathBuf::new())]);
    }
    let removed = std::fs::remove_dir_all(&folder);
    done.and(removed.map_err(|error| format!("{} is left behind: {error}", folder.display())))
}

/// Time of our loop and of one in C, with calls that do nothing.
pub fn nothing() {
    let all = |bare: &Path| {
        added(bare, &["launch"], "a launch and clFinish", HostWait::Finish, &launch())?;
        let bytes = SHORT_BYTES.to_string();
        for wait in HostWait::ALL {
            let what = format!("a copy of {SHORT_BYTES} B, wait by {}", wait.name());
            added(bare, &["copy", &bytes], &what, wait, &copy(SHORT_BYTES, wait))?;
        }
        Ok(())
    };
    with_bare(all);
}

/// Bytes of a copy with the OpenCL that does nothing.
const SHORT_BYTES: u64 = 8;
/// Iterations per sample there.
const SHORT_PASSES: u64 = 2000;

fn added(bare: &Path, asked: &[&str], what: &str, wait: HostWait, request: &QueueRequest) -> Result<(), String> {
    let passes = SHORT_PASSES.to_string();
    let asked: Vec<&str> = [asked[0], &passes].into_iter().chain(asked[1..].iter().copied()).collect();
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let mut machine = opened()?;
        let mut bare = Bare::new(bare, &machine, &asked)?;
        rounds.push(turns(&mut machine, request, SHORT_PASSES, &mut bare, wait)?);
    }
    row(
        &format!("runtime: our loop, calls that do nothing, {what}, ns"),
        rounds.iter().map(|[ours, _]| *ours).collect(),
    );
    row("  baseline: a loop in C, ns", rounds.iter().map(|[_, bare]| *bare).collect());
    row("  ours minus baseline, ns", rounds.iter().map(|[ours, bare]| ours - bare).collect());
    Ok(())
}

fn launch() -> QueueRequest {
    QueueRequest::Launch(Launch { kernels: 1, by: LaunchBy::Calls, wait: HostWait::Finish, arguments: Arguments::NONE })
}

fn copy(bytes: u64, wait: HostWait) -> QueueRequest {
    QueueRequest::Copy(RuntimeCopy { verb: Verb::Store, bytes, wait, allocation: Allocation::Buffer })
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs all measurements with the runtimes that the environment names.
pub fn within() {
    with_bare(|bare| launches(bare).and_then(|()| copies(bare)));
}

fn with_bare(take: impl FnOnce(&Path) -> Result<(), String>) {
    let bare = std::env::temp_dir().join(format!("lanemark-bare-{}", std::process::id()));
    if let Err(why) = compiled(&bare).and_then(|()| take(&bare)) {
        println!("{:<66} {why}", "runtime");
    }
    // The file is absent if compilation failed.
    let _ = std::fs::remove_file(bare);
}

/// Compiles the loop in C, linked with the OpenCL loader of the environment.
fn compiled(bare: &Path) -> Result<(), String> {
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-o"]).arg(bare).arg(root().join("checks/runtimes/bare.c"));
    let searched = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
    compile.args(searched.split(':').filter(|folder| !folder.is_empty()).map(|folder| format!("-L{folder}")));
    compile.args(["-l:libOpenCL.so.1", "-Wl,--allow-shlib-undefined"]);
    well(&mut compile)
}

fn well(compile: &mut Command) -> Result<(), String> {
    let done = compile.output().map_err(|error| format!("no C compiler: {error}"))?;
    let said = || format!("not compiled: {}", String::from_utf8_lossy(&done.stderr).trim());
    if done.status.success() { Ok(()) } else { Err(said()) }
}

/// The process of the loop in C, which takes samples on request.
struct Bare {
    child: Child,
    ask: ChildStdin,
    said: BufReader<ChildStdout>,
}

impl Bare {
    /// Starts the process on the processor to which ours is pinned.
    fn new(bare: &Path, ours: &OpenClMachine, arguments: &[&str]) -> Result<Bare, String> {
        let mut command = Command::new(bare);
        command.arg(ours.cpus()[0].to_string()).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("the loop in C cannot be started: {error}"))?;
        let (Some(ask), Some(said)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the loop in C has no pipes".to_owned());
        };
        Ok(Bare { child, ask, said: BufReader::new(said) })
    }

    /// Nanoseconds per iteration of each sample.
    fn samples(&mut self, wait: HostWait) -> Result<Vec<f64>, String> {
        let mut line = String::new();
        let asked = writeln!(self.ask, "{} {SAMPLES}", wait.name()).and_then(|()| self.ask.flush());
        asked.and_then(|()| self.said.read_line(&mut line)).map_err(|error| format!("the loop in C: {error}"))?;
        let samples: Vec<f64> = line.split_whitespace().filter_map(|ns| ns.parse().ok()).collect();
        if samples.len() == SAMPLES { Ok(samples) } else { Err(format!("the loop in C said '{}'", line.trim())) }
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Nanoseconds per iteration of each of our samples.
fn samples(machine: &mut OpenClMachine, request: QueueRequest, passes: u64) -> Result<Vec<f64>, String> {
    let plan = Plan { warmup_passes: 1, ..Plan::new(request, passes) };
    let mut samples = Samples::wanted(SAMPLES);
    machine.run(&plan, &mut samples).map_err(|error| error.to_string())?;
    // The loop in C does not drop disturbed samples, so ours must not either.
    let disturbed = samples.disturbed.iter().map(|(_, sample, _)| sample);
    Ok(samples.taken.iter().chain(disturbed).map(|sample| sample.delivered.as_ns() / passes as f64).collect())
}

/// Alternates both programs, and returns the median of ours and of the loop in C.
fn turns(
    machine: &mut OpenClMachine,
    request: &QueueRequest,
    passes: u64,
    bare: &mut Bare,
    wait: HostWait,
) -> Result<[f64; 2], String> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        // The order alternates.
        if turn % 2 == 1 {
            theirs.append(&mut bare.samples(wait)?);
        }
        ours.append(&mut samples(machine, request.clone(), passes)?);
        if turn % 2 == 0 {
            theirs.append(&mut bare.samples(wait)?);
        }
    }
    Ok([middle(ours), middle(theirs)])
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn opened() -> Result<OpenClMachine, String> {
    OpenClMachine::open(0, Arc::default()).map_err(|error| error.to_string())
}

fn launches(bare: &Path) -> Result<(), String> {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let mut machine = opened()?;
        let mut bare = Bare::new(bare, &machine, &["launch", &LAUNCHES.to_string()])?;
        rounds.push(turns(&mut machine, &launch(), LAUNCHES, &mut bare, HostWait::Finish)?);
    }
    row("runtime: a launch that does nothing and clFinish, ns", rounds.iter().map(|[ours, _]| *ours).collect());
    row("  baseline: a loop in C, ns", rounds.iter().map(|[_, bare]| *bare).collect());
    let ratios = rounds.iter().map(|[ours, bare]| ours / bare).collect();
    row("  ours over baseline, times (target: at most 1.02)", ratios);
    Ok(())
}

fn copies(bare: &Path) -> Result<(), String> {
    let bytes = BYTES as f64;
    // Rates of ours and of the loop in C, by either wait.
    let mut rounds = [const { Vec::new() }; HostWait::ALL.len()];
    for _ in 0..ROUNDS {
        let mut machine = opened()?;
        let mut bare = Bare::new(bare, &machine, &["copy", "1", &BYTES.to_string()])?;
        for (rates, wait) in rounds.iter_mut().zip(HostWait::ALL) {
            let both = turns(&mut machine, &copy(BYTES, wait), 1, &mut bare, wait)?;
            rates.push(both.map(|ns| bytes / ns));
        }
    }
    for (rates, wait) in rounds.iter().zip(HostWait::ALL) {
        let what = format!("runtime: 8 MB to a buffer, wait by {}, GB/s", wait.name());
        row(&what, rates.iter().map(|[ours, _]| *ours).collect());
        row("  baseline: a loop in C with the same wait, GB/s", rates.iter().map(|[_, bare]| *bare).collect());
        row("  ours over baseline, times", rates.iter().map(|[ours, bare]| ours / bare).collect());
    }
    // The better wait of each, per round; both sides take the better of two.
    let best = |round: usize, who: usize| rounds.iter().map(|rates| rates[round][who]).fold(0.0, f64::max);
    let ratios = (0..ROUNDS).map(|round| best(round, 0) / best(round, 1)).collect();
    row("  best wait over best wait, times (target: at least 0.98)", ratios);
    Ok(())
}
