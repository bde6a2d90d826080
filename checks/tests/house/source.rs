//! A text file of the tree, and its code without comments, literals and tests.

use std::path::{Path, PathBuf};

/// One text file.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Its path from the repository's root, with `/`.
    pub path: String,
    /// The text of the file.
    pub text: String,
}

impl SourceFile {
    pub fn new(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.to_owned(), text: text.to_owned() }
    }

    /// The crate it belongs to, if it is a Rust file below `crates/<crate>/src`.
    pub fn crate_name(&self) -> Option<&str> {
        let (name, rest) = self.path.strip_prefix("crates/")?.split_once('/')?;
        (rest.starts_with("src/") && Path::new(rest).extension().is_some_and(|kind| kind == "rs")).then_some(name)
    }

    /// The lines of its code: comments, literals and what is compiled for tests only are blank.
    pub fn code(&self) -> Vec<String> {
        without_tests(&without_comments(&self.text)).lines().map(str::to_owned).collect()
    }
}

/// `text` with comments and the insides of string and character literals blanked, line by line as long
/// as before.
fn without_comments(text: &str) -> String {
    let bytes: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let blank = |c: char| if c == '\n' { '\n' } else { ' ' };
    let starts = |at: usize, what: &str| what.chars().enumerate().all(|(i, c)| bytes.get(at + i) == Some(&c));
    let mut at = 0;
    while at < bytes.len() {
        let end = if starts(at, "//") {
            (at..bytes.len()).find(|i| bytes[*i] == '\n').unwrap_or(bytes.len())
        } else if starts(at, "/*") {
            comment_end(&bytes, at)
        } else if let Some(hashes) = raw_string_hashes(&bytes, at) {
            let close: String = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
            let open = at + hashes + 2;
            (open..bytes.len()).find(|i| starts(*i, &close)).map_or(bytes.len(), |i| i + close.len())
        } else if bytes[at] == '"' {
            literal_end(&bytes, at, '"')
        } else if bytes[at] == '\'' && is_char_literal(&bytes, at) {
            literal_end(&bytes, at, '\'')
        } else {
            out.push(bytes[at]);
            at += 1;
            continue;
        };
        out.extend(bytes[at..end].iter().map(|c| blank(*c)));
        at = end;
    }
    out
}

/// Where the block comment that starts at `at` is over; they nest.
fn comment_end(text: &[char], at: usize) -> usize {
    let (mut depth, mut place) = (0_u32, at);
    while place + 1 < text.len() {
        match (text[place], text[place + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') if depth == 1 => return place + 2,
            ('*', '/') => depth -= 1,
            _ => {
                place += 1;
                continue;
            }
        }
        place += 2;
    }
    text.len()
}

/// How many `#` a raw string that starts here has; `None` if none starts here.
fn raw_string_hashes(text: &[char], at: usize) -> Option<usize> {
    let inside_a_word = at > 0 && (text[at - 1].is_alphanumeric() && text[at - 1] != 'b' || text[at - 1] == '_');
    if text[at] != 'r' || inside_a_word {
        return None;
    }
    let hashes = text[at + 1..].iter().take_while(|c| **c == '#').count();
    (text.get(at + 1 + hashes) == Some(&'"')).then_some(hashes)
}

fn literal_end(text: &[char], at: usize, quote: char) -> usize {
    let mut place = at + 1;
    while place < text.len() {
        match text[place] {
            '\\' => place += 2,
            c if c == quote => return place + 1,
            _ => place += 1,
        }
    }
    text.len()
}

/// A lifetime has no second quote: `'a`, `'static`.
fn is_char_literal(text: &[char], at: usize) -> bool {
    text.get(at + 1) == Some(&'\\') || text.get(at + 2) == Some(&'\'')
}

const FOR_TESTS: &str = "#[cfg(test)]";

/// `code` with every item under `#[cfg(test)]` blanked: to its `;` or its closing brace.
fn without_tests(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(start) = rest.find(FOR_TESTS) {
        out.push_str(&rest[..start]);
        let end = start + item_end(&rest[start..]);
        out.extend(rest[start..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = &rest[end..];
    }
    out + rest
}

fn item_end(code: &str) -> usize {
    let mut depth = 0_u32;
    for (at, c) in code.char_indices() {
        match c {
            ';' if depth == 0 => return at + 1,
            '{' => depth += 1,
            '}' if depth <= 1 => return at + 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every text file of the tree, by path; modules that another file declares for tests only are left out,
/// and so is what git ignores.
pub fn tree() -> Vec<SourceFile> {
    let mut ignored: Vec<String> = std::fs::read_to_string(root().join(".gitignore"))
        .unwrap()
        .lines()
        .map(|line| line.trim_matches('/').to_owned())
        .collect();
    ignored.push(".git".to_owned());
    let mut files = Vec::new();
    walk(&root(), &ignored, &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let for_tests: Vec<String> = files.iter().flat_map(test_modules).collect();
    files.retain(|file| {
        let module = file.path.trim_end_matches(".rs").trim_end_matches("/mod");
        !for_tests.iter().any(|name| module == name || module.starts_with(&format!("{name}/")))
    });
    files
}

fn walk(folder: &Path, ignored: &[String], files: &mut Vec<SourceFile>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/");
        if ignored.contains(&name) || path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            walk(&path, ignored, files);
        } else if let Ok(text) = String::from_utf8(std::fs::read(&path).unwrap_or_default()) {
            files.push(SourceFile { path: name, text });
        }
    }
}

/// The modules a file declares under `#[cfg(test)]`, as paths without `.rs`.
fn test_modules(file: &SourceFile) -> Vec<String> {
    let Some(path) = file.path.strip_suffix(".rs") else { return Vec::new() };
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let folder = if matches!(name, "lib" | "main" | "mod") { folder.to_owned() } else { format!("{folder}/{name}") };
    let code = without_comments(&file.text);
    code.split(FOR_TESTS)
        .skip(1)
        .filter_map(|item| {
            let end = item.find(['{', ';']).filter(|end| item[*end..].starts_with(';'))?;
            let declared = item[..end].trim();
            let name = declared.strip_prefix("pub(crate) ").unwrap_or(declared).strip_prefix("mod ")?;
            Some(format!("{folder}/{name}"))
        })
        .collect()
}

#[test]
fn code_has_no_comments_literals_or_tests_and_keeps_its_lines() {
    let text = "a(); // b()\nlet c = \"d() \\\" e()\"; /* f()\n /* g() */ h() */ let i = 'j';\n\
                #[cfg(test)]\nmod tests { fn k() { l(); } }\nm(r#\"n() \" o()\"#); fn p<'q>(r: &'q str) {}\n";
    let code = SourceFile::new("crates/sim/src/x.rs", text).code();
    assert_eq!(code.len(), text.lines().count());
    let words: String = code.concat().chars().filter(|c| c.is_alphabetic()).collect();
    assert_eq!(words, "aletcletimfnpqrqstr");
}

#[test]
fn a_module_declared_for_tests_is_found_where_rust_looks_for_it() {
    let declares = |path: &str| test_modules(&SourceFile::new(path, "#[cfg(test)]\nmod fixture;\nmod other;\n"));
    assert_eq!(declares("crates/report/src/lib.rs"), ["crates/report/src/fixture"]);
    assert_eq!(declares("crates/hw/src/machine.rs"), ["crates/hw/src/machine/fixture"]);
    let of_its_crate = SourceFile::new("crates/a/src/lib.rs", "#[cfg(test)]\npub(crate) mod sample;\n");
    assert_eq!(test_modules(&of_its_crate), ["crates/a/src/sample"]);
    assert!(test_modules(&SourceFile::new("crates/a/src/b.rs", "#[cfg(test)]\nmod tests { }")).is_empty());
}
