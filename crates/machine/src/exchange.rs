//! Messages between two cores.

use crate::Channel;

/// A message from one core to another, and its answer.
///
/// In each iteration, the first core sends through one channel and waits for the answer in the other channel; the
/// second core waits for the message and answers. The first core takes the timestamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exchange {
    /// The core that sends the message, then the core that answers; counted from 0.
    pub cores: [u32; 2],
    /// Channel of the message.
    pub message: Channel,
    /// Channel of the answer.
    pub answer: Channel,
}
