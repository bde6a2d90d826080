//! Accesses to cards on a real kernel with PCI devices.
//!
//! `make test-qemu` runs these tests: a Debian kernel in an emulator, with emulated devices. No test measures speed, because
//! an emulator has no caches, write combining or links.

mod bench;
mod card;
mod doctor;
mod guest;
mod guide;
mod host;
mod initramfs;
mod lockdown;
mod refusals;
mod removal;
mod storage;
mod topology;

use guest::{Guest, Hardware};
use lanemark_checks::{compile_c_example, lanemark, library};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Initial byte of the storage card.
const BEFORE: u8 = 0xa7;
/// Size of the storage card in bytes.
const STORAGE_BYTES: usize = 4 << 20;
/// Size of the large card in bytes.
const LARGE_BYTES: u64 = 8 << 30;

/// Devices of the guest that most tests share:
///
/// | address | device |
/// | --- | --- |
/// | 01:00.0 | ivshmem behind a Gen4 x16 root port: BAR2 is 4 MiB of storage, the file `storage` on the outside |
/// | 02:00.0 | the upstream port of a switch in a Gen3 x8 slot, trained to Gen1 x1: a degraded link |
/// | 04:00.0 | edu behind that switch: a megabyte of registers |
/// | 05:00.0 | ivshmem with an 8 GiB BAR, above 4 GiB |
/// | 00:06.0 | pci-testdev with a prefetchable BAR and two others |
/// | 00:07.0 | nvme, whose driver has claimed its registers |
const DEVICES: &[&str] = &[
    "-device intel-iommu,intremap=on,caching-mode=on",
    "-device pcie-root-port,id=rp1,chassis=1,slot=1,addr=0x2,x-speed=16,x-width=16",
    "-object memory-backend-file,id=storage,share=on,mem-path={folder}/storage,size=4M",
    "-device ivshmem-plain,memdev=storage,bus=rp1",
    "-device pcie-root-port,id=rp2,chassis=2,slot=2,addr=0x3,x-speed=8,x-width=8",
    "-device x3130-upstream,id=up,bus=rp2",
    "-device xio3130-downstream,id=dn1,bus=up,chassis=3,slot=3",
    "-device edu,dma_mask=0xffffffffff,bus=dn1",
    "-device pcie-root-port,id=rp3,chassis=4,slot=4,addr=0x4,x-speed=32,x-width=4",
    "-object memory-backend-file,id=large,share=on,mem-path={folder}/large,size=8G",
    "-device ivshmem-plain,memdev=large,bus=rp3",
    "-device pci-testdev,addr=0x6,membar=4M",
    "-device nvme,addr=0x7,serial=none",
];

/// The guest shared by most tests, one test at a time.
fn shared() -> MutexGuard<'static, Guest> {
    static GUEST: OnceLock<Mutex<Guest>> = OnceLock::new();
    let guest = GUEST.get_or_init(|| Mutex::new(boot("")));
    // A failed test leaves the guest usable.
    guest.lock().unwrap_or_else(PoisonError::into_inner)
}

fn boot(kernel: &str) -> Guest {
    let mut guest = Guest::boot(&Hardware { devices: DEVICES, kernel }, &programs(), |folder| {
        fs::write(folder.join("storage"), vec![BEFORE; STORAGE_BYTES]).unwrap();
    });
    // Without a driver, memory decoding of these devices is off.
    for card in ["01:00.0", "04:00.0", "05:00.0", "00:06.0"] {
        guest.expect(&format!("echo 1 >/sys/bus/pci/devices/0000:{card}/enable"));
    }
    guest
}

/// Programs of the guest besides busybox.
fn programs() -> [&'static Path; 4] {
    static HELLO: OnceLock<PathBuf> = OnceLock::new();
    let hello = HELLO.get_or_init(|| {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hello");
        let archive = library().join("liblanemark.a");
        compile_c_example(&program, &[archive.to_str().unwrap(), "-lgcc_s", "-lpthread", "-ldl", "-lm"]);
        program
    });
    [lanemark(), Path::new(env!("CARGO_BIN_EXE_promises")), Path::new(env!("CARGO_BIN_EXE_touch-card")), hello]
}
