//! Typed answers for devices whose fields lspci confirms.

use crate::devices;
use lanemark_wire::Lanes;
use lanemark_wire::config::{ConfigSpace, Errors, LinkSpeed, PortType, TagBits, Unknown};

fn device(name: &str) -> Vec<u8> {
    devices::all().into_iter().find(|(device, _)| *device == name).unwrap().1.bytes
}

pub fn an_nvme_drive_that_trained_below_its_capability() {
    let bytes = device("nvme");
    let space = ConfigSpace::new(&bytes);
    let pcie = space.pcie().unwrap();
    assert_eq!(space.class_code(), Ok(0x01_08_02));
    assert_eq!(pcie.port_type(), Ok(PortType::Endpoint));
    assert_eq!((pcie.max_link_speed(), pcie.max_link_width()), (Ok(LinkSpeed::Gt16), Ok(Lanes::X4)));
    assert_eq!((pcie.link_speed(), pcie.link_width()), (Ok(LinkSpeed::Gt8), Ok(Lanes::X2)));
    assert_eq!(pcie.target_link_speed(), Ok(LinkSpeed::Gt16));
    assert_eq!(pcie.supported_link_speeds().unwrap().last(), Some(LinkSpeed::Gt16));
    assert_eq!((pcie.max_payload_supported(), pcie.max_payload()), (Ok(256), Ok(256)));
    assert_eq!(pcie.max_read_request(), Ok(512));
    assert_eq!((pcie.extended_tags_supported(), pcie.extended_tags()), (Ok(false), Ok(true)));
    assert_eq!((pcie.relaxed_ordering(), pcie.no_snoop()), (Ok(true), Ok(true)));
    assert!(pcie.aspm_enabled().is_ok_and(|aspm| aspm.l1 && !aspm.l0s));
    assert_eq!(pcie.link_active(), Ok(None));
    assert!(space.equalization(LinkSpeed::Gt8).is_ok_and(|done| done.complete && done.phases == [true; 3]));
    assert!(space.equalization(LinkSpeed::Gt16).is_ok_and(|done| done.complete && done.requested));
    assert!(matches!(space.equalization(LinkSpeed::Gt32), Err(Unknown::NoCapability { .. })));
    assert_eq!(space.scaled_flow_control(), Ok((true, None)));
    assert_eq!(space.tag_bits(), Ok(TagBits::Eight));
    let errors = space.error_reporting().unwrap();
    let names = |errors: Errors| errors.names().collect::<Vec<_>>();
    assert_eq!(errors.uncorrectable_mask().map(names), Ok(vec!["UnsupReq"]));
    assert_eq!(errors.correctable_status().map(names), Ok(vec!["AdvNonFatalErr"]));
    assert_eq!(errors.header_log().map(|log| log[0]), Ok(0x0400_0001));
}

pub fn a_network_card_with_virtual_functions() {
    let bytes = device("nic-sriov");
    let space = ConfigSpace::new(&bytes);
    let functions = space.virtual_functions().unwrap();
    assert_eq!((functions.enabled, functions.total, functions.number), (true, 8, 4));
    assert_eq!((functions.first_offset, functions.stride, functions.device_id), (2, 1, 0x101e));
    assert_eq!(space.address_translation(), Ok(true));
    assert_eq!(space.page_requests(), Ok(false));
    assert_eq!(space.process_address_spaces(), Ok(false));
    assert_eq!(space.tag_bits(), Ok(TagBits::Ten));
}

pub fn a_gpu_whose_bar_could_be_larger() {
    let bytes = device("gpu");
    let bars: Vec<_> = ConfigSpace::new(&bytes).resizable_bars().unwrap().map(Result::unwrap).collect();
    assert_eq!((bars[0].bar, bars[0].size_bytes(), bars[0].largest_bytes()), (0, Some(256 << 20), Some(16 << 30)));
    assert_eq!((bars[1].bar, bars[1].size_bytes(), bars[1].largest_bytes()), (2, Some(256 << 20), Some(256 << 20)));
    let substates = ConfigSpace::new(&bytes).l1_substates().unwrap();
    assert!(!substates.aspm_l1_2 && substates.pci_pm_l1_1);
}

pub fn a_root_port_with_a_slot_and_access_control() {
    let bytes = device("root-port");
    let space = ConfigSpace::new(&bytes);
    let pcie = space.pcie().unwrap();
    assert_eq!((pcie.port_type(), pcie.has_slot()), (Ok(PortType::RootPort), Ok(true)));
    assert_eq!(pcie.slot(), Ok((4, 350_000)));
    let buses = space.bus_numbers().unwrap();
    assert_eq!((buses.primary, buses.secondary, buses.subordinate), (0x15, 0x16, 0x17));
    let windows = space.windows().unwrap();
    assert_eq!(windows.prefetchable, Some(0x201f_0000_0000..=0x205f_ffff_ffff));
    let access = space.access_control().unwrap();
    assert!(access.request_redirect && access.completion_redirect && !access.direct_translated);
    assert_eq!(space.containment_trigger(), Ok(1));
    assert_eq!(space.subsystem(), Ok((0x8086, 0)));
    // Without root rights: unseen facts are reported as such.
    let seen = ConfigSpace::new(&bytes[..64]);
    assert_eq!(seen.windows(), Ok(windows));
    assert!(matches!(seen.pcie(), Err(Unknown::ListCut { visible: 64, .. })));
    assert!(matches!(seen.access_control(), Err(Unknown::ListCut { visible: 64, .. })));
}

pub fn a_cxl_device_in_flit_mode() {
    let bytes = device("cxl-memory");
    let space = ConfigSpace::new(&bytes);
    assert_eq!(space.cxl_ids().collect::<Vec<_>>(), [0, 8]);
    assert_eq!(space.pcie().unwrap().flit_supported(), Ok(true));
    assert!(space.fourteen_bit_tags().is_ok_and(|tags| tags.completer && tags.requester_supported && !tags.requester));
    assert_eq!(space.serial_number(), Ok(0x0807_0605_0403_0201));
}
