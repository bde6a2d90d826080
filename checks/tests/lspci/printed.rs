//! Parser for the output of `lspci`: functions, header lines, and capabilities with their lines.

/// A function in the output of `lspci -n -vvv`.
#[derive(Debug, Default)]
pub struct Function {
    /// The first line.
    pub title: String,
    /// Lines of the header, with continuation lines joined and white space collapsed.
    pub header: Vec<String>,
    /// Capabilities of the function.
    pub capabilities: Vec<Capability>,
}

/// A capability in the output.
#[derive(Debug)]
pub struct Capability {
    /// Offset.
    pub offset: u16,
    /// Version of an extended capability.
    pub version: Option<u8>,
    /// Rest of the line with the offset.
    pub title: String,
    /// Lines of the capability, with continuation lines joined and white space collapsed.
    pub lines: Vec<String>,
}

/// Parses all functions of a listing.
pub fn functions(listing: &str) -> Vec<Function> {
    let mut functions: Vec<Function> = Vec::new();
    for line in listing.lines().filter(|line| !line.trim().is_empty()) {
        let depth = line.bytes().take_while(|byte| *byte == b'\t').count();
        let text = line.split_whitespace().collect::<Vec<_>>().join(" ");
        if depth == 0 {
            functions.push(Function { title: text, ..Function::default() });
            continue;
        }
        let function = functions.last_mut().expect("a listing begins with a function");
        if let Some(capability) = text.strip_prefix("Capabilities: ").filter(|_| depth == 1) {
            function.capabilities.push(capability_of(capability));
        } else {
            let (lines, own) = match function.capabilities.last_mut() {
                Some(capability) if depth > 1 => (&mut capability.lines, 2),
                _ => (&mut function.header, 1),
            };
            match lines.last_mut() {
                Some(last) if depth > own => *last = format!("{last} {text}"),
                _ => lines.push(text),
            }
        }
    }
    functions
}

fn capability_of(text: &str) -> Capability {
    let (place, title) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')).unwrap_or(("", text));
    let mut words = place.split(' ');
    let offset = words.next().and_then(|offset| u16::from_str_radix(offset, 16).ok()).unwrap_or(0);
    let version = words.next().and_then(|version| version.strip_prefix('v')?.parse().ok());
    Capability { offset, version, title: title.trim().to_owned(), lines: Vec::new() }
}
