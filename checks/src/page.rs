//! Markdown pages: fenced blocks and links.

use crate::root;
use std::path::{Path, PathBuf};

/// A Markdown page.
pub struct Page {
    /// Path relative to the repository's root, with `/`.
    pub path: String,
    /// Text of the page.
    pub text: String,
}

/// A fenced block.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    /// Line of the opening fence, from 1.
    pub line: usize,
    /// Language of the block.
    pub language: String,
    /// Notes after the language: `exit=2`, `file=card.toml`, `varies`.
    pub notes: Vec<String>,
    /// Lines of the block.
    pub lines: Vec<String>,
}

impl Block {
    /// Value of the note `name=value`.
    #[must_use]
    pub fn note(&self, name: &str) -> Option<&str> {
        self.notes.iter().find_map(|note| note.strip_prefix(name)?.strip_prefix('='))
    }

    /// Whether the note `name` is present.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.notes.iter().any(|note| note == name)
    }

    /// Commands of the block, each with the output shown below it: after `$ ` in `console`, every line in `sh`.
    ///
    /// # Panics
    /// If the first line continues a command that did not begin.
    #[must_use]
    pub fn commands(&self) -> Vec<(String, Vec<String>)> {
        let mut commands: Vec<(String, Vec<String>)> = Vec::new();
        let mut goes_on = false;
        let shows_output = self.language == "console";
        for line in &self.lines {
            let command = match self.language.as_str() {
                "console" => line.strip_prefix("$ "),
                "sh" => Some(line.as_str()).filter(|line| !line.trim().is_empty() && !line.starts_with('#')),
                _ => None,
            };
            match (goes_on, command) {
                (true, _) => commands.last_mut().unwrap().0.push_str(line.trim()),
                (false, Some(command)) => commands.push((command.to_owned(), Vec::new())),
                (false, None) => {
                    if let Some(last) = commands.last_mut().filter(|_| shows_output) {
                        last.1.push(line.clone());
                    }
                    continue;
                }
            }
            let last = &mut commands.last_mut().unwrap().0;
            goes_on = last.ends_with('\\');
            if goes_on {
                last.pop();
            }
        }
        commands
    }
}

impl Page {
    /// Reads the page at a path relative to the root.
    ///
    /// # Panics
    /// If the page cannot be read.
    #[must_use]
    pub fn read(path: &str) -> Page {
        let text = std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        Page { path: path.to_owned(), text }
    }

    /// All Markdown pages of the tree for readers.
    ///
    /// # Panics
    /// If a page cannot be read.
    #[must_use]
    pub fn all() -> Vec<Page> {
        let mut paths = Vec::new();
        for folder in ["", "docs", "docs/guide", "docs/decisions"] {
            paths.extend(markdown_in(folder));
        }
        for paper in std::fs::read_dir(root().join("experiments")).into_iter().flatten() {
            paths.extend(markdown_in(&format!("experiments/{}", paper.unwrap().file_name().to_string_lossy())));
        }
        paths.sort();
        paths.iter().map(|path| Page::read(path)).collect()
    }

    /// Fenced blocks of the page.
    ///
    /// # Panics
    /// If a block is not closed.
    #[must_use]
    pub fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut open: Option<Block> = None;
        for (number, line) in self.text.lines().enumerate() {
            match (line.strip_prefix("```"), open.take()) {
                (Some(""), Some(block)) => blocks.push(block),
                (_, Some(mut block)) => {
                    block.lines.push(line.to_owned());
                    open = Some(block);
                }
                (Some(info), None) => {
                    let mut words = info.split_whitespace().map(str::to_owned);
                    let language = words.next().unwrap_or_default();
                    open = Some(Block { line: number + 1, language, notes: words.collect(), lines: Vec::new() });
                }
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{}: a fenced block is not closed", self.path);
        blocks
    }

    /// Targets of links to files of this tree, relative to the root, without `#...`.
    ///
    /// # Panics
    /// If the page has no path.
    #[must_use]
    pub fn links(&self) -> Vec<PathBuf> {
        let folder = Path::new(&self.path).parent().unwrap();
        self.text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split([')', ' ', '#']).next())
            .filter(|target| !target.is_empty() && !target.contains("://"))
            .map(|target| folder.join(target))
            .collect()
    }
}

fn markdown_in(folder: &str) -> Vec<String> {
    let is_markdown = |name: &String| Path::new(name).extension().is_some_and(|kind| kind == "md");
    let entries = std::fs::read_dir(root().join(folder)).into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).filter(is_markdown);
    names.map(|name| if folder.is_empty() { name } else { format!("{folder}/{name}") }).collect()
}

#[test]
fn blocks_commands_and_links_are_found() {
    let text = "[a](b/c.md#d) [e](https://f)\n```console exit=2 varies\n$ lanemark g \\\n    h\nout\n$ i\n```\n\
                ```sh\n# why\nmake j\n\nmake k\n```\n";
    let page = Page { path: "docs/x.md".to_owned(), text: text.to_owned() };
    let [console, sh] = page.blocks().try_into().unwrap();
    assert_eq!((console.line, console.note("exit"), console.has("varies")), (2, Some("2"), true));
    let command =
        |command: &str, output: &[&str]| (command.to_owned(), output.iter().map(|o| (*o).to_owned()).collect());
    assert_eq!(console.commands(), [command("lanemark g h", &["out"]), command("i", &[])]);
    assert_eq!(sh.commands(), [command("make j", &[]), command("make k", &[])]);
    assert_eq!(page.links(), [Path::new("docs/b/c.md")]);
}
