//! Instructions that this processor supports.

use lanemark_machine::{Access, Verb, Width};
use std::arch::is_x86_feature_detected;
use std::arch::x86_64::{__cpuid, __cpuid_count};

/// Processor, as described by CPUID.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Cpu {
    /// Brand string, such as `Intel(R) Xeon(R) Processor`.
    pub(crate) brand: String,
    /// Whether the time-stamp counter runs at one rate in every power state (invariant TSC).
    pub(crate) has_invariant_tsc: bool,
    /// Rate of the counter if CPUID reports it.
    pub(crate) tsc_hz: Option<u64>,
    features: Features,
}

/// Instruction-set extensions of the loops beyond SSE2, which every x86-64 processor supports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(clippy::struct_excessive_bools)] // Each is one bit of CPUID.
struct Features {
    sse4_1: bool,
    avx2: bool,
    avx512f: bool,
    movdiri: bool,
    movdir64b: bool,
}

impl Cpu {
    /// Detects this processor.
    pub(crate) fn detected() -> Cpu {
        // Source: Intel SDM volume 2, CPUID, leaf 7 subleaf 0, ECX bits 27 and 28.
        let leaf7 = if __cpuid(0).eax >= 7 { __cpuid_count(7, 0).ecx } else { 0 };
        Cpu {
            brand: brand(),
            has_invariant_tsc: extended(0x8000_0007).is_some_and(|leaf| leaf[3] & (1 << 8) != 0),
            tsc_hz: tsc_hz(),
            features: Features {
                sse4_1: is_x86_feature_detected!("sse4.1"),
                avx2: is_x86_feature_detected!("avx2"),
                avx512f: is_x86_feature_detected!("avx512f"),
                movdiri: leaf7 & (1 << 27) != 0,
                movdir64b: leaf7 & (1 << 28) != 0,
            },
        }
    }

    /// Accesses that are supported for `verb`, in listing order.
    pub(crate) fn accesses(&self, verb: Verb) -> Vec<Access> {
        Access::ALL.into_iter().filter(|access| self.lacks(verb, *access).is_none()).collect()
    }

    /// Reason why the processor does not support the access; `None` if it does.
    ///
    /// Source: Intel SDM volume 2, the "CPUID feature flag" column of each instruction.
    pub(crate) fn lacks(&self, verb: Verb, access: Access) -> Option<&'static str> {
        let Features { sse4_1, avx2, avx512f, movdiri, movdir64b } = self.features;
        let sse4_1 = (sse4_1, "this processor has no SSE4.1");
        let avx2 = (avx2, "this processor has no AVX2");
        let avx512f = (avx512f, "this processor has no AVX-512F, or the system does not save its registers");
        let always = (true, "");
        let (has, reason) = match (verb, access) {
            (_, Access::Memcpy | Access::RepMovsb)
            | (Verb::Store, Access::NonTemporal(Width::B8 | Width::B16) | Access::CopyToDevice) => always,
            (Verb::Load, Access::CopyToDevice) => (false, "it copies to a device, not from a device"),
            (_, Access::Plain(width)) => match width {
                Width::B1 | Width::B2 | Width::B4 | Width::B8 | Width::B16 => always,
                Width::B32 => avx2,
                Width::B64 => avx512f,
            },
            (Verb::Load, Access::NonTemporal(Width::B16)) => sse4_1,
            (_, Access::NonTemporal(Width::B32)) => avx2,
            (_, Access::NonTemporal(Width::B64)) => avx512f,
            (Verb::Store, Access::Movdiri(Width::B4 | Width::B8)) => (movdiri, "this processor has no MOVDIRI"),
            (Verb::Store, Access::Movdir64b) => (movdir64b, "this processor has no MOVDIR64B"),
            (_, Access::NonTemporal(_) | Access::Movdiri(_) | Access::Movdir64b) => {
                (false, "no x86 instruction does this")
            }
        };
        (!has).then_some(reason)
    }
}

/// EAX, EBX, ECX and EDX of an extended CPUID leaf, if the processor has it.
fn extended(leaf: u32) -> Option<[u32; 4]> {
    (__cpuid(0x8000_0000).eax >= leaf).then(|| {
        let found = __cpuid(leaf);
        [found.eax, found.ebx, found.ecx, found.edx]
    })
}

/// Brand string. Source: Intel SDM volume 2, CPUID, leaves 80000002H to 80000004H: 48 characters, padded.
fn brand() -> String {
    let leaves = [0x8000_0002, 0x8000_0003, 0x8000_0004].map(|leaf| extended(leaf).unwrap_or([0; 4]));
    let bytes: Vec<u8> = leaves.concat().into_iter().flat_map(u32::to_le_bytes).filter(|byte| *byte != 0).collect();
    let words: Vec<String> = String::from_utf8_lossy(&bytes).split_whitespace().map(str::to_owned).collect();
    if words.is_empty() { "an x86-64 processor without a brand string".to_owned() } else { words.join(" ") }
}

/// TSC rate. Source: Intel SDM volume 3, "Determining the Processor Base Frequency": crystal x EBX / EAX of leaf 15H;
/// if leaf 15H does not report the crystal, the base frequency of leaf 16H.
fn tsc_hz() -> Option<u64> {
    let last = __cpuid(0).eax;
    if last < 0x15 {
        return None;
    }
    let ratio = __cpuid(0x15);
    if ratio.eax == 0 || ratio.ebx == 0 {
        return None;
    }
    if ratio.ecx != 0 {
        return Some(u64::from(ratio.ecx) * u64::from(ratio.ebx) / u64::from(ratio.eax));
    }
    let base_mhz = if last >= 0x16 { __cpuid(0x16).eax & 0xffff } else { 0 };
    (base_mhz != 0).then(|| u64::from(base_mhz) * 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(features: Features) -> Cpu {
        Cpu { brand: String::new(), has_invariant_tsc: true, tsc_hz: None, features }
    }

    const NOTHING: Features = Features { sse4_1: false, avx2: false, avx512f: false, movdiri: false, movdir64b: false };
    const ALL: Features = Features { sse4_1: true, avx2: true, avx512f: true, movdiri: true, movdir64b: true };

    #[test]
    fn the_oldest_processor_supports_the_sse2_accesses() {
        let names = |verb| with(NOTHING).accesses(verb).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!(names(Verb::Store), "1 2 4 8 16 memcpy rep_movsb nt8 nt16 copy_to_device");
        assert_eq!(names(Verb::Load), "1 2 4 8 16 memcpy rep_movsb");
    }

    #[test]
    fn the_newest_processor_supports_all_stores_and_all_existing_loads() {
        assert_eq!(with(ALL).accesses(Verb::Store), Access::ALL);
        let names = with(ALL).accesses(Verb::Load).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!(names, "1 2 4 8 16 32 64 memcpy rep_movsb nt16 nt32 nt64");
    }

    #[test]
    fn a_missing_feature_removes_its_accesses_and_is_named() {
        let wide = [Access::Plain(Width::B64), Access::NonTemporal(Width::B64)];
        let cpu = with(Features { avx512f: false, ..ALL });
        for access in wide {
            assert!(cpu.lacks(Verb::Store, access).unwrap().contains("AVX-512F"));
        }
        let cpu = with(Features { movdir64b: false, ..ALL });
        assert!(cpu.lacks(Verb::Store, Access::Movdir64b).unwrap().contains("MOVDIR64B"));
        let cpu = with(Features { movdiri: false, ..ALL });
        assert!(cpu.lacks(Verb::Store, Access::Movdiri(Width::B4)).unwrap().contains("MOVDIRI"));
        let cpu = with(Features { sse4_1: false, ..ALL });
        assert!(cpu.lacks(Verb::Load, Access::NonTemporal(Width::B16)).unwrap().contains("SSE4.1"));
        assert!(cpu.lacks(Verb::Store, Access::NonTemporal(Width::B16)).is_none());
        let cpu = with(Features { avx2: false, ..ALL });
        assert!(cpu.lacks(Verb::Load, Access::Plain(Width::B32)).unwrap().contains("AVX2"));
    }

    #[test]
    fn accesses_without_an_instruction_are_reported_as_such() {
        let cpu = with(ALL);
        for access in [Access::NonTemporal(Width::B4), Access::Movdiri(Width::B16)] {
            assert_eq!(cpu.lacks(Verb::Store, access), Some("no x86 instruction does this"));
        }
        assert!(cpu.lacks(Verb::Load, Access::NonTemporal(Width::B8)).is_some());
        assert!(cpu.lacks(Verb::Load, Access::Movdir64b).is_some());
    }

    #[test]
    fn the_brand_string_is_one_nonempty_line() {
        let brand = Cpu::detected().brand;
        assert!(!brand.is_empty() && !brand.contains(char::is_control), "{brand:?}");
    }
}
