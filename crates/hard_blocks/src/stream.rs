//! The plain stream of TLPs of `rtl/card/card.sv`, of 32 to 512 bits.
//!
//! The first DW of a beat is in bits 31:0, its first byte on the link in bits 31:24. Beats of more than 32 bits have a bit of
//! `rx_keep` or `tx_keep` for each DW.

use crate::interface::{Block, Interface, PortRow, from_design, to_design};
use crate::pins::{Pin, Pins};
use lanemark_dut::{Inputs, Outputs};

pub(crate) const INTERFACE: Interface = Interface {
    name: "stream",
    about: "plain stream of TLPs",
    clock: "clk",
    mark: "rx_data",
    ports: PORTS,
    attach: |pins| Ok(Box::new(Stream::new(pins)?)),
};

const PORTS: &[PortRow] = &[
    to_design("rst"),
    to_design("flr").optional(),
    to_design("rx_data"),
    to_design("rx_keep").optional(),
    to_design("rx_valid"),
    to_design("rx_last"),
    to_design("rx_bar").optional(),
    from_design("rx_ready"),
    from_design("tx_data").with("tx_valid"),
    from_design("tx_keep").with("tx_valid").optional(),
    from_design("tx_valid"),
    from_design("tx_last").with("tx_valid"),
    to_design("tx_ready"),
    to_design("credit_posted_headers").optional(),
    to_design("credit_posted_data").optional(),
    to_design("credit_non_posted_headers").optional(),
    to_design("requester_id").optional(),
    to_design("mps").optional(),
    to_design("mrrs").optional(),
    to_design("tags").optional(),
    to_design("bus_master").optional(),
    to_design("timeout_clocks").optional(),
    to_design("msi_enable").optional(),
    to_design("msi_address").optional(),
    to_design("msi_data").optional(),
];

/// A port with a value for the whole clock.
type Setting = (&'static str, fn(&Inputs) -> u64);

const SETTINGS: &[Setting] = &[
    ("credit_posted_headers", |inputs| inputs.posted_headers.into()),
    ("credit_posted_data", |inputs| inputs.posted_data.into()),
    ("credit_non_posted_headers", |inputs| inputs.non_posted_headers.into()),
    ("requester_id", |inputs| inputs.requester_id.into()),
    ("mps", |inputs| inputs.mps.into()),
    ("mrrs", |inputs| inputs.mrrs.into()),
    ("tags", |inputs| inputs.tags.into()),
    ("bus_master", |inputs| inputs.bus_master.into()),
    ("timeout_clocks", |inputs| inputs.timeout_clocks.into()),
    ("msi_enable", |inputs| inputs.msi_enable.into()),
    ("msi_address", |inputs| inputs.msi_address),
    ("msi_data", |inputs| inputs.msi_data.into()),
];

/// No block: beats are those of the ports.
#[derive(Debug)]
struct Stream {
    reset: Pin,
    flr: Pin,
    rx_data: Pin,
    rx_keep: Pin,
    rx_valid: Pin,
    rx_last: Pin,
    rx_bar: Pin,
    rx_ready: Pin,
    tx_data: Pin,
    tx_keep: Pin,
    tx_valid: Pin,
    tx_last: Pin,
    tx_ready: Pin,
    /// Places of [`SETTINGS`].
    settings: Vec<Pin>,
}

impl Stream {
    fn new(pins: &Pins) -> Result<Stream, String> {
        let pin = |name: &str| pins.find(name);
        let bits = pin("rx_data").bits();
        for name in ["rx_data", "tx_data"] {
            let own = pin(name).bits();
            if own != bits || !matches!(bits, 32 | 64 | 128 | 256 | 512) {
                return Err(format!(
                    "{name} has {own} bits; both streams have the same width, 32, 64, 128, 256 or 512 bits"
                ));
            }
        }
        // A beat of 32 bits is a DW: a signal of this name is another one.
        let keep = |name: &str| if bits > 32 { pin(name) } else { Pin::default() };
        for name in ["rx_keep", "tx_keep"] {
            let own = keep(name).bits();
            if bits > 32 && own != bits / 32 {
                return Err(format!(
                    "{name} has {own} bits; in a stream of {bits} bits it has one for each DW, {}",
                    bits / 32
                ));
            }
        }
        Ok(Stream {
            reset: pin("rst"),
            flr: pin("flr"),
            rx_data: pin("rx_data"),
            rx_keep: keep("rx_keep"),
            rx_valid: pin("rx_valid"),
            rx_last: pin("rx_last"),
            rx_bar: pin("rx_bar"),
            rx_ready: pin("rx_ready"),
            tx_data: pin("tx_data"),
            tx_keep: keep("tx_keep"),
            tx_valid: pin("tx_valid"),
            tx_last: pin("tx_last"),
            tx_ready: pin("tx_ready"),
            settings: SETTINGS.iter().map(|(name, _)| pin(name)).collect(),
        })
    }
}

impl Block for Stream {
    fn beat_bytes(&self) -> usize {
        self.rx_data.dws() * 4
    }

    fn drive(&mut self, inputs: &Inputs, pins: &mut Pins) {
        pins.set(self.reset, inputs.reset.into());
        pins.set(self.flr, inputs.flr.into());
        for (dw, bytes) in pins.dws_mut(self.rx_data).iter_mut().zip(inputs.rx_data.as_chunks().0) {
            *dw = u32::from_be_bytes(*bytes);
        }
        pins.set(self.rx_keep, (1 << (inputs.rx_bytes / 4)) - 1);
        pins.set(self.rx_valid, u64::from(inputs.rx_bytes != 0));
        pins.set(self.rx_last, inputs.rx_last.into());
        pins.set(self.rx_bar, inputs.rx_bar.into());
        pins.set(self.tx_ready, inputs.tx_ready.into());
        for (pin, (_, value)) in self.settings.iter().zip(SETTINGS) {
            pins.set(*pin, value(inputs));
        }
    }

    fn sample(&mut self, _inputs: &Inputs, pins: &Pins, outputs: &mut Outputs) -> Result<(), String> {
        outputs.rx_ready = u8::from(pins.is_set(self.rx_ready));
        if !pins.is_set(self.tx_valid) {
            return Ok(());
        }
        let dws = pins.dws(self.tx_data);
        let keep = if self.tx_keep.bits() == 0 { 1 } else { pins.get(self.tx_keep) };
        let count = keep.count_ones() as usize;
        if count == 0 || keep.trailing_ones() as usize != count {
            return Err(format!("tx_keep is {keep:#b}; the kept DWs begin with bit 0 and have no gap"));
        }
        for (bytes, dw) in outputs.tx_data.as_chunks_mut().0.iter_mut().zip(&dws[..count.min(dws.len())]) {
            *bytes = dw.to_be_bytes();
        }
        outputs.tx_bytes = count as u8 * 4;
        outputs.tx_last = u8::from(pins.is_set(self.tx_last));
        Ok(())
    }

    fn has_function_level_reset(&self) -> bool {
        self.flr.bits() > 0
    }
}
