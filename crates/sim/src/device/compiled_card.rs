//! A card that is compiled from its source, behind the hard block of an endpoint.
//!
//! The board drives the [`Dut`] clock by clock and exchanges whole TLPs with it, as bytes. A TLP that the hard block has
//! checked is offered from the next clock edge on, a beat a clock. A TLP of the card is at the hard block at the edge
//! after its last beat.
//!
//! A *bench* beside the card accesses its registers: its TLPs enter the same stream and cross no link. Stores of a
//! simulated core have bytes that identify their address; where a core writes registers, the board says which values
//! they have ([`CompiledCard::expect`]).
//!
//! The clock stops while the card is idle: when nothing has crossed its streams for [`SETTLES_IN`] clocks and no
//! request is outstanding, or for [`PATIENCE`] clocks if one is. So a design that never completes a read ends, and one
//! that waits longer without a request loses that time.

use crate::critical_path::Milestone;
use crate::header::{Parties, ROOT_COMPLEX_ID, header_of};
use crate::tlp::{Tlp, TlpKind};
use lanemark_devices::{Design, DeviceFile, Engine, Interrupt, InterruptKind};
use lanemark_dut::{Dut, Inputs, Outputs};
use lanemark_engine::{Slab, Slot};
use lanemark_platform::{Mailbox, Platform};
use lanemark_units::Ticks;
use lanemark_wire::{FlowClass, FunctionId, Header};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// Function ID of the card: 01:00.0.
const CARD_ID: FunctionId = FunctionId(0x0100);
/// Function ID of the bench, which no core has: 00:1e.0.
pub(crate) const BENCH_ID: FunctionId = FunctionId(0x00F0);
/// Unused credits that the hard block shows: posted headers, posted data, non-posted headers. The link has its own: a
/// TLP that lacks them waits in the hard block.
const SHOWN_CREDITS: [u64; 3] = [64, 1024, 64];
/// Clocks of a reset.
const RESET_CLOCKS: u32 = 4;
/// Clocks without a beat after which an idle card is not clocked.
const SETTLES_IN: u64 = 256;
/// Clocks without a beat after which a card that owes or awaits something is not clocked.
const PATIENCE: u64 = 1 << 18;
/// Most bytes of a TLP: header, 4 KiB of data, and a digest.
const MOST_TLP_BYTES: usize = 16 + 4096 + 4;
/// Clocks between two looks at the assertions of the design.
const LOOK_EVERY: u64 = 64;
/// Tags of reads of the card's BARs.
const LOAD_TAGS: u16 = 256;
/// Tags that every function may use.
const LEAST_TAGS: u32 = 32;
/// Completion timeout of the card: the default range of Device Control 2, 50 us to 50 ms.
const COMPLETION_TIMEOUT: Ticks = Ticks::whole_ns(50_000_000);

/// A BAR of the card.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bar {
    pub(crate) number: u8,
    pub(crate) start: u64,
    pub(crate) len: u64,
}

/// Sender of a TLP to the card.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sender {
    /// The link.
    Link(Tlp),
    /// The bench.
    Bench,
}

/// A TLP to the card.
#[derive(Debug)]
struct Incoming {
    bytes: Vec<u8>,
    bar: u8,
    sender: Sender,
}

/// A read of a BAR that the card has not completed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// The request.
    pub(crate) tlp: Tlp,
    /// Completed bytes.
    pub(crate) done: u32,
}

/// What crossed the streams of the card in a clock.
#[derive(Debug, Default)]
pub(crate) struct Crossed {
    /// Sender of the TLP that the card has taken.
    pub(crate) taken: Option<Sender>,
    /// The TLP that it has sent.
    pub(crate) sent: Option<Vec<u8>>,
}

/// A card compiled from its source, in place of the first card of a platform.
pub struct CompiledCard {
    dut: Box<dyn Dut + Send>,
    period: Ticks,
    engine: Option<Engine>,
    interrupt: Option<Interrupt>,
    design: Design,
    inputs: Inputs,
    outputs: Outputs,
    bars: Vec<Bar>,
    /// TLPs to the card, and the bytes of the first one that it has.
    queue: VecDeque<Incoming>,
    taken: usize,
    /// The TLP that it sends.
    partial: Vec<u8>,
    /// Credits that it has used, as [`SHOWN_CREDITS`].
    used: [u64; 3],
    /// Buffers of the hard block for its TLPs.
    buffers: usize,
    loads: BTreeMap<u16, Load>,
    /// Missing bytes of its reads, by tag.
    reads: BTreeMap<u16, u32>,
    /// Clocks since the last beat, and all clocks.
    quiet: u64,
    clocks: u64,
    /// When the last clock began.
    clocked_at: Option<Ticks>,
    is_halted: bool,
    /// What it owed when it was halted.
    owed: Option<String>,
    /// The first error of the design.
    failure: Option<String>,
    /// Address, width and value of the next stores of a core to registers.
    expected: VecDeque<(u64, u8, u64)>,
    /// Address and value of the last load that it has completed for a core.
    shown: Option<(u64, u64)>,
    /// The value that the bench has loaded.
    answer: Option<u64>,
    /// When the handler of its last interrupt begins.
    pub(crate) interrupts_at: Option<Ticks>,
    /// When it had taken the last TLP of the bench.
    pub(crate) bench_done_at: Ticks,
    /// Payload bytes of its writes, and when it had sent its last request.
    pub(crate) written_bytes: u64,
    pub(crate) requested_at: Ticks,
    /// Bytes that its reads have received, when it had taken the last of them, and the milestone.
    pub(crate) received_bytes: u64,
    pub(crate) received_at: Ticks,
    pub(crate) received: Milestone,
    /// Milestone of the last TLP that it took.
    pub(crate) last_taken: Milestone,
}

impl fmt::Debug for CompiledCard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledCard")
            .field("period", &self.period)
            .field("clocks", &self.clocks)
            .finish_non_exhaustive()
    }
}

impl CompiledCard {
    /// A card whose clock has this period; the device file has the registers that start its transfers.
    #[must_use]
    pub fn new(dut: Box<dyn Dut + Send>, period: Ticks, file: Option<&DeviceFile>) -> CompiledCard {
        CompiledCard {
            dut,
            period: period.max(Ticks(1)),
            engine: file.and_then(|file| file.engine),
            interrupt: file.and_then(|file| file.interrupt),
            design: file.map_or_else(Design::default, |file| file.design),
            inputs: Inputs::default(),
            outputs: Outputs::default(),
            bars: Vec::new(),
            queue: VecDeque::new(),
            taken: 0,
            partial: Vec::new(),
            used: [0; 3],
            buffers: 1,
            loads: BTreeMap::new(),
            reads: BTreeMap::new(),
            quiet: 0,
            clocks: 0,
            clocked_at: None,
            is_halted: false,
            owed: None,
            failure: None,
            expected: VecDeque::new(),
            shown: None,
            answer: None,
            interrupts_at: None,
            bench_done_at: Ticks::ZERO,
            written_bytes: 0,
            requested_at: Ticks::ZERO,
            received_bytes: 0,
            received_at: Ticks::ZERO,
            received: Milestone::NONE,
            last_taken: Milestone::NONE,
        }
    }

    /// The registers that start its transfers.
    #[must_use]
    pub fn engine(&self) -> Option<&Engine> {
        self.engine.as_ref()
    }

    /// The MSI at the end of a transfer, if its engine can send one.
    pub(crate) fn msi(&self) -> Option<Interrupt> {
        let is_requested = self.engine.is_some_and(|engine| engine.with_interrupt.is_some());
        self.interrupt.filter(|interrupt| is_requested && interrupt.kind == InterruptKind::Msi)
    }

    /// Time of `endpoint.ingress_ns` that the design needs itself.
    pub(crate) fn ingress(&self) -> Ticks {
        self.period * u64::from(self.design.ingress_clocks)
    }

    /// Period of its clock.
    pub(crate) const fn period(&self) -> Ticks {
        self.period
    }

    /// Configures the card as a host would, and resets it; it keeps the content of its memory.
    pub(crate) fn configure(&mut self, platform: &Platform) {
        let dma = platform.dma.as_ref();
        self.bars = platform
            .bars
            .iter()
            .map(|bar| Bar { number: bar.index.value as u8, start: bar.address_bytes.value, len: bar.size_bytes.value })
            .collect();
        self.buffers = dma.map_or(1, |dma| dma.send_buffers.value.max(1) as usize);
        self.inputs = Inputs {
            bus_master: 1,
            msi_enable: u8::from(self.msi().is_some()),
            msi_address: Mailbox::MESSAGES.start,
            requester_id: CARD_ID.0,
            mps: platform.link.mps_bytes.value as u16,
            mrrs: platform.link.mrrs_bytes.value as u16,
            tags: dma.map_or(LEAST_TAGS, |dma| dma.tags.value.max(LEAST_TAGS)).min(1024) as u16,
            timeout_clocks: (COMPLETION_TIMEOUT.0 / self.period.0).clamp(1, u64::from(u32::MAX)) as u32,
            reset: 1,
            ..Inputs::default()
        };
        for _ in 0..RESET_CLOCKS {
            self.dut.clock(&self.inputs, &mut self.outputs);
        }
        self.inputs.reset = 0;
        self.queue.clear();
        self.partial.clear();
        self.loads.clear();
        self.expected.clear();
        self.reads.clear();
        (self.taken, self.used, self.quiet) = (0, [0; 3], SETTLES_IN);
        (self.clocked_at, self.owed) = (None, None);
        (self.is_halted, self.failure, self.answer) = (false, None, None);
        self.last_taken = Milestone::NONE;
    }

    /// Stops the clock and forgets the TLPs to the card, up to the next [`configure`](CompiledCard::configure).
    pub(crate) fn halt(&mut self) {
        self.owed = self.owes();
        self.is_halted = true;
        self.queue.clear();
    }

    /// Whether it is halted.
    pub(crate) const fn is_halted(&self) -> bool {
        self.is_halted
    }

    /// The first error of the design.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// What the host waits for, if the card does not do it.
    pub(crate) fn owes(&self) -> Option<String> {
        let untaken =
            (!self.queue.is_empty()).then(|| format!("the card does not take a TLP within {PATIENCE} clocks"));
        let uncompleted = self.loads.values().next().map(|Load { tlp, .. }| {
            format!("the card does not complete a read of {:#x} within {PATIENCE} clocks", tlp.address)
        });
        self.owed.clone().or(untaken).or(uncompleted)
    }

    /// Keeps an error, if it is the first one.
    pub(crate) fn fail(&mut self, what: String) {
        self.failure.get_or_insert(what);
    }

    /// The BAR of this number.
    pub(crate) fn bar(&self, number: u8) -> Option<Bar> {
        self.bars.iter().copied().find(|bar| bar.number == number)
    }

    /// Whether it has taken every TLP of the bench.
    pub(crate) fn has_taken_bench(&self) -> bool {
        !self.queue.iter().any(|incoming| matches!(incoming.sender, Sender::Bench))
    }

    /// The value that the bench has loaded.
    pub(crate) const fn take_answer(&mut self) -> Option<u64> {
        self.answer.take()
    }

    /// When the next clock begins: the first edge at or after `now`, and after the last clock.
    pub(crate) fn next_edge(&self, now: Ticks) -> Ticks {
        let edge = Ticks(now.0.div_ceil(self.period.0) * self.period.0);
        self.clocked_at.map_or(edge, |last| edge.max(last + self.period))
    }

    /// When the next clock begins, after one at `now`.
    pub(crate) fn due(&self, now: Ticks) -> Ticks {
        let is_owing = !self.queue.is_empty() || !self.loads.is_empty() || !self.reads.is_empty();
        let settles_in = if is_owing || !self.partial.is_empty() { PATIENCE } else { SETTLES_IN };
        if self.is_halted || self.quiet >= settles_in { Ticks::NEVER } else { now + self.period }
    }

    /// Clocks the card for up to [`PATIENCE`] clocks without a beat: the bench waits for it.
    pub(crate) fn wake(&mut self) {
        self.quiet = 0;
    }

    /// Queues a TLP of the link. Its payload may be freed afterwards.
    pub(crate) fn receive(&mut self, tlp: Tlp, slab: &Slab) {
        if self.is_halted {
            return;
        }
        self.quiet = 0;
        let (mut shown, mut left, mut completer) = (tlp, 0, CARD_ID);
        let mut requester = FunctionId(tlp.requester);
        match tlp.kind {
            TlpKind::MRd => {
                let Some(tag) = (0..LOAD_TAGS).find(|tag| !self.loads.contains_key(tag)) else {
                    return self.fail(format!("{LOAD_TAGS} loads are outstanding at the card"));
                };
                self.loads.insert(tag, Load { tlp, done: 0 });
                shown.tag = tag;
            }
            TlpKind::CplD | TlpKind::Cpl => {
                (requester, completer) = (CARD_ID, ROOT_COMPLEX_ID);
                let missing = self.reads.get(&tlp.tag).copied().unwrap_or(0);
                left = missing.max(1);
                let still = if tlp.kind == TlpKind::Cpl { 0 } else { missing.saturating_sub(tlp.enabled_bytes()) };
                if still == 0 {
                    self.reads.remove(&tlp.tag)
                } else {
                    self.reads.insert(tlp.tag, still)
                };
            }
            TlpKind::MWr => {}
            TlpKind::Msg | TlpKind::MsgD => return,
        }
        let header = header_of(&shown, Parties { requester, completer }, left as u16);
        let mut bytes = vec![0; Header::MAX_BYTES];
        match header.emit(&mut bytes) {
            Ok(used) => bytes.truncate(used),
            Err(error) => return self.fail(format!("a TLP to the card cannot be written: {error}")),
        }
        if tlp.payload != Slot::NONE {
            bytes.extend_from_slice(&slab.bytes(tlp.payload)[..tlp.payload_bytes() as usize]);
        }
        if tlp.kind == TlpKind::MWr
            && let Some((_, width, value)) = self.expected.pop_front_if(|(address, ..)| *address & !3 == tlp.address)
        {
            let skip = bytes.len() - tlp.payload_bytes() as usize + tlp.first_be.trailing_zeros() as usize;
            let width = usize::from(width).min(bytes.len() - skip);
            bytes[skip..skip + width].copy_from_slice(&value.to_le_bytes()[..width]);
        }
        let holds = |bar: &&Bar| tlp.address.wrapping_sub(bar.start) < bar.len;
        let bar = self.bars.iter().find(holds).map_or(0, |bar| bar.number);
        self.queue.push_back(Incoming { bytes, bar, sender: Sender::Link(tlp) });
    }

    /// Queues an access of the bench to a register: a store of `value`, or a load.
    pub(crate) fn access(&mut self, bar: Bar, offset: u64, width: u8, value: Option<u64>) {
        self.quiet = 0;
        self.answer = None;
        let (address, length_dw, first_be, last_be) = crate::tlp::span(bar.start + offset, width.into());
        let kind = if value.is_some() { TlpKind::MWr } else { TlpKind::MRd };
        let tlp = Tlp { address, length_dw, first_be, last_be, ..Tlp::of(kind) };
        let header = header_of(&tlp, Parties { requester: BENCH_ID, completer: CARD_ID }, 0);
        let mut bytes = vec![0; Header::MAX_BYTES];
        match header.emit(&mut bytes) {
            Ok(used) => bytes.truncate(used),
            Err(error) => return self.fail(format!("an access to a register cannot be written: {error}")),
        }
        if let Some(value) = value {
            let skip = (bar.start + offset - address) as usize;
            let start = bytes.len();
            bytes.resize(start + 4 * usize::from(length_dw), 0);
            let end = start + skip + usize::from(width);
            bytes[start + skip..end].copy_from_slice(&value.to_le_bytes()[..usize::from(width)]);
        }
        self.queue.push_back(Incoming { bytes, bar: bar.number, sender: Sender::Bench });
    }

    /// The value of the next store of a core to this address.
    pub(crate) fn expect(&mut self, address: u64, width: u8, value: u64) {
        self.expected.push_back((address, width, value));
    }

    /// The value of the last load of a core, if it was of this address.
    pub(crate) fn shown_at(&self, address: u64) -> Option<u64> {
        self.shown.filter(|(at, _)| *at == address).map(|(_, value)| value)
    }

    /// Makes a clock at whose beginning, `now`, `queued` of its TLPs are in the hard block.
    pub(crate) fn clock(&mut self, now: Ticks, queued: usize) -> Crossed {
        self.clocked_at = Some(now);
        let limits: [u64; 3] = std::array::from_fn(|place| self.used[place] + SHOWN_CREDITS[place]);
        self.inputs.posted_headers = limits[0] as u8;
        self.inputs.posted_data = (limits[1] & 0xfff) as u16;
        self.inputs.non_posted_headers = limits[2] as u8;
        // A TLP whose beats have begun has a buffer.
        self.inputs.tx_ready = u8::from(!self.partial.is_empty() || queued < self.buffers);
        self.inputs.rx_bytes = 0;
        if let Some(Incoming { bytes, bar, .. }) = self.queue.front() {
            let beat = (bytes.len() - self.taken).min(self.dut.beat_bytes());
            self.inputs.rx_data[..beat].copy_from_slice(&bytes[self.taken..self.taken + beat]);
            (self.inputs.rx_bytes, self.inputs.rx_bar) = (beat as u8, *bar);
            self.inputs.rx_last = u8::from(self.taken + beat == bytes.len());
        }
        self.dut.clock(&self.inputs, &mut self.outputs);
        self.clocks += 1;
        self.quiet += 1;
        if self.clocks.is_multiple_of(LOOK_EVERY) {
            self.look();
        }
        let mut crossed = Crossed::default();
        if self.inputs.rx_bytes > 0 && self.outputs.rx_ready != 0 {
            self.quiet = 0;
            self.taken += usize::from(self.inputs.rx_bytes);
            if self.inputs.rx_last != 0 {
                self.taken = 0;
                crossed.taken = self.queue.pop_front().map(|incoming| incoming.sender);
            }
        }
        if self.inputs.tx_ready != 0 && self.outputs.tx_bytes > 0 {
            self.quiet = 0;
            self.partial.extend_from_slice(self.outputs.beat());
            if self.partial.len() > MOST_TLP_BYTES {
                self.partial.clear();
                self.fail(format!("the card sends a TLP of more than {MOST_TLP_BYTES} B"));
            }
            if self.outputs.tx_last != 0 {
                crossed.sent = Some(std::mem::take(&mut self.partial));
            }
        }
        crossed
    }

    /// Looks at the assertions of the design.
    pub(crate) fn look(&mut self) {
        if let Some(what) = self.dut.failed_assertion() {
            self.fail(format!("an assertion of the design failed: {what}"));
        }
    }

    /// Counts a request that the card has sent.
    pub(crate) fn count(&mut self, at: Ticks, tlp: &Tlp) {
        self.requested_at = at;
        match tlp.kind.class() {
            FlowClass::Posted => {
                self.used[0] += 1;
                self.used[1] += u64::from(tlp.payload_bytes()).div_ceil(16);
                if !Mailbox::MESSAGES.contains(&tlp.address) {
                    self.written_bytes += u64::from(tlp.enabled_bytes());
                }
            }
            FlowClass::NonPosted => {
                self.used[2] += 1;
                if self.reads.insert(tlp.tag, tlp.returned_bytes().max(1)).is_some() {
                    self.fail(format!("the card sends a read with tag {}, which an outstanding read has", tlp.tag));
                }
            }
            FlowClass::Completion => {}
        }
    }

    /// Takes a completion of the bench's load.
    pub(crate) fn answer(&mut self, data: &[u8]) {
        self.answer = Some(first_word(data));
    }

    /// Takes the data with which the card completes a load of a core.
    pub(crate) fn show(&mut self, address: u64, data: &[u8]) {
        self.shown = Some((address, first_word(data)));
    }

    /// The outstanding load of this tag.
    pub(crate) fn load(&self, tag: u16) -> Option<Load> {
        self.loads.get(&tag).copied()
    }

    /// Adds completed bytes to a load; the last ones end it.
    pub(crate) fn completed(&mut self, tag: u16, bytes: u32) {
        if let Some(load) = self.loads.get_mut(&tag) {
            load.done += bytes;
            if load.done >= load.tlp.returned_bytes().max(1) {
                self.loads.remove(&tag);
            }
        }
    }
}

/// The first 8 B of data, or as many as there are.
fn first_word(data: &[u8]) -> u64 {
    let mut value = [0; 8];
    let len = data.len().min(8);
    value[..len].copy_from_slice(&data[..len]);
    u64::from_le_bytes(value)
}
