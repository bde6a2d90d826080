//! The link side of all blocks: whole TLPs from beats and back, credits, and pauses.

use lanemark_dut::{Inputs, Outputs};
use lanemark_wire::FlowClass;

/// TLPs from the link.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    bytes: Vec<u8>,
    bar: u8,
}

impl Arrivals {
    /// Takes the offered beat; returns the TLP that it ends, and the BAR of a request.
    pub fn take(&mut self, inputs: &Inputs) -> Option<(Vec<u8>, u8)> {
        if inputs.rx_bytes == 0 {
            return None;
        }
        if self.bytes.is_empty() {
            self.bar = inputs.rx_bar;
        }
        self.bytes.extend_from_slice(&inputs.rx_data[..usize::from(inputs.rx_bytes)]);
        (inputs.rx_last != 0).then(|| (std::mem::take(&mut self.bytes), self.bar))
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
    }
}

/// A TLP to the link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Departure {
    pub bytes: Vec<u8>,
    pub class: FlowClass,
    /// Units of 16 B.
    pub data_credits: u32,
    /// Data that are kept with it until it is sent.
    pub note: Note,
}

/// Data that are kept with a TLP until it is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Note {
    /// Nothing.
    Plain,
    /// Tag and sequence number of a request.
    Request { tag: u8, sequence: u8 },
    /// The TLP is the MSI.
    Msi,
}

/// The TLP that is being sent.
#[derive(Debug, Default)]
pub(crate) struct Sending {
    tlp: Option<Departure>,
    sent: usize,
}

impl Sending {
    pub fn is_idle(&self) -> bool {
        self.tlp.is_none()
    }

    pub fn start(&mut self, tlp: Departure) {
        self.tlp = Some(tlp);
        self.sent = 0;
    }

    pub fn clear(&mut self) {
        self.tlp = None;
    }

    /// Offers the beat of this clock; returns the TLP of which it is the last beat, if it is accepted.
    pub fn offer(&mut self, inputs: &Inputs, beat_bytes: usize, outputs: &mut Outputs) -> Option<Departure> {
        let tlp = self.tlp.as_ref()?;
        let rest = &tlp.bytes[self.sent..];
        let count = rest.len().min(beat_bytes);
        outputs.tx_data[..count].copy_from_slice(&rest[..count]);
        outputs.tx_bytes = count as u8;
        outputs.tx_last = u8::from(count == rest.len());
        if inputs.tx_ready == 0 {
            return None;
        }
        self.sent += count;
        if outputs.tx_last == 0 { None } else { self.tlp.take() }
    }
}

/// Credits that the requests of the design have used: modulo 2^8 and 2^12, as their limits are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UsedCredits {
    pub posted_headers: u32,
    pub posted_data: u32,
    pub non_posted_headers: u32,
}

impl UsedCredits {
    /// Whether the advertised credits suffice for a TLP (PCI Express Base Specification 5.0, section 2.6.1). Those for
    /// completions are infinite.
    pub fn fit(self, tlp: &Departure, inputs: &Inputs) -> bool {
        let has_room = |limit: u32, used: u32, modulo: u32| limit.wrapping_sub(used) & (modulo - 1) <= modulo / 2;
        match tlp.class {
            FlowClass::Completion => true,
            FlowClass::NonPosted => has_room(inputs.non_posted_headers.into(), self.non_posted_headers + 1, 1 << 8),
            FlowClass::Posted => {
                has_room(inputs.posted_headers.into(), self.posted_headers + 1, 1 << 8)
                    && has_room(inputs.posted_data.into(), self.posted_data + tlp.data_credits, 1 << 12)
            }
        }
    }

    pub fn take(&mut self, tlp: &Departure) {
        match tlp.class {
            FlowClass::Completion => {}
            FlowClass::NonPosted => self.non_posted_headers = self.non_posted_headers.wrapping_add(1),
            FlowClass::Posted => {
                self.posted_headers = self.posted_headers.wrapping_add(1);
                self.posted_data = self.posted_data.wrapping_add(tlp.data_credits);
            }
        }
    }
}

/// Pauses of a stream from the design: in every fourth clock on average.
#[derive(Debug)]
pub(crate) struct Pauses(u32);

impl Default for Pauses {
    fn default() -> Pauses {
        Pauses(0xACE1)
    }
}

impl Pauses {
    /// Whether the stream pauses in this clock: a linear-feedback shift register of 16 bits.
    pub fn next(&mut self) -> bool {
        self.0 = self.0 >> 1 ^ if self.0 & 1 != 0 { 0xB400 } else { 0 };
        self.0.is_multiple_of(4)
    }
}

/// The first DW of a header.
pub(crate) const fn first_dw(fmt_type: u32, tc: u32, attr: u32, is_poisoned: bool, length: u32) -> u32 {
    fmt_type << 24 | tc << 20 | (attr >> 2) << 18 | (is_poisoned as u32) << 14 | (attr & 3) << 12 | (length & 1023)
}

/// The bytes of an MSI.
pub(crate) fn msi(inputs: &Inputs, vector: u32) -> Departure {
    let high = (inputs.msi_address >> 32) as u32;
    let mut bytes = Vec::with_capacity(20);
    let mut push = |dw: u32| bytes.extend_from_slice(&dw.to_be_bytes());
    push(first_dw(if high != 0 { 0x60 } else { 0x40 }, 0, 0, false, 1));
    push(u32::from(inputs.requester_id) << 16 | 15);
    if high != 0 {
        push(high);
    }
    push(inputs.msi_address as u32);
    bytes.extend_from_slice(&(inputs.msi_data | vector).to_le_bytes());
    Departure { bytes, class: FlowClass::Posted, data_credits: 1, note: Note::Msi }
}
