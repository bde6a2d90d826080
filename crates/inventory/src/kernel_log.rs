//! Faults of the IOMMU in the kernel's log.

use crate::files::Files;
use crate::{Address, Seen, Why};
use std::collections::BTreeMap;

/// Path of the log: a device on a running machine, a file with the output of `dmesg` in a copy.
const LOG: &str = "dev/kmsg";

/// Requests of one function that the IOMMU refused, from the kernel's log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IommuFault {
    /// The function. Logs of Intel IOMMUs lack the domain, which is taken as 0.
    pub function: Address,
    /// Kind as the kernel names it: `DMA Read`, `IO_PAGE_FAULT`, `F_TRANSLATION`, ...
    pub kind: String,
    /// Number of lines in the log; the kernel suppresses lines if there are many.
    pub count: u64,
    /// Address of the last request, if the line has it.
    pub last_address: Option<u64>,
}

/// The faults in the log of a running machine, or of a copy.
pub(crate) fn faults(files: &Files<'_>, live: bool) -> Seen<Vec<IommuFault>> {
    let text = if live { read() } else { files.text(LOG).map_err(|trouble| trouble.why("dev/kmsg")) };
    match text {
        Ok(text) => Seen::Known(parse(&text)),
        Err(why) => Seen::Unseen(why),
    }
}

/// Maximum size of the log; the kernel's buffer has at most 32 MiB.
#[cfg(target_os = "linux")]
const MOST_BYTES: usize = 32 << 20;

/// Reads the log of this machine up to its end: one record per read, without waiting for the next.
#[cfg(target_os = "linux")]
fn read() -> Result<String, Why> {
    use std::io::{ErrorKind, Read};
    use std::os::unix::fs::OpenOptionsExt;
    /// `O_NONBLOCK` of Linux (`include/uapi/asm-generic/fcntl.h`).
    const NONBLOCKING: i32 = 0o4000;
    /// Maximum size of a record (`PRINTK_MESSAGE_MAX` of Linux).
    const MOST_RECORD_BYTES: usize = 8192;
    let refused = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => Why::NoFile("dev/kmsg".into()),
        _ => Why::Refused { file: "dev/kmsg".into(), error: error.to_string().into() },
    };
    let opened = std::fs::OpenOptions::new().read(true).custom_flags(NONBLOCKING).open("/dev/kmsg");
    let mut log = opened.map_err(refused)?;
    let (mut text, mut record) = (String::new(), [0; MOST_RECORD_BYTES]);
    while text.len() < MOST_BYTES {
        match log.read(&mut record) {
            Ok(0) => break,
            Ok(bytes) => text.push_str(&String::from_utf8_lossy(&record[..bytes])),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            // The record was overwritten in the meantime; the next read continues behind it.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted) => {}
            Err(error) => return Err(refused(error)),
        }
    }
    Ok(text)
}

#[cfg(not(target_os = "linux"))]
fn read() -> Result<String, Why> {
    Err(Why::NotShown("this system has no /dev/kmsg"))
}

/// Faults by function and kind.
fn parse(text: &str) -> Vec<IommuFault> {
    let mut faults: BTreeMap<(Address, String), (u64, Option<u64>)> = BTreeMap::new();
    for (function, kind, address) in text.lines().filter_map(fault) {
        let (count, last) = faults.entry((function, kind)).or_default();
        *count += 1;
        *last = address.or(*last);
    }
    let fault = |((function, kind), (count, last_address))| IommuFault { function, kind, count, last_address };
    faults.into_iter().map(fault).collect()
}

type Fault = (Address, String, Option<u64>);

fn fault(line: &str) -> Option<Fault> {
    intel(line).or_else(|| amd(line)).or_else(|| arm(line))
}

/// Parses `DMAR: [DMA Read NO_PASID] Request device [3b:00.0] fault addr 0xfe000000 [fault reason 0x06] ...` and the older
/// `DMAR:[DMA Read] Request device [3b:00.0] fault addr fe000000` (`drivers/iommu/intel/dmar.c`).
fn intel(line: &str) -> Option<Fault> {
    let (kind, rest) = line.split_once("DMAR:")?.1.split_once("Request device [")?;
    let kind = kind.trim().trim_matches(['[', ']', ':']).trim_end_matches(" NO_PASID");
    let (function, rest) = rest.trim_start_matches('[').split_once(']')?;
    let address = rest.split_once("fault addr ").and_then(|(_, text)| hex(text));
    Some((crate::address::parse(function)?, kind.to_owned(), address))
}

/// Parses `nvme 0000:01:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x000f address=0xfe000000 flags=0x0000]` and
/// `AMD-Vi: Event logged [IO_PAGE_FAULT device=0000:01:00.0 ...]` (`drivers/iommu/amd/iommu.c`).
fn amd(line: &str) -> Option<Fault> {
    let (before, event) = line.split_once("AMD-Vi: Event logged [")?;
    let kind = event.split([' ', ']']).next()?;
    let value = |name: &str| event.split_once(name)?.1.split([' ', ']']).next();
    let of_line = || before.trim_end().strip_suffix(':')?.rsplit(' ').next();
    let function = value("device=").or_else(of_line)?;
    Some((crate::address::parse(function)?, kind.to_owned(), value("address=").and_then(hex)))
}

/// Parses `arm-smmu-v3 arm-smmu-v3.0.auto: event: F_TRANSLATION client: 0000:01:00.0 sid: 0x100 ssid: 0x0 iova: 0x1000 ...`
/// (`drivers/iommu/arm/arm-smmu-v3/arm-smmu-v3.c`); older kernels do not name the function.
fn arm(line: &str) -> Option<Fault> {
    let (_, event) = line.split_once("arm-smmu")?.1.split_once("event: ")?;
    let value = |name: &str| event.split_once(name)?.1.split(' ').next();
    let kind = event.split(' ').next()?;
    Some((crate::address::parse(value("client: ")?)?, kind.to_owned(), value("iova: ").and_then(hex)))
}

/// A hexadecimal number at the start, with or without `0x`.
fn hex(text: &str) -> Option<u64> {
    let text = text.trim_start_matches("0x");
    let end = text.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(text.len());
    u64::from_str_radix(&text[..end], 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<(String, String, u64, Option<u64>)> {
        let row = |fault: IommuFault| (fault.function.to_string(), fault.kind, fault.count, fault.last_address);
        parse(text).into_iter().map(row).collect()
    }

    #[test]
    fn lines_of_three_iommus_in_new_and_old_formats_are_faults() {
        for (line, function, kind, address) in [
            (
                "[ 12.3] DMAR: [DMA Read NO_PASID] Request device [3b:00.0] fault addr 0xfe000000 [fault reason 0x06] PTE Read access is not set",
                "0000:3b:00.0",
                "DMA Read",
                Some(0xfe00_0000),
            ),
            (
                "3,812,9,-;DMAR:[DMA Write] Request device [0b:00.1] fault addr f8f7f000 ",
                "0000:0b:00.1",
                "DMA Write",
                Some(0xf8f7_f000),
            ),
            (
                "DMAR: [INTR-REMAP] Request device [f0:1f.7] fault index 0x100 [fault reason 0x25]",
                "0000:f0:1f.7",
                "INTR-REMAP",
                None,
            ),
            (
                "nvme 0001:01:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x000f address=0xfe001000 flags=0x0000]",
                "0001:01:00.0",
                "IO_PAGE_FAULT",
                Some(0xfe00_1000),
            ),
            (
                "AMD-Vi: Event logged [IO_PAGE_FAULT device=03:00.0 domain=0x0000 address=0x1000 flags=0x0020]",
                "0000:03:00.0",
                "IO_PAGE_FAULT",
                Some(0x1000),
            ),
            (
                "arm-smmu-v3 arm-smmu-v3.0.auto: event: F_TRANSLATION client: 000d:01:00.0 sid: 0x100 ssid: 0x0 iova: 0x2000 ipa: 0x0",
                "000d:01:00.0",
                "F_TRANSLATION",
                Some(0x2000),
            ),
        ] {
            assert_eq!(rows(line), [(function.to_owned(), kind.to_owned(), 1, address)], "{line}");
        }
    }

    #[test]
    fn other_lines_of_an_iommu_are_no_faults() {
        for line in [
            "DMAR: DRHD: handling fault status reg 2",
            "DMAR: Intel(R) Virtualization Technology for Directed I/O",
            "DMAR: [DMA Read] Request device [zz:00.0] fault addr 0",
            "AMD-Vi: Interrupt remapping enabled",
            "AMD-Vi: Event logged [IO_PAGE_FAULT",
            "pci 0000:00:00.2: AMD-Vi: IOMMU performance counters supported",
            "arm-smmu-v3 arm-smmu-v3.0.auto: event 0x10 received:",
        ] {
            assert_eq!(rows(line), [], "{line}");
        }
    }

    #[test]
    fn faults_of_one_function_and_kind_are_counted_with_the_last_address() {
        let line = |address| format!("DMAR: [DMA Read] Request device [3b:00.0] fault addr {address}\n");
        let text = line("0x1000") + &line("0x2000") + "DMAR: [DMA Write] Request device [3b:00.0] fault addr 0x0\n";
        let row = |kind: &str, count, last| ("0000:3b:00.0".to_owned(), kind.to_owned(), count, Some(last));
        assert_eq!(rows(&text), [row("DMA Read", 2, 0x2000), row("DMA Write", 1, 0)]);
    }
}
