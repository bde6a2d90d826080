//! Limits and defaults of every key.

mod sound;

use lanemark_platform::spec::Kind;
use lanemark_platform::{Origin, PRESETS, Platform, Preset, Problem, SectionRow};
use lanemark_units::parse_size;
use sound::read;

/// The line that starts a section in a file.
fn header(row: &SectionRow) -> String {
    if row.is_repeated { format!("[[{}]]", row.path) } else { format!("[{}]", row.path) }
}

/// Values at the limits of a kind, and values just outside, as written in a file.
fn edges(kind: Kind) -> (Vec<String>, Vec<String>) {
    let whole = |min: u64, max: u64| {
        let beyond = u128::from(max) + 1;
        let mut outside = vec![beyond.to_string(), "-1".to_owned(), format!("{max}.5"), "\"x\"".to_owned()];
        outside.extend(min.checked_sub(1).map(|below| below.to_string()));
        (vec![min.to_string(), max.to_string(), format!("{max:#x}")], outside)
    };
    let text = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    match kind {
        Kind::Ns(max) => (
            vec!["0".to_owned(), "0.0".to_owned(), format!("{max:?}"), format!("{max}")],
            [text(&["-1", "-1e-300", "nan", "inf", "-inf", "\"1ns\""]), vec![format!("{:?}", max.next_up())]].concat(),
        ),
        Kind::Number(min, max) => (
            vec![format!("{min:?}"), format!("{max:?}")],
            [text(&["nan", "inf", "false"]), vec![format!("{:?}", min.next_down()), format!("{:?}", max.next_up())]]
                .concat(),
        ),
        Kind::ZeroOrNumber(min, max) => (
            text(&["0", "0.0"]).into_iter().chain([format!("{min:?}"), format!("{max:?}")]).collect(),
            [
                text(&["nan", "inf", "false", "-1", "1e-6", "1e-300"]),
                vec![format!("{:?}", min.next_down()), format!("{:?}", max.next_up())],
            ]
            .concat(),
        ),
        Kind::Count(min, max) => whole(min, max),
        Kind::Size(min, max) => {
            let (mut inside, mut outside) = whole(min, max);
            inside.push(format!("\"{max}B\""));
            inside.push(format!("\" {min} B \""));
            outside.push(format!("\"{}\"", u128::from(max) + 1));
            outside.extend(text(&["\"64Q\"", "\"0.5B\"", "\"\"", "\"-1\""]));
            (inside, outside)
        }
        Kind::OneOf(these) => {
            let beside = |number: &u64| [number.wrapping_sub(1), number + 1];
            let outside = these.iter().flat_map(beside).filter(|number| !these.contains(number)).map(|n| n.to_string());
            (these.iter().map(u64::to_string).collect(), outside.chain(text(&["-1", "1.0", "\"1\""])).collect())
        }
        Kind::Choice(words) => {
            let quoted = |word: &&str| format!("\"{word}\"");
            let outside =
                words.iter().flat_map(|word| [format!("\"{word} \""), format!("\"{}x\"", word.to_uppercase())]);
            (words.iter().map(quoted).collect(), outside.chain(text(&["\"\"", "0"])).collect())
        }
        Kind::Flag => (text(&["true", "false"]), text(&["0", "1", "\"true\"", "\"yes\""])),
    }
}

/// The presets. One of them is extended by a retimer, a port, a fault, MSI-X, kernels, and both sections of the DMA engine's
/// directions.
fn texts() -> Vec<String> {
    let port =
        "\n[dma_read]\n[dma_write]\n[[port]]\nname = \"card\"\nmps_bytes = { value = 256, source = \"a test\" }\n";
    let fault =
        "\n[[fault]]\nname = \"down\"\nport = \"card\"\nkind = { value = \"link_down\", assumed = \"a test\" }\n";
    let number = |key: &str, value: u32| format!("{key} = {{ value = {value}, source = \"a test\" }}\n");
    let places = [number("bar", 0), number("table_offset_bytes", 256), number("pending_offset_bytes", 512)].concat();
    let times = [("word_ns", 2), ("read_ns", 300)].map(|(key, value)| number(key, value)).concat();
    let memory = [number("ports", 4), number("port_bytes", 32), times].concat();
    let kernels = format!("\n[device_memory]\n{memory}\n[kernel]\n{}", number("clock_ghz", 1));
    let latencies = ["down_ns", "up_ns"].map(|key| number(key, 20)).concat();
    let retimer = format!("\n[[retimer]]\nname = \"riser\"\nlink = \"card\"\n{latencies}");
    let more = format!("{retimer}{port}{fault}{kernels}\n[msi_x]\n{}{places}", number("vectors", 8));
    let of = |preset: &Preset| format!("{}{}", preset.text, if preset.name == "card-gen5-x16" { &more } else { "" });
    PRESETS.iter().map(of).collect()
}

/// Whether a text has a section with this header. Every section must occur in some text.
fn has(text: &str, header: &str) -> bool {
    assert!(texts().iter().any(|text| text.lines().any(|line| line == header)), "{header} is in none");
    text.lines().any(|line| line == header)
}

/// `text` with the row of `key` in the first such section replaced or added, and its line.
fn with_row(text: &str, header: &str, key: &str, row: &str) -> (String, usize) {
    let mut lines: Vec<&str> = text.lines().collect();
    let start = lines.iter().position(|line| *line == header).unwrap();
    let end = lines[start + 1..].iter().position(|line| line.starts_with('[')).map_or(lines.len(), |at| start + 1 + at);
    let place = lines[start..end].iter().position(|line| line.split(' ').next() == Some(key));
    let place = if let Some(at) = place {
        lines[start + at] = row;
        start + at
    } else {
        lines.insert(start + 1, row);
        start + 1
    };
    (lines.join("\n"), place + 1)
}

/// The number that one of the [`edges`] denotes.
fn meant(value: &str) -> f64 {
    let bare = value.trim_matches(['"', ' ']);
    match bare.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).unwrap() as f64,
        None => bare.parse().unwrap_or_else(|_| parse_size(bare).unwrap() as f64),
    }
}

#[test]
fn every_key_accepts_its_limits_and_nothing_beyond() {
    let mut tried = 0;
    for text_of in texts() {
        for part in Platform::SECTIONS.iter().filter(|part| has(&text_of, &header(part))) {
            for key in part.keys {
                let (inside, outside) = edges(key.kind);
                let wanted = key.kind.wanted();
                let last = |path: &str| path.starts_with(part.path) && path.ends_with(&format!(".{}", key.name));
                let problems = |value: &str| {
                    let row = format!("{} = {{ value = {value}, source = \"a test\" }}", key.name);
                    let (text, line) = with_row(&text_of, &header(part), key.name, &row);
                    let result = read(&text);
                    let problems = result.as_ref().map_or_else(|error| error.problems.clone(), |_| Vec::new());
                    // Consistency with other keys is tested elsewhere.
                    let here: Vec<Problem> =
                        problems.into_iter().filter(|problem| problem.message.ends_with(&wanted)).collect();
                    (result, line, here)
                };
                for value in inside {
                    let (result, _, here) = problems(&value);
                    assert_eq!(here, [], "{} {} = {value}", part.path, key.name);
                    // A path to a repeated section needs a name: see `path.rs`.
                    let path = format!("{}.{}", part.path, key.name);
                    if let Some((number, origin)) = result.ok().and_then(|platform| platform.number(&path)) {
                        assert_eq!(origin, Origin::Given("a test".to_owned()));
                        assert_eq!(number, meant(&value), "{path} = {value}");
                    }
                    tried += 1;
                }
                for value in outside {
                    let (result, line, here) = problems(&value);
                    assert!(result.is_err());
                    let [problem] = &here[..] else { panic!("{} = {value}: {here:?}", key.name) };
                    assert_eq!((problem.line, last(&problem.key)), (line, true), "{problem}");
                    assert!(problem.message.starts_with("is "), "{problem}");
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 1000, "{tried}");
}

#[test]
fn keys_without_default_are_required_and_others_get_it() {
    for text_of in texts() {
        for part in Platform::SECTIONS.iter().filter(|part| has(&text_of, &header(part))) {
            for key in part.keys {
                let (text, _) = with_row(&text_of, &header(part), key.name, "");
                let missing = format!("is missing: {}; {}", key.doc.trim().trim_end_matches('.'), key.kind.wanted());
                match (read(&text), key.default) {
                    (Ok(platform), Some((_, because))) => {
                        let default = Origin::Default(because.to_owned());
                        let number = platform.number(&format!("{}.{}", part.path, key.name));
                        assert!(number.is_none_or(|(_, origin)| origin == default), "{}", key.name);
                    }
                    (Err(error), None) => {
                        assert_eq!(error.problems[0].message, missing, "{error}");
                    }
                    (result, default) => panic!("{}: {result:?} {default:?}", key.name),
                }
            }
        }
    }
}
