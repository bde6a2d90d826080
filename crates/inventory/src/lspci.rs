//! Parses output of `lspci`: hexadecimal dumps, decoded text, or both.
//!
//! The first line of a function is not indented and starts with its address. Rows of a dump (`10: 0c 00 ...`) are not
//! indented either; decoded text is. Where both are present, the dump takes precedence. Quote marks, fences and
//! indentation of mails and forums are removed first.

mod heading;
mod listing;
mod pasted;
mod row;

use crate::{Address, Class, Function, Inventory, InventoryError, Note, Seen, Source, Why, config, merge, sysfs};
use listing::{Kinds, Listing};
use pasted::Pasted;
use std::collections::HashMap;
use std::path::Path;

/// Maximum size of the text: ten thousand functions with 4 KiB each.
const MOST_BYTES: usize = 256 << 20;
/// Maximum number of functions; the largest machines have a few thousand.
const MOST_FUNCTIONS: usize = 65_536;
/// Size of the configuration space of a function.
const MOST_CONFIG_BYTES: usize = 4096;
/// Maximum number of skipped lines that are noted one by one.
const MOST_NOTES: usize = 20;

/// The lines of one function.
struct Block<'a> {
    address: Address,
    heading: &'a str,
    listing: Listing<'a>,
    config: Vec<u8>,
}

/// Parses the whole text; `path` is its name in messages.
///
/// # Errors
/// If it contains no function, or a row of a dump is malformed.
pub(crate) fn read(text: &str, path: &Path) -> Result<Inventory, InventoryError> {
    let place = path.display().to_string();
    let too_large = |what: &str, most: usize| InventoryError::TooLarge {
        place: place.clone(),
        what: what.to_owned(),
        most: most as u64,
    };
    if text.len() > MOST_BYTES {
        return Err(too_large("its size in bytes", MOST_BYTES));
    }
    let mut skipped = SkippedLines { place: &place, notes: Vec::new(), more: 0 };
    let blocks = blocks(text, &place, &mut skipped)?;
    if blocks.len() > MOST_FUNCTIONS {
        return Err(too_large("the number of functions", MOST_FUNCTIONS));
    }
    if let Some(lack) = lack(&blocks) {
        let tried = vec![format!("as lspci output: {lack}; create it with sudo lspci -D -nn -vvv")];
        return Err(InventoryError::Unrecognised { path: path.to_owned(), tried });
    }
    let hex = blocks.iter().any(|block| !block.config.is_empty());
    let text = blocks.iter().any(|block| !block.listing.is_empty());
    let kinds = Kinds::of(blocks.iter().map(|block| &block.listing));
    let source = Source::Lspci { path: path.to_owned(), hex, text };
    let mut inventory = Inventory::unseen(source, &Why::NotInDump);
    inventory.notes = skipped.finish();
    for block in blocks {
        let function = function(block, &kinds, &mut inventory.notes);
        inventory.functions.push(function);
    }
    sysfs::finish(&mut inventory);
    Ok(inventory)
}

/// The reason why the text is no output of lspci. Times and versions look like addresses, so one function must have a
/// class, a dump or a line that lspci prints.
fn lack(blocks: &[Block<'_>]) -> Option<&'static str> {
    let is_function = |block: &Block<'_>| {
        heading::class(block.heading).is_some() || !block.config.is_empty() || block.listing.is_of_lspci()
    };
    if blocks.is_empty() {
        Some("no line begins with an address such as 0000:3b:00.0")
    } else if blocks.iter().any(is_function) {
        None
    } else {
        Some("lines begin with an address, but none has a class such as 'Ethernet controller:' behind it")
    }
}

fn function(block: Block<'_>, kinds: &Kinds, notes: &mut Vec<Note>) -> Function {
    let mut function = heading::function(block.address, block.heading);
    if is_all_ones(&block, &function) {
        // Revision and interface are those of the bytes, not of the device.
        function.revision = Seen::Unseen(Why::AllOnes);
        function.class = function.class.map(|class| Class(class.0 & !0xff));
        function = merge::functions(config::unread(block.address, &Why::AllOnes), function);
    }
    if !block.listing.is_empty() || block.config.is_empty() {
        function = merge::functions(function, block.listing.function(block.address, kinds));
    }
    if block.config.is_empty() {
        return function;
    }
    let (from_bytes, faults) = config::function(block.address, block.config);
    notes.extend(faults);
    // A dump has no region sizes; the listing has them.
    let regions = function.regions.clone().or_else(|| from_bytes.regions.clone());
    Function { regions, ..merge::functions(from_bytes, function) }
}

/// Whether the text shows a configuration space of all ones. A short listing has only the revision, which is ff.
fn is_all_ones(block: &Block<'_>, of_heading: &Function) -> bool {
    let revision = of_heading.revision.get() == Some(0xff);
    let interface = of_heading.class.get().is_some_and(|class| class.interface() == 0xff);
    block.config.is_empty() && (block.listing.is_all_ones() || revision && (interface || block.listing.is_empty()))
}

/// Splits the text into one block per function; of two blocks with the same address, the first is kept.
fn blocks<'a>(text: &'a str, place: &str, skipped: &mut SkippedLines<'_>) -> Result<Vec<Block<'a>>, InventoryError> {
    let mut blocks: Vec<Block<'a>> = Vec::new();
    let mut first_line: HashMap<Address, usize> = HashMap::new();
    // Whether the current lines belong to a duplicate function.
    let mut is_duplicate = false;
    // Whether the listing of the current function has lost its indentation.
    let mut is_flat = false;
    let pasted = Pasted::of(text);
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        let Some(line) = pasted.strip(line) else { continue };
        let malformed = |problem| InventoryError::Malformed { place: place.to_owned(), line: number, problem };
        if line.trim().is_empty() || line.starts_with('#') {
            is_flat &= !line.trim().is_empty();
            continue;
        }
        if line.starts_with([' ', '\t']) {
            if !is_duplicate && let Some(block) = blocks.last_mut() {
                block.listing.push(line);
            }
            continue;
        }
        if let Some((address, heading)) = heading::split(line) {
            if heading.starts_with('"') {
                return Err(malformed(
                    "this is output of lspci -m, which is not supported; run lspci again without -m and with -xxxx"
                        .to_owned(),
                ));
            }
            is_duplicate = first_line.contains_key(&address);
            if is_duplicate {
                let first = first_line[&address];
                skipped.note(number, format!("duplicate of {address} in line {first}; the first one is kept"));
                continue;
            }
            first_line.insert(address, number);
            is_flat = false;
            blocks.push(Block { address, heading, listing: Listing::default(), config: Vec::new() });
            continue;
        }
        let row = match row::read(line) {
            row::Row::Not => {
                let begins = |block: &Block<'_>| block.listing.is_empty() && Listing::can_begin(line);
                is_flat |= blocks.last().is_some_and(begins);
                if is_flat {
                    blocks.last_mut().filter(|_| !is_duplicate).into_iter().for_each(|block| block.listing.push(line));
                    continue;
                }
                skipped
                    .note(number, format!("'{}' is not a line of lspci; skipped", crate::shortened::shortened(line)));
                continue;
            }
            row::Row::Wrong(problem) => return Err(malformed(problem)),
            row::Row::Bytes { offset, bytes, count } => (offset, bytes, count),
        };
        let Some(block) = blocks.last_mut() else {
            return Err(malformed(
                "a row of a dump before the first function; start the text with a line that begins with an address"
                    .to_owned(),
            ));
        };
        if is_duplicate {
            continue;
        }
        let (offset, bytes, count) = row;
        row::append(&mut block.config, (offset, &bytes[..count]), MOST_CONFIG_BYTES).map_err(malformed)?;
    }
    Ok(blocks)
}

/// Notes on skipped lines: the first ones in detail, the others counted.
struct SkippedLines<'a> {
    place: &'a str,
    notes: Vec<Note>,
    more: usize,
}

impl SkippedLines<'_> {
    fn note(&mut self, line: usize, what: String) {
        if self.notes.len() < MOST_NOTES {
            self.notes.push(Note { at: format!("{}:{line}", self.place), what });
        } else {
            self.more += 1;
        }
    }

    fn finish(mut self) -> Vec<Note> {
        if self.more > 0 {
            let what = format!("{} more lines were skipped", self.more);
            self.notes.push(Note { at: self.place.to_owned(), what });
        }
        self.notes
    }
}
