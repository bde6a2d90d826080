//! Launches and copies through an OpenCL runtime, beside a bare loop in C on the same runtime.
//!
//! What our loop adds is told exactly by an OpenCL whose calls do nothing: there is nothing else in its time. On a real runtime it is lost in what
//! launches and copies differ by. Both stay in memory and take turns of a few milliseconds: from one minute to the next such a machine, and where the system puts a runtime's
//! threads, differ by more than what is compared. Each round has processes and memory of its own, for pages lie where they happen to.

use super::row;
use lanemark_hw::opencl::OpenClMachine;
use lanemark_machine::{Allocation, Arguments, HostWait, Launch, Machine, MovedByRuntime, Op, Plan, Samples, Verb};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

/// As an argument: what is asked for is taken in this process, which has been given runtimes.
pub const WITHIN: &str = "runtime-within";
/// The same, with one that does nothing.
pub const NOTHING: &str = "runtime-nothing";

/// Copied at once.
const BYTES: u64 = 8_000_000;
const ROUNDS: usize = 31;
/// Turns of each in a round, and samples in a turn: of fewer, the first find caches as whoever was before left them.
const TURNS: usize = 4;
const SAMPLES: usize = 50;
/// Launches of a sample; of copies it has one.
const LAUNCHES: u64 = 4;

/// What our loop adds; and a launch told by finish, and a copy to a buffer by either wait, both of the first device: PoCL below `.tools/`, if nobody names runtimes.
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

/// This program, once more: libraries are looked for where a process was told to when it began.
fn again(what: &str, environment: &[(&str, PathBuf)]) {
    let environment = environment.iter().map(|(name, value)| (name, value));
    let done = std::env::current_exe().and_then(|this| Command::new(this).arg(what).envs(environment).status());
    match done {
        Ok(status) if status.success() => {}
        Ok(status) => eprintln!("runtime: ended with {status}"),
        Err(error) => eprintln!("runtime: this program cannot be started again: {error}"),
    }
}

/// Has the OpenCL made that does nothing, and this program ask it.
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

/// What our loop takes where calls take nothing, and one in C.
pub fn nothing() {
    let all = |bare: &Path| {
        added(bare, &["launch"], "a launch and clFinish", HostWait::Finish, &launch())?;
        let bytes = SHORT_BYTES.to_string();
        for told in HostWait::ALL {
            let what = format!("a copy of {SHORT_BYTES} B, told by {}", told.name());
            added(bare, &["copy", &bytes], &what, told, &copy(SHORT_BYTES, told))?;
        }
        Ok(())
    };
    with_bare(all);
}

/// Copied where calls do nothing else.
const SHORT_BYTES: u64 = 8;
/// Passes of a sample there.
const SHORT_PASSES: u64 = 2000;

fn added(bare: &Path, asked: &[&str], what: &str, told: HostWait, op: &Op) -> Result<(), String> {
    let passes = SHORT_PASSES.to_string();
    let asked: Vec<&str> = [asked[0], &passes].into_iter().chain(asked[1..].iter().copied()).collect();
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let mut machine = opened()?;
        let mut bare = Bare::new(bare, &machine, &asked)?;
        rounds.push(turns(&mut machine, op, SHORT_PASSES, &mut bare, told)?);
    }
    row(
        &format!("runtime: our loop where calls do nothing, {what}, ns"),
        rounds.iter().map(|[ours, _]| *ours).collect(),
    );
    row("  baseline: a loop in C, ns", rounds.iter().map(|[_, bare]| *bare).collect());
    row("  ours less baseline, ns", rounds.iter().map(|[ours, bare]| ours - bare).collect());
    Ok(())
}

fn launch() -> Op {
    Op::Launch(Launch { kernels: 1, told: HostWait::Finish, arguments: Arguments::NONE })
}

fn copy(bytes: u64, told: HostWait) -> Op {
    Op::MovedByRuntime(MovedByRuntime { verb: Verb::Store, bytes, told, allocation: Allocation::Buffer })
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All of it, with the runtimes that the environment names.
pub fn within() {
    with_bare(|bare| launches(bare).and_then(|()| copies(bare)));
}

fn with_bare(take: impl FnOnce(&Path) -> Result<(), String>) {
    let bare = std::env::temp_dir().join(format!("lanemark-bare-{}", std::process::id()));
    if let Err(why) = compiled(&bare).and_then(|()| take(&bare)) {
        println!("{:<66} {why}", "runtime");
    }
    // There is none where the compiler did not make it.
    let _ = std::fs::remove_file(bare);
}

/// Linked against whatever loader the environment finds.
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

/// The loop in C, which takes samples when it is told to.
struct Bare {
    child: Child,
    ask: ChildStdin,
    said: BufReader<ChildStdout>,
}

impl Bare {
    /// On the processor that ours is held on.
    fn new(bare: &Path, ours: &OpenClMachine, arguments: &[&str]) -> Result<Bare, String> {
        let mut command = Command::new(bare);
        command.arg(ours.cpus()[0].to_string()).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("the loop in C cannot be started: {error}"))?;
        let (Some(ask), Some(said)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the loop in C has no pipes".to_owned());
        };
        Ok(Bare { child, ask, said: BufReader::new(said) })
    }

    /// Nanoseconds of a pass of each sample.
    fn samples(&mut self, told: HostWait) -> Result<Vec<f64>, String> {
        let mut line = String::new();
        let asked = writeln!(self.ask, "{} {SAMPLES}", told.name()).and_then(|()| self.ask.flush());
        asked.and_then(|()| self.said.read_line(&mut line)).map_err(|error| format!("the loop in C: {error}"))?;
        let samples: Vec<f64> = line.split_whitespace().filter_map(|ns| ns.parse().ok()).collect();
        if samples.len() == SAMPLES { Ok(samples) } else { Err(format!("the loop in C said '{}'", line.trim())) }
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Nanoseconds of a pass of each sample of ours.
fn samples(machine: &mut OpenClMachine, op: Op, passes: u64) -> Result<Vec<f64>, String> {
    let plan = Plan { warmup_passes: 1, ..Plan::on_one_core(vec![op], passes) };
    let mut samples = Samples::wanted(SAMPLES);
    machine.run(&plan, &mut samples).map_err(|error| error.to_string())?;
    // Nothing keeps the other from counting what the system disturbed.
    let disturbed = samples.disturbed.iter().map(|(_, sample, _)| sample);
    Ok(samples.taken.iter().chain(disturbed).map(|sample| sample.delivered.as_ns() / passes as f64).collect())
}

/// One after the other, in turns: the median of ours and that of the loop in C.
fn turns(
    machine: &mut OpenClMachine,
    op: &Op,
    passes: u64,
    bare: &mut Bare,
    told: HostWait,
) -> Result<[f64; 2], String> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        // Neither is always the one that comes second.
        if turn % 2 == 1 {
            theirs.append(&mut bare.samples(told)?);
        }
        ours.append(&mut samples(machine, op.clone(), passes)?);
        if turn % 2 == 0 {
            theirs.append(&mut bare.samples(told)?);
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
    row("  ours over baseline, times (wanted: 1.02 at most)", ratios);
    Ok(())
}

fn copies(bare: &Path) -> Result<(), String> {
    let bytes = BYTES as f64;
    // Rates by either wait, of ours and of the loop in C.
    let mut rounds = [const { Vec::new() }; HostWait::ALL.len()];
    for _ in 0..ROUNDS {
        let mut machine = opened()?;
        let mut bare = Bare::new(bare, &machine, &["copy", "1", &BYTES.to_string()])?;
        for (rates, told) in rounds.iter_mut().zip(HostWait::ALL) {
            let both = turns(&mut machine, &copy(BYTES, told), 1, &mut bare, told)?;
            rates.push(both.map(|ns| bytes / ns));
        }
    }
    for (rates, told) in rounds.iter().zip(HostWait::ALL) {
        let what = format!("runtime: 8 MB to a buffer, told by {}, GB/s", told.name());
        row(&what, rates.iter().map(|[ours, _]| *ours).collect());
        row("  baseline: a loop in C with the same wait, GB/s", rates.iter().map(|[_, bare]| *bare).collect());
        row("  ours over baseline, times", rates.iter().map(|[ours, bare]| ours / bare).collect());
    }
    // By round, the better wait of either; both are the better of two, so neither is luckier.
    let best = |round: usize, who: usize| rounds.iter().map(|rates| rates[round][who]).fold(0.0, f64::max);
    let ratios = (0..ROUNDS).map(|round| best(round, 0) / best(round, 1)).collect();
    row("  best wait over best wait, times (wanted: 0.98 at least)", ratios);
    Ok(())
}
