//! MSI-X: messages by the entries of a table that cores write, masks and pending bits.

mod stage;

use lanemark_machine::{Completion, Descriptors, DmaCall, Lane, Partner, Pattern, Share, Transfer, Verb, Window};
use lanemark_platform::Platform;
use lanemark_sim::Board;
use lanemark_units::{MemoryType, Ticks};
use stage::{REGISTERS, bus, platform, platform_with};

/// Offsets in the registers, apart from doorbell, status and descriptor list.
const TABLE: u64 = 0x100;
const PENDING: u64 = 0x200;

const SECTION: &str = r#"
[msi_x]
vectors = { value = 8, assumed = "test" }
bar = { value = 0, assumed = "test" }
table_offset_bytes = { value = 0x100, assumed = "test" }
pending_offset_bytes = { value = 0x200, assumed = "test" }
"#;

fn vectors() -> Platform {
    platform_with(SECTION, &[])
}

fn call() -> Lane {
    let window = Window { offset: 4096, len: 4096, pattern: Pattern::Sequential };
    let partner = Partner::Host;
    let transfer = Transfer { card: 0, verb: Verb::Store, partner, bytes: 64, count: 1, window, outstanding: None };
    let (share, descriptors) = (Share::Doorbell, Descriptors::Written(MemoryType::Uc));
    let call = DmaCall { transfer, channel: 0, share, descriptors, completion: Completion::Interrupt };
    Lane { core: 0, task: call.into() }
}

/// Processes every event; returns whether the core has completed.
fn ends(board: &mut Board) -> bool {
    while board.step() {}
    board.core(0).is_done()
}

fn pending(board: &mut Board) -> u64 {
    let mut word = [0; 8];
    board.region_mut("registers").unwrap().memory.read(PENDING, &mut word);
    u64::from_le_bytes(word)
}

/// Writes one DW of the entry of vector 0 by a core.
fn write(board: &mut Board, dw: u64, value: u32) {
    let now = board.now();
    board.inject_write(now, bus("registers", TABLE + 4 * dw), &value.to_le_bytes());
}

#[test]
fn an_msi_x_interrupt_takes_as_long_as_an_msi() {
    let took = |platform: &Platform| {
        let mut board = Board::new(platform).unwrap();
        board.start(&call(), 1, 0);
        assert!(ends(&mut board));
        (board.core(0).issued_at(), board.now())
    };
    assert_eq!(took(&vectors()), took(&platform("8B", &[])));
}

#[test]
fn a_message_uses_the_address_and_data_of_its_table_entry() {
    let mut board = Board::new(&vectors()).unwrap();
    let mut entry = [0; 16];
    board.region_mut("registers").unwrap().memory.read(TABLE + 3 * 16, &mut entry);
    // The initial entry: the address of the interrupt controller, the number of the vector, unmasked.
    assert_eq!(entry, [0, 0, 0xE0, 0xFE, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
    // An address in DMA memory, above 4 GiB.
    let to = board.mapped_at() + 64;
    write(&mut board, 0, to as u32);
    write(&mut board, 1, (to >> 32) as u32);
    write(&mut board, 2, 0xABCD_1234);
    board.start(&call(), 1, 0);
    assert!(!ends(&mut board), "no interrupt arrived");
    let mut word = [0; 4];
    board.memory_mut().read(64, &mut word);
    assert_eq!(u32::from_le_bytes(word), 0xABCD_1234);
}

#[test]
fn a_masked_vector_is_pending_and_sent_when_unmasked() {
    masks_and_unmasks(&vectors());
}

#[test]
fn masking_works_in_a_region_that_ignores_other_writes() {
    masks_and_unmasks(&platform_with(&format!("{SECTION}{REGISTERS}"), &[]));
}

fn masks_and_unmasks(platform: &Platform) {
    let mut board = Board::new(platform).unwrap();
    write(&mut board, 3, 1);
    assert!(ends(&mut board));
    board.start(&call(), 1, 0);
    assert!(!ends(&mut board));
    assert_eq!(pending(&mut board), 1);
    // Writing another DW of the entry changes nothing.
    write(&mut board, 2, 77);
    assert!(!ends(&mut board));
    let masked_until = board.now();
    write(&mut board, 3, 0);
    assert!(ends(&mut board));
    assert_eq!(pending(&mut board), 0);
    assert!(board.core(0).issued_at() > masked_until + Ticks::whole_ns(1000));
    assert_eq!(board.slots_in_use(), 0);
    // Unmasked, it is sent immediately.
    board.start(&call(), 1, 1);
    assert!(ends(&mut board));
}
