//! A design with ports as a device under test.

use crate::attach::{AttachError, Attached, attach};
use crate::pins::{Pin, Pins, Port};
use lanemark_dut::{Dut, Inputs, Outputs};

/// A compiled design with ports.
pub trait Design {
    /// Its ports.
    fn ports(&self) -> Vec<Port>;

    /// Takes its inputs from `pins`, evaluates it, and writes its outputs to `pins`. Returns whether an assertion failed.
    fn evaluate(&mut self, pins: &mut Pins) -> bool;

    /// Sets its clock, which has been 0, to 1, and evaluates it with the inputs that it has. Returns whether an assertion
    /// failed.
    fn rise(&mut self, clock: Pin, pins: &mut Pins) -> bool;

    /// The message of the first assertion of the design that failed; `None` if none did.
    fn failed_assertion(&mut self) -> Option<String>;
}

/// A design and the block before it, as a device under test.
#[derive(Debug)]
pub struct BehindBlock<D> {
    design: D,
    attached: Attached,
    /// Message of the block about the first output of the design that it refused.
    refused: Option<String>,
    has_failed: bool,
}

impl<D: Design> BehindBlock<D> {
    /// Attaches the block of the design's interface.
    ///
    /// # Errors
    /// [`AttachError`] if its ports are not those of an interface.
    pub fn new(design: D) -> Result<BehindBlock<D>, AttachError> {
        let attached = attach(design.ports())?;
        Ok(BehindBlock { design, attached, refused: None, has_failed: false })
    }

    /// The block.
    pub fn attached(&self) -> &Attached {
        &self.attached
    }
}

impl<D: Design> Dut for BehindBlock<D> {
    fn beat_bytes(&self) -> usize {
        self.attached.block.beat_bytes()
    }

    fn clock(&mut self, inputs: &Inputs, outputs: &mut Outputs) {
        *outputs = Outputs::default();
        // After a failure, the design may be in the middle of a clock; it is not evaluated again.
        if self.has_failed || self.refused.is_some() {
            return;
        }
        let Attached { block, pins, clock, .. } = &mut self.attached;
        block.drive(inputs, pins);
        pins.set(*clock, 0);
        self.has_failed = self.design.evaluate(pins);
        if self.has_failed {
            return;
        }
        self.refused = block.sample(inputs, pins, outputs).err();
        self.has_failed = self.design.rise(*clock, pins);
    }

    fn failed_assertion(&mut self) -> Option<String> {
        if self.has_failed {
            let message = self.design.failed_assertion();
            return message.or_else(|| Some("the design reports a failure without a message".to_owned()));
        }
        self.refused.clone()
    }

    fn has_function_level_reset(&self) -> bool {
        self.attached.block.has_function_level_reset()
    }

    fn timer_slack_clocks(&self) -> u32 {
        self.attached.block.timer_slack_clocks()
    }
}
