//! Conditions under which a method is correct or as fast as predicted. No method is advised without them.

use lanemark_method::{Access, Completion, CoreAccess, Descriptors, Method, Share, Verb};
use lanemark_platform::memcpy::Variant;
use lanemark_units::{MemoryType, format_size};

/// Lengths up to which a `memcpy` variant is searched for `rep movsb`, in bytes.
const LONGEST: u64 = 1 << 16;

/// The conditions of `method` on a machine with this `memcpy` variant, one sentence each; empty if there are none.
///
/// Sources: Intel SDM volume 3, chapter "Memory Cache Control" (memory types), and the instructions that
/// [`Variant`] lists.
pub(crate) fn conditions(method: &Method, memcpy: &str) -> Vec<String> {
    let core = match method {
        Method::Core(core) => core,
        Method::DmaCall { share, descriptors, completion, .. } => return of_call(*share, *descriptors, *completion),
        _ => return Vec::new(),
    };
    let mut conditions: Vec<String> = Vec::new();
    let mut add = |text: &str| conditions.push(text.to_owned());
    let is_direct = matches!(core.access, Access::Movdiri(_) | Access::Movdir64b);
    // Non-temporal stores are combined in every memory type but UC.
    let is_combined = core.memory_type == MemoryType::Wc
        || (matches!(core.access, Access::NonTemporal(_)) && core.memory_type != MemoryType::Uc);
    match (core.verb, core.memory_type) {
        (Verb::Load, MemoryType::Wt | MemoryType::Wp) => {
            add(STALE);
            add(SIDE_EFFECTS);
        }
        (Verb::Load, MemoryType::Wc) => {
            if matches!(core.access, Access::NonTemporal(_)) {
                add("execute MFENCE before loading data again: a streaming-load buffer may still hold the old data");
            }
            add(SIDE_EFFECTS);
        }
        (Verb::Load, MemoryType::Uc | MemoryType::Wb) => {}
        (Verb::Store, memory_type) => {
            if is_combined || is_direct {
                add("execute SFENCE before a doorbell: the order of these stores is not kept");
            }
            if is_combined && !is_direct {
                add("not for a FIFO at one address: stores to the same address may be combined");
            }
            if matches!(memory_type, MemoryType::Wt | MemoryType::Wp) {
                add(
                    "execute CLFLUSH for each line and then MFENCE before loading from this range: cached lines go stale when the device writes",
                );
            }
        }
    }
    conditions.extend(memcpy_cliff(*core, memcpy));
    conditions
}

/// The condition of loads from cached memory types.
const STALE: &str = "cached lines go stale when the device writes: execute CLFLUSH for each line and then MFENCE before loading it again";
/// The condition of loads that may be speculative.
const SIDE_EFFECTS: &str =
    "never map registers with side effects, or a FIFO, with this memory type: loads may be speculative";

/// The conditions of DMA that a core starts.
fn of_call(share: Share, descriptors: Descriptors, completion: Completion) -> Vec<String> {
    let mut conditions: Vec<&str> = Vec::new();
    if share == Share::List {
        conditions.push("the program needs pinned buffers and mapped registers, such as by VFIO");
    }
    if descriptors == Descriptors::Written(MemoryType::Wc) {
        conditions.push("map the descriptors apart from the doorbell, and execute SFENCE between both");
    }
    if completion == Completion::Flag {
        conditions.push("the device writes the flag after the data, without Relaxed Ordering");
    }
    conditions.into_iter().map(str::to_owned).collect()
}

/// The cliff of a copy routine on memory that does not combine accesses; `None` for other methods.
fn memcpy_cliff(core: CoreAccess, memcpy: &str) -> Option<String> {
    let memory_type = core.memory_type;
    let is_combined = match core.verb {
        Verb::Store => matches!(memory_type, MemoryType::Wc | MemoryType::Wb),
        // A load from a cached type fetches a line.
        Verb::Load => matches!(memory_type, MemoryType::Wt | MemoryType::Wp | MemoryType::Wb),
    };
    let text = match core.access {
        _ if is_combined => return None,
        Access::RepMovsb => format!("rep movsb moves one byte per TLP on {memory_type} memory"),
        Access::Memcpy => match Variant::from_name(memcpy).and_then(rep_movsb_from) {
            Some(bytes) => format!(
                "{memcpy} uses rep movsb from {} on, which moves one byte per TLP on {memory_type} memory: use a loop of wide accesses",
                format_size(bytes)
            ),
            None => format!(
                "memcpy may use rep movsb for long copies, which moves one byte per TLP on {memory_type} memory: use a loop of wide accesses"
            ),
        },
        _ => return None,
    };
    Some(text)
}

/// The length from which a variant uses `rep movsb`, in bytes.
fn rep_movsb_from(variant: Variant) -> Option<u64> {
    (1..=LONGEST).find(|len| variant.stores(*len, 0).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_method::{AccessPath, Width};

    fn of(verb: Verb, memory_type: MemoryType, access: Access) -> Vec<String> {
        let core = CoreAccess { path: AccessPath::Pointer, verb, memory_type, access, fence: None };
        conditions(&Method::Core(core), "glibc-2.20-avx-unaligned")
    }

    #[test]
    fn cached_loads_name_the_flush_and_the_registers() {
        for memory_type in [MemoryType::Wt, MemoryType::Wp] {
            let text = of(Verb::Load, memory_type, Access::Plain(Width::B8)).join("; ");
            assert!(text.contains("CLFLUSH") && text.contains("side effects"), "{text}");
        }
        assert_eq!(of(Verb::Load, MemoryType::Uc, Access::Plain(Width::B8)), [""; 0]);
    }

    #[test]
    fn direct_and_non_temporal_stores_need_a_fence_in_every_type_that_does_not_order_them() {
        let fenced =
            |memory_type, access| of(Verb::Store, memory_type, access).iter().any(|text| text.contains("SFENCE"));
        for memory_type in [MemoryType::Uc, MemoryType::Wc, MemoryType::Wp] {
            assert!(fenced(memory_type, Access::Movdir64b), "{memory_type}");
        }
        assert!(fenced(MemoryType::Wt, Access::NonTemporal(Width::B16)));
        assert!(!fenced(MemoryType::Uc, Access::NonTemporal(Width::B16)));
        assert!(!fenced(MemoryType::Uc, Access::Plain(Width::B64)));
    }

    #[test]
    fn a_call_has_the_conditions_of_its_descriptors_and_its_notification() {
        let wc = of_call(Share::List, Descriptors::Written(MemoryType::Wc), Completion::Flag);
        assert_eq!(wc.len(), 3);
        assert_eq!(of_call(Share::Call, Descriptors::Fetched, Completion::Interrupt), [""; 0]);
    }

    #[test]
    fn a_memcpy_to_uc_names_the_length_of_its_cliff() {
        let text = of(Verb::Store, MemoryType::Uc, Access::Memcpy).join("; ");
        assert!(text.contains("from 2KiB on"), "{text}");
        assert_eq!(rep_movsb_from(Variant::Glibc224AvxErms), Some(4096));
        assert_eq!(of(Verb::Load, MemoryType::Wt, Access::Memcpy).len(), 2, "a load of a cached type fetches lines");
        assert!(of(Verb::Store, MemoryType::Wc, Access::Memcpy).iter().all(|text| !text.contains("rep movsb")));
    }
}
