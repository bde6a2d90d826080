//! Data packets, as sum or minimum.

use crate::path::CREDIT;

/// Data packets, as sum or minimum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Packets {
    pub(super) count: u64,
    pub(super) payload_bytes: u64,
    /// Data credits that they take.
    pub(super) credits: u64,
    pub(super) least_bytes: u32,
    pub(super) most_bytes: u32,
    /// The packets with the largest payload.
    pub(super) full: u64,
}

impl Packets {
    /// Packets with a total payload of this many bytes, in whole DWs each.
    pub(crate) fn of(payloads: impl IntoIterator<Item = u32>) -> Packets {
        let each = |bytes: u32| Packets {
            count: 1,
            payload_bytes: bytes.into(),
            credits: bytes.div_ceil(CREDIT).into(),
            least_bytes: bytes,
            most_bytes: bytes,
            full: 1,
        };
        payloads.into_iter().map(each).fold(Packets::default(), Packets::and)
    }

    /// Packets of equal payload, in whole DWs.
    pub(crate) fn alike(count: u64, bytes: u32) -> Packets {
        let credits = count * u64::from(bytes.div_ceil(CREDIT));
        let payload_bytes = count * u64::from(bytes);
        Packets { count, payload_bytes, credits, least_bytes: bytes, most_bytes: bytes, full: count }
    }

    /// The packets of both.
    pub(crate) fn and(self, other: Packets) -> Packets {
        if self.count == 0 {
            return other;
        }
        let most_bytes = self.most_bytes.max(other.most_bytes);
        let full = |packets: Packets| if packets.most_bytes == most_bytes { packets.full } else { 0 };
        Packets {
            count: self.count + other.count,
            payload_bytes: self.payload_bytes + other.payload_bytes,
            credits: self.credits + other.credits,
            least_bytes: self.least_bytes.min(other.least_bytes),
            most_bytes,
            full: full(self) + full(other),
        }
    }

    /// Packets without payload.
    pub(super) fn empty(count: u64) -> Packets {
        Packets { count, full: count, ..Packets::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_summed_and_the_largest_are_counted() {
        let some = Packets::of([128, 124, 128, 4]);
        let sum = Packets { count: 4, payload_bytes: 384, credits: 25, least_bytes: 4, most_bytes: 128, full: 2 };
        assert_eq!(some, sum);
        let longer = some.and(Packets::of([256]));
        assert_eq!((longer.most_bytes, longer.full, longer.count), (256, 1, 5));
        assert_eq!(Packets::default().and(some), some);
    }
}
