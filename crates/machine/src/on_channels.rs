//! A device's transfers on several of its channels.

use crate::Transfer;

/// Transfers by a device's own DMA engine that are dealt to several of its channels: the first to the first, the next to the
/// next, and round again.
///
/// Each channel makes its own one after the other; what a transfer says of those [under way](Transfer::outstanding) is about each
/// channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OnChannels {
    /// All of them.
    pub transfer: Transfer,
    /// How many channels.
    pub channels: u32,
}
