//! Messages between the script of a page and the formulas, as JSON.

use crate::change::Change;
use crate::error::LiveError;
use crate::live::Live;
use crate::point::{Figure, Point};
use lanemark_units::figures::Unit;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// First message of the script of the page: a platform and the panels of its answers.
#[derive(Debug, Deserialize)]
struct Opened {
    platform: Value,
    panels: Vec<Panel>,
}

/// The points of a panel, with the symbol of its unit.
#[derive(Debug, Serialize, Deserialize)]
struct Panel {
    unit: String,
    points: Vec<Point>,
}

/// Message of the script of the page after a slider has moved.
#[derive(Debug, Deserialize)]
struct Asked {
    panel: usize,
    /// Indices of the wanted points.
    points: Vec<usize>,
    changes: Vec<Change>,
}

/// An opened page: a platform with the panels of its answers.
#[derive(Debug)]
pub struct Page {
    live: Live,
    panels: Vec<Panel>,
}

/// Opens a page: `message` has a platform and panels.
///
/// # Errors
/// [`LiveError`] if it is no such message, or its platform is none.
pub fn open(message: &str) -> Result<Page, LiveError> {
    let Opened { platform, panels } = serde_json::from_str(message)?;
    Ok(Page { live: Live::of(&platform)?, panels })
}

/// Answers a message about some points of a panel: their figures and limits in its unit, as numbers and as `lanemark predict`
/// prints them.
///
/// # Errors
/// [`LiveError`] if it is no such message, or the changed platform is none.
pub fn answer(page: &mut Page, message: &str) -> Result<Value, LiveError> {
    let Asked { panel, points: wanted, changes } = serde_json::from_str(message)?;
    let panels = page.panels.len();
    let Panel { unit, points } = page.panels.get(panel).ok_or(LiveError::Panel { panel, panels })?;
    let points: Vec<&Point> = wanted.iter().filter_map(|wanted| points.get(*wanted)).collect();
    let figures = page.live.figures(&changes, points)?;
    let unit = Unit::ALL.into_iter().find(|one| one.symbol() == unit).unwrap_or(Unit::Nanoseconds);
    let one = |figure: &Result<Figure, String>| match figure {
        Ok(Figure { value, bound, limit }) => json!({
            "value": value / unit.in_base(), "text": unit.figure(*value), "bound": bound,
            "limit": limit.map(|limit| limit / unit.in_base()), "limit_text": limit.map(|limit| unit.figure(limit)),
        }),
        Err(because) => json!({"problem": because}),
    };
    Ok(json!({"figures": figures.iter().map(one).collect::<Vec<_>>()}))
}
