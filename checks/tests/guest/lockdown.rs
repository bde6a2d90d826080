//! Behaviour under kernel lockdown, as with secure boot.

use crate::boot;

pub fn kernel_lockdown_is_named_as_the_reason() {
    let mut guest = boot("lockdown=integrity");
    let state = guest.expect("mount -t securityfs s /sys/kernel/security; cat /sys/kernel/security/lockdown");
    assert!(state.contains("[integrity]"), "{state}");
    let refused = guest.run("touch-card 0000:01:00.0 2:0..4KiB uc peek:0:4");
    assert!(refused.status == 1 && refused.stderr.contains("kernel lockdown"), "{refused:?}");
    // Commands without a mapping still work.
    guest.expect("lanemark bench --on aws-f1 --question mmio_read_latency --sizes 64 --json >/dev/null");
}
