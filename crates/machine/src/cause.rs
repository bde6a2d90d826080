//! What a core, or a device that moves bytes by itself, waited for.

/// The constraint that became ready last when it could go on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// Instructions issue at the core's own pace.
    Issue,
    /// The next uncached (or write-through) access may not start before the last one is acknowledged.
    StrongOrdering,
    /// The store hits a line whose write-combining buffer is still being emptied.
    SameLine,
    /// All write-combining or fill buffers are on their way to the root complex and back.
    WcBuffers,
    /// The root complex takes requests no faster.
    RootComplex,
    /// The link was sending something else.
    LinkBusy,
    /// Flow-control credits were on their way back from a receiver that was not busy.
    Credit,
    /// The receiver had returned no flow-control credit, because the device accepts no faster.
    Device,
    /// A read went to the device and its completion came back.
    ReadRoundTrip,
    /// A fence waited for earlier accesses.
    Fence,
    /// All instructions were issued; the last bytes are on their way to the device.
    Transit,
    /// The kernel: entering, leaving, and what the driver does besides copying.
    Driver,
    /// The device's DMA engine makes requests no faster.
    Engine,
    /// As many reads as it has tags are under way.
    Tag,
    /// A link sent a packet again that had come damaged, or its replay buffer was full of packets not acknowledged.
    Replay,
    /// The device moves bytes that the core waits for.
    Transfer,
    /// The device has no descriptor: it is on its way from host memory.
    Descriptor,
    /// The device said that it is done: the message is at the root complex and the handler has not run.
    Interrupt,
    /// A queue of the device was empty, or too full for what came.
    Fifo,
    /// The IOMMU looked up where an address leads, in its tables if need be.
    Translation,
    /// As many cached lines as can be are on their way to memory.
    Flush,
    /// The runtime works: a library between the program and the driver.
    Runtime,
    /// The core comes out of an idle state.
    Idle,
    /// The device runs what was launched.
    Compute,
}

impl Cause {
    /// Every cause; a cause's place in this list is its index in [`Cause::index`].
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

    /// Its place in [`Cause::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name in records.
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

    /// One clause a person understands: "it waited because ...".
    #[must_use]
    pub const fn explanation(self) -> &'static str {
        match self {
            Cause::Issue => "the core issues instructions no faster",
            Cause::StrongOrdering => "each access must be acknowledged before the next may start",
            Cause::SameLine => "the line written before is still on its way to the root complex",
            Cause::WcBuffers => "every write-combining or fill buffer is in use",
            Cause::RootComplex => "the root complex takes requests no faster",
            Cause::LinkBusy => "the link is busy",
            Cause::Credit => "flow-control credits are on their way back",
            Cause::Device => "the device accepts data no faster",
            Cause::ReadRoundTrip => "the completion of a read is on its way",
            Cause::Fence => "a fence waits for earlier accesses",
            Cause::Transit => "the last bytes are on their way to the device",
            Cause::Driver => "the operating system is working",
            Cause::Engine => "the device's DMA engine makes requests no faster",
            Cause::Tag => "every tag has a read under way",
            Cause::Replay => "a link sends a packet again, or keeps too many that are not acknowledged",
            Cause::Transfer => "the device is moving the bytes",
            Cause::Descriptor => "the device has no descriptor yet",
            Cause::Interrupt => "the interrupt has not reached its handler",
            Cause::Fifo => "a queue inside the device is empty, or full",
            Cause::Translation => "the IOMMU looks up where addresses lead",
            Cause::Flush => "cached lines are on their way to memory",
            Cause::Runtime => "the runtime is working",
            Cause::Idle => "the core comes out of an idle state",
            Cause::Compute => "the device runs what was launched",
        }
    }

    /// What can be done about it.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            Cause::Issue => "nothing; wider accesses, if the core is what limits",
            Cause::StrongOrdering => "map the BAR write-combining, or move more with each access",
            Cause::SameLine => "fill lines whole and in order; do not come back to one",
            Cause::WcBuffers => "use more cores, or let the device fetch",
            Cause::RootComplex => "make fewer and larger requests",
            Cause::LinkBusy => "it is the limit, unless small payloads fill it: raise MPS; widen or speed up the link",
            Cause::Credit => "more credits at the receiver, or a shorter way",
            Cause::Device => "a faster data path behind the BAR",
            Cause::ReadRoundTrip => "more loads or transfers at once, larger ones, or let the other side write",
            Cause::Fence => "fence less often: once a message, not once a store",
            Cause::Transit => "move more at once; for one message it is the latency",
            Cause::Driver => "move more per call, or map the BAR",
            Cause::Engine => "larger requests, larger pages behind a descriptor",
            Cause::Tag => "more tags, or larger reads (MRRS)",
            Cause::Transfer => "it is the transfer: see what the engine waits for",
            Cause::Descriptor => "prefetch more, or let the core write them",
            Cause::Interrupt => "poll, where the wait is short",
            Cause::Translation => "larger pages, fewer of them in turns, or memory that stays mapped",
            Cause::Flush => "smaller buffers, a write-combining mapping, or a device that caches listen to",
            Cause::Runtime => "fewer and larger calls: more bytes a copy, more launches a wait, fewer buffers a kernel",
            Cause::Compute => "launch several before one wait, or more work at once",
            Cause::Idle => "forbid deep idle states (cpupower idle-set), or poll, where the wait is short",
            Cause::Fifo => "a faster clock or wider beats of what feeds and empties it, or a larger queue",
            Cause::Replay => "the slot, the cable, the lanes; a replay buffer that holds a round trip",
        }
    }

    /// The cause of this name; `None` for one that this program does not know.
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
    fn the_index_of_a_cause_is_its_place_in_the_list() {
        for (place, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(cause.index(), place);
        }
    }
}
