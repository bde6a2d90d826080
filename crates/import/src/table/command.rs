//! Command lines in the output of a tool, as a shell or a script echoes them.

/// The words of `line` behind the program `name`, if it is a command line of that program: `$ sudo dd if=...`.
pub(crate) fn words<'a>(line: &'a str, name: &str) -> Option<Vec<&'a str>> {
    let mut words = line.split_whitespace();
    let is_prefix = |word: &str| {
        matches!(word, "$" | "#" | "+" | ">" | "sudo" | "time" | "taskset" | "numactl") || word.contains('=')
    };
    loop {
        let word = words.next()?;
        if word.rsplit('/').next() == Some(name) {
            return Some(words.collect());
        }
        // A prompt ends with $ or #; options and values of taskset and numactl are skipped.
        let is_prompt = word.ends_with(['$', '#', '>']);
        if !(is_prefix(word) || is_prompt || word.starts_with('-') || word.starts_with(|c: char| c.is_ascii_digit())) {
            return None;
        }
    }
}

/// The value of an option: `-b 64`, `-b64`, `--long 64` or `--long=64`.
pub(crate) fn option<'a>(words: &[&'a str], short: &str, long: &str) -> Option<&'a str> {
    for (place, word) in words.iter().enumerate() {
        if *word == short || *word == long {
            return words.get(place + 1).copied();
        }
        if let Some(value) = word.strip_prefix(long).and_then(|rest| rest.strip_prefix('=')) {
            return Some(value);
        }
        let attached = word.strip_prefix(short).filter(|_| !word.starts_with("--"));
        if let Some(value) = attached.filter(|value| !value.is_empty()) {
            return Some(value);
        }
    }
    None
}
