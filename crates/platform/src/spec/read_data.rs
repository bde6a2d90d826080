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
    /// Bytes that the device stores behind their last beat, at most.
    pub store_bytes: u32,
    /// Time to store that many bytes.
    pub store: Ticks,
    /// Time in the queue before a read takes its tag.
    pub queue: Ticks,
    /// From the last byte of a transfer until its end is signalled.
    pub signal: Ticks,
}

impl From<&DmaRead> for ReadData {
    fn from(read: &DmaRead) -> ReadData {
        ReadData {
            push_bytes: read.push_bytes.value,
            many_pushes: read.many_pushes_ns.value,
            store_bytes: read.store_bytes.value,
            store: read.store_ns.value,
            queue: read.queue_ns.value,
            signal: read.signal_ns.value,
        }
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

    /// Time from the last beat of a completion with `payload_bytes` until its data are stored: `store` for
    /// `store_bytes` or more, and a share of it for fewer.
    #[must_use]
    pub fn stored_after(&self, payload_bytes: u32) -> Ticks {
        Ticks(self.store.0 * u64::from(payload_bytes.min(self.store_bytes)) / u64::from(self.store_bytes.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: ReadData = ReadData {
        push_bytes: 64,
        many_pushes: Ticks(7),
        store_bytes: 256,
        store: Ticks(512),
        queue: Ticks(0),
        signal: Ticks(0),
    };

    #[test]
    fn a_short_completion_is_stored_in_its_share_of_the_time_and_a_long_one_in_all_of_it() {
        assert_eq!([4, 64, 255, 256, 257, 4096].map(|bytes| DATA.stored_after(bytes).0), [8, 128, 510, 512, 512, 512]);
    }

    #[test]
    fn a_read_longer_than_a_push_or_of_an_odd_length_needs_several() {
        let times = [4, 60, 63, 64, 65, 68, 1].map(|bytes| DATA.least_time_of(bytes).0);
        assert_eq!(times, [0, 0, 7, 0, 7, 7, 7]);
    }
}
