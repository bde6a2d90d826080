//! The compiled card, and a host that does what a test says: no adversary, no choices.

use lanemark_dut::{Dut, Inputs, Outputs};
use lanemark_hw::dut_library::{DutLibrary, LoadedDut};
use lanemark_wire::FlowClass;
use std::collections::VecDeque;

/// Requester ID of the card on the simulated platform: 01:00.0.
pub const CARD: u16 = 0x0100;
/// Requester ID of the register accesses of the host of a test, which no plan uses: 00:1f.0.
const DRIVER: u16 = 0x00f8;
/// Offset of the memory in BAR 0.
pub const MEMORY: u32 = 0x4000;
/// Length of the memory.
pub const MEMORY_BYTES: u32 = 0x2000;
/// The result of a step of a comparison, or in which way the card differs from what the step expects.
pub type Checked<T> = Result<T, String>;

/// Clocks after which an action of the card that has not happened is an error.
const PATIENCE: u64 = 20_000;
/// Unused credits that the host advertises: posted headers, posted data, non-posted headers.
const WINDOW: [u64; 3] = [64, 1024, 64];

/// A TLP of the card.
#[derive(Clone, Debug)]
pub struct Sent {
    pub tlp: Vec<u8>,
    /// Clock after its last DW.
    pub ended: u64,
}

/// Class of a TLP.
pub fn class(tlp: &[u8]) -> FlowClass {
    match tlp[0] & 0x1f {
        0x0a => FlowClass::Completion,
        0 if tlp[0] & 0x40 == 0 => FlowClass::NonPosted,
        _ => FlowClass::Posted,
    }
}

/// Bytes of the header of a TLP.
pub fn header_bytes(tlp: &[u8]) -> usize {
    if tlp[0] & 0x20 == 0 { 12 } else { 16 }
}

/// Payload of a TLP.
pub fn payload(tlp: &[u8]) -> &[u8] {
    &tlp[header_bytes(tlp)..]
}

/// A card of `rtl/`, clock by clock.
pub struct Card {
    dut: LoadedDut,
    inputs: Inputs,
    outputs: Outputs,
    /// Number of clocks so far.
    pub clock: u64,
    /// TLPs to the card with the earliest clock of their first DW, and the DWs of the first one that it has.
    queue: VecDeque<(u64, Vec<u8>)>,
    taken: usize,
    partial: Vec<u8>,
    /// TLPs of the card.
    pub sent: VecDeque<Sent>,
    /// For how many clocks each load was in the queue after its earliest clock.
    pub load_waits: VecDeque<u64>,
    used: [u64; 3],
    /// The first assertion of the design that failed.
    failure: Option<String>,
}

impl Card {
    /// Opens a card and resets it. The content of its memory is arbitrary.
    pub fn new(library: &DutLibrary, mps: u32, mrrs: u32) -> Card {
        let inputs = Inputs {
            bus_master: 1,
            requester_id: CARD,
            mps: mps as u16,
            mrrs: mrrs as u16,
            tags: 32,
            timeout_clocks: 1 << 20,
            tx_ready: 1,
            ..Inputs::default()
        };
        let mut card = Card {
            dut: library.open("a plan").unwrap(),
            inputs,
            outputs: Outputs::default(),
            clock: 0,
            queue: VecDeque::new(),
            taken: 0,
            partial: Vec::new(),
            sent: VecDeque::new(),
            load_waits: VecDeque::new(),
            used: [0; 3],
            failure: None,
        };
        card.reset(mps, mrrs);
        card
    }

    /// Resets the card, which keeps the content of its memory.
    pub fn reset(&mut self, mps: u32, mrrs: u32) {
        (self.inputs.mps, self.inputs.mrrs) = (mps as u16, mrrs as u16);
        self.inputs.reset = 1;
        self.inputs.rx_bytes = 0;
        for _ in 0..4 {
            self.dut.clock(&self.inputs, &mut self.outputs);
        }
        self.inputs.reset = 0;
        (self.clock, self.taken, self.used) = (0, 0, [0; 3]);
        self.queue.clear();
        self.partial.clear();
        self.sent.clear();
        self.load_waits.clear();
    }

    /// Queues a TLP whose first DW is offered in this clock at the earliest.
    pub fn push(&mut self, earliest: u64, tlp: Vec<u8>) {
        self.queue.push_back((earliest, tlp));
    }

    /// Makes one clock.
    pub fn tick(&mut self) {
        let limits: [u64; 3] = std::array::from_fn(|place| self.used[place] + WINDOW[place]);
        self.inputs.posted_headers = limits[0] as u8;
        self.inputs.posted_data = (limits[1] & 0xfff) as u16;
        self.inputs.non_posted_headers = limits[2] as u8;
        self.inputs.rx_bytes = 0;
        if let Some((earliest, tlp)) = self.queue.front()
            && (self.taken > 0 || *earliest <= self.clock)
        {
            self.inputs.rx_data[..4].copy_from_slice(&tlp[self.taken..self.taken + 4]);
            (self.inputs.rx_bytes, self.inputs.rx_last) = (4, u8::from(self.taken + 4 == tlp.len()));
        }
        self.dut.clock(&self.inputs, &mut self.outputs);
        self.clock += 1;
        if self.failure.is_none() {
            self.failure = self.dut.failed_assertion();
        }
        if self.inputs.rx_bytes > 0 && self.outputs.rx_ready != 0 {
            if let Some((earliest, tlp)) = self.queue.front()
                && self.taken == 0
                && class(tlp) == FlowClass::NonPosted
            {
                self.load_waits.push_back((self.clock - 1).saturating_sub(*earliest));
            }
            self.taken += 4;
            if self.inputs.rx_last != 0 {
                self.taken = 0;
                self.queue.pop_front();
            }
        }
        if self.outputs.tx_bytes == 0 {
            return;
        }
        self.partial.extend_from_slice(self.outputs.beat());
        if self.outputs.tx_last != 0 {
            let tlp = std::mem::take(&mut self.partial);
            match class(&tlp) {
                FlowClass::Posted => {
                    self.used[0] += 1;
                    self.used[1] += (payload(&tlp).len() as u64).div_ceil(16);
                }
                FlowClass::NonPosted => self.used[2] += 1,
                FlowClass::Completion => {}
            }
            self.sent.push_back(Sent { tlp, ended: self.clock });
        }
    }

    /// Makes clocks until `done`; `what` names what the card does not do in time.
    pub fn run_until(&mut self, what: &str, mut done: impl FnMut(&Card) -> bool) -> Checked<()> {
        for _ in 0..PATIENCE {
            if let Some(failure) = &self.failure {
                return Err(failure.clone());
            }
            if done(self) {
                return Ok(());
            }
            self.tick();
        }
        Err(format!("the card does not {what}"))
    }

    /// Whether it has taken every TLP of the queue.
    pub fn has_all(&self) -> bool {
        self.queue.is_empty()
    }

    /// Stores DWs to BAR 0 at a multiple of 4.
    pub fn store(&mut self, offset: u32, data: &[u8]) -> Checked<()> {
        assert!(offset.is_multiple_of(4) && data.len().is_multiple_of(4), "whole DWs");
        for (nth, piece) in data.chunks(64).enumerate() {
            self.push(0, access(true, offset + 64 * nth as u32, piece.len(), piece));
        }
        self.run_until("take a store", Card::has_all)
    }

    /// Loads a DW of BAR 0; other TLPs that the card sends meanwhile stay in [`Card::sent`].
    pub fn load(&mut self, offset: u32) -> Checked<u32> {
        self.push(0, access(false, offset, 4, &[]));
        let is_mine = |sent: &Sent| {
            class(&sent.tlp) == FlowClass::Completion && sent.tlp[8..10] == DRIVER.to_be_bytes() && sent.tlp.len() == 16
        };
        self.run_until("complete a load of a register", |card| card.sent.iter().any(is_mine))?;
        let place = self.sent.iter().position(is_mine).unwrap_or_default();
        let word = self.sent.remove(place).and_then(|sent| payload(&sent.tlp).try_into().ok());
        Ok(word.map(u32::from_le_bytes).unwrap_or_default())
    }

    /// Programs the engine, without starting it: the address in host memory, that in the memory of the card, the bytes.
    pub fn program(&mut self, is_to_device: bool, host: u64, own: u32, bytes: u32) -> Checked<()> {
        let (source, destination) = if is_to_device { (host, u64::from(own)) } else { (u64::from(own), host) };
        let words = [source.to_le_bytes(), destination.to_le_bytes()].concat();
        self.store(0, &[&words[..], &bytes.to_le_bytes()].concat())
    }

    /// Waits until the engine reports that its transfer has ended well.
    pub fn wait_for_end(&mut self) -> Checked<()> {
        for _ in 0..PATIENCE / 16 {
            match self.load(0x18)? {
                0 => return Ok(()),
                1 => {}
                status => return Err(format!("status {status:#x} of the engine")),
            }
        }
        Err("the transfer does not end".to_owned())
    }

    /// The beats that were written to its memory and read from it since the last call.
    pub fn take_beats(&mut self) -> Checked<(u32, u32)> {
        let beats = (self.load(0x20)?, self.load(0x24)?);
        self.store(0x20, &[0; 4])?;
        Ok(beats)
    }
}

/// The store that starts the engine.
pub fn command(is_to_device: bool) -> Vec<u8> {
    access(true, 0x14, 4, &(if is_to_device { 1_u32 } else { 2 }).to_le_bytes())
}

/// A store of whole DWs to BAR 0, or a load.
fn access(is_store: bool, offset: u32, bytes: usize, data: &[u8]) -> Vec<u8> {
    let dws = bytes / 4;
    let mut tlp = vec![if is_store { 0x40 } else { 0 }, 0, (dws >> 8) as u8, dws as u8];
    tlp.extend(DRIVER.to_be_bytes());
    tlp.extend([0, if dws > 1 { 0xff } else { 0x0f }]);
    tlp.extend(offset.to_be_bytes());
    tlp.extend(data);
    tlp
}
