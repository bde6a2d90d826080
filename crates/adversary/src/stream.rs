//! TLPs as beats: the sender of the partner, and the assembly of what the device sends.

use crate::situation::Situation;
use lanemark_dut::{Inputs, Outputs};
use std::collections::VecDeque;

/// Longest TLP of a device in bytes: header, 4 KiB of data and digest.
const LONGEST: usize = 16 + 4096 + 4;

/// A TLP to the device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outgoing {
    pub tlp: Vec<u8>,
    /// BAR of a request.
    pub bar: u8,
    /// Tag that is free for the device after this completion.
    pub frees: Option<u16>,
    /// The illegal situation that this TLP creates.
    pub twist: Option<Situation>,
    /// Tag of an unexpected completion, while a request with this tag could cross it.
    pub hazard: Option<u16>,
}

/// Queue of TLPs to the device.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    queue: VecDeque<Outgoing>,
    sent: usize,
}

impl Sender {
    pub fn push(&mut self, outgoing: Outgoing) {
        self.queue.push_back(outgoing);
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether an unexpected completion with this tag is queued.
    pub fn has_hazard(&self, tag: u16) -> bool {
        self.queue.iter().any(|outgoing| outgoing.hazard == Some(tag))
    }

    /// Offers the next beat, or none during a gap.
    pub fn offer(&self, inputs: &mut Inputs, beat_bytes: usize, is_gap: bool) {
        inputs.rx_bytes = 0;
        let Some(outgoing) = self.queue.front().filter(|_| !is_gap) else { return };
        let rest = &outgoing.tlp[self.sent..];
        let bytes = rest.len().min(beat_bytes);
        inputs.rx_data[..bytes].copy_from_slice(&rest[..bytes]);
        inputs.rx_bytes = bytes as u8;
        inputs.rx_last = u8::from(bytes == rest.len());
        inputs.rx_bar = outgoing.bar;
    }

    /// Takes the offered beat from the queue; returns the TLP whose last beat it was.
    pub fn accepted(&mut self, inputs: &Inputs) -> Option<Outgoing> {
        if inputs.rx_last == 0 {
            self.sent += usize::from(inputs.rx_bytes);
            return None;
        }
        self.sent = 0;
        self.queue.pop_front()
    }
}

/// Assembly of the TLPs of the device.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    bytes: Vec<u8>,
    /// The beat that was offered and not accepted.
    offered: Option<Box<Outputs>>,
    /// Clock at which the first beat of the current TLP was offered.
    started: Option<u64>,
}

/// The result of a clock.
pub(crate) enum Assembled {
    Nothing,
    /// The first beat of a TLP is offered.
    Starts,
    /// A TLP is complete.
    Tlp {
        tlp: Vec<u8>,
        started: u64,
    },
    /// A beat breaks the rules of the stream.
    Broken(String),
}

impl Assembler {
    /// Looks at the outputs of a clock; `is_ready` says whether the beat is accepted.
    pub fn clock(&mut self, outputs: &Outputs, is_ready: bool, beat_bytes: usize, clock: u64) -> Assembled {
        let same = |before: &Outputs| before.beat() == outputs.beat() && before.tx_last == outputs.tx_last;
        if let Some(before) = &self.offered
            && !same(before)
        {
            return Assembled::Broken("an offered beat changed or was withdrawn before it was accepted".to_owned());
        }
        if outputs.tx_bytes == 0 {
            return Assembled::Nothing;
        }
        let is_first = self.started.is_none();
        let started = *self.started.get_or_insert(clock);
        let beat = outputs.beat();
        let is_last = outputs.tx_last != 0;
        if !beat.len().is_multiple_of(4) || beat.len() > beat_bytes || !is_last && beat.len() < beat_bytes {
            return Assembled::Broken(format!("a beat of {} B in a stream of {beat_bytes} B", beat.len()));
        }
        if !is_ready {
            if self.offered.is_none() {
                self.offered = Some(Box::new(*outputs));
            }
            return if is_first { Assembled::Starts } else { Assembled::Nothing };
        }
        self.offered = None;
        self.bytes.extend_from_slice(beat);
        if is_last {
            self.started = None;
            return Assembled::Tlp { tlp: std::mem::take(&mut self.bytes), started };
        }
        if self.bytes.len() > LONGEST {
            return Assembled::Broken(format!("a TLP of more than {LONGEST} B"));
        }
        if is_first { Assembled::Starts } else { Assembled::Nothing }
    }
}
