//! Values of single fields, from bytes that are set by hand at the offsets of the specification.

use lanemark_wire::config::{AerRegister, ConfigSpace, Equalization, L1Substates, LinkSpeed, ResizableBar};
use lanemark_wire::{Mps, Packet, split};

/// Configuration space with these values of 32 bits, the standard capability list at 0x40, and extended capability `id`
/// at 0x100.
fn space(id: u32, dwords: &[(usize, u32)]) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    let fixed = [(0x04, 0x10 << 16), (0x34, 0x40), (0x100, 1 << 16 | id)];
    for (at, value) in fixed.iter().chain(dwords) {
        bytes[*at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

#[test]
fn subsystem_ids_are_in_the_header_of_an_endpoint_and_in_a_capability_of_a_bridge() {
    // The capability (ID 0x0d) is there in both; the header type is byte 0x0e.
    let values = [(0x2c, 0x2222_1111), (0x40, 0x0d), (0x44, 0x4444_3333)];
    let mut bytes = space(0, &values);
    assert_eq!(ConfigSpace::new(&bytes).subsystem(), Ok((0x1111, 0x2222)));
    bytes[0x0e] = 1;
    assert_eq!(ConfigSpace::new(&bytes).subsystem(), Ok((0x3333, 0x4444)));
}

#[test]
fn each_l1_substate_has_a_bit_of_its_own() {
    let of = |[pci_pm_l1_2, pci_pm_l1_1, aspm_l1_2, aspm_l1_1]: [bool; 4]| L1Substates {
        pci_pm_l1_2,
        pci_pm_l1_1,
        aspm_l1_2,
        aspm_l1_1,
    };
    for bit in 0..4 {
        let expected = of([0, 1, 2, 3].map(|other| other == bit));
        // Capabilities are at offset 4, and the enabled substates at offset 8.
        let bytes = space(0x1e, &[(0x104, 1 << bit)]);
        let space_of = ConfigSpace::new(&bytes);
        assert_eq!((space_of.l1_substates_supported(), space_of.l1_substates()), (Ok(expected), Ok(of([false; 4]))));
        let bytes = space(0x1e, &[(0x104, 0xf), (0x108, 1 << bit)]);
        let space_of = ConfigSpace::new(&bytes);
        assert_eq!((space_of.l1_substates_supported(), space_of.l1_substates()), (Ok(of([true; 4])), Ok(expected)));
    }
}

#[test]
fn each_result_of_equalization_has_a_bit_of_its_own() {
    for bit in 0..5 {
        let is = |other| other == bit;
        let expected = Equalization { complete: is(0), phases: [is(1), is(2), is(3)], requested: is(4) };
        // The status register is at offset 0xc of the capabilities of 16, 32 and 64 GT/s.
        for (id, speed) in [(0x26, LinkSpeed::Gt16), (0x2a, LinkSpeed::Gt32), (0x31, LinkSpeed::Gt64)] {
            let bytes = space(id, &[(0x10c, 1 << bit)]);
            assert_eq!(ConfigSpace::new(&bytes).equalization(speed), Ok(expected), "{speed:?}");
        }
    }
}

#[test]
fn a_port_has_one_virtual_channel_more_than_its_extended_ones() {
    for extended in 0..8 {
        // The Reference Clock field above it does not count.
        let bytes = space(0x02, &[(0x104, 0x300 | extended)]);
        let channels: Vec<u16> = ConfigSpace::new(&bytes)
            .fields()
            .filter(|value| (value.register, value.field) == ("VC Ctrl", "ID"))
            .map(|value| value.register_offset)
            .collect();
        // The first control register is at offset 0x14, and channels have 12 B each.
        let by_hand: Vec<u16> = (0..=extended as u16).map(|channel| 0x114 + 12 * channel).collect();
        assert_eq!(channels, by_hand);
    }
}

#[test]
fn a_resizable_bar_has_sizes_from_1_mib_to_8_eib() {
    let size = |size_code| ResizableBar { bar: 0, possible: 0, size_code }.size_bytes();
    assert_eq!([0, 1, 10, 43, 44].map(size), [Some(1 << 20), Some(1 << 21), Some(1 << 30), Some(1 << 63), None]);
}

#[test]
fn two_of_the_four_error_registers_hold_status() {
    assert!(AerRegister::STATUSES.into_iter().all(AerRegister::is_status));
    assert!(!AerRegister::MASKS.into_iter().any(AerRegister::is_status));
}

#[test]
fn the_rest_of_a_transfer_is_what_its_requests_have_not_covered() {
    let mut writes = split::writes(0x1002, 600, Mps::new(256).unwrap());
    let mut rests = vec![writes.rest()];
    while writes.next().is_some() {
        rests.push(writes.rest());
    }
    // The first request ends at a DW boundary: it has 254 B.
    assert_eq!(rests, [(0x1002, 600), (0x1100, 346), (0x1200, 90), (0x125a, 0)]);
}

#[test]
fn the_fields_of_a_first_dw_do_not_share_bits() {
    // A memory read, 32-bit address: TC in bits 6:4 of byte 1; TD, EP, Attr and AT in byte 2; length in bytes 2 and 3.
    let header = |byte1: u8, byte2: u8, byte3: u8| [0, byte1, byte2, byte3, 0, 0, 0, 0xf, 0, 0, 0, 0];
    for tc in 0..8 {
        assert_eq!(Packet::new(&header(tc << 4 | 0x8f, 0, 1)).unwrap().tc(), tc);
    }
    for at in 0..4 {
        assert_eq!(Packet::new(&header(0, at << 2, 1)).unwrap().at(), at);
        assert_eq!(Packet::new(&header(0, at << 2 | 0x30, 1)).unwrap().at(), at);
    }
}
