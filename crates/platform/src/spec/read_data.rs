//! The data of DMA reads on their way from the link into the device's memory.

use super::chunk_timing::DmaRead;
use lanemark_units::Ticks;

/// Costs of the data of DMA reads besides their beats, from the keys of `[dma_read]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadData {
    /// Bytes that the device takes by one push.
    pub push_bytes: u32,
    /// Minimum time of the data of a read that needs several pushes.
    pub many_pushes: Ticks,
}

impl From<&DmaRead> for ReadData {
    fn from(read: &DmaRead) -> ReadData {
        ReadData { push_bytes: read.push_bytes.value, many_pushes: read.many_pushes_ns.value }
    }
}

/// Bytes of a DW.
const DW: u32 = 4;

impl ReadData {
    /// Minimum time for which the data of a read of `bytes` bytes occupy the inbound data path, with their beats:
    /// `many_pushes` if the read needs several pushes, otherwise zero.
    #[must_use]
    pub fn least_time_of(&self, bytes: u32) -> Ticks {
        let is_one_push = bytes <= self.push_bytes && bytes.is_multiple_of(DW);
        if is_one_push { Ticks::ZERO } else { self.many_pushes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_longer_than_a_push_or_of_an_odd_length_needs_several() {
        let data = ReadData { push_bytes: 64, many_pushes: Ticks(7) };
        let times = [4, 60, 63, 64, 65, 68, 1].map(|bytes| data.least_time_of(bytes).0);
        assert_eq!(times, [0, 0, 7, 0, 7, 7, 7]);
    }
}
