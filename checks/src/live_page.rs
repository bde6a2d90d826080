//! Pages with sliders, and the formulas that they must show.

use lanemark_record::{Answer, Quantity, Record};
use lanemark_runner::{Answerer, Cancel, Request, Target, question, run};
use std::io::Read;

/// The answers of the formulas of a built-in platform to these questions, with changed keys, as `lanemark predict` gives
/// them.
///
/// # Errors
/// The message of the run.
pub fn predicted(platform: &str, questions: &[&str], with: &[(String, String)]) -> Result<Record, String> {
    let named = |name: &&str| question(name).map_err(|error| error.to_string());
    let mut request = Request {
        targets: vec![platform.parse::<Target>().map_err(|error| error.to_string())?],
        questions: questions.iter().map(named).collect::<Result<_, _>>()?,
        answerer: Answerer::Formulas,
        command: ["lanemark", "predict", "--on", platform].map(str::to_owned).to_vec(),
        ..Request::default()
    };
    request.setup.changes.with = with.to_vec();
    let outcome = run(&request, &mut |_| {}, &Cancel::default()).map_err(|error| error.to_string())?;
    outcome.into_result().map_err(|error| error.to_string())
}

/// The figure of the formula of an answer.
#[must_use]
pub fn formula(answer: &Answer) -> Option<f64> {
    let formula = answer.formula.as_ref()?;
    match answer.quantity {
        Quantity::Bandwidth => formula.delivered_rate_bytes_per_s,
        _ => formula.latency_ns,
    }
}

/// The module inside a page; `None` if it has none.
///
/// # Panics
/// If it cannot be decoded.
#[must_use]
pub fn module(page: &str) -> Option<Vec<u8>> {
    let (_, rest) = page.split_once("id=\"live-module\">")?;
    let bytes = from_base64(rest.split('<').next()?.trim());
    let mut module = Vec::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut module).expect("the module is compressed by gzip");
    Some(module)
}

/// The data of the sliders of a page; `None` if it has none.
///
/// # Panics
/// If it is not JSON.
#[must_use]
pub fn data(page: &str) -> Option<serde_json::Value> {
    let (_, rest) = page.split_once("id=\"live\">")?;
    Some(serde_json::from_str(rest.split("</script>").next()?).expect("the data of the sliders is JSON"))
}

/// Bytes from base64.
#[must_use]
pub fn from_base64(text: &str) -> Vec<u8> {
    let digit = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let padding = text.bytes().rev().take_while(|letter| *letter == b'=').count();
    let word = |four: &[u8]| {
        let word = four.iter().fold(0, |word, letter| word << 6 | u32::from(digit(*letter)));
        [(word >> 16) as u8, (word >> 8) as u8, word as u8]
    };
    let mut bytes: Vec<u8> = text.as_bytes().chunks(4).flat_map(word).collect();
    bytes.truncate(bytes.len() - padding);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded_with_and_without_padding() {
        for (text, bytes) in [("TWFu", &b"Man"[..]), ("TWE=", b"Ma"), ("TQ==", b"M"), ("+/+/", &[0xfb, 0xff, 0xbf])] {
            assert_eq!(from_base64(text), bytes);
        }
    }
}
