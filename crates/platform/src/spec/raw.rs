//! A checked value as text.

use crate::key::Raw;
use std::fmt;

impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Raw::Number(number) => number.fmt(f),
            Raw::Whole(whole) => whole.fmt(f),
            Raw::Word(word) => word.fmt(f),
            Raw::Flag(flag) => flag.fmt(f),
        }
    }
}
