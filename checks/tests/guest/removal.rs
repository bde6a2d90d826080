//! Removal of a card while a program uses it.

use crate::guest::{Guest, Hardware, KERNEL};
use crate::programs;
use crate::sharing::{Guests, Lent};
use std::fs;

/// Cards in hot-plug slots, one for each test: the kernel has no room for a large BAR that is plugged again.
///
/// | address | device |
/// | --- | --- |
/// | 01:00.0 | ivshmem: the file `first` on the outside |
/// | 02:00.0 | ivshmem: the file `second` on the outside |
const DEVICES: &[&str] = &[
    "-device pcie-root-port,id=rp1,chassis=1,slot=1,addr=0x2",
    "-object memory-backend-file,id=first-memory,share=on,mem-path={folder}/first,size=4M",
    "-device ivshmem-plain,id=first,memdev=first-memory,bus=rp1",
    "-device pcie-root-port,id=rp2,chassis=2,slot=2,addr=0x3",
    "-object memory-backend-file,id=second-memory,share=on,mem-path={folder}/second,size=4M",
    "-device ivshmem-plain,id=second,memdev=second-memory,bus=rp2",
];

/// A guest that these tests share.
fn shared() -> Lent {
    static GUESTS: Guests = Guests::new(|| {
        Guest::boot(&Hardware { packages: KERNEL, devices: DEVICES, kernel: "" }, &programs(), |folder| {
            for file in ["first", "second"] {
                fs::write(folder.join(file), vec![0; 4 << 20]).unwrap();
            }
        })
    });
    GUESTS.lend()
}

/// Removes the card `id` while a run uses it. Returns the exit status of the run in a line, and its output.
fn removed(guest: &mut Guest, (card, id): (&str, &str), more: &str) -> String {
    // The run takes twenty seconds without removal; it has begun when bytes arrive outside.
    guest.expect(&format!(
        "rm -f status; (lanemark bench --on {card} --bar 2:0..4KiB {more} >said 2>&1; echo $? >status) >/dev/null 2>&1 &"
    ));
    let begun = |guest: &Guest| fs::read(guest.file(id)).unwrap()[..4096].iter().any(|byte| *byte != 0);
    for _ in 0..600 {
        if begun(guest) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert!(begun(guest), "nothing was stored in a minute: {:?}", guest.run("cat said status"));
    guest.monitor(&format!("device_del {id}"));
    guest.expect("for i in $(seq 900); do [ -s status ] && break; sleep 0.1; done; cat status said")
}

pub fn removing_a_card_ends_the_run_with_its_name() {
    let mut guest = shared();
    let said = removed(&mut guest, ("0000:01:00.0", "first"), "--enable");
    assert!(said.starts_with("1\n"), "{said}");
    assert!(said.contains("0000:01:00.0 is gone") || said.contains("0000:01:00.0: bus error"), "{said}");
    // A later run reports the missing card.
    let after = guest.run("touch-card 0000:01:00.0 2:0..4KiB uc peek:0:4");
    assert!(after.status == 1 && after.stderr.contains("does not exist"), "{after:?}");
}

pub fn removing_a_card_behind_our_module_ends_its_run() {
    let mut guest = shared();
    let said = removed(&mut guest, ("0000:02:00.0", "second"), "--question mmio_write_bandwidth --bind lanemark");
    assert!(said.starts_with("1\n"), "{said}");
    // The kernel takes its driver away first.
    let seen = ["is gone", "was unbound", "was 1af4:1110"].map(|words| format!("lanemark: 0000:02:00.0 {words}"));
    let is_named = seen.iter().any(|words| said.contains(words)) || said.contains("0000:02:00.0: bus error");
    assert!(is_named, "{said}");
    guest.expect("rm -f /run/lanemark/0000:02:00.0.*");
}
