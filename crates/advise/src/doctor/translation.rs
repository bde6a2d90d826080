//! Checks of the IOMMU: invalidation, refused requests.

use super::case::{Case, Collector, command, unknown};
use lanemark_inventory::{Function, IommuFault};
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

/// Finds functions with requests that the IOMMU refused, by the kernel's log.
pub(crate) fn faults(case: &Case<'_>, found: &mut Collector) {
    let Some(faults) = case.inventory.iommu.faults.known() else { return };
    for of_function in faults.chunk_by(|a, b| a.function == b.function) {
        let address = of_function[0].function;
        let kinds: Vec<String> = of_function.iter().map(in_words).collect();
        let (functions, unknown_function) = match case.inventory.function(address) {
            Some(function) => (vec![function], String::new()),
            None => (vec![], format!(" of {address}, which is not in the tree")),
        };
        let reason = format!("the IOMMU refused requests{unknown_function}, by the kernel's log: {}", kinds.join(", "));
        let gain = unknown("each refused request is a transfer or an interrupt that failed");
        let look = format!("dmesg | grep -E 'DMAR|AMD-Vi|arm-smmu' | grep '{}'", address.function);
        let words = "shows the lines with their times; causes: a driver or firmware that uses an address after its unmap or without a mapping, or a device that was reset; update both. The kernel suppresses lines if there are many";
        found.add(Severity::Broken, functions, None, reason, gain, command(look, words));
    }
}

fn in_words(fault: &IommuFault) -> String {
    let last = fault.last_address.map_or_else(String::new, |address| format!(" (last at {address:#x})"));
    format!("{} {}{last}", fault.count, fault.kind)
}

#[cfg(test)]
mod tests {
    use crate::doctor::sample::{self, CARD, findings_of, known};
    use lanemark_inventory::IommuFault;
    use lanemark_record::diagnosis::Severity;

    #[test]
    fn requests_that_the_iommu_refused_are_found_by_function() {
        let fault = |at: &str, kind: &str, count, last_address| IommuFault {
            function: at.parse().unwrap(),
            kind: kind.to_owned(),
            count,
            last_address,
        };
        let mut machine = sample::healthy();
        machine.iommu.faults = known(vec![
            fault("01:00.0", "DMA Read", 3, Some(0xfe00_0000)),
            fault("01:00.0", "INTR-REMAP", 1, None),
            fault("05:00.0", "DMA Write", 1, Some(0)),
        ]);
        let found = findings_of(&machine, "iommu_faults");
        let reasons: Vec<&str> = found.iter().map(|finding| finding.reason.as_str()).collect();
        assert_eq!(
            reasons,
            [
                "the IOMMU refused requests, by the kernel's log: 3 DMA Read (last at 0xfe000000), 1 INTR-REMAP",
                "the IOMMU refused requests of 0000:05:00.0, which is not in the tree, by the kernel's log: 1 DMA Write (last at 0x0)",
            ]
        );
        assert_eq!(
            (found[0].severity, found[0].functions.as_slice()),
            (Severity::Broken, &["0000:01:00.0".to_owned()][..])
        );
        assert!(found[1].functions.is_empty());
        machine.iommu.faults = known(vec![]);
        assert_eq!(findings_of(&machine, "iommu_faults"), []);
    }

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
