//! Removal of a card while a program uses it.

use crate::guest::{Guest, Hardware, KERNEL};
use crate::programs;
use std::fs;

/// A card in a hot-plug slot.
const DEVICES: &[&str] = &[
    "-device pcie-root-port,id=rp1,chassis=1,slot=1,addr=0x2",
    "-object memory-backend-file,id=storage,share=on,mem-path={folder}/storage,size=4M",
    "-device ivshmem-plain,id=card,memdev=storage,bus=rp1",
];

pub fn removing_a_card_ends_the_run_with_its_name() {
    let hardware = Hardware { packages: KERNEL, devices: DEVICES, kernel: "" };
    let mut guest = Guest::boot(&hardware, &programs(), |folder| {
        fs::write(folder.join("storage"), vec![0; 4 << 20]).unwrap();
    });
    // The run takes twenty seconds without removal; it has begun when bytes arrive outside.
    guest.expect(
        "(lanemark bench --on 0000:01:00.0 --bar 2:0..4KiB --enable >said 2>&1; echo $? >status) >/dev/null 2>&1 &",
    );
    let begun = |guest: &Guest| fs::read(guest.file("storage")).unwrap()[..4096].iter().any(|byte| *byte != 0);
    for _ in 0..600 {
        if begun(&guest) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert!(begun(&guest), "nothing was stored in a minute: {:?}", guest.run("cat said status"));
    guest.monitor("device_del card");
    let said = guest.expect("for i in $(seq 900); do [ -s status ] && break; sleep 0.1; done; cat status said");
    println!("{said}");
    assert!(said.starts_with("1\n"), "{said}");
    assert!(said.contains("0000:01:00.0 is gone") || said.contains("0000:01:00.0: bus error"), "{said}");
    // A later run reports the missing card.
    let after = guest.run("touch-card 0000:01:00.0 2:0..4KiB uc peek:0:4");
    assert!(after.status == 1 && after.stderr.contains("does not exist"), "{after:?}");
}
