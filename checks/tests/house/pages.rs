//! Are README, ARCHITECTURE and the index of decisions complete and true?

use super::{read, source};
use source::SourceFile;
use std::collections::BTreeSet;
use std::path::Path;

/// An item under "Not there yet" in the README, and what the tree would contain if it existed.
struct Absent {
    /// The bold words of the item.
    item: &'static str,
    /// Files or folders, from the repository's root.
    paths: &'static [&'static str],
    /// Words in the code of the crates, in lower case: parts of identifiers, not of comments or texts.
    words: &'static [&'static str],
}

/// The items, in the order of the README.
const ABSENT: &[Absent] = &[
    Absent { item: "Descriptor rings", paths: &["crates/hw/src/qdma"], words: &["qdma"] },
    Absent {
        item: "GPU interfaces",
        paths: &["crates/hw/src/hip", "crates/hw/src/level_zero"],
        words: &["hip", "levelzero"],
    },
    Absent { item: "Packages", paths: &["debian", "packaging"], words: &["pypi"] },
    Absent { item: "Pages", paths: &["crates/live/src/simulation.rs"], words: &[] },
    Absent { item: "RTL", paths: &["rtl/ptile", "rtl/avalon"], words: &["ptile", "avalon"] },
];

/// What of `absent` the tree has: a path, or a word with its file.
fn found(absent: &Absent, tree: &[SourceFile], exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found: Vec<String> =
        absent.paths.iter().filter(|path| exists(path)).map(|path| (*path).to_owned()).collect();
    let is_source = |file: &&SourceFile| file.path.starts_with("crates/") && has_extension(&file.path, "rs");
    for file in tree.iter().filter(is_source) {
        let code = file.code().join("\n");
        let words: BTreeSet<String> = parts(&code).filter(|part| absent.words.contains(&part.as_str())).collect();
        found.extend(words.iter().map(|word| format!("'{word}' in {}", file.path)));
    }
    found
}

fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|kind| kind == extension)
}

/// The parts of identifiers in lower case: `open`, `vfio` and `device` in `open_vfio` and `VfioDevice`.
fn parts(code: &str) -> impl Iterator<Item = String> + '_ {
    let starts_part = |before: char, c: char| before.is_lowercase() && c.is_uppercase();
    code.split(|c: char| !c.is_alphanumeric()).flat_map(move |word| {
        let mut parts = vec![String::new()];
        let mut before = ' ';
        for c in word.chars() {
            if starts_part(before, c) {
                parts.push(String::new());
            }
            parts.last_mut().unwrap().extend(c.to_lowercase());
            before = c;
        }
        parts
    })
}

/// The bold words that begin the items of the list after a line.
fn items_after<'a>(text: &'a str, line: &str) -> Vec<&'a str> {
    let (_, rest) = text.split_once(&format!("\n{line}\n")).unwrap_or_else(|| panic!("a line '{line}'"));
    let list = rest.trim_start().split("\n\n").next().unwrap_or("");
    list.lines().filter_map(|line| Some(line.strip_prefix("- **")?.split_once("**")?.0)).collect()
}

#[test]
fn everything_under_not_there_yet_is_absent() {
    let items = items_after(&read("README.md"), "Not there yet:").into_iter().map(str::to_owned).collect::<Vec<_>>();
    let known: Vec<&str> = ABSENT.iter().map(|absent| absent.item).collect();
    assert_eq!(items, known, "left: the list in README.md; right: ABSENT in checks/tests/house/pages.rs");
    let tree = source::tree();
    for absent in ABSENT {
        let found = found(absent, &tree, |path| source::root().join(path).exists());
        assert!(
            found.is_empty(),
            "README.md lists {} as not there yet, but there is {}",
            absent.item,
            found.join(", ")
        );
    }
}

#[test]
fn an_item_that_exists_is_found() {
    let absent = Absent { item: "VFIO", paths: &["crates/hw/src/vfio"], words: &["vfio"] };
    let file = |text| [SourceFile::new("crates/hw/src/lib.rs", text)];
    assert_eq!(found(&absent, &file("// vfio\nfn f() {}\n"), |_| false), Vec::<String>::new());
    for code in ["fn open_vfio() {}\n", "struct Vfio;\n", "type A = VfioDevice;\n"] {
        assert_eq!(found(&absent, &file(code), |_| false), ["'vfio' in crates/hw/src/lib.rs"]);
    }
    assert_eq!(found(&absent, &file(""), |_| true), ["crates/hw/src/vfio"]);
}

#[test]
fn the_index_lists_every_decision_with_its_title() {
    let index = read("docs/decisions/README.md");
    let folder = source::root().join("docs/decisions");
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != "README.md" && has_extension(name, "md"));
    names.sort();
    let numbers: Vec<String> = names.iter().map(|name| name.chars().take(4).collect()).collect();
    let wanted: Vec<String> = (1..=names.len()).map(|number| format!("{number:04}")).collect();
    assert_eq!(numbers, wanted, "left: the files in docs/decisions; right: one number each, without gaps");
    // Lines of the index may be wrapped.
    let index = index.split_whitespace().collect::<Vec<_>>().join(" ");
    for (name, number) in names.iter().zip(&numbers) {
        let text = read(&format!("docs/decisions/{name}"));
        let title = text.lines().next().and_then(|line| line.strip_prefix(&format!("# {number} ")));
        let title = title.unwrap_or_else(|| panic!("docs/decisions/{name} does not begin with '# {number} TITLE'"));
        let entry = format!("- [{number}]({name}) {title}");
        assert!(index.contains(&entry), "docs/decisions/README.md has no entry '{entry}'");
    }
}

/// The paragraphs `**crate** (crates/crate): ...` of a page, each with its number of words.
fn crate_paragraphs(text: &str) -> Vec<(String, usize)> {
    let paragraphs = text.split("\n\n").filter(|paragraph| paragraph.starts_with("**"));
    let named = paragraphs.filter_map(|paragraph| {
        let (name, rest) = paragraph.strip_prefix("**")?.split_once("**")?;
        rest.starts_with(&format!(" (`crates/{name}`):"))
            .then(|| (name.to_owned(), paragraph.split_whitespace().count()))
    });
    named.collect()
}

#[test]
fn architecture_has_a_paragraph_of_at_most_60_words_for_each_crate() {
    const MOST_WORDS: usize = 60;
    let text = read("ARCHITECTURE.md");
    let paragraphs = crate_paragraphs(&text);
    let named: BTreeSet<String> = paragraphs.iter().map(|(name, _)| name.clone()).collect();
    let folders = std::fs::read_dir(source::root().join("crates")).unwrap();
    let here: BTreeSet<String> = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(here, named, "left: the folders in crates/; right: the paragraphs in ARCHITECTURE.md");
    for (name, words) in paragraphs {
        assert!(words <= MOST_WORDS, "ARCHITECTURE.md says {words} words about {name}: move some to its own head");
    }
    assert_eq!(crate_paragraphs("x\n\n**sim** (`crates/sim`): a b\nc\n\n**bold** text"), [("sim".to_owned(), 5)]);
}

#[test]
fn prose_of_the_documents_is_wrapped_at_100() {
    const MOST_COLUMNS: usize = 100;
    let mut long = Vec::new();
    for file in source::tree() {
        let is_page = file.path.starts_with("docs/guide/")
            || matches!(file.path.as_str(), "README.md" | "ARCHITECTURE.md" | "CONTRIBUTING.md");
        if !is_page {
            continue;
        }
        let (mut in_block, mut in_keys) = (false, false);
        for (number, line) in file.text.lines().enumerate() {
            in_block ^= line.starts_with("```");
            in_keys = (in_keys || line.starts_with("<!-- keys: begin")) && !line.starts_with("<!-- keys: end");
            // A table row, a picture or a single long word, such as a link or a command, cannot be wrapped.
            let is_whole = line.starts_with('|') || line.starts_with("![") || !line.trim().contains(' ');
            if !in_block && !in_keys && !is_whole && line.chars().count() > MOST_COLUMNS {
                long.push(format!("{}:{}", file.path, number + 1));
            }
        }
    }
    assert!(long.is_empty(), "lines of more than {MOST_COLUMNS} columns: {}", long.join(", "));
}
