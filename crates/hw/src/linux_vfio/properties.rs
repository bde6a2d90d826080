//! Properties of an I/O address space.

use lanemark_units::Iova;

/// IOVAs that the IOMMU translates, both included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IovaSpan {
    /// First byte.
    pub first: Iova,
    /// Last byte.
    pub last: Iova,
}

/// Properties of the IOMMU, as the kernel reports them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IommuProperties {
    /// Bytes of the smallest mapping, a power of two of at least 4 KiB: IOVAs and lengths are multiples of it.
    pub granule: u64,
    /// Page sizes, one bit each: bit 12 is 4 KiB. `None` if the kernel does not report them; iommufd does not.
    pub page_sizes: Option<u64>,
    /// IOVAs that can be mapped, ascending, without the reserved regions; empty if the kernel does not report them.
    pub spans: Vec<IovaSpan>,
    /// Number of further mappings, if the kernel reports it; iommufd has no such limit.
    pub mappings_left: Option<u32>,
}

impl IommuProperties {
    /// Those of a device whose addresses no IOMMU translates: every page can be used.
    pub(super) const fn untranslated() -> IommuProperties {
        IommuProperties { granule: 4096, page_sizes: None, spans: Vec::new(), mappings_left: None }
    }
}
