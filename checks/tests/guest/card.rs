//! Accesses to a card, checked by the bytes outside of the guest.

use crate::{BEFORE, LARGE_BYTES, STORAGE_BYTES, shared, storage};
use lanemark_checks::conformance::PROMISES;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;

pub fn a_card_keeps_every_promise() {
    let mut guest = shared();
    storage::fresh(&guest);
    let said = guest.run("promises card 0000:01:00.0 2:0..64KiB");
    assert_eq!(said.status, 0, "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.ends_with(&format!("{} passed, 0 failed\n", PROMISES.len())), "{}", said.stdout);
    let outside = fs::read(guest.file("storage")).unwrap();
    assert!(outside[64 << 10..].iter().all(|byte| *byte == BEFORE), "something beyond the range has changed");
}

pub fn stores_change_exactly_their_bytes() {
    let mut guest = shared();
    for memory_type in ["uc", "wc"] {
        storage::fresh(&guest);
        guest.expect(&format!(
            "touch-card 0000:01:00.0 2:1MiB..2MiB {memory_type} poke:0x100000:1:0x11 poke:0x100002:2:0x3322 \
             poke:0x100004:4:0x77665544 poke:0x100008:8:0xffeeddccbbaa9988 burst:0x100014:0x1,0x2,0x3,0x4,0x5 fence \
             copy-to:0x1fffef:seventeen-letters"
        ));
        let mut meant = vec![BEFORE; STORAGE_BYTES];
        let mut place = |at: usize, bytes: &[u8]| meant[at..at + bytes.len()].copy_from_slice(bytes);
        place(0x10_0000, &[0x11]);
        place(0x10_0002, &[0x22, 0x33]);
        place(0x10_0004, &[0x44, 0x55, 0x66, 0x77]);
        place(0x10_0008, &[0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff]);
        for word in 0..5 {
            place(0x10_0014 + 4 * word, &(word as u32 + 1).to_le_bytes());
        }
        place(0x1f_ffef, b"seventeen-letters");
        let outside = fs::read(guest.file("storage")).unwrap();
        let first = outside.iter().zip(&meant).position(|(found, meant)| found != meant);
        assert_eq!(first, None, "{memory_type}: the first byte that differs");
    }
}

pub fn a_c_program_writes_to_a_card() {
    let mut guest = shared();
    storage::fresh(&guest);
    let said = guest.expect("hello 0000:01:00.0 2:0..4KiB:storage");
    assert!(said.starts_with("hello, card, 3\n0x55667788\nrefused: "), "{said}");
    let mut meant = vec![BEFORE; STORAGE_BYTES];
    meant[..64].fill(0);
    meant[..11].copy_from_slice(b"hello, card");
    meant[64..80].copy_from_slice(&[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0]);
    meant[128..136].copy_from_slice(&0x1122_3344_5566_7788_u64.to_le_bytes());
    assert!(fs::read(guest.file("storage")).unwrap() == meant, "other bytes than the program's");
}

pub fn loads_return_bytes_written_outside() {
    let mut guest = shared();
    storage::fresh(&guest);
    let storage = File::options().write(true).open(guest.file("storage")).unwrap();
    storage.write_all_at(b"written outside", 0x2001).unwrap();
    storage.write_all_at(&0x0123_4567_89ab_cdef_u64.to_le_bytes(), 0x3008).unwrap();
    let said = guest.expect(
        "touch-card 0000:01:00.0 2:8KiB..16KiB uc copy-from:0x2001:15 peek:0x3008:8 peek:0x300c:4 peek:0x300a:2 \
         peek:0x300b:1",
    );
    assert_eq!(said, "written outside\n0x123456789abcdef\n0x1234567\n0x89ab\n0x89\n");
}

pub fn the_last_bytes_of_an_8_gib_bar_are_accessible() {
    let mut guest = shared();
    guest.expect(
        "touch-card 0000:05:00.0 2:0x1fffff000..8GiB uc poke:0x1fffffff8:8:0x8877665544332211 peek:0x1fffffff8:8",
    );
    let mut found = [0; 16];
    File::open(guest.file("large")).unwrap().read_exact_at(&mut found, LARGE_BYTES - 16).unwrap();
    assert_eq!(found[8..], [0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88]);
    assert_eq!(found[..8], [0; 8]);
}

pub fn registers_are_loaded_and_not_stored_to_by_default() {
    let mut guest = shared();
    // edu: the first register is its identification, the second returns the stored value inverted.
    let said =
        guest.expect("touch-card 0000:04:00.0 0:0..128:registers:write uc peek:0:4 poke:4:4:0x12345678 peek:4:4");
    assert_eq!(said, "0x10000ed\n0xedcba987\n");
    for range in ["0:0..128", "0:0..128:registers"] {
        let refused = guest.run(&format!("touch-card 0000:04:00.0 {range} uc poke:4:4:1"));
        assert!(refused.status == 1 && refused.stderr.contains("not allowed"), "{refused:?}");
    }
    assert_eq!(guest.expect("touch-card 0000:04:00.0 0:0..128 uc peek:4:4"), "0xedcba987\n");
}

pub fn a_non_prefetchable_bar_has_no_write_combining_mapping() {
    let refused = shared().run("touch-card 0000:00:06.0 0:0..4KiB:storage wc peek:0:4");
    assert!(refused.status == 1 && refused.stderr.contains("cannot be mapped write-combining"), "{refused:?}");
}
