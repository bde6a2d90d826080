//! Does a card do what the guide says, and arrive what was stored?

use crate::shared;
use lanemark_checks::conformance::PROMISES;

#[test]
fn a_card_keeps_every_promise() {
    let mut guest = shared();
    guest.expect("echo 1 >/sys/bus/pci/devices/0000:01:00.0/enable");
    let said = guest.run("time promises card 0000:01:00.0 2:0..64KiB");
    println!("{}{}", said.stdout, said.stderr);
    assert_eq!(said.status, 0, "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.ends_with(&format!("{} passed, 0 failed\n", PROMISES.len())), "{}", said.stdout);
}
