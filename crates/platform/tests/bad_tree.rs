//! Is every mistake in what hangs on what named: switches, slots, and ports that are set apart?
//!
//! The tree hangs behind the sound card of `card.toml`; each test changes one thing in it.

mod sound;

use sound::{CARD, accepted, change, said};

/// Two switches and two slots behind the card, with something in them replaced.
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
fn what_hangs_below_something_that_is_not_there_is_named_with_what_there_is() {
    let wanted = ["switch.lower.below: is \"nowhere\"; known names: upper, lower, root"];
    assert_eq!(
        said(&tree("name = \"lower\"\nbelow = \"upper\"", "name = \"lower\"\nbelow = \"nowhere\""))[..1],
        wanted
    );
    let wanted = ["slot.left.below: is \"nowhere\"; known names: upper, lower, root"];
    assert_eq!(said(&tree("name = \"left\"\nbelow = \"upper\"", "name = \"left\"\nbelow = \"nowhere\"")), wanted);
}

#[test]
fn switches_below_each_other_in_a_circle_are_refused() {
    let said = said(&tree("below = \"root\"", "below = \"lower\""));
    assert!(said.iter().any(|said| said.contains("a cycle that never reaches root")), "{said:?}");
}

#[test]
fn cards_whose_bars_overlap_or_are_misaligned_are_refused() {
    let same = said(&tree("value = \"1GiB\"", "value = 0"));
    assert!(same[0].contains("a BAR of it would overlap a BAR of slot left"), "{same:?}");
    let odd = said(&tree("value = \"1GiB\"", "value = 0x40000010"));
    assert!(odd[0].contains("must be a multiple of BAR"), "{odd:?}");
}

#[test]
fn a_switch_without_room_for_one_payload_is_refused_and_one_with_just_enough_is_not() {
    let with = |credits: u32| {
        let key = format!("posted_data_credits = {{ value = {credits}, source = \"a test\" }}\n");
        tree("name = \"upper\"\n", &format!("name = \"upper\"\n{key}"))
    };
    let needed = accepted(CARD).link.mps_bytes.value / 16;
    accepted(&with(needed));
    assert!(said(&with(needed - 1))[0].contains("one payload of link.mps_bytes takes"));
}

/// The tree with one port set apart.
fn with_port(name: &str, mps: u32) -> String {
    let supported = "name = \"lower\"\nmps_supported_bytes = { value = 1024, source = \"a test\" }";
    let port = format!("[[port]]\nname = \"{name}\"\nmps_bytes = {{ value = {mps}, source = \"a test\" }}\n");
    format!("{}\n{port}", tree("name = \"lower\"", supported))
}

#[test]
fn a_port_is_set_to_what_it_supports_and_no_more() {
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
fn a_port_that_is_not_there_is_named_with_those_that_are() {
    let said = said(&with_port("upper/right", 128));
    let wanted = "port.upper/right.name: is not a port of this platform; its ports: root/upper, upper, upper/lower, lower, \
                  upper/left, left, lower/right, right";
    assert_eq!(said, [wanted]);
}

#[test]
fn a_port_stands_once_and_a_slot_is_not_called_as_a_switch() {
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
fn a_port_without_room_for_one_payload_is_refused_and_one_with_just_enough_is_not() {
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
fn a_last_level_cache_is_whole_sets_and_no_slower_than_dram() {
    let card = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
    let with = |key: &str, value: f64| {
        let origin = lanemark_platform::Origin::Given("a test".to_owned());
        card.with(key, value, origin).map_err(|error| error.problems[0].message.clone())
    };
    let lines = |bytes| with("memory.cache_bytes", bytes).map(|card| card.memory.unwrap().cached_lines());
    // Sixteen lines are a set; and without a latency of its own no line is read any sooner.
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
