//! Comparison of `include/lanemark.h` with the exported functions.

use cbindgen::{Builder, Config, EnumConfig, Language, RenameRule};
use std::path::Path;

/// Generates the header from the source.
fn made() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = Config {
        language: Language::C,
        include_guard: Some("LANEMARK_H".to_owned()),
        cpp_compat: true,
        usize_is_size_t: true,
        header: Some(HEAD.to_owned()),
        enumeration: EnumConfig { rename_variants: RenameRule::QualifiedScreamingSnakeCase, ..EnumConfig::default() },
        ..Config::default()
    };
    let builder = Builder::new().with_config(config).with_src(folder.join("src/lib.rs"));
    let mut text = Vec::new();
    builder.generate().unwrap().write(&mut text);
    String::from_utf8(text).unwrap()
}

const HEAD: &str = "\
/*
 * lanemark.h: loads and stores to named ranges of the BARs of a PCI device, and the method for many small copies to a GPU.
 *
 * Every function returns a lanemark_status; lanemark_message() returns the details. A handle may be used by one thread at
 * a time. Runs on x86-64 Linux; on other systems lanemark_attach fails.
 *
 * Generated from crates/capi/src; to renew it: LANEMARK_BLESS=1 cargo test -p lanemark-capi --test header
 */";

#[test]
fn the_header_matches_the_exports() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/lanemark.h");
    let made = made();
    if std::env::var_os("LANEMARK_BLESS").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    let renew = "LANEMARK_BLESS=1 cargo test -p lanemark-capi --test header";
    assert!(there == made, "include/lanemark.h does not match the code; renew it: {renew}");
}

#[test]
fn every_exported_function_is_in_the_header() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let header = made();
    let mut exports = 0;
    for file in ["lib.rs", "message.rs"] {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        for rest in text.split("extern \"C\" fn ").skip(1) {
            let name = rest.split('(').next().unwrap();
            assert!(header.contains(&format!("{name}(")), "{name} is not in the header");
            exports += 1;
        }
    }
    assert_eq!(exports, 13, "the number of exported functions");
}
