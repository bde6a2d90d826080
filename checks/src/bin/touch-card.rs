//! Performs accesses to a card through the library, by its arguments: `touch-card ADDRESS RANGE uc|wc STEP...`.
//!
//! Steps: `poke:OFFSET:WIDTH:VALUE`, `peek:OFFSET:WIDTH`, `burst:OFFSET:WORD,WORD...`, `copy-to:OFFSET:TEXT`,
//! `copy-from:OFFSET:LENGTH`, `fence`. Numbers may be hexadecimal, `0x10`. Loaded data are
//! printed, one line per step; an error ends the program with status 1.
//!
//! The test guest runs it, and the test checks the written bytes from outside.

use lanemark_hw::linux_sysfs::{BarMapping, Card, Consent};
use lanemark_machine::Width;
use std::error::Error;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match touch(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn touch(words: &[String]) -> Result<(), Box<dyn Error>> {
    let [address, range, memory_type, steps @ ..] = words else {
        return Err("usage: touch-card ADDRESS RANGE uc|wc STEP...".into());
    };
    let card = Card::attach(address.parse()?, &[range.parse()?], Consent::default())?;
    let mut mapping = card.map(0, memory_type.parse()?)?;
    for step in steps {
        let done = take(&mut mapping, step)?;
        if !done.is_empty() {
            println!("{done}");
        }
    }
    Ok(())
}

/// Performs one step, and returns the loaded data.
fn take(mapping: &mut BarMapping, step: &str) -> Result<String, Box<dyn Error>> {
    let parts: Vec<&str> = step.splitn(4, ':').collect();
    match parts.as_slice() {
        ["poke", offset, bytes, value] => mapping.poke(number(offset)?, width(bytes)?, number(value)?)?,
        ["peek", offset, bytes] => return Ok(format!("{:#x}", mapping.peek(number(offset)?, width(bytes)?)?)),
        ["burst", offset, words] => {
            let words = words.split(',').map(|word| Ok(u32::try_from(number(word)?)?));
            mapping.write_burst(number(offset)?, &words.collect::<Result<Vec<u32>, Box<dyn Error>>>()?)?;
        }
        ["copy-to", offset, text] => mapping.copy_to(number(offset)?, text.as_bytes())?,
        ["copy-from", offset, length] => {
            let mut bytes = vec![0; usize::try_from(number(length)?)?];
            mapping.copy_from(number(offset)?, &mut bytes)?;
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
        ["fence"] => mapping.fence(),
        _ => return Err(format!("'{step}' is not a step: use poke, peek, burst, copy-to, copy-from or fence").into()),
    }
    Ok(String::new())
}

fn number(text: &str) -> Result<u64, Box<dyn Error>> {
    let parsed = text.strip_prefix("0x").map_or_else(|| text.parse(), |digits| u64::from_str_radix(digits, 16));
    parsed.map_err(|error| format!("'{text}': {error}").into())
}

fn width(text: &str) -> Result<Width, Box<dyn Error>> {
    let bytes = number(text)?;
    Width::ALL.into_iter().find(|width| width.bytes() == bytes).ok_or_else(|| format!("no width of {text} B").into())
}
