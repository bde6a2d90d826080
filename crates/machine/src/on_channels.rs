//! DMA transfers distributed over several channels.

use crate::Transfer;

/// Transfers by a device's DMA engine, distributed round-robin over several of its channels.
///
/// Each channel processes its transfers in order. [`Transfer::outstanding`] applies to each channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OnChannels {
    /// All transfers.
    pub transfer: Transfer,
    /// Number of channels.
    pub channels: u32,
}
