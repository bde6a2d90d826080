//! The inventory readers agree with each other, and other crates can use their results.

mod listings;

use lanemark_checks::pci_dump;
use lanemark_inventory::{Function, Inventory, Seen};
use lanemark_units::HostPhys;
use lanemark_wire::config::LinkSpeed;
use std::path::Path;

/// Output of `lspci -D -nn -vvv -F` (pciutils 3.15.0) for the first nine functions of `pci_dump`.
const LISTING: &str = include_str!("lspci-vvv.txt");

fn read(text: &str) -> Inventory {
    Inventory::from_lspci(text, Path::new("here.txt")).unwrap()
}

/// A function without the facts that only one of bytes and listing contains.
fn comparable(function: &Function) -> Function {
    let mut function = function.clone();
    function.config = Seen::Known(Vec::new());
    function.name = Seen::Known(String::new());
    function.driver = Seen::Known(None);
    function.numa_node = Seen::Known(None);
    function.iommu_group = Seen::Known(None);
    // lspci prints LnkCtl2 of an endpoint's first function only.
    if let Seen::Known(Some(express)) = &mut function.express
        && let Seen::Known(Some(link)) = &mut express.link
        && function.address.function.function() > 0
    {
        link.target = Seen::Known(LinkSpeed::Gt2_5);
    }
    if let Seen::Known(regions) = &mut function.regions {
        regions.retain(|region| region.bar().is_some());
        for region in regions {
            region.bytes = Seen::Known(0);
            region.write_combining_file = Seen::Known(false);
        }
    }
    function
}

/// Facts as text, without the reasons of unseen ones, which differ between a listing and bytes.
fn facts(function: &Function) -> String {
    let mut text = format!("{:#?}", comparable(function));
    while let Some(at) = text.find("Unseen(") {
        let mut depth = 0;
        let end = text[at..].find(|c| {
            depth += match c {
                '(' | '{' => 1,
                ')' | '}' => -1,
                _ => 0,
            };
            c == ')' && depth == 0
        });
        text.replace_range(at..=at + end.unwrap(), "unseen");
    }
    text
}

#[test]
fn bytes_and_their_lspci_listing_give_the_same_facts() {
    let bytes = read(&pci_dump::text(&pci_dump::functions(9)));
    let listing = read(LISTING);
    assert_eq!(bytes.functions.len(), 9);
    for (of_bytes, of_listing) in bytes.functions.iter().zip(&listing.functions) {
        assert_eq!(facts(of_bytes), facts(of_listing), "left: bytes; right: listing");
    }
    assert_eq!(listing.notes, []);
}

#[test]
fn five_hundred_functions_form_the_generated_tree() {
    let made = pci_dump::functions(500);
    let inventory = read(&pci_dump::text(&made));
    assert_eq!((inventory.functions.len(), inventory.notes.len()), (500, 0));
    let tree = inventory.tree();
    assert_eq!(tree.roots.len(), 3);
    for (at, function) in inventory.functions.iter().enumerate() {
        let above = tree.parent(at).map(|parent| inventory.functions[parent].address.function.device());
        let bus = function.address.bus();
        assert_eq!(above, (bus > 0).then_some(bus), "{}", function.address);
    }
}

#[test]
fn page_attributes_of_an_inventory_are_valid_for_platform() {
    use lanemark_inventory::PatRange;
    use lanemark_platform::memory_type::{Effective, Manual, Pat, effective};
    use lanemark_units::MemoryType;
    // Encodings in an `Inventory` for a range that a driver mapped write-combining.
    let range = PatRange { base: HostPhys(0x5c0_0000_0000), bytes: 128 << 30, encoding: 1 };
    let pat = Pat::from_encoding(range.encoding).unwrap();
    assert_eq!(effective(Manual::Intel, MemoryType::Uc, pat), Effective::Type(MemoryType::Wc));
}
