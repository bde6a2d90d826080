//! AXI4-Stream between a block and a design: packets from beats and back.

use crate::pins::{Pin, Pins};

/// The ports of one stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axi {
    pub name: &'static str,
    pub data: Pin,
    pub keep: Pin,
    pub last: Pin,
    pub user: Pin,
    pub valid: Pin,
    pub ready: Pin,
}

impl Axi {
    /// The ports that begin with this name.
    pub fn find(pins: &Pins, name: &'static str) -> Axi {
        let pin = |end: &str| pins.find(&format!("{name}_{end}"));
        Axi {
            name,
            data: pin("tdata"),
            keep: pin("tkeep"),
            last: pin("tlast"),
            user: pin("tuser"),
            valid: pin("tvalid"),
            ready: pin("tready"),
        }
    }

    /// Bits of `tkeep` for each DW.
    fn keep_bits(&self) -> u32 {
        (self.keep.bits() / self.data.dws() as u32).max(1)
    }

    /// Offers up to a beat of DWs to the design, or none; `tuser` is 0.
    pub fn offer(&self, pins: &mut Pins, dws: &[u32], is_last: bool) {
        let count = dws.len().min(self.data.dws());
        pins.set(self.valid, u64::from(count > 0));
        pins.set(self.last, u64::from(count > 0 && is_last));
        let ones = count as u32 * self.keep_bits();
        pins.set(self.keep, if ones < 64 { (1 << ones) - 1 } else { u64::MAX });
        pins.dws_mut(self.user).fill(0);
        let data = pins.dws_mut(self.data);
        data[..count].copy_from_slice(&dws[..count]);
        data[count..].fill(0);
    }

    /// Whether the offered beat is taken in this clock.
    pub fn is_taken(&self, pins: &Pins) -> bool {
        pins.is_set(self.valid) && pins.is_set(self.ready)
    }

    /// Whether a bit of `tuser` is set.
    pub fn has_user_bit(&self, pins: &Pins, bit: u32) -> bool {
        pins.field(self.user, bit, 1) != 0
    }
}

/// A packet from the design.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Collected {
    pub dws: Vec<u32>,
    /// Bits of `tuser`, below 64, that were set in any of its beats.
    pub flags: u64,
    /// Whether the design, or a reset of its function, has discontinued it.
    pub is_discontinued: bool,
}

/// Collects the packets of a stream from the design, and checks its handshake.
#[derive(Debug)]
pub(crate) struct Collector {
    pub axi: Axi,
    /// Bit of `tuser` that discontinues a packet.
    discontinue: u32,
    /// The packet that arrives.
    packet: Collected,
    /// `tuser` of its first beat.
    user: Vec<u32>,
    /// A beat was offered and not taken.
    was_offered: bool,
}

impl Collector {
    pub fn new(axi: Axi, discontinue: u32) -> Collector {
        Collector { axi, discontinue, packet: Collected::default(), user: Vec::new(), was_offered: false }
    }

    /// Whether a packet has begun.
    pub fn is_inside(&self) -> bool {
        !self.packet.dws.is_empty()
    }

    /// Discontinues the packet that has begun.
    pub fn discontinue(&mut self) {
        self.packet.is_discontinued |= self.is_inside();
    }

    pub fn clear(&mut self) {
        self.packet = Collected::default();
        self.was_offered = false;
    }

    /// Bits of `tuser` in the first beat of the last packet; those that it does not have are 0.
    pub fn user(&self, low: u32, bits: u32) -> u32 {
        let dw = |at: u32| self.user.get(at as usize).copied().map_or(0, u64::from);
        let two = dw(low / 32 + 1) << 32 | dw(low / 32);
        (two >> (low % 32) & ((1 << bits) - 1)) as u32
    }

    /// Takes the beat of a clock; returns the packet that it ends. `may_pause` says whether `tvalid` may be 0 inside a packet.
    ///
    /// # Errors
    /// The rule of AXI4-Stream or of the block that the design breaks, and the name of the stream.
    pub fn take(&mut self, pins: &Pins, may_pause: bool) -> Result<Option<Collected>, String> {
        let axi = &self.axi;
        let wrong = |what: &str| Err(format!("{}: {what}", axi.name));
        if !pins.is_set(axi.valid) {
            if self.was_offered {
                return wrong("tvalid became 0 before the beat was accepted");
            }
            if self.is_inside() && !may_pause {
                return wrong("tvalid is 0 inside a packet");
            }
            return Ok(None);
        }
        let is_ready = pins.is_set(axi.ready);
        self.was_offered = !is_ready;
        if !is_ready {
            return Ok(None);
        }
        if self.packet.dws.is_empty() {
            self.user.clear();
            self.user.extend_from_slice(pins.dws(axi.user));
        }
        let (keep, keep_bits, width) = (pins.get(axi.keep), axi.keep_bits(), axi.data.dws());
        let is_last = pins.is_set(axi.last);
        let count = keep.trailing_ones() / keep_bits;
        let is_whole = keep.count_ones() == count * keep_bits && count > 0;
        if !is_whole || (count as usize) < width && !is_last {
            return wrong("tkeep has a gap, or is not all ones before tlast");
        }
        self.packet.dws.extend_from_slice(&pins.dws(axi.data)[..count as usize]);
        self.packet.is_discontinued |= axi.has_user_bit(pins, self.discontinue);
        self.packet.flags |= pins.get(axi.user);
        Ok(is_last.then(|| std::mem::take(&mut self.packet)))
    }
}
