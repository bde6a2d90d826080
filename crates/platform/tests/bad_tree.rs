//! Reports of problems in the topology: switches, slots, and ports.
//!
//! The tree is added to the valid `card.toml`; each test changes one thing in it.

mod sound;

use sound::{CARD, accepted, change, said};

/// Two switches and two slots added to the card, with one piece replaced.
fn tree(from: &str, to: &str) -> String {
    let tree = r#"
[[switch]]
name = "upper"
below = "root"
generation = { value = 3, source = "a test" }
width_lanes = { value = 8, source = "a test" }
link_latency_ns = { value = 10, source = "a test" }
latency_ns = { value = 150, source = "a test" }

[[switch]]
name = "lower"
below = "upper"
generation = { value = 3, source = "a test" }
width_lanes = { value = 8, source = "a test" }
link_latency_ns = { value = 10, source = "a test" }
latency_ns = { value = 150, source = "a test" }

[[slot]]
name = "left"
below = "upper"

[[slot]]
name = "right"
below = "lower"
bar_shift_bytes = { value = "1GiB", source = "a test" }
"#;
    format!("{CARD}{}", change(tree, from, to))
}

#[test]
fn a_tree_of_switches_is_read() {
    let card = accepted(&tree("bar", "bar"));
    assert_eq!((card.switches.len(), card.slots.len()), (2, 2));
    assert_eq!((card.switches[1].below.as_str(), card.slots[1].name.as_str()), ("upper", "right"));
}

#[test]
fn an_unknown_parent_is_reported_with_the_known_names() {
    let wanted = ["switch.lower.below: is \"nowhere\"; known names: upper, lower, root"];
    assert_eq!(
        said(&tree("name = \"lower\"\nbelow = \"upper\"", "name = \"lower\"\nbelow = \"nowhere\""))[..1],
        wanted
    );
    let wanted = ["slot.left.below: is \"nowhere\"; known names: upper, lower, root"];
    assert_eq!(said(&tree("name = \"left\"\nbelow = \"upper\"", "name = \"left\"\nbelow = \"nowhere\"")), wanted);
}

#[test]
fn a_cycle_of_switches_is_rejected() {
    let said = said(&tree("below = \"root\"", "below = \"lower\""));
    assert!(said.iter().any(|said| said.contains("a cycle that never reaches root")), "{said:?}");
}

#[test]
fn cards_with_overlapping_or_misaligned_bars_are_rejected() {
    let same = said(&tree("value = \"1GiB\"", "value = 0"));
    assert!(same[0].contains("a BAR of it would overlap a BAR of slot left"), "{same:?}");
    let odd = said(&tree("value = \"1GiB\"", "value = 0x40000010"));
    assert!(odd[0].contains("must be a multiple of BAR"), "{odd:?}");
}

#[test]
fn switch_credits_must_cover_one_maximum_payload() {
    let with = |credits: u32| {
        let key = format!("posted_data_credits = {{ value = {credits}, source = \"a test\" }}\n");
        tree("name = \"upper\"\n", &format!("name = \"upper\"\n{key}"))
    };
    let needed = accepted(CARD).link.mps_bytes.value / 16;
    accepted(&with(needed));
    assert!(said(&with(needed - 1))[0].contains("one payload of link.mps_bytes takes"));
}

/// The tree with one `[[port]]` section.
fn with_port(name: &str, mps: u32) -> String {
    let supported = "name = \"lower\"\nmps_supported_bytes = { value = 1024, source = \"a test\" }";
    let port = format!("[[port]]\nname = \"{name}\"\nmps_bytes = {{ value = {mps}, source = \"a test\" }}\n");
    format!("{}\n{port}", tree("name = \"lower\"", supported))
}

#[test]
fn a_port_payload_is_limited_to_what_it_supports() {
    let mps = accepted(CARD).link.mps_bytes.value;
    for (name, most) in
        [("lower", 1024), ("lower/right", 1024), ("upper/lower", mps), ("root/upper", mps), ("left", mps)]
    {
        assert_eq!(accepted(&with_port(name, most)).mps_bytes_of(name), most);
        let said = said(&with_port(name, most * 2));
        let begins = format!("port.{name}.mps_bytes: is {}; this port supports {most}", most * 2);
        assert!(said[0].starts_with(&begins), "{said:?}");
    }
}

#[test]
fn an_unknown_port_is_reported_with_the_known_ports() {
    let said = said(&with_port("upper/right", 128));
    let wanted = "port.upper/right.name: is not a port of this platform; its ports: root/upper, upper, upper/lower, lower, \
                  upper/left, left, lower/right, right";
    assert_eq!(said, [wanted]);
}

#[test]
fn duplicate_ports_and_slots_named_as_switches_are_rejected() {
    let twice = format!(
        "{}{}",
        with_port("left", 128),
        "[[port]]\nname = \"left\"\nmps_bytes = { value = 128, source = \"a test\" }\n"
    );
    assert!(said(&twice)[0].ends_with("already; give each its own name"), "{:?}", said(&twice));
    let slashes = said(&with_port("upper/lower/x", 128));
    assert!(
        slashes[0].ends_with("must be letters, digits, '_' and '-', with one '/' between two names"),
        "{slashes:?}"
    );
    let alike = with_port("lower", 128).replace("name = \"left\"", "name = \"lower\"");
    assert!(said(&alike)[0].ends_with("is both a slot and a switch; give them different names"), "{:?}", said(&alike));
}

#[test]
fn port_credits_must_cover_one_maximum_payload() {
    let with = |credits: u32| {
        with_port("lower", 1024).replace(
            "name = \"lower\"\nmps_supported",
            &format!(
                "name = \"lower\"\nposted_data_credits = {{ value = {credits}, source = \"a test\" }}\nmps_supported"
            ),
        )
    };
    accepted(&with(64));
    assert_eq!(
        said(&with(63)),
        ["port.lower.mps_bytes: is 1024; one such payload takes 64 posted data credits, it has 63"]
    );
}

#[test]
fn a_cache_has_whole_sets_and_is_no_slower_than_dram() {
    let card = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
    let with = |key: &str, value: f64| {
        let origin = lanemark_platform::Origin::Given("a test".to_owned());
        card.with(key, value, origin).map_err(|error| error.problems[0].message.clone())
    };
    let lines = |bytes| with("memory.cache_bytes", bytes).map(|card| card.memory.unwrap().cached_lines());
    // A set has 16 lines. Without a latency of its own, a cache hit is no faster.
    assert_eq!(lines(1024.0), Ok(0));
    assert_eq!(lines(1023.0), Err("is 1023; must be a multiple of 1024 B, a set".to_owned()));
    assert!(with("memory.cached_read_ns", 300.0).is_ok());
    assert_eq!(
        with("memory.cached_read_ns", 300.5),
        Err("is 300.5; it must not exceed memory.read_ns, 300".to_owned())
    );
    let quick = with("memory.cached_read_ns", 100.0).unwrap();
    let origin = lanemark_platform::Origin::Given("a test".to_owned());
    assert_eq!(quick.with("memory.cache_bytes", 2048.0, origin).unwrap().memory.unwrap().cached_lines(), 32);
}
