//! What a machine that computes did not compute step by step.

/// Transfers that a simulation left out, because it was where it had been before.
///
/// Nothing else differs: times, waits, traffic and bytes are those of a run that leaves out none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Steady {
    /// Transfers of all devices in all samples.
    pub transfers: u64,
    /// Those of them that were not simulated one by one.
    pub skipped: u64,
    /// Transfers of the first device from one state to the next equal one, the last time; 0 if none was found.
    pub period: u64,
    /// Why none was looked for or found, if that was so in any sample.
    pub because: Option<Unsteady>,
}

/// Why every transfer was simulated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsteady {
    /// Nobody wanted any to be left out.
    Unwanted,
    /// There are so few that it would not pay.
    Few,
    /// They go to places at random, or with room between them.
    RandomPlaces,
    /// Links damage TLPs at random.
    Errors,
    /// Ports let TLPs pass each other at random.
    RandomOrdering,
    /// Somebody watches TLPs.
    Watched,
    /// What is read is written at the same time, or what is written is written by two.
    SharedBytes,
    /// Writes that may pass each other go to few places.
    ReorderedWrites,
    /// They read a queue, or what changes when it is touched.
    Registers,
    /// There is nothing at the other end, or not all of it is of one piece.
    NoStorage,
    /// The root complex splits what one card reads of another.
    SplitReads,
    /// A job is dealt to several channels of an engine.
    Channels,
    /// Cards hand on what comes to them.
    Relayed,
    /// Something is to go wrong.
    Faults,
    /// The last-level cache answers some reads sooner than others.
    Cached,
    /// An IOMMU translates what devices ask for.
    Translated,
    /// No state came again as long as it was looked for.
    Irregular,
}

impl Unsteady {
    /// Every reason.
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

    /// In words, behind "because".
    #[must_use]
    pub const fn explanation(self) -> &'static str {
        match self {
            Unsteady::Unwanted => "all were asked for",
            Unsteady::Few => "they are few",
            Unsteady::RandomPlaces => "they go to places at random, or with room between them",
            Unsteady::Errors => "links damage TLPs at random",
            Unsteady::RandomOrdering => "ports let TLPs pass each other at random",
            Unsteady::Watched => "somebody watches TLPs",
            Unsteady::SharedBytes => "bytes are read or written by one device while another writes them",
            Unsteady::ReorderedWrites => "writes that may pass each other go to few places",
            Unsteady::Registers => "they read a queue or what changes when it is touched",
            Unsteady::NoStorage => "not all of it goes to one piece of memory",
            Unsteady::SplitReads => "the root complex splits what one card reads of another",
            Unsteady::Channels => "they are dealt to several channels of an engine",
            Unsteady::Relayed => "cards hand on what comes to them",
            Unsteady::Faults => "something is to go wrong",
            Unsteady::Cached => "the last-level cache answers some reads sooner than others",
            Unsteady::Translated => "an IOMMU translates what they ask for",
            Unsteady::Irregular => "no state came again while it was looked for",
        }
    }
}

impl Steady {
    /// The same of another run: what both left out, and why either left out nothing.
    pub fn add(&mut self, other: Steady) {
        self.transfers = self.transfers.saturating_add(other.transfers);
        self.skipped = self.skipped.saturating_add(other.skipped);
        self.period = if other.period > 0 { other.period } else { self.period };
        self.because = other.because.or(self.because);
    }
}
