//! `import`: the output of other tools as records, and what is said about their figures.

use crate::folder::Folder;
use lanemark_checks::root;
use lanemark_record::{ImportFindingKind, Record};

fn sample(name: &str) -> Vec<u8> {
    let path = root().join("records/samples").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A folder with the sample as `out.txt`, and the listing of a machine as `lspci.txt`.
fn folder(name: &str, listing: &str) -> Folder {
    let listing = std::fs::read(root().join("checks/tests/inventory/listings").join(listing)).unwrap();
    Folder::with(&[("out.txt", &sample(name)), ("lspci.txt", &listing)])
}

fn written(folder: &Folder) -> Record {
    lanemark_record::read(&folder.path("r.json")).unwrap()
}

fn kinds(record: &Record) -> Vec<ImportFindingKind> {
    record.imported.as_ref().unwrap().findings.iter().map(|finding| finding.kind).collect()
}

#[test]
fn every_sample_becomes_a_record_that_conforms_to_the_schema() {
    let schema = serde_json::from_str(&lanemark_record::schema()).unwrap();
    let schema = jsonschema::draft202012::new(&schema).unwrap();
    let mut count = 0;
    for entry in std::fs::read_dir(root().join("records/samples")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name == "README.md" {
            continue;
        }
        count += 1;
        let folder = Folder::with(&[(&name, &sample(&name))]);
        folder.good(&["import", &name, "-o", "r.json"]);
        schema
            .validate(&serde_json::from_slice(&folder.content()["r.json"]).unwrap())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let record = written(&folder);
        assert_eq!(record.imported.as_ref().unwrap().file, name);
        assert!(record.warnings[0].contains("imported from the output of "), "{name}");
        folder.good(&["report", "r.json"]);
    }
    assert!(count >= 12, "{count}");
    let readme = String::from_utf8(sample("README.md")).unwrap();
    for entry in std::fs::read_dir(root().join("records/samples")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name == "README.md" || readme.contains(&name), "records/samples/README.md does not name {name}");
    }
}

#[test]
fn eight_gpus_beside_a_platform_have_one_slow_and_two_that_share_a_port() {
    let folder = folder("nvbandwidth-eight-gpus.txt", "gpu-alone-idle.txt");
    let text = folder.good(&["import", "out.txt", "--on", "xeon-spr+gpu-h100", "-o", "r.json"]);
    assert!(text.contains("unlike its siblings: line 22: host_to_device_memcpy_ce, GPU 5 (00000000:bb:00)"), "{text}");
    assert!(text.contains("GPU 2 (00000000:4c:00), GPU 3 (00000000:5d:00); they may share a root port"), "{text}");
    let [one, other, last] = kinds(&written(&folder)).try_into().unwrap();
    assert_eq!([one, other], [ImportFindingKind::UnlikeSiblings; 2]);
    assert_eq!(last, ImportFindingKind::SharedPort);
}

#[test]
fn two_directions_that_share_one_path_are_named() {
    let folder = folder("nvbandwidth-one-path.txt", "gpu-alone-idle.txt");
    let text = folder.good(&["import", "out.txt", "-o", "r.json"]);
    assert!(text.contains("both directions at once are 26.0 GB/s together, and one alone is 24.9 GB/s"), "{text}");
    assert!(kinds(&written(&folder)).iter().all(|kind| *kind == ImportFindingKind::SharedPort), "{text}");
}

#[test]
fn files_of_four_nodes_are_held_against_each_other_and_become_one_record() {
    let node = |rate: &str| {
        let head = "nvbandwidth Version: v0.8\n\nDevice 0: NVIDIA H100 PCIe (00000000:41:00)\n\n";
        let test = "Running host_to_device_memcpy_ce.\nmemcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n";
        format!("{head}{test}           0\n 0     {rate}\n\nSUM host_to_device_memcpy_ce {rate}\n\n")
    };
    let texts = ["54.10", "54.21", "41.02", "54.15"].map(node);
    let names = ["n1.txt", "n2.txt", "n3.txt", "n4.txt"];
    let files: Vec<(&str, &[u8])> = names.iter().zip(&texts).map(|(name, text)| (*name, text.as_bytes())).collect();
    let folder = Folder::with(&files);
    let text = folder.good(&[&["import"], &names[..], &["-o", "r.json"]].concat());
    assert!(text.starts_with("n1.txt, n2.txt, n3.txt, n4.txt: 4 figures of nvbandwidth (v0.8)"), "{text}");
    let slow = "unlike its siblings: line 8: host_to_device_memcpy_ce, n3.txt: GPU 0 (00000000:41:00)";
    assert!(text.contains(slow), "{text}");
    let record = written(&folder);
    assert_eq!(kinds(&record), [ImportFindingKind::UnlikeSiblings]);
    let imported = record.imported.unwrap();
    let devices: Vec<&str> = imported.figures.iter().map(|figure| figure.device.as_deref().unwrap()).collect();
    assert_eq!(devices, names.map(|name| format!("{name}: GPU 0 (00000000:41:00)")));
}

#[test]
fn files_of_two_tools_or_with_an_unreadable_one_among_them_are_refused() {
    let folder = Folder::with(&[
        ("one.txt", &sample("nvbandwidth-eight-gpus.txt")),
        ("two.txt", &sample("gdrcopy-copybw.txt")),
        ("three.txt", b"hello"),
    ]);
    let refused = |files: &[&str], because: &str| {
        let outcome = folder.run(&[&["import"], files].concat());
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""), "{}", outcome.err);
        assert!(outcome.err.contains(because), "{}", outcome.err);
    };
    refused(
        &["one.txt", "two.txt"],
        "one.txt is output of nvbandwidth, and two.txt of gdrcopy: import the files of each tool by themselves",
    );
    refused(&["one.txt", "three.txt"], "three.txt: its words are those of no tool, or of several");
    refused(&["one.txt", "absent.txt"], "reading absent.txt: No such file or directory");
}

#[test]
fn the_link_of_a_listing_is_the_limit_at_its_capability() {
    // The link of this idle GPU is at 2.5 GT/s, and supports 16 GT/s.
    let folder = folder("nvbandwidth-idle.json", "gpu-alone-idle.txt");
    let text = folder.good(&["import", "out.txt", "--on", "lspci.txt", "-o", "r.json"]);
    assert!(text.contains("is 93 % of the limit of Gen3 x16, and 0000:0b:00.0 has Gen4 x16, MPS 256 B"), "{text}");
    assert_eq!(kinds(&written(&folder)), [ImportFindingKind::SlowLink; 2]);
    let refused = |listing: &str| {
        let folder = self::folder("nvbandwidth-idle.json", listing);
        let outcome = folder.run(&["import", "out.txt", "--on", "lspci.txt"]);
        assert_eq!(outcome.code, Some(2), "{}", outcome.err);
        outcome.err
    };
    assert!(refused("short-listing.txt").contains("list them with sudo lspci -vvv"));
}

#[test]
fn a_figure_above_the_limit_fails_and_the_record_is_written() {
    let folder = folder("bandwidthTest-binary.csv", "gpu-alone-idle.txt");
    let outcome = folder.run(&["import", "out.txt", "--on", "lspci.txt", "-o", "r.json"]);
    assert_eq!(outcome.code, Some(1), "{}", outcome.err);
    assert!(outcome.err.contains("1 figure is above the limit of the link, which is impossible"), "{}", outcome.err);
    assert!(outcome.out.contains("are GiB and GB mixed up?"), "{}", outcome.out);
    assert_eq!(kinds(&written(&folder)), [ImportFindingKind::Units]);
    // The limit gate of every record says the same.
    assert_eq!(folder.run(&["report", "r.json"]).code, Some(1));
    assert_eq!(folder.run(&["import", "out.txt"]).code, Some(0), "without a link there is no limit");
}

#[test]
fn imported_figures_are_compared_with_the_corpus_only_and_are_no_reference() {
    let folder = folder("nvbandwidth-idle.json", "gpu-alone-idle.txt");
    folder.good(&["import", "out.txt", "-o", "r.json"]);
    let outcome = folder.run(&["check", "r.json"]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.err.contains("a figure of another tool has no samples"), "{}", outcome.err);
    assert!(folder.good(&["compare", "r.json", "--to-corpus"]).contains("(imported), 2 cases"));
    folder.good(&[
        "bench",
        "--on",
        "card-gen5-x16",
        "--question",
        "dma_read_bandwidth",
        "--sizes",
        "4K",
        "--record",
        "s.json",
    ]);
    let outcome = folder.run(&["compare", "r.json", "s.json"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.err.contains("a figure of another tool is one number"), "{}", outcome.err);
}

#[test]
fn unknown_tools_and_files_are_refused() {
    let folder = Folder::with(&[("out.txt", b"4 GB/s\n"), ("mlc.txt", &sample("mlc.txt"))]);
    for (arguments, words) in [
        (
            &["import", "out.txt"][..],
            "its words are those of no tool, or of several; name one with --from: nvbandwidth",
        ),
        (&["import", "out.txt", "--from", "iperf"][..], "use one of nvbandwidth, gdrcopy"),
        (&["import", "out.txt", "--from", "mlc"][..], "out.txt:1: no figure found: looked for "),
        (&["import", "mlc.txt", "--on", "no-such-card"][..], "no-such-card"),
        (&["import", "mlc.txt", "-o", "mlc.txt"][..], "would overwrite"),
        (&["import", "absent.txt"][..], "absent.txt"),
    ] {
        let outcome = folder.run(arguments);
        assert_eq!(outcome.code, Some(2), "{arguments:?}: {}", outcome.err);
        assert!(outcome.err.contains(words), "{arguments:?}: {}", outcome.err);
    }
    assert!(folder.good(&["import", "mlc.txt", "--json"]).contains("\"imported\""));
}
