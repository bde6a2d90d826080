//! Binding of a card to another driver, and back.

use crate::guest::Guest;
use crate::shared;

/// A drive whose driver is `nvme`.
const DRIVE: &str = "0000:00:07.0";

/// The driver of a function, or an empty line.
fn driver(guest: &mut Guest, function: &str) -> String {
    let link = format!("/sys/bus/pci/devices/{function}/driver");
    guest.expect(&format!("[ ! -e {link} ] || basename $(readlink {link})")).trim().to_owned()
}

pub fn a_drive_is_bound_to_vfio_and_back_to_its_driver() {
    let mut guest = shared();
    let dry = guest.expect(&format!("lanemark bind {DRIVE} --dry-run"));
    assert!(dry.contains(&format!("echo {DRIVE} > /sys/bus/pci/drivers/nvme/unbind")), "{dry}");
    assert_eq!(driver(&mut guest, DRIVE), "nvme", "a dry run changes nothing");
    let bound = guest.expect(&format!("lanemark bind {DRIVE}"));
    assert!(bound.contains("bound to vfio-pci"), "{bound}");
    assert_eq!(driver(&mut guest, DRIVE), "vfio-pci");
    // A journal of its former driver remains, and the function is not bound twice.
    let listed = guest.expect("lanemark unbind");
    assert!(listed.contains(&format!("{DRIVE} was bound to vfio-pci, driver before: nvme")), "{listed}");
    let twice = guest.run(&format!("lanemark bind {DRIVE}"));
    assert!(twice.status == 2 && twice.stderr.contains("lanemark unbind"), "{twice:?}");
    let restored = guest.expect(&format!("lanemark unbind {DRIVE}"));
    assert!(restored.contains("restored; driver now: nvme"), "{restored}");
    assert_eq!(driver(&mut guest, DRIVE), "nvme");
    assert_eq!(guest.expect("lanemark unbind"), "every function has its former driver\n");
    assert_eq!(guest.expect(&format!("cat /sys/bus/pci/devices/{DRIVE}/driver_override")).trim(), "(null)");
}

pub fn a_card_without_a_driver_is_bound_and_left_without_one() {
    let mut guest = shared();
    // Below a switch, whose ports share its group and keep their driver.
    let card = "0000:04:00.0";
    guest.expect(&format!("lanemark bind {card}"));
    assert_eq!(driver(&mut guest, card), "vfio-pci");
    guest.expect(&format!("lanemark unbind {card}"));
    assert_eq!(driver(&mut guest, card), "");
    // The driver left memory decoding off.
    guest.expect(&format!("echo 1 >/sys/bus/pci/devices/{card}/enable"));
}

pub fn a_driver_that_refuses_the_device_leaves_the_former_one() {
    let mut guest = shared();
    // The driver of another kind of device.
    let refused = guest.run(&format!("lanemark bind {DRIVE} --to serial"));
    assert!(refused.status == 1 && refused.stderr.contains("instead of 'serial'"), "{refused:?}");
    assert_eq!(driver(&mut guest, DRIVE), "nvme");
    assert_eq!(guest.expect("lanemark unbind"), "every function has its former driver\n");
}

pub fn binding_needs_root() {
    // Whether a drive is in use cannot be seen without root; a card is refused at the first step.
    for function in [DRIVE, "0000:01:00.0"] {
        let said = shared().run_as_somebody("lanemark", &format!("bind {function}"));
        assert!(said.status == 1 && said.stderr.contains("run as root"), "{said:?}");
    }
}
