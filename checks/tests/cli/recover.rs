//! What `recover` promises: steps for a machine, none of them run, and steps that are run on a simulated card.

use crate::folder::Folder;

/// A machine as its dump has it: a root port and a card.
fn slot() -> Folder {
    let folder = Folder::new();
    folder.good(&["lspci", "--output", "slot.txt"]);
    folder
}

/// The names of the steps, in their order.
fn steps(out: &str) -> Vec<&str> {
    let name = |line| {
        let (number, step) = str::split_once(line, ". ")?;
        number.parse::<u32>().ok()?;
        Some(step.split_once(':')?.0)
    };
    out.lines().filter_map(name).collect()
}

#[test]
fn steps_for_a_machine_are_printed_in_order_and_change_nothing() {
    let folder = slot();
    let before = folder.content();
    let program = "quartus_pgm -m jtag -o p;card.sof";
    let out =
        folder.good(&["recover", "01:00.0", "--from", "slot.txt", "--dry-run", "--program", program, "--times", "2"]);
    assert_eq!(steps(&out), ["mask", "remove", "program", "program", "rescan", "clear", "check", "restore"]);
    let commands = [
        "setpci -s 0000:00:01.0 ECAP_AER+08.l=ffffffff ECAP_AER+14.l=ffffffff",
        "echo 1 > /sys/bus/pci/devices/0000:01:00.0/remove",
        program,
        program,
        "echo 1 > /sys/bus/pci/devices/0000:00:01.0/pci_bus/0000:01/rescan",
        "setpci -s 0000:00:01.0 ECAP_AER+08.l=00400000 ECAP_AER+14.l=0000e000",
    ];
    let mut rest = out.as_str();
    for command in commands {
        let (_, after) = rest.split_once(&format!("     {command}\n")).unwrap_or_else(|| panic!("{command}\n{rest}"));
        rest = after;
    }
    assert!(out.contains("nothing was changed, and no command was run"), "{out}");
    assert!(folder.content() == before);
}

#[test]
fn a_document_has_what_the_text_says() {
    let folder = slot();
    let read = |arguments: &[&str]| -> serde_json::Value { serde_json::from_str(&folder.good(arguments)).unwrap() };
    let kinds = |steps: &serde_json::Value, kind: &str| -> Vec<String> {
        let kind_of = |step: &serde_json::Value| step.pointer(kind).and_then(|kind| kind.as_str()).unwrap().to_owned();
        steps.as_array().unwrap().iter().map(kind_of).collect()
    };
    let all = ["mask", "remove", "program", "rescan", "clear", "check", "restore"];
    let planned = read(&["recover", "01:00.0", "--from", "slot.txt", "--dry-run", "--json"]);
    assert_eq!(kinds(&planned["steps"], "/kind"), all);
    assert_eq!(planned["steps"][1]["commands"][0], "echo 1 > /sys/bus/pci/devices/0000:01:00.0/remove");
    let done = read(&["recover", "card", "--on", "card-gen5-x16", "--fault", "no_completion@card", "--json"]);
    assert_eq!(kinds(&done["done"], "/step/kind"), all);
    assert!(done["at_first"]["0000:01:00.0"].is_string() && done["differences"] == serde_json::json!([]), "{done}");
}

#[test]
fn a_real_machine_is_not_changed_and_the_message_says_what_to_do() {
    let outcome = slot().run(&["recover", "01:00.0", "--from", "slot.txt"]);
    assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""));
    assert!(
        outcome.err.contains("does not run them on a real machine") && outcome.err.contains("--dry-run"),
        "{}",
        outcome.err
    );
}

#[test]
fn what_is_no_card_is_refused() {
    let folder = slot();
    let says = |arguments: &[&str]| {
        let outcome = folder.run(&[&["recover", "--dry-run"], arguments].concat());
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""), "{arguments:?}");
        outcome.err
    };
    assert!(says(&["09:00.0", "--from", "slot.txt"]).contains("no function 0000:09:00.0"));
    assert!(says(&["00:01.0", "--from", "slot.txt"]).contains("is a bridge, not a card; below it: 0000:01:00.0"));
    assert!(says(&["nonsense", "--from", "slot.txt"]).contains("is not a PCI address"));
    assert!(says(&["nonsense", "--on", "card-gen5-x16"]).contains("is not a port of the platform (root/card, card)"));
    assert!(says(&["root/card", "--on", "card-gen5-x16"]).contains("is a bridge"));
    assert!(says(&["card", "--on", "card-gen5-x16", "--times", "0"]).contains("from 1 to 10"));
    assert!(says(&["01:00.0", "--from", "slot.txt", "--fault", "no_completion@card"]).contains("cannot be used with"));
    assert!(says(&["01:00.0", "--fault", "no_completion@card"]).contains("--on"));
    assert!(says(&["card", "--on", "card-gen5-x16", "--without", "mask"]).contains("cannot be used with"));
}

#[test]
fn a_simulated_card_that_is_broken_comes_back_and_nothing_is_reported_after_the_masks_are_set() {
    let folder = Folder::new();
    for fault in ["no_completion@card", "surprise_removal@card", "link_down@card", "credit_starvation@card"] {
        let out = folder.good(&["recover", "card", "--on", "card-gen5-x16", "--fault", fault]);
        let (first, rest) = out.split_once("1. mask").unwrap();
        assert!(first.contains("all ones and no data") && first.contains("log: 00:01.0 (root/card)"), "{fault}: {out}");
        assert!(!rest.contains("log:"), "{fault}: {out}");
        assert!(rest.contains("a load from the card: 03020100 from"), "{fault}: {out}");
        assert!(rest.ends_with("links, BARs and masks are restored, and no error bit is set\n"), "{fault}: {out}");
    }
}

#[test]
fn a_step_that_is_left_out_is_missed_for_its_reason() {
    let folder = Folder::new();
    let without = |step: &str, fault: &str| {
        folder.run(&["recover", "card", "--on", "card-gen5-x16", "--fault", fault, "--without", step])
    };
    let unmasked = without("mask", "no_completion@card");
    assert_eq!(unmasked.code, Some(0), "the card is back: {}", unmasked.out);
    let (_, programmed) = unmasked.out.split_once("3. program").unwrap();
    assert!(programmed.contains("[5] SDES (Surprise Down Error)\n"), "{}", unmasked.out);
    for (step, fault, why) in [
        ("rescan", "no_completion@card", "not restored: 0000:01:00.0 is missing"),
        ("program", "surprise_removal@card", "not restored: 0000:01:00.0 is missing"),
        ("remove", "no_completion@card", "not restored: 0000:01:00.0: no BAR instead of BAR0 at"),
        ("clear", "no_completion@card", "not restored: 0000:00:01.0: SDES, CmpltTO is set"),
        ("restore", "no_completion@card", "not restored: 0000:00:01.0: UEMsk "),
    ] {
        let outcome = without(step, fault);
        assert_eq!(outcome.code, Some(1), "{step}: {}", outcome.out);
        assert!(outcome.out.contains(why), "{step}: {}", outcome.out);
        assert!(outcome.out.contains(&format!("skipped because of --without {step}")), "{step}: {}", outcome.out);
    }
    // It is found, and set up, and still answers no load.
    let dead = without("program", "no_completion@card");
    assert_eq!(dead.code, Some(1));
    let (_, end) = dead.out.split_once("final state").unwrap();
    assert!(end.contains("all ones and no data") && !end.contains("is missing"), "{}", dead.out);
}

#[test]
fn a_card_below_a_switch_is_found_again_below_its_own_port() {
    let folder = Folder::new();
    let out = folder.good(&[
        "recover",
        "fpga3",
        "--on",
        "rosta-virtex7",
        "--fault",
        "surprise_removal@fpga3",
        "--times",
        "2",
    ]);
    assert!(out.contains("/0000:04:03.0/pci_bus/0000:08/rescan"), "{out}");
    // Three steps write to each of the five ports on the way, and the card answers nothing.
    assert_eq!(out.matches("setpci -s 0000:").count(), 3 * 5, "{out}");
    assert!(out.ends_with("and no error bit is set\n"), "{out}");
}
