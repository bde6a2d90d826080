//! Steady-state fast-forward of simulations.

/// Transfers that a simulation skipped because its state repeated.
///
/// All results are identical to those of a run without fast-forward: times, stalls, traffic and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Steady {
    /// Transfers of all devices in all samples.
    pub transfers: u64,
    /// Transfers among them that were skipped.
    pub skipped: u64,
    /// Period of the last repetition, in transfers of the first device; 0 if none was found.
    pub period: u64,
    /// The reason why no period was searched or found, if that happened in any sample.
    pub because: Option<Unsteady>,
}

/// Reason for simulating every transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsteady {
    /// Fast-forward is disabled.
    Unwanted,
    /// Too few transfers.
    Few,
    /// Random addresses whose places differ in their effect on time.
    RandomPlaces,
    /// Random link errors.
    Errors,
    /// Random reordering by ports.
    RandomOrdering,
    /// TLPs are being traced.
    Watched,
    /// Bytes are read while they are written, or written by two devices.
    SharedBytes,
    /// Reorderable writes that go to few places.
    ReorderedWrites,
    /// The transfers access a FIFO or registers with side effects.
    Registers,
    /// The destination is not one region of storage.
    NoStorage,
    /// The root complex splits reads between cards.
    SplitReads,
    /// A job is distributed over several channels.
    Channels,
    /// Cards relay data.
    Relayed,
    /// Faults are injected.
    Faults,
    /// Read latency depends on the last-level cache.
    Cached,
    /// An IOMMU translates the requests.
    Translated,
    /// No state repeated within the search limit.
    Irregular,
}

impl Unsteady {
    /// All reasons.
    pub const ALL: [Unsteady; 17] = [
        Unsteady::Unwanted,
        Unsteady::Few,
        Unsteady::RandomPlaces,
        Unsteady::Errors,
        Unsteady::RandomOrdering,
        Unsteady::Watched,
        Unsteady::SharedBytes,
        Unsteady::ReorderedWrites,
        Unsteady::Registers,
        Unsteady::NoStorage,
        Unsteady::SplitReads,
        Unsteady::Channels,
        Unsteady::Relayed,
        Unsteady::Faults,
        Unsteady::Cached,
        Unsteady::Translated,
        Unsteady::Irregular,
    ];

    /// Explanation, to follow "because".
    #[must_use]
    pub const fn explanation(self) -> &'static str {
        match self {
            Unsteady::Unwanted => "fast-forward is disabled",
            Unsteady::Few => "there are few of them",
            Unsteady::RandomPlaces => "their addresses are random, and the places differ in their effect on time",
            Unsteady::Errors => "links corrupt TLPs at random",
            Unsteady::RandomOrdering => "ports reorder TLPs at random",
            Unsteady::Watched => "TLPs are being traced",
            Unsteady::SharedBytes => "a device accesses bytes that another one writes",
            Unsteady::ReorderedWrites => "reorderable writes go to few places",
            Unsteady::Registers => "they access a FIFO or registers with side effects",
            Unsteady::NoStorage => "their destination is not one region of storage",
            Unsteady::SplitReads => "the root complex splits reads between cards",
            Unsteady::Channels => "they are distributed over several channels",
            Unsteady::Relayed => "cards relay data",
            Unsteady::Faults => "faults are injected",
            Unsteady::Cached => "read latency depends on the last-level cache",
            Unsteady::Translated => "an IOMMU translates their addresses",
            Unsteady::Irregular => "no state repeated within the search limit",
        }
    }
}

impl Steady {
    /// Adds the counts of another run. Keeps its period and reason, where it has them.
    pub fn add(&mut self, other: Steady) {
        self.transfers = self.transfers.saturating_add(other.transfers);
        self.skipped = self.skipped.saturating_add(other.skipped);
        self.period = if other.period > 0 { other.period } else { self.period };
        self.because = other.because.or(self.because);
    }
}
