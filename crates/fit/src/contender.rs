//! A structure that was compared.

use crate::distinction::Distinction;

/// A structure with its errors at figures that were not fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender {
    /// Changes to the structure of the file: keys with their values, as numbers; 1 is `true`.
    pub set: Vec<(String, f64)>,
    /// Keys that are fitted in addition to the unknown numbers of the file.
    pub fitted: Vec<String>,
    /// Absolute errors of the held-out figures, in percent, in the order of the data, without the smallest and the largest size
    /// of each curve.
    pub errors_percent: Vec<f64>,
    /// Whether it is the chosen structure.
    pub is_chosen: bool,
    /// Whether it gives all figures as the chosen structure does, so that they do not tell which one the card has.
    pub is_like_chosen: bool,
    /// Whether chance may have decided: it is not the chosen one, has no more fitted numbers, and follows the figures about as
    /// closely.
    pub is_as_likely: bool,
    /// The measurement that tells it from the chosen one, for one that is like it or as likely.
    pub distinction: Option<Distinction>,
}

impl Contender {
    /// Median of the absolute errors, in percent.
    #[must_use]
    pub fn median_percent(&self) -> f64 {
        let mut sorted = self.errors_percent.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = |place: usize| sorted.get(place).copied().unwrap_or_default();
        f64::midpoint(middle(sorted.len().saturating_sub(1) / 2), middle(sorted.len() / 2))
    }

    /// Mean of the absolute errors, in percent.
    #[must_use]
    pub fn mean_percent(&self) -> f64 {
        self.errors_percent.iter().sum::<f64>() / self.errors_percent.len().max(1) as f64
    }
}
