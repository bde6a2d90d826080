//! What an interface is: a table of ports, and a block that drives them.

use crate::pins::Pins;
use lanemark_dut::{Inputs, Outputs};
use std::fmt::Debug;

/// Model of a block, between a stream of TLPs and the ports of a design.
pub trait Block: Debug + Send + Sync {
    /// Bytes of a full beat of the streams.
    fn beat_bytes(&self) -> usize;

    /// Sets the inputs of the design for a clock.
    fn drive(&mut self, inputs: &Inputs, pins: &mut Pins);

    /// Samples the outputs of the design before the rising edge, and sets `outputs`: the beat to the host, and whether the beat
    /// from the host is accepted.
    ///
    /// # Errors
    /// What the design does that the block does not accept.
    fn sample(&mut self, inputs: &Inputs, pins: &Pins, outputs: &mut Outputs) -> Result<(), String>;

    /// Whether the block can reset its function.
    fn has_function_level_reset(&self) -> bool {
        true
    }

    /// As [`Dut::timer_slack_clocks`](lanemark_dut::Dut::timer_slack_clocks).
    fn timer_slack_clocks(&self) -> u32 {
        0
    }
}

/// A port of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortRow {
    /// Its name.
    pub name: &'static str,
    /// Whether the design reads it.
    pub is_input: bool,
    /// Whether a design may leave it out.
    pub is_optional: bool,
    /// The valid signal of this port; `None` if it is always valid.
    pub valid: Option<&'static str>,
}

impl PortRow {
    pub(crate) const fn optional(self) -> PortRow {
        PortRow { is_optional: true, ..self }
    }

    pub(crate) const fn with(self, valid: &'static str) -> PortRow {
        PortRow { valid: Some(valid), ..self }
    }
}

pub(crate) const fn to_design(name: &'static str) -> PortRow {
    PortRow { name, is_input: true, is_optional: false, valid: None }
}

pub(crate) const fn from_design(name: &'static str) -> PortRow {
    PortRow { is_input: false, ..to_design(name) }
}

/// An interface.
#[derive(Debug)]
pub struct Interface {
    /// Its name.
    pub name: &'static str,
    /// The block and its streams in words, for messages.
    pub about: &'static str,
    /// The port of its clock.
    pub clock: &'static str,
    /// The port that identifies the interface.
    pub mark: &'static str,
    /// Its ports without the clock.
    pub ports: &'static [PortRow],
    pub(crate) attach: fn(&Pins) -> Result<Box<dyn Block>, String>,
}
