//! What a device file says about the engine under test.

use lanemark_devices::{DeviceFile, Engine};
use std::fmt;
use std::ops::RangeInclusive;

/// Most memory of a device that is tested, in bytes.
const MOST_MEMORY: u64 = 8192;
/// Memory of the host for transfers, in bytes.
const HOST_BYTES: u64 = 32 * 1024;

/// Completion timeouts that a device can be given, in clocks.
pub(crate) const TIMEOUT_CLOCKS: RangeInclusive<u64> = 256..=1 << 20;

/// An engine, and how its registers are reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// The engine of the device file.
    pub engine: Engine,
    /// Memory behind a BAR that may be written: BAR, first and last offset.
    pub storage: Option<(u8, u64, u64)>,
    /// Completion timeout in clocks.
    pub timeout_clocks: u32,
    is_wide: bool,
}

/// Reason why a device file does not describe a device that can be tested.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TargetError(String);

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TargetError {}

impl Target {
    /// The engine of a device file.
    ///
    /// # Errors
    /// [`TargetError`] if the file has no engine, or an engine whose memory is not in whole DWs.
    pub fn new(device: &DeviceFile, timeout_clocks: u32) -> Result<Target, TargetError> {
        let Some(engine) = device.engine else {
            let what =
                format!("device file '{}' has no section [engine]: it says how a transfer is started", device.name);
            return Err(TargetError(what));
        };
        if !TIMEOUT_CLOCKS.contains(&u64::from(timeout_clocks)) {
            return Err(TargetError(format!("timeout_clocks is {timeout_clocks}: it must be 256 to 1048576")));
        }
        let storage = device.harmless.iter().find(|range| range.kind == "storage" && range.to - range.from >= 64);
        let is_wide = device.bars.iter().any(|bar| bar.len_bytes > 1 << 24);
        let storage = storage.map(|range| (range.bar, range.from.next_multiple_of(8), range.to));
        Ok(Target { engine, storage, timeout_clocks, is_wide })
    }

    /// Address of an offset in a BAR.
    #[must_use]
    pub fn address(&self, bar: u8, offset: u64) -> u64 {
        let bar = u64::from(bar);
        if self.is_wide { (1 << 52) + (bar << 48) + offset } else { 0xe000_0000 + (bar << 24) + offset }
    }

    /// Alignment of addresses and lengths in bytes.
    #[must_use]
    pub fn alignment(&self) -> u64 {
        self.engine.limits.alignment_bytes.max(1)
    }

    /// Largest transfer in bytes.
    #[must_use]
    pub fn most_bytes(&self) -> u64 {
        let most = self.engine.limits.most_bytes.min(self.memory_bytes());
        (most / self.alignment() * self.alignment()).max(self.alignment())
    }

    /// Memory of the device that is used, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.engine.limits.memory_bytes.min(MOST_MEMORY).max(self.alignment())
    }

    /// Memory of the host for transfers, in bytes.
    #[must_use]
    pub fn host_bytes(&self) -> u64 {
        HOST_BYTES.max(4 * self.most_bytes())
    }

    /// First address of the memory of the host: half of it is above 4 GiB if the engine reaches that.
    #[must_use]
    pub fn host_start(&self) -> u64 {
        let half = self.host_bytes() / 2 / 4096 * 4096;
        if self.engine.limits.address_bits > 32 { (1 << 32) - half } else { 1 << (self.engine.limits.address_bits - 1) }
    }

    /// Whether transfers can request an interrupt.
    #[must_use]
    pub fn has_interrupt(&self) -> bool {
        self.engine.with_interrupt.is_some()
    }
}
