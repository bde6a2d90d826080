//! Selectable memory ports of a device.

/// Method by which a program selects the memory port of a buffer.
///
/// Neither is standard, and no runtime reports the number of ports: it is found by trial allocations.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ports {
    /// Ports are not selectable.
    One,
    /// Three creation flag bits: Intel's `CL_CHANNEL_1_INTELFPGA` to 7.
    Flag(u32),
    /// Creation property, counted from 1: extension `cl_intel_mem_channel_property`.
    Property(u32),
}

impl Ports {
    /// Number of ports.
    pub(super) const fn count(self) -> u32 {
        match self {
            Ports::One => 1,
            Ports::Flag(count) | Ports::Property(count) => count,
        }
    }
}
