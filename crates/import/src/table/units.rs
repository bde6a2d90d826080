//! Units of the figures of a table.

use lanemark_bench::Question;
use lanemark_record::Quantity;

/// Value of one unit.
#[derive(Clone, Copy)]
enum Unit {
    /// Nanoseconds, or bytes per second.
    Plain(f64),
    /// Transfers per second.
    Packets(f64),
}

use Unit::{Packets, Plain};

/// Units of times, with their value in nanoseconds.
const TIMES: [(&str, Unit); 4] = [("ns", Plain(1.0)), ("us", Plain(1e3)), ("µs", Plain(1e3)), ("ms", Plain(1e6))];

/// Units of rates. K of bytes and bits per second is 1000; Ki is 1024. A small b is a bit.
const RATES: [(&str, Unit); 17] = [
    ("B/s", Plain(1.0)),
    ("kB/s", Plain(1e3)),
    ("MB/s", Plain(1e6)),
    ("GB/s", Plain(1e9)),
    ("KiB/s", Plain(1024.0)),
    ("MiB/s", Plain(1_048_576.0)),
    ("GiB/s", Plain(1_073_741_824.0)),
    ("Mbit/s", Plain(1e6 / 8.0)),
    ("Gbit/s", Plain(1e9 / 8.0)),
    ("Tbit/s", Plain(1e12 / 8.0)),
    ("Mb/s", Plain(1e6 / 8.0)),
    ("Gb/s", Plain(1e9 / 8.0)),
    ("Tb/s", Plain(1e12 / 8.0)),
    ("pps", Packets(1.0)),
    ("Kpps", Packets(1e3)),
    ("kpps", Packets(1e3)),
    ("Mpps", Packets(1e6)),
];

/// Largest time: 1000 s, in nanoseconds.
const LONGEST_NS: f64 = 1e12;

/// Largest rate, in bytes per second: far above any link.
const FASTEST_BYTES_PER_S: f64 = 1e14;

/// Reads a number and its unit, such as `812 ns`, `11.2 GB/s`, `89.6 Gbit/s` or `2.8 Mpps`, as nanoseconds or bytes per
/// second. A packet is one transfer of `size_bytes`, so its rate is packets per second times that size.
///
/// # Errors
/// The units of the question, or the largest figure.
pub(super) fn figure(text: &str, question: &Question, size_bytes: u64) -> Result<f64, String> {
    let is_rate = question.quantity == Quantity::Bandwidth;
    let units: &[(&str, Unit)] = if is_rate { &RATES } else { &TIMES };
    let name = question.name;
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = units.iter().find(|(name, _)| *name == unit.trim()).map(|(_, unit)| match unit {
        Plain(factor) => *factor,
        Packets(each) => each * size_bytes as f64,
    });
    let value = number.parse().ok().zip(factor).map(|(number, factor): (f64, f64)| number * factor);
    let value = value.filter(|value| *value > 0.0).ok_or_else(|| {
        let units: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
        format!(
            "'{text}' is not a valid figure of {name}: write a number above 0 and a unit, one of {}",
            units.join(", ")
        )
    })?;
    checked(value, question)
}

/// Checks that a figure, in nanoseconds or bytes per second, is possible.
///
/// # Errors
/// The largest figure.
pub(super) fn checked(figure: f64, question: &Question) -> Result<f64, String> {
    let (most, in_words) = match question.quantity {
        Quantity::Bandwidth => (FASTEST_BYTES_PER_S, "100000 GB/s"),
        _ => (LONGEST_NS, "1000 s"),
    };
    if figure > 0.0 && figure <= most {
        Ok(figure)
    } else {
        Err(format!("the figure is out of range: a figure of {} is above 0 and at most {in_words}", question.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::rows::dma_question;

    fn rate(text: &str) -> Result<f64, String> {
        figure(text, dma_question("dma_write_bandwidth").unwrap(), 256)
    }

    fn time(text: &str) -> Result<f64, String> {
        figure(text, dma_question("dma_read_latency").unwrap(), 256)
    }

    #[test]
    fn a_small_b_is_a_bit_and_a_large_one_a_byte() {
        assert_eq!((rate("8 Gb/s").unwrap(), rate("8 GB/s").unwrap()), (1e9, 8e9));
        for text in ["800 Gbit/s", "800Gb/s", "0.8 Tbit/s", "0.8 Tb/s", "800000 Mbit/s", "800000 Mb/s"] {
            assert!((rate(text).unwrap() - 1e11).abs() < 1.0, "{text}");
        }
    }

    #[test]
    fn packets_are_transfers_of_the_size() {
        assert_eq!(rate("2.5 Mpps").unwrap(), 2.5e6 * 256.0);
        assert_eq!((rate("2 Kpps").unwrap(), rate("2 kpps").unwrap(), rate("3 pps").unwrap()), (512e3, 512e3, 768.0));
        assert!(time("2 Mpps").unwrap_err().contains("one of ns, us"));
    }

    #[test]
    fn units_that_are_not_listed_are_refused() {
        for text in ["1 gb/s", "1 GBps", "1 mpps", "1 Gb", "1", "1 GB/s/s", "∞ GB/s", "NaN GB/s", "inf GB/s"] {
            assert!(rate(text).unwrap_err().contains("one of B/s, kB/s"), "{text}");
        }
    }

    #[test]
    fn figures_that_no_link_has_are_refused() {
        assert!(rate("100000 GB/s").is_ok());
        assert!(rate("100001 GB/s").unwrap_err().contains("at most 100000 GB/s"));
        assert!(rate(&format!("{} GB/s", "9".repeat(400))).unwrap_err().contains("at most 100000 GB/s"));
        assert!(time("1000000 ms").is_ok());
        assert!(time("1000001 ms").unwrap_err().contains("at most 1000 s"));
    }
}
