//! A machine as data, and the list of its sections.

use crate::param::Origin;

/// Name of the root complex as a value of `below`.
pub const ROOT: &str = "root";

/// Version of the platform format.
pub const SCHEMA: u32 = 2;

/// Declares [`Platform`] and everything that lists its sections. A section occurs `once`, is `optional`, or there are
/// `any_number` or `at_least_one` of it; it is of the host, of the card, or of the machine that connects them.
macro_rules! sections {
    (
        $(#[$doc:meta])*
        pub struct $platform:ident {
            text { $($(#[$tdoc:meta])* $text:ident,)* }
            $($(#[$sdoc:meta])* $field:ident: $occurs:ident $section:ident of $part:ident,)*
        }
    ) => {
        use crate::spec::{$($section,)*};

        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $platform {
            $($(#[$tdoc])* pub $text: String,)*
            $($(#[$sdoc])* pub $field: sections!(@type $occurs $section),)*
        }

        impl $platform {
            /// Keys of a file that are plain text and stand before its sections.
            pub const TEXTS: &'static [&'static str] = &[$(stringify!($text),)*];

            /// All sections of the format, in the order in which the guide lists them.
            pub const SECTIONS: &'static [crate::sections::SectionRow] = &[$(crate::sections::SectionRow {
                path: $section::PATH,
                part: crate::sections::SectionPart::$part,
                texts: $section::TEXTS,
                keys: $section::KEYS,
                is_repeated: <sections!(@type $occurs $section) as crate::occurrence::Occurrence>::IS_REPEATED,
                is_required: sections!(@is_required $occurs),
            },)*];

            /// The sections of this platform, by row.
            pub(crate) fn sections(&self) -> Vec<(&'static crate::sections::SectionRow, Vec<&dyn crate::sections::AnySection>)> {
                Self::SECTIONS.iter().zip([$(crate::occurrence::Occurrence::all(&self.$field),)*]).collect()
            }

            pub(crate) fn sections_mut(&mut self) -> Vec<(&'static crate::sections::SectionRow, Vec<&mut dyn crate::sections::AnySection>)> {
                Self::SECTIONS.iter().zip([$(crate::occurrence::Occurrence::all_mut(&mut self.$field),)*]).collect()
            }

            /// Creates a missing optional section if all its keys have defaults. Returns whether there is one afterwards.
            pub(crate) fn create_section(&mut self, path: &str) -> bool {
                match path {
                    $($section::PATH => crate::occurrence::Occurrence::create(&mut self.$field),)*
                    _ => false,
                }
            }
        }

        /// The sections of a file, as far as they could be read.
        pub(crate) struct Sections {
            $(pub(crate) $field: Result<sections!(@type $occurs $section), crate::occurrence::Noted>,)*
        }

        impl Sections {
            pub(crate) fn read(layers: &crate::layers::Layers<'_>, notes: &mut crate::notes::Notes<'_>) -> Sections {
                // As many rows as fields, in the same order.
                let mut rows = $platform::SECTIONS.iter();
                Sections {
                    $($field: match rows.next() {
                        Some(row) => crate::occurrence::Occurrence::read(row, layers, notes),
                        None => Err(crate::occurrence::Noted),
                    },)*
                }
            }

            /// The platform, if no section has problems.
            pub(crate) fn complete(self, $($text: String,)*) -> Option<$platform> {
                Some($platform { $($text,)* $($field: self.$field.ok()?,)* })
            }
        }
    };
    (@type once $section:ident) => { $section };
    (@type optional $section:ident) => { Option<$section> };
    (@type any_number $section:ident) => { Vec<$section> };
    (@type at_least_one $section:ident) => { Vec<$section> };
    (@is_required once) => { true };
    (@is_required optional) => { false };
    (@is_required any_number) => { false };
    (@is_required at_least_one) => { true };
}

sections! {
    /// A whole machine: cores, a root complex, and endpoints of one kind, each below a root port or a switch.
    pub struct Platform {
        text {
            /// Name, as targets and records show it.
            name,
            /// Processor and card in one line.
            summary,
        }
        /// The cores.
        core: once Core of Host,
        /// The kernel driver; `None` if unknown.
        driver: optional Driver of Host,
        /// The runtime through which programs give the card work, with its costs; `None` without one.
        runtime: optional Runtime of Card,
        /// The root complex.
        root_complex: once RootComplex of Host,
        /// Host memory as seen by devices; `None` if no device accesses it.
        memory: optional Memory of Host,
        /// The IOMMU that translates the addresses of devices; `None` without one.
        iommu: optional Iommu of Host,
        /// Cost of sharing memory between cores and devices; `None` if unknown.
        coherence: optional Coherence of Host,
        /// The link between an endpoint and the port above it.
        link: once Link of Card,
        /// The endpoint.
        endpoint: once Endpoint of Card,
        /// DMA engine of the endpoint; `None` without one.
        dma: optional Dma of Card,
        /// Extra costs of reads by the DMA engine; `None` if `dma` covers them.
        dma_read: optional DmaRead of Card,
        /// Extra costs of writes by the DMA engine; `None` if `dma` covers them.
        dma_write: optional DmaWrite of Card,
        /// FIFOs between the DMA engine and the user logic; `None` if they never stall it.
        fifos: optional Fifos of Card,
        /// Memory of the card, by ports; `None` if unknown.
        device_memory: optional DeviceMemory of Card,
        /// Kernels that the card runs; `None` if it runs none.
        kernel: optional Kernel of Card,
        /// MSI-X capability of the endpoint; `None` if it uses MSI.
        msi_x: optional MsiX of Card,
        /// Layout of the register region: timers and user registers; `None` if unknown.
        registers: optional Registers of Card,
        /// The switches, in any order.
        switches: any_number Switch of Machine,
        /// Positions of endpoints; empty for a single endpoint directly below the root.
        slots: any_number Slot of Machine,
        /// Retimers on links.
        retimers: any_number Retimer of Machine,
        /// Ports whose Device Control differs from that of the others.
        ports: any_number Port of Machine,
        /// Injected faults.
        faults: any_number Fault of Machine,
        /// Base address registers of the endpoint.
        bars: at_least_one Bar of Card,
        /// Regions behind the BARs.
        regions: at_least_one Region of Card,
    }
}

impl Platform {
    /// The region of this name.
    #[must_use]
    pub fn region(&self, name: &str) -> Option<&Region> {
        self.regions.iter().find(|region| region.name == name)
    }

    /// The BAR of this index.
    #[must_use]
    pub fn bar(&self, index: u8) -> Option<&Bar> {
        self.bars.iter().find(|bar| bar.index.value == u32::from(index))
    }

    /// The region that contains all of `len` bytes at `offset` in BAR `bar`.
    #[must_use]
    pub fn region_at(&self, bar: u8, offset: u64, len: u64) -> Option<&Region> {
        let end = offset.checked_add(len)?;
        self.regions.iter().find(|region| {
            region.bar.value == u32::from(bar)
                && offset >= region.offset_bytes.value
                && end <= region.offset_bytes.value + region.size_bytes.value
        })
    }
}

impl Platform {
    /// Calls `visit` with the origin of every value.
    pub(crate) fn each_origin(&self, visit: &mut dyn FnMut(&Origin)) {
        for section in self.sections().into_iter().flat_map(|(_, sections)| sections) {
            section.each(&mut |_, _, origin| visit(origin));
        }
    }
}
