//! Memory of another device, mapped in the IOMMU of a device: the destination or source of its transfers.

use crate::linux_sysfs::{Address, Kind, Range};
use lanemark_units::format_size;
use std::fmt;
use std::str::FromStr;

/// Bytes of a page, the unit of mappings.
const PAGE: u64 = 4096;
/// Most bytes: a core fills and compares them with loads and stores of 8 B.
const MOST_BYTES: u64 = 64 << 20;

/// Memory of another device that transfers may overwrite: whole pages of one of its BARs.
///
/// Notation: `FUNCTION:BAR:FROM..TO`, as `0000:04:00.0:2:0..64KiB`.
///
/// ```
/// use lanemark_hw::linux_vfio::PeerRange;
/// let peer: PeerRange = "04:00.0:2:0..64KiB".parse().unwrap();
/// assert_eq!((peer.device.to_string().as_str(), peer.range.bar, peer.range.to), ("0000:04:00.0", 2, 65536));
/// assert_eq!(peer.to_string(), "0000:04:00.0:2:0..64KiB");
/// assert!("04:00.0:2:0..64".parse::<PeerRange>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerRange {
    /// PCI address of the other device.
    pub device: Address,
    /// Range of its BAR; its kind is none, or storage if the user says so.
    pub range: Range,
}

/// Error for a text that is not memory of another device.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{text}' is not memory of another card: {because}; example: 0000:04:00.0:2:0..64KiB (BAR2, the first 64 KiB)")]
pub struct NotAPeer {
    /// Text.
    pub text: String,
    /// Reason.
    pub because: String,
}

impl fmt::Display for PeerRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.device, self.range)
    }
}

impl FromStr for PeerRange {
    type Err = NotAPeer;

    fn from_str(text: &str) -> Result<PeerRange, NotAPeer> {
        let not = |because: String| NotAPeer { text: text.to_owned(), because };
        // The function has the first dot, and no colon behind it.
        let colon = text.find('.').and_then(|dot| Some(dot + text[dot..].find(':')?));
        let colon = colon.ok_or_else(|| not("there is no range after the PCI address".to_owned()))?;
        let device = text[..colon].parse().map_err(|error: crate::linux_sysfs::NotAnAddress| not(error.to_string()))?;
        let range: Range =
            text[colon + 1..].parse().map_err(|error: crate::linux_sysfs::NotARange| not(error.because))?;
        if range.kind.is_some_and(|kind| kind != Kind::Storage) {
            return Err(not("its bytes are overwritten, so it must be storage".to_owned()));
        }
        if !range.from.is_multiple_of(PAGE) || !range.to.is_multiple_of(PAGE) {
            return Err(not(format!("an IOMMU maps whole pages: both offsets must be multiples of {PAGE} B")));
        }
        if range.len() > MOST_BYTES {
            return Err(not(format!("at most {} are used", format_size(MOST_BYTES))));
        }
        Ok(PeerRange { device, range })
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(super) use open::Peer;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod open {
    #![allow(unsafe_code)]

    use super::super::bars::DeviceBars;
    use super::super::cmb_space::CmbSpace;
    use super::super::{AddressSpace, DRIVER, Joined, VfioDevice, VfioError, VfioInterrupt};
    use super::PeerRange;
    use crate::host_pages::filled;
    use crate::linux_sysfs::{Attachment, CardError, Device, Kind, Range, System, Window, access, locked};
    use crate::nvme::DataMemory;
    use lanemark_machine::{Plan, Transfer, Verb};
    use lanemark_units::{HostVirt, MemoryType};
    use rustix::io::Errno;
    use std::fs::File;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use vfio_bindings::bindings::vfio::VFIO_PCI_REQ_IRQ_INDEX;

    /// Width of the loads and stores of verification.
    const WORD: u64 = 8;

    /// Another device in the address space of a device, with its memory mapped into this process as UC.
    #[derive(Debug)]
    pub(in super::super) struct Peer {
        /// Unmapped before the device is closed.
        window: Window,
        range: Range,
        /// The kernel's request to give it back, if it can signal one.
        requested: Option<VfioInterrupt>,
        /// Its controller memory buffer, if it is a drive and the range is there.
        cmb: Option<CmbSpace>,
        joined: Joined,
        /// Only one process of Lanemark at a time has it open.
        _lock: Arc<File>,
    }

    impl Peer {
        /// Opens the other device in the same address space. Its bus mastering is off.
        ///
        /// # Errors
        /// [`VfioError`] of a device that is not bound to `vfio-pci`, of the range, and of VFIO.
        pub(in super::super) fn open(
            system: &System,
            address_space: &mut AddressSpace,
            peer: PeerRange,
        ) -> Result<Peer, VfioError> {
            let sysfs = Peer::check(system, peer)?;
            let lock = locked(&sysfs).map_err(VfioError::Range)?;
            let range = Range { kind: Some(Kind::Storage), ..peer.range };
            let place = Attachment::place(&sysfs, range).map_err(VfioError::Range)?;
            let joined = address_space.join(system, peer.device)?;
            let window = Window::open(&sysfs, &DeviceBars(Arc::clone(joined.device())), &place, MemoryType::Uc);
            let window = window.map_err(VfioError::Range)?;
            let requested = VfioInterrupt::enable(Arc::clone(joined.device()), VFIO_PCI_REQ_IRQ_INDEX, 0).ok();
            let cmb = CmbSpace::find(system, joined.device(), &sysfs, &[range])?;
            Ok(Peer { window, range, requested, cmb, joined, _lock: lock })
        }

        /// Checks driver and range without opening the device.
        pub(in super::super) fn check(system: &System, peer: PeerRange) -> Result<Device, VfioError> {
            let device = peer.device;
            let sysfs = Device::find(system, device).map_err(VfioError::Range)?;
            if sysfs.driver().map_err(VfioError::Range)?.as_deref() != Some(DRIVER) {
                return Err(VfioError::NotBound { device, path: system.device(device).join("driver") });
            }
            let place = Attachment::place(&sysfs, peer.range).map_err(VfioError::Range)?;
            if place.kind.may_store() {
                return Ok(sysfs);
            }
            let because = format!(
                "BAR{} is not prefetchable, so it may be registers: if it is memory that may be overwritten, append :storage, as {peer}:storage",
                peer.range.bar
            );
            Err(VfioError::Range(CardError::Unsupported { device, because }))
        }

        /// Fails if the device is not the one that was opened, or if the kernel has requested it.
        pub(in super::super) fn check_device(&self) -> Result<(), VfioError> {
            match self.requested.as_ref().map(VfioInterrupt::take) {
                Some(Ok(true)) => Err(self.device().requested()),
                _ => self.device().check(),
            }
        }

        pub(in super::super) const fn device(&self) -> &Arc<VfioDevice> {
            self.joined.device()
        }

        /// Its controller memory buffer, which must be enabled while the range is accessed.
        pub(in super::super) const fn cmb(&self) -> Option<&CmbSpace> {
            self.cmb.as_ref()
        }

        pub(in super::super) const fn range(&self) -> Range {
            self.range
        }

        /// Address of the range in this process, whole pages.
        pub(in super::super) fn address(&self) -> Result<HostVirt, CardError> {
            let at = self.window.at(self.range.from, self.range.len())?;
            Ok(HostVirt(at.addr() as u64))
        }

        /// Fills the range as [`fill`](crate::host_pages::fill) does memory, by offsets of the BAR, until `interrupted` is set.
        pub(in super::super) fn fill(&self, seed: u64, interrupted: &AtomicBool) -> Result<(), CardError> {
            let bytes = filled(self.range.from, self.range.len(), seed);
            for (at, word) in (self.range.from..).step_by(WORD as usize).zip(bytes.as_chunks().0) {
                if interrupted.load(Ordering::Relaxed) {
                    break;
                }
                let to = self.window.at(at, WORD)?;
                // SAFETY: the word is within the mapped range, which is aligned and may be stored to.
                unsafe { access::store(to, WORD as usize, u64::from_le_bytes(*word)) };
            }
            // If the BAR has vanished, a signal handler has put other memory in its place.
            self.window.check()
        }

        /// The bytes of the whole range; zeros after `interrupted` is set.
        pub(in super::super) fn bytes(&self, interrupted: &AtomicBool) -> Result<Vec<u8>, CardError> {
            let mut bytes = vec![0; self.range.len() as usize];
            for (at, word) in (self.range.from..).step_by(WORD as usize).zip(bytes.as_chunks_mut().0) {
                if interrupted.load(Ordering::Relaxed) {
                    break;
                }
                let from = self.window.at(at, WORD)?;
                // SAFETY: as above.
                *word = unsafe { access::load(from, WORD as usize) }.to_le_bytes();
            }
            self.window.check()?;
            Ok(bytes)
        }

        /// Offset in the BAR of the first of the bytes `found` in the range that is not as [`fill`](Peer::fill) left it, although no
        /// transfer of the plan writes to it.
        pub(in super::super) fn changed_beside(
            &self,
            plan: &Plan,
            transfer: &Transfer,
            mut found: Vec<u8>,
            seed: u64,
        ) -> Option<u64> {
            let Transfer { verb, bytes, count, window, .. } = *transfer;
            let mut meant = filled(self.range.from, self.range.len(), seed);
            let longest = plan.passes.max(plan.warmup_passes) * count;
            let distinct = match verb {
                Verb::Load => 0,
                Verb::Store if window.pattern.is_random() => longest,
                Verb::Store => longest.min(window.places(bytes)),
            };
            for at in (0..distinct).map(|nth| (window.place(nth, bytes) - self.range.from) as usize) {
                found[at..][..bytes as usize].fill(0);
                meant[at..][..bytes as usize].fill(0);
            }
            let changed = found.iter().zip(&meant).position(|(found, meant)| found != meant);
            changed.map(|at| self.range.from + at as u64)
        }
    }

    impl DataMemory for Peer {
        /// Offsets are those of the BAR.
        fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), Errno> {
            // Data may begin at a multiple of 4 B, and words at one of 8 B.
            let (first, end) = (at / WORD * WORD, at + bytes.len() as u64);
            let word = |at: u64| -> Result<u64, CardError> {
                let from = self.window.at(at, WORD)?;
                // SAFETY: as in `bytes`.
                Ok(unsafe { access::load(from, WORD as usize) })
            };
            let words = (first..end).step_by(WORD as usize).map(word).collect::<Result<Vec<u64>, _>>();
            // The caller finds the reason when it checks the device.
            let words = words.and_then(|words| self.window.check().map(|()| words)).map_err(|_| Errno::IO)?;
            let loaded = words.iter().flat_map(|word| word.to_le_bytes()).skip((at - first) as usize);
            bytes.iter_mut().zip(loaded).for_each(|(to, byte)| *to = byte);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_a_function_and_whole_pages_of_a_bar() {
        let said = |text: &str| text.parse::<PeerRange>().map_or_else(|error| error.because, |peer| peer.to_string());
        assert_eq!(said("0000:04:00.0:2:4KiB..8KiB:storage"), "0000:04:00.0:2:4KiB..8KiB:storage");
        assert_eq!(said("04:00.0:2:0..64MiB"), "0000:04:00.0:2:0..64MiB");
        for (text, words) in [
            ("0000:04:00.0", "no range after"),
            ("2:0..4KiB", "no range after"),
            ("0000:04:00.0:2:0..4KiB:registers", "must be storage"),
            ("0000:04:00.0:2:0..4095", "multiples of 4096 B"),
            ("0000:04:00.0:2:2048..4096", "multiples of 4096 B"),
            ("0000:04:00.0:2:4KiB..65544KiB", "at most 64MiB"),
            ("0000:04:00.0:7:0..4096", "number from 0 to 5"),
            ("", "no range after"),
        ] {
            assert!(said(text).contains(words), "{text}: {}", said(text));
        }
    }
}
