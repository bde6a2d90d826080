//! The controller memory buffer: memory of a drive in one of its BARs, which can hold queues and data.

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
    /// Bits 4:0 of CMBSZ: a set bit permits submission queues, completion queues, lists, data of reads or data of writes.
    support: u64,
}

/// Contents that the options `--nvme-queues` and `--nvme-data-place` put into the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CmbUses {
    /// Submission queues.
    pub(crate) queues: bool,
    /// Data of commands.
    pub(crate) data: bool,
}

impl CmbUses {
    const fn option(self) -> &'static str {
        if self.queues { "--nvme-queues" } else { "--nvme-data-place" }
    }
}

/// Bits of CMBSZ: SQS, CQS, RDS and WDS. Source: NVM Express Base Specification 2.0, 3.1.3.12.
mod holds {
    pub(super) const SUBMISSIONS: u64 = 1;
    pub(super) const COMPLETIONS: u64 = 1 << 1;
    pub(super) const DATA_OF_READS: u64 = 1 << 3;
    pub(super) const DATA_OF_WRITES: u64 = 1 << 4;
}

impl Cmb {
    /// Finds the buffer of a controller, for these uses. Leaves CMBMSC at 0, as after a reset.
    ///
    /// # Errors
    /// [`NvmeError::NoOption`] if there is none, or if it cannot be used so, and errors of accesses to `bar`.
    pub(crate) fn find(bar: &impl Bar, uses: CmbUses) -> Result<Cmb, NvmeError> {
        let no = |because| NvmeError::no_option(because, uses.option());
        let cmb = Cmb::look(bar)?.ok_or(no("the drive has no controller memory buffer (CMBSZ)"))?;
        if uses.queues && !cmb.holds(holds::SUBMISSIONS) {
            return Err(no("the controller memory buffer of the drive cannot hold submission queues (CMBSZ.SQS)"));
        }
        if uses.data && !cmb.holds(holds::DATA_OF_READS) && !cmb.holds(holds::DATA_OF_WRITES) {
            let because = "the controller memory buffer of the drive cannot hold data (CMBSZ.RDS and CMBSZ.WDS)";
            return Err(NvmeError::no_option(because, "--nvme-data-place"));
        }
        Ok(cmb)
    }

    /// Looks for the buffer of a controller; `None` if it has none. Leaves CMBMSC at 0, as after a reset.
    ///
    /// # Errors
    /// [`NvmeError`] of a controller that is gone, and of accesses to `bar`.
    pub(crate) fn look(bar: &impl Bar) -> Result<Option<Cmb>, NvmeError> {
        // Before version 1.4, both registers are always readable, and there is no CMBMSC.
        let is_hidden = has_cmb_control(bar)?;
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
    fn of(place: u64, size: u64) -> Result<Option<Cmb>, NvmeError> {
        let field = |register: u64, from: u32, to: u32| (register >> from) & ((1 << (to - from + 1)) - 1);
        if size == u64::from(u32::MAX) {
            return Err(NvmeError::Gone);
        }
        if field(size, 8, 11) > LARGEST_UNIT {
            return Err(NvmeError::Unsupported("the unit of the controller memory buffer is reserved (CMBSZ.SZU)"));
        }
        let unit = PAGE << (4 * field(size, 8, 11));
        let (offset, len) = (field(place, 12, 31) * unit, field(size, 12, 31) * unit);
        Ok((len > 0).then(|| Cmb { bar: field(place, 0, 2) as u8, offset, len, support: field(size, 0, 4) }))
    }

    const fn holds(&self, what: u64) -> bool {
        self.support & what != 0
    }

    /// Whether completion queues may be in it: CMBSZ.CQS. A buffer of one page has room for submissions only.
    pub(crate) const fn holds_completions(&self) -> bool {
        self.holds(holds::COMPLETIONS) && self.len >= QUEUES
    }

    /// Whether data that the drive reads from its medium may be in it: CMBSZ.RDS.
    pub(crate) const fn takes_reads(&self) -> bool {
        self.holds(holds::DATA_OF_READS)
    }

    /// Whether data that the drive writes to its medium may be in it: CMBSZ.WDS.
    pub(crate) const fn takes_writes(&self) -> bool {
        self.holds(holds::DATA_OF_WRITES)
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
    pub(crate) uses: CmbUses,
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
        if is_enabled_at(bar, self.address)? {
            return Ok(());
        }
        Err(NvmeError::no_option(REFUSED, self.uses.option()))
    }

    /// Undoes [`enable`](MappedCmb::enable).
    pub(super) fn disable(bar: &impl Bar, capabilities: Capabilities) -> Result<(), NvmeError> {
        if capabilities.has_cmb_control() { Ok(register::store_high_first(bar, CMBMSC, 0)?) } else { Ok(()) }
    }
}

/// The controller memory space of a drive, which makes its buffer accessible, until this is dropped.
#[derive(Debug)]
pub(crate) struct EnabledSpace<'a, B: Bar>(&'a B);

impl<B: Bar> EnabledSpace<'_, B> {
    /// Enables the space of a controller with CMBMSC, at this bus address of the buffer.
    ///
    /// # Errors
    /// [`NvmeError::Unsupported`] if the controller refuses the address, and errors of accesses to `bar`.
    pub(crate) fn enable(bar: &B, address: u64) -> Result<EnabledSpace<'_, B>, NvmeError> {
        let space = EnabledSpace(bar);
        if is_enabled_at(bar, address)? { Ok(space) } else { Err(NvmeError::Unsupported(REFUSED)) }
    }
}

impl<B: Bar> Drop for EnabledSpace<'_, B> {
    fn drop(&mut self) {
        // A drive that does not respond has no space either.
        let _ = register::store_high_first(self.0, CMBMSC, 0);
    }
}

/// Error of a controller that cannot use the bus address of its buffer.
const REFUSED: &str = "the controller refuses the address of its memory buffer (CMBSTS.CBAI)";

/// Enables the controller memory space at this address; returns whether the controller accepts it.
fn is_enabled_at(bar: &impl Bar, address: u64) -> Result<bool, NvmeError> {
    register::store_high_first(bar, CMBMSC, address | SPACE | REGISTERS)?;
    Ok(register::load(bar, CMBSTS)? & INVALID_ADDRESS == 0)
}

/// Whether a controller has CMBMSC (NVMe 1.4 or newer).
///
/// # Errors
/// [`NvmeError::Gone`], and errors of accesses to `bar`.
pub(crate) fn has_cmb_control(bar: &impl Bar) -> Result<bool, NvmeError> {
    match register::load(bar, CAP)? {
        u64::MAX => Err(NvmeError::Gone),
        capabilities => Ok(Capabilities(capabilities).has_cmb_control()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::{Fake, FakeCmb, FakeMemory, Fault, always, never};
    use super::super::memory::DmaMemory as _;
    use super::super::{Command, Controller, DataPointer, IoQueues, queue_bytes};
    use super::*;
    use crate::drive_options::DataPointers;

    /// CMBSZ of `units` units of 4 KiB << 4 * `unit`, with these of SQS and CQS.
    const fn size(units: u64, unit: u64, holds: u64) -> u64 {
        units << 12 | unit << 8 | holds
    }

    fn of(place: u64, size: u64) -> Cmb {
        Cmb::of(place, size).unwrap().unwrap()
    }

    #[test]
    fn place_and_size_have_one_unit() {
        let cmb = of(3 << 12 | 2, size(16, 2, 1));
        assert_eq!((cmb.bar, cmb.offset, cmb.len, cmb.holds_completions()), (2, 3 << 20, 16 << 20, false));
        let cmb = of(5 << 12, size(2, 0, 3));
        assert_eq!((cmb.bar, cmb.offset, cmb.len, cmb.holds_completions()), (0, 5 << 12, 8192, true));
        assert_eq!(of(0xffff_f000 | 5, size(0xf_ffff, 6, 1)).offset, 0xf_ffff << 36);
        let data = |holds| (of(0, size(1, 0, holds)).takes_reads(), of(0, size(1, 0, holds)).takes_writes());
        assert_eq!([7, 8, 16, 24].map(data), [(false, false), (true, false), (false, true), (true, true)]);
    }

    #[test]
    fn a_buffer_is_absent_or_gone_or_has_a_reserved_unit() {
        assert_eq!(Cmb::of(2, size(0, 2, 3)), Ok(None));
        let said = |size| Cmb::of(2, size).map_err(|error| error.to_string()).unwrap_err();
        assert!(said(size(16, 7, 3)).contains("CMBSZ.SZU") && said(size(16, 15, 3)).contains("CMBSZ.SZU"));
        assert!(said(u64::from(u32::MAX)).contains("all ones"));
        let holds_completions = |pages| of(2, size(pages, 0, 3)).holds_completions();
        assert_eq!([1, 2].map(holds_completions), [false, true], "one page is for submissions alone");
    }

    #[test]
    fn a_buffer_that_cannot_hold_what_an_option_asks_for_is_refused_with_the_option() {
        let memory = FakeMemory::new(8);
        let said = |holds, queues, data| {
            let fake = Fake::with_cmb(&memory, Fault::None, FakeCmb::Holding(holds));
            Cmb::find(&fake, CmbUses { queues, data }).map_err(|error| error.to_string())
        };
        let is_refused = |found: Result<Cmb, String>, register, option| {
            let error = found.unwrap_err();
            assert!(error.contains(register) && error.ends_with(option), "{error}");
        };
        is_refused(said(24, true, false), "CMBSZ.SQS", "--nvme-queues");
        is_refused(said(24, true, true), "CMBSZ.SQS", "--nvme-queues");
        is_refused(said(7, false, true), "CMBSZ.RDS", "--nvme-data-place");
        is_refused(said(7, true, true), "CMBSZ.RDS", "--nvme-data-place");
        let none = Fake::new(&memory, Fault::None);
        let said_of_none = Cmb::find(&none, CmbUses { queues: false, data: true }).map_err(|error| error.to_string());
        is_refused(said_of_none, "CMBSZ", "--nvme-data-place");
        assert!(
            [(1, true, false), (8, false, true), (16, false, true), (9, true, true)]
                .into_iter()
                .all(|(holds, queues, data)| said(holds, queues, data).is_ok())
        );
    }

    /// Offsets of a list and of data in the memory.
    const LIST: u64 = queue_bytes(1);
    const PLACE: u64 = LIST + PAGE;

    /// Submission queues in the memory buffer.
    const USES: CmbUses = CmbUses { queues: true, data: false };

    fn memory() -> FakeMemory {
        FakeMemory::new(PLACE + PAGE)
    }

    #[test]
    fn the_memory_space_is_enabled_until_it_is_dropped_also_if_the_address_is_refused() {
        let (memory, address) = (FakeMemory::new(8), Fake::BAR + Fake::CMB);
        let fake = Fake::with_cmb(&memory, Fault::None, FakeCmb::Hidden);
        assert_eq!(has_cmb_control(&fake), Ok(true));
        let space = EnabledSpace::enable(&fake, address).unwrap();
        assert!(!fake.has_no_cmb_address());
        drop(space);
        assert!(fake.has_no_cmb_address());
        let fake = Fake::with_cmb(&memory, Fault::None, FakeCmb::RefusesItsAddress);
        let said = EnabledSpace::enable(&fake, address).unwrap_err().to_string();
        assert!(said.contains("CMBSTS.CBAI") && fake.has_no_cmb_address(), "{said}");
        let legacy = Fake::with_cmb(&memory, Fault::None, FakeCmb::Legacy);
        assert_eq!(
            (has_cmb_control(&legacy), has_cmb_control(&Fake::new(&memory, Fault::Gone))),
            (Ok(false), Err(NvmeError::Gone))
        );
    }

    #[test]
    fn queues_in_a_memory_buffer_hold_every_command_and_the_buffer_is_given_back() {
        for (kind, queues) in [
            (FakeCmb::Legacy, IoQueues::SubmissionsInCmb),
            (FakeCmb::Hidden, IoQueues::SubmissionsInCmb),
            (FakeCmb::Hidden, IoQueues::InCmb),
        ] {
            let memory = memory();
            let fake = Fake::with_cmb(&memory, Fault::Batches(3), kind);
            let cmb = Cmb::find(&fake, USES).unwrap();
            assert_eq!((cmb.bar, cmb.offset, cmb.holds_completions()), (0, Fake::CMB, true));
            let mapped = MappedCmb { cmb, memory: &fake, address: Fake::BAR + Fake::CMB, uses: USES };
            let mut controller = Controller::enable(&fake, &memory, 0, Some(mapped), &mut always).unwrap();
            assert_eq!(controller.create_queues(queues, 1, None, &mut always).unwrap(), 63);
            let mut reads = (0..200).map(|n| Command::read(5, n % 16, 1, DataPointer::prp([memory.iova(PLACE), 0])));
            controller.run(3, |_| reads.next(), &mut never).unwrap_err();
            // The last batch is not full: two of 200 commands are outstanding.
            assert_eq!((fake.reads(), controller.waiting_for()), (198, "Read"));
            let host: Vec<u64> =
                [queue_bytes(0), queue_bytes(0) + PAGE].map(|at| memory.load(at + 8) | memory.load(at)).into();
            let is_used = [false, queues == IoQueues::SubmissionsInCmb];
            assert_eq!(
                host.iter().map(|word| *word != u64::MAX).collect::<Vec<_>>(),
                is_used,
                "{queues:?} in host memory"
            );
            drop(controller);
            assert!(!fake.is_enabled() && fake.has_no_cmb_address());
        }
    }

    #[test]
    fn data_in_a_memory_buffer_are_the_bytes_of_the_blocks_with_queues_in_host_memory_and_beside_them() {
        for (kind, queues, by) in [
            (FakeCmb::Legacy, IoQueues::Host, DataPointers::Prp),
            (FakeCmb::Hidden, IoQueues::Host, DataPointers::SglList),
            (FakeCmb::Hidden, IoQueues::SubmissionsInCmb, DataPointers::Prp),
        ] {
            let memory = memory();
            let fake = Fake::with_cmb(&memory, Fault::None, kind);
            let uses = CmbUses { queues: queues != IoQueues::Host, data: true };
            let cmb = Cmb::find(&fake, uses).unwrap();
            let address = Fake::BAR + Fake::CMB;
            let mapped = MappedCmb { cmb, memory: &fake, address, uses };
            let mut controller = Controller::enable(&fake, &memory, 0, Some(mapped), &mut always).unwrap();
            controller.create_queues(queues, 1, None, &mut always).unwrap();
            let to = DataPointer::of(by, &memory, address + PAGE + 512, 3 * PAGE, LIST);
            let mut once = Some(Command::read(5, 9, 24, to));
            controller.run(1, |_| once.take(), &mut never).unwrap();
            let words = (Fake::CMB + PAGE + 512..).step_by(8).take(3 * 512);
            let found: Vec<u8> = words.flat_map(|at| Bar::load(&fake, at, 8).unwrap().to_le_bytes()).collect();
            assert_eq!(found, Fake::image(9 * 512, 3 * PAGE), "{kind:?} {queues:?}");
            controller.disable().unwrap();
            assert!(fake.has_no_cmb_address());
        }
    }

    #[test]
    fn a_memory_buffer_that_is_absent_or_refuses_its_address_is_named() {
        let memory = memory();
        let said = Cmb::find(&Fake::new(&memory, Fault::None), USES).unwrap_err().to_string();
        assert!(
            said.contains("no controller memory buffer (CMBSZ): use another drive, or remove the option"),
            "{said}"
        );
        assert_eq!(Cmb::find(&Fake::new(&memory, Fault::Gone), USES).unwrap_err(), NvmeError::Gone);
        let fake = Fake::with_cmb(&memory, Fault::None, FakeCmb::RefusesItsAddress);
        let mapped = MappedCmb {
            cmb: Cmb::find(&fake, USES).unwrap(),
            memory: &fake,
            address: Fake::BAR + Fake::CMB,
            uses: USES,
        };
        assert!(fake.has_no_cmb_address(), "as before the look");
        let mut controller = Controller::enable(&fake, &memory, 0, Some(mapped), &mut always).unwrap();
        let said = controller.create_queues(IoQueues::SubmissionsInCmb, 1, None, &mut always).unwrap_err().to_string();
        assert!(said.contains("CMBSTS.CBAI"), "{said}");
        drop(controller);
        assert!(fake.has_no_cmb_address());
        let mut controller = Controller::enable(&fake, &memory, 0, None, &mut always).unwrap();
        let said = controller.create_queues(IoQueues::InCmb, 1, None, &mut always).unwrap_err().to_string();
        assert!(said.contains("no controller memory buffer is mapped"), "{said}");
    }
}
