//! The partner of a device whose clock, registers and transfers belong to a test bench of the user.

use crate::bench::{Bench, Checked, Permitted};
use crate::case::{SIZES, illegal_situations, legal_situations};
use crate::completer::Limits;
use crate::finding::Finding;
use crate::rule::Rule;
use crate::situation::{Coverage, Situation};
use crate::target::TIMEOUT_CLOCKS;
use fastrand::Rng;
use lanemark_dut::{Inputs, Outputs};
use lanemark_wire::Rcb;

/// Most bytes of host memory.
const MOST_MEMORY: u64 = 1 << 24;

/// Behaviour of a [`Partner`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartnerSettings {
    /// Seed of all random choices.
    pub seed: u64,
    /// Whether each transfer has random legal situations.
    pub is_adversary: bool,
    /// Whether each transfer to the device also has an illegal situation.
    pub is_illegal: bool,
    /// Completion timeout that the device is given, in clocks.
    pub timeout_clocks: u32,
    /// Most clocks by which a timer of the device may exceed `timeout_clocks`, because it starts before the read is on the link.
    pub timer_slack_clocks: u32,
    /// Bytes of a full beat of the streams.
    pub beat_bytes: usize,
    /// First address of the host memory.
    pub memory_start: u64,
    /// Bytes of the host memory.
    pub memory_bytes: u64,
}

impl Default for PartnerSettings {
    fn default() -> PartnerSettings {
        PartnerSettings {
            seed: 0,
            is_adversary: false,
            is_illegal: false,
            timeout_clocks: 2048,
            timer_slack_clocks: 0,
            beat_bytes: 4,
            memory_start: 0x1000_0000,
            memory_bytes: 32 * 1024,
        }
    }
}

/// Root complex and host memory, one clock at a time: [`Partner::drive`], then [`Partner::sample`].
///
/// ```
/// use lanemark_adversary::{Partner, PartnerSettings};
/// use lanemark_dut::Outputs;
///
/// let mut partner = Partner::new(PartnerSettings::default())?;
/// partner.write(0, 0xe000_0010, &[1, 0, 0, 0]);
/// partner.set_reset(false);
/// let mut beats = 0;
/// while beats < 4 {
///     beats += usize::from(partner.drive().rx_bytes > 0);
///     partner.sample(&Outputs { rx_ready: 1, ..Outputs::default() })?;
/// }
/// assert_eq!(partner.drive().rx_bytes, 0, "a write of a DW has four beats of a DW: its header and its data");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Partner {
    settings: PartnerSettings,
    bench: Bench,
    transfers: u64,
    /// The illegal situation of the last transfer to the device.
    last: Option<Situation>,
}

impl Partner {
    /// A partner before its first clock. The device is in reset until [`Partner::set_reset`].
    ///
    /// # Errors
    /// A message if a setting is out of range.
    pub fn new(settings: PartnerSettings) -> Result<Partner, String> {
        let PartnerSettings {
            seed, timeout_clocks, timer_slack_clocks, beat_bytes, memory_start, memory_bytes, ..
        } = settings;
        if !TIMEOUT_CLOCKS.contains(&u64::from(timeout_clocks)) {
            return Err(format!("timeout_clocks: {timeout_clocks}; use 256 to 1048576"));
        }
        if !(4096..=MOST_MEMORY).contains(&memory_bytes) || memory_start.checked_add(memory_bytes).is_none() {
            return Err(format!(
                "memory: {memory_bytes} B at {memory_start:#x}; use 4096 to {MOST_MEMORY} B below 2^64"
            ));
        }
        let mut random = Rng::with_seed(seed);
        let is_scarce = settings.is_adversary && random.u8(0..3) == 0;
        let rcb = if settings.is_adversary && random.bool() { Rcb::B128 } else { Rcb::B64 };
        let timeout_clocks = u64::from(timeout_clocks);
        let timer_slack_clocks = u64::from(timer_slack_clocks);
        let limits = Limits { mps: 128, tags: 32, timeout_clocks, timer_slack_clocks, rcb, beat_bytes };
        let mut bench = Bench::new(limits, memory_start, memory_bytes as usize, is_scarce);
        bench.random = random;
        bench.configure();
        bench.inputs.reset = 1;
        bench.kept = Some(Vec::new());
        Ok(Partner { settings, bench, transfers: 0, last: None })
    }

    /// Inputs of the device in the next clock.
    pub fn drive(&mut self) -> &Inputs {
        self.bench.drive();
        &self.bench.inputs
    }

    /// Inputs of the device in this clock.
    #[must_use]
    pub fn inputs(&self) -> &Inputs {
        &self.bench.inputs
    }

    /// Checks the outputs of the device in this clock, before its edge.
    ///
    /// # Errors
    /// The rule that the device breaks.
    pub fn sample(&mut self, outputs: &Outputs) -> Result<(), Finding> {
        unboxed(self.bench.sample(outputs))
    }

    /// Clocks until now.
    #[must_use]
    pub fn clock(&self) -> u64 {
        self.bench.clock
    }

    /// Sets or clears the reset; with its end, Bus Master Enable is set.
    pub fn set_reset(&mut self, is_set: bool) {
        self.bench.inputs.reset = u8::from(is_set);
        self.bench.set_bus_master(!is_set);
    }

    /// Queues a write of up to 8 bytes to a BAR; `address` is a multiple of 4, and so is the number of bytes.
    pub fn write(&mut self, bar: u8, address: u64, data: &[u8]) {
        self.bench.write(bar, address, data, None);
    }

    /// Queues a read of 4 or 8 bytes of a BAR; returns its tag.
    pub fn start_read(&mut self, bar: u8, address: u64, bytes: u32) -> u16 {
        self.bench.start_read(bar, address, bytes)
    }

    /// Bytes of a read, once it is completed.
    ///
    /// # Errors
    /// [`Rule::MissingCompletion`] if the device does not complete it.
    pub fn take_read(&mut self, tag: u16) -> Result<Option<Vec<u8>>, Finding> {
        unboxed(self.bench.take_read(tag))
    }

    /// Host memory from an address on; `None` if it is not all there.
    pub fn memory(&mut self, address: u64, bytes: usize) -> Option<&mut [u8]> {
        let offset = usize::try_from(address.checked_sub(self.settings.memory_start)?).ok()?;
        self.bench.memory.get_mut(offset..offset.checked_add(bytes)?)
    }

    /// Begins a transfer that may access a buffer in host memory, for reads, or for writes also; an adversary chooses its
    /// situations. Requests outside a transfer are findings.
    pub fn begin(&mut self, address: u64, bytes: u64, writes: bool) {
        let mut legal = Vec::new();
        let mut twist = None;
        self.bench.twisted = None;
        if !writes {
            self.last = None;
        }
        if self.settings.is_adversary {
            let random = &mut self.bench.random;
            legal = legal_situations(random);
            let (mps, mrrs) = (SIZES[random.usize(0..SIZES.len())], SIZES[random.usize(0..SIZES.len())]);
            self.bench.set_sizes(mps, mrrs);
        }
        if self.settings.is_illegal && !writes {
            // A function-level reset belongs to the test bench.
            let each: Vec<Situation> =
                illegal_situations().filter(|situation| *situation != Situation::FunctionLevelReset).collect();
            let turn = self.settings.seed.wrapping_add(self.transfers) as usize % each.len();
            twist = Some((each[turn], self.bench.random.u32(0..2)));
        }
        self.transfers += 1;
        self.bench.begin(&legal, twist);
        self.bench.permit(Permitted { start: address, bytes, writes });
    }

    /// Ends the transfer: no request may follow.
    pub fn end(&mut self) {
        self.bench.permitted = None;
        self.bench.begin(&[], None);
        self.last = self.last.or(self.bench.twisted);
    }

    /// The illegal situation of the last transfer; `None` if none was created.
    #[must_use]
    pub fn twisted(&self) -> Option<Situation> {
        self.bench.twisted
    }

    /// Checks that a transfer can still end.
    ///
    /// # Errors
    /// [`Rule::Progress`], or [`Rule::Timeout`] after a read without completion, if the device makes no request, and has
    /// everything that it waits for, during three completion timeouts.
    pub fn check_progress(&self) -> Result<(), Finding> {
        if !self.bench.is_stuck() {
            return Ok(());
        }
        let twisted = self.bench.twisted;
        let rule = if twisted == Some(Situation::NoCompletion) { Rule::Timeout } else { Rule::Progress };
        let clocks = self.bench.clock - self.bench.last_progress;
        unboxed(self.bench.finding(rule, format!("{}the transfer stands still for {clocks} clocks", after(twisted))))
    }

    /// Compares bytes that the device has copied.
    ///
    /// # Errors
    /// If they differ: [`Rule::DataIntegrity`], or the rule of the illegal situation that the last transfer to the device had.
    pub fn check_data(&self, found: &[u8], expected: &[u8]) -> Result<(), Finding> {
        let count = found.iter().zip(expected).filter(|(found, expected)| found != expected).count();
        let place = found.iter().zip(expected).position(|(found, expected)| found != expected);
        let what = match place {
            _ if found.len() != expected.len() => format!("{} B instead of {} B", found.len(), expected.len()),
            Some(place) => format!(
                "{count} of {} B are wrong, the first at {place:#x}: {:#04x} instead of {:#04x}",
                found.len(),
                found[place],
                expected[place]
            ),
            None => return Ok(()),
        };
        let twisted = self.last;
        let rule = twisted.map_or(Rule::DataIntegrity, |twisted| twisted.row().breaks);
        unboxed(self.bench.finding(rule, format!("{}{what}", after(twisted))))
    }

    /// MSIs since the last transfer began.
    #[must_use]
    pub fn interrupts(&self) -> u32 {
        self.bench.interrupts
    }

    /// Situations that were created.
    #[must_use]
    pub fn coverage(&self) -> &Coverage {
        &self.bench.coverage
    }

    /// TLPs of both directions as a capture.
    #[must_use]
    pub fn capture(&self) -> lanemark_record::Capture {
        let about = format!("seed {}", self.settings.seed);
        let frames = self.bench.kept.clone().unwrap_or_default();
        lanemark_record::Capture { place: "device under test".to_owned(), about, frames, ..Default::default() }
    }
}

fn unboxed<T>(checked: Checked<T>) -> Result<T, Finding> {
    checked.map_err(|finding| *finding)
}

/// The start of a message about what follows an illegal situation.
fn after(twisted: Option<Situation>) -> String {
    twisted.map_or_else(String::new, |twisted| format!("after {} ({}), ", twisted.row().name, twisted.row().section))
}
