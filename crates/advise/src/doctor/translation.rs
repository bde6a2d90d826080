//! Check of IOMMU invalidation.

use super::case::{Case, Collector, command, unknown};
use lanemark_inventory::Function;
use lanemark_record::diagnosis::Severity;

/// Finds devices whose IOMMU domain flushes the IOTLB at every unmap (type `DMA`); type `DMA-FQ` batches the flushes.
///
/// Source: Linux, Documentation/ABI/testing/sysfs-kernel-iommu_groups.
pub(crate) fn strict(case: &Case<'_>, found: &mut Collector) {
    let is_strict = |function: &&Function| {
        function.iommu_domain.present().is_some_and(|domain| domain == "DMA") && function.driver.present().is_some()
    };
    let strict: Vec<&Function> = case.requesters().map(|(_, function, _)| function).filter(is_strict).collect();
    if strict.is_empty() {
        return;
    }
    let reason =
        "the IOTLB is flushed at every unmap (strict mode), which delays drivers that map each buffer".to_owned();
    let gain = unknown("it depends on how often the driver maps and unmaps");
    let words = "needs a reboot; flushes are then batched, and a device can access unmapped memory for up to 10 ms";
    let fix = command("iommu.strict=0 on the kernel's command line".to_owned(), words);
    found.add(Severity::Hint, strict, None, reason, gain, fix);
}

#[cfg(test)]
mod tests {
    use crate::doctor::sample::{self, CARD, findings_of, known};

    #[test]
    fn a_strict_domain_of_a_bound_device_is_found() {
        let with = |domain: &str, driver: Option<&str>| {
            let mut machine = sample::healthy();
            machine.functions[CARD].iommu_domain = known(Some(domain.to_owned()));
            machine.functions[CARD].driver = known(driver.map(str::to_owned));
            findings_of(&machine, "iommu_strict").len()
        };
        assert_eq!((with("DMA", Some("nvme")), with("DMA-FQ", Some("nvme")), with("DMA", None)), (1, 0, 0));
        assert_eq!(with("identity", Some("nvme")), 0);
    }
}
