//! Fake card: a folder that imitates the kernel's files for one card, whose BARs are plain files.

#![allow(dead_code)] // Each test uses part of it.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

/// PCI address of the card.
pub const ADDRESS: &str = "0000:01:00.0";

/// Length of BAR2 in bytes; BAR2 is prefetchable.
pub const BAR2_BYTES: u64 = 1 << 20;

/// Start address of BAR2.
pub const BAR2_START: u64 = 0xc0_0000_0000;

/// Card with BAR0 (4 KiB, not prefetchable), BAR2 (1 MiB, prefetchable), BAR4 (I/O ports) and BAR5 (without an address).
pub struct FakeCard {
    root: tempfile::TempDir,
}

impl FakeCard {
    pub fn new() -> FakeCard {
        let card = FakeCard { root: tempfile::tempdir().unwrap() };
        fs::create_dir_all(card.path("power")).unwrap();
        card.write("vendor", "0x1af4\n");
        card.write("device", "0x1110\n");
        card.write("enable", "1\n");
        card.write("power_state", "D0\n");
        let none = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
        let lines = [
            "0x00000000fe800000 0x00000000fe800fff 0x0000000000040200\n",
            none,
            "0x000000c000000000 0x000000c0000fffff 0x000000000014220c\n",
            none,
            "0x000000000000c000 0x000000000000c01f 0x0000000000040101\n",
            "0x0000000000000000 0x0000000000000fff 0x0000000020040200\n",
            none,
        ];
        card.write("resource", &lines.concat());
        card.set_config(0x1af4, 0x0006);
        File::create(card.path("resource0")).unwrap().set_len(4096).unwrap();
        File::create(card.path("resource2")).unwrap().set_len(BAR2_BYTES).unwrap();
        fs::hard_link(card.path("resource2"), card.path("resource2_wc")).unwrap();
        card
    }

    /// Folder that replaces `/`.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// Path of a file in the card's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join("sys/bus/pci/devices").join(ADDRESS).join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Sets vendor ID and command register; bit 1 of the latter enables memory decoding.
    pub fn set_config(&self, vendor: u16, command: u16) {
        let mut config = vec![0_u8; 256];
        config[..2].copy_from_slice(&vendor.to_le_bytes());
        config[4..6].copy_from_slice(&command.to_le_bytes());
        fs::write(self.path("config"), config).unwrap();
    }

    pub fn bind(&self, driver: &str) {
        std::os::unix::fs::symlink(format!("../../../../bus/pci/drivers/{driver}"), self.path("driver")).unwrap();
    }

    /// Sets the kernel's list of the memory types of all mappings.
    pub fn set_memory_types(&self, list: &str) {
        let folder = self.root().join("sys/kernel/debug/x86");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("pat_memtype_list"), list).unwrap();
        fs::create_dir_all(self.root().join("proc")).unwrap();
        fs::write(self.root().join("proc/mtrr"), "").unwrap();
    }

    /// Contents of a BAR.
    pub fn bytes(&self, resource: &str) -> Vec<u8> {
        fs::read(self.path(resource)).unwrap()
    }

    /// Truncates a BAR, as if the device were removed.
    pub fn truncate(&self, resource: &str, len: u64) {
        OpenOptions::new().write(true).open(self.path(resource)).unwrap().set_len(len).unwrap();
    }
}
