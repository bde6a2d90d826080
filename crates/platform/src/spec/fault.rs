//! Injected faults: `[[fault]]` sections, and their short form on the command line.

use crate::key::{Kind, Raw, Value};
use crate::param::{Origin, Param};
use lanemark_units::Ticks;
use std::fmt;
use std::str::FromStr;

words! {
    /// Kind of an injected fault.
    FaultKind {
        /// A request is rejected with Unsupported Request.
        UnsupportedRequest = "unsupported_request",
        /// A request is rejected with Completer Abort.
        CompleterAbort = "completer_abort",
        /// A TLP with data is poisoned (its EP bit is set).
        Poisoned = "poisoned",
        /// The ECRC of a TLP is wrong.
        Ecrc = "ecrc",
        /// No read is completed any more.
        NoCompletion = "no_completion",
        /// The receive buffer is no longer drained, so that no credits are returned.
        CreditStarvation = "credit_starvation",
        /// The link goes down.
        LinkDown = "link_down",
        /// The device below the link is removed, permanently.
        SurpriseRemoval = "surprise_removal",
        /// The page of a request is unmapped just before the request reaches the IOMMU.
        Unmapped = "unmapped",
        /// The page of a write becomes read-only just before the write reaches the IOMMU.
        ReadOnly = "read_only",
        /// An invalidation command to the IOMMU never completes.
        StuckInvalidation = "stuck_invalidation",
        /// A page that the driver has to pin cannot be pinned.
        Unpinnable = "unpinnable",
    }
}

section! {
    /// A fault injected at a port, which triggers once.
    Fault ["fault"] {
        text {
            /// Name in messages.
            name,
            /// Port that receives the affected TLPs: a slot (`card` without slots), a switch for its upstream port,
            /// or `ABOVE/BELOW` for the port of a switch or of `root` above one of them.
            port,
        }
        /// Kind of the fault.
        kind: FaultKind = Kind::Choice(FaultKind::WORDS);
        /// Affected TLP: the n-th that the port receives from its link and to which the fault applies, from 1. For a
        /// driver fault, the n-th page that a core pins for the card.
        tlp: u64 = Kind::Count(1, 1 << 40), default "1" because "the first one";
        /// Time since power-on from which TLPs are counted. For the first TLP (1) of a link that goes down, the time
        /// at which it does.
        at_ns: Ticks = Kind::Ns(1e15), default "0" because "from the beginning";
        /// How long the link stays down; 0 for permanently.
        down_ns: Ticks = Kind::Ns(1e15), default "0" because "the link is not brought up again";
    }
}

impl FaultKind {
    /// Whether the fault affects the whole link, in both directions.
    #[must_use]
    pub const fn is_of_link(self) -> bool {
        matches!(self, FaultKind::LinkDown | FaultKind::SurpriseRemoval)
    }

    /// Whether the fault occurs at the IOMMU, behind a root port.
    #[must_use]
    pub const fn is_of_iommu(self) -> bool {
        matches!(self, FaultKind::Unmapped | FaultKind::ReadOnly | FaultKind::StuckInvalidation)
    }

    /// Whether the fault occurs in the driver of a card.
    #[must_use]
    pub const fn is_of_driver(self) -> bool {
        matches!(self, FaultKind::Unpinnable)
    }

    /// Whether the fault occurs at endpoints and root ports only, not at ports of switches.
    pub(crate) const fn is_at_the_end(self) -> bool {
        !self.is_of_link() && !matches!(self, FaultKind::CreditStarvation)
    }
}

impl Fault {
    /// Origin of the fault: `--fault` of the command line, or its section of the file.
    #[must_use]
    pub fn origin(&self) -> String {
        // A name in a file cannot contain this character.
        if self.name.contains('@') { "--fault".to_owned() } else { format!("fault.{} of its file", self.name) }
    }
}

/// A text that is not a valid fault.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "'{text}' is not a valid fault: {because}; examples: poisoned@card:3 (the third TLP with data), link_down@card:2000ns, link_down@card:2000ns+500ns"
)]
pub struct NoFault {
    /// The text.
    pub text: String,
    /// The rule that the text breaks.
    pub because: String,
}

/// Number of characters of a wrong text that a message shows.
const MOST_SHOWN: usize = 60;

/// `KIND@PORT[:WHEN]`, where `WHEN` is the number of a TLP or a time such as `2000ns`. For a link, the time may be
/// followed by how long it stays down: `2000ns+500ns`.
///
/// ```
/// use lanemark_platform::{Fault, FaultKind};
/// let fault: Fault = "poisoned@card:3".parse()?;
/// assert_eq!((fault.kind.value, fault.port.as_str(), fault.tlp.value), (FaultKind::Poisoned, "card", 3));
/// let down: Fault = "link_down@root/card:2000ns+500ns".parse()?;
/// assert_eq!((down.at_ns.value.as_ns(), down.down_ns.value.as_ns()), (2000.0, 500.0));
/// assert!("link_down@card:2000".parse::<Fault>().is_ok(), "the two thousandth TLP");
/// assert!("link_down@card:2000us".parse::<Fault>().is_err());
/// # Ok::<(), lanemark_platform::NoFault>(())
/// ```
impl FromStr for Fault {
    type Err = NoFault;

    fn from_str(text: &str) -> Result<Fault, NoFault> {
        parse(text).map_err(|because| NoFault { text: text.chars().take(MOST_SHOWN).collect(), because })
    }
}

fn parse(text: &str) -> Result<Fault, String> {
    let (kind, place) = text.split_once('@').ok_or("it does not name a port after @")?;
    let known = || format!("kinds are {}", FaultKind::WORDS.join(", "));
    let word = FaultKind::WORDS.iter().find(|word| **word == kind).ok_or_else(known)?;
    let kind = FaultKind::from_raw(&Raw::Word(word)).ok_or_else(known)?;
    let (port, when) = place.split_once(':').map_or((place, None), |(port, when)| (port, Some(when)));
    if port.is_empty() {
        return Err("it does not name a port after @".to_owned());
    }
    let (mut tlp, mut at_ns, mut down_ns) = (1.0, 0.0, 0.0);
    if let Some(when) = when {
        let (start, span) = when.split_once('+').map_or((when, None), |(start, span)| (start, Some(span)));
        if start.ends_with("ns") {
            at_ns = time(start)?;
        } else {
            let wrong = |_| format!("'{start}' is neither a TLP number nor a time in ns");
            tlp = f64::from(start.parse::<u32>().map_err(wrong)?);
        }
        down_ns = span.map_or(Ok(0.0), time)?;
        if span.is_some() && down_ns == 0.0 {
            return Err("'+0ns' is not allowed: omit it for a link that stays down".to_owned());
        }
    }
    Ok(Fault {
        name: text.to_owned(),
        port: port.to_owned(),
        kind: said(kind),
        tlp: number("tlp", tlp)?,
        at_ns: number("at_ns", at_ns)?,
        down_ns: number("down_ns", down_ns)?,
    })
}

fn time(text: &str) -> Result<f64, String> {
    let wrong = || format!("'{text}' is not a time in ns");
    text.strip_suffix("ns").and_then(|ns| ns.parse().ok()).ok_or_else(wrong)
}

fn said<T>(value: T) -> Param<T> {
    Param { value, origin: Origin::Assumed("given with --fault on the command line".to_owned()), line: 0 }
}

/// A value for the key of this name.
fn number<T: Value>(name: &str, value: f64) -> Result<Param<T>, String> {
    let key = Fault::KEYS.iter().find(|key| key.name == name);
    let taken = key.and_then(|key| T::from_raw(&key.kind.take_f64(value)?));
    let wanted = || format!("its {name} {}", key.map_or_else(String::new, |key| key.kind.wanted()));
    taken.map(said).ok_or_else(wanted)
}

/// A time without spaces, as typed on a command line.
fn typed(time: Ticks) -> String {
    time.to_string().replace(' ', "")
}

impl fmt::Display for Fault {
    /// The form that the command line accepts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.kind.value.word(), self.port)?;
        match (self.tlp.value, self.at_ns.value) {
            (1, Ticks::ZERO) => {}
            (1, at) => write!(f, ":{}", typed(at))?,
            (tlp, _) => write!(f, ":{tlp}")?,
        }
        if self.down_ns.value > Ticks::ZERO { write!(f, "+{}", typed(self.down_ns.value)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Fault, FaultKind, preset};

    fn refused(text: &str) -> String {
        text.parse::<Fault>().unwrap_err().to_string()
    }

    #[test]
    fn every_kind_round_trips_through_text() {
        for word in FaultKind::WORDS {
            for when in ["", ":2", ":2000ns", ":2000.5ns+500ns", ":7+500ns"] {
                let text = format!("{word}@rc47a/fpga0{when}");
                assert_eq!(text.parse::<Fault>().unwrap().to_string(), text);
            }
        }
        assert_eq!("completer_abort@card:1".parse::<Fault>().unwrap().to_string(), "completer_abort@card");
        assert_eq!("completer_abort@card:1".parse::<Fault>().unwrap().origin(), "--fault");
    }

    #[test]
    fn an_invalid_fault_text_is_rejected_with_the_reason() {
        for (text, because) in [
            ("poisoned", "it does not name a port after @"),
            ("poisoned@", "it does not name a port after @"),
            (
                "broken@card",
                "kinds are unsupported_request, completer_abort, poisoned, ecrc, no_completion, credit_starvation, link_down, surprise_removal, unmapped, read_only, stuck_invalidation, unpinnable",
            ),
            ("poisoned@card:x", "'x' is neither a TLP number nor a time in ns"),
            ("poisoned@card:0", "its tlp must be a whole number from 1"),
            ("poisoned@card:-1ns", "its at_ns must be nanoseconds from 0"),
            ("link_down@card:5ns+5", "'5' is not a time in ns"),
            ("link_down@card:3+0ns", "'+0ns' is not allowed: omit it for a link that stays down"),
            ("link_down@card:5ns+0.0ns", "'+0ns' is not allowed"),
        ] {
            assert!(
                refused(text).starts_with(&format!("'{text}' is not a valid fault: {because}")),
                "{}",
                refused(text)
            );
        }
    }

    #[test]
    fn a_fault_must_be_at_a_port_where_it_can_occur() {
        let rosta = preset("rosta-virtex7").unwrap().unwrap();
        let with = |text: &str| rosta.with_fault(text.parse().unwrap()).map_err(|error| error.to_string());
        let unknown = with("completer_abort@fpga8").unwrap_err();
        assert!(
            unknown.contains(
                "fault.completer_abort@fpga8.port: is \"fpga8\", not a port of this platform; its ports: root/rha25, "
            ),
            "{unknown}"
        );
        let switch = with("completer_abort@rc47a").unwrap_err();
        assert!(
            switch.contains(
                "is rc47a, a port of a switch; completer_abort can occur only at root ports and cards: root/rha25, fpga0, "
            ),
            "{switch}"
        );
        assert!(with("surprise_removal@fpga0+5ns").is_err());
        for right in [
            "completer_abort@fpga0",
            "completer_abort@root/rha25",
            "link_down@rc47a:5ns+5ns",
            "credit_starvation@rc47a/fpga0",
        ] {
            assert_eq!(with(right).unwrap().faults.len(), 1, "{right}");
        }
        assert!(with("unmapped@root/rha25").unwrap_err().contains("is unmapped, but no [iommu] section"));
        let translating = preset("card-gen5-x16-iommu").unwrap().unwrap();
        let with_iommu = |text: &str| translating.with_fault(text.parse().unwrap()).map_err(|error| error.to_string());
        for kind in ["unmapped", "read_only", "stuck_invalidation"] {
            assert!(with_iommu(&format!("{kind}@root/card:3")).is_ok(), "{kind}");
            let below = with_iommu(&format!("{kind}@card:3")).unwrap_err();
            assert!(below.contains("occurs behind root ports only: root, root/..."), "{below}");
        }
        assert!(rosta.with_fault("unpinnable@fpga0:3".parse().unwrap()).is_ok());
        let once = rosta.with_fault("unpinnable@fpga0:3".parse().unwrap()).unwrap();
        let twice = once.with_fault("unpinnable@fpga0:5".parse().unwrap()).map_err(|error| error.to_string());
        assert!(twice.unwrap_err().contains("is unpinnable, but fpga0 already has one"));
        assert!(once.with_fault("unpinnable@fpga1:5".parse().unwrap()).is_ok());
        assert!(with("unpinnable@root/rha25").unwrap_err().contains("unpinnable occurs in the driver of a card only"));
        let twice = rosta.with_fault("surprise_removal@fpga0:5".parse().unwrap()).unwrap();
        assert_eq!(twice.with_fault("completer_abort@fpga1:5".parse().unwrap()).unwrap().faults.len(), 2);
        assert!(
            with("surprise_removal@fpga0:5+5ns")
                .unwrap_err()
                .contains("down_ns: applies to link_down only, but this is surprise_removal")
        );
    }
}
