//! The controller memory buffer: memory of a drive in one of its BARs, which can hold queues.

use super::error::NvmeError;
use super::memory::{Bar, PAGE};
use super::register::{self, CAP, CMBLOC, CMBMSC, CMBSTS, CMBSZ, Capabilities};

/// CMBMSC.CRE, which makes CMBLOC and CMBSZ readable, and CMBMSC.CMSE, which makes the controller recognise addresses of the
/// buffer. Source: NVM Express Base Specification 2.0, 3.1.3.16.
const REGISTERS: u64 = 1;
/// See [`REGISTERS`].
const SPACE: u64 = 1 << 1;
/// CMBSTS.CBAI: the address of the buffer is invalid. Source: NVM Express Base Specification 2.0, 3.1.3.17.
const INVALID_ADDRESS: u64 = 1;

/// Bytes of the buffer that a queue pair takes: a page of submissions and a page of completions.
const QUEUES: u64 = 2 * PAGE;

/// Largest value of CMBSZ.SZU, for units of 64 GiB. Source: NVM Express Base Specification 2.0, 3.1.3.12.
const LARGEST_UNIT: u64 = 6;

/// A controller memory buffer. Source: NVM Express Base Specification 2.0, 3.1.3.11 (CMBLOC) and 3.1.3.12 (CMBSZ).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cmb {
    /// Number of its BAR: CMBLOC.BIR.
    pub(crate) bar: u8,
    /// Offset in the BAR: CMBLOC.OFST, in units of CMBSZ.SZU.
    pub(crate) offset: u64,
    /// Size in bytes: CMBSZ.SZ, in units of CMBSZ.SZU.
    pub(crate) len: u64,
    /// Whether completion queues may be in it: CMBSZ.CQS.
    pub(crate) holds_completions: bool,
}

impl Cmb {
    /// Finds the buffer of a controller. Leaves CMBMSC at 0, as after a reset.
    ///
    /// # Errors
    /// [`NvmeError::NoOption`] if there is none that can hold submission queues, and errors of accesses to `bar`.
    pub(crate) fn find(bar: &impl Bar) -> Result<Cmb, NvmeError> {
        let capabilities = register::load(bar, CAP)?;
        if capabilities == u64::MAX {
            return Err(NvmeError::Gone);
        }
        // Before version 1.4, both registers are always readable, and there is no CMBMSC.
        let is_hidden = Capabilities(capabilities).has_cmb_control();
        if is_hidden {
            register::store_high_first(bar, CMBMSC, REGISTERS)?;
        }
        let found = [CMBLOC, CMBSZ].map(|register| register::load(bar, register));
        if is_hidden {
            register::store_high_first(bar, CMBMSC, 0)?;
        }
        let [place, size] = found;
        Cmb::of(place?, size?)
    }

    /// The buffer that both registers describe.
    fn of(place: u64, size: u64) -> Result<Cmb, NvmeError> {
        let field = |register: u64, from: u32, to: u32| (register >> from) & ((1 << (to - from + 1)) - 1);
        if size == u64::from(u32::MAX) {
            return Err(NvmeError::Gone);
        }
        if field(size, 8, 11) > LARGEST_UNIT {
            return Err(NvmeError::no_option(
                "the unit of the controller memory buffer is reserved (CMBSZ.SZU)",
                "--nvme-queues",
            ));
        }
        let unit = PAGE << (4 * field(size, 8, 11));
        let len = field(size, 12, 31) * unit;
        if len == 0 {
            return Err(NvmeError::no_option("the drive has no controller memory buffer (CMBSZ)", "--nvme-queues"));
        }
        if field(size, 0, 0) == 0 {
            return Err(NvmeError::no_option(
                "the controller memory buffer of the drive cannot hold submission queues (CMBSZ.SQS)",
                "--nvme-queues",
            ));
        }
        Ok(Cmb {
            bar: field(place, 0, 2) as u8,
            offset: field(place, 12, 31) * unit,
            len,
            // A buffer of one page has room for submissions only.
            holds_completions: field(size, 1, 1) == 1 && len >= QUEUES,
        })
    }

    /// Number of whole pages, which are of one queue each.
    pub(crate) const fn pages(&self) -> u64 {
        self.len / PAGE
    }
}

/// A controller memory buffer that is mapped into this process.
#[derive(Debug)]
pub(crate) struct MappedCmb<'a, B: Bar> {
    pub(crate) cmb: Cmb,
    /// Loads and stores to its BAR.
    pub(crate) memory: &'a B,
    /// Address of its first byte for the controller.
    pub(crate) address: u64,
}

impl<B: Bar> Clone for MappedCmb<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Bar> Copy for MappedCmb<'_, B> {}

impl<B: Bar> MappedCmb<'_, B> {
    /// Makes the controller recognise the addresses of the buffer.
    ///
    /// # Errors
    /// [`NvmeError::NoOption`] if the controller refuses the address, and errors of accesses to `bar`.
    pub(super) fn enable(&self, bar: &impl Bar, capabilities: Capabilities) -> Result<(), NvmeError> {
        if !capabilities.has_cmb_control() {
            // Before NVMe 1.4, a controller always decodes its BAR addresses.
            return Ok(());
        }
        register::store_high_first(bar, CMBMSC, self.address | SPACE | REGISTERS)?;
        if register::load(bar, CMBSTS)? & INVALID_ADDRESS != 0 {
            return Err(NvmeError::no_option(
                "the controller refuses the address of its memory buffer (CMBSTS.CBAI)",
                "--nvme-queues",
            ));
        }
        Ok(())
    }

    /// Undoes [`enable`](MappedCmb::enable).
    pub(super) fn disable(bar: &impl Bar, capabilities: Capabilities) -> Result<(), NvmeError> {
        if capabilities.has_cmb_control() { Ok(register::store_high_first(bar, CMBMSC, 0)?) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CMBSZ of `units` units of 4 KiB << 4 * `unit`, with these of SQS and CQS.
    const fn size(units: u64, unit: u64, holds: u64) -> u64 {
        units << 12 | unit << 8 | holds
    }

    #[test]
    fn place_and_size_have_one_unit() {
        let found = Cmb::of(3 << 12 | 2, size(16, 2, 1)).unwrap();
        assert_eq!(found, Cmb { bar: 2, offset: 3 << 20, len: 16 << 20, holds_completions: false });
        let found = Cmb::of(5 << 12, size(2, 0, 3)).unwrap();
        assert_eq!(found, Cmb { bar: 0, offset: 5 << 12, len: 8192, holds_completions: true });
        assert_eq!(Cmb::of(0xffff_f000 | 5, size(0xf_ffff, 6, 1)).unwrap().offset, 0xf_ffff << 36);
    }

    #[test]
    fn a_buffer_is_absent_or_holds_no_submissions_or_has_a_reserved_unit() {
        let said = |size| Cmb::of(2, size).map_err(|error| error.to_string()).unwrap_err();
        assert!(said(size(0, 2, 3)).contains("no controller memory buffer"));
        assert!(said(size(16, 2, 0)).contains("CMBSZ.SQS") && said(size(16, 2, 2)).contains("CMBSZ.SQS"));
        assert!(said(size(16, 7, 3)).contains("CMBSZ.SZU") && said(size(16, 15, 3)).contains("CMBSZ.SZU"));
        assert!(said(u64::from(u32::MAX)).contains("all ones"));
        let holds_completions = |pages| Cmb::of(2, size(pages, 0, 3)).unwrap().holds_completions;
        assert_eq!([1, 2].map(holds_completions), [false, true], "one page is for submissions alone");
    }
}
