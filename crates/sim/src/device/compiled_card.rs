//! A card that is compiled from its source, behind the hard block of an endpoint.
//!
//! The board clocks the [`Dut`] and exchanges whole TLPs with it, as bytes. A TLP that the hard block has
//! checked is offered from the next clock edge on, a beat a clock. A TLP of the card is at the hard block at the edge
//! after its last beat.
//!
//! A *register port* accesses the registers of the card beside the link: its TLPs enter the same stream. Stores of a
//! simulated core have bytes that identify their address; where a core writes registers, the board says which values
//! they have ([`CompiledCard::await_store`]).
//!
//! An idle card is not clocked: after [`IDLE_LIMIT`] clocks in which nothing has crossed its streams, up to the next TLP.
//! The limit is [`STALL_LIMIT`] while a request is outstanding, or while a plan waits for the card. A read that the card
//! does not complete within it is reported.

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
/// Function ID of requests to the card: the root port, 00:00.0.
const HOST_ID: FunctionId = FunctionId(0);
/// Unused credits that the hard block advertises to the card: posted headers, posted data, non-posted headers. A TLP
/// without credits of the link waits in the hard block.
const ADVERTISED_CREDITS: [u64; 3] = [64, 1024, 64];
/// Clocks of a reset.
const RESET_CLOCKS: u32 = 4;
/// Clocks without a beat after which an idle card is not clocked.
const IDLE_LIMIT: u64 = 256;
/// The same while a request is outstanding or a plan waits for the card.
const STALL_LIMIT: u64 = 1 << 18;
/// Most bytes of a TLP: header, 4 KiB of data, and a digest.
const MOST_TLP_BYTES: usize = 16 + 4096 + 4;
/// Clocks between two polls of the assertions of the design.
const POLL_EVERY: u64 = 64;
/// Tags of loads of cores; those of the register port follow.
const LOAD_TAGS: u16 = 128;
/// Tags of a function without 10-bit tags.
const TAGS: u16 = 256;
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
    /// The register port.
    Registers,
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
}

/// A load of the register port that the card has completed with an error status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Refused;

/// A load of the register port.
#[derive(Clone, Copy, Debug)]
struct OwnLoad {
    tag: u16,
    width: u8,
    /// Its value, once it is completed.
    result: Option<Result<u64, Refused>>,
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
    /// BAR and end of each register of the device file.
    registers: Vec<(u8, u64)>,
    inputs: Inputs,
    outputs: Outputs,
    bars: Vec<Bar>,
    /// TLPs to the card, and the bytes of the first one that it has.
    queue: VecDeque<Incoming>,
    taken: usize,
    /// The TLP that it sends.
    partial: Vec<u8>,
    /// Credits that it has used, as [`ADVERTISED_CREDITS`].
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
    /// Result of [`missing`](CompiledCard::missing) at the last halt.
    missing: Option<String>,
    /// The first error of the design.
    failure: Option<String>,
    /// Address, width and value of the next stores of a core to registers.
    expected: VecDeque<(u64, u8, u64)>,
    /// Address and value of the last load that it has completed for a core.
    shown: Option<(u64, u64)>,
    /// The last load of the register port, and the tag of the next one.
    own_load: Option<OwnLoad>,
    own_tag: u16,
    /// Whether a plan waits for the card.
    is_awaited: bool,
    /// When the handler of its last interrupt begins.
    pub(crate) interrupts_at: Option<Ticks>,
    /// When it had taken the last TLP of the register port.
    pub(crate) registers_taken_at: Ticks,
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
            registers: file.map_or_else(Vec::new, |file| {
                file.registers().map(|(bar, at, width)| (bar, at + u64::from(width))).collect()
            }),
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
            missing: None,
            failure: None,
            expected: VecDeque::new(),
            shown: None,
            own_load: None,
            own_tag: LOAD_TAGS,
            is_awaited: false,
            interrupts_at: None,
            registers_taken_at: Ticks::ZERO,
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

    /// BAR and end of each register of its device file.
    pub(crate) fn registers(&self) -> &[(u8, u64)] {
        &self.registers
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
        (self.taken, self.used, self.quiet) = (0, [0; 3], IDLE_LIMIT);
        (self.clocked_at, self.missing) = (None, None);
        (self.is_halted, self.failure, self.own_load) = (false, None, None);
        (self.is_awaited, self.shown) = (false, None);
        self.last_taken = Milestone::NONE;
    }

    /// Stops the clock and drops the TLPs to the card, up to the next [`configure`](CompiledCard::configure).
    pub(crate) fn halt(&mut self) {
        self.missing = self.missing();
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

    /// What the card has not done within the stall limit.
    pub(crate) fn missing(&self) -> Option<String> {
        let is_stalled = self.quiet >= STALL_LIMIT;
        let untaken =
            (!self.queue.is_empty()).then(|| format!("the card does not take a TLP within {STALL_LIMIT} clocks"));
        let uncompleted = self.loads.values().next().map(|Load { tlp }| {
            format!("the card does not complete a read of {:#x} within {STALL_LIMIT} clocks", tlp.address)
        });
        self.missing.clone().or(untaken.filter(|_| is_stalled)).or(uncompleted.filter(|_| is_stalled))
    }

    /// Keeps an error, if it is the first one.
    pub(crate) fn fail(&mut self, what: String) {
        self.failure.get_or_insert(what);
    }

    /// The BAR of this number.
    pub(crate) fn bar(&self, number: u8) -> Option<Bar> {
        self.bars.iter().copied().find(|bar| bar.number == number)
    }

    /// Whether it has taken every TLP of the register port.
    pub(crate) fn has_taken_registers(&self) -> bool {
        !self.queue.iter().any(|incoming| matches!(incoming.sender, Sender::Registers))
    }

    /// Takes the result of the last load of the register port, once it is completed.
    pub(crate) fn take_own_load(&mut self) -> Option<Result<u64, Refused>> {
        let result = self.own_load?.result?;
        self.own_load = None;
        Some(result)
    }

    /// When the next clock begins: the first edge at or after `now`, and after the last clock.
    pub(crate) fn next_edge(&self, now: Ticks) -> Ticks {
        let edge = Ticks(now.0.div_ceil(self.period.0) * self.period.0);
        self.clocked_at.map_or(edge, |last| edge.max(last + self.period))
    }

    /// When the next clock begins, after one at `now`.
    pub(crate) fn due(&self, now: Ticks) -> Ticks {
        let is_outstanding = !self.queue.is_empty() || !self.loads.is_empty() || !self.reads.is_empty();
        let is_busy = is_outstanding || self.is_awaited || !self.partial.is_empty();
        let limit = if is_busy { STALL_LIMIT } else { IDLE_LIMIT };
        if self.is_halted || self.quiet >= limit { Ticks::NEVER } else { now + self.period }
    }

    /// Begins or ends a wait of a plan, in which the card is clocked up to the stall limit.
    pub(crate) const fn set_awaited(&mut self, is_awaited: bool) {
        self.is_awaited = is_awaited;
        if is_awaited {
            self.quiet = 0;
        }
    }

    /// Queues a TLP of the link. Its payload may be freed afterwards.
    pub(crate) fn receive(&mut self, tlp: Tlp, slab: &Slab) {
        if self.is_halted {
            return;
        }
        self.quiet = 0;
        let (mut shown, mut left, mut completer) = (tlp, 0, CARD_ID);
        let mut requester = HOST_ID;
        match tlp.kind {
            TlpKind::MRd => {
                let Some(tag) = (0..LOAD_TAGS).find(|tag| !self.loads.contains_key(tag)) else {
                    return self.fail(format!("{LOAD_TAGS} loads are outstanding at the card"));
                };
                self.loads.insert(tag, Load { tlp });
                shown.tag = tag;
            }
            TlpKind::CplD | TlpKind::Cpl => {
                (requester, completer) = (CARD_ID, ROOT_COMPLEX_ID);
                let missing = self.reads.get(&tlp.tag).copied().unwrap_or(0);
                // The Byte Count of a zero-length read is 1.
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

    /// Queues an access of the register port: a store of `value`, or a load.
    pub(crate) fn access(&mut self, bar: Bar, offset: u64, width: u8, value: Option<u64>) {
        self.quiet = 0;
        let tag = self.own_tag;
        if value.is_none() {
            self.own_tag = if tag + 1 < TAGS { tag + 1 } else { LOAD_TAGS };
            self.own_load = Some(OwnLoad { tag, width, result: None });
        }
        let (address, length_dw, first_be, last_be) = crate::tlp::span(bar.start + offset, width.into());
        let kind = if value.is_some() { TlpKind::MWr } else { TlpKind::MRd };
        let tlp = Tlp { address, length_dw, first_be, last_be, tag, ..Tlp::of(kind) };
        let header = header_of(&tlp, Parties { requester: HOST_ID, completer: CARD_ID }, 0);
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
        self.queue.push_back(Incoming { bytes, bar: bar.number, sender: Sender::Registers });
    }

    /// The value of the next store of a core to this address.
    pub(crate) fn await_store(&mut self, address: u64, width: u8, value: u64) {
        self.expected.push_back((address, width, value));
    }

    /// Takes the value of the last load of a core, if it was of this address.
    pub(crate) fn take_shown(&mut self, address: u64) -> Option<u64> {
        self.shown.take().filter(|(at, _)| *at == address).map(|(_, value)| value)
    }

    /// Makes a clock at whose beginning, `now`, `queued` of its TLPs are in the hard block.
    pub(crate) fn clock(&mut self, now: Ticks, queued: usize) -> Crossed {
        self.clocked_at = Some(now);
        let limits: [u64; 3] = std::array::from_fn(|place| self.used[place] + ADVERTISED_CREDITS[place]);
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
        if self.clocks.is_multiple_of(POLL_EVERY) {
            self.poll_assertions();
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
        if self.inputs.tx_ready == 0 && self.outputs.tx_bytes > 0 {
            // The card waits for a buffer of the hard block, which the link empties.
            self.quiet = 0;
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

    /// Polls the assertions of the design.
    pub(crate) fn poll_assertions(&mut self) {
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
                if self.reads.insert(tlp.tag, tlp.returned_bytes()).is_some() {
                    self.fail(format!("the card sends a read with tag {}, which an outstanding read has", tlp.tag));
                }
            }
            FlowClass::Completion => {}
        }
    }

    /// Whether a tag is that of a load of the register port.
    pub(crate) const fn is_own(tag: u16) -> bool {
        tag >= LOAD_TAGS
    }

    /// Takes the completion of a load of the register port; without data, the card has refused it.
    pub(crate) fn complete_own(&mut self, tag: u16, data: Option<&[u8]>) -> Result<(), String> {
        let awaited = self.own_load.as_mut().filter(|load| load.tag == tag && load.result.is_none());
        let Some(load) = awaited else {
            return Err(format!("the card completes a read with tag {tag}, which is not outstanding"));
        };
        load.result = Some(match data {
            None => Err(Refused),
            Some(data) if data.len() == usize::from(load.width) => Ok(first_word(data)),
            Some(data) => return Err(format!("the card completes a load of {} B with {} B", load.width, data.len())),
        });
        Ok(())
    }

    /// Takes the data with which the card completes a load of a core.
    pub(crate) fn show(&mut self, address: u64, data: &[u8]) {
        self.shown = Some((address, first_word(data)));
    }

    /// The outstanding load of this tag.
    pub(crate) fn load(&self, tag: u16) -> Option<Load> {
        self.loads.get(&tag).copied()
    }

    /// Ends a load.
    pub(crate) fn completed(&mut self, tag: u16) {
        self.loads.remove(&tag);
    }
}

/// The first 8 B of data, or as many as there are.
fn first_word(data: &[u8]) -> u64 {
    let mut value = [0; 8];
    let len = data.len().min(8);
    value[..len].copy_from_slice(&data[..len]);
    u64::from_le_bytes(value)
}
