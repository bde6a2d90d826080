//! A valid file, and its results with one thing changed.

#![allow(dead_code)] // Each test binary uses its part.

use lanemark_platform::{Platform, PlatformError};

pub const CARD: &str = include_str!("../card.toml");

/// A text with one piece replaced, which must occur exactly once.
pub fn change(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "{from}");
    text.replacen(from, to, 1)
}

pub fn read(text: &str) -> Result<Platform, PlatformError> {
    Platform::from_bytes("card.toml", text.as_bytes())
}

#[track_caller]
pub fn accepted(text: &str) -> Platform {
    read(text).unwrap_or_else(|error| panic!("{error}"))
}

/// The problems of a text, without their lines.
pub fn said(text: &str) -> Vec<String> {
    let problems = read(text).unwrap_err().problems;
    problems.iter().map(|problem| format!("{}: {}", problem.key, problem.message)).collect()
}
