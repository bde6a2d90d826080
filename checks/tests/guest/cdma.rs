//! DMA by an AXI CDMA, with its device file and without a driver for it.

use crate::descriptors::{XDMA, shared};
use crate::dma::{self, record, state};
use crate::guest::Guest;
use crate::xdma_twin::{Fault, Twin};

/// The card has the registers in BAR2, which is short.
const PLACE: [(&str, &str); 3] =
    [("bar = 0\nregister_bytes", "bar = 2\nregister_bytes"), ("number = 0", "number = 2"), ("\"4KiB\"", "256")];

/// Writes the device file of the AXI CDMA with changes.
fn changed_file(guest: &mut Guest, changes: &[(&str, &str)]) {
    dma::changed_file(guest, "devices/axi-cdma.toml", &[PLACE.as_slice(), changes].concat());
}

/// Runs a question with the changed file, which must fail: its messages.
fn failed(guest: &mut Guest, twin: &Twin, fault: Option<Fault>, question: &str) -> String {
    twin.set(fault);
    let bench = format!("lanemark bench --on {XDMA} --bind vfio-pci --device mine.toml --sizes 4KiB --budget 0.1");
    let said = guest.run(&format!("{bench} --question {question}"));
    twin.set(None);
    assert_eq!(said.status, 1, "{question}: {said:?}");
    assert_eq!(state(guest, XDMA), (false, String::new()), "{question}: bus mastering is off");
    assert_eq!(twin.seen().violations, [""; 0], "{question}");
    said.stdout + &said.stderr
}

pub fn an_axi_cdma_answers_questions_about_dma() {
    let (mut guest, twin) = shared();
    changed_file(&mut guest, &[]);
    let questions = "dma_read_latency,dma_read_bandwidth,dma_write_bandwidth,interrupt_latency";
    let asked = format!("--on {XDMA} --device mine.toml --question {questions} --sizes 64,64KiB --budget 0.1");
    let record = record(&mut guest, &asked);
    let answers = record["answers"].as_array().unwrap();
    for question in questions.split(',') {
        let of: Vec<_> = answers.iter().filter(|answer| answer["question"] == question).collect();
        assert!(!of.is_empty(), "{question}: {}", record["skipped"]);
        for answer in of {
            let bytes = &answer["bytes"];
            assert!(bytes["claimed_bytes"].as_u64().is_some_and(|bytes| bytes >= 64), "{question}: {answer}");
            assert_eq!(bytes["claimed_bytes"], bytes["confirmed_bytes"], "{question}");
        }
    }
    let seen = twin.seen();
    assert_eq!(seen.violations, [""; 0]);
    assert!(seen.interrupts[0] > 0 && seen.interrupts[1..] == [0; 3], "{:?}", seen.interrupts);
}

pub fn error_bits_of_an_axi_cdma_end_a_run_with_their_direction_and_the_keys_to_check() {
    let (mut guest, twin) = shared();
    for (changes, question, words) in [
        // DMADecErr: no slave has these addresses.
        (("host_start = 0x20000000", "host_start = 0"), "dma_read_latency", "to the card: done_register is 0x4042"),
        (
            ("memory_start = 0xc0000000", "memory_start = 0xd0000000"),
            "dma_write_bandwidth",
            "to the card: done_register is 0x4042",
        ),
        // The bridge has 28 bits of host addresses. An error does not end with the interrupt that was asked for.
        (("host_start = 0x20000000", "host_start = 0x0"), "interrupt_latency", "done_register is 0x4042"),
    ] {
        changed_file(&mut guest, &[changes]);
        let said = failed(&mut guest, &twin, None, question);
        assert!(
            said.contains("the engine reports an error of a transfer") && said.contains(words),
            "{changes:?}: {said}"
        );
        assert!(said.contains("check the addresses of the device file (host_start"), "{said}");
    }
    changed_file(&mut guest, &[]);
    record(&mut guest, &format!("--on {XDMA} --device mine.toml --question dma_read_latency --sizes 64 --budget 0.1"));
}

pub fn an_axi_cdma_that_hangs_loses_bytes_or_sends_no_interrupt_is_named() {
    let (mut guest, twin) = shared();
    changed_file(&mut guest, &[("longest_ms = 1000", "longest_ms = 300")]);
    for (fault, question, words) in [
        (Fault::Hangs, "dma_read_latency", "the register that shows the end of a transfer (engine.longest_ms"),
        (Fault::SendsNoInterrupt, "interrupt_latency", "the interrupt at the end of a transfer (engine.longest_ms"),
        (Fault::LosesBytes, "dma_write_bandwidth", "bytes arrived; the figure is invalid"),
    ] {
        let said = failed(&mut guest, &twin, Some(fault), question);
        assert!(said.contains(words), "{fault:?}: {said}");
    }
}
