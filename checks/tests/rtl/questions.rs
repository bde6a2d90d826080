//! The compiled card as a machine: the plans and questions of a simulated card.

use crate::design::{Mutant, build, card, changed, load, mutants};
use crate::three_ways::platform;
use crate::{blocks, module};
use lanemark_checks::{lanemark, root};
use lanemark_devices::DeviceFile;
use lanemark_hw::dut_library::DutLibrary;
use lanemark_machine::{
    Access, Fence, Machine, Partner, Pattern, Plan, Samples, Span, Step, Stream, Transfer, Verb, Width, Window,
};
use lanemark_platform::Platform;
use lanemark_sim::{CompiledCard, SimulatedMachine};
use lanemark_units::{BarOffset, MemoryType};
use std::fs;
use std::path::Path;
use std::process::Command;

fn device() -> DeviceFile {
    DeviceFile::parse("rtl/card.toml", &fs::read_to_string(root().join("rtl/card.toml")).unwrap()).unwrap()
}

/// The compiled card on the host of a platform.
fn compiled(library: &DutLibrary, platform: &Platform) -> SimulatedMachine {
    let (file, dut) = (device(), library.open("a plan").unwrap());
    let period = platform.dma.as_ref().unwrap().beat_ns.value;
    let card = CompiledCard::new(Box::new(dut), period, Some(&file));
    SimulatedMachine::of_compiled(platform, card).unwrap()
}

fn run(machine: &mut SimulatedMachine, plan: &Plan) -> Samples {
    let mut samples = Samples::wanted(1);
    machine.run(plan, &mut samples).unwrap_or_else(|error| panic!("{error}: {plan:?}"));
    samples
}

fn transfer(verb: Verb, bytes: u64) -> Plan {
    let window = Window { offset: 64, len: 64 << 10, pattern: Pattern::Sequential };
    let outstanding = (verb == Verb::Load).then_some(1);
    Plan::new(Transfer { card: 0, verb, partner: Partner::Host, bytes, count: 1, window, outstanding }, 1)
}

fn loads(width: Width, len: u64) -> Plan {
    let at = BarOffset { bar: 0, offset: 0x4000 };
    let stream = Stream::over(Verb::Load, Access::Plain(width), Span { at, len, memory_type: MemoryType::Uc });
    Plan::new(vec![Step::Stream(stream), Step::Fence(Fence::Lfence)], 1)
}

/// Completions of a read: 128 B each, from a multiple of 64 B on.
fn completions(bytes: u64) -> f64 {
    bytes.div_ceil(128) as f64
}

pub fn a_plan_takes_the_time_of_the_simulated_card_within_a_clock_a_stage() {
    let library = card();
    // The buffers of the hard block are not part of the card.
    let platform = platform(&["--send-buffers", "1024"]);
    let period = platform.dma.as_ref().unwrap().beat_ns.value.as_ns();
    let mut both = [compiled(library, &platform), SimulatedMachine::new(&platform).unwrap()];
    let mut later = |plan: &Plan| {
        let [compiled, simulated] = both.each_mut().map(|machine| run(machine, plan).taken[0].delivered.as_ns());
        (compiled - simulated) / period
    };
    for bytes in [1, 64, 128, 300, 1024, 4096] {
        let write = later(&transfer(Verb::Store, bytes));
        assert!(write.abs() < 0.1, "a write of {bytes} B is {write} clocks later");
        // The simulated card has no clock edges: a completion waits for one, and its header is checked for a clock.
        let read = later(&transfer(Verb::Load, bytes));
        assert!((0.0..=completions(bytes)).contains(&read), "a read of {bytes} B is {read} clocks later");
    }
    for (width, len) in [(Width::B4, 4), (Width::B8, 8), (Width::B4, 64)] {
        let load = later(&loads(width, len));
        let count = (len / width.bytes()) as f64;
        assert!((0.0..=count).contains(&load), "loads of {len} B are {load} clocks later");
    }
}

pub fn every_byte_is_confirmed_and_a_mutant_loses_some() {
    let platform = platform(&[]);
    let library = card();
    let mut machine = compiled(library, &platform);
    for plan in [transfer(Verb::Store, 1000), transfer(Verb::Load, 1000), stores()] {
        let confirmed = run(&mut machine, &plan).confirmed.unwrap();
        assert_eq!(confirmed.claimed_bytes, confirmed.confirmed_bytes, "{plan:?}");
    }
    let mut mutants = mutants();
    mutants.retain(|mutant| mutant.name == "byte enables of stores are ignored");
    let [mutant]: [Mutant; 1] = mutants.try_into().ok().unwrap();
    let (_folder, library) = changed(&mutant).unwrap();
    let lost = run(&mut compiled(&library, &platform), &stores()).confirmed.unwrap();
    assert!(lost.confirmed_bytes < lost.claimed_bytes, "{lost:?}");
}

/// Stores of single bytes.
fn stores() -> Plan {
    let span = Span { at: BarOffset { bar: 0, offset: 0x4000 }, len: 16, memory_type: MemoryType::Uc };
    let stream = Stream::over(Verb::Store, Access::Plain(Width::B1), span);
    Plan::new(vec![Step::Stream(stream), Step::Fence(Fence::Mfence)], 1)
}

pub fn the_card_behind_a_block_is_measured_too() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["card_ultrascale", "card_series7", "card_litepcie"] {
        let file = folder.path().join(format!("{name}.so"));
        blocks::build(&file, name, 64);
        let mut platform = platform(&[]);
        platform.dma.as_mut().unwrap().beat_bytes.value = 8;
        measure(&mut compiled(&load(&file), &platform));
    }
}

fn measure(machine: &mut SimulatedMachine) {
    for plan in [transfer(Verb::Store, 1000), transfer(Verb::Load, 1000), stores(), loads(Width::B4, 64)] {
        let samples = run(machine, &plan);
        let is_whole = samples.confirmed.is_none_or(|bytes| bytes.claimed_bytes == bytes.confirmed_bytes);
        assert!(is_whole && samples.taken.len() == 1, "{plan:?}: {:?}", samples.confirmed);
    }
}

/// Runs `lanemark bench` on a compiled card in a folder; returns its exit status and what it prints.
fn bench(folder: &Path, options: &str) -> (Option<i32>, String) {
    let words = ["bench", "--question", "dma_read_latency", "--sizes", "64"];
    let output = Command::new(lanemark()).args(words).args(options.split(' ')).current_dir(folder).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text.into_owned())
}

pub fn a_compiled_card_without_what_it_needs_is_refused_with_what_to_name() {
    let folder = tempfile::tempdir().unwrap();
    build(&folder.path().join("card.so"), "card", &root().join("rtl/card")).unwrap();
    fs::copy(root().join("rtl/platform.toml"), folder.path().join("platform.toml")).unwrap();
    fs::copy(root().join("rtl/card.toml"), folder.path().join("card.toml")).unwrap();
    for (options, says) in [
        ("--on rtl:card.so --device card.toml", "rtl:card.so needs a platform for its host and its link"),
        ("--on rtl:card.so --device card.toml --twin host", "host is no simulated platform"),
        ("--on rtl:card.so --device card.toml --twin card-gen5-x16", "set it to 4, and dma.beat_ns to the period"),
        ("--on rtl:none.so --device card.toml --twin platform.toml", "none.so cannot be loaded"),
        ("--on rtl:card.toml --device card.toml --twin platform.toml", "card.toml cannot be loaded"),
        ("--on rtl:/dev/zero --device card.toml --twin platform.toml", "it is no regular file"),
        ("--on rtl: --device card.toml --twin platform.toml", "for example rtl:./card.so"),
        ("--on rtl:card.so --device card.toml --twin platform.toml --with link.mps_bytes=256", "with link.mps_bytes"),
        ("--on rtl:card.so --twin platform.toml --bar 0:0..64", "bar"),
        ("--on platform.toml --device card.toml", "device"),
    ] {
        let (code, text) = bench(folder.path(), options);
        assert!(code == Some(2) && text.contains(says), "{options}: {code:?}\n{text}");
    }
    let (code, text) = bench(folder.path(), "--on rtl:card.so --twin platform.toml");
    assert!(
        code == Some(77) && text.contains("name a device file with the registers of the engine (--device)"),
        "{code:?}\n{text}"
    );
}

pub fn a_record_names_the_library_and_the_host() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("card.so");
    build(&library, "card", &root().join("rtl/card")).unwrap();
    fs::copy(root().join("rtl/platform.toml"), folder.path().join("platform.toml")).unwrap();
    fs::copy(root().join("rtl/card.toml"), folder.path().join("card.toml")).unwrap();
    let options = "--on rtl:card.so --device card.toml --twin platform.toml --iterations 1 --record record.json";
    let design = || {
        let (code, text) = bench(folder.path(), options);
        assert_eq!(code, Some(0), "{text}");
        let file = folder.path().join("record.json");
        let record = lanemark_record::file::read(&file).unwrap();
        fs::remove_file(file).unwrap();
        let [target] = record.targets.try_into().unwrap();
        assert_eq!(target.platform, None, "the card is not the one of the platform");
        target.design.unwrap()
    };
    let first = design();
    let text = fs::read_to_string(folder.path().join("platform.toml")).unwrap();
    let platform = Platform::parse("platform.toml", &text).unwrap();
    assert_eq!((first.library.as_str(), first.beat_bytes), ("card.so", 4));
    assert_eq!(first.clock_ns.to_bits(), platform.dma.as_ref().unwrap().beat_ns.value.as_ns().to_bits());
    assert_eq!(first.platform, platform.to_json());
    assert_eq!(design(), first);
    // The loader reads nothing behind the sections of the library.
    let mut contents = fs::read(&library).unwrap();
    contents.push(0);
    fs::write(&library, contents).unwrap();
    let other = design();
    assert_eq!(other.library_bytes, first.library_bytes + 1);
    assert_ne!(other.library_xxh3, first.library_xxh3);
}

pub fn a_design_that_does_not_return_ends_the_command() {
    let folder = module(
        "logic [31:0] spin;\nassign tx_data = spin;\n\
         always_ff @(posedge clk) if (rx_valid) while (rx_data != spin + 32'd1) spin = rx_data; else spin = 0;",
    );
    fs::copy(root().join("rtl/platform.toml"), folder.path().join("platform.toml")).unwrap();
    let (code, text) = bench(folder.path(), "--on rtl:broken.so --twin platform.toml --device card.toml");
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("broken.so: lanemark_dut_evaluate has not returned for 10 s (bench, after "), "{text}");
}
