//! State of a link: speed, width, payload size and power management of both ends.

use super::case::Case;
use super::edge::Edge;
use super::facts::fact;
use super::gain::write_ceiling;
use lanemark_inventory::{Function, Link, Seen, Width};
use lanemark_record::diagnosis::{self, Fact, LinkRate};
use lanemark_wire::Mps;
use lanemark_wire::config::LinkSpeed;

/// Combines speed and width.
pub(crate) fn rate(speed: &Seen<LinkSpeed>, width: &Seen<Width>) -> Seen<LinkRate> {
    match (speed, width) {
        (Seen::Known(speed), Seen::Known(width)) => {
            Seen::Known(LinkRate { generation: speed.code(), width_lanes: width.0 })
        }
        (Seen::Unseen(why), _) | (_, Seen::Unseen(why)) => Seen::Unseen(why.clone()),
    }
}

impl Edge {
    /// Link registers of the upper port.
    pub(crate) fn upper_link<'a>(&self, case: &Case<'a>) -> Option<&'a Link> {
        case.function(self.upper?).link()
    }

    /// Link registers of the lower port.
    pub(crate) fn lower_link<'a>(&self, case: &Case<'a>) -> Option<&'a Link> {
        case.function(self.lower).link()
    }

    /// Function at the upper end.
    pub(crate) fn upper<'a>(&self, case: &Case<'a>) -> Option<&'a Function> {
        Some(case.function(self.upper?))
    }

    /// Function at the lower end.
    pub(crate) fn lower<'a>(&self, case: &Case<'a>) -> &'a Function {
        case.function(self.lower)
    }

    /// Trained speed and width; both ends report the same, so one of them is sufficient.
    pub(crate) fn trained(&self, case: &Case<'_>) -> Option<LinkRate> {
        let of = |link: Option<&Link>| link.and_then(|link| rate(&link.speed, &link.width).get());
        of(self.lower_link(case)).or_else(|| of(self.upper_link(case))).filter(|rate| rate.width_lanes > 0)
    }

    /// Best speed and width that the lower end supports.
    pub(crate) fn lower_can(&self, case: &Case<'_>) -> Option<LinkRate> {
        self.lower_link(case).and_then(|link| rate(&link.fastest, &link.widest).get())
    }

    /// Best speed and width that both ends support.
    pub(crate) fn both_can(&self, case: &Case<'_>) -> Option<LinkRate> {
        let upper = self.upper_link(case).and_then(|link| rate(&link.fastest, &link.widest).get());
        let (upper, lower) = (upper?, self.lower_can(case)?);
        Some(LinkRate {
            generation: upper.generation.min(lower.generation),
            width_lanes: upper.width_lanes.min(lower.width_lanes),
        })
    }

    /// `Max_Payload_Size` of the lower end.
    pub(crate) fn mps(&self, case: &Case<'_>) -> Option<Mps> {
        self.lower(case).pcie().and_then(|express| express.mps.get())
    }

    /// Converts the link for a diagnosis.
    pub(crate) fn to_record(&self, case: &Case<'_>) -> diagnosis::Link {
        let can = |link: Option<&Link>| match link {
            Some(link) => fact(&rate(&link.fastest, &link.widest)),
            None => Fact::Unseen { unseen: "the upstream port was not seen".to_owned() },
        };
        let lower = self.lower_link(case);
        let trained = match (self.trained(case), lower) {
            (Some(value), _) => Fact::Seen { value },
            (None, Some(link)) => fact(&rate(&link.speed, &link.width)),
            (None, None) => Fact::Unseen { unseen: "the link was not seen".to_owned() },
        };
        let (upper_can, lower_can) = (can(self.upper_link(case)), can(lower));
        let both_can = match self.both_can(case) {
            Some(value) => Fact::Seen { value },
            None => Fact::Unseen { unseen: "the capability of one end was not seen".to_owned() },
        };
        let ceiling = self.trained(case).zip(self.mps(case)).and_then(|(rate, mps)| write_ceiling(rate, mps));
        diagnosis::Link {
            upper: self.upper(case).map(|function| function.address.to_string()),
            lower: self.lower(case).address.to_string(),
            state: state(trained.value(), upper_can.value(), lower_can.value()),
            trained,
            upper_can,
            lower_can,
            both_can,
            ceiling_bytes_per_s: match ceiling {
                Some(value) => Fact::Seen { value },
                None => Fact::Unseen { unseen: "it needs link state and payload size, and Gen1 to Gen6".to_owned() },
            },
            aspm: self.aspm(case),
        }
    }

    fn aspm(&self, case: &Case<'_>) -> Fact<String> {
        let ends = [self.upper_link(case), self.lower_link(case)];
        let known: Vec<_> = ends.into_iter().flatten().filter_map(|link| link.aspm_enabled.get()).collect();
        if known.is_empty() {
            return Fact::Unseen { unseen: "Link Control of both ends is unreadable".to_owned() };
        }
        let (l0s, l1) = (known.iter().any(|aspm| aspm.l0s), known.iter().any(|aspm| aspm.l1));
        let words = [(l0s, "L0s"), (l1, "L1")];
        let on: Vec<&str> = words.into_iter().filter_map(|(on, word)| on.then_some(word)).collect();
        Fact::Seen { value: if on.is_empty() { "none".to_owned() } else { on.join(" ") } }
    }
}

/// Describes the trained state, and the capability of each end where it is better.
fn state(trained: Option<&LinkRate>, upper: Option<&LinkRate>, lower: Option<&LinkRate>) -> String {
    let Some(trained) = trained else { return "link state not seen".to_owned() };
    if trained.width_lanes == 0 {
        return "link down".to_owned();
    }
    let most = |one: &LinkRate, other: &LinkRate| LinkRate {
        generation: one.generation.min(other.generation),
        width_lanes: one.width_lanes.min(other.width_lanes),
    };
    let text = trained.to_string();
    match (upper, lower) {
        (Some(upper), Some(lower)) if most(upper, lower) != *trained => format!("{text} of {}", most(upper, lower)),
        (Some(upper), Some(lower)) if upper != lower && upper == trained => format!("{text} ({lower} below)"),
        (Some(upper), Some(lower)) if upper != lower && lower == trained => format!("{text} ({upper} above)"),
        (Some(upper), Some(lower)) if upper != lower => format!("{text} ({upper} above, {lower} below)"),
        (None, Some(one)) | (Some(one), None) if one != trained => {
            format!("{text} (one end supports {one}, the other was not seen)")
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(generation: u8, width_lanes: u8) -> LinkRate {
        LinkRate { generation, width_lanes }
    }

    #[test]
    fn the_state_names_the_loss_and_the_limiting_end() {
        let state = |trained, upper: Option<LinkRate>, lower: Option<LinkRate>| {
            super::state(Some(&trained), upper.as_ref(), lower.as_ref())
        };
        assert_eq!(state(of(4, 16), Some(of(4, 16)), Some(of(4, 16))), "Gen4 x16");
        assert_eq!(state(of(3, 8), Some(of(4, 16)), Some(of(4, 16))), "Gen3 x8 of Gen4 x16");
        assert_eq!(state(of(3, 8), Some(of(3, 8)), Some(of(4, 16))), "Gen3 x8 (Gen4 x16 below)");
        assert_eq!(state(of(3, 8), Some(of(4, 16)), Some(of(3, 8))), "Gen3 x8 (Gen4 x16 above)");
        assert_eq!(
            state(of(3, 8), None, Some(of(4, 16))),
            "Gen3 x8 (one end supports Gen4 x16, the other was not seen)"
        );
        assert_eq!(state(of(1, 0), None, None), "link down");
        assert_eq!(super::state(None, None, None), "link state not seen");
    }
}
