//! Counts the pages that drivers pin for a card, up to one that cannot be pinned (injected fault).

/// Pages left before the fault, and its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pins {
    card: u32,
    left: u64,
    refused: Option<RefusedPage>,
}

/// A page that could not be pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusedPage {
    /// The card.
    pub card: u32,
    /// Bus address of the page.
    pub at: u64,
    /// Position of the page in its buffer, from 1.
    pub nth: u64,
    /// Number of pages of that buffer.
    pub pages: u64,
}

impl Pins {
    /// Bytes of a page.
    pub const PAGE: u64 = 4096;

    /// Makes the last of the next `left` pages pinned for a card fail; `left` is at least 1.
    #[must_use]
    pub const fn until(card: u32, left: u64) -> Pins {
        Pins { card, left, refused: None }
    }

    /// Returns the card.
    #[must_use]
    pub const fn card(&self) -> u32 {
        self.card
    }

    /// Returns the number of pages up to the failing one; 0 after the fault.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Returns the page that could not be pinned, after the fault.
    #[must_use]
    pub const fn refused(&self) -> Option<RefusedPage> {
        self.refused
    }

    /// Pins `pages` pages of a buffer from `at` on; returns the page that fails.
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

    #[test]
    fn the_last_page_of_a_buffer_can_be_refused_and_names_its_card() {
        let mut pins = Pins::until(3, 2);
        assert_eq!(pins.card(), 3);
        // The buffer starts inside of a page.
        let refused = RefusedPage { card: 3, at: 0x9000, nth: 2, pages: 2 };
        assert_eq!((pins.pin(0x8010, 2), pins.refused()), (Some(refused), Some(refused)));
    }
}
