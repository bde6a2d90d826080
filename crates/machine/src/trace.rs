//! What a machine did while it ran a plan: packet by packet, wait by wait.

use crate::Cause;
use lanemark_units::Ticks;

/// Everything that crossed a link, and what was waited for, in one sample.
///
/// All times count from the first timestamp of the sample. Both lists have the order in which things happened; of a long
/// sample they have the end, and `dropped` says how much went before.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trace {
    /// The links, each by the name of what hangs below it.
    pub links: Vec<String>,
    /// TLPs by the time at which they went.
    pub frames: Vec<Frame>,
    /// DLLPs by the time at which they went; none where nobody asked for them.
    pub dllps: Vec<Dllp>,
    /// Waits by the time at which they were over.
    pub waits: Vec<Waited>,
    /// What there was no room for.
    pub dropped: TraceGap,
}

impl Trace {
    /// The most frames, and the most waits, that one has: what a viewer still shows.
    pub const MOST: usize = 1 << 16;
    /// The most bytes of all frames together.
    pub const MOST_BYTES: usize = 64 << 20;

    /// The same with the frames and DLLPs of one link only, and the waits.
    #[must_use]
    pub fn of_link(mut self, link: usize) -> Trace {
        self.frames.retain(|frame| frame.link == link);
        self.dllps.retain(|dllp| dllp.link == link);
        self
    }
}

/// What happened and is not in a [`Trace`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TraceGap {
    /// Frames older than those it has.
    pub frames: u64,
    /// DLLPs older than those it has.
    pub dllps: u64,
    /// Waits older than those it has.
    pub waits: u64,
    /// Frames that no legal TLP stands for: a mistake of the machine.
    pub illegal: u64,
}

/// Which way on a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Direction {
    /// Away from the root.
    Downstream,
    /// Towards the root.
    Upstream,
}

impl Direction {
    /// One word, as people say it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Downstream => "down",
            Direction::Upstream => "up",
        }
    }
}

/// One TLP on one link. What crosses three links is three frames.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Which of [`Trace::links`].
    pub link: usize,
    /// Which way.
    pub direction: Direction,
    /// The number of the request that it is, or that it answers; the same on every link.
    pub request: u64,
    /// When it was ready to go; what it waited for until it went is in `because`.
    pub ready: Ticks,
    /// When its first symbol went.
    pub starts: Ticks,
    /// When its last symbol had gone.
    pub ends: Ticks,
    /// When all of it was checked at the other end.
    pub arrives: Ticks,
    /// What it had waited for last, if it had.
    pub because: Option<Cause>,
    /// Whether it came damaged: the receiver dropped it, and it goes again.
    pub is_damaged: bool,
    /// Header and payload as on the link, without framing, sequence number and LCRC. Bytes that are not enabled are 0.
    pub tlp: Vec<u8>,
}

/// One DLLP on one link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dllp {
    /// Which of [`Trace::links`].
    pub link: usize,
    /// Which way; what it answers went the other way.
    pub direction: Direction,
    /// What it is.
    pub kind: DllpKind,
    /// When its first symbol went.
    pub starts: Ticks,
    /// When its last symbol had gone.
    pub ends: Ticks,
    /// When it does something at the other end.
    pub arrives: Ticks,
}

/// What a DLLP is.
///
/// Source: PCI Express Base Specification, "Data Link Layer Packet Rules".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DllpKind {
    /// TLPs up to some number came well.
    Ack,
    /// One came damaged.
    Nak,
    /// Credits of posted requests.
    UpdateFcPosted,
    /// Credits of non-posted requests.
    UpdateFcNonPosted,
    /// Credits of completions.
    UpdateFcCompletion,
}

impl DllpKind {
    /// The specification's name.
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

/// Somebody waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waited {
    /// Who.
    pub who: StallSite,
    /// Since when.
    pub from: Ticks,
    /// Until when.
    pub until: Ticks,
    /// What became ready last.
    pub cause: Cause,
}

/// Who can wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum StallSite {
    /// A core, counted from 0.
    Core(u32),
    /// The DMA engine of a card, counted from 0.
    Engine(u32),
}

impl std::fmt::Display for StallSite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StallSite::Core(number) => write!(f, "core {number}"),
            StallSite::Engine(card) => write!(f, "engine {card}"),
        }
    }
}
