//! The interface of a design under test: a stream of TLPs in each direction, clock by clock.
//!
//! A [`Dut`] (device under test) is a compiled design, or a model in software. [`Inputs`] and [`Outputs`] are the structures of the C interface
//! in `rtl/lanemark_dut.h`.

#![forbid(unsafe_code)]

/// Most bytes of one beat of a stream.
pub const MOST_BEAT_BYTES: usize = 64;

/// Inputs of the device during one clock: `lanemark_dut_in` of `rtl/lanemark_dut.h`.
///
/// A beat of `rx` is accepted if [`Outputs::rx_ready`] is set in the same clock.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Inputs {
    /// Bytes of the TLP to the device, in the order of the link.
    pub rx_data: [u8; MOST_BEAT_BYTES],
    /// Number of these bytes; 0 if no beat is offered.
    pub rx_bytes: u8,
    /// Whether the beat ends its TLP, 0 or 1.
    pub rx_last: u8,
    /// BAR that the address of a request matches, 0 to 5.
    pub rx_bar: u8,
    /// Whether a beat of the device is accepted, 0 or 1.
    pub tx_ready: u8,
    /// Reset of everything, 0 or 1.
    pub reset: u8,
    /// Function-level reset, 0 or 1.
    pub flr: u8,
    /// Bus Master Enable, 0 or 1.
    pub bus_master: u8,
    /// MSI Enable, 0 or 1.
    pub msi_enable: u8,
    /// Credit limit of posted headers, modulo 2^8.
    pub posted_headers: u8,
    /// Credit limit of non-posted headers, modulo 2^8.
    pub non_posted_headers: u8,
    /// Credit limit of posted data in units of 16 B, modulo 2^12.
    pub posted_data: u16,
    /// Requester ID of the device.
    pub requester_id: u16,
    /// Max Payload Size in bytes.
    pub mps: u16,
    /// Max Read Request Size in bytes.
    pub mrrs: u16,
    /// Number of usable tags.
    pub tags: u16,
    /// Completion timeout in clocks.
    pub timeout_clocks: u32,
    /// Data of the MSI.
    pub msi_data: u32,
    /// Address of the MSI.
    pub msi_address: u64,
}

/// Outputs of the device during one clock, before its edge: `lanemark_dut_out` of `rtl/lanemark_dut.h`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outputs {
    /// Bytes of the TLP from the device, in the order of the link.
    pub tx_data: [u8; MOST_BEAT_BYTES],
    /// Number of these bytes; 0 if no beat is offered.
    pub tx_bytes: u8,
    /// Whether the beat ends its TLP, 0 or 1.
    pub tx_last: u8,
    /// Whether the device accepts a beat, 0 or 1.
    pub rx_ready: u8,
}

impl Default for Inputs {
    fn default() -> Inputs {
        Inputs {
            rx_data: [0; MOST_BEAT_BYTES],
            rx_bytes: 0,
            rx_last: 0,
            rx_bar: 0,
            tx_ready: 0,
            reset: 0,
            flr: 0,
            bus_master: 0,
            msi_enable: 0,
            posted_headers: 0,
            non_posted_headers: 0,
            posted_data: 0,
            requester_id: 0,
            mps: 128,
            mrrs: 128,
            tags: 32,
            timeout_clocks: 0,
            msi_data: 0,
            msi_address: 0,
        }
    }
}

impl Default for Outputs {
    fn default() -> Outputs {
        Outputs { tx_data: [0; MOST_BEAT_BYTES], tx_bytes: 0, tx_last: 0, rx_ready: 0 }
    }
}

impl Outputs {
    /// The offered bytes; empty if no beat is offered.
    #[must_use]
    pub fn beat(&self) -> &[u8] {
        &self.tx_data[..usize::from(self.tx_bytes).min(MOST_BEAT_BYTES)]
    }
}

/// A device under test.
pub trait Dut {
    /// Bytes of a full beat: a multiple of 4, at most [`MOST_BEAT_BYTES`].
    fn beat_bytes(&self) -> usize;

    /// Applies the inputs, writes the outputs as they are before the clock edge, then makes the edge.
    fn clock(&mut self, inputs: &Inputs, outputs: &mut Outputs);

    /// The message of the first assertion of the design that failed; `None` if none did.
    fn failed_assertion(&mut self) -> Option<String> {
        None
    }

    /// Whether its function can be reset alone ([`Inputs::flr`]).
    fn has_function_level_reset(&self) -> bool {
        true
    }

    /// Most clocks by which a timer of the design may exceed [`Inputs::timeout_clocks`]: with a hard block, it starts before the
    /// read is on the link.
    fn timer_slack_clocks(&self) -> u32 {
        0
    }
}
