//! VFIO by iommufd, on the kernels that `checks/guest/kernel` builds.
//!
//! The tests of `dma`, `drive` and `vfio` run on these kernels, too: the same assertions as through groups.

use crate::dma::{self, EDU, record};
use crate::guest::{Guest, Hardware, usual_kernel};
use lanemark_checks::lanemark;

/// A card with memory.
const MEMORY: &str = "0000:02:00.0";

/// A short bench of edu that is bound for it.
fn bench(more: &str) -> String {
    format!(
        "lanemark bench --on {EDU} --bind vfio-pci --device edu --question dma_read_latency --sizes 64 --budget 0.1 {more}"
    )
}

/// Whether the kernel has an option.
fn has_option(guest: &mut Guest, option: &str) -> bool {
    guest.run(&format!("zcat /proc/config.gz | grep -qx {option}=y")).status == 0
}

/// The summary of the target of a short bench.
fn summary(guest: &mut Guest, more: &str) -> String {
    let asked = format!("--on {EDU} --device edu --question dma_read_latency --sizes 64 --budget 0.1 {more}");
    let record = record(guest, &asked);
    assert_eq!(record["answers"][0]["bytes"]["confirmed_bytes"], 64, "{}", record["skipped"]);
    record["targets"][0]["summary"].as_str().unwrap().to_owned()
}

pub fn a_kernel_without_groups_is_used_by_iommufd_and_the_record_says_so() {
    let mut guest = dma::shared();
    let has = |guest: &mut Guest, option| has_option(guest, option);
    assert!(has(&mut guest, "CONFIG_IOMMUFD") && has(&mut guest, "CONFIG_VFIO_DEVICE_CDEV"));
    assert!(!has(&mut guest, "CONFIG_VFIO_GROUP") && !has(&mut guest, "CONFIG_VFIO_CONTAINER"));
    guest.expect("[ ! -e /dev/vfio/vfio ] && [ -c /dev/iommu ]");
    let said = summary(&mut guest, "");
    assert!(said.contains("VFIO by iommufd, mappings in multiples of 4KiB"), "{said}");
    // Before the card is bound it has no file.
    let said = guest.expect(&bench("--dry-run"));
    assert!(said.contains("opened through VFIO by iommufd: /dev/iommu and /dev/vfio/devices/DEVICE;"), "{said}");
    guest.expect(&format!("lanemark bind {EDU}"));
    let said = guest.expect(&bench("--dry-run").replace("--bind vfio-pci", ""));
    guest.expect(&format!("lanemark unbind {EDU}"));
    assert!(said.contains("opened through VFIO by iommufd: /dev/iommu and /dev/vfio/devices/vfio0;"), "{said}");
}

pub fn containers_are_refused_where_the_kernel_has_none() {
    let mut guest = dma::shared();
    let said = guest.run(&bench("--vfio container"));
    assert!(said.status != 0 && said.stderr.contains("CONFIG_VFIO_CONTAINER"), "{said:?}");
    assert!(said.stdout.ends_with("restored; driver now: none\n"), "{said:?}");
}

pub fn memory_of_another_card_is_refused_with_the_interface_that_maps_it() {
    let mut guest = dma::shared();
    guest.expect(&format!("lanemark bind {MEMORY}"));
    let peer = format!("--peer {MEMORY}:2:4KiB..12KiB");
    let refusals = ["", "--dry-run"].map(|more| guest.run(&bench(&format!("{peer} {more}"))));
    guest.expect(&format!("lanemark unbind {MEMORY}"));
    for said in refusals {
        assert!(said.status != 0 && said.stderr.contains("iommufd maps no memory of another card"), "{said:?}");
        assert!(said.stderr.contains("--vfio container"), "{said:?}");
    }
}

pub fn without_interrupt_remapping_the_setting_of_iommufd_is_named() {
    let devices = ["-device intel-iommu,intremap=off,caching-mode=on", "-device edu,addr=0x5"];
    let hardware = Hardware { packages: usual_kernel(), devices: &devices, kernel: "" };
    let mut guest = Guest::boot(&hardware, &[lanemark()], |_| {});
    let said = guest.run(&bench(""));
    let setting = "/sys/module/iommufd/parameters/allow_unsafe_interrupts";
    assert!(said.status != 0 && said.stderr.contains("does not remap interrupts"), "{said:?}");
    assert!(said.stderr.contains(setting), "{said:?}");
    guest.expect(&format!("echo 1 >{setting}"));
    guest.expect(&bench(""));
}

pub fn iommufd_is_preferred_and_a_container_is_used_if_it_is_named() {
    let mut guest = dma::shared();
    guest.expect("[ -c /dev/vfio/vfio ] && [ -c /dev/iommu ]");
    for (more, words) in [
        ("", "VFIO by iommufd, "),
        ("--vfio iommufd", "VFIO by iommufd, "),
        ("--vfio container", "VFIO type 1, pages of 4KiB"),
    ] {
        let said = summary(&mut guest, more);
        assert!(said.contains(words), "{more}: {said}");
    }
    // Transfers between cards use a container, unless the user names the other interface.
    guest.expect(&format!("lanemark bind {MEMORY}"));
    let peer = format!("--peer {MEMORY}:2:4KiB..12KiB");
    let said = summary(&mut guest, &peer);
    let refused = guest.run(&bench(&format!("{peer} --vfio iommufd")));
    guest.expect(&format!("lanemark unbind {MEMORY}"));
    assert!(said.contains("VFIO type 1"), "{said}");
    assert!(refused.status != 0 && refused.stderr.contains("iommufd maps no memory of another card"), "{refused:?}");
}

pub fn a_device_that_is_open_by_one_interface_is_refused_by_the_other() {
    let mut guest = dma::shared();
    guest.expect(&format!("lanemark bind {EDU}"));
    let bench = |by: &str, budget: &str| {
        format!(
            "lanemark bench --on {EDU} --device edu --question dma_write_bandwidth --sizes 64 --vfio {by} --budget {budget}"
        )
    };
    for (first, other) in [("container", "iommufd"), ("iommufd", "container")] {
        guest.expect(&format!("{} >/dev/null 2>&1 &", bench(first, "900")));
        let is_open = "ls -l /proc/$(pidof lanemark)/fd | grep -q -E 'vfio/([0-9]|devices)|vfio-device'";
        guest.expect(&format!("for i in $(seq 300); do {is_open} && exit 0; sleep 0.1; done; exit 1"));
        let said = guest.run(&bench(other, "0.1"));
        assert!(said.status == 77 && said.stderr.contains("is locked by another process"), "{first}: {said:?}");
        guest.expect("kill -9 $(pidof lanemark); sleep 0.5");
        guest.expect(&bench(other, "0.1"));
    }
    // Another program has its group open.
    let group = format!("/dev/vfio/$(basename $(readlink /sys/bus/pci/devices/{EDU}/iommu_group))");
    guest.expect(&format!("sleep 900 3<>{group} >/dev/null 2>&1 & echo $! >holds; sleep 0.5"));
    for (by, words) in
        [("iommufd", "its IOMMU group is in use"), ("container", "another process uses it or its IOMMU group")]
    {
        let said = guest.run(&bench(by, "0.1"));
        assert!(said.status == 77 && said.stderr.contains(words), "{by}: {said:?}");
    }
    guest.expect("kill $(cat holds); sleep 0.5");
    guest.expect(&format!("lanemark unbind {EDU}"));
}
