//! DMA by the engine of a device, through VFIO and the IOMMU of the guest.

use crate::guest::{Guest, Hardware};
use lanemark_checks::lanemark;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Devices of the guest for DMA:
///
/// | address | device |
/// | --- | --- |
/// | 00:05.0 | edu, whose engine reaches 28 address bits |
/// | 00:06.0 | edu, whose engine drops all but 20 bits of an address |
///
/// A transfer of edu takes 100 ms of the guest's time. The time advances with the number of instructions, and jumps to the
/// next event where the guest waits: so a test takes seconds.
const DEVICES: &[&str] = &[
    "-icount shift=6,sleep=off",
    "-device intel-iommu,intremap=on,caching-mode=on",
    "-device edu,addr=0x5",
    "-device edu,dma_mask=0xfffff,addr=0x6",
];

/// The guest that the tests of DMA share, one test at a time.
fn shared() -> MutexGuard<'static, Guest> {
    static GUEST: OnceLock<Mutex<Guest>> = OnceLock::new();
    let guest = GUEST.get_or_init(|| {
        let hardware = Hardware { devices: DEVICES, kernel: "" };
        Mutex::new(Guest::boot(&hardware, &[lanemark()], |_| {}))
    });
    // A failed test leaves the guest usable.
    guest.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn the_engine_of_a_device_answers_questions_about_dma() {
    let mut guest = shared();
    guest.expect("lanemark bind 0000:00:05.0");
    for question in ["dma_write_latency", "dma_read_latency", "dma_write_bandwidth", "dma_read_bandwidth", "interrupt_latency"] {
        let begun = std::time::Instant::now();
        let said = guest.run(&format!(
            "lanemark bench --on 0000:00:05.0 --device edu --question {question} --sizes 64,2KiB --budget 1"
        ));
        println!("{question} {:?} {said:?}", begun.elapsed());
        println!("{}{}", said.stdout, said.stderr);
    }
    println!("{}", guest.run("dmesg | tail -5").stdout);
    guest.expect("lanemark unbind 0000:00:05.0");
}
