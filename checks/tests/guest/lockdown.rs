//! Behaviour under kernel lockdown, as with secure boot.

use crate::boot;
use crate::sharing::{Guests, Lent};

fn shared() -> Lent {
    // With `lockdown=integrity`, our module, which has no signature, could not be loaded.
    static GUESTS: Guests = Guests::new(|| {
        let mut guest = boot("");
        guest.expect("mount -t securityfs s /sys/kernel/security; echo integrity >/sys/kernel/security/lockdown");
        guest
    });
    GUESTS.lend()
}

pub fn vfio_works_under_lockdown() {
    let asked = "--question dma_map_cost --sizes 4KiB --budget 0.1";
    let said = shared().expect(&format!("lanemark bench --on 0000:00:07.0 --bind vfio-pci {asked}"));
    assert!(said.contains("iommu strict") && said.ends_with("restored; driver now: nvme\n"), "{said}");
}

pub fn kernel_lockdown_is_named_as_the_reason() {
    let mut guest = shared();
    let state = guest.expect("cat /sys/kernel/security/lockdown");
    assert!(state.contains("[integrity]"), "{state}");
    let refused = guest.run("touch-card 0000:01:00.0 2:0..4KiB uc peek:0:4");
    assert!(refused.status == 1 && refused.stderr.contains("kernel lockdown"), "{refused:?}");
    // Commands without a mapping still work.
    guest.expect("lanemark bench --on aws-f1 --question mmio_read_latency --sizes 64 --json >/dev/null");
}

pub fn our_module_is_refused_under_lockdown_with_the_reason_and_what_works() {
    let mut guest = shared();
    let refused = guest.run("lanemark bench --on 0000:01:00.0 --bind lanemark --bar 2:0..4KiB");
    assert_eq!(refused.status, 77, "{refused:?}");
    for words in ["0000:01:00.0", "kernel lockdown", "VFIO works under lockdown"] {
        assert!(refused.stderr.contains(words), "{words}: {refused:?}");
    }
    assert!(refused.stdout.ends_with("restored; driver now: none\n"), "{refused:?}");
}
