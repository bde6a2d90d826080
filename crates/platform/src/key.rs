//! Keys of a platform file: name, kind of value, range, default.

use crate::memcpy::Variant;
use crate::text::{number, whole};
use lanemark_units::{Ticks, format_size, parse_size};
use toml::de::DeValue;

/// Type and range of the value of a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Nanoseconds, from 0 to this maximum.
    Ns(f64),
    /// A number between two bounds.
    Number(f64, f64),
    /// 0, which has a special meaning, or a number between two bounds.
    ZeroOrNumber(f64, f64),
    /// A whole number between two bounds.
    Count(u64, u64),
    /// One of these whole numbers.
    OneOf(&'static [u64]),
    /// Bytes between two bounds, as a whole number or as text with a unit (`"64KiB"`).
    Size(u64, u64),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
}

/// One key: the row behind reader, schema and guide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key {
    /// Name of the key; the unit is its last part.
    pub name: &'static str,
    /// Description.
    pub doc: &'static str,
    /// Type and range of the value.
    pub kind: Kind,
    /// Default value, as written in a file, and its reason; `None` for a required key.
    pub default: Option<(&'static str, &'static str)>,
    /// Bounds within which a fit searches an unknown value; `None` if the value cannot be unknown.
    pub searched: Option<(f64, f64)>,
}

impl Key {
    /// Start of the search for an unknown value between `bounds`: their geometric mean, or the listed or whole number
    /// nearest to it. It is independent of the machine. `None` if no value of the key is between the bounds.
    #[must_use]
    pub fn search_start(&self, (low, high): (f64, f64)) -> Option<f64> {
        let middle = (low * high).sqrt();
        let start = match self.kind {
            Kind::OneOf(these) => {
                let inside = these.iter().map(|one| *one as f64).filter(|one| (low..=high).contains(one));
                inside.min_by(|one, other| (one / middle).ln().abs().total_cmp(&(other / middle).ln().abs()))?
            }
            kind if kind.is_whole() => middle.round(),
            _ => middle,
        };
        (low..=high).contains(&start).then_some(start)
    }

    /// The default as a number, 0 and 1 for `false` and `true`; `None` for a required key, and for words.
    pub(crate) fn default_number(&self) -> Option<f64> {
        match self.kind.take_text(self.default?.0)? {
            Raw::Number(number) => Some(number),
            Raw::Whole(whole) => Some(whole as f64),
            Raw::Flag(flag) => Some(f64::from(u8::from(flag))),
            Raw::Word(_) => None,
        }
    }
}

impl Kind {
    /// The rule for values of this kind, as a clause.
    #[must_use]
    pub fn wanted(&self) -> String {
        match self {
            Kind::Ns(max) => format!("must be nanoseconds from 0 to {max}"),
            Kind::Number(min, max) => format!("must be a number from {min} to {max}"),
            Kind::ZeroOrNumber(min, max) => format!("must be 0 or a number from {min} to {max}"),
            Kind::Count(min, max) => format!("must be a whole number from {min} to {max}"),
            Kind::OneOf(these) => {
                format!("must be one of {}", these.iter().map(u64::to_string).collect::<Vec<_>>().join(", "))
            }
            Kind::Size(min, max) => format!(
                "must be bytes (4096) or a size with its unit (\"4KiB\") from {} to {}",
                format_size(*min),
                format_size(*max)
            ),
            Kind::Choice(words) => format!("must be one of \"{}\"", words.join("\", \"")),
            Kind::Flag => "must be true or false".to_owned(),
        }
    }

    pub(crate) fn take(&self, value: &DeValue<'_>) -> Option<Raw> {
        match self {
            Kind::Ns(_) | Kind::Number(..) | Kind::ZeroOrNumber(..) => self.take_f64(number(value)?),
            Kind::Count(..) | Kind::OneOf(_) => self.take_whole(u64::try_from(whole(value)?).ok()?),
            Kind::Size(..) => match value {
                DeValue::String(text) => self.take_whole(parse_size(text).ok()?),
                _ => self.take_whole(u64::try_from(whole(value)?).ok()?),
            },
            Kind::Choice(words) => {
                let wanted = value.as_str()?;
                words.iter().find(|word| **word == wanted).map(|word| Raw::Word(word))
            }
            Kind::Flag => value.as_bool().map(Raw::Flag),
        }
    }

    /// Whether the values are whole numbers; 0 and 1 stand for `false` and `true`.
    pub(crate) const fn is_whole(&self) -> bool {
        matches!(self, Kind::Count(..) | Kind::OneOf(_) | Kind::Size(..) | Kind::Flag)
    }

    fn take_whole(&self, whole: u64) -> Option<Raw> {
        let right = match self {
            Kind::Count(min, max) | Kind::Size(min, max) => (*min..=*max).contains(&whole),
            Kind::OneOf(these) => these.contains(&whole),
            _ => false,
        };
        right.then_some(Raw::Whole(whole))
    }

    /// As [`take`](Kind::take), from an argument of the command line: sizes without quotes, whole numbers also in
    /// hexadecimal.
    pub(crate) fn take_text(&self, text: &str) -> Option<Raw> {
        let text = text.trim();
        match self {
            Kind::Choice(words) => words.iter().find(|word| **word == text).map(|word| Raw::Word(word)),
            Kind::Flag => text.parse().ok().map(Raw::Flag),
            _ => match whole_number(text) {
                Some(whole) => self.take_u64(whole),
                None => self.take_f64(text.parse().ok()?),
            },
        }
    }

    /// As [`take`](Kind::take), from a whole number.
    fn take_u64(&self, whole: u64) -> Option<Raw> {
        match self {
            Kind::Ns(_) | Kind::Number(..) | Kind::ZeroOrNumber(..) => self.take_f64(whole as f64),
            _ => self.take_whole(whole),
        }
    }

    /// As [`take`](Kind::take), from a number.
    pub(crate) fn take_f64(&self, value: f64) -> Option<Raw> {
        match self {
            Kind::Ns(max) => (0.0..=*max).contains(&value).then_some(Raw::Number(value)),
            Kind::Number(min, max) => (*min..=*max).contains(&value).then_some(Raw::Number(value)),
            Kind::ZeroOrNumber(min, max) => {
                (value == 0.0 || (*min..=*max).contains(&value)).then_some(Raw::Number(value))
            }
            Kind::Flag => [0.0, 1.0].contains(&value).then_some(Raw::Flag(value > 0.0)),
            _ if value >= 0.0 && value.fract() == 0.0 && value < u64::MAX as f64 => self.take_whole(value as u64),
            _ => None,
        }
    }
}

/// A whole number: hexadecimal as in TOML (`0x8_0000_0000`), or a size (`64`, `4KiB`).
fn whole_number(text: &str) -> Option<u64> {
    let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) else {
        return parse_size(text).ok();
    };
    let is_hexadecimal =
        digits.split('_').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit()));
    is_hexadecimal.then(|| u64::from_str_radix(&digits.replace('_', ""), 16).ok()).flatten()
}

/// A checked value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Raw {
    /// Value of [`Kind::Ns`], [`Kind::Number`] or [`Kind::ZeroOrNumber`].
    Number(f64),
    /// Value of [`Kind::Count`], [`Kind::OneOf`] or [`Kind::Size`].
    Whole(u64),
    /// Value of [`Kind::Choice`].
    Word(&'static str),
    /// Value of [`Kind::Flag`].
    Flag(bool),
}

impl Raw {
    /// The value as a number; `None` for a word or a flag.
    pub(crate) const fn number(self) -> Option<f64> {
        match self {
            Raw::Number(number) => Some(number),
            Raw::Whole(whole) => Some(whole as f64),
            Raw::Word(_) | Raw::Flag(_) => None,
        }
    }
}

/// A type that a checked value converts to, and back.
pub(crate) trait Value: Sized {
    fn from_raw(raw: &Raw) -> Option<Self>;
    fn to_raw(&self) -> Raw;
}

impl Value for f64 {
    fn from_raw(raw: &Raw) -> Option<f64> {
        if let Raw::Number(number) = raw { Some(*number) } else { None }
    }
    fn to_raw(&self) -> Raw {
        Raw::Number(*self)
    }
}

impl Value for Ticks {
    fn from_raw(raw: &Raw) -> Option<Ticks> {
        if let Raw::Number(ns) = raw { Ticks::from_ns(*ns).ok() } else { None }
    }
    fn to_raw(&self) -> Raw {
        Raw::Number(self.as_ns())
    }
}

impl Value for u64 {
    fn from_raw(raw: &Raw) -> Option<u64> {
        if let Raw::Whole(whole) = raw { Some(*whole) } else { None }
    }
    fn to_raw(&self) -> Raw {
        Raw::Whole(*self)
    }
}

impl Value for u32 {
    fn from_raw(raw: &Raw) -> Option<u32> {
        u64::from_raw(raw).and_then(|whole| u32::try_from(whole).ok())
    }
    fn to_raw(&self) -> Raw {
        Raw::Whole(u64::from(*self))
    }
}

impl Value for bool {
    fn from_raw(raw: &Raw) -> Option<bool> {
        if let Raw::Flag(flag) = raw { Some(*flag) } else { None }
    }
    fn to_raw(&self) -> Raw {
        Raw::Flag(*self)
    }
}

impl Value for Variant {
    fn from_raw(raw: &Raw) -> Option<Variant> {
        if let Raw::Word(word) = raw { Variant::from_name(word) } else { None }
    }
    fn to_raw(&self) -> Raw {
        Raw::Word(self.name())
    }
}

/// 2^63, larger than any BAR.
pub(crate) const HUGE: u64 = 1 << 63;
