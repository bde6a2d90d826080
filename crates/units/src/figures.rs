//! Number formatting: three significant digits and a unit.
//!
//! GB is 10^9 bytes and KiB is 2^10. A space separates number and unit. NaN and infinity are
//! written as "not a number", never as 0.

/// The common unit of the figures in a table or plot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// 10^9 bytes per second.
    GigabytesPerSecond,
    /// 10^6 bytes per second.
    MegabytesPerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// Microseconds.
    Microseconds,
}

impl Unit {
    /// Every unit.
    pub const ALL: [Unit; 4] =
        [Unit::GigabytesPerSecond, Unit::MegabytesPerSecond, Unit::Nanoseconds, Unit::Microseconds];

    /// The unit in which rates up to `largest_bytes_per_s` are easy to read.
    #[must_use]
    pub fn for_rates(largest_bytes_per_s: f64) -> Unit {
        if largest_bytes_per_s < 0.1e9 { Unit::MegabytesPerSecond } else { Unit::GigabytesPerSecond }
    }

    /// The unit in which times from `smallest_ns` on are easy to read.
    #[must_use]
    pub fn for_times(smallest_ns: f64) -> Unit {
        if smallest_ns >= 10_000.0 { Unit::Microseconds } else { Unit::Nanoseconds }
    }

    /// The symbol of the unit.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Unit::GigabytesPerSecond => "GB/s",
            Unit::MegabytesPerSecond => "MB/s",
            Unit::Nanoseconds => "ns",
            Unit::Microseconds => "us",
        }
    }

    /// Bytes per second, or nanoseconds, per unit.
    #[must_use]
    pub const fn in_base(self) -> f64 {
        match self {
            Unit::GigabytesPerSecond => 1e9,
            Unit::MegabytesPerSecond => 1e6,
            Unit::Nanoseconds => 1.0,
            Unit::Microseconds => 1e3,
        }
    }

    /// Formats `value`, in bytes per second or nanoseconds, in this unit, without its symbol.
    ///
    /// ```
    /// use lanemark_units::figures::Unit;
    /// assert_eq!(Unit::GigabytesPerSecond.figure(3.047e9), "3.05");
    /// ```
    #[must_use]
    pub fn figure(self, value: f64) -> String {
        significant(value / self.in_base())
    }

    /// Formats `value`, in bytes per second or nanoseconds, in this unit, with its symbol.
    #[must_use]
    pub fn figure_with_symbol(self, value: f64) -> String {
        format!("{} {}", self.figure(value), self.symbol())
    }
}

/// Formats `value` with three significant digits; the whole part is never rounded.
///
/// ```
/// use lanemark_units::figures::significant;
/// assert_eq!(significant(3.047), "3.05");
/// assert_eq!(significant(1234.4), "1234");
/// assert_eq!(significant(0.0042), "0.00420");
/// ```
#[must_use]
pub fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() || value.abs() >= 1e9 || value.abs() < 1e-4 {
        return if value.is_finite() { format!("{value:.2e}") } else { "not a number".to_owned() };
    }
    // 9.996 becomes 10.0, so digits are counted after rounding.
    let rounded: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    let decimals = (2 - rounded.abs().log10().floor() as i64).max(0) as usize;
    format!("{value:.decimals$}")
}

/// Formats a rate with a suitable unit.
///
/// ```
/// assert_eq!(lanemark_units::figures::rate(41.9e6), "41.9 MB/s");
/// ```
#[must_use]
pub fn rate(bytes_per_s: f64) -> String {
    scaled(bytes_per_s, &[(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")])
}

/// Formats a time with a suitable unit.
///
/// ```
/// assert_eq!(lanemark_units::figures::time(441.0), "441 ns");
/// assert_eq!(lanemark_units::figures::time(12_345.0), "12.3 us");
/// ```
#[must_use]
pub fn time(ns: f64) -> String {
    scaled(ns, &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")])
}

fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    // 999.7 becomes 1.00 of the next unit, not 1000 of this one.
    let (factor, symbol) =
        units.iter().find(|(factor, _)| value.abs() >= factor * 0.9995).or(units.last()).copied().unwrap_or((1.0, ""));
    format!("{} {symbol}", significant(value / factor))
}

/// Formats a share in percent.
///
/// ```
/// assert_eq!(lanemark_units::figures::percent(92.13), "92.1 %");
/// ```
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{} %", significant(share))
}

/// Formats a share in percent without decimals.
#[must_use]
pub fn whole_percent(share: f64) -> String {
    if share > 0.0 && share < 1.0 { "<1 %".to_owned() } else { format!("{share:.0} %") }
}

/// Formats a difference in percent, with its sign.
///
/// ```
/// use lanemark_units::figures::difference;
/// assert_eq!(difference(0.24), "+0.2 %");
/// assert_eq!(difference(-0.01), "0.0 %");
/// ```
#[must_use]
pub fn difference(percent: f64) -> String {
    if !percent.is_finite() {
        "not a number".to_owned()
    } else if percent.abs() < 0.05 {
        "0.0 %".to_owned()
    } else if percent.abs() < 99.95 {
        format!("{percent:+.1} %")
    } else {
        format!("{percent:+.0} %")
    }
}

/// Formats a factor.
///
/// ```
/// assert_eq!(lanemark_units::figures::times(240.4), "240x");
/// ```
#[must_use]
pub fn times(factor: f64) -> String {
    if factor >= 9.95 { format!("{factor:.0}x") } else { format!("{factor:.1}x") }
}

/// Formats a size with the largest binary unit that leaves a whole number.
///
/// ```
/// assert_eq!(lanemark_units::figures::size(4096), "4 KiB");
/// ```
#[must_use]
pub fn size(bytes: u64) -> String {
    let text = crate::size::format_size(bytes);
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    format!("{} {}", &text[..digits], &text[digits..])
}

/// Formats a date and time in UTC, to the minute.
///
/// ```
/// assert_eq!(lanemark_units::figures::date(1_785_595_200), "2026-08-01 14:40 UTC");
/// ```
#[must_use]
pub fn date(unix_s: u64) -> String {
    // Days to year, month, day after H. Hinnant, "chrono-compatible low-level date algorithms".
    let (days, seconds) = (unix_s / 86_400, unix_s % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", seconds / 3600, seconds / 60 % 60)
}

/// Formats a count with its noun, which gets an `s` unless the count is 1.
///
/// ```
/// assert_eq!(lanemark_units::figures::counted(2, "answer"), "2 answers");
/// ```
#[must_use]
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_kept_after_rounding() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1.00"),
            (9.994, "9.99"),
            (9.996, "10.0"),
            (99.96, "100"),
            (999.6, "1000"),
            (123_456.7, "123457"),
            (0.041_94, "0.0419"),
            (0.000_419, "0.000419"),
            (0.000_041_9, "4.19e-5"),
            (-3.047, "-3.05"),
            (2.5e12, "2.50e12"),
        ] {
            assert_eq!(significant(value), text);
        }
    }

    #[test]
    fn nan_and_infinity_are_not_written_as_numbers() {
        assert_eq!(significant(f64::NAN), "not a number");
        assert_eq!(rate(f64::INFINITY), "not a number GB/s");
        assert_eq!(difference(f64::NAN), "not a number");
    }

    #[test]
    fn units_change_where_the_next_one_reads_better() {
        for (value, text) in [
            (1.0, "1.00 B/s"),
            (999.0, "999 B/s"),
            (999.7, "1.00 kB/s"),
            (52.1e9, "52.1 GB/s"),
            (0.999_6e9, "1.00 GB/s"),
            (0.0, "0 B/s"),
            (2e15, "2000000 GB/s"),
        ] {
            assert_eq!(rate(value), text);
        }
        assert_eq!(time(0.25), "0.250 ns");
        assert_eq!(time(2.5e9), "2.50 s");
        assert_eq!(Unit::for_rates(0.09e9), Unit::MegabytesPerSecond);
        assert_eq!(Unit::for_rates(0.1e9), Unit::GigabytesPerSecond);
        assert_eq!(Unit::for_times(9_999.0), Unit::Nanoseconds);
        assert_eq!(Unit::for_times(10_000.0).figure_with_symbol(12_345.0), "12.3 us");
    }

    #[test]
    fn only_nonzero_differences_have_a_sign() {
        assert_eq!(whole_percent(97.6), "98 %");
        assert_eq!(whole_percent(0.3), "<1 %");
        assert_eq!(whole_percent(0.0), "0 %");
        assert_eq!(difference(-12.34), "-12.3 %");
        assert_eq!(difference(250.0), "+250 %");
        assert_eq!(times(1.0), "1.0x");
        assert_eq!(times(12.7), "13x");
    }

    #[test]
    fn dates_handle_leap_years() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_709_251_200), "2024-03-01 00:00 UTC");
    }

    #[test]
    fn sizes_have_a_space_before_their_unit() {
        assert_eq!(size(64), "64 B");
        assert_eq!(size(1536), "1536 B");
        assert_eq!(size(4 << 20), "4 MiB");
    }
}
