//! Pages that drivers pin for a card, up to one that cannot be pinned.

/// How far it is to that page, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pins {
    card: u32,
    left: u64,
    refused: Option<RefusedPage>,
}

/// A page that could not be pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusedPage {
    /// For which card.
    pub card: u32,
    /// Where it is, as the card would name it.
    pub at: u64,
    /// Which page of its buffer, from 1.
    pub nth: u64,
    /// How many that buffer has.
    pub pages: u64,
}

impl Pins {
    /// Bytes of a page.
    pub const PAGE: u64 = 4096;

    /// Of so many pages that are pinned for a card, the last one cannot be; there is one at the least.
    #[must_use]
    pub const fn until(card: u32, left: u64) -> Pins {
        Pins { card, left, refused: None }
    }

    /// The card that they are pinned for.
    #[must_use]
    pub const fn card(&self) -> u32 {
        self.card
    }

    /// How many are still to come; 0 when it has happened.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// The page that could not be pinned, if it was its turn.
    #[must_use]
    pub const fn refused(&self) -> Option<RefusedPage> {
        self.refused
    }

    /// So many pages of a buffer from `at` on are to be pinned: the one that cannot be.
    pub fn pin(&mut self, at: u64, pages: u64) -> Option<RefusedPage> {
        let nth = self.left;
        self.left = self.left.saturating_sub(pages);
        if nth == 0 || nth > pages {
            return None;
        }
        let first = at - at % Pins::PAGE;
        self.refused = Some(RefusedPage { card: self.card, at: first + (nth - 1) * Pins::PAGE, nth, pages });
        self.refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_that_cannot_be_pinned_is_refused_once() {
        let mut pins = Pins::until(0, 5);
        assert_eq!(pins.pin(0x1000, 3), None);
        assert_eq!(pins.pin(0x8000, 3).map(|page| (page.nth, page.at)), Some((2, 0x9000)));
        assert_eq!(pins.pin(0x8000, 3), None, "it happens once");
    }
}
