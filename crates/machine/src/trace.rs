//! Traces: every packet and every stall of a sample.

use crate::Cause;
use lanemark_units::Ticks;

/// All packets on all links, and all stalls, of one sample.
///
/// Times are relative to the first timestamp of the sample. All lists are in chronological order. Of a long sample, a
/// trace keeps the last part; `dropped` counts the rest.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trace {
    /// The links, by the name of the device below each.
    pub links: Vec<String>,
    /// TLPs, by the time of transmission.
    pub frames: Vec<Frame>,
    /// DLLPs, by the time of transmission; empty unless requested.
    pub dllps: Vec<Dllp>,
    /// Stalls, by the time at which they ended.
    pub waits: Vec<Waited>,
    /// Counts of entries that exceeded the capacity.
    pub dropped: TraceGap,
}

impl Trace {
    /// Maximum number of frames, and of stalls, which viewers can still display.
    pub const MOST: usize = 1 << 16;
    /// Maximum total bytes of all frames.
    pub const MOST_BYTES: usize = 64 << 20;

    /// The trace reduced to the frames and DLLPs of one link, with all stalls.
    #[must_use]
    pub fn of_link(mut self, link: usize) -> Trace {
        self.frames.retain(|frame| frame.link == link);
        self.dllps.retain(|dllp| dllp.link == link);
        self
    }
}

/// Events that are missing in a [`Trace`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TraceGap {
    /// Frames older than the recorded ones.
    pub frames: u64,
    /// DLLPs older than the recorded ones.
    pub dllps: u64,
    /// Stalls older than the recorded ones.
    pub waits: u64,
    /// Frames that do not form a legal TLP, which is a defect of the machine.
    pub illegal: u64,
}

/// Direction on a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Direction {
    /// Away from the root.
    Downstream,
    /// Towards the root.
    Upstream,
}

impl Direction {
    /// Short name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Downstream => "down",
            Direction::Upstream => "up",
        }
    }
}

/// One TLP on one link. A TLP that crosses three links gives three frames.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Index into [`Trace::links`].
    pub link: usize,
    /// Direction.
    pub direction: Direction,
    /// Number of the request, shared by its completions, the same on every link.
    pub request: u64,
    /// Time at which it was ready for transmission; `because` explains a later start.
    pub ready: Ticks,
    /// Start of transmission of its first symbol.
    pub starts: Ticks,
    /// End of transmission of its last symbol.
    pub ends: Ticks,
    /// Time at which the receiver has checked it.
    pub arrives: Ticks,
    /// The last stall before its transmission, if any.
    pub because: Option<Cause>,
    /// Credits of its class that its sender had left after it.
    pub credits_left: CreditsLeft,
    /// Whether its LCRC was wrong: the receiver dropped it, and it is replayed.
    pub is_damaged: bool,
    /// Header, payload and digest without framing, sequence number and LCRC. Bytes that are not enabled are 0. An
    /// injected fault is visible: EP is set, or TD with a digest that is not the ECRC.
    pub tlp: Vec<u8>,
}

/// Flow-control credits of one class at a sender; `None` where the receiver advertised infinite credits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CreditsLeft {
    /// Header credits.
    pub header: Option<u32>,
    /// Data credits of 16 B each.
    pub data: Option<u32>,
}

/// One DLLP on one link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dllp {
    /// Index into [`Trace::links`].
    pub link: usize,
    /// Direction, opposite to that of the TLPs it acknowledges or grants credits for.
    pub direction: Direction,
    /// Kind.
    pub kind: DllpKind,
    /// Start of transmission of its first symbol.
    pub starts: Ticks,
    /// End of transmission of its last symbol.
    pub ends: Ticks,
    /// Time at which it takes effect at the receiver.
    pub arrives: Ticks,
}

/// Kind of a DLLP.
///
/// Source: PCI Express Base Specification, "Data Link Layer Packet Rules".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DllpKind {
    /// Acknowledges TLPs up to a sequence number.
    Ack,
    /// Requests a replay of a corrupted TLP.
    Nak,
    /// Returns credits of posted requests.
    UpdateFcPosted,
    /// Returns credits of non-posted requests.
    UpdateFcNonPosted,
    /// Returns credits of completions.
    UpdateFcCompletion,
}

impl DllpKind {
    /// Name in the specification.
    ///
    /// ```
    /// assert_eq!(lanemark_machine::DllpKind::UpdateFcCompletion.name(), "UpdateFC-Cpl");
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            DllpKind::Ack => "Ack",
            DllpKind::Nak => "Nak",
            DllpKind::UpdateFcPosted => "UpdateFC-P",
            DllpKind::UpdateFcNonPosted => "UpdateFC-NP",
            DllpKind::UpdateFcCompletion => "UpdateFC-Cpl",
        }
    }
}

/// One stall.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waited {
    /// The stalled core or channel.
    pub who: StallSite,
    /// Start.
    pub from: Ticks,
    /// End.
    pub until: Ticks,
    /// The constraint that was satisfied last.
    pub cause: Cause,
}

/// A core or DMA channel that can stall.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum StallSite {
    /// A core, counted from 0.
    Core(u32),
    /// A channel of the DMA engine of a card.
    Channel {
        /// The card, counted from 0.
        card: u32,
        /// The channel, counted from 0.
        channel: u32,
    },
}

impl std::fmt::Display for StallSite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StallSite::Core(number) => write!(f, "core {number}"),
            StallSite::Channel { card, channel } => write!(f, "engine {card} channel {channel}"),
        }
    }
}
