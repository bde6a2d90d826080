//! Checks of the IOMMU, and translation by devices (ATS).

use crate::Platform;
use crate::notes::Notes;
use crate::spec::{Dma, Iommu};

impl Platform {
    /// Whether the cards request translations through ATS and cache them.
    #[must_use]
    pub fn has_ats(&self) -> bool {
        self.dma.as_ref().is_some_and(|dma| dma.ats_entries.value > 0)
            && self.iommu.as_ref().is_some_and(Iommu::translates)
    }
}

impl Dma {
    /// Number of tags for reads of data and, numbered after them, for the descriptors that each channel fetches. With
    /// ATS, one further tag per channel follows, for translation requests.
    #[must_use]
    pub fn reading_tags(&self) -> u32 {
        self.tags.value.saturating_add(self.channels.value.saturating_mul(self.prefetch_descriptors.value))
    }
}

/// The number of sets of the IOTLB is a power of two, there is memory to translate to, mapped memory is whole pages,
/// and ATS has an IOMMU that translates.
pub(crate) fn check_iommu(platform: &Platform, notes: &mut Notes<'_>) {
    let entries = platform.dma.as_ref().map(|dma| &dma.ats_entries).filter(|entries| entries.value > 0);
    if let Some(entries) = entries.filter(|_| !platform.iommu.as_ref().is_some_and(Iommu::translates)) {
        let message = format!("is {}, but no [iommu] section translates addresses", entries.value);
        notes.at_line(entries.line, format!("{}.ats_entries", Dma::PATH), message);
    }
    let Some(iommu) = &platform.iommu else { return };
    let (entries, ways) = (&iommu.iotlb_entries, &iommu.iotlb_ways);
    if !entries.value.is_multiple_of(ways.value) || !iommu.sets().is_power_of_two() {
        let message =
            format!("is {}; iommu.iotlb_entries, {}, must be a power of two times that", ways.value, entries.value);
        notes.at_line(ways.line, format!("{}.iotlb_ways", Iommu::PATH), message);
    }
    let Some(memory) = &platform.memory else {
        let message = "needs a section [memory], the target of its translations".to_owned();
        return notes.at_line(entries.line, Iommu::PATH.to_owned(), message);
    };
    let (cached, read) = (&iommu.walk_cached_read_ns, &iommu.walk_read_ns);
    let refused = if cached.value > read.value {
        Some(format!("is {}; it must not exceed iommu.walk_read_ns, {}", cached.value.as_ns(), read.value.as_ns()))
    } else if iommu.walks_through_cache() && memory.cached_lines() == 0 {
        Some("needs a cache: memory.cache_bytes and memory.cached_read_ns".to_owned())
    } else {
        None
    };
    if let Some(message) = refused {
        notes.at_line(cached.line, format!("{}.walk_cached_read_ns", Iommu::PATH), message);
    }
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
    use crate::{Origin, PRESETS, Platform, preset};

    /// Problems of the IOMMU preset if this key has this value.
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
    fn the_number_of_sets_must_be_a_power_of_two() {
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
    fn cached_page_walks_need_a_cache_and_are_not_slower() {
        let refused = said("walk_cached_read_ns", "30");
        assert!(refused.contains("iommu.walk_cached_read_ns") && refused.contains("memory.cache_bytes"), "{refused}");
        assert_eq!(said("walk_cached_read_ns", "0"), "");
        let preset = PRESETS.iter().find(|preset| preset.name == "card-gen5-x16-iommu").unwrap();
        let cache = "[memory]\ncache_bytes = { value = \"1MiB\", assumed = \"a test\" }\ncached_read_ns = { value = 20, assumed = \"a test\" }";
        let with = |cached: &str| {
            let walk = format!("[iommu]\nwalk_cached_read_ns = {{ value = {cached}, assumed = \"a test\" }}");
            let text = preset.text.replacen("[memory]", cache, 1).replacen("[iommu]", &walk, 1);
            Platform::parse("test.toml", &text).err().map_or_else(String::new, |error| error.to_string())
        };
        assert_eq!(with("80"), "", "as walk_read_ns");
        assert!(with("80.5").contains("iommu.walk_read_ns, 80"));
    }

    #[test]
    fn ats_needs_an_iommu_that_translates() {
        let said = |name: &str, set: &[(&str, &str)]| {
            let with = |platform: Platform, (key, value): &(&str, &str)| {
                platform.with_text(key, value, Origin::Assumed("a test".to_owned()))
            };
            let platform = preset(name).unwrap().unwrap();
            set.iter().try_fold(platform, with).err().map_or_else(String::new, |error| error.to_string())
        };
        let one = ("dma.ats_entries", "1");
        assert_eq!(said("card-gen5-x16-iommu", &[one]), "");
        let refused = said("card-gen5-x16", &[one]);
        assert!(refused.contains("dma.ats_entries: is 1, but no [iommu] section"), "{refused}");
        assert_eq!(said("card-gen5-x16", &[("dma.ats_entries", "0")]), "");
        assert!(
            said("card-gen5-x16-iommu", &[one, ("iommu.pass_through", "true")])
                .contains("no [iommu] section translates addresses")
        );
        // Each lookup searches all entries.
        assert_eq!(said("card-gen5-x16-iommu", &[("dma.ats_entries", "4096")]), "");
        assert!(said("card-gen5-x16-iommu", &[("dma.ats_entries", "4097")]).contains("4096"));
    }

    #[test]
    fn mapped_memory_is_whole_iommu_pages() {
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
