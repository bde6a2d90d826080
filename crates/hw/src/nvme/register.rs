//! Registers of a controller.

use super::memory::Bar;
use rustix::io::Errno;

/// A register: its name in messages and its offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Register {
    pub(super) name: &'static str,
    pub(super) offset: u64,
    pub(super) width: u8,
}

/// Declares registers: constant, name, offset, bytes, and the section of the NVM Express Base Specification 2.0.
macro_rules! registers {
    ($($constant:ident, $offset:literal, $width:literal, $source:literal;)*) => {$(
        #[doc = concat!("Source: NVM Express Base Specification 2.0, ", $source, ".")]
        pub(super) const $constant: Register =
            Register { name: stringify!($constant), offset: $offset, width: $width };
    )*};
}

registers! {
    CAP,  0x00, 8, "3.1.3.1 Controller Capabilities";
    CC,   0x14, 4, "3.1.3.5 Controller Configuration";
    CSTS, 0x1c, 4, "3.1.3.6 Controller Status";
    AQA,  0x24, 4, "3.1.3.8 Admin Queue Attributes";
    ASQ,  0x28, 8, "3.1.3.9 Admin Submission Queue Base Address";
    ACQ,  0x30, 8, "3.1.3.10 Admin Completion Queue Base Address";
    CMBLOC, 0x38, 4, "3.1.3.11 Controller Memory Buffer Location";
    CMBSZ,  0x3c, 4, "3.1.3.12 Controller Memory Buffer Size";
    CMBMSC, 0x50, 8, "3.1.3.16 Controller Memory Buffer Memory Space Control";
    CMBSTS, 0x58, 4, "3.1.3.17 Controller Memory Buffer Status";
}

/// First doorbell. Source: NVM Express over PCIe Transport Specification 1.0, 3.1.2.
const DOORBELLS: u64 = 0x1000;

/// Value of CC that enables a controller: the NVM command set, pages of 4 KiB, round robin, entries of 64 B and 16 B.
/// Source: NVM Express Base Specification 2.0, 3.1.3.5: EN is bit 0, IOSQES bits 19:16, IOCQES bits 23:20, both as powers of two.
pub(super) const ENABLE: u64 = 1 | 6 << 16 | 4 << 20;
/// CSTS.RDY and CSTS.CFS. Source: NVM Express Base Specification 2.0, 3.1.3.6.
pub(super) const READY: u64 = 1;
/// See [`READY`].
pub(super) const FATAL: u64 = 1 << 1;

/// The fields of CAP that are used. Source: NVM Express Base Specification 2.0, 3.1.3.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Capabilities(pub(super) u64);

impl Capabilities {
    const fn field(self, from: u32, to: u32) -> u64 {
        (self.0 >> from) & ((1 << (to - from + 1)) - 1)
    }

    /// Most entries of a queue: MQES, which counts from 0.
    pub(super) const fn most_entries(self) -> u64 {
        self.field(0, 15) + 1
    }

    /// Longest time until CSTS.RDY follows CC.EN: TO, in units of 500 ms. A controller that reports 0 gets one unit.
    pub(super) const fn ready_ms(self) -> u64 {
        let units = self.field(24, 31);
        500 * if units == 0 { 1 } else { units }
    }

    /// Bytes between two doorbells: DSTRD.
    const fn stride(self) -> u64 {
        4 << self.field(32, 35)
    }

    /// Whether it has the NVM command set: CSS bit 0.
    pub(super) const fn has_nvm(self) -> bool {
        self.field(37, 37) == 1
    }

    /// Smallest page: MPSMIN.
    pub(super) const fn least_page(self) -> u64 {
        4096 << self.field(48, 51)
    }

    /// Whether the controller memory buffer has the register CMBMSC: CMBS.
    pub(super) const fn has_cmb_control(self) -> bool {
        self.field(57, 57) == 1
    }

    /// Doorbell of a queue: of its submissions, or of its completions.
    pub(super) const fn doorbell(self, queue: u16, is_completion: bool) -> u64 {
        DOORBELLS + (2 * queue as u64 + is_completion as u64) * self.stride()
    }
}

/// Number of I/O queue pairs, at most `most`, whose doorbells are within the `len` bytes of the BAR, and the end of their registers.
/// It is at least one: if its doorbells are outside, so are registers of every run.
///
/// # Errors
/// Error of an access to `bar`.
pub(crate) fn registers_end(bar: &impl Bar, most: u32, len: u64) -> Result<(u32, u64), Errno> {
    // A controller that does not respond has no doorbells, and enabling it names the error.
    let capabilities = load(bar, CAP)?;
    let capabilities = Capabilities(if capabilities == u64::MAX { 0 } else { capabilities });
    let end = |pairs: u32| capabilities.doorbell(pairs as u16, true) + 4;
    let pairs = (1..=most).rev().find(|pairs| end(*pairs) <= len).unwrap_or(1);
    Ok((pairs, end(pairs)))
}

/// Loads a register, in parts of 4 B: every controller permits these.
pub(super) fn load(bar: &impl Bar, register: Register) -> Result<u64, Errno> {
    let low = bar.load(register.offset, 4)?;
    Ok(if register.width == 8 { low | bar.load(register.offset + 4, 4)? << 32 } else { low })
}

/// Stores a register, as [`load`].
pub(super) fn store(bar: &impl Bar, register: Register, value: u64) -> Result<(), Errno> {
    bar.store(register.offset, 4, value & 0xffff_ffff)?;
    if register.width == 8 { bar.store(register.offset + 4, 4, value >> 32) } else { Ok(()) }
}

/// Stores a register of 8 B whose lower part has the bits that make it take effect.
pub(super) fn store_high_first(bar: &impl Bar, register: Register, value: u64) -> Result<(), Errno> {
    bar.store(register.offset + 4, 4, value >> 32)?;
    bar.store(register.offset, 4, value & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::super::fake::{Fake, FakeMemory, Fault};
    use super::*;

    #[test]
    fn the_fields_of_cap_are_at_the_bits_of_the_standard() {
        // 2048 entries, 7.5 s, stride 4 B, the NVM command set, pages from 4 KiB to 64 KiB.
        let cap = Capabilities(0x0040_0020_0f01_07ff);
        assert_eq!((cap.most_entries(), cap.ready_ms(), cap.stride()), (2048, 7500, 4));
        assert_eq!((cap.has_nvm(), cap.least_page()), (true, 4096));
        assert!(!Capabilities(0x0040_0000_0f01_07ff).has_nvm());
        assert!(!cap.has_cmb_control() && Capabilities(1 << 57).has_cmb_control());
    }

    #[test]
    fn doorbells_are_a_stride_apart() {
        let at = |stride: u64, queue, is_completion| Capabilities(stride << 32).doorbell(queue, is_completion);
        assert_eq!(
            [at(0, 0, false), at(0, 0, true), at(0, 1, false), at(0, 1, true)],
            [0x1000, 0x1004, 0x1008, 0x100c]
        );
        assert_eq!([at(3, 0, true), at(3, 1, true)], [0x1020, 0x1060]);
    }

    #[test]
    fn as_many_queue_pairs_are_used_as_have_doorbells_in_the_bar() {
        let memory = FakeMemory::new(8);
        let fake = Fake::new(&memory, Fault::None);
        let of = |most, len| registers_end(&fake, most, len).unwrap();
        assert_eq!((of(64, 0x2000), of(1, 0x2000)), ((64, 0x1208), (1, 0x1010)));
        assert_eq!((of(64, 0x1018), of(64, 0x1017), of(64, 0x1000)), ((2, 0x1018), (1, 0x1010), (1, 0x1010)));
    }
}
