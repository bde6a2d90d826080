//! Readers of the output of tools, on files made by hand in the formats of the tools.

use lanemark_fit::{Row, Table, Tool};

const NVBANDWIDTH: &str = include_str!("tools/nvbandwidth-by-hand.txt");
const NVBANDWIDTH_JSON: &str = include_str!("tools/nvbandwidth-by-hand.json");
const PERFTEST: &str = include_str!("tools/perftest-by-hand.txt");
const FIO: &str = include_str!("tools/fio-by-hand.json");
const DD: &str = include_str!("tools/dd-by-hand.txt");
const DMA_TO_DEVICE: &str = include_str!("tools/dma_to_device-by-hand.txt");

/// Every tool with its files.
const ALL: [(Tool, &str); 6] = [
    (Tool::Nvbandwidth, NVBANDWIDTH),
    (Tool::Nvbandwidth, NVBANDWIDTH_JSON),
    (Tool::Perftest, PERFTEST),
    (Tool::Fio, FIO),
    (Tool::Dd, DD),
    (Tool::DmaToDevice, DMA_TO_DEVICE),
];

fn table(tool: Tool, text: &str) -> Table {
    tool.read("f", text).unwrap_or_else(|error| panic!("{}: {error}", tool.name()))
}

/// Question, size, figure in MB/s and outstanding transfers of each row.
fn rows(tool: Tool, text: &str) -> Vec<(&'static str, u64, f64, Option<u32>)> {
    let row = |row: &Row| (row.question, row.size_bytes, (row.figure / 1e5).round() / 10.0, row.reach.outstanding);
    table(tool, text).rows.iter().map(row).collect()
}

fn refused(tool: Tool, text: &str) -> Vec<String> {
    table(tool, text).reading.refused.into_iter().map(|(line, because)| format!("{line}: {because}")).collect()
}

/// The error for a file with one part replaced.
fn error(tool: Tool, text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "the file has no '{from}'");
    tool.read("f", &text.replacen(from, to, 1)).unwrap_err().to_string()
}

/// The line of the first occurrence of `part`, as in the start of an error.
fn at(text: &str, part: &str) -> String {
    let line = text.lines().position(|line| line.contains(part)).unwrap() + 1;
    format!("f:{line}: ")
}

/// Asserts that an error is at the line of `part` and contains `words`.
fn assert_at(error: &str, text: &str, part: &str, words: &str) {
    assert!(error.starts_with(&at(text, part)) && error.contains(words), "{error}");
}

const READ: &str = "dma_read_bandwidth";
const WRITE: &str = "dma_write_bandwidth";

#[test]
fn a_copy_of_nvbandwidth_is_a_stream_of_its_copy_engine() {
    let found = rows(Tool::Nvbandwidth, NVBANDWIDTH);
    assert_eq!(found, [(READ, 16 << 20, 52140.0, None), (WRITE, 16 << 20, 54030.0, None)]);
    let found = table(Tool::Nvbandwidth, NVBANDWIDTH);
    assert!(found.reading.notes[0].starts_with("transfers above 16 MiB are read as 16 MiB"));
    assert_eq!(found.rows[0].line, 13, "the line of its description");
}

#[test]
fn tests_of_nvbandwidth_without_a_question_are_named_with_the_reason() {
    let refused = refused(Tool::Nvbandwidth, NVBANDWIDTH);
    assert_eq!(refused.len(), 3, "{refused:?}");
    assert!(refused[0].starts_with("26: host_to_device_bidirectional_memcpy_ce: its figure is one of two directions"));
    assert!(refused[1].starts_with("33: host_to_device_memcpy_sm: kernels of the GPU load and store"));
    assert!(refused[2].starts_with("40: device_to_device_memcpy_read_ce: it is not a copy between one GPU"));
}

#[test]
fn the_json_of_nvbandwidth_is_read_with_the_size_of_its_command() {
    let found = rows(Tool::Nvbandwidth, NVBANDWIDTH_JSON);
    assert_eq!(found, [(READ, 8 << 20, 52050.0, None), (WRITE, 8 << 20, 53900.0, None)]);
    assert_eq!(refused(Tool::Nvbandwidth, NVBANDWIDTH_JSON).len(), 1);
    let usual = &NVBANDWIDTH_JSON[NVBANDWIDTH_JSON.find('{').unwrap()..];
    assert_eq!(rows(Tool::Nvbandwidth, usual)[0].1, 16 << 20);
    for (from, to) in [("-b 8", "--bufferSize=8"), ("-b 8", "--bufferSize 8"), ("-b 8", "-b8")] {
        assert_eq!(rows(Tool::Nvbandwidth, &NVBANDWIDTH_JSON.replace(from, to))[0].1, 8 << 20, "{to}");
    }
    let error = error(Tool::Nvbandwidth, NVBANDWIDTH_JSON, "-b 8", "-b 0");
    assert_at(&error, NVBANDWIDTH_JSON, "-b 8", "'0' is not a buffer size");
}

#[test]
fn several_gpus_and_invalid_values_of_nvbandwidth_are_refused_at_their_line() {
    let error = |from, to| error(Tool::Nvbandwidth, NVBANDWIDTH, from, to);
    let two = error("           0\n 0     52.14", "           0         1\n 0     52.14     52.20");
    assert_at(&two, NVBANDWIDTH, "-> GPU(column)", "2 GPUs, but a platform describes one");
    assert_at(&error("52.14", "nan"), NVBANDWIDTH, " 0     52.14", "'nan' is not a bandwidth in GB/s");
    assert_at(&error("52.14", "52.14 52.2"), NVBANDWIDTH, " 0     52.14", "2 values instead of 1");
    assert_at(&error("52.14", "52000000.0"), NVBANDWIDTH, "-> GPU(column)", "at most 100000 GB/s");
    assert_at(&error("bandwidth (GB/s)", "bandwidth (GiB/s)"), NVBANDWIDTH, "-> GPU", "is not (GB/s)");
    let json = |from, to| self::error(Tool::Nvbandwidth, NVBANDWIDTH_JSON, from, to);
    let name = "\"name\" : \"host_to_device_memcpy_ce\"";
    assert_at(&json("[[\"52.05\"]]", "[[\"52.05\", \"52.06\"]]"), NVBANDWIDTH_JSON, name, "2 GPUs");
    assert_at(&json("[[\"52.05\"]]", "[[\"-1\"]]"), NVBANDWIDTH_JSON, name, "'-1' is not a bandwidth");
    assert_at(&json("[[\"52.05\"]]", "[]"), NVBANDWIDTH_JSON, name, "no bandwidth_matrix");
    let other = NVBANDWIDTH_JSON.replacen("Passed", "Waived", 1);
    assert_eq!(rows(Tool::Nvbandwidth, &other).len(), 1);
    let missing = "           0\n 0     52.14";
    let one = NVBANDWIDTH.replacen(missing, "           0         1\n 0     52.14     N/A", 1);
    assert_eq!(rows(Tool::Nvbandwidth, &one).len(), 2, "a pair that was not measured is no second GPU");
}

#[test]
fn a_write_of_perftest_is_a_read_of_host_memory_by_the_local_card() {
    let found = rows(Tool::Perftest, PERFTEST);
    assert_eq!(found.len(), 14);
    assert_eq!(found[0], (READ, 64, 1300.0, None));
    assert_eq!(found[7], (READ, 8 << 20, 12100.0, None));
    assert_eq!(found[8], (WRITE, 64, 620.0, None));
    assert_eq!(found[13], ("dma_read_write_mix", 4096, 23100.0, None));
    let refused = refused(Tool::Perftest, PERFTEST);
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(refused[0].contains("a latency of perftest contains the network"));
    assert!(table(Tool::Perftest, PERFTEST).reading.notes[0].contains("at most the rate of the network"));
    let newer = PERFTEST.replace("MB/sec", "MiB/sec");
    assert_eq!(rows(Tool::Perftest, &newer), found);
}

#[test]
fn messages_of_perftest_that_the_card_does_not_read_are_left_out() {
    let inline = PERFTEST.replacen("Max inline data : 0[B]", "Max inline data : 256[B]", 1);
    assert_eq!(rows(Tool::Perftest, &inline)[0].1, 512, "64 and 256 B are inline");
    assert_eq!(rows(Tool::Perftest, &inline).len(), 12);
    let send = PERFTEST.replacen("RDMA_Write BW Test", "Send BW Test", 1);
    assert_eq!(rows(Tool::Perftest, &send).len(), 6);
    let alone = PERFTEST.replacen("TX depth        : 128", "TX depth        : 1", 1);
    assert_eq!(rows(Tool::Perftest, &alone).len(), 6, "each message waits for the network");
    assert!(refused(Tool::Perftest, &alone)[0].contains("TX depth is 1"));
}

#[test]
fn invalid_tables_of_perftest_are_refused_at_their_line() {
    let error = |from, to| error(Tool::Perftest, PERFTEST, from, to);
    let first = " 64         5000";
    assert_at(&error("1239.78", "1264.78"), PERFTEST, first, "but MsgRate and size are 1.3000 GB/s");
    assert!(Tool::Perftest.read("f", &PERFTEST.replacen("1239.78", "1249.78", 1)).is_ok(), "0.8 % is rounding");
    assert_at(&error("BW average[MB/sec]", "BW average[GB/sec]"), PERFTEST, "BW average", "is not MB/sec");
    // Bits that are read as bytes do not agree with the rate of messages.
    assert_at(&error("BW average[MB/sec]", "BW average[Gb/sec]"), PERFTEST, first, "but MsgRate and size are");
    assert_at(&error("1239.78             20.312500", "1239.78"), PERFTEST, first, "4 columns instead of 5");
    assert_at(&error("20.312500", "nan"), PERFTEST, first, "'nan' is not a MsgRate above 0");
    assert_at(&error("1239.78", "0.00"), PERFTEST, first, "'0.00' is not a BW average above 0");
    assert_at(&error(" 64         5000", " 99999999999999999999999 5000"), PERFTEST, first, "is not a number of bytes");
    assert_at(&error("RDMA_Write BW Test", ""), PERFTEST, "#bytes", "has no title");
}

#[test]
fn a_write_of_fio_is_a_read_of_host_memory_by_the_drive() {
    let found = rows(Tool::Fio, FIO);
    let writes = [(READ, 4096, 5200.0, Some(64)), (READ, 131_072, 6600.0, Some(32)), (READ, 1 << 20, 5000.0, Some(1))];
    assert_eq!(
        found[..3].iter().map(|row| (row.0, row.1, row.3)).collect::<Vec<_>>(),
        writes.map(|row| (row.0, row.1, row.3))
    );
    assert!(found[..3].iter().zip(writes).all(|(found, wanted)| (found.2 - wanted.2).abs() < 1.0), "{found:?}");
    assert_eq!((found[3].0, found[3].1, found[3].3), (WRITE, 4096, None), "numjobs is the number of threads");
    assert_eq!(found.len(), 5);
    let refused = refused(Tool::Fio, FIO);
    let line = |name: &str| FIO.lines().position(|line| line.contains(name)).unwrap() + 1;
    let (waited, read) = (line("\"jobname\": \"w4k-alone\""), line("\"jobname\": \"r4k-alone\""));
    assert!(refused[0].starts_with(&format!("{waited}: the tool waits for each transfer")), "{refused:?}");
    assert!(refused[1].starts_with(&format!("{read}: one read at a time")), "{refused:?}");
    assert_eq!(refused.len(), 2);
    assert_eq!(table(Tool::Fio, FIO).reading.skipped_lines, 1, "the warning in front of the document");
}

#[test]
fn jobs_of_fio_without_a_question_are_named_with_the_reason() {
    let because = |from: &str, to: &str| refused(Tool::Fio, &FIO.replacen(from, to, 1))[0].clone();
    let first = "\"rw\": \"write\",\n        \"bs\": \"4k\",\n        \"iodepth\": \"64\"";
    assert!(because("\"rw\": \"write\"", "\"rw\": \"randrw\"").contains("rw is randrw: only reads alone or writes"));
    assert!(because(first, &format!("{first},\n        \"direct\": \"0\"")).contains("direct=1 is missing"));
    assert!(
        because(first, &format!("{first},\n        \"ioengine\": \"mmap\"")).contains("ioengine mmap is not one of")
    );
    assert!(because("\"bs\": \"4k\"", "\"bs\": \"8k\"").contains("bs is 8192 B, but io_bytes over total_ios"));
    assert!(because("\"bs\": \"4k\"", "\"bs\": \"4k,8k\"").contains("bs: '4k,8k' is not a size"));
    assert!(because("\"groupid\": 1", "\"groupid\": 0").contains("several jobs of this group run at once"));
    assert!(because("\"iodepth\": \"64\"", "\"iodepth\": \"deep\"").contains("iodepth is 'deep', not a count"));
    // A job that waits has one outstanding request, whatever its depth.
    let waiting = FIO.replacen(first, &format!("{first},\n        \"ioengine\": \"psync\""), 1);
    assert!(refused(Tool::Fio, &waiting)[0].contains("the tool waits for each transfer"));
}

#[test]
fn invalid_documents_of_fio_are_refused_at_their_line() {
    let cut = &FIO[..FIO.len() / 2];
    let error = Tool::Fio.read("f", cut).unwrap_err().to_string();
    assert!(error.starts_with(&format!("f:{}: invalid JSON", cut.lines().count())), "{error}");
    let open = Tool::Fio.read("f", "a warning\n{\n\"jobs\":\n").unwrap_err().to_string();
    assert_eq!(open, "f:3: invalid JSON: EOF while parsing a value; is the file complete?");
    let name = "\"jobname\": \"w4k\"";
    let rate = FIO.find("\"bw_bytes\": 51999").or_else(|| FIO.find("\"bw_bytes\": 52")).unwrap();
    let end = rate + FIO[rate..].find(',').unwrap();
    let with = |value: &str| format!("{}\"bw_bytes\": {value}{}", &FIO[..rate], &FIO[end..]);
    let error = |value: &str| Tool::Fio.read("f", &with(value)).unwrap_err().to_string();
    assert_at(&error("0"), FIO, name, "no bw_bytes above 0");
    assert_at(&error("-5"), FIO, name, "no bw_bytes above 0");
    assert_at(&error("1e30"), FIO, name, "at most 100000 GB/s");
    assert!(error("NaN").contains("invalid JSON"), "{}", error("NaN"));
    assert!(error("1e999").contains("invalid JSON"), "{}", error("1e999"));
}

#[test]
fn a_transfer_of_dd_counts_if_it_takes_much_longer_than_the_driver_call() {
    let found = rows(Tool::Dd, DD);
    let sizes = [4 << 20, 8 << 20];
    assert_eq!(found[0], (READ, sizes[0], 5200.0, Some(1)));
    assert_eq!(found[1], (WRITE, sizes[0], 5400.0, None));
    assert_eq!((found[2].1, found[3].1, found.len()), (sizes[1], sizes[1], 4));
    let found = table(Tool::Dd, DD);
    assert!(found.reading.notes.iter().any(|note| note.contains("the tool waits for each transfer: up to 10 %")));
    let refused = refused(Tool::Dd, DD);
    assert_eq!(refused.len(), 5, "{refused:?}");
    assert!(refused[0].starts_with("4: the tool waits for each transfer, and up to 100 % of its time"), "{refused:?}");
    assert!(refused[2].contains("up to 50 %") && refused[2].contains("at most the 38.3 us"), "{refused:?}");
    assert!(refused[4].starts_with("36: neither if is a device _c2h_"), "{refused:?}");
}

#[test]
fn transfers_that_are_waited_for_need_one_that_shows_the_time_of_a_call() {
    let line = |bytes: u64, us: f64| format!("/dev/xdma0_c2h_0 ** Average BW = {bytes}, {:.6}\n", bytes as f64 / us);
    let read = |text: &str| Tool::DmaToDevice.read("f", text).map(|table| table.rows.len());
    let alone = read(&line(1 << 20, 200.0)).unwrap_err().to_string();
    assert!(alone.starts_with("f:1: none of the 1 figures found can be used: the tool waits"), "{alone}");
    assert!(alone.ends_with("measure 4 KiB, and sizes that take ten times as long"), "{alone}");
    assert_eq!(read(&(line(4096, 19.9) + &line(1 << 20, 200.0))), Ok(1));
    assert!(read(&(line(4096, 20.1) + &line(1 << 20, 200.0))).is_err(), "a little more than 10 %");
    // The call of the other direction does not count.
    let other = line(4096, 1.0).replace("c2h", "h2c");
    assert!(read(&(other + &line(1 << 20, 200.0))).is_err());
}

#[test]
fn sizes_of_dd_are_those_of_its_manual() {
    let read = |bs: &str| rows(Tool::Dd, &DD.replacen("bs=4M", bs, 1))[0].1;
    assert_eq!([read("bs=4MB"), read("bs=2048k"), read("bs=8192b")], [4_000_000, 2 << 20, 4 << 20]);
    let short = |bs: &str| table(Tool::Dd, &DD.replacen("bs=64K", bs, 1)).rows.len();
    // Transfers of 8 B and of the usual 512 B take so little time that more sizes count.
    assert_eq!([short("bs=64K"), short("bs=8"), short("")], [4, 5, 5]);
    let (null, file) = ("of=/dev/null bs=64K", "of=data.bin bs=64K");
    assert!(refused(Tool::Dd, &DD.replacen(null, file, 1))[1].contains("the time contains writing the output"));
    assert!(refused(Tool::Dd, &DD.replacen("16384+0 records out", "16383+1 records out", 1))[0].contains("partial"));
}

#[test]
fn invalid_results_of_dd_are_refused_at_their_line() {
    let error = |from, to| error(Tool::Dd, DD, from, to);
    let first = "0.62708 s";
    assert_at(&error("1.7 GB/s", "1.9 GB/s"), DD, first, "bytes over seconds are 1712.3 MB/s");
    assert!(Tool::Dd.read("f", &DD.replacen("1.7 GB/s", "1.8 GB/s", 1)).is_ok(), "two digits are printed");
    assert_at(&error("1.7 GB/s", "1.7 GiB/s"), DD, first, "in the C locale");
    assert_at(&error("0.62708 s", "0,62708 s"), DD, first, "in the C locale");
    assert_at(&error("0.62708 s", "nan s"), DD, first, "in the C locale");
    assert_at(&error("0.62708 s, 1.7 GB/s", "0.6"), DD, first, "in the C locale");
    assert_at(&error("+ dd if=/dev/zero", "dd: if=/dev/zero"), DD, first, "no dd command above this result");
    assert_at(&error("bs=64K", "bs=64X"), DD, "bs=64K", "bs is '64X': write a number");
    assert_at(&error("bs=4M", "bs=32M"), DD, "0.82596 s", "from 1 to 16777216");
    assert_at(&error("bs=64K", "ibs=64K"), DD, "bs=64K", "ibs and obs are two sizes");
}

#[test]
fn a_transfer_of_dma_to_device_counts_if_it_takes_much_longer_than_the_driver_call() {
    let found = rows(Tool::DmaToDevice, DMA_TO_DEVICE);
    assert_eq!(found, [(READ, 4 << 20, 5728.7, Some(1)), (WRITE, 4 << 20, 5885.1, None)]);
    assert_eq!(refused(Tool::DmaToDevice, DMA_TO_DEVICE).len(), 6);
    assert!(refused(Tool::DmaToDevice, DMA_TO_DEVICE)[4].contains("up to 13 %"));
    // Without the device, that of the command above counts.
    let older = DMA_TO_DEVICE.replace("/dev/xdma0_h2c_0 **", "**").replace("/dev/xdma0_c2h_0 **", "**");
    assert_eq!(rows(Tool::DmaToDevice, &older), found);
    let other = DMA_TO_DEVICE.replacen("/dev/xdma0_h2c_0 ** Average", "/dev/xdma0_user ** Average", 1);
    assert!(refused(Tool::DmaToDevice, &other)[0].starts_with("2: /dev/xdma0_user is not a device _h2c_ or _c2h_"));
}

#[test]
fn a_rate_of_dma_to_device_that_contradicts_its_time_is_refused() {
    let error = |from, to| error(Tool::DmaToDevice, DMA_TO_DEVICE, from, to);
    let (line, rate) = ("** Average BW = 4194304, 5728.7", "4194304, 5728.700000");
    // Factors of 278 and 7.6 were reported.
    assert_at(&error(rate, "4194304, 20.606835"), DMA_TO_DEVICE, line, "the tool prints a wrong rate");
    assert_at(&error(rate, "4194304, 5788.000000"), DMA_TO_DEVICE, line, "is 5728.7 MB/s of 4194304 B");
    assert!(Tool::DmaToDevice.read("f", &DMA_TO_DEVICE.replacen(rate, "4194304, 5784.000000", 1)).is_ok(), "below 1 %");
    assert_at(&error("4096, 157.500000", "4096, -nan"), DMA_TO_DEVICE, "4096, 157.5", "'4096, -nan' is not a size");
    assert_at(&error("4096, 157.500000", "4096"), DMA_TO_DEVICE, "4096, 157.5", "'4096' is not a size");
    assert_at(&error("avg_time = 7", "avg_time = x"), DMA_TO_DEVICE, "** Avg time device", "an invalid line");
    let alone = Tool::DmaToDevice.read("f", "** Average BW = 4096, 95.2\n").unwrap_err().to_string();
    assert!(alone.starts_with("f:1: neither this line nor a command above it names the device"), "{alone}");
}

#[test]
fn a_rate_of_dma_to_device_after_a_short_or_failed_transfer_is_left_out() {
    let last = "/dev/xdma0_c2h_0 ** Average BW = 4194304, 5885.100000";
    for report in [
        "#3: underflow 1000/4194304.",
        "/dev/xdma0_c2h_0, read underflow 0x3e8/0x400000 @ 0x0.",
        "/dev/xdma0_c2h_0, read 0x400000 @ 0x0 failed -1.",
    ] {
        let text = DMA_TO_DEVICE.replacen(last, &format!("{report}\n{last}"), 1);
        assert_eq!(rows(Tool::DmaToDevice, &text), [(READ, 4 << 20, 5728.7, Some(1))], "{report}");
        let refused = refused(Tool::DmaToDevice, &text);
        assert!(
            refused[6].contains("reports a short or failed transfer, and the rate counts all 4194304 B"),
            "{refused:?}"
        );
    }
    // One of an earlier command is not that of this rate.
    let command = DMA_TO_DEVICE.lines().rfind(|line| line.contains("dma_from_device")).unwrap();
    let text = DMA_TO_DEVICE.replacen(command, &format!("#0: underflow 1000/4096.\n{command}"), 1);
    assert_eq!(rows(Tool::DmaToDevice, &text).len(), 2);
}

#[test]
fn a_file_without_a_figure_says_what_was_looked_for() {
    for (tool, _) in ALL {
        for text in ["", "\n\n", "nothing of the kind\n", "{}", "\u{feff}", "{\"jobs\": 5, \"nvbandwidth\": []}"] {
            let error = tool.read("f", text).unwrap_err().to_string();
            assert!(error.starts_with("f:1: no figure found: looked for "), "{}: {text:?}: {error}", tool.name());
        }
    }
    let only = "Running host_to_device_memcpy_sm.\n";
    let error = Tool::Nvbandwidth.read("f", only).unwrap_err().to_string();
    assert!(error.starts_with("f:1: none of the 1 figures found can be used: host_to_device_memcpy_sm: "), "{error}");
}

#[test]
fn a_file_of_another_tool_is_refused() {
    for (place, (tool, _)) in ALL.iter().enumerate() {
        for (other, (of, text)) in ALL.iter().enumerate() {
            assert!(place == other || tool == of || tool.read("f", text).is_err(), "{} of {}", tool.name(), of.name());
        }
    }
}

#[test]
fn a_truncated_file_is_refused_or_has_the_figures_before_its_end() {
    for (tool, text) in ALL {
        let whole = table(tool, text);
        let mut accepted = 0;
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            let Ok(part) = tool.read("f", &text[..end]) else { continue };
            let kept = part.rows.len();
            assert!(part.rows[..] == whole.rows[..kept], "{} up to byte {end}", tool.name());
            accepted += 1;
        }
        // A JSON document is complete or refused.
        assert!(accepted > 0, "{}: no shorter file was accepted", tool.name());
    }
}

#[test]
fn a_figure_at_the_end_of_a_file_needs_the_end_of_its_line() {
    let cut = DMA_TO_DEVICE.trim_end();
    let error = Tool::DmaToDevice.read("f", cut).unwrap_err().to_string();
    let last = DMA_TO_DEVICE.lines().count();
    assert!(error.starts_with(&format!("f:{last}: the last line has no end: is the file complete?")), "{error}");
    assert!(Tool::DmaToDevice.read("f", &format!("{cut}\n")).is_ok());
}

#[test]
fn more_figures_than_a_table_has_are_refused() {
    let line = PERFTEST.lines().find(|line| line.starts_with(" 64 ")).unwrap();
    let start = PERFTEST.find(line).unwrap();
    let text = |count: usize| format!("{}{}", &PERFTEST[..start], format!("{line}\n").repeat(count));
    assert_eq!(rows(Tool::Perftest, &text(256)).len(), 256);
    let error = Tool::Perftest.read("f", &text(257)).unwrap_err().to_string();
    let last = text(257).lines().count();
    assert!(error.starts_with(&format!("f:{last}: a table has at most 256 rows")), "{error}");
}
