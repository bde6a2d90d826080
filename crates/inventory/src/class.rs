//! Class codes of functions.

use std::fmt;

/// Base class, subclass and programming interface of a function.
///
/// ```
/// use lanemark_inventory::Class;
/// let class = Class(0x01_08_02);
/// assert_eq!((class.base(), class.sub(), class.interface()), (0x01, 0x08, 0x02));
/// assert_eq!(class.to_string(), "Non-Volatile memory controller");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Class(pub u32);

impl Class {
    /// The base class.
    #[must_use]
    pub const fn base(self) -> u8 {
        (self.0 >> 16) as u8
    }

    /// The subclass.
    #[must_use]
    pub const fn sub(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// The programming interface.
    #[must_use]
    pub const fn interface(self) -> u8 {
        self.0 as u8
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match name_of(self.0 >> 8) {
            Some(name) => f.write_str(name),
            None => write!(f, "Class {:04x}", self.0 >> 8),
        }
    }
}

/// The class with this `lspci` name and interface 0; `None` for a name that is not in the table.
#[must_use]
pub fn class_named(name: &str) -> Option<Class> {
    if let Some(code) = name.strip_prefix("Class ") {
        return u32::from_str_radix(code, 16).ok().filter(|code| *code <= 0xffff).map(|code| Class(code << 8));
    }
    NAMES.iter().find(|(_, of_row)| *of_row == name).map(|(code, _)| Class(code << 8))
}

fn name_of(class_and_sub: u32) -> Option<&'static str> {
    let at = NAMES.binary_search_by_key(&class_and_sub, |(code, _)| *code).ok()?;
    Some(NAMES[at].1)
}

/// Base class and subclass with the name that `lspci` prints, by code.
///
/// Source of the codes: PCI Code and ID Assignment Specification 1.16, chapter 1.
#[rustfmt::skip]
const NAMES: [(u32, &str); 88] = [
    (0x0000, "Non-VGA unclassified device"),
    (0x0001, "VGA compatible unclassified device"),
    (0x0100, "SCSI storage controller"),
    (0x0101, "IDE interface"),
    (0x0102, "Floppy disk controller"),
    (0x0103, "IPI bus controller"),
    (0x0104, "RAID bus controller"),
    (0x0105, "ATA controller"),
    (0x0106, "SATA controller"),
    (0x0107, "Serial Attached SCSI controller"),
    (0x0108, "Non-Volatile memory controller"),
    (0x0109, "Universal Flash Storage controller"),
    (0x0180, "Mass storage controller"),
    (0x0200, "Ethernet controller"),
    (0x0201, "Token ring network controller"),
    (0x0202, "FDDI network controller"),
    (0x0203, "ATM network controller"),
    (0x0204, "ISDN controller"),
    (0x0205, "WorldFip controller"),
    (0x0206, "PICMG controller"),
    (0x0207, "Infiniband controller"),
    (0x0208, "Fabric controller"),
    (0x0280, "Network controller"),
    (0x0300, "VGA compatible controller"),
    (0x0301, "XGA compatible controller"),
    (0x0302, "3D controller"),
    (0x0380, "Display controller"),
    (0x0400, "Multimedia video controller"),
    (0x0401, "Multimedia audio controller"),
    (0x0402, "Computer telephony device"),
    (0x0403, "Audio device"),
    (0x0480, "Multimedia controller"),
    (0x0500, "RAM memory"),
    (0x0501, "FLASH memory"),
    (0x0502, "CXL"),
    (0x0580, "Memory controller"),
    (0x0600, "Host bridge"),
    (0x0601, "ISA bridge"),
    (0x0602, "EISA bridge"),
    (0x0603, "MicroChannel bridge"),
    (0x0604, "PCI bridge"),
    (0x0605, "PCMCIA bridge"),
    (0x0606, "NuBus bridge"),
    (0x0607, "CardBus bridge"),
    (0x0608, "RACEway bridge"),
    (0x0609, "Semi-transparent PCI-to-PCI bridge"),
    (0x060a, "InfiniBand to PCI host bridge"),
    (0x0680, "Bridge"),
    (0x0700, "Serial controller"),
    (0x0701, "Parallel controller"),
    (0x0702, "Multiport serial controller"),
    (0x0703, "Modem"),
    (0x0780, "Communication controller"),
    (0x0800, "PIC"),
    (0x0801, "DMA controller"),
    (0x0802, "Timer"),
    (0x0803, "RTC"),
    (0x0804, "PCI Hot-plug controller"),
    (0x0805, "SD Host controller"),
    (0x0806, "IOMMU"),
    (0x0807, "Root Complex Event Collector"),
    (0x0880, "System peripheral"),
    (0x0900, "Keyboard controller"),
    (0x0980, "Input device controller"),
    (0x0a00, "Generic Docking Station"),
    (0x0b40, "Co-processor"),
    (0x0c00, "FireWire (IEEE 1394)"),
    (0x0c03, "USB controller"),
    (0x0c04, "Fibre Channel"),
    (0x0c05, "SMBus"),
    (0x0c06, "InfiniBand"),
    (0x0c07, "IPMI Interface"),
    (0x0c0a, "I3C"),
    (0x0c80, "Serial bus controller"),
    (0x0d11, "Bluetooth"),
    (0x0d80, "Wireless controller"),
    (0x0e00, "I2O"),
    (0x0f00, "Satellite communications controller"),
    (0x1000, "Network and computing encryption device"),
    (0x1010, "Entertainment encryption device"),
    (0x1080, "Encryption controller"),
    (0x1100, "DPIO module"),
    (0x1101, "Performance counters"),
    (0x1110, "Communication synchronizer"),
    (0x1180, "Signal processing controller"),
    (0x1200, "Processing accelerators"),
    (0x1300, "Non-Essential Instrumentation"),
    (0xff00, "Unassigned class"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_name_maps_to_its_code_and_back() {
        assert!(NAMES.is_sorted_by(|a, b| a.0 < b.0));
        for (code, name) in NAMES {
            assert_eq!(class_named(name), Some(Class(code << 8)));
            assert_eq!(Class(code << 8 | 1).to_string(), name);
        }
    }

    #[test]
    fn a_class_without_a_name_prints_its_code() {
        assert_eq!(Class(0xab_cd_00).to_string(), "Class abcd");
        assert_eq!(class_named("Class abcd"), Some(Class(0xab_cd_00)));
        assert_eq!((class_named("Class 1ffff"), class_named("Class x"), class_named("Teapot")), (None, None, None));
    }
}
