//! Temporary changes of the storage card's state.

use crate::guest::Guest;
use crate::{BEFORE, STORAGE_BYTES};
use std::fs::File;
use std::io::Write as _;

/// Path of the card in sysfs.
pub const CARD: &str = "/sys/bus/pci/devices/0000:01:00.0";

/// Restores the initial bytes from outside of the guest.
pub fn fresh(guest: &Guest) {
    // Overwritten in place, because the emulator has the file mapped.
    let mut storage = File::options().write(true).open(guest.file("storage")).unwrap();
    storage.write_all(&vec![BEFORE; STORAGE_BYTES]).unwrap();
}

/// Binds the card to a driver while `then` runs.
pub fn bound_to<T>(guest: &mut Guest, driver: &str, then: impl FnOnce(&mut Guest) -> T) -> T {
    guest.expect(&format!("echo {driver} >{CARD}/driver_override; echo 0000:01:00.0 >/sys/bus/pci/drivers_probe"));
    guest.expect(&format!("test \"$(basename $(readlink {CARD}/driver))\" = {driver}"));
    // A driver may leave memory decoding off.
    guest.run(&format!("echo 1 >{CARD}/enable"));
    let done = then(guest);
    guest.expect(&format!("echo 0000:01:00.0 >{CARD}/driver/unbind; echo >{CARD}/driver_override"));
    guest.expect(&format!("echo 1 >{CARD}/enable"));
    done
}

/// Turns memory decoding off while `then` runs.
pub fn with_decoding_off<T>(guest: &mut Guest, then: impl FnOnce(&mut Guest) -> T) -> T {
    // The kernel counts enables, and keeps decoding on at the end: bit 1 of the command register.
    let nobody = format!("while [ $(cat {CARD}/enable) -gt 0 ]; do echo 0 >{CARD}/enable; done");
    guest.expect(&format!("{nobody}; printf '\\000\\000' | dd of={CARD}/config bs=1 seek=4 conv=notrunc"));
    let done = then(guest);
    guest.expect(&format!("echo 1 >{CARD}/enable"));
    done
}
