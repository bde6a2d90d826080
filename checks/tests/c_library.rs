//! A C program works with the library and the header of this tree.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

#[path = "../../crates/hw/tests/fake_card/mod.rs"]
mod fake_card;

use fake_card::{ADDRESS, FakeCard};
use lanemark_checks::{compile_c_example, library};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn compiled(folder: &Path, name: &str, link: &[&str]) -> PathBuf {
    let program = folder.join(name);
    compile_c_example(&program, link);
    program
}

fn run(program: &Path, arguments: &[&str], card: &FakeCard) -> Output {
    Command::new(program).args(arguments).arg(card.root()).env("LD_LIBRARY_PATH", library()).output().unwrap()
}

#[test]
fn a_c_program_writes_to_a_card_and_reads_it_back() {
    let folder = tempfile::tempdir().unwrap();
    let archive = library().join("liblanemark.a");
    let archive = archive.to_str().unwrap();
    for (name, link) in
        [("shared", vec!["-llanemark"]), ("static", vec![archive, "-lgcc_s", "-lpthread", "-ldl", "-lm"])]
    {
        let card = FakeCard::new();
        let program = compiled(folder.path(), name, &link);
        let done = run(&program, &[ADDRESS, "2:0..4KiB:storage"], &card);
        let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success(), "{name}: {out}{err}");
        let mut lines = out.lines();
        assert_eq!([lines.next(), lines.next()], [Some("hello, card, 3"), Some("0x55667788")]);
        let refused = lines.next().unwrap();
        assert!(refused.starts_with("refused: ") && refused.contains("BAR2+0x82"), "{refused}");
        let bytes = card.bytes("resource2");
        assert_eq!((&bytes[..11], &bytes[64..72]), (&b"hello, card"[..], &[1, 0, 0, 0, 2, 0, 0, 0][..]));
        assert!(bytes[136..].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_c_program_receives_messages_for_refused_accesses() {
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path(), "refused", &["-llanemark"]);
    let card = FakeCard::new();
    let refused = |ranges: &str, status: &str, words: &str| {
        let done = run(&program, &[ADDRESS, ranges], &card);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(1), "{said}");
        assert!(said.contains(status) && said.contains(words), "{said}");
    };
    refused("", ": 3: ", "no range named");
    refused("2:0..4Q", ": 1: ", "2:0..4KiB");
    refused("1:0..64", ": 3: ", "no BAR1");
    refused("2:0..64:registers:write", ": 10: ", "UC only");
    refused("2:0..64", ": 8: ", "outside the named range 2:0..64B");
    card.bind("nvme");
    refused("2:0..4KiB", ": 4: ", "'nvme'");
}
