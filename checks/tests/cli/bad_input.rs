//! Bad input: exit code 2, a message that says what would be right, and nothing written.

use crate::folder::{Folder, card, card_with, small};
use lanemark_record::Record;
use std::process::Command;

/// Runs a command that must be refused with all of `hints`, and must leave the folder as it was.
fn refused(folder: &Folder, arguments: &[&str], hints: &[&str]) {
    let before = folder.content();
    let outcome = folder.run(arguments);
    assert_eq!(outcome.code, Some(2), "{arguments:?}: {}{}", outcome.out, outcome.err);
    assert_eq!(outcome.out, "", "{arguments:?}: nothing is found, so nothing is printed");
    for hint in hints {
        assert!(outcome.err.contains(hint), "{arguments:?} does not say '{hint}' but: {}", outcome.err);
    }
    assert!(folder.content() == before, "{arguments:?} changed the folder");
}

#[test]
fn wrong_arguments_are_refused() {
    let folder = Folder::new();
    refused(&folder, &[], &["Usage"]);
    refused(&folder, &["benhc"], &["bench"]);
    let drive = ["bench", "--on", "card-gen5-x16"];
    refused(
        &folder,
        &[&drive[..], &["--nvme-queues", "CMB"]].concat(),
        &["is not a place of the submission queue", "host, cmb"],
    );
    refused(&folder, &[&drive[..], &["--vfio", "groups"]].concat(), &["an interface of VFIO", "container, iommufd"]);
    for option in [
        ["--vfio", "iommufd"],
        ["--nvme-queues", "host"],
        ["--nvme-data", "sgl"],
        ["--nvme-data-place", "cmb"],
        ["--nvme-completions", "interrupt"],
        ["--namespace", "2"],
        ["--destructive", "1"],
    ] {
        refused(&folder, &[&drive[..], &option].concat(), &[option[0], "applies to cards only"]);
    }
    refused(&folder, &["fit"], &["PAPER"]);
    refused(&folder, &["report"], &["RECORD"]);
    refused(&folder, &["schema"], &["platform", "record"]);
    refused(&folder, &["schema", "nonsense"], &["platform", "record"]);
    refused(&folder, &["fit", "nonsense"], &["nonsense", "tacc-tr-14-10", "aws-f1-write-combining"]);
    refused(&folder, &["reproduce", "nonsense"], &["nonsense", "tacc-tr-14-10", "aws-f1-write-combining"]);
    refused(&folder, &["reproduce", "tacc"], &["did you mean tacc-tr-14-10?"]);
    let fit = ["fit", "tacc-tr-14-10", "--on", "card-gen5-x16"];
    refused(&folder, &fit, &["--on is for records and tables"]);
    refused(&folder, &["predict", "--on", "host"], &["'host' has no formula", "name a platform"]);
}

#[test]
fn wrong_targets_are_refused() {
    let folder = Folder::with(&[("copy.toml", card().as_bytes())]);
    for verb in ["bench", "predict"] {
        refused(&folder, &[verb, "--on", "nowhere"], &["'nowhere'", "card-gen5-x16", "host", "No such file"]);
        refused(&folder, &[verb, "--on", ""], &["is not a target"]);
        refused(&folder, &[verb, "--on", "."], &["directory"]);
        let twice = "two targets are called 'card-gen5-x16'";
        refused(&folder, &[verb, "--on", "card-gen5-x16", "--on", "card-gen5-x16"], &[twice]);
        refused(&folder, &[verb, "--on", "card-gen5-x16", "--on", "copy.toml"], &[twice]);
    }
}

#[test]
fn wrong_choices_are_refused_and_the_right_ones_told() {
    let folder = Folder::new();
    let choices: [(&str, &str, &[&str]); 26] = [
        ("--question", "mmio_write", &["'mmio_write' is not a question", "mmio_write_bandwidth"]),
        ("--question", "dma_read", &["did you mean dma_read_latency, dma_read_bandwidth or dma_read_write_mix?"]),
        ("--question", "zz", &["'zz' is not a question: use one of mmio_write_bandwidth"]),
        ("--with", "link.mps=256", &["link.mps", "did you mean link.mps_bytes?"]),
        ("--with", "lnik.mps_bytes=256", &["did you mean link.mps_bytes"]),
        ("--access", "nt3", &["'nt3'", "nt8", "memcpy"]),
        ("--access", "8,", &["''", "memcpy"]),
        ("--fence", "wall", &["'wall'", "sfence", "none"]),
        ("--memory-type", "wx", &["'wx'", "uc, wc, wt, wp or wb"]),
        ("--region", "attic", &["--region attic", "registers, memory"]),
        ("--align", "64", &["64 is not below 64"]),
        ("--align", "4KiB", &["4096 is too large"]),
        ("--window", "0", &["a window of 0 bytes"]),
        ("--stride", "0", &["a stride of 0 bytes"]),
        ("--sizes", "4..4M*1", &["the factor '1' must be at least 2"]),
        ("--sizes", "-1", &["'-1' is not a size"]),
        ("--align", "-1", &["'-1' is not a size"]),
        ("--budget", "-1", &["from 0 to 86400"]),
        ("--interval", "-2", &["a percentage above 0"]),
        ("--flows", "9:host", &["--flows 9:host: card-gen5-x16 has 1 card: 0"]),
        ("--window", "1008MiB", &["--window: 1056964608 B exceed", "at most 528482304"]),
        ("--outstanding", "0", &["from 1 to 65536"]),
        ("--channels", "65", &["from 1 to 64"]),
        ("--align", "x", &["'x' is not a size"]),
        ("--interval", "0", &["an interval of 0 % is never reached"]),
        ("--interval", "0%", &["a width above 0, such as 2"]),
    ];
    for (option, value, hints) in choices {
        refused(&folder, &["bench", "--on", "card-gen5-x16", option, value], hints);
    }
}

#[test]
fn a_write_that_would_do_nothing_is_refused_with_what_there_is() {
    let folder = Folder::new();
    let writes: [(&str, &[&str]); 9] = [
        ("05:00.0", &["is no write to a register", "04:00.0+CAP_EXP+8.w=20:e0"]),
        ("05:00.0+CAP_EXP+8.l=20:e0", &["is no write to a register"]),
        ("0f:00.0+CAP_EXP+8.w=20:e0", &["there is no such function", "05:00.0 (fpga0)"]),
        ("05:00.0+CAP_EXP+10.w=20:e0", &["is another register", "Device Control"]),
        ("05:00.0+CAP_EXP+8.w=20", &["it would change other bits", "mask e0"]),
        ("04:00.0+ECAP_ACS+6.w=c:c", &["it would change other bits", "ECAP_ACS+6.w, mask 4"]),
        ("00:01.0+ECAP_ACS+6.w=4:4", &["only downstream ports of switches, SWITCH/BELOW, can redirect"]),
        ("05:00.0+CAP_EXP+8.w=40:e0", &["port fpga0 supports 256 B and not 512"]),
        ("00:01.0+CAP_EXP+8.w=20:e0", &["port root/rha25 supports 128 B and not 256"]),
    ];
    for (write, hints) in writes {
        for command in ["bench", "predict", "lspci"] {
            refused(&folder, &[command, "--on", "rosta-virtex7", "--setpci", write], hints);
        }
    }
    let real = ["bench", "--on", "host", "--setpci", "05:00.0+CAP_EXP+8.w=20:e0"];
    refused(&folder, &real, &["'host' is no simulated platform", "use setpci"]);
    let rehearsed = ["bench", "--on", "0000:01:00.0", "--bar", "0:0..4KiB", "--dry-run", "--setpci", real[4]];
    refused(&folder, &rehearsed, &["--setpci"]);
    refused(&folder, &["lspci", "--on", "host"], &["'host' is no simulated platform", "name a built-in platform"]);
    refused(&folder, &["bench", "--on", "card-gen5-x61"], &["did you mean card-gen5-x16 or"]);
    refused(&folder, &["bench", "--on", "hip:0"], &["'hip:0' is not a target", "card-gen5-x16", "cuda:0"]);
}

#[test]
fn a_changed_number_is_checked_as_in_a_file_and_real_machines_have_none() {
    let folder = Folder::new();
    let changes: [(&str, &[&str]); 8] = [
        ("link.mps_bytes", &["write KEY=VALUE"]),
        ("link.mps_bytes=much", &["is much; must be one of 128"]),
        ("link.skp=1", &["link.skp: is 1; must be true or false"]),
        ("link.ordering=always", &["link.ordering: is always; must be one of \"never\", \"blocked\", \"random\""]),
        ("fifos.rx_bytes=64KiB", &["no section [fifos], which takes ep_rx, rx_bytes"]),
        ("link.mpsbytes=256", &["link.mpsbytes", "there is no such number"]),
        ("link.mps_bytes=64", &["link.mps_bytes", "must be one of 128"]),
        ("memory.size_bytes=63", &["memory.size_bytes"]),
    ];
    for (change, hints) in changes {
        for command in ["bench", "predict"] {
            refused(&folder, &[command, "--on", "card-gen5-x16", "--with", change], hints);
        }
        let trace = ["trace", "--on", "card-gen5-x16", "--question", "dma_read_bandwidth", "--with", change];
        refused(&folder, &trace, hints);
    }
    refused(&folder, &["bench", "--on", "host", "--with", "link.mps_bytes=128"], &["'host' is no simulated platform"]);
    let twice = ["bench", "--on", "card-gen5-x16", "--with", "link.mps_bytes=128", "--with", "link.mps_bytes=256"];
    refused(&folder, &twice, &["--with link.mps_bytes", "is given twice, as 128 and as 256"]);
}

#[test]
fn a_fault_is_one_of_its_kinds_at_a_port_that_is_there_and_simulated() {
    let folder = Folder::new();
    let faults: [(&str, &[&str]); 7] = [
        ("link_down@card:3+0ns", &["'+0ns' is not allowed: omit it for a link that stays down"]),
        ("poisoned", &["'poisoned' is not a valid fault", "it does not name a port after @", "poisoned@card:3"]),
        ("broken@card", &["kinds are unsupported_request, completer_abort,"]),
        ("completer_abort@card:x", &["'x' is neither a TLP number nor a time in ns"]),
        (
            "completer_abort@crad",
            &["fault.completer_abort@crad.port: is \"crad\", not a port of this platform; its ports: root/card, card"],
        ),
        ("completer_abort@card:0", &["its tlp must be a whole number from 1"]),
        ("no_completion@card:1+5ns", &["down_ns: applies to link_down only, but this is no_completion"]),
    ];
    for (fault, hints) in faults {
        refused(&folder, &["bench", "--on", "card-gen5-x16", "--fault", fault], hints);
        let trace = ["trace", "--on", "card-gen5-x16", "--question", "dma_read_bandwidth", "--fault", fault];
        refused(&folder, &trace, hints);
    }
    refused(&folder, &["bench", "--on", "host", "--fault", "no_completion@card"], &["'host' is no simulated platform"]);
    for change in [["--fault", "no_completion@card"], ["--with", "link.skp=true"]] {
        let hints = [
            "'host' is no simulated platform",
            "it is a default target: add --on PLATFORM, such as --on card-gen5-x16",
        ];
        refused(&folder, &[&["bench"][..], &change].concat(), &hints);
    }
    refused(
        &folder,
        &["predict", "--on", "card-gen5-x16", "--fault", "no_completion@card"],
        &["formulas do not model faults"],
    );
}

#[test]
fn a_window_may_be_all_that_is_lent_and_no_more() {
    let folder = Folder::new();
    let asked = ["predict", "--on", "card-gen5-x16", "--question", "dma_read_bandwidth", "--sizes", "4KiB", "--window"];
    folder.good(&[&asked[..], &["1056964608"]].concat());
    refused(&folder, &[&asked[..], &["1056964609"]].concat(), &["exceed the DMA-mapped memory", "at most 1056964608"]);
    refused(&folder, &[&asked[..], &["2KiB"]].concat(), &["--sizes: 4096 B exceed the window", "at most 2048"]);
}

#[test]
fn wrong_sizes_are_refused() {
    let folder = Folder::new();
    let sizes: [(&str, &[&str]); 13] = [
        ("", &["the size list is empty"]),
        (" ", &["the size list is empty"]),
        (",", &["is not a size"]),
        ("..", &["is not a size"]),
        ("64..", &["is not a size"]),
        ("4KiB..64", &["not in ascending order"]),
        ("64,32", &["not in ascending order"]),
        ("64,64", &["not in ascending order"]),
        ("0", &["a size of 0 bytes is not allowed"]),
        ("64..1KiB*1", &["must be at least 2"]),
        ("4Q", &["'4Q' is not a size", "4KiB"]),
        ("99999999999999999999", &["larger than any address space"]),
        ("18446744073709551615", &["exceed the DMA-mapped memory", "at most 1056964608"]),
    ];
    for (list, hints) in sizes {
        refused(&folder, &["bench", "--on", "card-gen5-x16", "--sizes", list], hints);
    }
    refused(
        &folder,
        &[
            "predict",
            "--on",
            "card-gen5-x16",
            "--sizes",
            "256MiB",
            "--align",
            "63",
            "--question",
            "mmio_write_bandwidth",
        ],
        &["at most 268435393"],
    );
    refused(
        &folder,
        &small("bench", "card-gen5-x16", &["--sizes", "64KiB,128KiB"]),
        &["region registers", "at most 65536"],
    );
    refused(&folder, &["bench", "--on", "aws-f1", "--on", "card-gen5-x16", "--sizes", "1TiB"], &["of aws-f1"]);
}

#[test]
fn files_that_cannot_be_written_are_refused_before_the_work() {
    let folder = Folder::with(&[("mine.toml", card().as_bytes()), ("r.json", b"old")]);
    std::fs::create_dir(folder.path("folder")).unwrap();
    for option in ["--record", "--html"] {
        // Every question: were it asked first, this would take a while.
        let on = ["bench", "--on", "mine.toml"];
        let refuse = |file: &str, hint: &str| refused(&folder, &[&on[..], &[option, file]].concat(), &[file, hint]);
        refuse("no/such/r", "cannot be written");
        refuse("folder", "is a directory");
        refuse(".", "is a directory");
        refuse("mine.toml", "would overwrite mine.toml");
        refuse("folder/../mine.toml", "would overwrite mine.toml");
    }
    #[cfg(target_os = "linux")]
    refused(&folder, &["bench", "--on", "mine.toml", "--record", "/proc/r.json"], &["/proc/r.json cannot be written"]);
    refused(&folder, &["bench", "--on", "mine.toml", "--record", "x", "--html", "x"], &["would overwrite x"]);
    refused(&folder, &["report", "r.json"], &["r.json"]);
}

#[test]
fn every_problem_of_a_platform_file_is_told_at_once() {
    let broken = card_with(&[
        ("width_lanes = { value = 16", "width_lanes = { value = 3"),
        ("latency_ns = { value = 120", "latency_ns = { value = -120"),
        ("ingress_ns =", "ingress ="),
        ("size_bytes = { value = \"256MiB\"", "size_bytes = { value = 0"),
        (
            "mps_bytes = { value = 512, assumed = \"the maximum of server root ports of that generation\" }",
            "mps_bytes = 512",
        ),
    ]);
    let folder = Folder::with(&[("broken.toml", broken.as_bytes())]);
    let line = |key: &str| {
        let at = broken.lines().position(|line| line.starts_with(key)).unwrap() + 1;
        format!("broken.toml:{at}: ")
    };
    for verb in ["bench", "predict"] {
        refused(
            &folder,
            &[verb, "--on", "broken.toml"],
            &[
                &format!("{}link.width_lanes: is 3; must be one of", line("width_lanes")),
                &format!("{}link.latency_ns: is -120; must be nanoseconds", line("latency_ns")),
                "endpoint.ingress: unknown key; its name must end in the unit: ingress_ns",
                "endpoint.ingress_ns: is missing",
                "bar.2.size_bytes: is 0",
                &format!("{}link.mps_bytes: is a bare 512", line("mps_bytes")),
            ],
        );
    }
}

#[test]
fn what_is_no_platform_file_is_refused() {
    let newer = card_with(&[("schema = 2", "schema = 3")]);
    let files: [(&str, &[u8], &[&str]); 6] = [
        ("empty.toml", b"", &["empty.toml", "is missing"]),
        ("prose.toml", b"this is\nno TOML", &["prose.toml:1: not TOML"]),
        ("latin.toml", b"schema = 2\nname = \"\xe9\"\n", &["latin.toml:2: byte 19 is not UTF-8"]),
        ("zeros.toml", &[0; 4096], &["zeros.toml:1"]),
        ("json.toml", b"{\"schema\": 1}\n", &["'json.toml' is JSON, such as a record"]),
        ("newer.toml", newer.as_bytes(), &["newer.toml:2: schema: is 3; this program reads up to 2"]),
    ];
    for (name, bytes, hints) in files {
        refused(&Folder::with(&[(name, bytes)]), &["bench", "--on", name], hints);
    }
}

#[test]
fn what_never_ends_is_not_read() {
    let folder = Folder::new();
    let made = Command::new("mkfifo").arg(folder.path("pipe")).status();
    assert!(made.is_ok_and(|status| status.success()));
    for file in ["pipe", "/dev/zero", "/dev/stdin"] {
        refused(&folder, &["bench", "--on", file], &["use a regular file"]);
        refused(&folder, &["report", file], &["use a regular file"]);
        let fit = ["fit", file, "--on", "card-gen5-x16", "--parameter", "link.latency_ns"];
        refused(&folder, &fit, &["use a regular file"]);
    }
    for option in ["--record", "--csv", "--html", "--svg", "--samples"] {
        let bench = ["bench", "--on", "card-gen5-x16", option, "pipe"];
        refused(&folder, &bench, &["pipe cannot be written: it is a pipe, a socket or a block device"]);
    }
    // A hole: it takes no room, and would take some to read.
    let folder = Folder::new();
    let huge = |name: &str, len| std::fs::File::create(folder.path(name)).unwrap().set_len(len).unwrap();
    huge("huge.toml", (4 << 20) + 1);
    let outcome = folder.run(&["bench", "--on", "huge.toml"]);
    assert!(outcome.code == Some(2) && outcome.err.contains("it is larger than 4MiB"), "{}", outcome.err);
    huge("huge.json", (256 << 20) + 1);
    let outcome = folder.run(&["report", "huge.json"]);
    assert!(outcome.code == Some(2) && outcome.err.contains("it is larger than 256MiB"), "{}", outcome.err);
}

#[test]
fn impossible_figures_are_refused_before_they_are_compared_or_reported() {
    let folder = Folder::new();
    folder.good(&small("bench", "card-gen5-x16", &["--json", "--record", "good.json"]));
    for (figure, what) in [(-5.0, "-5.0, below 0"), (1e308, "1e308, above 1e18")] {
        let mut record = lanemark_record::read(&folder.path("good.json")).unwrap();
        let answer = &mut record.answers[0];
        for summary in [&mut answer.latency_ns, &mut answer.delivered_rate_bytes_per_s].into_iter().flatten() {
            summary.median = figure;
        }
        lanemark_record::write(&record, &folder.path("bad.json")).unwrap();
        let hints = ["bad.json: ", " on card-gen5-x16, ", "median of '", what, "measure again"];
        let compare = ["compare", "good.json", "bad.json"];
        for command in [&["report", "bad.json"][..], &["report", "good.json", "bad.json"], &compare] {
            refused(&folder, command, &hints);
        }
        let check = folder.run(&["check", "bad.json"]);
        assert!(check.code == Some(1) && check.err.contains("(rule 'units')"), "{}", check.err);
        std::fs::remove_file(folder.path("bad.json")).unwrap();
    }
}

#[test]
fn the_log_of_a_sweep_is_recognised_by_its_content_and_an_empty_one_is_refused() {
    let space =
        "schema = 1\nplatforms = [\"card-gen5-x16\"]\n[[question]]\nname = \"dma_read_latency\"\nsizes = \"64,4K\"\n";
    let folder = Folder::with(&[("space.toml", space.as_bytes()), ("empty.jsonl", b""), ("cut.log", b"{\"key\":\"0")]);
    folder.good(&["sweep", "space.toml", "--log", "points.log"]);
    folder.good(&["report", "points.log"]);
    refused(&folder, &["report", "points.log", "empty.jsonl"], &["points.log is the log of a sweep", "name it alone"]);
    std::fs::remove_file(folder.path("report.html")).unwrap();
    for log in ["empty.jsonl", "cut.log"] {
        refused(
            &folder,
            &["report", log],
            &["has no points", &format!("run `lanemark sweep SPACE --log {log}` first")],
        );
    }
}

#[test]
fn what_is_no_record_is_refused() {
    let folder = Folder::new();
    let record = folder.good(&small("predict", "card-gen5-x16", &["--json"]));
    let newer = record.replacen("\"schema\": 4", "\"schema\": 5", 1);
    let older = record.replacen("\"schema\": 4", "\"schema\": 2", 1);
    let alien = record.replacen("\"interrupted\"", "\"interupted\"", 1);
    let files: [(&str, &[u8], &[&str]); 7] = [
        ("half.json", &record.as_bytes()[..record.len() / 2], &["half.json: line", "EOF"]),
        ("newer.json", newer.as_bytes(), &["newer.json: key 'schema', line 2", "schema 5", "reads 4"]),
        (
            "older.json",
            older.as_bytes(),
            &["older.json: key 'schema', line 2", "schema 2", "run `lanemark bench` again"],
        ),
        ("alien.json", alien.as_bytes(), &["alien.json: line", "interupted"]),
        ("empty.json", b"", &["empty.json: line 1"]),
        ("latin.json", b"{\n\"\xe9\"", &["latin.json: line 2", "not UTF-8"]),
        ("other.json", b"[1, 2]", &["other.json: line 1"]),
    ];
    for (name, bytes, hints) in files {
        let folder = Folder::with(&[(name, bytes), ("report.html", b"the last good one")]);
        refused(&folder, &["report", name], hints);
        refused(&folder, &["fit", name, "--on", "card-gen5-x16", "--parameter", "link.latency_ns"], hints);
    }
    let folder = Folder::with(&[("good.json", record.as_bytes())]);
    refused(&folder, &["report", "missing.json"], &["missing.json", "No such file"]);
    refused(&Folder::new(), &["report", "."], &["record"]);
    let svg = ["report", "good.json", "good.json", "--svg", "plot.svg"];
    refused(&folder, &svg, &["--svg plot.svg", "that of one record, and 2 are given"]);
    refused(&folder, &["report", "good.json", "log.jsonl"], &["log.jsonl is the log of a sweep", "name it alone"]);
    refused(&folder, &["report", "log.jsonl"], &["log.jsonl", "No such file"]);
    refused(&folder, &["fit", "good.json"], &["--on PLATFORM --parameter KEY"]);
    let fit = |key| ["fit", "good.json", "--on", "card-gen5-x16", "--parameter", key];
    refused(&folder, &fit("link.one_way"), &["link.one_way", "root_complex.core_round_trip_ns"]);
    refused(&folder, &["report", "good.json", "--html", "good.json"], &["would overwrite good.json"]);
    refused(&folder, &["report", "good.json", "--html", "no/such/folder.html"], &["cannot be written"]);
}

/// File names are bytes: one that is not UTF-8 is written and read like any other.
#[cfg(unix)]
#[test]
fn file_names_that_are_not_utf_8_are_names_like_others() {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let name = |extension: &str| OsString::from_vec([b"r\xff", extension.as_bytes()].concat());
    let with = |arguments: &[&str], last: OsString| -> Vec<OsString> {
        arguments.iter().map(OsString::from).chain([last]).collect()
    };
    let folder = Folder::new();
    let small = small("bench", "card-gen5-x16", &[]);
    let trace = ["trace", "--on", "card-gen5-x16", "--question", "mmio_read_latency", "--output"];
    let written: [(Vec<&str>, &str); 6] = [
        ([&small[..], &["--json", "--record"]].concat(), ".json"),
        ([&small[..], &["--html"]].concat(), ".html"),
        ([&small[..], &["--json", "--samples"]].concat(), ".parquet"),
        (trace.to_vec(), ".txt"),
        (trace.to_vec(), ".pcapng"),
        (vec!["lspci", "--output"], ".lspci"),
    ];
    for (arguments, extension) in written {
        let outcome = folder.run(&with(&arguments, name(extension)));
        assert_eq!(outcome.code, Some(0), "{arguments:?}: {}", outcome.err);
        assert!(folder.path("").join(name(extension)).is_file(), "{arguments:?}");
    }
    let read: [(&[&str], &str); 4] = [
        (&["report"], ".json"),
        (&["trace", "--read"], ".pcapng"),
        (&["doctor", "--from"], ".lspci"),
        (&["report", "--html", "again.html"], ".json"),
    ];
    for (arguments, extension) in read {
        let outcome = folder.run(&with(arguments, name(extension)));
        assert_eq!(outcome.code, Some(0), "{arguments:?}: {}", outcome.err);
        let missing = folder.run(&with(arguments, OsString::from_vec(b"no\xff".to_vec())));
        assert_eq!(missing.code, Some(2), "{arguments:?}: {}", missing.err);
    }
    let record = std::fs::read(folder.path("").join(name(".json"))).unwrap();
    let record: Record = serde_json::from_slice(&record).unwrap();
    assert_eq!(record.command.last().map(String::as_str), Some("r\u{fffd}.json"));
    assert!(name(".json").as_bytes().contains(&0xff));
}
