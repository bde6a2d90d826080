//! The stream between `LitePCIe`'s PHY and its core, of 64 to 512 bits.
//!
//! The PHY gives whole TLPs in beats that start with a TLP, and takes them so. Its signals are those of a `LiteX` stream; `source`
//! is from the PHY to the design and `sink` the other way. Source, from memory and not checked against its text: the PHYs of
//! `LitePCIe`, <https://github.com/enjoy-digital/litepcie>. `rtl/README.md` lists what is fixed and what is left out.

use crate::interface::{Block, Interface, PortRow, from_design, to_design};
use crate::pins::{Pin, Pins};
use crate::raw::{RawBlock, Received, TIMER_SLACK_CLOCKS};
use lanemark_dut::{Inputs, Outputs};

pub(crate) const INTERFACE: Interface = Interface {
    name: "litepcie",
    about: "LitePCIe: streams source and sink of a PHY",
    clock: "clk",
    mark: "phy_source_dat",
    ports: PORTS,
    attach: |pins| Ok(Box::new(LitePcie::new(pins)?)),
};

const PORTS: &[PortRow] = &[
    to_design("rst"),
    to_design("phy_source_valid"),
    to_design("phy_source_first").optional(),
    to_design("phy_source_last"),
    to_design("phy_source_dat"),
    to_design("phy_source_be"),
    from_design("phy_source_ready"),
    from_design("phy_sink_valid"),
    from_design("phy_sink_first").with("phy_sink_valid").optional(),
    from_design("phy_sink_last").with("phy_sink_valid"),
    from_design("phy_sink_dat").with("phy_sink_valid"),
    from_design("phy_sink_be").with("phy_sink_valid"),
    to_design("phy_sink_ready"),
    from_design("phy_msi_valid").optional(),
    from_design("phy_msi_dat").with("phy_msi_valid").optional(),
    to_design("phy_msi_ready").optional(),
    to_design("phy_id").optional(),
    to_design("phy_bus_master_enable").optional(),
    to_design("phy_max_payload_size").optional(),
    to_design("phy_max_request_size").optional(),
];

/// Largest payload and request of the core.
const MOST_BYTES: u16 = 512;

/// The PHY.
#[derive(Debug)]
struct LitePcie {
    reset: Pin,
    source: Stream,
    sink: Stream,
    msi_valid: Pin,
    msi_data: Pin,
    msi_ready: Pin,
    id: Pin,
    bus_master: Pin,
    max_payload: Pin,
    max_request: Pin,
    raw: RawBlock,
    current: Option<Received>,
    /// DWs of the beat that is offered, until it is taken.
    beat: Option<Beat>,
    /// DWs of the TLP that arrives from the design.
    arriving: Vec<u32>,
    was_offered: bool,
}

#[derive(Debug)]
struct Stream {
    valid: Pin,
    ready: Pin,
    first: Pin,
    last: Pin,
    data: Pin,
    enables: Pin,
}

#[derive(Debug)]
struct Beat {
    dws: Vec<u32>,
    is_first: bool,
    is_last: bool,
}

impl LitePcie {
    fn new(pins: &Pins) -> Result<LitePcie, String> {
        let stream = |name: &str| {
            let pin = |end: &str| pins.find(&format!("phy_{name}_{end}"));
            Stream {
                valid: pin("valid"),
                ready: pin("ready"),
                first: pin("first"),
                last: pin("last"),
                data: pin("dat"),
                enables: pin("be"),
            }
        };
        let (source, sink) = (stream("source"), stream("sink"));
        let bits = source.data.bits();
        for (name, stream) in [("source", &source), ("sink", &sink)] {
            let (own, enables) = (stream.data.bits(), stream.enables.bits());
            if own != bits || !matches!(bits, 64 | 128 | 256 | 512) {
                return Err(format!(
                    "phy_{name}_dat has {own} bits; both streams have the same width, 64, 128, 256 or 512 bits"
                ));
            }
            if enables != bits / 8 {
                return Err(format!("phy_{name}_be has {enables} bits; it has one for each byte, {}", bits / 8));
            }
        }
        let pin = |name: &str| pins.find(name);
        Ok(LitePcie {
            reset: pin("rst"),
            source,
            sink,
            msi_valid: pin("phy_msi_valid"),
            msi_data: pin("phy_msi_dat"),
            msi_ready: pin("phy_msi_ready"),
            id: pin("phy_id"),
            bus_master: pin("phy_bus_master_enable"),
            max_payload: pin("phy_max_payload_size"),
            max_request: pin("phy_max_request_size"),
            raw: RawBlock::default(),
            current: None,
            beat: None,
            arriving: Vec::new(),
            was_offered: false,
        })
    }

    fn next_beat(&mut self) -> Option<Beat> {
        let mut tlp = self.current.take().or_else(|| self.raw.receive(true))?;
        let is_first = tlp.next == 0;
        let dws = tlp.take(self.source.data.dws()).to_vec();
        let is_last = tlp.has_ended();
        if !is_last {
            self.current = Some(tlp);
        }
        Some(Beat { dws, is_first, is_last })
    }

    fn offer(&mut self, pins: &mut Pins) {
        // An offered beat stays; the next one may come later, also inside a TLP.
        if self.beat.is_none() && !self.raw.pauses.next() {
            self.beat = self.next_beat();
        }
        let stream = &self.source;
        pins.set(stream.valid, self.beat.is_some().into());
        pins.dws_mut(stream.data).fill(0);
        let Some(beat) = &self.beat else { return };
        pins.set(stream.first, beat.is_first.into());
        pins.set(stream.last, beat.is_last.into());
        let bytes = beat.dws.len() as u32 * 4;
        pins.set(stream.enables, if bytes < 64 { (1 << bytes) - 1 } else { u64::MAX });
        pins.dws_mut(stream.data)[..beat.dws.len()].copy_from_slice(&beat.dws);
    }

    /// Takes the beat of the design in this clock.
    fn collect(&mut self, pins: &Pins) -> Result<(), String> {
        let stream = &self.sink;
        if !pins.is_set(stream.valid) {
            return if self.was_offered {
                Err("phy_sink: valid became 0 before the beat was accepted".to_owned())
            } else {
                Ok(())
            };
        }
        let is_ready = pins.is_set(stream.ready);
        self.was_offered = !is_ready;
        if !is_ready {
            return Ok(());
        }
        let (enables, is_last) = (pins.get(stream.enables), pins.is_set(stream.last));
        let bytes = enables.trailing_ones();
        if enables.count_ones() != bytes
            || !bytes.is_multiple_of(4)
            || bytes == 0
            || bytes < stream.enables.bits() && !is_last
        {
            return Err("phy_sink: be has a gap, or is not all ones before last".to_owned());
        }
        self.arriving.extend_from_slice(&pins.dws(stream.data)[..bytes as usize / 4]);
        if is_last {
            let dws = std::mem::take(&mut self.arriving);
            self.raw.depart(&dws, false);
        }
        Ok(())
    }
}

impl Block for LitePcie {
    fn beat_bytes(&self) -> usize {
        self.source.data.dws() * 4
    }

    fn drive(&mut self, inputs: &Inputs, pins: &mut Pins) {
        if inputs.reset != 0 {
            self.raw.reset();
            self.arriving.clear();
            (self.current, self.beat, self.was_offered) = (None, None, false);
        }
        self.raw.choose(inputs);
        self.offer(pins);
        let is_ready = !self.raw.pauses.next() && (self.raw.has_buffer() || !self.arriving.is_empty());
        pins.set(self.sink.ready, is_ready.into());
        let may_interrupt = inputs.msi_enable != 0 && inputs.bus_master != 0 && self.raw.has_buffer();
        pins.set(self.msi_ready, (may_interrupt && !self.raw.pauses.next()).into());
        pins.set(self.reset, inputs.reset.into());
        pins.set(self.id, inputs.requester_id.into());
        pins.set(self.bus_master, inputs.bus_master.into());
        pins.set(self.max_payload, inputs.mps.min(MOST_BYTES).into());
        pins.set(self.max_request, inputs.mrrs.min(MOST_BYTES).into());
    }

    fn sample(&mut self, inputs: &Inputs, pins: &Pins, outputs: &mut Outputs) -> Result<(), String> {
        self.raw.exchange(inputs, self.beat_bytes(), outputs);
        if inputs.reset != 0 {
            return Ok(());
        }
        if pins.is_set(self.source.valid) && pins.is_set(self.source.ready) {
            self.beat = None;
        }
        self.collect(pins)?;
        if pins.is_set(self.msi_valid) && pins.is_set(self.msi_ready) {
            let vector = pins.get(self.msi_data) as u32 & 31;
            self.raw.interrupt(inputs, vector);
        }
        Ok(())
    }

    fn has_function_level_reset(&self) -> bool {
        false
    }

    fn timer_slack_clocks(&self) -> u32 {
        TIMER_SLACK_CLOCKS
    }
}
