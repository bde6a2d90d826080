//! Detection of instruction-set emulators, under which timings are not meaningful.

/// Name of the emulator that interprets this machine's instructions, and why its timings are not meaningful.
///
/// Returns `None` on a processor, also inside a virtual machine.
#[must_use]
pub fn interpreter() -> Option<&'static str> {
    let tcg = hypervisor().is_some_and(|name| name == *b"TCGTCGTCGTCG");
    tcg.then_some("QEMU interprets every instruction (TCG) and does not model memory types")
}

/// Hypervisor signature. Source: CPUID leaf 40000000H, see KVM's `Documentation/virt/kvm/x86/cpuid.rst`.
#[cfg(target_arch = "x86_64")]
fn hypervisor() -> Option<[u8; 12]> {
    use std::arch::x86_64::__cpuid;
    if __cpuid(1).ecx & 1 << 31 == 0 {
        return None;
    }
    let leaf = __cpuid(0x4000_0000);
    let mut name = [0; 12];
    for (bytes, register) in name.chunks_mut(4).zip([leaf.ebx, leaf.ecx, leaf.edx]) {
        bytes.copy_from_slice(&register.to_le_bytes());
    }
    Some(name)
}

#[cfg(not(target_arch = "x86_64"))]
fn hypervisor() -> Option<[u8; 12]> {
    None
}
