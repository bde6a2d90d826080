//! Time of the user clock at the FIFOs of a card.

use lanemark_machine::Partner;
use lanemark_platform::{Fifos, Platform};
use lanemark_units::Ticks;

/// Data packets at a FIFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Queued {
    /// Their beats.
    pub(crate) beats: Ticks,
    /// Beats that need not have passed when the last packet does: its own, and those of data that the FIFO still
    /// holds.
    pub(crate) ahead: Ticks,
}

impl Queued {
    const NONE: Queued = Queued { beats: Ticks::ZERO, ahead: Ticks::ZERO };

    /// A write of this many bytes.
    pub(crate) fn writes(platform: &Platform, partner: Partner, bytes: u32) -> Queued {
        platform.fifos.as_ref().map_or(Queued::NONE, |fifos| {
            let size = if partner == Partner::Host { &fifos.tx_bytes } else { &fifos.ep_tx_bytes };
            passing(fifos, size.value, std::iter::once(bytes))
        })
    }

    /// The completions of a read, each with this many payload bytes in whole DWs.
    pub(crate) fn reads(platform: &Platform, payloads: &[u32]) -> Queued {
        // The first and the last may contain bytes that are not enabled.
        let last = payloads.len().saturating_sub(1);
        let counted = payloads.iter().enumerate().map(|(place, payload)| {
            let uncounted = if place == 0 { 3 } else { 0 } + if place == last { 3 } else { 0 };
            payload.saturating_sub(uncounted).max(1)
        });
        let fifos = platform.fifos.as_ref();
        fifos.map_or(Queued::NONE, |fifos| passing(fifos, fifos.rx_bytes.value, counted))
    }
}

/// Packets of equal size.
fn passing(fifos: &Fifos, size_bytes: u64, packets: impl Iterator<Item = u32>) -> Queued {
    let (beat_bytes, beat) = (u64::from(fifos.beat_bytes.value), fifos.beat_ns.value);
    let beats: u64 = packets.map(|bytes| u64::from(bytes).div_ceil(beat_bytes)).sum();
    Queued { beats: beat * beats, ahead: beat * (size_bytes / beat_bytes + 1) }
}
