//! Root complex and host memory around a device, clock by clock.

use crate::completer::{Completer, HOST, Limits, Manner};
use crate::finding::Finding;
use crate::ledger::{Ledger, Scheme};
use crate::rule::Rule;
use crate::situation::{Coverage, Situation};
use crate::stream::{Assembled, Assembler, Outgoing, Sender};
use fastrand::Rng;
use lanemark_dut::{Dut, Inputs, Outputs};
use lanemark_record::Passed;
use lanemark_wire::{
    Completion, CompletionStatus, FlowClass, FunctionId, Header, MemoryKind, MemoryRequest, WireError, byte_enable,
};

/// Nanoseconds of a clock in captures: 250 MHz.
const NS_PER_CLOCK: u64 = 4;
/// Clocks within which a device completes a read of a register.
const READ_CLOCKS: u64 = 20_000;
/// Clocks after a change of Bus Master Enable in which queued TLPs may still begin.
const GRACE: u64 = 1024;
/// Clocks between an unexpected completion and a read with its tag that the device may have begun before.
const CROSSING: u64 = 256;
/// Requester ID of the device: 01:00.0.
const DEVICE: u16 = 0x0100;
/// Address of MSIs.
const MSI_ADDRESS: u64 = 0xfee0_0000;
/// Number of tags of the host.
const HOST_TAGS: u16 = 32;

/// Result of a step; a finding ends the run.
pub(crate) type Checked<T> = Result<T, Box<Finding>>;

/// Host memory that a transfer may access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permitted {
    pub start: u64,
    pub bytes: u64,
    pub writes: bool,
}

/// A read of the host that is outstanding, and then its data.
#[derive(Debug)]
struct HostRead {
    tag: u16,
    request: MemoryRequest,
    data: Option<Vec<u8>>,
    /// Clock by which it is completed.
    limit: u64,
}

/// Behaviour of the partner that is no completion.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Pace {
    pub scheme: Scheme,
    pub has_back_pressure: bool,
    pub has_gaps: bool,
}

/// The partner of a device.
#[derive(Debug)]
pub(crate) struct Bench {
    pub inputs: Inputs,
    outputs: Outputs,
    pub clock: u64,
    pub random: Rng,
    sender: Sender,
    assembler: Assembler,
    ledger: Ledger,
    pub completer: Completer,
    reads: Vec<HostRead>,
    next_tag: u16,
    pub pace: Pace,
    /// Bytes of the host from `memory_start`.
    pub memory: Vec<u8>,
    pub memory_start: u64,
    pub permitted: Option<Permitted>,
    /// Address and data of the bytes that must be in memory when an interrupt comes.
    pub expected: Option<(u64, Vec<u8>)>,
    /// Number of MSIs since the last transfer began, and whether one came before its data.
    pub interrupts: u32,
    pub is_interrupt_early: bool,
    /// Clock of the last request of the device for DMA, or of the last byte for it.
    pub last_progress: u64,
    /// Whether an unexpected completion crossed a request with its tag, so that the device cannot tell them apart.
    pub is_excused: bool,
    /// Tag and clock of the last unexpected completion, and waits for credits until then.
    stray: Option<(u16, u64, u64)>,
    /// The illegal situation that was created last.
    pub twisted: Option<Situation>,
    /// Clock of the last change of Bus Master Enable.
    bus_master_changed: u64,
    /// Clocks in which a TLP in the queue of a block may have waited for credits, and those until that change.
    waits_for_credits: u64,
    waits_before_change: u64,
    /// DMA reads and writes of the current transfer.
    pub requests: u32,
    pub coverage: Coverage,
    pub tlps: u64,
    /// TLPs of both directions, if they are kept.
    pub kept: Option<Vec<Passed>>,
}

impl Bench {
    pub fn new(limits: Limits, memory_start: u64, memory_bytes: usize, is_scarce: bool) -> Self {
        Bench {
            inputs: Inputs { mps: limits.mps, tags: limits.tags, ..Inputs::default() },
            outputs: Outputs::default(),
            clock: 0,
            random: Rng::with_seed(0),
            sender: Sender::default(),
            assembler: Assembler::default(),
            ledger: Ledger::new(is_scarce),
            completer: Completer::new(limits),
            reads: Vec::new(),
            next_tag: 0,
            pace: Pace::default(),
            memory: vec![0; memory_bytes],
            memory_start,
            permitted: None,
            expected: None,
            interrupts: 0,
            is_interrupt_early: false,
            last_progress: 0,
            is_excused: false,
            stray: None,
            twisted: None,
            bus_master_changed: 0,
            waits_for_credits: 0,
            waits_before_change: 0,
            requests: 0,
            coverage: Coverage::default(),
            tlps: 0,
            kept: None,
        }
    }

    pub fn finding<T>(&self, rule: Rule, what: impl Into<String>) -> Checked<T> {
        Err(Box::new(Finding { rule, what: what.into(), clock: self.clock }))
    }

    /// Sets Bus Master Enable.
    pub fn set_bus_master(&mut self, is_set: bool) {
        self.inputs.bus_master = u8::from(is_set);
        self.bus_master_changed = self.clock;
        self.waits_before_change = self.waits_for_credits;
    }

    /// Makes a number of clocks.
    pub fn clocks(&mut self, dut: &mut dyn Dut, clocks: u64) -> Checked<()> {
        for _ in 0..clocks {
            self.tick(dut)?;
        }
        Ok(())
    }

    /// Whether the partner has nothing more to send, and has returned every credit.
    pub fn is_idle(&self) -> bool {
        self.completer.is_idle() && self.sender.is_empty() && self.ledger.is_settled()
    }

    /// Makes one clock of a device.
    pub fn tick(&mut self, dut: &mut dyn Dut) -> Checked<()> {
        self.drive();
        let mut outputs = Outputs::default();
        dut.clock(&self.inputs, &mut outputs);
        // After a failure, the outputs mean nothing.
        if let Some(what) = dut.failed_assertion() {
            return self.finding(Rule::Assertion, what);
        }
        self.sample(&outputs)
    }

    /// Sets the inputs of the device for the next clock.
    pub fn drive(&mut self) {
        self.ledger.clock(self.clock, self.pace.scheme, &mut self.random, &mut self.inputs);
        // Only a block has a queue between the design and the link.
        let has_queue = self.completer.limits.timer_slack_clocks > 0;
        self.waits_for_credits += u64::from(has_queue && self.ledger.is_exhausted());
        if self.sender.is_empty() {
            for outgoing in self.completer.next(self.clock, &mut self.random, &mut self.coverage) {
                self.sender.push(outgoing);
            }
        }
        // A beat that was offered and not accepted stays.
        let is_held = self.inputs.rx_bytes > 0 && self.outputs.rx_ready == 0;
        if !is_held {
            let is_gap = self.pace.has_gaps && self.random.u8(0..8) == 0;
            self.sender.offer(&mut self.inputs, self.completer.limits.beat_bytes, is_gap);
        }
        self.inputs.tx_ready = u8::from(!self.pace.has_back_pressure || self.random.u8(0..3) == 0);
    }

    /// Checks the outputs of the device in the clock of these inputs.
    pub fn sample(&mut self, outputs: &Outputs) -> Checked<()> {
        self.outputs = *outputs;
        self.clock += 1;
        if self.inputs.reset != 0 {
            return Ok(());
        }
        if self.outputs.rx_ready != 0
            && self.inputs.rx_bytes > 0
            && let Some(sent) = self.sender.accepted(&self.inputs)
        {
            self.sent(&sent);
        }
        let is_ready = self.inputs.tx_ready != 0;
        match self.assembler.clock(&self.outputs, is_ready, self.completer.limits.beat_bytes, self.clock) {
            Assembled::Nothing => Ok(()),
            Assembled::Starts => {
                self.ledger.starts();
                Ok(())
            }
            Assembled::Tlp { tlp, started } => {
                if started == self.clock {
                    self.ledger.starts();
                }
                self.received(&tlp, started)
            }
            Assembled::Broken(what) => self.finding(Rule::StableBeats, what),
        }
    }

    fn keep(&mut self, is_upstream: bool, tlp: &[u8]) {
        self.tlps += 1;
        let at_ns = self.clock * NS_PER_CLOCK;
        if let Some(kept) = &mut self.kept
            && let Ok(passed) = Passed::new(at_ns, Some(is_upstream), tlp.to_vec())
        {
            kept.push(passed);
        }
    }

    /// A TLP has reached the device.
    fn sent(&mut self, outgoing: &Outgoing) {
        self.keep(false, &outgoing.tlp);
        if outgoing.tlp[0] & 0x1f == 0x0a {
            self.last_progress = self.clock;
        }
        if let Some(tag) = outgoing.hazard {
            self.stray = Some((tag, self.clock, self.waits_for_credits));
        }
        if let Some(tag) = outgoing.frees {
            self.completer.finished(tag);
        }
        if let Some(twist) = outgoing.twist {
            self.coverage.count(twist);
            self.twisted = Some(twist);
        }
    }

    /// A TLP has come from the device.
    fn received(&mut self, tlp: &[u8], started: u64) -> Checked<()> {
        self.keep(true, tlp);
        let (header, header_bytes) = match Header::parse(tlp) {
            Ok(parsed) => parsed,
            Err(error) => {
                let text = format!("{error} in {}", hex(tlp));
                return self.finding(rule_of(&error), text);
            }
        };
        let data_bytes = header.data_bytes() as usize;
        let wanted = header_bytes + data_bytes + if header.td() { 4 } else { 0 };
        let name = header.kind().name();
        if tlp.len() != wanted {
            let what = format!("{name} with Length {} has {} B instead of {wanted} B", header.length(), tlp.len());
            return self.finding(Rule::LengthField, what);
        }
        if data_bytes > usize::from(self.inputs.mps) {
            let what = format!("{name} with {data_bytes} B, and Max_Payload_Size is {} B", self.inputs.mps);
            return self.finding(Rule::MaxPayload, what);
        }
        if let Some(exceeded) = self.ledger.uses(header.class(), header.credits()) {
            return self.finding(Rule::Credits, format!("{name} without credits: {exceeded}"));
        }
        if header.class() != FlowClass::Completion && header.requester_id() != FunctionId(self.inputs.requester_id) {
            let what =
                format!("{name} of {} instead of {}", header.requester_id(), FunctionId(self.inputs.requester_id));
            return self.finding(Rule::RequesterId, what);
        }
        let data = &tlp[header_bytes..header_bytes + data_bytes];
        match header {
            Header::Memory(request) => self.memory_request(&request, data, started),
            Header::Completion(completion) => self.completion(&completion, data),
            // Error messages and others have no effect here.
            Header::Message(_) => Ok(()),
            _ => self.finding(Rule::HeaderFields, format!("{name}, which no DMA engine sends")),
        }
    }

    fn memory_request(&mut self, request: &MemoryRequest, data: &[u8], started: u64) -> Checked<()> {
        let MemoryRequest { kind, address, length, first_be, last_be, tag, .. } = *request;
        let bytes = u64::from(length) * 4;
        let name = kind.tlp_kind().name();
        if self.inputs.bus_master == 0
            && started > self.bus_master_changed + GRACE + self.waits_for_credits - self.waits_before_change
        {
            return self.finding(Rule::BusMaster, format!("{name} at {address:#x}"));
        }
        if kind == MemoryKind::MWr && self.inputs.msi_enable != 0 && address == self.inputs.msi_address {
            return self.interrupt(request, data);
        }
        let start = u64::from(byte_enable::lower_address(0, first_be)) + address;
        let count = u64::from(byte_enable::byte_count(first_be, last_be, length));
        let is_empty = length == 1 && first_be == 0;
        let fits = self.permitted.is_some_and(|permitted| {
            let (from, to) = (permitted.start, permitted.start + permitted.bytes);
            match kind {
                MemoryKind::MWr => permitted.writes && (is_empty || start >= from && start + count <= to),
                _ => start >= from & !3 && start + count <= to.next_multiple_of(4),
            }
        });
        if !fits {
            let buffer = match self.permitted {
                Some(it) => format!("the buffer is {:#x}..{:#x}", it.start, it.start + it.bytes),
                None => "no transfer is running".to_owned(),
            };
            let what = format!("{name} of {count} B at {start:#x}, and {buffer}");
            return self.finding(Rule::OutOfBounds, what);
        }
        self.last_progress = self.clock;
        self.requests += 1;
        let place = (address - self.memory_start) as usize;
        if kind == MemoryKind::MWr {
            for (at, byte) in data.iter().enumerate() {
                let dw = at / 4;
                let enables = match dw {
                    0 => first_be,
                    _ if dw + 1 == usize::from(length) => last_be,
                    _ => 0xf,
                };
                if enables >> (at % 4) & 1 != 0 {
                    self.memory[place + at] = *byte;
                }
            }
            return Ok(());
        }
        if bytes > u64::from(self.inputs.mrrs) {
            let what = format!("{name} of {bytes} B, and Max_Read_Request_Size is {} B", self.inputs.mrrs);
            return self.finding(Rule::MaxReadRequest, what);
        }
        if tag >= self.inputs.tags {
            return self.finding(Rule::TagRange, format!("tag {tag}, and {} tags are enabled", self.inputs.tags));
        }
        // A request that crossed it may have waited in the queue of a block.
        let has_crossed = self.stray.is_some_and(|(stray, at, waits)| {
            stray == tag && self.clock - at < CROSSING + self.waits_for_credits - waits
        });
        self.is_excused |= has_crossed || self.sender.has_hazard(tag);
        if self.completer.is_open(tag, self.clock) && !self.is_excused {
            return self.finding(Rule::TagInUse, format!("{name} at {address:#x} with tag {tag}"));
        }
        let end = (place + bytes as usize).min(self.memory.len());
        let mut data = self.memory[place..end].to_vec();
        data.resize(bytes as usize, 0);
        self.hide_disabled(request, &mut data);
        self.completer.read(request, &data, self.clock, &mut self.random);
        match self.completer.applied.take() {
            // Their effect is that a TLP does not come.
            Some(Situation::NoCompletion) => {
                self.coverage.count(Situation::NoCompletion);
                self.twisted = Some(Situation::NoCompletion);
            }
            Some(Situation::LateCompletion) => self.twisted = Some(Situation::LateCompletion),
            _ => {}
        }
        Ok(())
    }

    /// Replaces the bytes that a read does not enable: a completer may return anything there.
    fn hide_disabled(&mut self, request: &MemoryRequest, data: &mut [u8]) {
        let last = data.len() - 4;
        for byte in 0..4 {
            if request.first_be >> byte & 1 == 0 {
                data[byte] = self.random.u8(..);
            }
            if request.length > 1 && request.last_be >> byte & 1 == 0 {
                data[last + byte] = self.random.u8(..);
            }
        }
    }

    fn interrupt(&mut self, request: &MemoryRequest, data: &[u8]) -> Checked<()> {
        let value = data.iter().take(2).rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
        if request.length != 1 || request.first_be & 3 != 3 || value != self.inputs.msi_data & 0xffff {
            let what = format!("an MSI of {} DW with data {value:#x}", request.length);
            return self.finding(Rule::InterruptMissing, what);
        }
        self.interrupts += 1;
        let is_missing =
            self.expected.as_ref().is_some_and(|(address, data)| self.in_memory(*address, data.len()) != *data);
        self.is_interrupt_early |= is_missing || self.twisted.is_none() && self.completer.has_open(self.clock);
        Ok(())
    }

    /// Bytes of the host memory.
    pub fn in_memory(&self, address: u64, bytes: usize) -> &[u8] {
        let place = (address - self.memory_start) as usize;
        &self.memory[place..place + bytes]
    }

    fn completion(&mut self, completion: &Completion, data: &[u8]) -> Checked<()> {
        let Completion { tag, status, byte_count, lower_address, length, requester_id, completer_id, .. } = *completion;
        let open = |read: &&mut HostRead| read.tag == tag && read.data.is_none();
        let Some(read) = self.reads.iter_mut().find(open) else {
            return self.finding(Rule::UnaskedCompletion, format!("a completion with tag {tag}"));
        };
        let request = read.request;
        read.data = Some(data.to_vec());
        let wanted_count = byte_enable::byte_count(request.first_be, request.last_be, request.length);
        let wanted_lower = byte_enable::lower_address(request.address, request.first_be);
        let what = if status != CompletionStatus::Success {
            format!("status {} of a read of {:#x}", status.code(), request.address)
        } else if requester_id != HOST {
            format!("requester {requester_id} instead of {HOST}")
        } else if completer_id != FunctionId(self.inputs.requester_id) {
            format!("completer {completer_id} instead of {}", FunctionId(self.inputs.requester_id))
        } else if byte_count != wanted_count {
            format!("Byte Count {byte_count} instead of {wanted_count}")
        } else if lower_address != wanted_lower {
            format!("Lower Address {lower_address:#x} instead of {wanted_lower:#x}")
        } else if length != request.length {
            format!("Length {length} instead of {}", request.length)
        } else if completion.common.tc != request.common.tc {
            format!("TC {} instead of {}", completion.common.tc, request.common.tc)
        } else if completion.common.attr != request.common.attr {
            "other attributes than its request".to_owned()
        } else {
            return Ok(());
        };
        self.finding(Rule::CompletionFields, what)
    }

    /// Sends a request of the host for a BAR.
    fn request(&mut self, bar: u8, request: MemoryRequest, data: &[u8]) {
        let mut tlp = vec![0; Header::MAX_BYTES];
        // Requests of the host are legal by construction.
        let used = Header::Memory(request).emit(&mut tlp).unwrap_or(0);
        tlp.truncate(used);
        tlp.extend_from_slice(data);
        self.sender.push(Outgoing { tlp, bar, ..Outgoing::default() });
    }

    /// Writes the bytes that `enabled` selects of up to 8 bytes at a DW of a BAR.
    pub fn write(&mut self, bar: u8, address: u64, value: &[u8], enables: Option<u8>) {
        let mut request = MemoryRequest::write(HOST, address, value.len() as u32);
        if let Some(enables) = enables {
            request.first_be = enables & 0xf;
            request.last_be = if request.length > 1 { enables >> 4 } else { 0 };
        }
        self.request(bar, request, value);
    }

    /// Starts a read of a BAR; returns its tag.
    pub fn start_read(&mut self, bar: u8, address: u64, bytes: u32) -> u16 {
        let tag = self.next_tag;
        self.next_tag = (tag + 1) % HOST_TAGS;
        let mut request = MemoryRequest::read(HOST, tag, address, bytes);
        request.common.attr.no_snoop = self.random.bool();
        request.common.tc = self.random.u8(0..8);
        self.reads.retain(|read| read.tag != tag);
        let limit = self.clock + READ_CLOCKS + 2 * self.completer.limits.timeout_clocks;
        self.reads.push(HostRead { tag, request, data: None, limit });
        self.request(bar, request, &[]);
        tag
    }

    /// Returns the DWs of the read with this tag, once it is completed.
    pub fn take_read(&mut self, tag: u16) -> Checked<Option<Vec<u8>>> {
        let Some(place) = self.reads.iter().position(|read| read.tag == tag) else { return Ok(None) };
        let read = &mut self.reads[place];
        if let Some(data) = read.data.take() {
            self.reads.remove(place);
            return Ok(Some(data));
        }
        if self.clock < read.limit {
            return Ok(None);
        }
        let address = read.request.address;
        let clocks = READ_CLOCKS + 2 * self.completer.limits.timeout_clocks;
        self.finding(Rule::MissingCompletion, format!("a read of {address:#x} is not completed within {clocks} clocks"))
    }

    /// Clocks until the read with this tag is completed; returns its DWs.
    pub fn finish_read(&mut self, dut: &mut dyn Dut, tag: u16) -> Checked<Vec<u8>> {
        loop {
            self.tick(dut)?;
            if let Some(data) = self.take_read(tag)? {
                return Ok(data);
            }
        }
    }

    /// Reads up to 8 bytes of a BAR.
    pub fn read(&mut self, dut: &mut dyn Dut, bar: u8, address: u64, bytes: u32) -> Checked<Vec<u8>> {
        let tag = self.start_read(bar, address, bytes);
        self.finish_read(dut, tag)
    }

    /// Prepares a transfer with these legal situations, and an illegal one after a number of reads.
    pub fn begin(&mut self, legal: &[Situation], twist: Option<(Situation, u32)>) {
        let one_of = |each: &[Situation]| legal.iter().copied().find(|situation| each.contains(situation));
        let has = |situation| legal.contains(&situation);
        let manner = Manner {
            split: one_of(&[Situation::SplitAtEveryRcb, Situation::SplitAnywhere]),
            order: one_of(&[Situation::ReorderedAcrossTags, Situation::InterleavedAcrossTags]),
            delay: one_of(&[Situation::DelayedToTimeout, Situation::RandomDelays, Situation::TagsReusedAtOnce]),
        };
        self.completer.begin(manner, twist);
        let scheme = match one_of(&[Situation::CreditsWithheld, Situation::CreditsOneByOne]) {
            Some(Situation::CreditsWithheld) => Scheme::Withheld,
            Some(_) => Scheme::OneByOne,
            None => Scheme::AtOnce,
        };
        self.pace =
            Pace { scheme, has_back_pressure: has(Situation::BackPressure), has_gaps: has(Situation::GapsInTlps) };
        self.completer.is_slow = self.pace.has_back_pressure || self.pace.has_gaps;
        for situation in
            [Situation::CreditsWithheld, Situation::CreditsOneByOne, Situation::BackPressure, Situation::GapsInTlps]
        {
            if has(situation) {
                self.coverage.count(situation);
            }
        }
    }

    /// Permits the requests of a transfer; the device may begin with them.
    pub fn permit(&mut self, permitted: Permitted) {
        self.permitted = Some(permitted);
        (self.interrupts, self.is_interrupt_early, self.is_excused) = (0, false, false);
        (self.requests, self.last_progress) = (0, self.clock);
    }

    /// Sets what the configuration space of the device has: its ID, its timeout and its interrupt.
    pub fn configure(&mut self) {
        self.inputs.requester_id = DEVICE;
        // Timeouts are at most 2^20 clocks.
        self.inputs.timeout_clocks = self.completer.limits.timeout_clocks as u32;
        self.inputs.msi_enable = 1;
        self.inputs.msi_address = MSI_ADDRESS;
        self.inputs.msi_data = 0x4021;
    }

    /// Sets the packet sizes of the device, and counts what changes.
    pub fn set_sizes(&mut self, mps: u16, mrrs: u16) {
        if mps != self.inputs.mps {
            self.coverage.count(Situation::PayloadSizeChanged);
        }
        if mrrs != self.inputs.mrrs {
            self.coverage.count(Situation::ReadSizeChanged);
        }
        (self.inputs.mps, self.inputs.mrrs) = (mps, mrrs);
        self.completer.limits.mps = mps;
    }

    /// Whether a transfer makes no progress any more, with everything sent that the device waits for.
    pub fn is_stuck(&self) -> bool {
        let idle = self.clock.saturating_sub(self.last_progress);
        let Limits { timeout_clocks, timer_slack_clocks, .. } = self.completer.limits;
        self.is_idle() && idle > 3 * timeout_clocks + timer_slack_clocks + 4000
    }

    /// Drops the reads of the host: the function was reset.
    pub fn drop_reads(&mut self) {
        self.reads.clear();
    }

    /// Whether no TLP of the device has been accepted in part.
    pub fn is_sender_empty(&self) -> bool {
        self.sender.is_empty()
    }
}

fn hex(tlp: &[u8]) -> String {
    let bytes: Vec<String> = tlp.iter().take(Header::MAX_BYTES).map(|byte| format!("{byte:02x}")).collect();
    bytes.join(" ")
}

/// The rule that a header breaks which is not legal.
fn rule_of(error: &WireError) -> Rule {
    match error {
        WireError::Crosses4KiB { .. } => Rule::FourKib,
        WireError::LastBeOfOneDw { .. } | WireError::NoByteEnabled { .. } | WireError::Hole { .. } => Rule::ByteEnables,
        WireError::FourDwBelow4GiB { .. } => Rule::AddressFormat,
        WireError::TooShort { .. } => Rule::LengthField,
        WireError::MoreThanRemains { .. } | WireError::OffBoundary { .. } | WireError::ReservedStatus { .. } => {
            Rule::CompletionFields
        }
        _ => Rule::HeaderFields,
    }
}
