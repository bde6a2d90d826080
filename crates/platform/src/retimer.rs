//! The retimers of a link, and their checks.

use crate::notes::Notes;
use crate::{Platform, Retimer};

/// Maximum number of retimers on a link.
///
/// Source: PCI Express Base Specification 4.0, section 4.3.
const MOST_PER_LINK: usize = 2;

impl Platform {
    /// The retimers on the link above a switch or a card, named as in [`LinkEnds::below`](crate::LinkEnds::below).
    pub fn retimers_on(&self, below: &str) -> impl Iterator<Item = &Retimer> {
        self.retimers.iter().filter(move |retimer| retimer.link == below)
    }
}

/// Every retimer is on a link, and no link has more than two.
pub(crate) fn check_retimers(platform: &Platform, notes: &mut Notes<'_>) {
    let links: Vec<&str> = platform.links().iter().map(|link| link.below).collect();
    for (place, retimer) in platform.retimers.iter().enumerate() {
        let (name, link) = (&retimer.name, retimer.link.as_str());
        let mut note = |message: String| notes.at_line(retimer.down_ns.line, format!("retimer.{name}.link"), message);
        match links.iter().filter(|other| **other == link).count() {
            0 => note(format!("is {link:?}; known links: {}", links.join(", "))),
            1 => {}
            _ => note(format!("is {link:?}, both a slot and a switch; give them different names")),
        }
        let before = platform.retimers[..place].iter().filter(|other| other.link == link).count();
        if before >= MOST_PER_LINK {
            note(format!("is {link:?}, which has {MOST_PER_LINK} retimers already, the maximum of a link"));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Origin, PRESETS, Platform};
    use lanemark_units::Ticks;
    use std::fmt::Write as _;

    /// A preset with one retimer per link named.
    fn with(preset: &str, links: &[&str]) -> Result<Platform, String> {
        let mut text = PRESETS.iter().find(|row| row.name == preset).unwrap().text.to_owned();
        for (number, link) in links.iter().enumerate() {
            let _ = write!(
                text,
                "\n[[retimer]]\nname = \"r{number}\"\nlink = \"{link}\"\n\
                 down_ns = {{ value = 20, source = \"a test\" }}\nup_ns = {{ value = 30, source = \"a test\" }}\n"
            );
        }
        Platform::parse("retimers.toml", &text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_link_has_at_most_two_retimers() {
        let card = with("card-gen5-x16", &["card", "card"]).unwrap();
        assert_eq!((card.retimers_on("card").count(), card.retimers_on("root").count()), (2, 0));
        let refused = with("card-gen5-x16", &["card", "card", "card"]).unwrap_err();
        let message = "retimer.r2.link: is \"card\", which has 2 retimers already, the maximum of a link";
        assert!(refused.ends_with(message) && refused.lines().count() == 1, "{refused}");
        // Two on each of several links.
        with("rosta-virtex7", &["fpga0", "rc47a", "fpga0", "rc47a", "rha25"]).unwrap();
    }

    #[test]
    fn an_unknown_link_is_refused_with_the_known_links() {
        let refused = with("card-gen5-x16", &["root"]).unwrap_err();
        assert!(refused.ends_with("retimer.r0.link: is \"root\"; known links: card"), "{refused}");
        let refused = with("rosta-virtex7", &["root/rha25"]).unwrap_err();
        assert!(refused.contains("is \"root/rha25\"; known links: rha25, rc47a, rc47b, fpga0, fpga1,"), "{refused}");
    }

    #[test]
    fn a_latency_of_zero_is_accepted_and_a_negative_one_refused() {
        let card = with("card-gen5-x16", &["card"]).unwrap();
        for key in ["retimer.r0.down_ns", "retimer.r0.up_ns"] {
            let set = |value: &str| card.with_text(key, value, Origin::Given("a test".to_owned()));
            assert_eq!(set("0").unwrap().number(key).unwrap().0, 0.0);
            assert_eq!(set("1000000").unwrap().number(key).unwrap().0, 1e6);
            for beyond in ["-1", "-0.001", "1000001"] {
                let refused = set(beyond).unwrap_err().to_string();
                assert!(refused.ends_with(&format!("is {beyond}; must be nanoseconds from 0 to 1000000")), "{refused}");
            }
        }
    }

    #[test]
    fn with_changes_a_retimer_that_exists_and_creates_none() {
        let card = with("card-gen5-x16", &["card"]).unwrap();
        let set = |key: &str| card.with_text(key, "50", Origin::Given("a test".to_owned()));
        assert_eq!(set("retimer.r0.down_ns").unwrap().retimers[0].down_ns.value, Ticks::whole_ns(50));
        let refused = set("retimer.r1.down_ns").unwrap_err().to_string();
        assert!(
            refused.contains("this platform has no [[retimer]] r1; it has r0; did you mean retimer.r0.down_ns"),
            "{refused}"
        );
    }
}
