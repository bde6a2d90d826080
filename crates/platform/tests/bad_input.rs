//! Reports of problems in platform files: file, line, key, and rule.
//!
//! `card.toml` in this folder is valid; each test changes one thing in it. Values at the limit of a rule are accepted
//! by the tests that say so, and in `every_key.rs`.

mod sound;

use lanemark_platform::{Origin, Platform};
use sound::{CARD, accepted, change, read, said};

#[track_caller]
fn refused(text: &str, messages: &[&str]) {
    refused_bytes(text.as_bytes(), messages);
}

#[track_caller]
fn refused_bytes(bytes: &[u8], messages: &[&str]) {
    let error = Platform::from_bytes("card.toml", bytes).expect_err("must be refused").to_string();
    assert_eq!(error.lines().collect::<Vec<_>>(), messages);
}

const LANES: &str = "width_lanes = { value = 8, source = \"lspci\" }";

/// The valid file with one piece replaced, which must occur exactly once.
fn card(from: &str, to: &str) -> String {
    change(CARD, from, to)
}

#[test]
fn the_card_itself_is_sound() {
    let card = accepted(CARD);
    assert_eq!((card.name.as_str(), card.bars.len(), card.regions.len()), ("card", 2, 2));
    assert_eq!(card.driver, None);
}

#[test]
fn an_unknown_top_level_key_is_rejected() {
    refused(
        &card("name = \"card\"", "name = \"card\"\nauthor = \"me\""),
        &[
            "card.toml:4: author: unknown key; known here: schema, name, summary, extends, host, card, core, driver, runtime, root_complex, memory, \
           iommu, coherence, link, endpoint, dma, dma_read, dma_write, fifos, device_memory, kernel, msi_x, registers, switch, slot, retimer, port, fault, bar, region",
        ],
    );
}

#[test]
fn an_unknown_section_is_rejected() {
    refused(
        &card("[endpoint]", "[bridge]\nports = 4\n[endpoint]"),
        &[
            "card.toml:36: bridge: unknown key; known here: schema, name, summary, extends, host, card, core, driver, runtime, root_complex, memory, \
           iommu, coherence, link, endpoint, dma, dma_read, dma_write, fifos, device_memory, kernel, msi_x, registers, switch, slot, retimer, port, fault, bar, region",
        ],
    );
}

#[test]
fn an_unknown_key_in_a_section_is_rejected() {
    refused(
        &card("[endpoint]", "[endpoint]\nvendor = { value = \"x\", source = \"y\" }"),
        &[
            "card.toml:37: endpoint.vendor: unknown key; known here: name, ingress_ns, egress_ns, mps_supported_bytes, completion_timeout_ns",
        ],
    );
}

#[test]
fn an_unknown_key_beside_a_value_is_rejected() {
    refused(
        &card(LANES, "width_lanes = { value = 8, source = \"lspci\", unit = \"lanes\" }"),
        &[
            "card.toml:29: link.width_lanes: unknown key unit beside the value; use value, source, assumed, fitted_to, unknown",
        ],
    );
}

#[test]
fn an_odd_key_is_quoted_on_one_line_and_truncated() {
    refused(
        &card("[endpoint]", &format!("[endpoint]\n\"a\\nb\" = 1\n\"\" = 2\n{} = 3", "x".repeat(99))),
        &[
            "card.toml:37: endpoint.\"a\\nb\": unknown key; known here: name, ingress_ns, egress_ns, mps_supported_bytes, completion_timeout_ns",
            "card.toml:38: endpoint.\"\": unknown key; known here: name, ingress_ns, egress_ns, mps_supported_bytes, completion_timeout_ns",
            &format!(
                "card.toml:39: endpoint.{}...: unknown key; known here: name, ingress_ns, egress_ns, mps_supported_bytes, completion_timeout_ns",
                "x".repeat(60)
            ),
        ],
    );
}

#[test]
fn a_key_without_its_unit_is_rejected_with_the_right_name() {
    refused(
        &card("read_ns = { value = 50,", "read = { value = 50,"),
        &[
            "card.toml:63: region.queue.read_ns: is missing: From a read request at the region to its first beat; \
             must be nanoseconds from 0 to 1000000000",
            "card.toml:71: region.queue.read: unknown key; its name must end in the unit: read_ns",
        ],
    );
}

#[test]
fn a_key_with_another_unit_is_rejected_with_the_right_name() {
    refused(
        &card("read_ns = { value = 50,", "read_us = { value = 50,"),
        &[
            "card.toml:63: region.queue.read_ns: is missing: From a read request at the region to its first beat; \
             must be nanoseconds from 0 to 1000000000",
            "card.toml:71: region.queue.read_us: unknown key; its unit is different: read_ns",
        ],
    );
}

#[test]
fn a_value_without_origin_is_rejected() {
    refused(
        &card(LANES, "width_lanes = 8"),
        &["card.toml:29: link.width_lanes: is a bare 8; add its origin: \
           width_lanes = { value = 8, source = \"...\" }, or give the section one source or assumed for its plain values"],
    );
    refused(
        &card("vendor = { value = \"intel\", source = \"label\" }", "vendor = 'intel'"),
        &["card.toml:8: core.vendor: is a bare \"intel\"; add its origin: \
           vendor = { value = \"intel\", source = \"...\" }, or give the section one source or assumed for its plain values"],
    );
}

#[test]
fn a_wrong_value_without_origin_is_rejected() {
    for (bare, shown) in
        [("3", "3"), ("[8]", "a TOML array"), ("2024-01-01", "a TOML datetime"), ("0x3", "0x3"), ("'''\na'''", "\"a\"")]
    {
        refused(
            &card(LANES, &format!("width_lanes = {bare}")),
            &[&format!(
                "card.toml:29: link.width_lanes: is a bare {shown}; write width_lanes = {{ value = ..., source = \
                 \"...\" }}, where the value must be one of 1, 2, 4, 8, 12, 16, 32"
            )],
        );
    }
}

#[test]
fn a_missing_value_is_rejected() {
    refused(
        &card(LANES, "width_lanes = { source = \"lspci\" }"),
        &["card.toml:29: link.width_lanes: has no value; must be one of 1, 2, 4, 8, 12, 16, 32"],
    );
}

const ORIGIN: &str = "must state its origin once: source = \"...\", assumed = \"why\" or fitted_to = [\"ID\"]";

#[test]
fn no_origin_and_two_origins_are_rejected() {
    for given in [
        "{ value = 8 }",
        "{ value = 8, source = \"lspci\", assumed = \"a guess\" }",
        "{ value = 8, source = \"lspci\", fitted_to = [\"X1\"] }",
    ] {
        refused(
            &card(LANES, &format!("width_lanes = {given}")),
            &[&format!("card.toml:29: link.width_lanes: {ORIGIN}")],
        );
    }
}

#[test]
fn an_empty_table_lacks_value_and_origin() {
    refused(
        &card(LANES, "width_lanes = {}"),
        &[
            "card.toml:29: link.width_lanes: has no value; must be one of 1, 2, 4, 8, 12, 16, 32",
            &format!("card.toml:29: link.width_lanes: {ORIGIN}"),
        ],
    );
}

#[test]
fn a_blank_origin_is_rejected() {
    for (given, shown) in [
        ("source = \"\"", "source is \"\""),
        ("assumed = \" \\t\"", "assumed is \" \\t\""),
        ("source = 3", "source is 3"),
    ] {
        refused(
            &card(LANES, &format!("width_lanes = {{ value = 8, {given} }}")),
            &[&format!("card.toml:29: link.width_lanes: {shown}; must be text that states a source or a reason")],
        );
    }
}

#[test]
fn fitted_to_without_figures_is_rejected() {
    for given in ["[]", "[5]", "[\"X1\", 5]", "[\"\"]", "\"X1\"", "{}"] {
        refused(
            &card("fitted_to = [\"X1\", \"X2\"]", &format!("fitted_to = {given}")),
            &["card.toml:24: root_complex.core_round_trip_ns: fitted_to must be a list of figure IDs: [\"T5\"]"],
        );
    }
    let one = accepted(&card("[\"X1\", \"X2\"]", "[\"X1\"]"));
    assert_eq!(one.root_complex.core_round_trip_ns.origin, Origin::FittedTo(vec!["X1".to_owned()]));
}

#[test]
fn a_value_and_its_origin_can_both_be_wrong() {
    refused(
        &card(LANES, "width_lanes = { value = 3, source = \"\" }"),
        &[
            "card.toml:29: link.width_lanes: source is \"\"; must be text that states a source or a reason",
            "card.toml:29: link.width_lanes: is 3; must be one of 1, 2, 4, 8, 12, 16, 32",
        ],
    );
}

#[test]
fn an_invalid_latency_is_rejected() {
    for bad in ["-1", "-0.001", "nan", "+nan", "inf", "-inf", "1e999", "1000000001", "\"100\"", "true"] {
        refused(
            &card("latency_ns = { value = 100", &format!("latency_ns = {{ value = {bad}")),
            &[&format!("card.toml:31: link.latency_ns: is {bad}; must be nanoseconds from 0 to 1000000000")],
        );
    }
    for good in ["0", "-0.0", "0.25", "1e9", "1_000"] {
        accepted(&card("latency_ns = { value = 100", &format!("latency_ns = {{ value = {good}")));
    }
}

#[test]
fn a_width_of_3_lanes_is_rejected_and_of_4_accepted() {
    refused(
        &card(LANES, "width_lanes = { value = 3, source = \"lspci\" }"),
        &["card.toml:29: link.width_lanes: is 3; must be one of 1, 2, 4, 8, 12, 16, 32"],
    );
    let four = accepted(&card(LANES, "width_lanes = { value = 4, source = \"lspci\" }"));
    assert_eq!(four.link.width_lanes.value, 4);
}

#[test]
fn generation_7_is_rejected_and_6_accepted() {
    refused(
        &card("generation = { value = 3", "generation = { value = 7"),
        &["card.toml:28: link.generation: is 7; must be one of 1, 2, 3, 4, 5, 6"],
    );
    assert_eq!(accepted(&card("generation = { value = 3", "generation = { value = 6")).link.generation.value, 6);
}

#[test]
fn a_count_that_is_fractional_or_too_large_is_rejected() {
    for bad in ["10.0", "-1", "0", "129", "18446744073709551617", "\"10\""] {
        refused(
            &card("wc_buffers = { value = 10", &format!("wc_buffers = {{ value = {bad}")),
            &[&format!("card.toml:13: core.wc_buffers: is {bad}; must be a whole number from 1 to 128")],
        );
    }
    let digits = "9".repeat(99);
    refused(
        &card("wc_buffers = { value = 10", &format!("wc_buffers = {{ value = {digits}")),
        &[&format!("card.toml:13: core.wc_buffers: is {}...; must be a whole number from 1 to 128", &digits[..60])],
    );
}

#[test]
fn a_size_with_an_unknown_unit_or_too_large_is_rejected() {
    let wanted = "must be bytes (4096) or a size with its unit (\"4KiB\") from 1B to 8388608TiB";
    for bad in ["\"64Q\"", "\"-4KiB\"", "\"\"", "\"KiB\"", "0", "9223372036854775809", "\"16777216TiB\"", "4096.0"] {
        refused(
            &card(
                "size_bytes = { value = \"4KiB\", source = \"manual\" }\nkind = { value = \"fifo\"",
                &format!("size_bytes = {{ value = {bad}, source = \"manual\" }}\nkind = {{ value = \"fifo\""),
            ),
            &[&format!("card.toml:67: region.queue.size_bytes: is {bad}; {wanted}")],
        );
    }
}

const BAR0_SIZE: &str = "size_bytes = { value = \"64KiB\"";
const BAR0_ADDRESS: &str = "address_bytes = { value = 0xF0000000";

#[test]
fn a_bar_of_0_bytes_is_rejected_and_of_the_minimum_accepted() {
    refused(
        &card(BAR0_SIZE, "size_bytes = { value = 0"),
        &["card.toml:44: bar.0.size_bytes: is 0; must be bytes (4096) or a size with its unit (\"4KiB\") from 16B to \
           8388608TiB"],
    );
    let least = card("size_bytes = { value = \"1MiB\"", "size_bytes = { value = 16");
    assert_eq!(accepted(&least).bars[1].size_bytes.value, 16);
}

#[test]
fn a_bar_size_must_be_a_power_of_two() {
    refused(
        &card(BAR0_SIZE, "size_bytes = { value = \"48KiB\""),
        &["card.toml:44: bar.0.size_bytes: is 48KiB; a BAR's size is a power of two, such as 64KiB"],
    );
}

#[test]
fn a_misaligned_bar_is_rejected() {
    refused(
        &card(BAR0_ADDRESS, "address_bytes = { value = 0xF0008000"),
        &["card.toml:43: bar.0.address_bytes: is 0xf0008000; it must be a multiple of the BAR's size 64KiB"],
    );
    accepted(&card(BAR0_ADDRESS, "address_bytes = { value = 0xF0010000"));
}

#[test]
fn a_bar_must_not_overlap_interrupt_messages() {
    for inside in ["0xFEE00000", "0xFEEF0000"] {
        refused(
            &card(BAR0_ADDRESS, &format!("address_bytes = {{ value = {inside}")),
            &[&format!(
                "card.toml:43: bar.0.address_bytes: is {}; from 0xfee00000 to 0xfef00000 it would overlap the addresses of interrupt messages",
                inside.to_lowercase()
            )],
        );
    }
    accepted(&card(BAR0_ADDRESS, "address_bytes = { value = 0xFEDF0000"));
    accepted(&card(BAR0_ADDRESS, "address_bytes = { value = 0xFEF00000"));
}

#[test]
fn overlapping_bars_are_rejected_and_adjacent_ones_accepted() {
    refused(
        &card(BAR0_ADDRESS, "address_bytes = { value = 0x8000F0000"),
        &["card.toml:49: bar.2.address_bytes: overlaps BAR0, which extends from 0x8000f0000 to 0x800100000"],
    );
    accepted(&card(BAR0_ADDRESS, "address_bytes = { value = 0x7FFFF0000"));
    accepted(&card(BAR0_ADDRESS, "address_bytes = { value = 0x800100000"));
}

#[test]
fn two_bars_with_one_index_are_rejected() {
    refused(
        &card("index = { value = 2", "index = { value = 0"),
        &["card.toml:48: bar.0.index: occurs twice; give each BAR its own index"],
    );
    accepted(&card("index = { value = 2", "index = { value = 1"));
}

const QUEUE_OFFSET: &str = "offset_bytes = { value = \"8KiB\"";

#[test]
fn a_region_must_end_within_its_bar() {
    refused(
        &card(QUEUE_OFFSET, "offset_bytes = { value = 0xF004"),
        &["card.toml:67: region.queue.size_bytes: is 4KiB; from offset 0xf004 it extends beyond BAR0, which is 64KiB"],
    );
    refused(
        &card(QUEUE_OFFSET, "offset_bytes = { value = \"8388608TiB\""),
        &["card.toml:67: region.queue.size_bytes: is 4KiB; from offset 0x8000000000000000 it extends beyond BAR0, \
           which is 64KiB"],
    );
    accepted(&card(QUEUE_OFFSET, "offset_bytes = { value = 0xF000"));
}

#[test]
fn a_region_must_be_dw_aligned() {
    let message = "extends from 0x1001 to 0x2001; both must be multiples of 4 B, a DW";
    refused(
        &card(QUEUE_OFFSET, "offset_bytes = { value = 0x1001"),
        &[&format!("card.toml:66: region.queue.offset_bytes: {message}")],
    );
    accepted(&card(QUEUE_OFFSET, "offset_bytes = { value = 0x1004"));
}

#[test]
fn overlapping_regions_are_rejected_and_adjacent_ones_accepted() {
    refused(
        &card(QUEUE_OFFSET, "offset_bytes = { value = 0xFFC"),
        &["card.toml:66: region.queue.offset_bytes: overlaps region registers, which extends from 0x0 to 0x1000"],
    );
    accepted(&card(QUEUE_OFFSET, "offset_bytes = { value = 0x1000"));
}

#[test]
fn a_region_in_a_missing_bar_is_rejected() {
    refused(
        &change(
            CARD,
            "bar = { value = 0, source = \"manual\" }\noffset_bytes = { value = \"8KiB\"",
            "bar = { value = 1, source = \"manual\" }\noffset_bytes = { value = \"8KiB\"",
        ),
        &["card.toml:65: region.queue.bar: is 1; there is no such BAR in this file"],
    );
}

#[test]
fn names_of_real_targets_are_rejected() {
    for name in ["host", "opencl:0", "sycl:12"] {
        let message =
            format!("card.toml:3: name: is {name:?}, the name of a real target; give the platform another name");
        refused(&card("name = \"card\"", &format!("name = \"{name}\"")), &[&message]);
    }
    accepted(&card("name = \"card\"", "name = \"host-card\""));
}

#[test]
fn two_regions_with_one_name_are_rejected() {
    refused(
        &card("name = \"queue\"", "name = \"registers\""),
        &["card.toml:64: region.registers.name: is used in line 54 already; give each its own name"],
    );
}

#[test]
fn a_region_name_must_be_valid_in_a_path() {
    for (name, shown) in [("a.b", "\"a.b\""), ("a b", "\"a b\""), ("\u{e9}", "\"\u{e9}\"")] {
        refused(
            &card("name = \"queue\"", &format!("name = \"{name}\"")),
            &[&format!("card.toml:64: region.{shown}.name: is {shown}; must be letters, digits, '_' and '-'")],
        );
    }
    accepted(&card("name = \"queue\"", "name = \"a-b_3\""));
}

#[test]
fn an_invalid_text_is_rejected() {
    for (bad, shown) in
        [("\"\"", "\"\""), ("\" \"", "\" \""), ("3", "3"), ("\"a\\nb\"", "\"a\\nb\""), ("[]", "a TOML array")]
    {
        refused(
            &card("name = \"card\"", &format!("name = {bad}")),
            &[&format!("card.toml:3: name: is {shown}; must be one line of text in quotes, not empty")],
        );
    }
    refused(
        &card("name = \"Some card\"\n", ""),
        &["card.toml:36: endpoint.name: is missing: one line of text in quotes"],
    );
}

#[test]
fn credits_must_cover_one_maximum_payload() {
    let credits =
        |number| card("posted_data_credits = { value = 128", &format!("posted_data_credits = {{ value = {number}"));
    refused(
        &credits(15),
        &["card.toml:33: link.posted_data_credits: is 15; one payload of 256 B (mps_bytes) takes 16"],
    );
    accepted(&credits(16));
}

#[test]
fn a_missing_required_section_is_rejected() {
    let (before, rest) = CARD.split_once("[link]").unwrap();
    let (_, after) = rest.split_once("[endpoint]").unwrap();
    refused(&format!("{before}[endpoint]{after}"), &["card.toml:1: link: the section [link] is missing"]);
}

#[test]
fn a_file_without_bars_or_regions_is_rejected() {
    let (before, _) = CARD.split_once("[[bar]]").unwrap();
    refused(
        before,
        &[
            "card.toml:1: bar: at least one section [[bar]] is needed",
            "card.toml:1: region: at least one section [[region]] is needed",
        ],
    );
}

#[test]
fn a_duplicate_section_is_rejected() {
    refused(&format!("{CARD}[link]\n"), &["card.toml:73: not TOML: duplicate key: link may occur here only once"]);
}

#[test]
fn a_duplicate_key_is_rejected() {
    refused(
        &card(LANES, &format!("{LANES}\n{LANES}")),
        &["card.toml:30: not TOML: duplicate key: width_lanes may occur here only once"],
    );
}

#[test]
fn a_bar_as_a_single_section_is_rejected() {
    let (before, rest) = CARD.split_once("[[bar]]").unwrap();
    let (bar, _) = rest.split_once("[[bar]]").unwrap();
    let (_, regions) = rest.split_once("[[region]]").unwrap();
    refused(
        &format!("{before}[bar]{bar}[[region]]{regions}"),
        &["card.toml:41: bar: is a TOML table; write [[bar]], once for each"],
    );
}

#[test]
fn a_single_section_written_as_repeated_is_rejected() {
    refused(
        &card("[endpoint]", "[[endpoint]]"),
        &["card.toml:36: endpoint: is a TOML array; must be one section [endpoint]"],
    );
    let (before, _) = CARD.split_once("[endpoint]").unwrap();
    let rest = &CARD[CARD.find("[[bar]]").unwrap()..];
    refused(&format!("endpoint = 3\n{before}{rest}"), &["card.toml:1: endpoint: is 3; must be one section [endpoint]"]);
}

#[test]
fn bars_and_regions_that_are_not_sections_are_rejected() {
    let (before, _) = CARD.split_once("[[bar]]").unwrap();
    refused(
        &format!("bar = [1, {{}}]\nregion = []\n{before}").replace("{}", "[2]"),
        &[
            "card.toml:1: bar: is 1; must be a section [[bar]]",
            "card.toml:1: bar: is a TOML array; must be a section [[bar]]",
            "card.toml:2: region: is an empty list; write [[region]], once for each",
        ],
    );
    refused(
        &format!("bar = 3\nregion = \"x\"\n{before}"),
        &[
            "card.toml:1: bar: is 3; write [[bar]], once for each",
            "card.toml:2: region: is \"x\"; write [[region]], once for each",
        ],
    );
}

#[test]
fn messages_name_a_bar_by_its_index() {
    let bad = "prefetchable = 1\n\n[[bar]]";
    let text = card("prefetchable = { value = false, source = \"lspci\" }\n\n[[bar]]", bad);
    let message = |label| {
        format!(
            "card.toml:45: bar.{label}.prefetchable: is a bare 1; write prefetchable = {{ value = ..., source = \"...\" \
             }}, where the value must be true or false"
        )
    };
    refused(&text, &[&message("0")]);
    refused(&change(&text, "index = { value = 0", "index = { value = 0x0"), &[&message("0")]);
    let bare = "card.toml:42: bar.0.index: is a bare 0; add its origin: index = { value = 0, source = \"...\" }, or give the section one source or assumed for its plain values";
    refused(&change(&text, "index = { value = 0, source = \"lspci\" }", "index = 0"), &[bare, &message("0")]);
    refused(
        &change(&text, "index = { value = 0, source = \"lspci\" }\n", "\n"),
        &["card.toml:41: bar.?.index: is missing: Index of the BAR; must be a whole number from 0 to 5", &message("?")],
    );
}

#[test]
fn invalid_toml_is_rejected() {
    refused(
        &card(LANES, "width_lanes = { value = x8, source = \"lspci\" }"),
        &["card.toml:29: not TOML: string values must be quoted, expected literal string"],
    );
    refused("{\"schema\": 1}\n", &["card.toml:1: not TOML: invalid key-value pair, expected key"]);
}

#[test]
fn two_invalid_lines_are_both_reported() {
    refused(
        &change(&card(LANES, "width_lanes = "), "name = \"Some card\"", "name = \"Some card"),
        &[
            "card.toml:29: not TOML: string values must be quoted, expected literal string",
            "card.toml:37: not TOML: invalid basic string, expected `\"`",
        ],
    );
}

#[test]
fn invalid_utf_8_is_rejected() {
    let mut bytes = card("A core, a link", "A core, a l?nk").into_bytes();
    let at = bytes.iter().position(|byte| *byte == b'?').unwrap();
    bytes[at] = 0xff;
    refused_bytes(
        &bytes,
        &[&format!("card.toml:4: byte {at} is not UTF-8; a platform file is TOML, which is UTF-8 text")],
    );
    let utf_16: Vec<u8> = [0xfeff].into_iter().chain(CARD.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    refused_bytes(&utf_16, &["card.toml:1: byte 0 is not UTF-8; a platform file is TOML, which is UTF-8 text"]);
    accepted(&format!("\u{feff}{CARD}"));
}

#[test]
fn a_missing_or_invalid_schema_is_rejected() {
    refused(&card("schema = 2\n", ""), &["card.toml:1: schema: is missing: schema = 2"]);
    for bad in ["0", "-1", "\"1\"", "1.0", "true"] {
        refused(
            &card("schema = 2", &format!("schema = {bad}")),
            &[&format!("card.toml:2: schema: is {bad}; must be the whole number 2")],
        );
    }
}

#[test]
fn a_newer_schema_is_the_only_reported_problem() {
    let newer = change(&card("schema = 2", "schema = 3"), LANES, "width_lanes = 3");
    refused(&newer, &["card.toml:2: schema: is 3; this program reads up to 2: use a newer lanemark"]);
}

#[test]
fn an_older_schema_is_rejected_with_update_instructions() {
    refused(
        &card("schema = 2", "schema = 1"),
        &[
            "card.toml:2: schema: is 1; must be 2: the names of keys have changed since; run `lanemark schema platform`, \
           rename the keys it does not list, and write schema = 2",
        ],
    );
}

#[test]
fn an_empty_file_reports_everything_that_is_required() {
    let needed = [
        "card.toml:1: schema: is missing: schema = 2",
        "card.toml:1: name: is missing: one line of text in quotes",
        "card.toml:1: summary: is missing: one line of text in quotes",
        "card.toml:1: core: the section [core] is missing",
        "card.toml:1: root_complex: the section [root_complex] is missing",
        "card.toml:1: link: the section [link] is missing",
        "card.toml:1: endpoint: the section [endpoint] is missing",
        "card.toml:1: bar: at least one section [[bar]] is needed",
        "card.toml:1: region: at least one section [[region]] is needed",
    ];
    for text in ["", "\n\n", "# nothing\n"] {
        refused(text, &needed);
    }
}

#[test]
fn deep_nesting_is_rejected_without_stack_overflow() {
    for text in [
        "a = ".to_owned() + &"[".repeat(100_000),
        "a = ".to_owned() + &"{a=".repeat(100_000),
        "a.".repeat(100_000) + "a = 1",
        format!("[{}a]", "a.".repeat(100_000)),
    ] {
        let error = read(&text).unwrap_err().to_string();
        assert!(error.contains("card.toml:1: not TOML: ") && error.contains("recurs"), "{error}");
    }
}

#[test]
fn several_problems_are_reported_in_line_order() {
    let mut text = card("offset_bytes = { value = \"8KiB\"", "offset_bytes = { value = 0xFFC");
    for (from, to) in [
        ("name = \"card\"", "name = \"card\"\nspeed = 3"),
        ("clock_ghz = { value = 3.0", "clock_ghz = { value = 0"),
        (LANES, "width = { value = 8, source = \"lspci\" }"),
        (BAR0_SIZE, "size_bytes = { value = \"48KiB\""),
    ] {
        text = change(&text, from, to);
    }
    refused(
        &text,
        &[
            "card.toml:4: speed: unknown key; known here: schema, name, summary, extends, host, card, core, driver, runtime, root_complex, memory, \
             iommu, coherence, link, endpoint, dma, dma_read, dma_write, fifos, device_memory, kernel, msi_x, registers, switch, slot, retimer, port, fault, bar, region",
            "card.toml:10: core.clock_ghz: is 0; must be a number from 0.1 to 10",
            "card.toml:28: link.width_lanes: is missing: Width of the trained link; must be one of 1, 2, 4, 8, 12, 16, 32",
            "card.toml:30: link.width: unknown key; its name must end in the unit: width_lanes",
            "card.toml:45: bar.0.size_bytes: is 48KiB; a BAR's size is a power of two, such as 64KiB",
            "card.toml:67: region.queue.offset_bytes: overlaps region registers, which extends from 0x0 to 0x1000",
        ],
    );
}

#[test]
fn cr_lf_counts_as_one_line_end() {
    let text = change(&card(LANES, "width_lanes = 3"), BAR0_SIZE, "size_bytes = { value = 0").replace('\n', "\r\n");
    let error = read(&text).unwrap_err();
    assert_eq!(error.problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [29, 44]);
    assert_eq!(accepted(&CARD.replace('\n', "\r\n")).bars.len(), 2);
}

/// The card with one more key in a section.
fn with_key(section: &str, key: &str, value: u32) -> String {
    card(section, &format!("{section}\n{key} = {{ value = {value}, source = \"a test\" }}"))
}

#[test]
fn root_port_credits_must_cover_one_maximum_payload() {
    let needed = accepted(CARD).link.mps_bytes.value / 16;
    accepted(&with_key("[root_complex]", "posted_data_credits", needed));
    let short = with_key("[root_complex]", "posted_data_credits", needed - 1);
    let wanted = "root_complex.posted_data_credits: is 15; one payload of link.mps_bytes, 256 B, takes 16";
    assert_eq!(said(&short), [wanted]);
}

#[test]
fn a_link_that_corrupts_every_tlp_is_rejected() {
    accepted(&with_key("[link]", "tlps_per_error", 2));
    accepted(&with_key("[link]", "tlps_per_error", 0));
    let wanted = "link.tlps_per_error: is 1: every TLP would be corrupted; use 0 for an error-free link";
    assert_eq!(said(&with_key("[link]", "tlps_per_error", 1)), [wanted]);
}

#[test]
fn a_dma_engine_needs_memory_outside_bars() {
    let dma = "\n[dma]\ntags = { value = 8, source = \"a test\" }\nbeat_bytes = { value = 8, source = \"a test\" }\n\
               beat_ns = { value = 4, source = \"a test\" }\n";
    let alone = said(&format!("{CARD}{dma}"));
    assert_eq!(alone, ["dma: needs a section [memory], the target of its reads and writes"]);
    let bar = accepted(CARD).bars[0].address_bytes.value;
    let memory = |address: u64| {
        format!(
            "\n[memory]\naddress_bytes = {{ value = {address}, source = \"a test\" }}\nsize_bytes = {{ value = 4096, source = \
             \"a test\" }}\nread_ns = {{ value = 1, source = \"a test\" }}\nwrite_ns = {{ value = 1, source = \"a test\" }}\n"
        )
    };
    accepted(&format!("{CARD}{dma}{}", memory(bar - 4096)));
    let inside = said(&format!("{CARD}{dma}{}", memory(bar - 4095)));
    assert!(inside[0].contains("overlaps BAR"), "{inside:?}");
}

#[test]
fn many_sections_are_read_quickly() {
    let region = &CARD[CARD.rfind("[[region]]").unwrap()..];
    let many: String = (0..3000).map(|i| region.replace("\"queue\"", &format!("\"queue{i}\""))).collect();
    assert_eq!(read(&format!("{CARD}{many}")).unwrap_err().problems.len(), 3000, "each overlaps the first");
}

#[test]
fn an_unknown_fault_port_and_a_timeout_below_50_us_are_rejected() {
    let fault = |port: &str, more: &str| {
        format!(
            "{CARD}\n[[fault]]\nname = \"bad\"\nport = \"{port}\"\nkind = {{ value = \"completer_abort\", assumed = \"a test\" }}\n{more}\n"
        )
    };
    let line = CARD.lines().count() + 5;
    accepted(&fault("root/card", ""));
    let unknown = format!(
        "card.toml:{line}: fault.bad.port: is \"crad\", not a port of this platform; its ports: root/card, card"
    );
    refused(&fault("crad", ""), &[&unknown]);
    let spans =
        format!("card.toml:{}: fault.bad.down_ns: applies to link_down only, but this is completer_abort", line + 1);
    refused(&fault("card", "down_ns = { value = 5, assumed = \"a test\" }"), &[&spans]);
    let timeout = |ns: u32| {
        let row = format!("[endpoint]\ncompletion_timeout_ns = {{ value = {ns}, assumed = \"a test\" }}");
        change(CARD, "[endpoint]", &row)
    };
    accepted(&timeout(50_000));
    let line = CARD.lines().position(|line| line == "[endpoint]").unwrap() + 2;
    let short =
        format!("card.toml:{line}: endpoint.completion_timeout_ns: is 49999 ns; no requester gives up before 50000 ns");
    refused(&timeout(49_999), &[&short]);
}
