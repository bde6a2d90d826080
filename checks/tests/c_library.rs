//! A C program works with the library and the header of this tree.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

#[path = "../../crates/hw/tests/fake_card/mod.rs"]
mod fake_card;

use fake_card::{ADDRESS, FakeCard};
use lanemark_checks::{compile_c_example, library, root};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn compiled(folder: &Path, name: &str, link: &[&str]) -> PathBuf {
    let program = folder.join(name);
    compile_c_example(&program, link);
    program
}

/// Output of a command that succeeds, without the space around it.
#[track_caller]
fn said(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

/// Installs the library below `prefix`, as `make install-c` does.
fn installed(prefix: &Path) -> PathBuf {
    let mut install = Command::new(root().join("crates/capi/install"));
    said(install.arg(library()).env("PREFIX", prefix).env_remove("LIBDIR").env_remove("DESTDIR"));
    prefix.join("lib")
}

fn pkg_config(libdir: &Path, arguments: &[&str]) -> String {
    said(Command::new("pkg-config").args(arguments).arg("lanemark").env("PKG_CONFIG_PATH", libdir.join("pkgconfig")))
}

fn run(program: &Path, arguments: &[&str], card: &FakeCard, libdir: &Path) -> Output {
    Command::new(program).args(arguments).arg(card.root()).env("LD_LIBRARY_PATH", libdir).output().unwrap()
}

#[test]
fn the_shared_library_has_a_soname_and_names_the_libraries_that_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    let libdir = installed(folder.path());
    let dynamic = said(Command::new("readelf").arg("-d").arg(libdir.join("liblanemark.so")));
    let soname = dynamic.lines().find(|line| line.contains("(SONAME)")).unwrap_or_else(|| panic!("{dynamic}"));
    let name = soname.split(['[', ']']).nth(1).unwrap();
    assert_eq!(std::fs::read_link(libdir.join("liblanemark.so")).unwrap(), Path::new(name));
    assert!(libdir.join(name).is_file(), "{name}");
    // A missing dependency would be found here, not at the first program that does not link it by chance.
    let empty = folder.path().join("empty.c");
    std::fs::write(&empty, "int main(void) { return 0; }\n").unwrap();
    let mut cc = Command::new("cc");
    cc.arg(&empty).args(["-Wl,--no-as-needed", "-Wl,--no-undefined", "-llanemark", "-L"]).arg(&libdir);
    said(cc.arg("-o").arg(folder.path().join("empty")));
    let needed = said(Command::new("readelf").arg("-d").arg(folder.path().join("empty")));
    assert!(needed.contains(&format!("[{name}]")), "{needed}");
}

#[test]
fn a_relative_prefix_and_a_folder_without_a_library_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let install = |prefix: &str, built: &Path| {
        let mut command = Command::new(root().join("crates/capi/install"));
        let done = command.arg(built).env("PREFIX", prefix).current_dir(folder.path()).output().unwrap();
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let (code, err) = install("here", library());
    assert!(code == Some(2) && err.contains("here is relative"), "{err}");
    let (code, err) = install("/nowhere", folder.path());
    assert!(code == Some(2) && err.contains("has no liblanemark.so: cargo build"), "{err}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is written");
}

#[test]
fn a_c_program_writes_to_a_card_and_reads_it_back() {
    let folder = tempfile::tempdir().unwrap();
    let libdir = installed(&folder.path().join("prefix"));
    let [shared, r#static] = [&["--cflags", "--libs"][..], &["--cflags", "--libs", "--static"]]
        .map(|arguments| pkg_config(&libdir, arguments));
    let shared: Vec<&str> = shared.split_whitespace().collect();
    // A linker prefers a shared library to a static one in the same folder.
    let archive = libdir.join("liblanemark.a");
    let archive = archive.to_str().unwrap();
    let r#static: Vec<&str> =
        r#static.split_whitespace().map(|word| if word == "-llanemark" { archive } else { word }).collect();
    assert!(r#static.contains(&"-lm") && !shared.contains(&"-lm"), "{static:?}");
    for (name, link) in [("shared", shared), ("static", r#static)] {
        let card = FakeCard::new();
        let program = compiled(folder.path(), name, &link);
        let done = run(&program, &[ADDRESS, "2:0..4KiB:storage"], &card, &libdir);
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
    let libdir = installed(&folder.path().join("prefix"));
    let program = compiled(folder.path(), "refused", &["-llanemark"]);
    let card = FakeCard::new();
    let refused = |ranges: &str, status: &str, words: &str| {
        let done = run(&program, &[ADDRESS, ranges], &card, &libdir);
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
