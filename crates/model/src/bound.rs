//! Bounds: the resource that limits the time of a plan.

use lanemark_machine::Cause;

/// The largest term of a formula, which limits the time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Bound {
    /// Instruction issue of the core.
    Issue,
    /// Strong ordering: each access waits for the acknowledgment of the previous one.
    StrongOrdering,
    /// A line is written again before its previous write was acknowledged.
    SameLine,
    /// Buffers of a core over their round trip.
    Buffers,
    /// Buffers between a DMA engine and its link, over the latency to the link.
    SendBuffers,
    /// Bytes on the link.
    Link,
    /// Flow-control credits over their round trip.
    Credits,
    /// Replay buffer over the acknowledgment latency.
    Replay,
    /// Data path of the device.
    Device,
    /// Round trip of a read.
    ReadRoundTrip,
    /// Unloaded latency of a single request.
    Latency,
    /// A fence at the end of each iteration.
    Fence,
    /// The kernel and its driver.
    Driver,
    /// Request rate of the DMA engine.
    Engine,
    /// Outstanding reads over their latency.
    Tags,
    /// Request rate of host memory.
    Memory,
    /// Request rate of the root complex.
    RootComplex,
    /// Descriptors fetched by the device, over their latency.
    Descriptors,
    /// Interrupt delivery, handler and thread wake-up.
    Interrupt,
    /// Clock of the user logic at a FIFO.
    Queue,
    /// Page walks of the IOMMU.
    Translation,
    /// Cache-line flushes over their latency.
    Flush,
    /// Words through a port of device memory.
    Port,
    /// Iterations of a kernel, limited by its initiation interval.
    Interval,
    /// Outstanding words of a kernel's unit, over their latency.
    OutstandingWords,
    /// Sequential additions of a sum.
    Additions,
    /// The runtime library.
    Runtime,
    /// Kernels that run one at a time.
    Kernels,
}

impl Bound {
    /// Every bound, in the order of their declaration.
    pub(crate) const ALL: [Bound; 28] = [
        Bound::Issue,
        Bound::StrongOrdering,
        Bound::SameLine,
        Bound::Buffers,
        Bound::SendBuffers,
        Bound::Link,
        Bound::Credits,
        Bound::Replay,
        Bound::Device,
        Bound::ReadRoundTrip,
        Bound::Latency,
        Bound::Fence,
        Bound::Driver,
        Bound::Engine,
        Bound::Tags,
        Bound::Memory,
        Bound::RootComplex,
        Bound::Descriptors,
        Bound::Interrupt,
        Bound::Queue,
        Bound::Translation,
        Bound::Flush,
        Bound::Port,
        Bound::Interval,
        Bound::OutstandingWords,
        Bound::Additions,
        Bound::Runtime,
        Bound::Kernels,
    ];

    /// A short description.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Bound::Issue => "instruction issue",
            Bound::StrongOrdering => "one access per core round trip",
            Bound::SameLine => "one flush of a line per core round trip",
            Bound::Buffers => "buffers per round trip",
            Bound::SendBuffers => "send buffers per latency to the link",
            Bound::Link => "bytes on the link",
            Bound::Credits => "credits per round trip",
            Bound::Replay => "replay buffer per ACK latency",
            Bound::Device => "the device's data path",
            Bound::ReadRoundTrip => "one read round trip at a time",
            Bound::Latency => "latency of a request",
            Bound::Fence => "store drain at each fence",
            Bound::Driver => "the driver call",
            Bound::Engine => "request rate of the DMA engine",
            Bound::Tags => "outstanding reads per latency",
            Bound::Memory => "request rate of host memory",
            Bound::RootComplex => "request rate of the root complex",
            Bound::Descriptors => "descriptors per fetch latency",
            Bound::Interrupt => "interrupt and thread wake-up",
            Bound::Queue => "the user clock at a FIFO",
            Bound::Translation => "page walks of the IOMMU",
            Bound::Flush => "cache-line flushes in flight",
            Bound::Port => "words through a port of device memory",
            Bound::Interval => "the initiation interval of a kernel",
            Bound::OutstandingWords => "outstanding words per latency",
            Bound::Additions => "sequential additions of a row",
            Bound::Runtime => "the runtime",
            Bound::Kernels => "kernels, one after another",
        }
    }
}

impl Bound {
    /// Stall cause whose [`Cause::remedy`] raises this bound.
    ///
    /// A shortage of tags is a symptom if another resource releases them slowly. Only [`Bound::Tags`] therefore maps
    /// to [`Cause::Tag`].
    ///
    /// ```
    /// use lanemark_machine::Cause;
    /// use lanemark_model::Bound;
    /// assert_eq!(Bound::Engine.cause(), Cause::Engine);
    /// assert_eq!(Bound::Tags.cause(), Cause::Tag);
    /// ```
    #[must_use]
    pub const fn cause(self) -> Cause {
        match self {
            Bound::Issue => Cause::Issue,
            Bound::StrongOrdering => Cause::StrongOrdering,
            Bound::SameLine => Cause::SameLine,
            Bound::Buffers => Cause::WcBuffers,
            Bound::SendBuffers => Cause::SendBuffers,
            Bound::Link => Cause::LinkBusy,
            Bound::Credits => Cause::Credit,
            Bound::Replay => Cause::Replay,
            Bound::Device => Cause::Device,
            Bound::Memory => Cause::Memory,
            Bound::ReadRoundTrip => Cause::ReadRoundTrip,
            Bound::Latency => Cause::Transit,
            Bound::Fence => Cause::Fence,
            Bound::Driver => Cause::Driver,
            Bound::Engine => Cause::Engine,
            Bound::Tags => Cause::Tag,
            Bound::RootComplex => Cause::RootComplex,
            Bound::Descriptors => Cause::Descriptor,
            Bound::Interrupt => Cause::Interrupt,
            Bound::Queue => Cause::Fifo,
            Bound::Translation => Cause::Translation,
            Bound::Flush => Cause::Flush,
            Bound::Runtime => Cause::Runtime,
            Bound::Port => Cause::MemoryPort,
            Bound::Interval => Cause::InitiationInterval,
            Bound::OutstandingWords => Cause::OutstandingWords,
            Bound::Additions => Cause::Additions,
            Bound::Kernels => Cause::Compute,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_is_at_its_place() {
        for (place, bound) in Bound::ALL.into_iter().enumerate() {
            assert_eq!(bound as usize, place);
        }
        assert_eq!(Bound::ALL.last(), Some(&Bound::Kernels), "the last one of the enum");
    }
}
