//! Causes of stalls: the resource or event that a core or a DMA engine lacks.

/// The constraint that was satisfied last before a core or a DMA engine could continue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// Instruction issue: the core runs at its own speed.
    Issue,
    /// An uncached (or write-through) access waits until the previous one is acknowledged.
    StrongOrdering,
    /// A store hits a line whose write-combining buffer is being evicted.
    SameLine,
    /// All write-combining or fill buffers are in use, for a round trip to the root complex.
    WcBuffers,
    /// The root complex accepts requests at a limited rate.
    RootComplex,
    /// The link is transmitting other packets.
    LinkBusy,
    /// Flow-control credits are in flight from a receiver that is not busy.
    Credit,
    /// The receiver has returned no flow-control credits, because the device drains its buffers at a limited rate.
    Device,
    /// A read waits for its completion.
    ReadRoundTrip,
    /// A fence waits for earlier accesses.
    Fence,
    /// All instructions have been issued; the last bytes are in flight to the device.
    Transit,
    /// The kernel: entry, exit, and driver code other than copying.
    Driver,
    /// The DMA engine issues requests at a limited rate.
    Engine,
    /// All tags are in use by outstanding reads.
    Tag,
    /// A link replays a corrupted TLP, or its replay buffer is full of unacknowledged TLPs.
    Replay,
    /// The core waits for a DMA transfer by the device.
    Transfer,
    /// The device waits for a descriptor from host memory.
    Descriptor,
    /// The interrupt message has reached the root complex, but its handler has not run yet.
    Interrupt,
    /// A FIFO of the device is empty or too full.
    Fifo,
    /// The IOMMU translates an address, including page walks.
    Translation,
    /// The maximum number of cache-line flushes is in flight.
    Flush,
    /// The runtime library between program and driver.
    Runtime,
    /// The core leaves an idle state.
    Idle,
    /// The device runs the launched kernels.
    Compute,
}

impl Cause {
    /// All causes; the position of a cause is its [`Cause::index`].
    pub const ALL: [Cause; 24] = [
        Cause::Issue,
        Cause::StrongOrdering,
        Cause::SameLine,
        Cause::WcBuffers,
        Cause::RootComplex,
        Cause::LinkBusy,
        Cause::Credit,
        Cause::Device,
        Cause::ReadRoundTrip,
        Cause::Fence,
        Cause::Transit,
        Cause::Driver,
        Cause::Engine,
        Cause::Tag,
        Cause::Replay,
        Cause::Transfer,
        Cause::Descriptor,
        Cause::Interrupt,
        Cause::Fifo,
        Cause::Translation,
        Cause::Flush,
        Cause::Runtime,
        Cause::Idle,
        Cause::Compute,
    ];

    /// Position in [`Cause::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Issue => "issue",
            Cause::StrongOrdering => "strong_ordering",
            Cause::SameLine => "same_line",
            Cause::WcBuffers => "wc_buffers",
            Cause::RootComplex => "root_complex",
            Cause::LinkBusy => "link_busy",
            Cause::Credit => "credit",
            Cause::Device => "device",
            Cause::ReadRoundTrip => "read_round_trip",
            Cause::Fence => "fence",
            Cause::Transit => "transit",
            Cause::Driver => "driver",
            Cause::Engine => "engine",
            Cause::Tag => "tag",
            Cause::Replay => "replay",
            Cause::Transfer => "transfer",
            Cause::Descriptor => "descriptor",
            Cause::Interrupt => "interrupt",
            Cause::Fifo => "fifo",
            Cause::Translation => "translation",
            Cause::Flush => "flush",
            Cause::Runtime => "runtime",
            Cause::Idle => "idle",
            Cause::Compute => "compute",
        }
    }

    /// Explanation in one clause: "it waited because ...".
    #[must_use]
    pub const fn explanation(self) -> &'static str {
        match self {
            Cause::Issue => "the core issues instructions at a limited rate",
            Cause::StrongOrdering => "each access must be acknowledged before the next one starts",
            Cause::SameLine => "the previous write of the same line is in flight to the root complex",
            Cause::WcBuffers => "every write-combining or fill buffer is in use",
            Cause::RootComplex => "the root complex accepts requests at a limited rate",
            Cause::LinkBusy => "the link is busy",
            Cause::Credit => "flow-control credits have not been returned yet",
            Cause::Device => "the device accepts data at a limited rate",
            Cause::ReadRoundTrip => "a read waits for its completion",
            Cause::Fence => "a fence waits for earlier accesses",
            Cause::Transit => "the last bytes are in flight to the device",
            Cause::Driver => "the system call or driver is executing",
            Cause::Engine => "the device's DMA engine issues requests at a limited rate",
            Cause::Tag => "all tags are in use by outstanding reads",
            Cause::Replay => "a link replays a TLP, or its replay buffer is full",
            Cause::Transfer => "the core waits for the device's DMA transfer",
            Cause::Descriptor => "the device has no descriptor yet",
            Cause::Interrupt => "the interrupt has not reached its handler",
            Cause::Fifo => "a FIFO inside the device is empty or full",
            Cause::Translation => "the IOMMU is translating addresses",
            Cause::Flush => "cache lines are being flushed to memory",
            Cause::Runtime => "the runtime library is executing",
            Cause::Idle => "the core is leaving an idle state",
            Cause::Compute => "the device is running the launched kernels",
        }
    }

    /// What to change to reduce the stall.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            Cause::Issue => "wider accesses, if the core is the limit; otherwise nothing",
            Cause::StrongOrdering => "map the BAR write-combining, or move more bytes per access",
            Cause::SameLine => "fill whole lines in order; do not return to an earlier line",
            Cause::WcBuffers => "use more cores, or let the device read by DMA",
            Cause::RootComplex => "issue fewer and larger requests",
            Cause::LinkBusy => "small payloads: raise MPS; otherwise a wider or faster link",
            Cause::Credit => "more credits at the receiver, or a lower round-trip latency",
            Cause::Device => "a faster data path behind the BAR",
            Cause::ReadRoundTrip => "more outstanding reads, larger reads, or writes by the other side",
            Cause::Fence => "fence less often: once per message, not once per store",
            Cause::Transit => "move more bytes at a time; for a single message this is the latency",
            Cause::Driver => "move more bytes per call, or map the BAR",
            Cause::Engine => "larger requests, or larger blocks per descriptor",
            Cause::Tag => "more tags, or larger reads (MRRS)",
            Cause::Transfer => "look at the stall causes of the DMA engine",
            Cause::Descriptor => "prefetch more descriptors, or let the core write them to the device",
            Cause::Interrupt => "poll if the wait is short",
            Cause::Translation => "larger pages, a smaller working set, or permanent mappings",
            Cause::Flush => "smaller buffers, a write-combining mapping, or a coherent device",
            Cause::Runtime => {
                "fewer and larger calls: more bytes per copy, more launches per wait, fewer buffers per kernel"
            }
            Cause::Compute => "several launches per wait, or more work per launch",
            Cause::Idle => "forbid deep idle states (cpupower idle-set), or poll if the wait is short",
            Cause::Fifo => "a faster clock or wider data path of the user logic, or a larger FIFO",
            Cause::Replay => "check slot, cable and lanes; a replay buffer sized for a round trip",
        }
    }

    /// The cause of this name; `None` if unknown.
    ///
    /// ```
    /// use lanemark_machine::Cause;
    /// assert_eq!(Cause::named("tag"), Some(Cause::Tag));
    /// assert_eq!(Cause::named("weather"), None);
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<Cause> {
        Cause::ALL.into_iter().find(|cause| cause.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_of_a_cause_is_its_position_in_all() {
        for (place, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(cause.index(), place);
        }
    }
}
