//! Properties of configuration space decoding for arbitrary bytes, and of every table.

use lanemark_wire::config::capability::CAPABILITIES;
use lanemark_wire::config::header::HEADER;
use lanemark_wire::config::table::{Field, Layout, Meaning, Presence, Register};
use lanemark_wire::config::{CapabilityId, ConfigSpace, LinkSpeed, Reading, Unknown};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Calls every accessor and returns the number of values found, so that nothing is optimized away.
fn ask_everything(bytes: &[u8]) -> usize {
    let space = ConfigSpace::new(bytes);
    let mut answers = 0;
    let mut count = |is_answer: bool| answers += usize::from(is_answer);
    count(space.vendor_id().is_ok());
    count(space.device_id().is_ok());
    count(space.class_code().is_ok());
    count(space.revision().is_ok());
    count(space.subsystem().is_ok());
    count(space.bus_numbers().is_ok());
    count(space.windows().is_ok());
    count(space.interrupt_pin().is_ok());
    count(space.expansion_rom().is_ok());
    count(space.virtual_functions().is_ok());
    count(space.access_control().is_ok());
    count(space.access_control_supported().is_ok());
    count(space.address_translation().is_ok());
    count(space.page_requests().is_ok());
    count(space.process_address_spaces().is_ok());
    count(space.l1_substates().is_ok());
    count(space.l1_substates_supported().is_ok());
    count(space.max_tolerated_latency_ns().is_ok());
    count(space.lane_errors().is_ok());
    count(space.scaled_flow_control().is_ok());
    count(space.fourteen_bit_tags().is_ok());
    count(space.tag_bits().is_ok());
    count(space.serial_number().is_ok());
    count(space.containment_trigger().is_ok());
    count(space.contained().is_ok());
    for speed in LinkSpeed::ALL {
        count(space.equalization(speed).is_ok());
    }
    if let Ok(bars) = space.resizable_bars() {
        for bar in bars.flatten() {
            assert!(bar.sizes_bytes().is_sorted());
        }
    }
    if let Ok(errors) = space.error_reporting() {
        count(errors.header_log().is_ok());
        for status in [errors.uncorrectable_status(), errors.correctable_status()].into_iter().flatten() {
            let named = status.raw & !status.reserved();
            assert_eq!(status.names().count(), named.count_ones() as usize);
        }
    }
    if let Ok(pcie) = space.pcie() {
        count(pcie.port_type().is_ok());
        count(pcie.max_payload().is_ok());
        count(pcie.max_read_request().is_ok());
        count(pcie.max_link_speed().is_ok());
        count(pcie.max_link_width().is_ok());
        count(pcie.link_speed().is_ok());
        count(pcie.link_width().is_ok());
        count(pcie.target_link_speed().is_ok());
        count(pcie.link_active().is_ok());
        count(pcie.slot().is_ok());
        count(pcie.supported_link_speeds().is_ok());
    }
    let met = space.walk().count();
    assert!(met <= 3 * 1024 + 192, "{met}");
    for bar in space.bars() {
        assert!(bar.index < 6 && bar.raw != 0);
    }
    for capability in space.capabilities() {
        assert!(capability.bytes().len() >= 2 && !capability.id().to_string().is_empty());
    }
    for fault in space.chain_faults() {
        assert!(!fault.to_string().is_empty());
    }
    for value in space.fields() {
        let end = usize::from(value.register_offset) + usize::from(value.high) / 8;
        assert!(end < bytes.len(), "{value} lies outside");
        assert!(value.raw >> (value.high - value.low) <= 1 && !value.to_string().is_empty());
        answers += 1;
    }
    answers
}

/// Random bytes with a linked list of capabilities.
fn linked() -> impl Strategy<Value = Vec<u8>> {
    let size = prop_oneof![Just(64usize), Just(256), Just(4096), 0..4200usize];
    (size, proptest::collection::vec(any::<u8>(), 4096), proptest::collection::vec((0..64u16, 0..1024u16), 0..64))
        .prop_map(|(size, mut bytes, links)| {
            bytes[0x06] |= 0x10;
            bytes[0x34] = 0x40;
            let mut at = 0x100usize;
            for (id, next) in links {
                let header = u32::from(id) | 0x1_0000 | u32::from(next) << 22;
                bytes[at..at + 4].copy_from_slice(&header.to_le_bytes());
                at = usize::from(next) * 4;
            }
            bytes.resize(size, 0xa5);
            bytes
        })
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_decoded_and_the_walk_terminates(bytes in proptest::collection::vec(any::<u8>(), 0..4200)) {
        ask_everything(&bytes);
    }

    #[test]
    fn arbitrary_lists_are_decoded_and_the_walk_terminates(bytes in linked()) {
        ask_everything(&bytes);
    }

    #[test]
    fn values_read_from_a_prefix_equal_those_of_the_whole(bytes in linked(), length in 0..4096usize) {
        let part = ConfigSpace::new(&bytes[..length.min(bytes.len())]);
        let whole = ConfigSpace::new(&bytes);
        let answers = [part.vendor_id(), part.device_id()];
        for (part, whole) in answers.into_iter().zip([whole.vendor_id(), whole.device_id()]) {
            prop_assert!(part.is_err() || part == whole);
        }
        let speeds = |space: ConfigSpace<'_>| space.pcie().and_then(|pcie| pcie.link_speed());
        match speeds(part) {
            Ok(speed) => prop_assert_eq!(Ok(speed), speeds(whole)),
            Err(Unknown::NoCapability { .. }) => prop_assert!(speeds(whole).is_err()),
            Err(_) => {}
        }
    }
}

#[test]
fn constant_bytes_are_decoded_without_a_panic() {
    for byte in [0x00, 0x01, 0x10, 0x40, 0x55, 0xaa, 0xfe, 0xff] {
        for length in [0, 1, 63, 64, 65, 255, 256, 257, 4095, 4096, 5000] {
            ask_everything(&vec![byte; length]);
        }
    }
}

fn layouts() -> Vec<&'static Layout> {
    CAPABILITIES.iter().map(|row| row.layout).chain([&HEADER]).collect()
}

fn registers() -> impl Iterator<Item = (&'static Layout, &'static Register)> {
    layouts()
        .into_iter()
        .flat_map(|layout| layout.blocks.iter().flat_map(move |block| block.registers.iter().map(move |r| (layout, r))))
}

#[test]
fn every_register_has_a_position_a_section_and_fields_that_do_not_overlap() {
    // Fields that are a named part of another field.
    let parts: &[(&str, &str)] = &[("DLFCap", "ScaledFlowControl"), ("DLFSta", "RemoteScaledFlowControl")];
    let mut checked = 0;
    for (layout, register) in registers() {
        let place = format!("{} {}", layout.name, register.name);
        assert!(matches!(register.bytes, 1 | 2 | 3 | 4 | 8), "{place}");
        assert!(!register.section.is_empty() && layout.source.contains(' '), "{place}");
        assert!(!register.fields.is_empty(), "{place}");
        let mut used = 0u64;
        let mut names = BTreeSet::new();
        for field in register.fields {
            let place = format!("{place} {}", field.name);
            assert!(field.low <= field.high && field.high < register.bytes * 8, "{place}");
            assert!(names.insert(field.name), "{place} occurs twice");
            if parts.contains(&(register.name, field.name)) {
                continue;
            }
            let mask = field.of(u64::MAX) << field.low;
            assert_eq!(used & mask, 0, "{place} overlaps");
            used |= mask;
            checked += 1;
        }
    }
    assert!(checked > 600, "only {checked} fields");
}

/// Number of codes of the field that are tried, at most 2^16.
fn codes(field: &Field) -> u64 {
    1 << field.width().min(16)
}

#[test]
fn every_code_is_named_or_reported_as_reserved() {
    for (layout, register) in registers() {
        for field in register.fields {
            let place = format!("{} {} {}", layout.name, register.name, field.name);
            match field.meaning {
                Meaning::Flag => assert_eq!(field.width(), 1, "{place}"),
                Meaning::OneOf(names) => {
                    assert!(names.is_sorted_by(|a, b| a.0 < b.0), "{place}");
                    assert!(names.iter().all(|(code, _)| *code < codes(field)), "{place}: a code does not fit");
                    for code in 0..codes(field) {
                        let is_reserved = field.read(code) == Reading::Reserved(code);
                        assert_eq!(is_reserved, !names.iter().any(|(named, _)| *named == code), "{place} {code}");
                    }
                }
                Meaning::AnyOf(names) => {
                    assert!(names.iter().all(|(bits, _)| *bits < codes(field) && bits.is_power_of_two()), "{place}");
                    let whole = names.iter().fold(0, |whole, (bits, _)| whole | bits);
                    let text = |raw| field.read(raw).to_string();
                    assert!(!text(whole).contains("reserved"), "{place}");
                    if whole + 1 < codes(field) {
                        assert!(text(codes(field) - 1).contains("reserved"), "{place}");
                    }
                }
                Meaning::Power { base, most, .. } => {
                    assert!(u64::from(most) < codes(field), "{place}");
                    assert!(matches!(field.read(most.into()), Reading::Quantity(value, _) if value == base << most));
                    if u64::from(most) + 1 < codes(field) {
                        assert_eq!(field.read(u64::from(most) + 1), Reading::Reserved(u64::from(most) + 1), "{place}");
                    }
                }
                Meaning::Number | Meaning::Hex | Meaning::Linear { .. } | Meaning::Computed(_) => {}
            }
        }
    }
}

#[test]
fn every_capability_occurs_once_and_has_a_name() {
    let mut ids = BTreeSet::new();
    for row in CAPABILITIES {
        assert!(ids.insert(row.id), "{} occurs twice", row.id);
        assert_eq!(row.id.to_string(), row.layout.name);
        for block in row.layout.blocks {
            if let Presence::Times { each, stride, .. } = block.presence {
                assert!(!each.is_empty() && stride > 0);
            }
        }
    }
    assert_eq!(CapabilityId::Standard(0x7f).to_string(), "capability 0x7f");
    assert_eq!(CapabilityId::Extended(0x7f).to_string(), "extended capability 0x007f");
}
