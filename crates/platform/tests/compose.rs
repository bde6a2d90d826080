//! Platforms that inherit from other files.

use lanemark_platform::{
    CARDS, Document, Draft, HOSTS, Origin, PRESETS, Platform, PlatformError, host_with_card, preset,
};

const HEAD: &str = "schema = 2\nname = \"mine\"\n";

/// A file `mine.toml` beside other files.
fn read(text: &str, others: &[(&str, &str)]) -> Result<Platform, PlatformError> {
    draft(text, others)?.complete()
}

fn draft(text: &str, others: &[(&str, &str)]) -> Result<Draft, PlatformError> {
    let open = |_: &str, path: &str| {
        let found = others.iter().find(|(file, _)| *file == path);
        let (file, text) = found.ok_or("there is no such file")?;
        Ok(Document { file: (*file).to_owned(), text: (*text).to_owned() })
    };
    Draft::with_files(Document { file: "mine.toml".to_owned(), text: format!("{HEAD}{text}") }, &open)
}

#[track_caller]
fn refused(text: &str, others: &[(&str, &str)]) -> String {
    draft(text, others).expect_err("must be refused").to_string()
}

#[test]
fn a_file_that_extends_a_preset_has_its_values_and_counts_them_apart() {
    for row in PRESETS {
        let mine = read(&format!("extends = \"{}\"\n", row.name), &[]).unwrap();
        let base = preset(row.name).unwrap().unwrap();
        let values = |platform: &Platform| -> Vec<(String, Option<String>)> {
            platform.value_origins().into_iter().map(|(key, _)| (key.clone(), platform.value_text(&key))).collect()
        };
        assert_eq!(values(&mine), values(&base), "{}", row.name);
        assert_eq!((mine.origins().own.total(), mine.origins().inherited), (0, base.origins().own), "{}", row.name);
        assert_eq!((mine.name.as_str(), &mine.summary), ("mine", &base.summary));
        for ((key, own), (_, of_base)) in mine.value_origins().iter().zip(base.value_origins()) {
            let Origin::Inherited { from, .. } = own else { panic!("{key}: {own:?}") };
            assert_eq!((from.as_str(), own.stated()), (row.name, &of_base), "{key}");
        }
    }
}

#[test]
fn the_files_own_values_win_and_plain_ones_have_the_origin_of_their_section() {
    let text = "summary = \"own\"\nextends = \"card-gen5-x16\"\n\
        [link]\nsource = \"lspci\"\nwidth_lanes = 8\nlatency_ns = { value = 99, assumed = \"a guess\" }\n\
        [dma]\nassumed = \"the manual\"\ntags = 64\n";
    let mine = read(text, &[]).unwrap();
    assert_eq!((mine.summary.as_str(), mine.link.width_lanes.value, mine.link.generation.value), ("own", 8, 5));
    assert_eq!(mine.link.width_lanes.origin, Origin::Given("lspci".to_owned()));
    assert_eq!(mine.link.latency_ns.origin, Origin::Assumed("a guess".to_owned()));
    assert_eq!(mine.dma.as_ref().unwrap().tags.origin, Origin::Assumed("the manual".to_owned()));
    let origins = mine.origins();
    assert_eq!((origins.own.given, origins.own.assumed), (1, 2));
    assert_eq!(origins.total(), preset("card-gen5-x16").unwrap().unwrap().origins().total());
}

#[test]
fn plain_values_work_in_a_file_that_extends_none() {
    let row = PRESETS.iter().find(|row| row.name == "card-gen5-x16").unwrap();
    let from = "width_lanes = { value = 16, assumed = \"the preset's purpose\" }";
    let with = |to: &str| Platform::parse("card.toml", &row.text.replacen(from, to, 1));
    assert_eq!(with("width_lanes = 8\nsource = \"lspci\"").unwrap().link.width_lanes.value, 8);
    for (to, message) in [
        ("width_lanes = 8", "is a bare 8; add its origin"),
        ("width_lanes = 8\nsource = \"a\"\nassumed = \"b\"", "link.assumed: a section has source or assumed, not both"),
        ("width_lanes = 8\nsource = \" \"", "link.source: is \" \"; must be text that states the origin"),
        ("width_lanes = 3\nsource = \"a\"", "link.width_lanes: is 3; must be one of 1, 2, 4"),
        ("source = 7", "link.source: is 7; must be text"),
    ] {
        let error = with(to).unwrap_err().to_string();
        assert!(error.contains(message), "{to}: {error}");
    }
}

#[test]
fn no_key_is_called_like_an_origin() {
    for row in Platform::SECTIONS {
        for key in row.keys.iter().map(|key| key.name).chain(row.texts.iter().copied()) {
            assert!(!["source", "assumed", "extends", "host", "card", "inherited_from"].contains(&key), "{key}");
        }
    }
}

#[test]
fn a_repeated_section_replaces_all_of_the_base() {
    let region = "[[region]]\nname = \"all\"\nsource = \"the design\"\nbar = 0\noffset_bytes = 0\nsize_bytes = \"64KiB\"\n\
        kind = \"sram\"\nbeat_bytes = 8\nbeat_ns = 4\nread_ns = 20\n";
    let mine = read(&format!("extends = \"card-gen5-x16\"\n{region}"), &[]).unwrap();
    assert_eq!(mine.regions.iter().map(|region| region.name.as_str()).collect::<Vec<_>>(), ["all"]);
    assert_eq!(mine.bars.len(), 2, "not replaced");
    assert_eq!(mine.regions[0].read_ns.origin, Origin::Given("the design".to_owned()));
    // An entry does not inherit keys.
    let error = refused(&format!("extends = \"card-gen5-x16\"\n{}", region.replace("read_ns = 20\n", "")), &[]);
    assert!(error.contains("region.all.read_ns: is missing"), "{error}");
}

#[test]
fn a_path_names_a_file_and_bases_form_a_chain() {
    let base = "schema = 2\nname = \"base\"\nextends = \"aws-f1\"\n[link]\nsource = \"a slot\"\nwidth_lanes = 8\n";
    let mine = read("extends = \"./base.toml\"\n", &[("./base.toml", base)]).unwrap();
    assert_eq!(mine.link.width_lanes.value, 8);
    let from = |origin: &Origin| match origin {
        Origin::Inherited { from, .. } => from.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(from(&mine.link.width_lanes.origin), "./base.toml");
    assert_eq!(from(&mine.link.generation.origin), "aws-f1");
    assert_eq!(mine.summary, preset("aws-f1").unwrap().unwrap().summary);
}

#[test]
fn wrong_names_are_refused_with_what_to_try() {
    for (text, message) in [
        (
            "extends = \"card-gen5-x61\"\n",
            "mine.toml:3: extends: is \"card-gen5-x61\"; there is no built-in platform of this name; did you mean card-gen5-x16 or card-gen5-x16-iommu?; the path of a file ends in .toml",
        ),
        (
            "host = \"card-gen5-x16\"\n",
            "mine.toml:3: host: is \"card-gen5-x16\"; there is no built-in host of this name; known: xeon-icelake, xeon-spr",
        ),
        ("extends = 3\n", "mine.toml:3: extends: is 3; must be the name of a built-in file or a path, in quotes"),
        (
            "extends = \"absent.toml\"\n",
            "mine.toml:3: extends: is \"absent.toml\", which cannot be read: there is no such file",
        ),
        ("extends = \"mine.toml\"\n", "mine.toml:3: extends: is \"mine.toml\", which leads back to this file"),
    ] {
        let error = refused(text, &[("mine.toml", &format!("{HEAD}{text}"))]);
        assert!(error.starts_with(message), "{text}: {error}");
    }
}

#[test]
fn a_cycle_and_too_many_files_are_refused() {
    let file = |next: &str| format!("schema = 2\nname = \"a\"\nextends = \"{next}\"\n");
    let error = refused("extends = \"a.toml\"\n", &[("a.toml", &file("b.toml")), ("b.toml", &file("a.toml"))]);
    assert!(error.starts_with("b.toml:3: extends: is \"a.toml\", which leads back to this file"), "{error}");
    let chain = |count: usize| {
        let names: Vec<String> = (0..=count).map(|at| format!("{at}.toml")).collect();
        let texts: Vec<String> =
            (0..count).map(|at| if at + 1 == count { file("card-gen5-x16") } else { file(&names[at + 1]) }).collect();
        let others: Vec<(&str, &str)> =
            names.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
        draft("extends = \"0.toml\"\n", &others).map(|_| ())
    };
    // The file itself, 30 in between and the preset are 32.
    chain(30).unwrap();
    let error = chain(31).unwrap_err().to_string();
    assert!(error.contains("a platform consists of at most 32 files"), "{error}");
}

#[test]
fn a_problem_names_the_file_section_and_key_where_it_is() {
    let base = "schema = 2\nname = \"base\"\nextends = \"card-gen5-x16\"\n\n[link]\nwidth = 3\n";
    let error = refused("extends = \"base.toml\"\n[dma]\ntags = 0\n", &[("base.toml", base)]);
    let lines: Vec<&str> = error.lines().collect();
    assert!(lines[0].starts_with("mine.toml:5: dma.tags: is a bare 0"), "{error}");
    assert!(lines[1].starts_with("base.toml:6: link.width: unknown key; its name must end in the unit"), "{error}");
    let error = refused("extends = \"base.toml\"\n", &[("base.toml", "schema = 2\nname = \"a\nb\"\n")]);
    assert!(error.starts_with("base.toml:2: not TOML"), "{error}");
    // A limit of the specification, in a section of which the other keys are inherited.
    let error = refused("extends = \"card-gen5-x16\"\n[endpoint]\nsource = \"x\"\ncompletion_timeout_ns = 1\n", &[]);
    let said = "mine.toml:6: endpoint.completion_timeout_ns: is 1 ns; no requester gives up before 50000 ns";
    assert!(error.starts_with(said), "{error}");
}

#[test]
fn typos_in_a_replaced_section_of_a_base_are_refused() {
    let base = |more: &str| format!("schema = 2\nname = \"base\"\nextends = \"card-gen5-x16\"\n{more}");
    for (section, own, says) in [
        ("[memory]\nsource = \"x\"\nread_n = 3\n", "host = \"xeon-spr\"", "base.toml:6: memory.read_n: unknown key"),
        ("[memory]\nsource = \"x\"\nread_ns = -3\n", "host = \"xeon-spr\"", "base.toml:6: memory.read_ns: is -3"),
        ("[dma]\nsource = \"x\"\ntag = 3\n", "card = \"gpu-h100\"", "base.toml:6: dma.tag: unknown key"),
        (
            "[[slot]]\nname = \"a\"\nbelow = \"root\"\nshift = 3\n",
            "[[slot]]\nname = \"b\"\nbelow = \"root\"",
            "base.toml:7: slot.shift: unknown key",
        ),
        ("memory = 3\n", "host = \"xeon-spr\"", "base.toml:4: memory: must be a section [memory]"),
    ] {
        let error = refused(&format!("extends = \"base.toml\"\n{own}\n"), &[("base.toml", &base(section))]);
        assert!(error.starts_with(says), "{section}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let right = base("[memory]\nsource = \"x\"\nread_ns = { unknown = \"later\" }\n");
    let draft = draft("extends = \"base.toml\"\nhost = \"xeon-spr\"\n", &[("base.toml", &right)]).unwrap();
    assert_eq!(draft.unknowns(), [], "a replaced number is not needed");
}

#[test]
fn a_rule_that_an_inherited_value_breaks_names_its_file() {
    let text = "extends = \"card-gen5-x16\"\n[link]\nsource = \"x\"\nmps_bytes = 4096\nposted_data_credits = 8\n";
    let error = refused(text, &[]);
    assert!(error.contains("mine.toml:7: link.posted_data_credits"), "{error}");
    let text = "extends = \"card-gen5-x16\"\n[[bar]]\nsource = \"x\"\nindex = 0\naddress_bytes = 0x20010000000\n\
        size_bytes = \"64KiB\"\nprefetchable = false\n";
    let error = refused(text, &[]);
    assert!(error.contains("mine.toml:3: region.memory"), "{error}");
    assert!(error.contains("(the value is from card-gen5-x16; write the key in this file to change it)"), "{error}");
}

#[test]
fn a_missing_section_says_which_key_can_name_its_file() {
    let error = refused("host = \"xeon-spr\"\n", &[]);
    assert!(error.contains("the section [link] is missing") || error.contains("link."), "{error}");
    assert!(
        error.contains("endpoint: the section [endpoint] is missing; name a file that has it: card = \"...\""),
        "{error}"
    );
    let error = refused("card = \"gpu-h100\"\n", &[]);
    assert!(error.contains("core: the section [core] is missing; name a file that has it: host = \"...\""), "{error}");
}

#[test]
fn host_and_card_files_have_their_own_sections_only() {
    let host = "schema = 2\nname = \"h\"\nsummary = \"h\"\n[dma]\nsource = \"x\"\ntags = 1\n";
    let error = refused("host = \"h.toml\"\ncard = \"gpu-h100\"\n", &[("h.toml", host)]);
    assert!(error.contains("h.toml:4: dma: unknown key; known here: schema, name, summary, extends, core"), "{error}");
    let card = "schema = 2\nname = \"c\"\nhost = \"xeon-spr\"\nextends = \"gpu-h100\"\n";
    let error = refused("host = \"xeon-spr\"\ncard = \"c.toml\"\n", &[("c.toml", card)]);
    assert!(error.contains("c.toml:3: host: unknown key"), "{error}");
}

#[test]
fn a_link_trains_at_the_lesser_of_host_and_card_unless_the_file_states_it() {
    let of = |text: &str| read(text, &[]).unwrap().link;
    let pair = of("host = \"epyc-milan\"\ncard = \"gpu-h100\"\n");
    assert_eq!((pair.generation.value, pair.width_lanes.value), (4, 16));
    assert!(matches!(&pair.generation.origin, Origin::Inherited { from, .. } if from == "epyc-milan"));
    assert!(matches!(&pair.width_lanes.origin, Origin::Inherited { from, .. } if from == "gpu-h100"));
    let slow = of("host = \"epyc-genoa\"\ncard = \"nvme-gen4\"\n");
    assert_eq!((slow.generation.value, slow.width_lanes.value), (4, 4));
    let stated =
        of("host = \"epyc-milan\"\ncard = \"gpu-h100\"\n[link]\nsource = \"lspci\"\ngeneration = 3\nwidth_lanes = 8\n");
    assert_eq!((stated.generation.value, stated.width_lanes.value), (3, 8));
    // Another host or card of a base.
    let moved = of("extends = \"card-gen5-x16\"\nhost = \"epyc-milan\"\n");
    assert_eq!((moved.generation.value, moved.mps_bytes.value), (4, 512));
    let base = "schema = 2\nname = \"b\"\nhost = \"epyc-milan\"\ncard = \"nvme-gen4\"\n";
    let other = read("extends = \"b.toml\"\ncard = \"gpu-h100\"\n", &[("b.toml", base)]).unwrap();
    assert_eq!(
        (other.link.generation.value, other.link.width_lanes.value, other.core.name),
        (4, 16, "AMD EPYC 7003 (Milan)".to_owned())
    );
    // The replaced host of a base limits nothing.
    let base = "schema = 2\nname = \"b\"\nhost = \"xeon-icelake\"\ncard = \"gpu-h100\"\n";
    let other = read("extends = \"b.toml\"\nhost = \"xeon-spr\"\n", &[("b.toml", base)]).unwrap();
    assert_eq!(other.link.generation.value, 5);
}

#[test]
fn a_draft_says_which_of_two_ends_holds() {
    let lesser =
        |text: &str| -> Vec<String> { draft(text, &[]).unwrap().lesser().iter().map(ToString::to_string).collect() };
    let pair = "host = \"epyc-milan\"\ncard = \"gpu-h100\"\n";
    let said = lesser(pair);
    let generation = "link.generation = 4 holds, from epyc-milan: the lower one; gpu-h100 supports 5";
    assert!(said.iter().any(|line| line == generation), "{said:?}");
    let own = |generation: u32| lesser(&format!("{pair}[link]\nsource = \"x\"\ngeneration = {generation}\n"));
    let as_stated = "link.generation = 5 holds, as stated in this file, although epyc-milan supports 4 only";
    assert!(own(5).iter().any(|line| line.starts_with(as_stated)), "{:?}", own(5));
    assert!(!own(4).iter().any(|line| line.contains("generation")), "{:?}", own(4));
    assert_eq!(lesser("extends = \"card-gen5-x16\"\n"), Vec::<String>::new());
}

#[test]
fn a_host_replaces_every_section_of_the_host_of_a_base() {
    let mine = read("extends = \"card-gen5-x16-iommu\"\nhost = \"epyc-milan\"\n", &[]).unwrap();
    assert_eq!(mine.iommu, None);
    assert_eq!(mine.endpoint.name, "Gen5 x16 accelerator");
    let own = read("extends = \"card-gen5-x16-iommu\"\n[iommu]\nsource = \"x\"\nwalkers = 2\n", &[]).unwrap();
    let iommu = own.iommu.unwrap();
    assert_eq!((iommu.walkers.value, iommu.iotlb_entries.value), (2, 512));
}

#[test]
fn every_host_with_every_card_is_a_platform_that_round_trips() {
    assert!(HOSTS.len() >= 5 && CARDS.len() >= 5);
    for host in HOSTS {
        for card in CARDS {
            let platform =
                host_with_card(host.name, card.name).unwrap().complete().unwrap_or_else(|error| panic!("{error}"));
            let own = platform.origins().own;
            assert_eq!((own.given, own.fitted), (0, 0), "{}", platform.name);
            let mut json = platform.to_json();
            remove_inherited_from(&mut json);
            let text = toml::to_string(&json).unwrap();
            let back = Platform::parse("back", &text).unwrap_or_else(|error| panic!("{}: {error}", platform.name));
            let (own, inherited) = (platform.origins().own, platform.origins().inherited);
            let of_file = back.origins().own;
            assert_eq!(of_file.total(), platform.origins().total());
            assert_eq!((of_file.given, of_file.fitted), (own.given + inherited.given, own.fitted + inherited.fitted));
        }
    }
}

#[test]
fn an_inherited_unknown_number_is_filled_in_the_file_itself() {
    let base = PRESETS[0].text.replace("latency_ns = { value = 120, assumed", "latency_ns = { unknown");
    for own in ["", "\n[link]\nsource = \"lspci\"\nwidth_lanes = 8"] {
        let draft = draft(&format!("extends = \"base.toml\"\n{own}"), &[("base.toml", &base)]).unwrap();
        assert_eq!((draft.unknowns()[0].key.as_str(), draft.unknowns()[0].line), ("link.latency_ns", 3));
        assert_eq!(draft.origins().inherited.unknown, 1);
        let filled = draft.fill("link.latency_ns", 118.5, &Origin::Given("a scope".to_owned())).unwrap();
        assert!(filled.text().contains("latency_ns = { value = 118.5, source = \"a scope\" }"));
        assert_eq!(filled.complete().unwrap().link.latency_ns.value.as_ns(), 118.5);
    }
}

/// Removes from the JSON of a platform what a file cannot state.
fn remove_inherited_from(json: &mut serde_json::Value) {
    match json {
        serde_json::Value::Object(table) => {
            table.remove("inherited_from");
            table.values_mut().for_each(remove_inherited_from);
        }
        serde_json::Value::Array(list) => list.iter_mut().for_each(remove_inherited_from),
        _ => {}
    }
}
