//! Reading and replacing single values by path.

use lanemark_platform::spec::{Key, Kind};
use lanemark_platform::{
    Bar, Core, Dma, DmaRead, DmaWrite, Driver, Endpoint, Fault, Fifos, Link, Memory, MsiX, Origin, PRESETS, Platform,
    Port, Region, Registers, RootComplex, Runtime, Slot, Switch, preset,
};

fn presets() -> impl Iterator<Item = Platform> {
    PRESETS.iter().map(|preset| Platform::parse(preset.name, preset.text).unwrap())
}

fn card() -> Platform {
    preset("card-gen5-x16").unwrap().unwrap()
}

/// Every path of a platform with its key.
fn paths(platform: &Platform) -> Vec<(String, &'static Key)> {
    let mut sections = vec![
        (Core::PATH.to_owned(), Core::KEYS),
        (RootComplex::PATH.to_owned(), RootComplex::KEYS),
        (Link::PATH.to_owned(), Link::KEYS),
        (Endpoint::PATH.to_owned(), Endpoint::KEYS),
    ];
    sections.extend(platform.driver.iter().map(|_| (Driver::PATH.to_owned(), Driver::KEYS)));
    sections.extend(platform.runtime.iter().map(|_| (Runtime::PATH.to_owned(), Runtime::KEYS)));
    sections.extend(platform.memory.iter().map(|_| (Memory::PATH.to_owned(), Memory::KEYS)));
    sections.extend(platform.dma.iter().map(|_| (Dma::PATH.to_owned(), Dma::KEYS)));
    sections.extend(platform.dma_read.iter().map(|_| (DmaRead::PATH.to_owned(), DmaRead::KEYS)));
    sections.extend(platform.dma_write.iter().map(|_| (DmaWrite::PATH.to_owned(), DmaWrite::KEYS)));
    sections.extend(platform.fifos.iter().map(|_| (Fifos::PATH.to_owned(), Fifos::KEYS)));
    sections.extend(platform.msi_x.iter().map(|_| (MsiX::PATH.to_owned(), MsiX::KEYS)));
    sections.extend(platform.registers.iter().map(|_| (Registers::PATH.to_owned(), Registers::KEYS)));
    sections.extend(platform.switches.iter().map(|switch| (format!("switch.{}", switch.name), Switch::KEYS)));
    sections.extend(platform.slots.iter().map(|slot| (format!("slot.{}", slot.name), Slot::KEYS)));
    sections.extend(platform.ports.iter().map(|port| (format!("port.{}", port.name), Port::KEYS)));
    sections.extend(platform.faults.iter().map(|fault| (format!("fault.{}", fault.name), Fault::KEYS)));
    sections.extend(platform.bars.iter().map(|bar| (format!("bar.{}", bar.index.value), Bar::KEYS)));
    sections.extend(platform.regions.iter().map(|region| (format!("region.{}", region.name), Region::KEYS)));
    sections
        .into_iter()
        .flat_map(|(section, keys)| keys.iter().map(move |key| (format!("{section}.{}", key.name), key)))
        .collect()
}

/// Numbers at the limits of a kind, and just outside; empty if it is not numeric.
fn edges(kind: Kind) -> (Vec<f64>, Vec<f64>) {
    match kind {
        Kind::Ns(max) => (vec![0.0, 0.25, max], vec![-1.0, -f64::MIN_POSITIVE, max.next_up()]),
        Kind::Number(min, max) => (vec![min, max], vec![min.next_down(), max.next_up()]),
        Kind::ZeroOrNumber(min, max) => (vec![0.0, min, max], vec![-1.0, 1e-6, min.next_down(), max.next_up()]),
        Kind::Count(min, max) => {
            (vec![min as f64, max as f64], vec![min as f64 - 1.0, max as f64 + 1.0, max as f64 - 0.5])
        }
        Kind::Size(min, max) => (vec![min as f64, max as f64], vec![min as f64 - 1.0, (max as f64).next_up(), 16.5]),
        Kind::OneOf(these) => {
            let these: Vec<f64> = these.iter().map(|this| *this as f64).collect();
            let others = [-1.0, 0.0, 7.0, 1e300].into_iter().filter(|other| !these.contains(other)).collect();
            (these, others)
        }
        // Read back as `true` and `false`, not as numbers.
        Kind::Flag => (vec![], vec![-1.0, 0.5, 2.0]),
        Kind::Choice(_) => (vec![], vec![0.0, 1.0]),
    }
}

#[test]
fn every_number_can_be_replaced_and_read_back_with_its_origin() {
    let origin = Origin::FittedTo(vec!["X1".to_owned(), "X2".to_owned()]);
    let mut replaced = 0;
    for platform in presets() {
        for (path, key) in paths(&platform) {
            for value in edges(key.kind).0 {
                match platform.with(&path, value, origin.clone()) {
                    Ok(changed) => {
                        replaced += 1;
                        if key.name != "index" {
                            assert_eq!(changed.number(&path), Some((value, origin.clone())), "{path}");
                        }
                        let mut differing = paths(&platform);
                        differing.retain(|(path, _)| changed.number(path) != platform.number(path));
                        assert!(differing.iter().all(|(_, other)| other.name == key.name), "{path}: {differing:?}");
                    }
                    // The only permitted problem is inconsistency with other keys.
                    Err(error) => {
                        let message = error.to_string();
                        assert!(!message.contains(&key.kind.wanted()), "{message}");
                        assert!(error.problems.iter().all(|problem| problem.line == 0), "{message}");
                    }
                }
            }
            if let Some((value, _)) = platform.number(&path) {
                let same = platform.with(&path, value, origin.clone()).unwrap();
                assert_eq!(same.number(&path), Some((value, origin.clone())));
            }
        }
    }
    assert!(replaced > 300, "{replaced}");
}

#[test]
fn values_out_of_range_are_rejected() {
    for platform in presets() {
        for (path, key) in paths(&platform) {
            for value in edges(key.kind).1.into_iter().chain([f64::NAN, f64::INFINITY, f64::NEG_INFINITY]) {
                let error = platform.with(&path, value, Origin::Given("a test".to_owned())).unwrap_err();
                let wanted = format!("{}: {path}: is {value}; {}", platform.name, key.kind.wanted());
                assert_eq!(error.to_string(), wanted);
            }
        }
    }
}

#[test]
fn an_unknown_path_is_rejected() {
    for path in [
        ".",
        "link",
        "link.",
        "link.width",
        "link.x.width_lanes",
        "link..width_lanes",
        ".link.width_lanes",
        "link.width_lanes.",
        "core.name",
        "name",
        "schema",
        "switch.ports",
        "bar.index",
        "bar..index",
        "region.read_ns",
        "region.memory.x.read_ns",
    ] {
        let error = card().with(path, 1.0, Origin::Given("a test".to_owned())).unwrap_err();
        let text = error.to_string();
        let said = format!("card-gen5-x16: {path}: there is no such number in this platform");
        assert!(text == said || text.starts_with(&format!("{said}; did you mean ")), "{text}");
        assert_eq!(card().number(path), None, "{path}");
    }
}

#[test]
fn a_missing_section_or_item_is_named() {
    for (path, said) in [
        ("bar.1.index", "this platform has no [[bar]] 1; it has 0, 2"),
        ("bar.00.index", "this platform has no [[bar]] 00; it has 0, 2"),
        ("region.nothing.read_ns", "this platform has no [[region]] nothing; it has "),
        ("switch.s0.x", "this platform has no section [[switch]], which takes name, "),
        ("retimer.x.down_ns", "this platform has no section [[retimer]], which takes name, link"),
    ] {
        let text = card().with(path, 1.0, Origin::Given("a test".to_owned())).unwrap_err().to_string();
        assert!(text.starts_with(&format!("card-gen5-x16: {path}: {said}")), "{text}");
        assert_eq!(card().number(path), None, "{path}");
    }
}

#[test]
fn choices_and_flags_are_not_numbers() {
    for path in ["core.vendor", "core.direct_stores", "region.memory.kind", "bar.0.prefetchable"] {
        assert_eq!(card().number(path), None, "{path}");
    }
}

#[test]
fn a_missing_driver_has_no_numbers() {
    let card = Platform { driver: None, ..card() };
    assert_eq!(card.number("driver.call_ns"), None);
    let error = card.with("driver.call_ns", 1.0, Origin::Given("a test".to_owned())).unwrap_err();
    let takes = "this platform has no section [driver], which takes call_ns, copy_bytes: write it into a copy of the platform file";
    assert_eq!(error.to_string(), format!("card-gen5-x16: driver.call_ns: {takes}"));
}

fn said(platform: &Platform, path: &str, text: &str) -> Result<Platform, String> {
    platform.with_text(path, text, Origin::Assumed("a test".to_owned())).map_err(|error| error.to_string())
}

#[test]
fn several_keys_are_checked_together() {
    let origin = || Origin::Assumed("a test".to_owned());
    let few = ("link.posted_data_credits", "16", origin());
    let card = card().with_texts([few, ("link.mps_bytes", "256", origin())]).unwrap();
    assert!(said(&card, "link.mps_bytes", "512").is_err());
    let both = [("link.mps_bytes", "512", origin()), ("link.posted_data_credits", "32", origin())];
    let set = card.with_texts(both).unwrap();
    assert_eq!(set.value_text("link.mps_bytes").as_deref(), Some("512"));
    let both = [("link.mps_bytes", "512", origin()), ("link.posted_data_credits", "31", origin())];
    assert!(card.with_texts(both).unwrap_err().to_string().contains("one payload of 512 B"));
}

#[test]
fn every_key_accepts_the_text_of_its_value_and_rejects_other_kinds() {
    let mut flags_and_words = 0;
    for platform in presets() {
        for (path, key) in paths(&platform) {
            let text = platform.value_text(&path).unwrap();
            assert_eq!(said(&platform, &path, &text).unwrap().value_text(&path), Some(text), "{path}");
            let error = said(&platform, &path, "no such").unwrap_err();
            assert_eq!(error, format!("{}: {path}: is no such; {}", platform.name, key.kind.wanted()));
            flags_and_words += usize::from(platform.number(&path).is_none());
        }
    }
    assert!(flags_and_words > 20, "{flags_and_words}");
    let skips = said(&card(), "link.skp", "true").unwrap();
    assert!(skips.link.skp.value && !card().link.skp.value);
    assert_eq!(said(&card(), "link.ordering", "never").unwrap().value_text("link.ordering").as_deref(), Some("never"));
    assert_eq!(said(&card(), "link.skp", "1").unwrap_err(), "card-gen5-x16: link.skp: is 1; must be true or false");
}

#[test]
fn whole_numbers_may_be_hexadecimal() {
    let set = |path: &str, text: &str| said(&card(), path, text).map(|card| card.value_text(path).unwrap());
    assert_eq!(set("link.mps_bytes", "0x100"), Ok("256".to_owned()));
    assert_eq!(set("link.mps_bytes", "0X1_00"), Ok("256".to_owned()));
    assert_eq!(set("link.latency_ns", "0xff"), Ok("255".to_owned()));
    // Exact up to the top: a double would be rounded.
    let top = set("bar.2.address_bytes", "0x7fff_ffff_0000_0000").map_err(|error| error.contains("is 0x7fff"));
    assert!(top == Ok("9223372032559808512".to_owned()) || top == Err(false), "{top:?}");
    for wrong in ["0x", "0x_1", "0x1__0", "0x1g", "0x100KiB", "-0x1", "0x1.8", "0x10000000000000000", "x100", "100h"] {
        let error = set("link.mps_bytes", wrong).unwrap_err();
        assert!(error.starts_with(&format!("card-gen5-x16: link.mps_bytes: is {wrong}; must be ")), "{error}");
    }
}

#[test]
fn a_missing_section_is_created_from_defaults_or_its_needs_are_reported() {
    let card = Platform { dma_read: None, dma_write: None, fifos: None, ..card() };
    for (path, other) in
        [("dma_read.chunk_ns", "dma_read.segment_ns"), ("dma_write.chunk_ns", "dma_write.many_lines_ns")]
    {
        assert_eq!(card.value_text(path), None);
        let made = said(&card, path, "5").unwrap();
        assert_eq!([path, other].map(|path| made.value_text(path)), [Some("5".to_owned()), Some("0".to_owned())]);
    }
    let fifos = said(&card, "fifos.rx_bytes", "64KiB").unwrap_err();
    assert!(fifos.contains("no section [fifos], which takes ep_rx, rx_bytes, tx_bytes, "), "{fifos}");
    let none = Platform { dma: None, ..card.clone() };
    assert!(said(&none, "dma_read.chunk_ns", "5").unwrap_err().contains("no section [dma], which takes tags, "));
    let rosta = preset("rosta-virtex7").unwrap().unwrap();
    assert!(said(&rosta, "port.rc47a/fpga0.acs_redirect", "true").unwrap().redirects("rc47a/fpga0"));
    let nowhere = said(&rosta, "port.fpga9.mps_bytes", "128").unwrap_err();
    assert!(nowhere.contains("there is no port fpga9 in this platform; its ports: root/rha25, "), "{nowhere}");
}

#[test]
fn an_empty_origin_is_rejected() {
    for origin in [
        Origin::Given(String::new()),
        Origin::Assumed(" ".to_owned()),
        Origin::Default("\n".to_owned()),
        Origin::FittedTo(vec![]),
        Origin::FittedTo(vec!["X1".to_owned(), String::new()]),
    ] {
        let error = card().with("link.latency_ns", 1.0, origin).unwrap_err();
        assert_eq!(error.to_string(), "card-gen5-x16: link.latency_ns: must state its origin");
    }
}

#[test]
fn an_inconsistent_number_is_rejected() {
    for (path, value, message) in [
        ("bar.0.index", 2.0, "bar.2.index: occurs twice; give each BAR its own index"),
        (
            "bar.2.size_bytes",
            48.0 * 1024.0,
            "bar.2.size_bytes: is 48KiB; a BAR's size is a power of two, such as 64KiB",
        ),
        (
            "bar.0.address_bytes",
            4096.0,
            "bar.0.address_bytes: is 0x1000; it must be a multiple of the BAR's size 64KiB",
        ),
        (
            "bar.0.address_bytes",
            2_199_023_255_552.0,
            "bar.2.address_bytes: overlaps BAR0, which extends from 0x20000000000 to 0x20000010000",
        ),
        ("region.memory.bar", 5.0, "region.memory.bar: is 5; there is no such BAR in this file"),
        (
            "region.memory.offset_bytes",
            1.0,
            "region.memory.size_bytes: is 256MiB; from offset 0x1 it extends beyond BAR2, which is 256MiB",
        ),
        (
            "link.posted_data_credits",
            31.0,
            "link.posted_data_credits: is 31; one payload of 512 B (mps_bytes) takes 32",
        ),
    ] {
        let error = card().with(path, value, Origin::Given("a test".to_owned())).unwrap_err().to_string();
        assert!(error.lines().any(|line| line == format!("card-gen5-x16: {message}")), "{error}");
    }
    assert!(card().with("link.posted_data_credits", 32.0, Origin::Given("a test".to_owned())).is_ok());
}

#[test]
fn prefetching_channels_must_have_enough_tags() {
    let with = |channels: f64, fetched: f64, tags: f64| {
        let mut card = preset("card-gen5-x16").unwrap().unwrap();
        for (key, value) in [("dma.tags", tags), ("dma.prefetch_descriptors", fetched), ("dma.channels", channels)] {
            card = card.with(key, value, Origin::Assumed("a test".to_owned())).map_err(|error| error.to_string())?;
        }
        Ok::<Platform, String>(card)
    };
    assert!(with(4.0, 64.0, 768.0).is_ok());
    let error = with(5.0, 64.0, 768.0).unwrap_err();
    assert!(error.contains("dma.channels: is 5; with 64 prefetched descriptors each they need 320 tags"), "{error}");
    assert!(error.contains("available: 256"), "{error}");
    assert!(with(1.0, 256.0, 768.0).is_ok());
    // With ATS, each channel has one more tag for translation requests.
    let with_ats = |fetched: f64| {
        let mut card = preset("card-gen5-x16-iommu").unwrap().unwrap();
        for (key, value) in [("dma.tags", 768.0), ("dma.ats_entries", 1.0), ("dma.prefetch_descriptors", fetched)] {
            card = card.with(key, value, Origin::Assumed("a test".to_owned())).map_err(|error| error.to_string())?;
        }
        Ok::<Platform, String>(card)
    };
    assert!(with_ats(255.0).is_ok());
    let error = with_ats(256.0).unwrap_err();
    assert!(error.contains("256 prefetched descriptors each and a translation request they need 257"), "{error}");
}

#[test]
fn credits_may_be_as_many_as_the_largest_scale_allows() {
    for (key, most) in [("link.posted_header_credits", 2032), ("link.posted_data_credits", 32_752)] {
        assert!(said(&card(), key, &most.to_string()).is_ok());
        assert!(said(&card(), key, &(most + 1).to_string()).is_err());
    }
    let of_scale = lanemark_wire::SCALES[2];
    assert_eq!((of_scale.most_header, of_scale.most_data), (2032, 32_752));
}
