//! A run of a case on a device.

use crate::bench::{Bench, Checked, Permitted};
use crate::case::{Case, Step};
use crate::completer::Limits;
use crate::finding::Finding;
use crate::rule::Rule;
use crate::situation::{Coverage, Situation};
use crate::target::Target;
use fastrand::Rng;
use lanemark_devices::Direction;
use lanemark_dut::Dut;
use lanemark_record::Passed;

/// Clocks of a reset.
const RESET_CLOCKS: u64 = 8;
/// Clocks after a transfer in which its interrupt arrives.
const INTERRUPT_CLOCKS: u64 = 4000;
/// Bytes around a transfer that are read back with it.
const AROUND: u64 = 64;

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The first broken rule, if there is one, and the index of its step.
    pub finding: Option<(Finding, usize)>,
    /// Situations that were created.
    pub coverage: Coverage,
    /// TLPs of both directions.
    pub tlps: u64,
    /// Clocks.
    pub clocks: u64,
    /// TLPs of both directions, if they were kept.
    pub kept: Vec<Passed>,
}

/// Runs a case; `keep` keeps its TLPs.
pub fn run(dut: &mut dyn Dut, target: &Target, case: &Case, keep: bool) -> Outcome {
    let limits = Limits {
        mps: 128,
        tags: case.tags,
        timeout_clocks: u64::from(target.timeout_clocks),
        timer_slack_clocks: u64::from(dut.timer_slack_clocks()),
        rcb: case.rcb,
        beat_bytes: dut.beat_bytes(),
    };
    let mut bench = Bench::new(limits, target.host_start(), target.host_bytes() as usize, case.is_scarce);
    bench.kept = keep.then(Vec::new);
    let mut trial =
        Trial { dut, bench, target, shadow: vec![None; target.memory_bytes() as usize], is_poll_fast: false };
    let mut finding = trial.start(case.seed).err().map(|finding| (*finding, 0));
    for (place, step) in case.steps.iter().enumerate() {
        if finding.is_none() {
            finding = trial.step(step).err().map(|finding| (*finding, place));
        }
    }
    let Bench { coverage, tlps, clock, kept, .. } = trial.bench;
    Outcome { finding, coverage, tlps, clocks: clock, kept: kept.unwrap_or_default() }
}

/// How a transfer ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ended {
    Done,
    Failed,
    Reset,
}

struct Trial<'a> {
    dut: &'a mut dyn Dut,
    bench: Bench,
    target: &'a Target,
    /// Bytes of the device's memory; `None` if a failed transfer may have changed them.
    shadow: Vec<Option<u8>>,
    is_poll_fast: bool,
}

impl Trial<'_> {
    /// Resets the device and fills its memory by DMA.
    fn start(&mut self, seed: u64) -> Checked<()> {
        self.bench.random = Rng::with_seed(seed ^ 0x5eed);
        self.bench.inputs.reset = 1;
        self.bench.configure();
        self.bench.clocks(self.dut, RESET_CLOCKS)?;
        self.bench.inputs.reset = 0;
        self.bench.set_bus_master(true);
        let most = self.target.most_bytes();
        let mut device = 0;
        while device < self.target.memory_bytes() {
            let bytes = most.min(self.target.memory_bytes() - device);
            let step = self.plain(Direction::ToDevice, device, bytes);
            self.transfer(&step)?;
            device += bytes;
        }
        Ok(())
    }

    /// A transfer without situations, from the start of the host memory.
    fn plain(&mut self, direction: Direction, device: u64, bytes: u64) -> Step {
        Step {
            direction,
            host: 0,
            device,
            bytes,
            mps: self.bench.inputs.mps,
            mrrs: self.bench.inputs.mrrs,
            has_interrupt: false,
            legal: Vec::new(),
            illegal: None,
            seed: self.bench.random.u64(..),
        }
    }

    fn step(&mut self, step: &Step) -> Checked<()> {
        self.bench.set_sizes(step.mps, step.mrrs);
        self.bench.twisted = None;
        let ended = self.transfer(step)?;
        if step.direction == Direction::ToDevice || ended != Ended::Done {
            self.read_back(step, ended)?;
        }
        Ok(())
    }

    /// Reads the range of a transfer and some bytes around it from the device, and compares them.
    fn read_back(&mut self, step: &Step, ended: Ended) -> Checked<()> {
        let alignment = self.target.alignment();
        let start = step.device.saturating_sub(AROUND) / alignment * alignment;
        let end = (step.device + step.bytes + AROUND).min(self.target.memory_bytes() / alignment * alignment);
        let twisted = self.bench.twisted;
        let mut at = start;
        while at < end {
            let bytes = self.target.most_bytes().min(end - at);
            let back = self.plain(Direction::ToHost, at, bytes);
            self.transfer(&back).map_err(|mut finding| {
                // What goes wrong now is a consequence of the illegal situation.
                if let Some(twisted) = twisted {
                    let about = format!("after {} ({})", twisted.row().name, twisted.row().section);
                    let rule = match finding.rule {
                        Rule::DataIntegrity => twisted.row().breaks,
                        Rule::Progress | Rule::FailedWithoutCause | Rule::MissingCompletion => Rule::Recovery,
                        other => other,
                    };
                    let how = if ended == Ended::Done { "the transfer was reported as done" } else { "it had ended" };
                    finding.what = format!("{about}, when {how}: {}", finding.what);
                    finding.rule = rule;
                }
                finding
            })?;
            at += bytes;
        }
        Ok(())
    }

    fn manner(&mut self, step: &Step) {
        let has = |situation| step.legal.contains(&situation);
        let twist = step.illegal.filter(|(situation, _)| *situation != Situation::FunctionLevelReset);
        self.bench.begin(&step.legal, twist);
        self.is_poll_fast = has(Situation::PollingDuringTransfer);
        let coverage = &mut self.bench.coverage;
        for (is_there, situation) in [
            (self.is_poll_fast, Situation::PollingDuringTransfer),
            (!(step.host | step.bytes).is_multiple_of(4), Situation::UnalignedBuffers),
            (self.target.host_start() + step.host >= 1 << 32, Situation::AddressAbove4Gib),
        ] {
            if is_there {
                coverage.count(situation);
            }
        }
    }

    /// Makes a transfer, and checks its bytes if they are in host memory.
    fn transfer(&mut self, step: &Step) -> Checked<Ended> {
        self.bench.random = Rng::with_seed(step.seed);
        self.manner(step);
        self.touch_bar(step)?;
        let address = self.target.host_start() + step.host;
        let is_to_host = step.direction == Direction::ToHost;
        let (host, bytes) = (step.host as usize, step.bytes as usize);
        let device = step.device as usize;
        let mut memory = std::mem::take(&mut self.bench.memory);
        self.bench.random.fill(&mut memory[host..host + bytes]);
        self.bench.memory = memory;
        let before = self.bench.memory[host..host + bytes].to_vec();
        let all_known: Option<Vec<u8>> = self.shadow[device..device + bytes].iter().copied().collect();
        self.bench.expected = all_known.filter(|_| is_to_host).map(|data| (address, data));
        self.bench.permit(Permitted { start: address, bytes: step.bytes, writes: is_to_host });
        self.command(step, address);
        let ended = self.wait(step)?;
        self.bench.permitted = None;
        let is_legal = self.bench.twisted.is_none();
        if ended == Ended::Failed && is_legal && !self.bench.is_excused {
            let what = format!("{} reports a failure", described(step, address));
            return self.bench.finding(Rule::FailedWithoutCause, what);
        }
        if is_to_host {
            if ended == Ended::Done {
                self.compare(step, address)?;
            }
        } else {
            for (at, byte) in before.into_iter().enumerate() {
                let is_known = ended == Ended::Done && !self.bench.is_excused;
                self.shadow[device + at] = is_known.then_some(byte);
            }
        }
        if ended == Ended::Done && step.has_interrupt {
            self.interrupt(step, address)?;
        }
        // Late completions may meet the next transfer.
        if ended != Ended::Reset && self.bench.twisted != Some(Situation::LateCompletion) {
            self.settle(step)?;
        }
        Ok(ended)
    }

    /// Clocks until the partner has sent everything.
    fn settle(&mut self, step: &Step) -> Checked<()> {
        let limit = self.bench.clock + 4 * u64::from(self.target.timeout_clocks);
        while !self.bench.is_idle() && self.bench.clock < limit {
            self.bench.tick(self.dut)?;
        }
        if self.bench.is_sender_empty() {
            return Ok(());
        }
        let what =
            format!("{}: the device accepts no more TLPs", described(step, self.target.host_start() + step.host));
        self.bench.finding(Rule::Progress, what)
    }

    /// Accesses the memory behind a BAR with odd byte enables, and reads no byte of it.
    fn touch_bar(&mut self, step: &Step) -> Checked<()> {
        let Some((bar, from, to)) = self.target.storage else { return Ok(()) };
        let has = |situation| step.legal.contains(&situation);
        let place = from + self.bench.random.u64(0..(to - from) / 8) * 8;
        let address = self.target.address(bar, place);
        if has(Situation::ZeroLengthRead) {
            self.bench.read(self.dut, bar, address, 0)?;
            self.bench.coverage.count(Situation::ZeroLengthRead);
        }
        if has(Situation::LoadsAmongStores) {
            self.loads_among_stores(bar, from, to)?;
        }
        if has(Situation::OddByteEnables) {
            let first: [u8; 8] = std::array::from_fn(|_| self.bench.random.u8(..));
            let second: [u8; 8] = std::array::from_fn(|_| self.bench.random.u8(..));
            let one_dw = self.bench.random.bool();
            let bytes = if one_dw { 4 } else { 8 };
            // Two DWs, aligned to 8 B, may have holes; each of them has an enabled byte.
            let enables = loop {
                let enables = self.bench.random.u8(..);
                if one_dw || enables & 0xf != 0 && enables >> 4 != 0 {
                    break enables;
                }
            };
            self.bench.write(bar, address, &first[..bytes], None);
            self.bench.write(bar, address, &second[..bytes], Some(enables));
            let found = self.bench.read(self.dut, bar, address, bytes as u32)?;
            let wanted: Vec<u8> =
                (0..bytes).map(|at| if enables >> at & 1 != 0 { second[at] } else { first[at] }).collect();
            self.bench.coverage.count(Situation::OddByteEnables);
            if found != wanted {
                let what = format!(
                    "BAR{bar} at {place:#x} has {found:02x?} instead of {wanted:02x?} after a store with byte enables {enables:#010b}"
                );
                return self.bench.finding(Rule::CompletionData, what);
            }
        }
        Ok(())
    }

    /// Loads while stores to other places follow.
    fn loads_among_stores(&mut self, bar: u8, from: u64, to: u64) -> Checked<()> {
        let places: Vec<u64> = (from..to - 3).step_by(4).take(16).collect();
        for (number, place) in places.iter().enumerate() {
            self.bench.write(bar, self.target.address(bar, *place), &(number as u32).to_le_bytes(), None);
        }
        let (loaded, stored) = places.split_at(places.len() / 2);
        let mut tags = Vec::new();
        for (load, store) in loaded.iter().zip(stored) {
            tags.push(self.bench.start_read(bar, self.target.address(bar, *load), 4));
            self.bench.write(bar, self.target.address(bar, *store), &[0xa5; 4], None);
        }
        self.bench.coverage.count(Situation::LoadsAmongStores);
        for (number, tag) in tags.into_iter().enumerate() {
            let found = self.bench.finish_read(self.dut, tag)?;
            if found != (number as u32).to_le_bytes() {
                let what = format!("BAR{bar} at {:#x} has {found:02x?} instead of {number:#010x}", loaded[number]);
                return self.bench.finding(Rule::CompletionData, what);
            }
        }
        Ok(())
    }

    /// Clears Bus Master Enable for a while: no request follows, and then the transfer goes on or fails.
    fn clear_bus_master(&mut self) -> Checked<()> {
        self.bench.coverage.count(Situation::BusMasterCleared);
        self.bench.twisted.get_or_insert(Situation::BusMasterCleared);
        self.bench.set_bus_master(false);
        let clocks = self.bench.random.u64(1500..3000);
        self.bench.clocks(self.dut, clocks)?;
        self.bench.set_bus_master(true);
        self.bench.last_progress = self.bench.clock;
        Ok(())
    }

    /// Writes the registers that start a transfer.
    fn command(&mut self, step: &Step, address: u64) {
        let engine = self.target.engine;
        let places = (address, engine.limits.memory_start + step.device);
        let mut stores = engine.stores(step.direction, places, step.bytes, step.has_interrupt);
        // Only the last one has its place.
        if let Some((_, others)) = stores.split_last_mut() {
            self.bench.random.shuffle(others);
        }
        for (register, value) in stores {
            if let Some(register) = register {
                let bytes = value.to_le_bytes();
                let at = self.target.address(engine.bar, register);
                self.bench.write(engine.bar, at, &bytes[..usize::from(engine.register_bytes)], None);
            }
        }
    }

    /// Reads the register that shows the end, until it does.
    fn wait(&mut self, step: &Step) -> Checked<Ended> {
        let timeout = u64::from(self.target.timeout_clocks + self.dut.timer_slack_clocks());
        let begin = self.bench.clock;
        let requests = step.bytes / 64 + 4;
        let most = 4 * (requests * timeout + step.bytes * 64 + 50_000);
        let mut clears = step.legal.contains(&Situation::BusMasterCleared);
        let has_reset = self.dut.has_function_level_reset();
        let reset = step.illegal.filter(|(situation, _)| *situation == Situation::FunctionLevelReset && has_reset);
        loop {
            let between = if self.is_poll_fast { 0 } else { self.bench.random.u64(20..300) };
            for _ in 0..between {
                self.bench.tick(self.dut)?;
                if clears && self.bench.requests > 0 {
                    clears = false;
                    self.clear_bus_master()?;
                }
                if reset.is_some_and(|(_, requests)| self.bench.requests > requests) {
                    self.bench.coverage.count(Situation::FunctionLevelReset);
                    self.reset_function(step)?;
                    return Ok(Ended::Reset);
                }
            }
            if let Some(ended) = self.poll()? {
                return Ok(ended);
            }
            if self.bench.is_stuck() || self.bench.clock - begin > most {
                return self.never_ends(step, begin);
            }
        }
    }

    /// Reads the register that shows the end once.
    fn poll(&mut self) -> Checked<Option<Ended>> {
        let engine = self.target.engine;
        let at = self.target.address(engine.bar, engine.done);
        let bytes = self.bench.read(self.dut, engine.bar, at, u32::from(engine.register_bytes))?;
        let value = bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        if value & engine.done_mask != engine.done_value {
            return Ok(None);
        }
        let is_failed = engine.failed_mask.is_some_and(|mask| value & mask != 0);
        Ok(Some(if is_failed { Ended::Failed } else { Ended::Done }))
    }

    fn never_ends(&mut self, step: &Step, begin: u64) -> Checked<Ended> {
        let address = self.target.host_start() + step.host;
        let clocks = self.bench.clock - begin;
        let twisted = self.bench.twisted;
        let mut what = format!("{} does not end within {clocks} clocks", described(step, address));
        if self.dut.has_function_level_reset() {
            let reset = if self.reset_function(step).is_ok() { "ends it" } else { "does not end it either" };
            what = format!("{what}; a function-level reset {reset}");
        }
        let Some(twisted) = twisted else { return self.bench.finding(Rule::Progress, what) };
        let row = twisted.row();
        let what = format!("after {} ({}), {what}", row.name, row.section);
        // A timeout that never fires is its own rule.
        let rule = if twisted == Situation::NoCompletion { Rule::Timeout } else { Rule::Progress };
        self.bench.finding(rule, what)
    }

    /// Resets the function during a transfer, and sends the completions of the former requests afterwards.
    fn reset_function(&mut self, step: &Step) -> Checked<()> {
        self.bench.set_bus_master(false);
        self.bench.inputs.flr = 1;
        self.bench.clocks(self.dut, RESET_CLOCKS)?;
        self.bench.inputs.flr = 0;
        self.bench.completer.reset_device();
        self.bench.drop_reads();
        self.bench.twisted = Some(Situation::FunctionLevelReset);
        // The partner still answers what was asked; software then waits for the transactions that were pending.
        let limit = self.bench.clock + 2 * u64::from(self.target.timeout_clocks);
        while !self.bench.is_idle() && self.bench.clock < limit {
            self.bench.tick(self.dut)?;
        }
        self.bench.clocks(self.dut, 200)?;
        self.bench.set_bus_master(true);
        if self.poll()?.is_none() {
            let what = format!("{} is still running", described(step, self.target.host_start() + step.host));
            return self.bench.finding(Rule::FunctionReset, what);
        }
        Ok(())
    }

    fn compare(&mut self, step: &Step, address: u64) -> Checked<()> {
        let device = step.device as usize;
        let wrong = |trial: &Self| {
            let found = trial.bench.in_memory(address, step.bytes as usize);
            let shadow = &trial.shadow[device..device + found.len()];
            let different = |(byte, known): (&u8, &Option<u8>)| known.is_some_and(|known| known != *byte);
            let count = found.iter().zip(shadow).filter(|(byte, known)| different((byte, known))).count();
            let first = found.iter().zip(shadow).position(different)?;
            Some((first, found[first], shadow[first], count))
        };
        let Some((first, found, known, count)) = wrong(self) else { return Ok(()) };
        let at_end = self.bench.clock;
        self.bench.permitted = Some(Permitted { start: address, bytes: step.bytes, writes: true });
        self.bench.clocks(self.dut, INTERRUPT_CLOCKS)?;
        if wrong(self).is_none() {
            let what = format!("{} was reported as done before its last bytes came", described(step, address));
            return self.bench.finding(Rule::PostedOrder, what);
        }
        let wanted = known.unwrap_or(0);
        let what = format!(
            "{count} of {} B are wrong, the first at {:#x} of the device: {found:#04x} instead of {wanted:#04x} (end of the transfer: clock {at_end})",
            step.bytes,
            step.device + first as u64
        );
        self.bench.finding(Rule::DataIntegrity, what)
    }

    fn interrupt(&mut self, step: &Step, address: u64) -> Checked<()> {
        let limit = self.bench.clock + INTERRUPT_CLOCKS;
        while self.bench.interrupts == 0 && self.bench.clock < limit {
            self.bench.tick(self.dut)?;
        }
        let what = described(step, address);
        if self.bench.interrupts != 1 {
            let what = format!("{what} sent {} MSIs", self.bench.interrupts);
            return self.bench.finding(Rule::InterruptMissing, what);
        }
        if self.bench.is_interrupt_early && self.bench.twisted.is_none() {
            return self.bench.finding(Rule::InterruptOrder, format!("{what} sent its MSI before its last bytes"));
        }
        Ok(())
    }
}

/// A transfer in words.
fn described(step: &Step, address: u64) -> String {
    let direction = match step.direction {
        Direction::ToDevice => "to the device from",
        Direction::ToHost => "to the host at",
    };
    format!("the transfer of {} B {direction} {address:#x}", step.bytes)
}
