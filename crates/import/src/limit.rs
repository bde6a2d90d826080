//! The limit of a link, beside which an imported rate stands.

use lanemark_model::completion_ceiling;
use lanemark_record::{BytePath, ImportedFigure};
use lanemark_wire::{Generation, Lanes, Mps};

/// The payload rate of a link in one direction, and where its facts are from.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkLimit {
    /// Source of the facts: a platform, or an address in a listing.
    pub source: String,
    /// Generation.
    pub generation: Generation,
    /// Width.
    pub lanes: Lanes,
    /// Largest payload.
    pub mps: Mps,
}

impl LinkLimit {
    /// Payload bytes per second in one direction; `None` for a link without a rate.
    ///
    /// Completions have the shortest headers, so that no transfer is faster.
    ///
    /// ```
    /// use lanemark_import::LinkLimit;
    /// use lanemark_wire::{Generation, Lanes, Mps};
    /// let mps = Mps::new(256).unwrap();
    /// let link = LinkLimit { source: "a test".to_owned(), generation: Generation::Gen4, lanes: Lanes::X16, mps };
    /// assert!((link.one_way().unwrap() / 1e9 - 29.2).abs() < 0.1);
    /// ```
    #[must_use]
    pub fn one_way(&self) -> Option<f64> {
        completion_ceiling(self.generation, self.lanes, self.mps).map(lanemark_units::Rate::bytes_per_s)
    }

    /// The limit of a figure; `None` for a latency, and if its bytes need not cross the link.
    #[must_use]
    pub fn of(&self, figure: &ImportedFigure) -> Option<f64> {
        figure.value.rate()?;
        Some(self.one_way()? * f64::from(BytePath::directions(figure.path)?))
    }

    /// The link in words: `Gen5 x16, MPS 256 B`.
    #[must_use]
    pub fn in_words(&self) -> String {
        format!("{} {}, MPS {} B", self.generation, self.lanes, self.mps.bytes())
    }
}
