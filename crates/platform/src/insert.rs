//! Inserts a key into the text of a platform file; the rest of the text, with its comments, is unchanged.

use std::ops::Range;
use toml::Table;
use toml::de::DeTable;

/// `text` with one more key in a section that is not repeated. `entry` is the value in TOML. `None` if the section is
/// repeated or no table, or has the key.
///
/// Each possible place is tried; the first one is used whose text reads as the section with that key and otherwise as
/// before. So a line in a string that looks like the head of a section is passed over.
pub(crate) fn with_key(text: &str, path: &str, entry: &str) -> Option<String> {
    let (section, name) = path.split_once('.').filter(|(_, name)| !name.contains('.'))?;
    let mut wanted: Table = text.parse().ok()?;
    let value = format!("{name} = {entry}").parse::<Table>().ok()?.remove(name)?;
    let table = wanted.entry(section).or_insert_with(|| Table::new().into()).as_table_mut()?;
    if table.insert(name.to_owned(), value).is_some() {
        return None;
    }
    let is_wanted = |text: &String| text.parse::<Table>().is_ok_and(|found| found == wanted);
    let after = after_heads(text, section).into_iter().map(|at| inserted(text, at, &format!("{name} = {entry}\n")));
    let inside = inside(text, section, &format!("{name} = {entry}"));
    let dotted = first_line(text, section).map(|at| inserted(text, at, &format!("{section}.{name} = {entry}\n")));
    let at_end = inserted(text, text.len(), &format!("\n[{section}]\n{name} = {entry}\n"));
    after.chain(inside).chain([at_end]).chain(dotted).find(is_wanted)
}

/// `text` with another value of a key that it has in a section that is not repeated. `entry` is the value in TOML. `None` if
/// the text does not have the key, or if its value is written as a section of its own.
pub(crate) fn with_other_value(text: &str, path: &str, entry: &str) -> Option<String> {
    let (section, name) = path.split_once('.').filter(|(_, name)| !name.contains('.'))?;
    let mut wanted: Table = text.parse().ok()?;
    let value = format!("{name} = {entry}").parse::<Table>().ok()?.remove(name)?;
    wanted.get_mut(section)?.as_table_mut()?.get_mut(name).map(|old| *old = value)?;
    let (table, _) = DeTable::parse_recoverable(text);
    let Range { start, end } = table.get_ref().get(section)?.get_ref().as_table()?.get(name)?.span();
    let changed = format!("{}{entry}{}", text.get(..start)?, text.get(end..)?);
    changed.parse::<Table>().is_ok_and(|found| found == wanted).then_some(changed)
}

/// `text` with `line` at a position, which becomes the start of a line.
fn inserted(text: &str, at: usize, line: &str) -> String {
    let (before, after) = text.split_at(at);
    let end = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    format!("{before}{end}{line}{after}")
}

/// Ends of the lines that read as the head of a section, such as `[ link ] # comment`.
fn after_heads(text: &str, section: &str) -> Vec<usize> {
    let is_head = |line: &str| {
        let is_alone = |table: &Table| table.len() == 1 && table.get(section).is_some_and(toml::Value::is_table);
        line.trim_start().starts_with('[') && line.parse::<Table>().is_ok_and(|table| is_alone(&table))
    };
    let mut end = 0;
    let ends = text.split_inclusive('\n').filter_map(|line| {
        end += line.len();
        is_head(line).then_some(end)
    });
    ends.collect()
}

/// `text` with a key in the braces of a section `link = { ... }`; `None` if the section has none.
fn inside(text: &str, section: &str, key: &str) -> Option<String> {
    let (table, _) = DeTable::parse_recoverable(text);
    let value = table.get_ref().get(section)?;
    let Range { start, end } = value.span();
    let rest = text.get(start..end)?.strip_prefix('{')?;
    let comma = if value.get_ref().as_table()?.is_empty() { "" } else { "," };
    Some(format!("{}{{ {key}{comma}{rest}{}", text.get(..start)?, text.get(end..)?))
}

/// Start of the line where a section first occurs, as in `link.width_lanes = ...`.
fn first_line(text: &str, section: &str) -> Option<usize> {
    let (table, _) = DeTable::parse_recoverable(text);
    let (name, _) = table.get_ref().get_key_value(section)?;
    let before = text.get(..name.span().start)?;
    Some(before.rfind('\n').map_or(0, |newline| newline + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(text: &str) -> Option<String> {
        with_key(text, "link.latency_ns", "3")
    }

    #[test]
    fn a_key_is_inserted_however_its_section_is_written() {
        for (text, wanted) in [
            ("a = 1\n[link]\nb = 2\n", "a = 1\n[link]\nlatency_ns = 3\nb = 2\n"),
            ("[link] # from lspci\nb = 2", "[link] # from lspci\nlatency_ns = 3\nb = 2"),
            (" [ link ]\n", " [ link ]\nlatency_ns = 3\n"),
            ("[\"link\"]", "[\"link\"]\nlatency_ns = 3\n"),
            ("link = { b = 2 } # x\n", "link = { latency_ns = 3, b = 2 } # x\n"),
            ("link = {}\n", "link = { latency_ns = 3}\n"),
            ("link.b = 2\n[dma]\n", "link.latency_ns = 3\nlink.b = 2\n[dma]\n"),
            ("[link.b]\nvalue = 2\n", "[link.b]\nvalue = 2\n\n[link]\nlatency_ns = 3\n"),
            ("a = 1", "a = 1\n\n[link]\nlatency_ns = 3\n"),
            ("a = '''\n[link]\n'''\n", "a = '''\n[link]\n'''\n\n[link]\nlatency_ns = 3\n"),
            ("a = '''\n[link]\n'''\n[link]\n", "a = '''\n[link]\n'''\n[link]\nlatency_ns = 3\n"),
            ("[dma]\r\n[link]\r\nb = 2\r\n", "[dma]\r\n[link]\r\nlatency_ns = 3\nb = 2\r\n"),
        ] {
            assert_eq!(link(text).as_deref(), Some(wanted), "{text}");
        }
    }

    #[test]
    fn a_key_that_is_there_and_a_section_without_keys_are_refused() {
        for text in ["[link]\nlatency_ns = 2\n", "link = 3\n", "[[link]]\n", "[link\n"] {
            assert_eq!(link(text), None, "{text}");
        }
        assert_eq!(with_key("", "region.sram.read_ns", "3"), None);
    }

    #[test]
    fn a_value_is_replaced_however_it_is_written_and_only_where_it_is_written() {
        let other = |text: &str| with_other_value(text, "link.latency_ns", "{ value = 3 }");
        for (text, wanted) in [
            ("[link]\nlatency_ns = 2 # old\n", Some("[link]\nlatency_ns = { value = 3 } # old\n")),
            ("link = { latency_ns = 2 }", Some("link = { latency_ns = { value = 3 } }")),
            ("link.latency_ns = { value = 2, assumed = \"x\" }", Some("link.latency_ns = { value = 3 }")),
            ("[link.latency_ns]\nvalue = 2\n", None),
            ("[link]\nwidth_lanes = 2\n", None),
            ("[[link]]\nlatency_ns = 2\n", None),
        ] {
            assert_eq!(other(text).as_deref(), wanted, "{text}");
        }
    }
}
