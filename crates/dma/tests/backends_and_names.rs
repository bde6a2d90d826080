//! Names in messages, errors of a page table, and what a backend does that implements only what it must.

use lanemark_dma::*;
use lanemark_units::{HostPhys, Iova, Ticks};

const PAGE: u64 = 4096;

/// A backend with the required operations only, which counts its calls and maps nothing.
#[derive(Default)]
struct Least {
    unmaps: u32,
    invalidations: u32,
}

impl Backend for Least {
    type Memory = HostPhys;
    fn name(&self) -> &'static str {
        "least"
    }
    fn abilities(&self) -> Abilities {
        Abilities::ALL
    }
    fn map(&mut self, _: IovaRange, _: HostPhys, _: Attributes) -> Result<(), BackendError> {
        Err(BackendError::Unsupported(Ability::Remap))
    }
    fn unmap(&mut self, _: IovaRange) -> Result<(), BackendError> {
        self.unmaps += 1;
        Ok(())
    }
    fn invalidate(&mut self, _: Invalidated) -> Result<Ticks, BackendError> {
        self.invalidations += 1;
        Ok(Ticks::ZERO)
    }
}

/// The attributes of a mapping for reads.
fn attributes() -> Attributes {
    let ranges = Ranges::new(Space::of_device(32).unwrap()).unwrap();
    let mut domain = Domain::new("disks", ranges, PageTable::new(PAGE), Invalidation::Strict).unwrap();
    let disk = domain.attach("disk 0").unwrap();
    let request = MapRequest::new(disk, Permission::Read);
    domain.map(&mut Buffer::new(HostPhys(PAGE), PAGE), request, Ticks::ZERO).unwrap().attributes()
}

#[test]
fn a_backend_refuses_changes_of_mappings_that_it_does_not_implement() {
    let (mut least, range) = (Least::default(), IovaRange { at: Iova(PAGE), len_bytes: PAGE });
    let refused = least.set_attributes(range, attributes());
    assert!(matches!(refused, Err(BackendError::Unsupported(Ability::SetAttributes))), "{refused:?}");
    let refused = least.remap(range, HostPhys(0), attributes());
    assert!(matches!(refused, Err(BackendError::Unsupported(Ability::Remap))), "{refused:?}");
}

#[test]
fn a_page_table_names_the_first_page_that_is_mapped_twice_or_not_at_all() {
    let mut table = PageTable::<HostPhys>::new(PAGE);
    let range = |page: u64, pages: u64| IovaRange { at: Iova(page * PAGE), len_bytes: pages * PAGE };
    table.map(range(4, 2), HostPhys(0), attributes()).unwrap();
    let twice = table.map(range(3, 2), HostPhys(0), attributes());
    assert!(matches!(twice, Err(BackendError::Overlap { at: Iova(0x4000) })), "{twice:?}");
    let absent = table.unmap(range(5, 2));
    assert!(matches!(absent, Err(BackendError::NotThere { at: Iova(0x6000) })), "{absent:?}");
    assert_eq!(table.entries(), 2);
}

#[test]
fn nothing_is_unmapped_or_invalidated_after_a_map_that_failed_at_once() {
    let ranges = Ranges::new(Space::of_device(32).unwrap()).unwrap();
    let mut domain = Domain::new("disks", ranges, Least::default(), Invalidation::Strict).unwrap();
    let disk = domain.attach("disk 0").unwrap();
    let request = MapRequest::new(disk, Permission::Read);
    assert!(domain.map(&mut Buffer::new(HostPhys(PAGE), PAGE), request, Ticks::ZERO).is_err());
    assert_eq!((domain.backend().unmaps, domain.backend().invalidations), (0, 0));
    assert_eq!(domain.name(), "disks");
}

#[test]
fn every_strategy_has_its_own_name_also_in_a_box() {
    let space = || Space::between(Iova(PAGE), Iova((1 << 30) - 1), PAGE).unwrap();
    let named: [(Box<dyn IovaAllocator>, &str); 5] = [
        (Box::new(FreeList::new(space())), "free list"),
        (Box::new(Buddy::new(space())), "buddy"),
        (Box::new(Magazine::new(space(), 1).unwrap().core(0).unwrap()), "magazine"),
        (Box::new(Ranges::new(space()).unwrap()), "ranges"),
        (Box::new(Sequential::new(Ranges::new(space()).unwrap()).unwrap()), "sequential"),
    ];
    for (strategy, name) in named {
        assert_eq!(strategy.name(), name);
        assert_eq!(Box::new(strategy).name(), name);
    }
}

#[test]
fn the_longest_request_of_a_free_list_is_the_whole_address_space_but_one_page() {
    let list = FreeList::new(Space::between(Iova(0), Iova(u64::MAX), PAGE).unwrap());
    assert_eq!(list.longest_bytes(), u64::MAX - PAGE + 1);
}
