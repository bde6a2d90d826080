//! Causes of stalls: the resource or event that a core or a DMA engine lacks.

/// Declares [`Cause`]. One row has the name of a cause in records, its explanation and its remedy.
macro_rules! causes {
    ($(
        $(#[$doc:meta])*
        $cause:ident { name: $name:literal, explanation: $explanation:literal, remedy: $remedy:literal }
    )*) => {
        /// The constraint that was satisfied last before a core or a DMA engine could continue.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Cause {
            $($(#[$doc])* $cause,)*
        }

        impl Cause {
            /// All causes; the position of a cause is its [`Cause::index`].
            pub const ALL: [Cause; [$(Cause::$cause),*].len()] = [$(Cause::$cause),*];

            /// Name in records.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Cause::$cause => $name,)*
                }
            }

            /// Explanation in one clause: "it waited because ...".
            #[must_use]
            pub const fn explanation(self) -> &'static str {
                match self {
                    $(Cause::$cause => $explanation,)*
                }
            }

            /// Change that reduces the stall.
            #[must_use]
            pub const fn remedy(self) -> &'static str {
                match self {
                    $(Cause::$cause => $remedy,)*
                }
            }
        }
    };
}

causes! {
    /// Instruction issue: the core runs at its own speed.
    Issue {
        name: "issue",
        explanation: "the core issues instructions at a limited rate",
        remedy: "wider accesses, if the core is the limit; otherwise nothing"
    }
    /// An uncached (or write-through) access waits until the previous one is acknowledged.
    StrongOrdering {
        name: "strong_ordering",
        explanation: "each access must be acknowledged before the next one starts",
        remedy: "map the BAR write-combining, or move more bytes per access"
    }
    /// A store hits a line whose write-combining buffer is being evicted.
    SameLine {
        name: "same_line",
        explanation: "the previous write of the same line is in flight to the root complex",
        remedy: "fill whole lines in order; do not return to an earlier line"
    }
    /// All write-combining or fill buffers are in use, for a round trip to the root complex.
    WcBuffers {
        name: "wc_buffers",
        explanation: "every write-combining or fill buffer is in use",
        remedy: "use more cores, or let the device read by DMA"
    }
    /// Every buffer between a DMA engine and its link holds a TLP that has not left.
    SendBuffers {
        name: "send_buffers",
        explanation: "every buffer between the DMA engine and its link is in use",
        remedy: "more send buffers, a lower latency to the link, or fewer and larger requests"
    }
    /// The root complex accepts requests at a limited rate.
    RootComplex {
        name: "root_complex",
        explanation: "the root complex accepts requests at a limited rate",
        remedy: "issue fewer and larger requests"
    }
    /// Host memory accepts requests at a limited rate.
    Memory {
        name: "memory",
        explanation: "host memory accepts requests at a limited rate",
        remedy: "issue fewer and larger requests; write whole lines"
    }
    /// The link is transmitting other packets.
    LinkBusy {
        name: "link_busy",
        explanation: "the link is busy",
        remedy: "small payloads: raise MPS; otherwise a wider or faster link"
    }
    /// Flow-control credits are in flight from a receiver that is not busy.
    Credit {
        name: "credit",
        explanation: "flow-control credits have not been returned yet",
        remedy: "more credits at the receiver, or a lower round-trip latency"
    }
    /// The receiver has returned no flow-control credits, because the device drains its buffers at a limited rate.
    Device {
        name: "device",
        explanation: "the device accepts data at a limited rate",
        remedy: "a faster data path behind the BAR"
    }
    /// A read waits for its completion.
    ReadRoundTrip {
        name: "read_round_trip",
        explanation: "a read waits for its completion",
        remedy: "more outstanding reads, larger reads, or writes by the other side"
    }
    /// A fence waits for earlier accesses.
    Fence {
        name: "fence",
        explanation: "a fence waits for earlier accesses",
        remedy: "fence less often: once per message, not once per store"
    }
    /// All instructions have been issued; the last bytes are in flight to the device.
    Transit {
        name: "transit",
        explanation: "the last bytes are in flight to the device",
        remedy: "move more bytes at a time; for a single message this is the latency"
    }
    /// The kernel: entry, exit, and driver code other than copying.
    Driver {
        name: "driver",
        explanation: "the system call or driver is executing",
        remedy: "move more bytes per call, or map the BAR"
    }
    /// The DMA engine issues requests at a limited rate.
    Engine {
        name: "engine",
        explanation: "the device's DMA engine issues requests at a limited rate",
        remedy: "larger requests, or larger blocks per descriptor"
    }
    /// The card's data path carries other beats.
    DataPath {
        name: "data_path",
        explanation: "the card's data path carries one beat at a time",
        remedy: "a faster clock or a wider data path"
    }
    /// All tags are in use by outstanding reads.
    Tag {
        name: "tag",
        explanation: "all tags are in use by outstanding reads",
        remedy: "more tags, or larger reads (MRRS)"
    }
    /// A link replays a corrupted TLP, or its replay buffer is full of unacknowledged TLPs.
    Replay {
        name: "replay",
        explanation: "a link replays a TLP, or its replay buffer is full",
        remedy: "check slot, cable and lanes; a replay buffer sized for a round trip"
    }
    /// The core waits for a DMA transfer by the device.
    Transfer {
        name: "transfer",
        explanation: "the core waits for the device's DMA transfer",
        remedy: "look at the other shares: they are those of the transfer"
    }
    /// The device waits for a descriptor from host memory.
    Descriptor {
        name: "descriptor",
        explanation: "the device has no descriptor yet",
        remedy: "prefetch more descriptors, or let the core write them to the device"
    }
    /// The interrupt message has reached the root complex, but its handler has not run yet.
    Interrupt {
        name: "interrupt",
        explanation: "the interrupt has not reached its handler",
        remedy: "poll if the wait is short"
    }
    /// A FIFO of the device is empty or too full.
    Fifo {
        name: "fifo",
        explanation: "a FIFO inside the device is empty or full",
        remedy: "a faster clock or wider data path of the user logic, or a larger FIFO"
    }
    /// The IOMMU translates an address, including page walks.
    Translation {
        name: "translation",
        explanation: "the IOMMU is translating addresses",
        remedy: "larger pages, a smaller working set, or permanent mappings"
    }
    /// The maximum number of cache-line flushes is in flight.
    Flush {
        name: "flush",
        explanation: "cache lines are being flushed to memory",
        remedy: "smaller buffers, a write-combining mapping, or a coherent device"
    }
    /// The runtime library between program and driver.
    Runtime {
        name: "runtime",
        explanation: "the runtime library is executing",
        remedy: "fewer and larger calls: more bytes per copy, more launches per wait, fewer buffers per kernel"
    }
    /// The core leaves an idle state.
    Idle {
        name: "idle",
        explanation: "the core is leaving an idle state",
        remedy: "forbid deep idle states (cpupower idle-set), or poll if the wait is short"
    }
    /// Words and bus turnarounds occupy a port of device memory.
    MemoryPort {
        name: "memory_port",
        explanation: "words pass through a port of device memory one at a time",
        remedy: "more ports, a faster or wider port, or kernels that use all bytes of a word"
    }
    /// A kernel starts one loop iteration an initiation interval.
    InitiationInterval {
        name: "initiation_interval",
        explanation: "a kernel starts one iteration an initiation interval",
        remedy: "more kernels, a faster clock, a shorter interval, or more work per iteration"
    }
    /// A load unit has as many words outstanding as it can keep.
    OutstandingWords {
        name: "outstanding_words",
        explanation: "a load unit of a kernel has no space for more outstanding words",
        remedy: "load units with more words, more kernels, or memory with a lower latency"
    }
    /// The additions of one sum are sequential.
    Additions {
        name: "additions",
        explanation: "each addition of a sum waits for the previous one",
        remedy: "partial sums, an adder with a lower latency, or more kernels"
    }
    /// The device runs the launched kernels.
    Compute {
        name: "compute",
        explanation: "the device is running the launched kernels",
        remedy: "several launches per wait, or more work per launch"
    }
}

impl Cause {
    /// Position in [`Cause::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether the platform's parameter `key` can shorten time that is spent for this cause.
    ///
    /// Latency can be shortened, or hidden by more of what limits its overlap.
    ///
    /// ```
    /// use lanemark_machine::Cause;
    /// assert!(Cause::Tag.is_changed_by("dma.tags") && Cause::Tag.is_changed_by("memory.read_ns"));
    /// assert!(Cause::LinkBusy.is_changed_by("link.generation") && !Cause::LinkBusy.is_changed_by("dma.tags"));
    /// ```
    #[must_use]
    pub fn is_changed_by(self, key: &str) -> bool {
        let is_in = |sections: &[&str]| sections.iter().any(|section| key.starts_with(section));
        let ends = |names: &[&str]| names.iter().any(|name| key.ends_with(name));
        // Larger packets have fewer headers and fewer fixed costs.
        let packets =
            || ends(&["mps_bytes", "mrrs_bytes", "read_bytes", "write_bytes", "boundary_bytes", "completion_bytes"]);
        match self {
            Cause::LinkBusy | Cause::Replay => is_in(&["link.", "switch.", "retimer.", "slot."]) || packets(),
            Cause::DataPath => ends(&["beat_ns", "beat_bytes"]) || packets(),
            Cause::Engine => is_in(&["dma.", "dma_read.", "dma_write."]) || packets(),
            Cause::Device => is_in(&["region.", "endpoint."]) || packets(),
            Cause::RootComplex => is_in(&["root_complex."]) || packets(),
            Cause::Memory => is_in(&["memory."]) || packets(),
            Cause::Issue => is_in(&["core.", "memcpy."]),
            Cause::Driver => is_in(&["driver.", "core."]),
            Cause::Runtime => is_in(&["runtime.", "core."]),
            Cause::MemoryPort => {
                ends(&["device_memory.ports", "port_bytes", "word_ns", "turnaround_ns", "keeps_words", "burst_words"])
            }
            Cause::InitiationInterval => ends(&["interval_cycles", "kernel.clock_ghz", "cycle_growth_percent"]),
            Cause::OutstandingWords => {
                is_in(&["device_memory."]) || ends(&["unit_words", "keeps_words", "burst_words"])
            }
            Cause::Additions => ends(&["addition_cycles", "kernel.clock_ghz", "cycle_growth_percent"]),
            Cause::Compute => is_in(&["kernel.", "device_memory.", "runtime."]),
            Cause::Translation => is_in(&["iommu."]),
            Cause::Fifo => is_in(&["fifos."]),
            Cause::Flush => is_in(&["coherence.", "core."]),
            Cause::Tag => ends(&["tags", "_ns"]) || packets(),
            Cause::Credit => ends(&["credits", "headers", "data", "_ns"]) || packets(),
            Cause::WcBuffers | Cause::SendBuffers => ends(&["buffers", "entries", "_ns"]),
            Cause::Descriptor => ends(&["descriptors", "descriptor_bytes", "_ns"]),
            Cause::StrongOrdering
            | Cause::SameLine
            | Cause::ReadRoundTrip
            | Cause::Fence
            | Cause::Transit
            | Cause::Transfer
            | Cause::Interrupt
            | Cause::Idle => {
                let latency = ["_ns", "_ghz", "pipeline_cycles", "generation", "width_lanes", "beat_bytes"];
                ends(&latency) || ends(&["_in_flight", "buffers"])
            }
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
