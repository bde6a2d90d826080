//! The user interface of AMD's UltraScale+ block: the streams RQ, RC, CQ and CC of 64 to 512 bits.
//!
//! This is the block as its user sees it: it turns TLPs into packets with descriptors and back, counts credits, checks
//! completions against outstanding reads and reports their errors, and sends the MSI. Source of all fields, codes and rules,
//! from memory and not checked against its text: PG213, "UltraScale+ Devices Integrated Block for PCI Express". `rtl/README.md`
//! lists what is fixed and what is left out.

mod packet;

use crate::axi::{Axi, Collected, Collector};
use crate::interface::{Block, Interface, PortRow, from_design, to_design};
use crate::link::{Arrivals, Departure, Note, Pauses, Sending, UsedCredits, first_dw, msi};
use crate::pins::{Pin, Pins};
use lanemark_dut::{Inputs, Outputs};
use lanemark_wire::byte_enable::{byte_count, lower_address};
use lanemark_wire::{FlowClass, Packet, TlpKind};
use packet::{COMPLETION_DESCRIPTOR, NARROW, REQUEST_DESCRIPTOR, UserFields, UserPacket, WIDE, check_length, error};
use std::collections::VecDeque;

pub(crate) const INTERFACE: Interface = Interface {
    name: "ultrascale",
    about: "AMD UltraScale+ hard block: streams CQ, CC, RQ and RC",
    clock: "user_clk",
    mark: "m_axis_cq_tdata",
    ports: PORTS,
    attach: |pins| Ok(Box::new(UltraScale::new(pins)?)),
};

const PORTS: &[PortRow] = &[
    to_design("user_reset"),
    to_design("m_axis_cq_tvalid"),
    to_design("m_axis_cq_tdata"),
    to_design("m_axis_cq_tkeep"),
    to_design("m_axis_cq_tlast"),
    to_design("m_axis_cq_tuser"),
    from_design("m_axis_cq_tready"),
    to_design("m_axis_rc_tvalid"),
    to_design("m_axis_rc_tdata"),
    to_design("m_axis_rc_tkeep"),
    to_design("m_axis_rc_tlast"),
    to_design("m_axis_rc_tuser"),
    from_design("m_axis_rc_tready"),
    from_design("s_axis_rq_tvalid"),
    from_design("s_axis_rq_tdata").with("s_axis_rq_tvalid"),
    from_design("s_axis_rq_tkeep").with("s_axis_rq_tvalid"),
    from_design("s_axis_rq_tlast").with("s_axis_rq_tvalid"),
    from_design("s_axis_rq_tuser").with("s_axis_rq_tvalid"),
    to_design("s_axis_rq_tready"),
    from_design("s_axis_cc_tvalid"),
    from_design("s_axis_cc_tdata").with("s_axis_cc_tvalid"),
    from_design("s_axis_cc_tkeep").with("s_axis_cc_tvalid"),
    from_design("s_axis_cc_tlast").with("s_axis_cc_tvalid"),
    from_design("s_axis_cc_tuser").with("s_axis_cc_tvalid"),
    to_design("s_axis_cc_tready"),
    from_design("pcie_cq_np_req").optional(),
    to_design("cfg_max_payload").optional(),
    to_design("cfg_max_read_req").optional(),
    to_design("cfg_function_status").optional(),
    to_design("cfg_flr_in_process").optional(),
    from_design("cfg_flr_done").optional(),
    to_design("cfg_interrupt_msi_enable").optional(),
    from_design("cfg_interrupt_msi_int").optional(),
    to_design("cfg_interrupt_msi_sent").optional(),
    to_design("cfg_interrupt_msi_fail").optional(),
    to_design("pcie_rq_seq_num0").optional(),
    to_design("pcie_rq_seq_num_vld0").optional(),
];

/// Packets that the block keeps for each direction of a stream.
const MOST_PACKETS: usize = 64;
/// TLPs to the link that it keeps.
const MOST_DEPARTURES: usize = 8;
/// Non-posted requests that a design with `pcie_cq_np_req` can ask for in advance.
const MOST_NON_POSTED_CREDITS: u32 = 32;
/// An outstanding read.
#[derive(Clone, Copy, Debug, Default)]
struct Read {
    is_open: bool,
    is_sent: bool,
    /// Address of the next expected byte.
    address: u64,
    /// Missing bytes.
    left: u32,
    requester: u16,
    tc: u8,
    attr: u8,
    clocks: u32,
}

/// The ports besides those of the streams.
#[derive(Debug)]
struct Ports {
    reset: Pin,
    max_payload: Pin,
    max_read: Pin,
    function_status: Pin,
    flr_in_process: Pin,
    flr_done: Pin,
    msi_enable: Pin,
    msi_int: Pin,
    msi_sent: Pin,
    msi_fail: Pin,
    sequence: Pin,
    sequence_valid: Pin,
    non_posted_request: Pin,
}

/// The block.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a signal of the block")]
struct UltraScale {
    ports: Ports,
    fields: &'static UserFields,
    is_wide: bool,
    // From the link.
    arrivals: Arrivals,
    cq: Axi,
    rc: Axi,
    requests_in: VecDeque<UserPacket>,
    completions_in: VecDeque<UserPacket>,
    posted_arrived: u64,
    posted_taken: u64,
    /// Non-posted requests that the design takes (`pcie_cq_np_req`).
    non_posted_credits: u32,
    // To the link.
    rq: Collector,
    cc: Collector,
    requests: VecDeque<Departure>,
    completions: VecDeque<Departure>,
    sending: Sending,
    used: UsedCredits,
    /// By tag.
    reads: Vec<Read>,
    /// Tags of the reads that are sent and were not completed when timeouts were counted last.
    sent: Vec<u8>,
    // Signals for one clock.
    sequences: VecDeque<u8>,
    msi_is_sent: bool,
    msi_has_failed: bool,
    /// `cfg_interrupt_msi_int` of the last clock.
    vectors: u32,
    is_in_flr: bool,
    pauses: Pauses,
}

impl UltraScale {
    fn new(pins: &Pins) -> Result<UltraScale, String> {
        let streams = ["m_axis_cq", "m_axis_rc", "s_axis_rq", "s_axis_cc"].map(|name| Axi::find(pins, name));
        let bits = streams[0].data.bits();
        for axi in streams {
            if axi.data.bits() != bits || !matches!(bits, 64 | 128 | 256 | 512) {
                let (name, own) = (axi.name, axi.data.bits());
                return Err(format!(
                    "{name}_tdata has {own} bits; the four streams have the same width, 64, 128, 256 or 512 bits"
                ));
            }
            if axi.keep.bits() != bits / 32 {
                let (name, own) = (axi.name, axi.keep.bits());
                return Err(format!("{name}_tkeep has {own} bits; it has one for each DW, {}", bits / 32));
            }
        }
        let [cq, rc, rq, cc] = streams;
        let is_wide = bits == 512;
        let fields = if is_wide { &WIDE } else { &NARROW };
        Ok(UltraScale {
            ports: Ports {
                reset: pins.find("user_reset"),
                max_payload: pins.find("cfg_max_payload"),
                max_read: pins.find("cfg_max_read_req"),
                function_status: pins.find("cfg_function_status"),
                flr_in_process: pins.find("cfg_flr_in_process"),
                flr_done: pins.find("cfg_flr_done"),
                msi_enable: pins.find("cfg_interrupt_msi_enable"),
                msi_int: pins.find("cfg_interrupt_msi_int"),
                msi_sent: pins.find("cfg_interrupt_msi_sent"),
                msi_fail: pins.find("cfg_interrupt_msi_fail"),
                sequence: pins.find("pcie_rq_seq_num0"),
                sequence_valid: pins.find("pcie_rq_seq_num_vld0"),
                non_posted_request: pins.find("pcie_cq_np_req"),
            },
            fields,
            is_wide,
            arrivals: Arrivals::default(),
            cq,
            rc,
            requests_in: VecDeque::new(),
            completions_in: VecDeque::new(),
            posted_arrived: 0,
            posted_taken: 0,
            non_posted_credits: 0,
            rq: Collector::new(rq, fields.rq_discontinue),
            cc: Collector::new(cc, fields.cc_discontinue),
            requests: VecDeque::new(),
            completions: VecDeque::new(),
            sending: Sending::default(),
            used: UsedCredits::default(),
            reads: vec![Read::default(); 256],
            sent: Vec::new(),
            sequences: VecDeque::new(),
            msi_is_sent: false,
            msi_has_failed: false,
            vectors: 0,
            is_in_flr: false,
            pauses: Pauses::default(),
        })
    }

    fn reset(&mut self) {
        self.arrivals.clear();
        self.requests_in.clear();
        self.completions_in.clear();
        self.requests.clear();
        self.completions.clear();
        self.sequences.clear();
        self.rq.clear();
        self.cc.clear();
        self.posted_arrived = 0;
        self.posted_taken = 0;
        self.non_posted_credits = 0;
        self.sending.clear();
        self.msi_is_sent = false;
        self.msi_has_failed = false;
        self.is_in_flr = false;
        self.vectors = 0;
        self.used = UsedCredits::default();
        self.reads.fill(Read::default());
        self.sent.clear();
    }

    /// A function-level reset: what is being sent is sent to its end, and the rest of the queues is dropped; outstanding reads
    /// are terminated.
    fn reset_function(&mut self) {
        self.requests.clear();
        self.completions.clear();
        self.rq.discontinue();
        self.cc.discontinue();
        let is_taken = self.requests_in.front().is_some_and(|packet| packet.next > 0);
        self.requests_in.truncate(usize::from(is_taken));
        let is_posted = self.requests_in.front().is_some_and(|packet| packet.is_posted);
        self.posted_taken = self.posted_arrived - u64::from(is_posted);
        self.is_in_flr = true;
        for tag in 0..self.reads.len() {
            self.terminate(tag, error::FUNCTION_LEVEL_RESET);
        }
    }

    /// Ends a read without a completion.
    fn terminate(&mut self, tag: usize, error: u32) {
        let read = &mut self.reads[tag];
        if !read.is_open {
            return;
        }
        read.is_open = false;
        let descriptor = [error << 12 | 1 << 30, u32::from(read.requester) << 16, tag as u32];
        self.completions_in.push_back(UserPacket::new(&descriptor, self.posted_arrived));
    }

    fn count_timeouts(&mut self, clocks: u32) {
        let reads = &mut self.reads;
        self.sent.retain(|tag| reads[usize::from(*tag)].is_open && reads[usize::from(*tag)].is_sent);
        for at in 0..self.sent.len() {
            let tag = usize::from(self.sent[at]);
            self.reads[tag].clocks += 1;
            if self.reads[tag].clocks > clocks {
                self.terminate(tag, error::TIMEOUT);
            }
        }
    }

    /// A whole TLP from the link. A malformed one is dropped.
    fn arrive(&mut self, tlp: &[u8], bar: u8, own_id: u16) {
        let Ok(packet) = Packet::new(tlp) else { return };
        let data_bytes = if packet.fmt() & 0b010 != 0 { usize::from(packet.length()) * 4 } else { 0 };
        let digest = if packet.td() { 4 } else { 0 };
        if tlp.len() != packet.header_bytes() + data_bytes + digest {
            return;
        }
        let data = &tlp[packet.header_bytes()..][..data_bytes];
        match packet.kind() {
            Some(TlpKind::MRd | TlpKind::MWr) => self.request(&packet, data, bar, own_id),
            Some(TlpKind::Cpl | TlpKind::CplD) => self.completion(&packet, data),
            _ => {}
        }
    }

    fn request(&mut self, tlp: &Packet<&[u8]>, data: &[u8], bar: u8, own_id: u16) {
        let is_write = !data.is_empty();
        // Descriptors of CQ have no poison bit.
        if is_write && tlp.ep() {
            return;
        }
        let packet = UserPacket::of_request(tlp, data, bar, own_id);
        self.posted_arrived += u64::from(is_write);
        self.requests_in.push_back(packet);
    }

    fn completion(&mut self, tlp: &Packet<&[u8]>, data: &[u8]) {
        let tag = tlp.tag() & 255;
        let lower = u32::from(tlp.lower_address());
        let status = u32::from(tlp.status());
        let count = u32::from(tlp.byte_count());
        let requester = tlp.requester_id().0;
        let read = &mut self.reads[usize::from(tag)];
        let is_known = read.is_open && read.is_sent;
        let error = if !is_known {
            error::TAG
        } else if (read.requester, read.tc, read.attr) != (requester, tlp.tc(), tlp.attr()) {
            error::OTHER_REQUEST
        } else if status != 0 {
            error::STATUS
        } else if data.is_empty() || count > read.left {
            error::NO_DATA_OR_BYTE_COUNT
        } else if u64::from(lower) != read.address & 127 {
            error::LOWER_ADDRESS
        } else if tlp.ep() {
            error::POISONED
        } else {
            error::NONE
        };
        let skipped = (lower & 3).min(data.len() as u32);
        let carried = count.min(data.len() as u32 - skipped);
        // A read ends by the bytes received; a Byte Count that is too small is not reported.
        let is_last = status != 0 || error == error::NO_DATA_OR_BYTE_COUNT || carried >= read.left;
        let ends = is_last && !matches!(error, error::TAG | error::OTHER_REQUEST | error::LOWER_ADDRESS);
        let place = if is_known { read.address as u32 & 0xF80 | lower } else { lower };
        let descriptor = [
            place | error << 12 | count << 16 | u32::from(ends) << 30,
            (data.len() / 4) as u32 | status << 11 | u32::from(tlp.ep()) << 14 | u32::from(requester) << 16,
            u32::from(tag)
                | u32::from(tlp.completer_id().0) << 8
                | u32::from(tlp.tc()) << 25
                | u32::from(tlp.attr()) << 28,
        ];
        let mut packet = UserPacket::new(&descriptor, self.posted_arrived);
        for (at, dw) in data.chunks_exact(4).enumerate() {
            let is_carried = |byte: u32| (skipped..skipped + carried).contains(&(at as u32 * 4 + byte));
            packet.push(dw, (0..4).map(|byte| u8::from(is_carried(byte)) << byte).sum());
        }
        self.completions_in.push_back(packet);
        if matches!(error, error::NONE | error::POISONED) {
            read.address += u64::from(carried);
            read.left -= read.left.min(carried);
        }
        if ends {
            read.is_open = false;
        }
    }

    /// A packet of RQ.
    fn request_of_user(&mut self, packet: &Collected, own_id: u16) -> Result<(), String> {
        let Some((&[low, high, dw2, dw3], data)) = packet.dws.split_first_chunk::<REQUEST_DESCRIPTOR>() else {
            return Err("s_axis_rq: a packet is shorter than its descriptor of 4 DW".to_owned());
        };
        let (kind, length) = (dw2 >> 11 & 15, dw2 & 2047);
        if kind > 1 {
            return Err(format!(
                "s_axis_rq: request type {kind}; the model supports 0 (memory read) and 1 (memory write)"
            ));
        }
        let is_write = kind == 1;
        check_length("s_axis_rq", length, 1, if is_write { length } else { 0 }, data.len())?;
        if packet.is_discontinued {
            return Ok(());
        }
        let (attr, tc, tag) = (dw3 >> 28 & 7, dw3 >> 25 & 7, dw3 & 255);
        let requester = if dw3 >> 24 & 1 != 0 { (dw2 >> 16) as u16 } else { own_id };
        let user = |low: u32, bits: u32| self.rq.user(low, bits);
        let (first_be, last_be) = (user(0, 4) as u8, user(self.fields.rq_last_be, 4) as u8);
        let sequence = if self.is_wide { user(61, 6) } else { user(24, 4) | user(60, 2) << 4 };
        let fmt_type = kind << 6 | u32::from(high != 0) << 5;
        let mut bytes = Vec::with_capacity(16 + data.len() * 4);
        let mut push = |dw: u32| bytes.extend_from_slice(&dw.to_be_bytes());
        push(first_dw(fmt_type, tc, attr, dw2 >> 15 & 1 != 0, length));
        push(u32::from(requester) << 16 | tag << 8 | u32::from(last_be) << 4 | u32::from(first_be));
        if high != 0 {
            push(high);
        }
        push(low & !3);
        bytes.extend(data.iter().flat_map(|dw| dw.to_le_bytes()));
        if !is_write {
            let address = u64::from(high) << 32 | u64::from(low & !3);
            self.reads[tag as usize] = Read {
                is_open: true,
                is_sent: false,
                address: address & !127 | u64::from(lower_address(address, first_be)),
                left: u32::from(byte_count(first_be, last_be, length as u16)),
                requester,
                tc: tc as u8,
                attr: attr as u8,
                clocks: 0,
            };
        }
        self.requests.push_back(Departure {
            bytes,
            class: if is_write { FlowClass::Posted } else { FlowClass::NonPosted },
            data_credits: if is_write { length.div_ceil(4) } else { 0 },
            note: Note::Request { tag: tag as u8, sequence: sequence as u8 },
        });
        Ok(())
    }

    /// A packet of CC.
    fn completion_of_user(&mut self, packet: &Collected, own_id: u16) -> Result<(), String> {
        let Some((&[dw0, dw1, dw2], data)) = packet.dws.split_first_chunk::<COMPLETION_DESCRIPTOR>() else {
            return Err("s_axis_cc: a packet is shorter than its descriptor of 3 DW".to_owned());
        };
        let length = dw1 & 2047;
        check_length("s_axis_cc", length, 0, length, data.len())?;
        if packet.is_discontinued {
            return Ok(());
        }
        let completer = if dw2 >> 24 & 1 != 0 { dw2 >> 8 & 0xFFFF } else { u32::from(own_id) };
        let fmt_type = if length == 0 { 0x0A } else { 0x4A };
        let mut bytes = Vec::with_capacity(12 + data.len() * 4);
        let mut push = |dw: u32| bytes.extend_from_slice(&dw.to_be_bytes());
        push(first_dw(fmt_type, dw2 >> 25 & 7, dw2 >> 28 & 7, dw1 >> 14 & 1 != 0, length));
        push(completer << 16 | (dw1 >> 11 & 7) << 13 | dw0 >> 16 & 4095);
        push(dw1 >> 16 << 16 | (dw2 & 255) << 8 | dw0 & 127);
        bytes.extend(data.iter().flat_map(|dw| dw.to_le_bytes()));
        let (class, note) = (FlowClass::Completion, Note::Plain);
        self.completions.push_back(Departure { bytes, class, data_credits: 0, note });
        Ok(())
    }

    /// A request begins with the clock in which a bit of `cfg_interrupt_msi_int` is set.
    fn interrupt(&mut self, inputs: &Inputs, now: u32) {
        let wanted = now & !std::mem::replace(&mut self.vectors, now);
        if wanted == 0 {
            return;
        }
        if inputs.msi_enable == 0 {
            self.msi_has_failed = true;
            return;
        }
        self.requests.push_back(msi(inputs, wanted.trailing_zeros()));
    }

    /// Chooses the next TLP: a completion may pass the requests that no sequence number has reported yet, and a write the reads
    /// that wait for credits. Requests are sent with Bus Master Enable only.
    fn choose(&mut self, inputs: &Inputs) {
        if !self.sending.is_idle() {
            return;
        }
        if let Some(completion) = self.completions.pop_front() {
            self.sending.start(completion);
            return;
        }
        let mut is_behind_read = false;
        for at in 0..self.requests.len() {
            let tlp = &self.requests[at];
            let is_read = tlp.class == FlowClass::NonPosted;
            let fits = inputs.bus_master != 0 && self.used.fit(tlp, inputs);
            if fits && !(is_read && is_behind_read) {
                self.used.take(tlp);
                // The completion timeout begins when the read is sent.
                if let (true, Note::Request { tag, .. }) = (is_read, tlp.note) {
                    self.reads[usize::from(tag)].is_sent = true;
                    if !self.sent.contains(&tag) {
                        self.sent.push(tag);
                    }
                }
                if let Some(tlp) = self.requests.remove(at) {
                    self.sending.start(tlp);
                }
                return;
            }
            // Nothing passes a write.
            if !is_read {
                return;
            }
            is_behind_read = true;
        }
    }

    /// Whether the design takes the first packet of CQ now. Writes pass the reads that it does not take, if it has the port
    /// `pcie_cq_np_req`.
    fn takes_request(&mut self) -> bool {
        let takes_reads = self.ports.non_posted_request.bits() == 0 || self.non_posted_credits > 0;
        let may_be_taken = |packet: &UserPacket| packet.is_posted || takes_reads || packet.next > 0;
        let Some(at) = self.requests_in.iter().position(may_be_taken) else { return false };
        if let Some(packet) = self.requests_in.remove(at) {
            self.requests_in.push_front(packet);
        }
        true
    }

    /// Offers the next beat of the first packet of CQ.
    fn offer_request(&mut self, pins: &mut Pins) {
        let takes = self.takes_request();
        match self.requests_in.front().filter(|_| takes) {
            Some(packet) => packet.offer_on_cq(&self.cq, self.fields, pins),
            None => self.cq.offer(pins, &[], false),
        }
    }

    /// Offers the next beat of the first packet of RC, which does not pass earlier writes.
    fn offer_completion(&mut self, pins: &mut Pins) {
        match self.completions_in.front().filter(|packet| packet.posted_before <= self.posted_taken) {
            Some(packet) => packet.offer_on_rc(&self.rc, self.fields, pins),
            None => self.rc.offer(pins, &[], false),
        }
    }
}

impl Block for UltraScale {
    fn beat_bytes(&self) -> usize {
        self.cq.data.dws() * 4
    }

    fn drive(&mut self, inputs: &Inputs, pins: &mut Pins) {
        if inputs.reset != 0 {
            self.reset();
        }
        if inputs.flr != 0 {
            self.reset_function();
        }
        self.choose(inputs);
        self.offer_request(pins);
        self.offer_completion(pins);
        // A packet that has begun is taken to its end.
        let has_room = self.requests.len() + self.completions.len() < MOST_DEPARTURES;
        let rq_is_ready = !self.pauses.next() && (has_room || self.rq.is_inside());
        let cc_is_ready = !self.pauses.next() && (has_room || self.cc.is_inside());
        // A port of one bit, or four copies of it.
        pins.set(self.rq.axi.ready, if rq_is_ready { 0b1111 } else { 0 });
        pins.set(self.cc.axi.ready, if cc_is_ready { 0b1111 } else { 0 });
        let ports = &self.ports;
        pins.set(ports.reset, inputs.reset.into());
        // The core supports up to 1024 B.
        pins.set(ports.max_payload, u64::from((inputs.mps >> 7).trailing_zeros().min(3)));
        pins.set(ports.max_read, (inputs.mrrs >> 7).trailing_zeros().into());
        // Memory Space Enable and Bus Master Enable of function 0.
        pins.set(ports.function_status, 2 | u64::from(inputs.bus_master) << 2);
        pins.set(ports.flr_in_process, self.is_in_flr.into());
        pins.set(ports.msi_enable, inputs.msi_enable.into());
        pins.set(ports.msi_sent, std::mem::take(&mut self.msi_is_sent).into());
        pins.set(ports.msi_fail, std::mem::take(&mut self.msi_has_failed).into());
        let sequence = self.sequences.pop_front();
        pins.set(ports.sequence, sequence.unwrap_or_default().into());
        pins.set(ports.sequence_valid, sequence.is_some().into());
    }

    fn sample(&mut self, inputs: &Inputs, pins: &Pins, outputs: &mut Outputs) -> Result<(), String> {
        outputs.rx_ready = u8::from(
            !self.is_in_flr && self.requests_in.len() < MOST_PACKETS && self.completions_in.len() < MOST_PACKETS,
        );
        if let Some(sent) = self.sending.offer(inputs, self.beat_bytes(), outputs) {
            match sent.note {
                Note::Plain => {}
                Note::Msi => self.msi_is_sent = true,
                Note::Request { sequence, .. } => self.sequences.push_back(sequence),
            }
        }
        if inputs.reset != 0 {
            return Ok(());
        }
        if self.cq.is_taken(pins)
            && let Some(packet) = self.requests_in.front_mut()
        {
            packet.advance(&self.cq);
            if packet.has_ended() {
                self.posted_taken += u64::from(packet.is_posted);
                self.non_posted_credits = self.non_posted_credits.saturating_sub(u32::from(!packet.is_posted));
                self.requests_in.pop_front();
            }
        }
        if self.rc.is_taken(pins)
            && let Some(packet) = self.completions_in.front_mut()
        {
            packet.advance(&self.rc);
            if packet.has_ended() {
                self.completions_in.pop_front();
            }
        }
        self.count_timeouts(inputs.timeout_clocks);
        if self.ports.flr_done.bits() == 0 || pins.is_set(self.ports.flr_done) {
            self.is_in_flr = false;
        }
        if let Some(packet) = self.rq.take(pins, false)? {
            self.request_of_user(&packet, inputs.requester_id)?;
        }
        if let Some(packet) = self.cc.take(pins, false)? {
            self.completion_of_user(&packet, inputs.requester_id)?;
        }
        self.interrupt(inputs, pins.get(self.ports.msi_int) as u32);
        if pins.is_set(self.ports.non_posted_request) {
            self.non_posted_credits = (self.non_posted_credits + 1).min(MOST_NON_POSTED_CREDITS);
        }
        if outputs.rx_ready != 0
            && let Some((tlp, bar)) = self.arrivals.take(inputs)
        {
            self.arrive(&tlp, bar, inputs.requester_id);
        }
        Ok(())
    }

    fn has_function_level_reset(&self) -> bool {
        self.ports.flr_in_process.bits() > 0
    }
}
