//! The bus tree: masking, removing, reprogramming and rescanning a card, and the effect of leaving out a step.

use lanemark_sim::{BusTree, BusTreeError};
use lanemark_wire::FunctionId;
use lanemark_wire::config::{AerRegister, ConfigSpace};

const CARD: &str = "card";
const PORT: &str = "root/card";

fn broken(faults: &[&str]) -> BusTree {
    let mut platform = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
    for fault in faults {
        platform = platform.with_fault(fault.parse().unwrap()).unwrap();
    }
    BusTree::new(&platform).unwrap()
}

fn at(tree: &BusTree, port: &str) -> FunctionId {
    tree.functions().into_iter().find(|function| function.port == port).unwrap().address
}

/// Returns a register of a port as software reads it.
fn held(tree: &BusTree, port: &str, register: AerRegister) -> u32 {
    let function = tree.functions().into_iter().find(|function| function.port == port).unwrap();
    register.of(&ConfigSpace::new(&function.bytes).error_reporting().unwrap()).unwrap()
}

fn first_error(tree: &BusTree, port: &str) -> u32 {
    let function = tree.functions().into_iter().find(|function| function.port == port).unwrap();
    let space = ConfigSpace::new(&function.bytes);
    space.error_reporting().unwrap().region().read(0x18, 4).unwrap() as u32 & 0x1f
}

fn names(tree: &BusTree) -> Vec<String> {
    tree.reported().iter().map(|reported| format!("{} {}", reported.port, reported.error.row().name)).collect()
}

fn bars(tree: &BusTree) -> Vec<u64> {
    let card = tree.functions().into_iter().find(|function| function.port == CARD).unwrap();
    ConfigSpace::new(&card.bytes).bars().map(|bar| bar.address()).collect()
}

fn mask(tree: &mut BusTree, port: FunctionId) {
    for register in AerRegister::MASKS {
        tree.write(port, register, u32::MAX).unwrap();
    }
}

#[test]
fn a_broken_card_works_at_its_address_after_mask_remove_program_and_rescan() {
    for fault in ["no_completion@card", "surprise_removal@card", "link_down@card", "credit_starvation@card"] {
        let mut tree = broken(&[fault]);
        let (port, card, before) = (at(&tree, PORT), at(&broken(&[]), CARD), bars(&broken(&[])));
        assert_eq!(tree.load(card).unwrap().bytes, None, "{fault}");
        let known = tree.reported().len();
        mask(&mut tree, port);
        tree.remove(card).unwrap();
        tree.program(card).unwrap();
        tree.rescan(card.bus()).unwrap();
        assert_eq!(tree.load(card).unwrap().bytes, Some([0, 1, 2, 3]), "{fault}");
        assert_eq!((bars(&tree), tree.reported().len()), (before, known), "{fault}");
    }
}

#[test]
fn surprise_down_is_reported_by_the_port_above_unless_masked() {
    let [unmasked, masked] = [false, true].map(|is_masked| {
        let mut tree = broken(&[]);
        let (port, card) = (at(&tree, PORT), at(&tree, CARD));
        if is_masked {
            mask(&mut tree, port);
        }
        tree.remove(card).unwrap();
        assert_eq!(names(&tree), [""; 0], "removing a card sends no TLP");
        tree.program(card).unwrap();
        tree
    });
    assert_eq!(names(&unmasked), ["root/card SDES"]);
    assert_eq!(names(&masked), [""; 0]);
    // The status bit is set, masked or not; the First Error Pointer ignores masked errors.
    assert_eq!([&unmasked, &masked].map(|tree| held(tree, PORT, AerRegister::UncorrectableStatus)), [1 << 5; 2]);
    assert_eq!([first_error(&unmasked, PORT), first_error(&masked, PORT)], [5, 0]);
}

#[test]
fn a_mask_hides_its_own_error_only() {
    for (mask, reported) in [(1 << 5, 0), (!(1 << 5), 1)] {
        let mut tree = broken(&[]);
        let (port, card) = (at(&tree, PORT), at(&tree, CARD));
        tree.write(port, AerRegister::UncorrectableMask, mask).unwrap();
        tree.program(card).unwrap();
        assert_eq!(tree.reported().len(), reported, "{mask:08x}");
    }
}

#[test]
fn a_status_bit_is_cleared_by_writing_a_one_only() {
    let mut tree = broken(&[]);
    let (port, card) = (at(&tree, PORT), at(&tree, CARD));
    tree.program(card).unwrap();
    tree.write(port, AerRegister::UncorrectableStatus, !(1 << 5)).unwrap();
    assert_eq!(held(&tree, PORT, AerRegister::UncorrectableStatus), 1 << 5);
    tree.write(port, AerRegister::UncorrectableStatus, 1 << 5).unwrap();
    assert_eq!(held(&tree, PORT, AerRegister::UncorrectableStatus), 0);
}

#[test]
fn a_card_before_its_rescan_decodes_no_address_and_reports_no_error() {
    let mut tree = broken(&["no_completion@card"]);
    let card = at(&tree, CARD);
    assert_eq!(tree.load(card).unwrap().bytes, None);
    tree.remove(card).unwrap();
    tree.program(card).unwrap();
    let known = tree.reported().len();
    let loaded = tree.load(card).unwrap();
    assert_eq!(loaded.bytes, None);
    assert!(loaded.took.as_ns() < 5000.0, "it is refused without a timeout: {} ns", loaded.took.as_ns());
    assert_eq!(tree.reported().len(), known, "an unconfigured card may not report");
    assert_eq!(tree.write(card, AerRegister::UncorrectableMask, 0), Err(BusTreeError::Unknown { function: card }));
}

#[test]
fn a_card_that_is_not_reprogrammed_stays_broken() {
    for (fault, is_found) in [("no_completion@card", true), ("surprise_removal@card", false)] {
        let mut tree = broken(&[fault]);
        let card = at(&tree, CARD);
        assert_eq!(tree.load(card).unwrap().bytes, None);
        tree.remove(card).unwrap();
        tree.rescan(card.bus()).unwrap();
        assert_eq!(tree.functions().iter().any(|function| function.address == card), is_found, "{fault}");
        assert_eq!(tree.load(card).unwrap().bytes, None, "{fault}");
    }
}

#[test]
fn a_rescan_does_not_configure_a_known_card() {
    let mut tree = broken(&[]);
    let card = at(&tree, CARD);
    tree.program(card).unwrap();
    tree.rescan(card.bus()).unwrap();
    assert_eq!(bars(&tree), [0_u64; 0]);
    assert_eq!(tree.load(card).unwrap().bytes, None);
}

#[test]
fn reprogramming_resets_the_masks_of_a_card_but_not_of_its_port() {
    let mut tree = broken(&[]);
    let (port, card) = (at(&tree, PORT), at(&tree, CARD));
    let fresh = held(&tree, CARD, AerRegister::UncorrectableMask);
    mask(&mut tree, port);
    mask(&mut tree, card);
    let all = held(&tree, PORT, AerRegister::UncorrectableMask);
    assert_eq!(all, held(&tree, CARD, AerRegister::UncorrectableMask));
    tree.remove(card).unwrap();
    tree.program(card).unwrap();
    tree.rescan(card.bus()).unwrap();
    let now = [PORT, CARD].map(|port| held(&tree, port, AerRegister::UncorrectableMask));
    assert_eq!(now, [all, fresh]);
}

#[test]
fn a_card_below_a_down_link_reads_as_all_ones_and_its_port_clears_link_active() {
    let tree = broken(&["surprise_removal@card"]);
    let functions = tree.functions();
    assert!(functions[1].bytes.iter().all(|byte| *byte == 0xff));
    assert_eq!(ConfigSpace::new(&functions[0].bytes).pcie().unwrap().link_active(), Ok(Some(false)));
    let whole = broken(&[]).functions();
    assert_eq!(ConfigSpace::new(&whole[0].bytes).pcie().unwrap().link_active(), Ok(Some(true)));
}

#[test]
fn removing_a_bridge_and_scanning_a_missing_bus_are_rejected() {
    let mut tree = broken(&[]);
    let (port, card) = (at(&tree, PORT), at(&tree, CARD));
    assert_eq!(tree.remove(port), Err(BusTreeError::Bridge { function: port }));
    assert_eq!(tree.program(port), Err(BusTreeError::Bridge { function: port }));
    assert_eq!(tree.rescan(card.bus() + 1), Err(BusTreeError::NoBus { bus: card.bus() + 1 }));
    assert_eq!(tree.rescan(card.bus()), Ok(()));
}

#[test]
fn reprogramming_a_card_leaves_faults_of_other_cards() {
    let rosta = lanemark_platform::preset("rosta-virtex7").unwrap().unwrap();
    let platform = ["no_completion@fpga0", "no_completion@fpga1"]
        .into_iter()
        .fold(rosta, |platform, fault| platform.with_fault(fault.parse().unwrap()).unwrap());
    let mut tree = BusTree::new(&platform).unwrap();
    let [first, second] = ["fpga0", "fpga1"].map(|card| at(&tree, card));
    for card in [first, second] {
        assert_eq!(tree.load(card).unwrap().bytes, None);
    }
    tree.remove(first).unwrap();
    tree.program(first).unwrap();
    tree.rescan(first.bus()).unwrap();
    assert!(tree.load(first).unwrap().bytes.is_some());
    assert_eq!(tree.load(second).unwrap().bytes, None);
}
