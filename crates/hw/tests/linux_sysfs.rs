//! Card backend against a fake card: refusals, accesses, verification, and removal during a run.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

mod fake_card;

use fake_card::{ADDRESS, BAR2_BYTES, BAR2_START, FakeCard};
use lanemark_hw::linux_sysfs::{Attachment, Card, CardError, CardMachine, Consent, Note, Range, Rehearsal, System};
use lanemark_machine::{
    Access, Confirmed, Delivery, Machine, MachineError, Order, Plan, Samples, Span, Step, Stream, Verb, Width,
};
use lanemark_units::{BarOffset, MemoryType, Ticks};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn ranges(texts: &[&str]) -> Vec<Range> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn attach(card: &FakeCard, texts: &[&str], consent: Consent) -> Result<Attachment, CardError> {
    Attachment::new(&System::at(card.root()), ADDRESS.parse().unwrap(), &ranges(texts), consent)
}

fn open(card: &FakeCard, texts: &[&str]) -> CardMachine {
    CardMachine::open(attach(card, texts, Consent::default()).unwrap(), true).unwrap()
}

fn library(card: &FakeCard, texts: &[&str]) -> Card {
    let system = System::at(card.root());
    Card::attach_in(&system, ADDRESS.parse().unwrap(), &ranges(texts), Consent::default()).unwrap()
}

fn span(bar: u8, offset: u64, len: u64, memory_type: MemoryType) -> Span {
    Span { at: BarOffset { bar, offset }, len, memory_type }
}

fn stream(verb: Verb, access: Access, span: Span) -> Plan {
    Plan::new(Step::Stream(Stream::over(verb, access, span)), 3)
}

fn run(machine: &mut CardMachine, plan: &Plan) -> Samples {
    machine.supports(plan).unwrap();
    let mut samples = Samples::wanted(3);
    machine.run(plan, &mut samples).unwrap();
    assert!(samples.taken.len() == 3 || samples.dropped.count() > 0);
    samples
}

/// Refusal of a plan, returned by both `supports` and `run` before any access.
fn refused(machine: &mut CardMachine, plan: &Plan) -> String {
    let refusal = machine.supports(plan).unwrap_err().to_string();
    machine.run(plan, &mut Samples::wanted(1)).unwrap_err();
    refusal
}

/// Error of opening a machine on a valid attachment.
fn not_opened(card: &FakeCard, texts: &[&str]) -> String {
    CardMachine::open(attach(card, texts, Consent::default()).unwrap(), true).unwrap_err().to_string()
}

fn says(error: &str, words: &[&str]) {
    for word in words {
        assert!(error.contains(word), "'{word}' is not in: {error}");
    }
}

#[test]
fn attaching_fails_with_a_remedy_for_invalid_ranges_and_addresses() {
    let card = FakeCard::new();
    let refused = |texts: &[&str], words: &[&str]| {
        says(&attach(&card, texts, Consent::default()).unwrap_err().to_string(), words);
    };
    refused(&[], &[ADDRESS, "--bar 2:0..4KiB", "BAR0 4KiB", "BAR2 1MiB 64-bit memory, prefetchable", "I/O"]);
    refused(&["1:0..64"], &["no BAR1", "BAR2 1MiB"]);
    refused(&["4:0..16"], &["BAR4", "I/O ports", "BAR2 1MiB"]);
    refused(&["5:0..64"], &["BAR5 has no address", "dmesg"]);
    refused(&["2:0..1048577"], &["2:0..1048577B", "0x100000"]);
    refused(&["2:0..64", "2:63..128"], &["2:0..64B", "2:63B..128B", "overlap"]);
    attach(&card, &["2:0..1MiB", "0:0..4KiB"], Consent::default()).unwrap();
    let nowhere = Attachment::new(&System::at(card.root()), "02:00.0".parse().unwrap(), &[], Consent::default());
    says(&nowhere.unwrap_err().to_string(), &["0000:02:00.0 does not exist", "lspci"]);
}

#[test]
fn a_device_with_a_driver_is_rejected_unless_the_user_owns_it() {
    let card = FakeCard::new();
    card.bind("nvme");
    let refusal = attach(&card, &["2:0..64"], Consent::default()).unwrap_err().to_string();
    says(&refusal, &["'nvme'", "--i-own-this-device", "drivers/nvme/unbind"]);
    let owned = attach(&card, &["2:0..64"], Consent { owns_device: true, enable: false }).unwrap();
    assert_eq!(owned.driver.as_deref(), Some("nvme"));
}

#[test]
fn memory_decoding_is_enabled_only_on_request_and_the_command_is_named() {
    let card = FakeCard::new();
    card.set_config(0x1af4, 0x0004);
    let refusal = attach(&card, &["2:0..64"], Consent::default()).unwrap_err().to_string();
    says(&refusal, &["memory decoding is off", "--enable", "echo 1 >", "enable"]);
    assert_eq!(card.bytes("enable"), b"1\n");
    // The fake file does not enable anything, so decoding stays off, which is detected.
    card.write("enable", "0\n");
    let consent = Consent { owns_device: false, enable: true };
    assert!(matches!(attach(&card, &["2:0..64"], consent), Err(CardError::DecodingOff { .. })));
    assert_eq!(card.bytes("enable"), b"1");
    card.set_config(0x1af4, 0x0002);
    card.write("enable", "0\n");
    assert!(!attach(&card, &["2:0..64"], consent).unwrap().was_enabled);
    assert_eq!(card.bytes("enable"), b"0\n", "decoding that is on is not enabled again");
}

#[test]
fn a_sleeping_or_removed_device_is_rejected() {
    let card = FakeCard::new();
    card.write("power_state", "D3hot\n");
    let refusal = attach(&card, &["2:0..64"], Consent::default()).unwrap_err().to_string();
    says(&refusal, &["D3hot", "power/control"]);
    card.write("power_state", "D0\n");
    card.set_config(0xffff, 0xffff);
    let refusal = attach(&card, &["2:0..64"], Consent::default()).unwrap_err().to_string();
    says(&refusal, &["is gone", "all ones", "rescan"]);
    fs::remove_file(card.path("config")).unwrap();
    assert!(matches!(attach(&card, &["2:0..64"], Consent::default()), Err(CardError::Gone { .. })));
}

#[test]
fn mapping_errors_are_distinguished() {
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
    use std::os::fd::AsRawFd;

    let card = FakeCard::new();
    let instead = |target: &str| {
        let _ = fs::remove_file(card.path("resource2"));
        std::os::unix::fs::symlink(target, card.path("resource2")).unwrap();
    };
    // Not even root may open a kernel constant for writing.
    instead("/proc/sys/kernel/osrelease");
    says(&not_opened(&card, &["2:0..64"]), &["no permission to open", "resource2", "root"]);

    let sealed = memfd_create("sealed", MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&sealed, 4096).unwrap();
    fcntl_add_seals(&sealed, SealFlags::WRITE).unwrap();
    instead(&format!("/proc/self/fd/{}", sealed.as_raw_fd()));
    says(&not_opened(&card, &["2:0..64"]), &["EPERM", "lockdown"]);

    // Huge pages can only be mapped at multiples of their size.
    let huge = memfd_create("huge", MemfdFlags::HUGETLB).expect("this test needs a kernel with hugetlbfs");
    instead(&format!("/proc/self/fd/{}", huge.as_raw_fd()));
    says(&not_opened(&card, &["2:4KiB..8KiB"]), &["EINVAL", "IO_STRICT_DEVMEM", "iomem=relaxed", "2:4KiB..8KiB"]);

    fs::remove_file(card.path("resource2")).unwrap();
    says(&not_opened(&card, &["2:0..64"]), &[": no ", "resource2"]);
}

#[test]
fn memory_types_are_those_of_successful_mappings() {
    let card = FakeCard::new();
    let types = |machine: &CardMachine| machine.facts().memory_types.clone();
    let both = open(&card, &["2:0..4KiB"]);
    assert_eq!(types(&both), [MemoryType::Uc, MemoryType::Wc]);
    let because = both.mappings()[0].outcome.as_ref().unwrap().because.clone();
    says(&because, &["not read back", "pat_memtype_list", "debugfs"]);

    // The kernel gives a second mapping the type of the first: here another program holds WC.
    card.set_memory_types(&format!("PAT: [mem {BAR2_START:#x}-{:#x}] write-combining\n", BAR2_START + 4096));
    let mut held = open(&card, &["2:0..4KiB"]);
    assert_eq!(types(&held), [MemoryType::Wc]);
    let uc = held.mappings().iter().find(|mapping| mapping.memory_type == MemoryType::Uc).unwrap();
    says(uc.outcome.as_ref().unwrap_err(), &["requested as UC but is WC", "another mapping"]);
    assert_eq!(held.mappings()[1].outcome.as_ref().unwrap().found, Some(MemoryType::Wc));
    let store = stream(Verb::Store, Access::Plain(Width::B8), span(2, 0, 64, MemoryType::Wc));
    run(&mut held, &store);

    // While the card was open, another program mapped it with another type.
    card.set_memory_types(&format!("PAT: [mem {BAR2_START:#x}-{:#x}] uncached-minus\n", BAR2_START + 4096));
    let error = held.run(&store, &mut Samples::wanted(1)).unwrap_err().to_string();
    says(&error, &["requested as WC but is UC"]);
    assert!(card.bytes("resource2")[64..].iter().all(|byte| *byte == 0));

    fs::remove_file(card.path("resource2_wc")).unwrap();
    let without = open(&card, &["2:0..4KiB"]);
    assert_eq!(types(&without), [MemoryType::Uc]);
    says(without.mappings()[1].outcome.as_ref().unwrap_err(), &["resource2_wc", "prefetchable"]);
}

#[test]
fn stores_reach_the_named_range_and_nothing_else() {
    let card = FakeCard::new();
    let mut machine = open(&card, &["2:4200..64KiB"]);
    for access in machine.facts().stores.clone() {
        for (offset, len) in [(4224, 64), (4224, 4096 + 7), (8192, 32 << 10)] {
            for memory_type in [MemoryType::Uc, MemoryType::Wc] {
                card.truncate("resource2", 0);
                card.truncate("resource2", BAR2_BYTES);
                let samples = run(&mut machine, &stream(Verb::Store, access, span(2, offset, len, memory_type)));
                assert_eq!(samples.confirmed, Some(Confirmed { claimed_bytes: len, confirmed_bytes: len }), "{access}");
                let Delivery::ReadBack { round_trip } = samples.delivery else { panic!("{:?}", samples.delivery) };
                assert!(round_trip < Ticks::whole_ns(1_000_000_000));
                let bytes = card.bytes("resource2");
                let (start, end) = (offset as usize, (offset + len) as usize);
                assert!(
                    bytes[..start].iter().chain(&bytes[end..]).all(|byte| *byte == 0),
                    "{access} {len} B at {offset}"
                );
                assert!(bytes[start..end].iter().all(|byte| *byte != 0) || access.width().is_none());
            }
        }
    }
}

#[test]
fn loads_change_nothing_and_copies_are_verified() {
    let card = FakeCard::new();
    let noise: Vec<u8> = (0..BAR2_BYTES).map(|n| (n * 7 + n / 256) as u8).collect();
    fs::write(card.path("resource2"), &noise).unwrap();
    let mut machine = open(&card, &["2:0..64KiB"]);
    for access in machine.facts().loads.clone() {
        let samples = run(&mut machine, &stream(Verb::Load, access, span(2, 64, 4096, MemoryType::Uc)));
        let all = Confirmed { claimed_bytes: 4096, confirmed_bytes: 4096 };
        assert_eq!(samples.confirmed, access.width().is_none().then_some(all), "{access}");
        assert_eq!(samples.delivery, Delivery::Seen);
    }
    assert!(card.bytes("resource2") == noise);
}

#[test]
fn a_plan_one_byte_outside_the_named_ranges_is_rejected() {
    let card = FakeCard::new();
    let mut machine = open(&card, &["2:4KiB..8KiB", "2:12KiB..16KiB"]);
    assert_eq!(machine.facts().regions[1].name, "bar2+0x3000");
    let store = |offset, len| stream(Verb::Store, Access::Plain(Width::B1), span(2, offset, len, MemoryType::Uc));
    run(&mut machine, &store(4096, 4096));
    for (offset, len) in [(4095, 1), (4096, 4097), (8192, 1), (8191, 4098)] {
        says(&refused(&mut machine, &store(offset, len)), &["outside every region", "bar2+0x1000"]);
    }
    refused(&mut machine, &stream(Verb::Store, Access::Plain(Width::B1), span(0, 4096, 1, MemoryType::Uc)));
    let wb = stream(Verb::Load, Access::Plain(Width::B8), span(2, 4096, 64, MemoryType::Wb));
    says(&refused(&mut machine, &wb), &["WB", "prefetchable"]);
}

#[test]
fn registers_take_4_b_accesses_only_and_stores_only_on_request() {
    let card = FakeCard::new();
    let at = |verb, access, offset, len| stream(verb, access, span(0, offset, len, MemoryType::Uc));
    let (b4, b8) = (Access::Plain(Width::B4), Access::Plain(Width::B8));

    let mut read_only = open(&card, &["0:0..64"]);
    assert!(read_only.facts().storage().is_none());
    run(&mut read_only, &at(Verb::Load, b4, 4, 8));
    says(&refused(&mut read_only, &at(Verb::Store, b4, 0, 4)), &["registers", "use the kind"]);
    says(&refused(&mut read_only, &at(Verb::Load, b8, 0, 8)), &["4 B"]);
    says(&refused(&mut read_only, &at(Verb::Load, b4, 2, 4)), &["multiple of 4"]);
    says(&refused(&mut read_only, &at(Verb::Load, b4, 0, 6)), &["multiple of 4"]);
    let wc = stream(Verb::Load, b4, span(0, 0, 4, MemoryType::Wc));
    says(&refused(&mut read_only, &wc), &["WC"]);
    drop(read_only);

    let mut writable = open(&card, &["0:0..64:registers:write"]);
    let samples = run(&mut writable, &at(Verb::Store, b4, 0, 8));
    assert_eq!(samples.confirmed, None, "registers need not keep what is stored");
    assert!(matches!(samples.delivery, Delivery::ReadBack { .. }));
    drop(writable);

    let mut write_only = open(&card, &["0:8..64:registers:write-only"]);
    says(&refused(&mut write_only, &at(Verb::Load, b4, 8, 4)), &["write-only"]);
    let samples = run(&mut write_only, &at(Verb::Store, b4, 8, 4));
    assert_eq!(samples.delivery, Delivery::Unknown);
    assert!(samples.taken.iter().all(|sample| sample.delivered == sample.issue));
    let mut written = card.bytes("resource0");
    assert!(written.drain(..12).all(|byte| byte != 0) && written.iter().all(|byte| *byte == 0));
}

#[test]
fn a_device_that_reads_as_all_ones_is_reported_as_gone() {
    let card = FakeCard::new();
    let mut machine = open(&card, &["2:0..4KiB"]);
    let store = stream(Verb::Store, Access::Plain(Width::B4), span(2, 0, 64, MemoryType::Uc));
    card.set_config(0xffff, 0xffff);
    let error = machine.run(&store, &mut Samples::wanted(1)).unwrap_err();
    assert!(matches!(error, MachineError::Device { .. }), "{error}");
    says(&error.to_string(), &["is gone", ADDRESS]);
}

#[test]
fn a_bar_that_vanishes_during_a_run_is_an_error_with_the_address() {
    let card = Arc::new(FakeCard::new());
    let mut machine = open(&card, &["2:0..64KiB"]);
    let mut plan = stream(Verb::Store, Access::Plain(Width::B8), span(2, 4096, 8192, MemoryType::Uc));
    (plan.passes, plan.timeout) = (u64::MAX, Ticks::whole_ns(20_000_000_000));
    let cutter = Arc::clone(&card);
    let cuts = std::thread::spawn(move || {
        // The run has begun when it has stored something; on a busy machine, that takes a while.
        for _ in 0..1000 {
            std::thread::sleep(std::time::Duration::from_millis(10));
            if cutter.bytes("resource2")[4096..12288].iter().any(|byte| *byte != 0) {
                break;
            }
        }
        cutter.truncate("resource2", 8192);
    });
    // The running sample continues on replacement memory until it is checked: the flag ends it.
    let flag = Arc::new(AtomicBool::new(false));
    let mut machine_with_flag = {
        machine = machine.interrupted_by(Arc::clone(&flag));
        machine
    };
    let setter = std::thread::spawn(move || {
        cuts.join().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(300));
        flag.store(true, Ordering::Relaxed);
    });
    let error = machine_with_flag.run(&plan, &mut Samples::wanted(1)).unwrap_err();
    setter.join().unwrap();
    assert!(matches!(error, MachineError::Device { .. }), "{error}");
    says(&error.to_string(), &["bus error at BAR2+0x2", "vanished", ADDRESS]);
}

#[test]
fn a_truncated_bar_is_an_error_for_every_access_and_does_not_crash() {
    let card = FakeCard::new();
    let mut machine = open(&card, &["2:0..64KiB"]);
    card.truncate("resource2", 4096);
    for access in machine.facts().stores.clone() {
        let plan = stream(Verb::Store, access, span(2, 0, 16 << 10, MemoryType::Wc));
        let error = machine.run(&plan, &mut Samples::wanted(2)).unwrap_err().to_string();
        // Instructions access ascending addresses. A copy need not: some C libraries store the last vector first.
        match access {
            Access::Memcpy | Access::RepMovsb | Access::CopyToDevice => {
                let offset = bus_error(&error);
                assert!((0x1000..16 << 10).contains(&offset), "{access}: {error}");
            }
            _ => says(&error, &["bus error at BAR2+0x1000:"]),
        }
    }
}

/// Offset in the message of a bus error.
fn bus_error(error: &str) -> u64 {
    let digits = error.split("bus error at BAR2+0x").nth(1).and_then(|rest| rest.split(':').next());
    let digits = digits.unwrap_or_else(|| panic!("no bus error in BAR2: {error}"));
    u64::from_str_radix(digits, 16).unwrap_or_else(|reason| panic!("'{digits}': {reason}"))
}

#[test]
fn the_interrupt_flag_and_the_timeout_end_a_run() {
    let card = FakeCard::new();
    let flag = Arc::new(AtomicBool::new(true));
    let mut machine = open(&card, &["2:0..4KiB"]).interrupted_by(Arc::clone(&flag));
    let mut plan = stream(Verb::Load, Access::Plain(Width::B4), span(2, 0, 64, MemoryType::Uc));
    assert!(matches!(machine.run(&plan, &mut Samples::wanted(1)), Err(MachineError::Interrupted { .. })));
    flag.store(false, Ordering::Relaxed);
    (plan.passes, plan.timeout) = (u64::MAX, Ticks::whole_ns(2_000_000));
    assert!(matches!(machine.run(&plan, &mut Samples::wanted(1)), Err(MachineError::Timeout { .. })));
}

#[test]
fn a_dry_run_lists_every_access_and_makes_none() {
    let card = FakeCard::new();
    card.bind("ivshmem");
    // Neither configuration space nor a BAR can be read, which must not matter.
    fs::remove_file(card.path("config")).unwrap();
    card.truncate("resource2", 0);
    let named = ranges(&["2:0..4KiB", "0:0..64"]);
    let attachment =
        Attachment::rehearsed(&System::at(card.root()), ADDRESS.parse().unwrap(), &named, Consent::default()).unwrap();
    let mut rehearsal = Rehearsal::new(attachment).unwrap();
    says(&rehearsal.refusals()[0].to_string(), &["ivshmem", "--i-own-this-device"]);
    let store = stream(Verb::Store, Access::Plain(Width::B8), span(2, 64, 100, MemoryType::Wc));
    let load = stream(Verb::Load, Access::Plain(Width::B4), span(0, 4, 4, MemoryType::Uc));
    for plan in [&store, &store, &load] {
        rehearsal.run(plan, &mut Samples::wanted(5)).unwrap();
    }
    let touched = rehearsal.notes().take();
    let shown: Vec<String> = touched.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "WC 8: 12 x store of 8 B per iteration and 4 B by narrower accesses, BAR2+0x40 to BAR2+0xa3; \
             one load at its end after each sample and 31 after the last sample; the whole span loaded once at the end",
            "UC 4: 1 x load of 4 B per iteration, BAR0+0x4 to BAR0+0x7",
        ]
    );
    let [Note::Touch(store), Note::Touch(load)] = &touched[..] else { panic!("{touched:?}") };
    assert!(store.file.ends_with("resource2_wc") && load.file.ends_with("resource0"));
    let to_registers = stream(Verb::Store, Access::Plain(Width::B4), span(0, 0, 4, MemoryType::Uc));
    rehearsal.run(&to_registers, &mut Samples::wanted(1)).unwrap_err();
    assert_eq!(rehearsal.notes().take(), []);
}

#[test]
fn library_calls_peek_poke_burst_and_copy_within_the_range() {
    let card = FakeCard::new();
    let attached = library(&card, &["2:4KiB..8KiB"]);
    let mut memory = attached.map(0, MemoryType::Wc).unwrap();
    assert_eq!(attached.mappings(), 1);
    for (width, value) in [(Width::B1, 0x11), (Width::B2, 0x2222), (Width::B4, 0x3333_3333), (Width::B8, u64::MAX / 3)]
    {
        memory.poke(4096 + 8, width, value).unwrap();
        assert_eq!(memory.peek(4096 + 8, width).unwrap(), value);
    }
    // A burst that starts and ends within a line and at an odd word.
    let words: Vec<u32> = (1..=37).collect();
    memory.write_burst(4096 + 20, &words).unwrap();
    memory.fence();
    let mut copied = vec![0; 4 * words.len() + 2];
    memory.copy_from(4096 + 19, &mut copied).unwrap();
    let wanted: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_eq!(copied[1..=wanted.len()], wanted);
    memory.copy_to(8192 - 5, b"hello").unwrap();
    memory.calibrate(std::time::Duration::from_millis(20)).unwrap();
    assert!(card.bytes("resource2")[..4096].iter().chain(&card.bytes("resource2")[8192..]).all(|byte| *byte == 0));
    memory.copy_to(8192 - 5, b"hello").unwrap();
    assert_eq!(&card.bytes("resource2")[8187..8192], b"hello");

    for error in [
        memory.peek(4095, Width::B1).unwrap_err(),
        memory.peek(8192, Width::B1).unwrap_err(),
        memory.poke(0, Width::B4, 0).unwrap_err(),
        memory.write_burst(8188, &[1, 2]).unwrap_err(),
        memory.copy_to(8190, b"hello").unwrap_err(),
        memory.copy_from(u64::MAX, &mut [0; 2]).unwrap_err(),
    ] {
        assert!(matches!(error, CardError::OutOfRange { .. }), "{error}");
    }
    for error in [
        memory.peek(4098, Width::B4).unwrap_err(),
        memory.poke(4100, Width::B8, 0).unwrap_err(),
        memory.peek(4096, Width::B16).unwrap_err(),
        memory.write_burst(4098, &[1]).unwrap_err(),
    ] {
        assert!(matches!(error, CardError::Unaligned { .. }), "{error}");
    }
    let held = attached.map(0, MemoryType::Uc).unwrap_err();
    assert!(matches!(held, CardError::HeldOtherwise { held: MemoryType::Wc, .. }), "{held}");
    drop(memory);
    attached.map(0, MemoryType::Uc).unwrap();
    assert_eq!(attached.mappings(), 0);
    attached.map(1, MemoryType::Uc).unwrap_err();
    attached.map(0, MemoryType::Wt).unwrap_err();
}

#[test]
fn library_calls_respect_the_kind_of_the_range() {
    let card = FakeCard::new();
    let attached = library(&card, &["0:0..64", "0:64..128:registers:write-only", "0:128..192:registers:write"]);
    attached.map(0, MemoryType::Wc).unwrap_err();
    let [mut read, mut write_only, mut both] = [0, 1, 2].map(|range| attached.map(range, MemoryType::Uc).unwrap());
    read.peek(0, Width::B8).unwrap();
    write_only.poke(64, Width::B4, 5).unwrap();
    both.poke(128, Width::B4, 6).unwrap();
    assert_eq!(both.peek(128, Width::B4).unwrap(), 6);
    for error in [
        read.poke(0, Width::B4, 1).unwrap_err(),
        read.write_burst(0, &[1]).unwrap_err(),
        write_only.peek(64, Width::B4).unwrap_err(),
        both.copy_to(128, b"1").unwrap_err(),
        both.calibrate(std::time::Duration::ZERO).unwrap_err(),
        both.copy_from(128, &mut [0]).unwrap_err(),
    ] {
        assert!(matches!(error, CardError::NotAllowed { .. }), "{error}");
        says(&error.to_string(), &["registers", ADDRESS, "BAR0+0x"]);
    }
}

#[test]
fn library_calls_report_a_removed_card() {
    let card = FakeCard::new();
    let attached = library(&card, &["2:0..8KiB"]);
    let mut memory = attached.map(0, MemoryType::Uc).unwrap();
    memory.poke(0, Width::B4, u64::MAX).unwrap();
    assert_eq!(memory.peek(0, Width::B4).unwrap(), 0xffff_ffff, "all ones may be the stored value");
    card.set_config(0xffff, 0xffff);
    assert!(matches!(memory.peek(0, Width::B4), Err(CardError::Gone { .. })));
    card.truncate("resource2", 4096);
    let error = memory.poke(4100, Width::B4, 1).unwrap_err();
    says(&error.to_string(), &["bus error at BAR2+0x1004"]);
    assert!(matches!(memory.peek(0, Width::B1), Err(CardError::BusError { .. })), "later accesses must fail too");
}

#[test]
fn repeated_stores_to_one_address_are_read_back_from_there() {
    let card = FakeCard::new();
    let mut machine = open(&card, &["2:0..4KiB"]);
    let order = Order::SameAddress { times: 9 };
    let one = Stream { order, ..Stream::over(Verb::Store, Access::Plain(Width::B2), span(2, 6, 2, MemoryType::Uc)) };
    let samples = run(&mut machine, &Plan::new(Step::Stream(one), 5));
    assert_eq!(samples.confirmed, Some(Confirmed { claimed_bytes: 2, confirmed_bytes: 2 }));
}

#[test]
fn a_card_that_was_replaced_or_bound_to_a_driver_is_not_accessed_again() {
    let plan = stream(Verb::Load, Access::Plain(Width::B8), span(2, 0, 64, MemoryType::Uc));
    for is_replaced in [true, false] {
        let card = FakeCard::new();
        let mut machine = open(&card, &["2:0..4KiB"]);
        let attached = library(&card, &["2:0..4KiB"]);
        run(&mut machine, &plan);
        drop(attached.map(0, MemoryType::Uc).unwrap());
        let now = if is_replaced {
            card.write("device", "0x1111\n");
            "1af4:1111 with no driver"
        } else {
            card.bind("nvme");
            "1af4:1110 with driver 'nvme'"
        };
        let words = format!("was 1af4:1110 with no driver when it was opened and is {now} now");
        let error = machine.run(&plan, &mut Samples::wanted(3)).unwrap_err();
        assert!(matches!(error, MachineError::Device { .. }), "it ends the run: {error}");
        says(&error.to_string(), &[ADDRESS, &words, "open it again"]);
        says(&attached.map(0, MemoryType::Uc).unwrap_err().to_string(), &[ADDRESS, &words]);
    }
}

#[test]
fn a_card_of_another_process_is_refused_until_that_ends() {
    let card = FakeCard::new();
    // Another open file has a lock of its own, as in another process.
    let other = fs::File::open(card.path("config")).unwrap();
    rustix::fs::flock(&other, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let refused = attach(&card, &["2:0..4KiB"], Consent { owns_device: false, enable: true }).unwrap_err();
    says(&refused.to_string(), &[ADDRESS, "another process", "fuser"]);
    assert_eq!(card.bytes("enable"), b"1\n", "nothing is enabled");
    let system = System::at(card.root());
    let library = || Card::attach_in(&system, ADDRESS.parse().unwrap(), &ranges(&["2:0..4KiB"]), Consent::default());
    assert!(matches!(library(), Err(CardError::InUse { .. })));
    drop(other);
    // Both ways of one process share the lock, and a mapping keeps it.
    let (machine, attached) = (open(&card, &["2:0..4KiB"]), library().unwrap());
    let memory = attached.map(0, MemoryType::Uc).unwrap();
    drop((machine, attached));
    let again = fs::File::open(card.path("config")).unwrap();
    let lock = || rustix::fs::flock(&again, rustix::fs::FlockOperation::NonBlockingLockExclusive);
    assert_eq!(lock(), Err(rustix::io::Errno::WOULDBLOCK));
    drop(memory);
    lock().unwrap();
}
