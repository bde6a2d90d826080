//! Packets of the four streams: their descriptors and `tuser`. Source as in `ultrascale.rs`.

use crate::axi::Axi;
use crate::pins::Pins;
use lanemark_wire::Packet;

/// DWs of a descriptor of RQ and CQ, and of CC and RC.
pub(super) const REQUEST_DESCRIPTOR: usize = 4;
pub(super) const COMPLETION_DESCRIPTOR: usize = 3;
/// Aperture of each BAR in descriptors of CQ: 64 KiB.
const APERTURE: u32 = 16;

/// Error codes of RC, the first of these that applies.
pub(super) mod error {
    pub const NONE: u32 = 0;
    pub const POISONED: u32 = 1;
    pub const STATUS: u32 = 2;
    pub const NO_DATA_OR_BYTE_COUNT: u32 = 3;
    pub const OTHER_REQUEST: u32 = 4;
    pub const LOWER_ADDRESS: u32 = 5;
    pub const TAG: u32 = 6;
    pub const FUNCTION_LEVEL_RESET: u32 = 8;
    pub const TIMEOUT: u32 = 9;
}

/// Places in `tuser`, which streams of 512 bits have for two packets in a beat.
#[derive(Debug)]
pub(super) struct UserFields {
    pub rq_last_be: u32,
    pub rq_discontinue: u32,
    pub cc_discontinue: u32,
    cq_last_be: u32,
    cq_byte_enables: u32,
    cq_is_start: u32,
    /// Bit of the end, and bit and width of the place of its last DW.
    cq_end: Option<(u32, u32, u32)>,
    rc_is_start: u32,
    rc_end: (u32, u32, u32),
}

pub(super) const NARROW: UserFields = UserFields {
    rq_last_be: 4,
    rq_discontinue: 11,
    cc_discontinue: 0,
    cq_last_be: 4,
    cq_byte_enables: 8,
    cq_is_start: 40,
    cq_end: None,
    rc_is_start: 32,
    rc_end: (34, 35, 3),
};

pub(super) const WIDE: UserFields = UserFields {
    rq_last_be: 8,
    rq_discontinue: 36,
    cc_discontinue: 16,
    cq_last_be: 8,
    cq_byte_enables: 16,
    cq_is_start: 80,
    cq_end: Some((86, 88, 4)),
    rc_is_start: 64,
    rc_end: (76, 80, 4),
};

/// A packet on CQ or RC, and the place of the next beat.
#[derive(Debug)]
pub(super) struct UserPacket {
    /// Descriptor and data.
    dws: Vec<u32>,
    /// Enabled bytes of each of them; 0 for the descriptor.
    enables: Vec<u8>,
    first_be: u8,
    last_be: u8,
    pub is_posted: bool,
    /// Number of writes that arrived before: a completion follows them.
    pub posted_before: u64,
    pub next: usize,
}

impl UserPacket {
    pub fn new(descriptor: &[u32], posted_before: u64) -> UserPacket {
        UserPacket {
            dws: descriptor.to_vec(),
            enables: vec![0; descriptor.len()],
            first_be: 0,
            last_be: 0,
            is_posted: false,
            posted_before,
            next: 0,
        }
    }

    /// Appends a DW in the order of the link, with its enabled bytes.
    pub fn push(&mut self, dw: &[u8], enables: u8) {
        self.dws.push(u32::from_le_bytes([dw[0], dw[1], dw[2], dw[3]]));
        self.enables.push(enables);
    }

    pub fn has_ended(&self) -> bool {
        self.next == self.dws.len()
    }

    /// The packet on CQ of a request.
    pub fn of_request(tlp: &Packet<&[u8]>, data: &[u8], bar: u8, own_id: u16) -> UserPacket {
        let is_write = !data.is_empty();
        let address = tlp.address();
        let descriptor = [
            address as u32 & !3,
            (address >> 32) as u32,
            u32::from(tlp.length()) | u32::from(is_write) << 11 | u32::from(tlp.requester_id().0) << 16,
            u32::from(tlp.tag() & 255)
                | u32::from(own_id & 255) << 8
                | u32::from(bar) << 16
                | APERTURE << 19
                | u32::from(tlp.tc()) << 25
                | u32::from(tlp.attr()) << 28,
        ];
        let mut packet = UserPacket::new(&descriptor, 0);
        (packet.first_be, packet.last_be, packet.is_posted) = (tlp.first_be(), tlp.last_be(), is_write);
        let count = data.len() / 4;
        for (at, dw) in data.chunks_exact(4).enumerate() {
            let enables = match at {
                0 => packet.first_be,
                at if at + 1 == count => packet.last_be,
                _ => 15,
            };
            packet.push(dw, enables);
        }
        packet
    }

    /// DWs of the next beat, and whether it is the last one.
    fn beat(&self, axi: &Axi) -> (usize, bool) {
        let left = self.dws.len() - self.next;
        (left.min(axi.data.dws()), left <= axi.data.dws())
    }

    /// Goes on to the beat after the one that was taken.
    pub fn advance(&mut self, axi: &Axi) {
        self.next += self.beat(axi).0;
    }

    /// Offers the next beat on CQ.
    pub fn offer_on_cq(&self, cq: &Axi, fields: &UserFields, pins: &mut Pins) {
        let (count, is_last) = self.beat(cq);
        cq.offer(pins, &self.dws[self.next..], is_last);
        for (at, enables) in self.enables[self.next..][..count].iter().enumerate() {
            pins.set_field(cq.user, fields.cq_byte_enables + 4 * at as u32, 4, u32::from(*enables));
        }
        if self.next == 0 {
            pins.set_field(cq.user, 0, 4, u32::from(self.first_be));
            pins.set_field(cq.user, fields.cq_last_be, 4, u32::from(self.last_be));
            pins.set_field(cq.user, fields.cq_is_start, 1, 1);
        }
        if let (true, Some((end, place, bits))) = (is_last, fields.cq_end) {
            pins.set_field(cq.user, end, 1, 1);
            pins.set_field(cq.user, place, bits, count as u32 - 1);
        }
    }

    /// Offers the next beat on RC.
    pub fn offer_on_rc(&self, rc: &Axi, fields: &UserFields, pins: &mut Pins) {
        let (count, is_last) = self.beat(rc);
        rc.offer(pins, &self.dws[self.next..], is_last);
        for (at, enables) in self.enables[self.next..][..count].iter().enumerate() {
            pins.set_field(rc.user, 4 * at as u32, 4, u32::from(*enables));
        }
        pins.set_field(rc.user, fields.rc_is_start, 1, u32::from(self.next == 0));
        if is_last {
            let (end, place, bits) = fields.rc_end;
            pins.set_field(rc.user, end, 1, 1);
            pins.set_field(rc.user, place, bits, count as u32 - 1);
        }
    }
}

/// Compares the length in a descriptor with that of the packet, in DWs.
pub(super) fn check_length(stream: &str, length: u32, least: u32, expected: u32, found: usize) -> Result<(), String> {
    if !(least..=1024).contains(&length) || expected as usize != found {
        return Err(format!("{stream}: the descriptor announces {length} DW, and {found} DW of data follow"));
    }
    Ok(())
}
