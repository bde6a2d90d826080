//! Conditions under which a method is correct or as fast as predicted. No method is advised without them.

use lanemark_method::{Access, CoreAccess, Method, Verb};
use lanemark_platform::memcpy::Variant;
use lanemark_units::{MemoryType, format_size};

/// Lengths up to which a `memcpy` variant is searched for `rep movsb`, in bytes.
const LONGEST: u64 = 1 << 16;

/// The conditions of `method` on a machine with this `memcpy` variant, one sentence each; empty if there are none.
///
/// Sources: Intel SDM volume 3, chapter "Memory Cache Control" (memory types), and the instructions that
/// [`Variant`] lists.
pub(crate) fn conditions(method: &Method, memcpy: &str) -> Vec<String> {
    let Method::Core(core) = method else { return Vec::new() };
    let mut conditions: Vec<String> = Vec::new();
    let mut add = |text: &str| conditions.push(text.to_owned());
    match (core.verb, core.memory_type) {
        (Verb::Load, MemoryType::Wt | MemoryType::Wp) => {
            add(
                "cached lines go stale when the device writes: execute CLFLUSH for each line and then MFENCE before loading it again",
            );
            add("never map registers with side effects, or a FIFO, with this memory type: loads may be speculative");
        }
        (Verb::Load, MemoryType::Wc) => {
            if matches!(core.access, Access::NonTemporal(_)) {
                add("execute MFENCE before loading data again: a streaming-load buffer may still hold the old data");
            }
            add("never map registers with side effects, or a FIFO, with this memory type: loads may be speculative");
        }
        (Verb::Store, MemoryType::Wc) => {
            add("execute SFENCE before a doorbell: the order of stores to WC memory is not kept");
            add("not for a FIFO at one address: stores to the same address may be combined");
        }
        (Verb::Store, MemoryType::Wt | MemoryType::Wp) => {
            add(
                "execute CLFLUSH for each line and then MFENCE before loading from this range: cached lines go stale when the device writes",
            );
        }
        (_, MemoryType::Uc | MemoryType::Wb) => {}
    }
    conditions.extend(memcpy_cliff(*core, memcpy));
    conditions
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
    fn a_memcpy_to_uc_names_the_length_of_its_cliff() {
        let text = of(Verb::Store, MemoryType::Uc, Access::Memcpy).join("; ");
        assert!(text.contains("from 2KiB on"), "{text}");
        assert_eq!(rep_movsb_from(Variant::Glibc224AvxErms), Some(4096));
        assert_eq!(of(Verb::Load, MemoryType::Wt, Access::Memcpy).len(), 2, "a load of a cached type fetches lines");
        assert!(of(Verb::Store, MemoryType::Wc, Access::Memcpy).iter().all(|text| !text.contains("rep movsb")));
    }
}
