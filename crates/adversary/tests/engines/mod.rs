//! A DMA engine in software with the registers of `rtl/card.toml`, and the same engine with one bug each.

use lanemark_dut::{Dut, Inputs, Outputs};
use lanemark_wire::byte_enable::{byte_count, contiguous, lower_address};
use lanemark_wire::{Completion, FunctionId, Header, MemoryKind, MemoryRequest, TlpKind};
use std::collections::VecDeque;

/// A bug of the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bug {
    None,
    Crosses4Kib,
    IgnoresMrrs,
    IgnoresMps,
    WrongLastByteEnable,
    TagFreedEarly,
    IgnoresCredits,
    RcbIgnored,
    PoisonAccepted,
    StatusIgnored,
    RequesterIgnored,
    ByteCountTrusted,
    NeverTimesOut,
    StopsAfterBadCompletion,
    FourDwBelow4Gib,
    InterruptFirst,
    NoInterrupt,
    WrongCompletionCount,
    ResetKeepsRunning,
    OneTagTooMany,
    EnablesIgnored,
    LengthIgnored,
    LostWithinReset,
}

const TAGS: usize = 8;

#[derive(Clone, Copy, Default)]
struct Tag {
    is_busy: bool,
    is_bad: bool,
    /// Host address of the next byte, and the bytes left.
    next: u64,
    left: u32,
    /// Clocks until the timeout.
    timer: u32,
    /// Clocks in which the tag is not used again after a timeout.
    quarantine: u32,
}

/// The engine.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own, as in RTL")]
pub struct Engine {
    bug: Bug,
    registers: [u32; 6],
    memory: Vec<u8>,
    is_running: bool,
    is_failed: bool,
    is_stopped: bool,
    command: u32,
    /// Next host address, next address of the device, and bytes without a request.
    host: u64,
    own: u64,
    left: u32,
    /// First host address and address of the device of the transfer.
    start: (u64, u64),
    tags: [Tag; TAGS],
    rx: Vec<u8>,
    tx: VecDeque<Vec<u8>>,
    sent: usize,
    used: (u8, u16, u8),
    was_reset: bool,
}

impl Engine {
    pub fn new(bug: Bug) -> Engine {
        Engine {
            bug,
            registers: [0; 6],
            memory: vec![0; 8192],
            is_running: false,
            is_failed: false,
            is_stopped: false,
            command: 0,
            host: 0,
            own: 0,
            left: 0,
            start: (0, 0),
            tags: [Tag::default(); TAGS],
            rx: Vec::new(),
            tx: VecDeque::new(),
            sent: 0,
            used: (0, 0, 0),
            was_reset: false,
        }
    }

    fn push(&mut self, header: Header, data: &[u8]) {
        let mut tlp = vec![0; Header::MAX_BYTES];
        let used = header.emit(&mut tlp).unwrap();
        tlp.truncate(used);
        tlp.extend_from_slice(data);
        self.tx.push_back(tlp);
    }

    fn register(&mut self, offset: u64, enables: u8, bytes: &[u8]) {
        let offset = offset as usize;
        if (0x4000..0x6000).contains(&offset) {
            for (at, byte) in bytes.iter().enumerate() {
                if enables >> at & 1 != 0 || self.bug == Bug::EnablesIgnored {
                    self.memory[offset - 0x4000 + at] = *byte;
                }
            }
        } else if offset < 0x18 && enables == 0xf {
            let value = u32::from_le_bytes(bytes.try_into().unwrap());
            self.registers[offset / 4] = value;
            if offset == 0x14 && !self.is_running && !self.is_stopped {
                let wide = |low: usize| u64::from(self.registers[low + 1]) << 32 | u64::from(self.registers[low]);
                let (source, destination) = (wide(0), wide(2));
                (self.host, self.own) = if value & 1 != 0 { (source, destination) } else { (destination, source) };
                self.start = (self.host, self.own);
                self.left = self.registers[4];
                self.command = value;
                (self.is_running, self.is_failed) = (true, false);
            }
        }
    }

    fn load(&self, offset: u64) -> [u8; 4] {
        let offset = offset as usize;
        if (0x4000..0x6000).contains(&offset) {
            self.memory[offset - 0x4000..offset - 0x4000 + 4].try_into().unwrap()
        } else if offset == 0x18 {
            let is_running = self.is_running || self.is_stopped;
            (u32::from(is_running) | u32::from(self.is_failed) << 1).to_le_bytes()
        } else {
            self.registers.get(offset / 4).copied().unwrap_or(0).to_le_bytes()
        }
    }

    fn received(&mut self, tlp: &[u8], inputs: &Inputs) {
        let kind = TlpKind::from_byte0(tlp[0]);
        if matches!(kind, Some(TlpKind::Cpl | TlpKind::CplD)) {
            self.completed(tlp, inputs);
            return;
        }
        let Ok((Header::Memory(request), data)) = Header::parse_whole(tlp) else { return };
        let at = request.address & 0xffff;
        if request.kind == MemoryKind::MWr {
            for (dw, bytes) in data.chunks(4).enumerate() {
                let enables = match dw {
                    0 => request.first_be,
                    _ if dw + 1 == usize::from(request.length) => request.last_be,
                    _ => 0xf,
                };
                self.register(at + dw as u64 * 4, enables, bytes);
            }
        } else {
            let data: Vec<u8> = (0..u64::from(request.length)).flat_map(|dw| self.load(at + dw * 4)).collect();
            let count = byte_count(request.first_be, request.last_be, request.length);
            let lower = lower_address(request.address, request.first_be);
            let mut completion = Completion::data(
                FunctionId(inputs.requester_id),
                request.requester_id,
                request.tag,
                lower,
                count,
                count,
            );
            completion.length = request.length;
            (completion.common.tc, completion.common.attr) = (request.common.tc, request.common.attr);
            if self.bug == Bug::WrongCompletionCount && count == 1 {
                completion.byte_count = 4;
            }
            self.push(Header::Completion(completion), &data);
        }
    }

    fn completed(&mut self, tlp: &[u8], inputs: &Inputs) {
        let requester = u16::from_be_bytes([tlp[8], tlp[9]]);
        let number = usize::from(tlp[10]) | usize::from(tlp[1] & 0x88) << 8;
        if requester != inputs.requester_id && self.bug != Bug::RequesterIgnored {
            return;
        }
        let Some(tag) = self.tags.get(number).copied().filter(|tag| tag.is_busy && !tag.is_bad) else { return };
        let length = usize::from(u16::from_be_bytes([tlp[2] & 3, tlp[3]]));
        let length = if length == 0 { 1024 } else { length };
        let status = tlp[6] >> 5;
        let field = u32::from(u16::from_be_bytes([tlp[6] & 0xf, tlp[7]]));
        let count = if field == 0 { 4096 } else { field };
        let has_data = tlp[0] == 0x4a;
        let is_last = !has_data && (status != 0 || self.bug != Bug::StatusIgnored);
        let lower = u64::from(tlp[11] & 0x7f);
        let mut is_bad = !has_data && self.bug != Bug::StatusIgnored;
        is_bad |= tlp[2] & 0x40 != 0 && self.bug != Bug::PoisonAccepted;
        is_bad |= has_data && length * 4 + 12 != tlp.len() && self.bug != Bug::LengthIgnored;
        let offset = (tag.next & 3) as u32;
        let bytes = (length as u32 * 4).saturating_sub(offset).min(tag.left);
        if self.bug != Bug::ByteCountTrusted {
            is_bad |= count != tag.left || lower != tag.next & 0x7f;
            is_bad |= has_data && length as u32 * 4 > (offset + tag.left).next_multiple_of(4);
        }
        if is_bad {
            self.is_failed = true;
            self.tags[number].is_bad = true;
            if self.bug == Bug::StopsAfterBadCompletion {
                self.is_stopped = true;
            }
            if is_last {
                self.tags[number].is_busy = false;
            }
            return;
        }
        let (mut at, mut bytes) = (self.start.1 + tag.next.wrapping_sub(self.start.0), bytes);
        if self.bug == Bug::ByteCountTrusted {
            at = at.wrapping_add(u64::from(tag.left)).wrapping_sub(u64::from(count));
            bytes = bytes.min(count);
        }
        for byte in 0..bytes {
            let value = tlp.get(12 + (offset + byte) as usize).copied().unwrap_or(0);
            if let Some(place) = self.memory.get_mut(at as usize + byte as usize) {
                *place = value;
            }
        }
        let tag = &mut self.tags[number];
        tag.next += u64::from(bytes);
        tag.left -= bytes;
        if self.bug == Bug::RcbIgnored && tag.left > 0 {
            tag.next = tag.next.next_multiple_of(128);
        }
        tag.is_busy = tag.left > 0 && self.bug != Bug::TagFreedEarly;
    }

    fn fits(&self, data_bytes: u32, is_read: bool, inputs: &Inputs) -> bool {
        if self.bug == Bug::IgnoresCredits {
            return true;
        }
        if is_read {
            return inputs.non_posted_headers.wrapping_sub(self.used.2.wrapping_add(1)) < 128;
        }
        let data = (data_bytes.div_ceil(16)) as u16;
        inputs.posted_headers.wrapping_sub(self.used.0.wrapping_add(1)) < 128
            && (inputs.posted_data.wrapping_sub(self.used.1.wrapping_add(data)) & 0xfff) < 2048
    }

    fn issue(&mut self, inputs: &Inputs) {
        if self.left == 0 || self.is_failed || inputs.bus_master == 0 || self.tx.len() > 1 {
            return;
        }
        let is_read = self.command & 1 != 0;
        let most = match (is_read, self.bug) {
            (true, Bug::IgnoresMrrs) | (false, Bug::IgnoresMps) => 512,
            (true, _) => inputs.mrrs,
            (false, _) => inputs.mps,
        };
        // The DWs count, not the bytes.
        let mut bytes = (u64::from(most) - (self.host & 3)).min(u64::from(self.left));
        if self.bug != Bug::Crosses4Kib {
            bytes = bytes.min(4096 - (self.host & 4095));
        }
        let (first_be, mut last_be, length) = contiguous(self.host, bytes as u32);
        if self.bug == Bug::WrongLastByteEnable && last_be != 0 {
            last_be = 0xf;
        }
        if !self.fits(u32::from(length) * 4, is_read, inputs) {
            return;
        }
        let id = FunctionId(inputs.requester_id);
        let mut request = MemoryRequest::read(id, 0, self.host & !3, 4);
        (request.first_be, request.last_be, request.length) = (first_be, last_be, length);
        let mut data = Vec::new();
        if is_read {
            let limit = if self.bug == Bug::OneTagTooMany { 33 } else { TAGS };
            let free = (0..TAGS).find(|tag| !self.tags[*tag].is_busy && self.tags[*tag].quarantine == 0);
            let Some(number) = free else { return };
            let timer = inputs.timeout_clocks;
            self.tags[number] = Tag { is_busy: true, next: self.host, left: bytes as u32, timer, ..Tag::default() };
            request.tag = if limit > TAGS { 256 + number as u16 } else { number as u16 };
            self.used.2 = self.used.2.wrapping_add(1);
        } else {
            request.kind = MemoryKind::MWr;
            for dw in 0..u64::from(length) * 4 {
                let at = (self.own + dw).wrapping_sub(self.host & 3);
                data.push(self.memory.get(at as usize).copied().unwrap_or(0));
            }
            self.used.0 = self.used.0.wrapping_add(1);
            self.used.1 = self.used.1.wrapping_add(length.div_ceil(4)) & 0xfff;
        }
        self.host += bytes;
        self.own += bytes;
        self.left -= bytes as u32;
        if request.address & 4095 != 0 && (request.address & 4095) + u64::from(length) * 4 > 4096 {
            // A header that crosses a page is refused by the encoder: build it from a legal one.
            let legal = MemoryRequest { address: request.address & !4095, ..request };
            self.push(Header::Memory(legal), &data);
            let last = self.tx.back_mut().unwrap();
            let place = if last[0] & 0x20 != 0 { 12 } else { 8 };
            last[place..place + 4].copy_from_slice(&(request.address as u32).to_be_bytes());
            return;
        }
        self.push(Header::Memory(request), &data);
        if self.bug == Bug::FourDwBelow4Gib && request.address < 1 << 32 {
            let last = self.tx.back_mut().unwrap();
            last[0] |= 0x20;
            last.splice(8..8, [0; 4]);
        }
    }

    fn step(&mut self, inputs: &Inputs) {
        for number in 0..TAGS {
            let tag = &mut self.tags[number];
            tag.quarantine = tag.quarantine.saturating_sub(1);
            if tag.is_busy && self.bug != Bug::NeverTimesOut {
                tag.timer = tag.timer.saturating_sub(1);
                if tag.timer == 0 {
                    tag.is_busy = false;
                    tag.quarantine = inputs.timeout_clocks;
                    self.is_failed = true;
                }
            }
        }
        if !self.is_running {
            return;
        }
        if self.bug == Bug::InterruptFirst && self.command & 4 != 0 && self.left > 0 {
            self.interrupt(inputs);
        }
        self.issue(inputs);
        let is_waiting = self.tags.iter().any(|tag| tag.is_busy);
        if (self.left == 0 || self.is_failed) && !is_waiting && self.tx.is_empty() {
            if self.command & 4 != 0 && inputs.msi_enable != 0 && self.bug != Bug::NoInterrupt {
                if inputs.bus_master == 0 || !self.fits(4, false, inputs) {
                    return;
                }
                self.interrupt(inputs);
            }
            self.is_running = false;
        }
    }

    fn interrupt(&mut self, inputs: &Inputs) {
        self.command &= !4;
        self.used.0 = self.used.0.wrapping_add(1);
        self.used.1 = self.used.1.wrapping_add(1) & 0xfff;
        let write = MemoryRequest::write(FunctionId(inputs.requester_id), inputs.msi_address, 4);
        self.push(Header::Memory(write), &inputs.msi_data.to_le_bytes());
    }

    fn reset_function(&mut self) {
        if self.bug == Bug::LostWithinReset {
            self.tx.clear();
            self.sent = 0;
        }
        self.registers = [0; 6];
        (self.is_running, self.is_failed, self.is_stopped) = (false, false, false);
        self.tags = [Tag::default(); TAGS];
        self.left = 0;
        // A TLP that is offered is sent to its end.
        self.tx.truncate(1);
    }
}

impl Dut for Engine {
    fn beat_bytes(&self) -> usize {
        8
    }

    fn clock(&mut self, inputs: &Inputs, outputs: &mut Outputs) {
        let is_full = self.tx.len() > 4;
        outputs.rx_ready = u8::from(!is_full);
        outputs.tx_bytes = 0;
        if let Some(tlp) = self.tx.front() {
            let bytes = (tlp.len() - self.sent).min(8);
            outputs.tx_data[..bytes].copy_from_slice(&tlp[self.sent..self.sent + bytes]);
            outputs.tx_bytes = bytes as u8;
            outputs.tx_last = u8::from(self.sent + bytes == tlp.len());
            if inputs.tx_ready != 0 {
                self.sent += bytes;
                if outputs.tx_last != 0 {
                    self.sent = 0;
                    self.tx.pop_front();
                }
            }
        }
        if inputs.rx_bytes > 0 && !is_full {
            self.rx.extend_from_slice(&inputs.rx_data[..usize::from(inputs.rx_bytes)]);
            if inputs.rx_last != 0 {
                let tlp = std::mem::take(&mut self.rx);
                self.received(&tlp, inputs);
            }
        }
        if inputs.flr != 0 && !self.was_reset && self.bug != Bug::ResetKeepsRunning {
            self.reset_function();
        }
        self.was_reset = inputs.flr != 0;
        self.step(inputs);
    }
}
