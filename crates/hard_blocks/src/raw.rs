//! Common parts of blocks that exchange whole TLPs with the design: queues of both directions, ordering, and the MSI.

use crate::link::{Arrivals, Departure, Note, Pauses, Sending, UsedCredits, msi};
use lanemark_dut::{Inputs, Outputs};
use lanemark_wire::{FlowClass, Packet, TlpKind};
use std::collections::VecDeque;

/// TLPs that the block keeps for the design.
const MOST_RECEIVED: usize = 64;
/// TLPs of the design that it keeps.
pub(crate) const MOST_DEPARTURES: usize = 8;

/// Allowance for the timer of a design: clocks between the acceptance of a read and its transmission. The host withholds credits
/// for up to 800 clocks, for each of eight reads if it has one credit only.
pub(crate) const TIMER_SLACK_CLOCKS: u32 = 8192;

/// A TLP for the design, in DWs whose first byte on the link is in bits 31:24.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub dws: Vec<u32>,
    /// BAR of a request.
    pub bar: Option<u8>,
    pub is_poisoned: bool,
    is_non_posted: bool,
    /// The next DW.
    pub next: usize,
}

impl Received {
    /// Up to `most` next DWs.
    pub fn take(&mut self, most: usize) -> &[u32] {
        let from = self.next;
        self.next = self.dws.len().min(from + most);
        &self.dws[from..self.next]
    }

    pub fn has_ended(&self) -> bool {
        self.next == self.dws.len()
    }
}

/// The block between its link and its streams.
#[derive(Debug, Default)]
pub(crate) struct RawBlock {
    arrivals: Arrivals,
    received: VecDeque<Received>,
    departures: VecDeque<Departure>,
    sending: Sending,
    used: UsedCredits,
    pub pauses: Pauses,
}

impl RawBlock {
    pub fn reset(&mut self) {
        self.arrivals.clear();
        self.received.clear();
        self.departures.clear();
        self.sending.clear();
        self.used = UsedCredits::default();
    }

    /// Used credits.
    pub fn used(&self) -> UsedCredits {
        self.used
    }

    /// Number of TLPs of the design that are not on the link yet.
    pub fn departures(&self) -> usize {
        self.departures.len()
    }

    /// The next TLP for the design; without `takes_non_posted`, other TLPs pass the non-posted requests.
    pub fn receive(&mut self, takes_non_posted: bool) -> Option<Received> {
        let at = self.received.iter().position(|tlp| takes_non_posted || !tlp.is_non_posted)?;
        self.received.remove(at)
    }

    /// Whether it takes another TLP of the design.
    pub fn has_buffer(&self) -> bool {
        self.departures.len() < MOST_DEPARTURES
    }

    /// Takes a TLP of the design, in DWs. One without a whole header goes to the link as it is.
    pub fn depart(&mut self, dws: &[u32], is_poisoned: bool) {
        let mut bytes: Vec<u8> = dws.iter().flat_map(|dw| dw.to_be_bytes()).collect();
        if let (true, Some(byte)) = (is_poisoned, bytes.get_mut(2)) {
            // EP.
            *byte |= 0x40;
        }
        let packet = Packet::new(&bytes[..]).ok();
        let kind = packet.and_then(|packet| packet.kind());
        let class = kind.map_or(FlowClass::Posted, TlpKind::class);
        let data_bytes = packet.map_or(0, |packet| packet.data_bytes());
        let data_credits = data_bytes.div_ceil(16) as u32;
        self.departures.push_back(Departure { bytes, class, data_credits, note: Note::Plain });
    }

    /// Takes an MSI, which follows the TLPs before it.
    pub fn interrupt(&mut self, inputs: &Inputs, vector: u32) {
        self.departures.push_back(msi(inputs, vector));
    }

    /// Chooses the next TLP to the link: posted requests and completions pass the non-posted requests that wait for credits, and
    /// nothing else passes.
    pub fn choose(&mut self, inputs: &Inputs) {
        if !self.sending.is_idle() {
            return;
        }
        let mut is_behind = false;
        for at in 0..self.departures.len() {
            let tlp = &self.departures[at];
            let is_non_posted = tlp.class == FlowClass::NonPosted;
            if self.used.fit(tlp, inputs) && !(is_non_posted && is_behind) {
                self.used.take(tlp);
                if let Some(tlp) = self.departures.remove(at) {
                    self.sending.start(tlp);
                }
                return;
            }
            if !is_non_posted {
                return;
            }
            is_behind = true;
        }
    }

    /// Exchanges a beat with the link in each direction. A malformed TLP is dropped.
    pub fn exchange(&mut self, inputs: &Inputs, beat_bytes: usize, outputs: &mut Outputs) {
        outputs.rx_ready = u8::from(self.received.len() < MOST_RECEIVED);
        self.sending.offer(inputs, beat_bytes, outputs);
        if inputs.reset != 0 || outputs.rx_ready == 0 {
            return;
        }
        if let Some((tlp, bar)) = self.arrivals.take(inputs) {
            self.received.extend(received(&tlp, bar));
        }
    }
}

/// A TLP from the link; `None` if it is malformed.
fn received(tlp: &[u8], bar: u8) -> Option<Received> {
    let packet = Packet::new(tlp).ok()?;
    let class = packet.kind()?.class();
    let digest = if packet.td() { 4 } else { 0 };
    if tlp.len() != packet.header_bytes() + packet.data_bytes() + digest {
        return None;
    }
    Some(Received {
        dws: tlp.as_chunks().0.iter().map(|dw| u32::from_be_bytes(*dw)).collect(),
        bar: (class != FlowClass::Completion).then_some(bar),
        is_poisoned: packet.ep(),
        is_non_posted: class == FlowClass::NonPosted,
        next: 0,
    })
}
