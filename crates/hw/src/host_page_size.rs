//! Size of the pages of host memory for DMA.

use crate::drive_options::by_name;

/// Size of the pages of host memory for DMA. An IOMMU that has this page size needs one entry for each page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostPageSize {
    /// 4 KiB.
    Kib4,
    /// 2 MiB, of those that the system has reserved.
    Mib2,
    /// 1 GiB, of those that the system has reserved.
    Gib1,
}

impl HostPageSize {
    /// All sizes, in the order shown to users.
    pub const ALL: [HostPageSize; 3] = [HostPageSize::Kib4, HostPageSize::Mib2, HostPageSize::Gib1];

    /// Name in options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            HostPageSize::Kib4 => "4KiB",
            HostPageSize::Mib2 => "2MiB",
            HostPageSize::Gib1 => "1GiB",
        }
    }

    /// Bytes of a page.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            HostPageSize::Kib4 => 4 << 10,
            HostPageSize::Mib2 => 2 << 20,
            HostPageSize::Gib1 => 1 << 30,
        }
    }
}

by_name!(HostPageSize, "a size of host pages");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_parsed_from_its_name_and_another_is_refused_with_all_names() {
        for size in HostPageSize::ALL {
            assert_eq!(size.to_string().parse(), Ok(size));
            assert_eq!(lanemark_units::parse_size(size.name()), Ok(size.bytes()));
        }
        let error = "64KiB".parse::<HostPageSize>().unwrap_err().to_string();
        assert_eq!(error, "'64KiB' is not a size of host pages: use one of 4KiB, 2MiB, 1GiB");
    }
}
