//! DMA faults in the kernel's log.

use crate::linux_sysfs::Address;
use rustix::fs::{Mode, OFlags, SeekFrom, open, seek};
use rustix::io::{Errno, read};
use std::os::fd::OwnedFd;
use std::path::Path;

/// Words in the kernel's reports of IOMMU faults: Intel, AMD, ARM and virtual IOMMUs.
const WORDS: [&str; 5] = ["DMAR:", "AMD-Vi:", "arm-smmu", "virtio_iommu", "iommu fault"];

/// Most messages of one look: a device that faults in a loop fills the log.
const MOST: usize = 4096;

/// The kernel's log from now on; it reads nothing without permission.
#[derive(Debug)]
pub(super) struct FaultLog(Option<OwnedFd>);

impl FaultLog {
    /// Begins at the end of the log at `path`.
    pub(super) fn from_now(path: &Path) -> FaultLog {
        let file = open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).ok();
        FaultLog(file.filter(|file| seek(file, SeekFrom::End(0)).is_ok()))
    }

    /// Faults of `device` since the last call, as the kernel reports them.
    pub(super) fn faults_of(&self, device: Address) -> Vec<String> {
        let Some(file) = &self.0 else { return Vec::new() };
        let mut found = Vec::new();
        let mut record = [0; 8192];
        for _ in 0..MOST {
            match read(file, &mut record) {
                Ok(len) if len > 0 => found.extend(fault(&String::from_utf8_lossy(&record[..len]), device)),
                // Overwritten messages: the next read continues.
                Err(Errno::PIPE) => {}
                _ => break,
            }
        }
        found
    }
}

/// The message of a record, if it is a fault of `device`. Source: Linux, Documentation/ABI/testing/dev-kmsg.
fn fault(record: &str, device: Address) -> Option<String> {
    let message = record.split_once(';')?.1.lines().next()?;
    // Some reports omit the domain.
    let whole = device.to_string();
    let short = whole.split_once(':').map_or(whole.as_str(), |(_, short)| short);
    // Not as the end of the address of a device in another domain.
    let is_apart = |at: usize| {
        let before = message[..at].chars().next_back();
        before.is_none_or(|letter| !letter.is_ascii_hexdigit() && letter != ':')
    };
    let is_named = message.contains(&whole)
        || message.match_indices(short).any(|(at, _)| is_apart(at))
        || endpoint(message) == Some(number(device));
    let is_fault = WORDS.iter().any(|word| message.contains(word)) && is_named;
    let direction = direction_in_flags(message).map_or_else(String::new, |words| format!(" (flags: {words})"));
    is_fault.then(|| format!("{message}{direction}"))
}

/// Direction of a blocked DMA request in a report of an AMD IOMMU, which has it only as bit RW of its flags; `None` for requests
/// of interrupts and translations. Source: Linux, `drivers/iommu/amd/amd_iommu_types.h`, `EVENT_FLAG_RW` and `EVENT_FLAG_I`; TR is
/// from the AMD I/O Virtualization Technology (IOMMU) Specification, "`IO_PAGE_FAULT` Event".
fn direction_in_flags(message: &str) -> Option<&'static str> {
    let (_, event) = message.split_once("AMD-Vi: Event logged [IO_PAGE_FAULT")?;
    let (_, flags) = event.split_once("flags=0x")?;
    let digits = flags.split(|letter: char| !letter.is_ascii_hexdigit()).next()?;
    let flags = u64::from_str_radix(digits, 16).ok()?;
    let [interrupt, write, translation] = [3, 5, 8].map(|bit| flags & 1 << bit != 0);
    if interrupt || translation {
        return None;
    }
    Some(if write { "a write by the device" } else { "a read by the device" })
}

/// The number of the endpoint in a report of virtio-iommu. Source: Linux, `viommu_fault_handler`.
fn endpoint(message: &str) -> Option<u32> {
    let (_, after) = message.strip_prefix("virtio_iommu ")?.split_once(" fault from EP ")?;
    after.split(' ').next()?.parse().ok()
}

/// Domain, bus, device and function as one number: the endpoint of QEMU's table of virtual IOMMUs. Source: ACPI, VIOT.
fn number(device: Address) -> u32 {
    device.domain << 16 | u32::from(device.function.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_faults_of_the_device_are_found() {
        let device: Address = "0000:04:00.0".parse().unwrap();
        let line = "DMAR: [DMA Write NO_PASID] Request device [04:00.0] fault addr 0x20000000 [fault reason 0x05] PTE Write access is not set";
        assert_eq!(fault(&format!("3,512,9,-;{line}\n SUBSYSTEM=pci\n"), device).as_deref(), Some(line));
        for other in [
            "3,512,9,-;x 0001:04:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT]\n".to_owned(),
            "3,512,9,-;DMAR: [DMA Read] Request device [05:00.0] fault addr 0x0\n".to_owned(),
            "6,513,9,-;pci 0000:04:00.0: reset\n".to_owned(),
            line.to_owned(),
        ] {
            assert_eq!(fault(&other, device), None, "{other}");
        }
    }

    #[test]
    fn a_report_of_amds_iommu_has_the_direction_of_its_flags() {
        for (flags, words) in [("0x0020", "a write"), ("0x0000", "a read"), ("0x0070", "a write"), ("0x0050", "a read")]
        {
            for line in [
                format!(
                    "vfio-pci 0000:04:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x000f address=0x2000 flags={flags}]"
                ),
                format!(
                    "AMD-Vi: Event logged [IO_PAGE_FAULT device=04:00.0 domain=0x000f address=0x2000 flags={flags}]"
                ),
            ] {
                let found = fault(&format!("3,512,9,-;{line}\n"), "0000:04:00.0".parse().unwrap()).unwrap();
                assert_eq!(found, format!("{line} (flags: {words} by the device)"));
            }
        }
        let other = "AMD-Vi: Event logged [ILLEGAL_DEV_TABLE_ENTRY device=04:00.0 pasid=0x0 address=0x0 flags=0x0020]";
        assert_eq!(direction_in_flags(other), None, "only IO_PAGE_FAULT is decoded");
        for flags in ["0x0028", "0x0120"] {
            let other = format!("AMD-Vi: Event logged [IO_PAGE_FAULT device=0000:04:00.0 flags={flags}]");
            assert_eq!(direction_in_flags(&other), None, "an interrupt or a translation");
        }
    }

    #[test]
    fn a_virtual_iommu_names_a_device_by_its_number() {
        let line = "virtio_iommu virtio0: page fault from EP 48 at 0x100000 [W]";
        let named = |device: &str| fault(&format!("3,512,9,-;{line}\n"), device.parse().unwrap());
        assert_eq!(named("0000:00:06.0").as_deref(), Some(line));
        for other in ["0000:00:06.1", "0000:00:04.0", "0000:48:00.0", "0001:00:06.0"] {
            assert_eq!(named(other), None, "{other}");
        }
    }

    #[test]
    fn a_log_that_cannot_be_read_has_no_faults() {
        let log = FaultLog::from_now(Path::new("/no/such/log"));
        assert_eq!(log.faults_of("0000:04:00.0".parse().unwrap()), Vec::<String>::new());
    }
}
