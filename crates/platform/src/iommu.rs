//! What an IOMMU's numbers must be for each other.

use crate::Platform;
use crate::read::Notes;
use crate::spec::Iommu;

/// Its sets are alike and a power of two of them, it has something to translate to, and what is lent is whole pages of it.
pub(crate) fn check_iommu(platform: &Platform, notes: &mut Notes<'_>) {
    let Some(iommu) = &platform.iommu else { return };
    let (entries, ways) = (&iommu.iotlb_entries, &iommu.iotlb_ways);
    if !entries.value.is_multiple_of(ways.value) || !iommu.sets().is_power_of_two() {
        let message =
            format!("is {}; iommu.iotlb_entries, {}, must be a power of two times that", ways.value, entries.value);
        notes.at_line(ways.line, format!("{}.iotlb_ways", Iommu::PATH), message);
    }
    let Some(memory) = &platform.memory else {
        let message = "needs a section [memory]: nothing else is translated to".to_owned();
        return notes.at_line(entries.line, Iommu::PATH.to_owned(), message);
    };
    for (key, bytes) in [("address_bytes", &memory.address_bytes), ("size_bytes", &memory.size_bytes)] {
        if !bytes.value.is_multiple_of(iommu.page_bytes.value) {
            let message =
                format!("is {:#x}; must be a multiple of iommu.page_bytes, {:#x}", bytes.value, iommu.page_bytes.value);
            notes.at_line(bytes.line, format!("memory.{key}"), message);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{PRESETS, Platform};

    /// What is said of the preset with an IOMMU where this key has this value.
    fn said(key: &str, value: &str) -> String {
        let preset = PRESETS.iter().find(|preset| preset.name == "card-gen5-x16-iommu").unwrap();
        let own = preset.text.lines().find(|line| line.starts_with(&format!("{key} =")));
        let new = format!("{key} = {{ value = {value}, assumed = \"a test\" }}");
        let text = match own {
            Some(own) => preset.text.replacen(own, &new, 1),
            None => preset.text.replacen("[iommu]", &format!("[iommu]\n{new}"), 1),
        };
        Platform::parse("test.toml", &text).err().map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn sets_are_alike_and_a_power_of_two_of_them() {
        for fits in ["1", "2", "512", "256"] {
            assert_eq!(said("iotlb_ways", fits), "", "512 in {fits} ways");
        }
        for other in ["3", "7", "1024", "511"] {
            let refused = said("iotlb_ways", other);
            assert!(refused.contains("iommu.iotlb_ways") && refused.contains("a power of two times that"), "{refused}");
        }
        assert!(said("iotlb_entries", "24").contains("iommu.iotlb_entries, 24"), "three sets");
    }

    #[test]
    fn what_is_lent_is_whole_pages_of_it() {
        assert_eq!(said("page_bytes", "1073741824"), "");
        let preset = PRESETS.iter().find(|preset| preset.name == "card-gen5-x16-iommu").unwrap();
        let odd = "[memory]\nsize_bytes = { value = \"1026MiB\", assumed = \"a test\" }";
        let text = preset.text.replacen("[memory]", odd, 1);
        assert!(Platform::parse("test.toml", &text).is_ok(), "whole pages of 4 KiB");
        let large = text.replacen("[iommu]", "[iommu]\npage_bytes = { value = 1073741824, assumed = \"a test\" }", 1);
        let refused = Platform::parse("test.toml", &large).unwrap_err().to_string();
        assert!(refused.contains("memory.size_bytes") && refused.contains("iommu.page_bytes"), "{refused}");
    }
}
