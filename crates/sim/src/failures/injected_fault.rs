//! The injected faults, and which of them have triggered.

use super::Failures;
use super::faults::Armed;
use lanemark_machine::InjectedFault;
use lanemark_platform::{Fault, FaultKind, Platform};
use lanemark_units::Ticks;

impl Failures {
    /// Returns the state of each fault of `platform`, the one of the board, at `now`.
    pub(crate) fn injected_faults(&self, now: Ticks, platform: &Platform) -> Vec<InjectedFault> {
        let armed = |number: usize| self.injected.as_ref()?.armed.iter().find(|armed| armed.number == number);
        let injected_fault = |(number, fault): (usize, &Fault)| InjectedFault {
            what: fault.to_string(),
            origin: fault.origin(),
            because_not: match armed(number) {
                Some(armed) => armed.because_not(now, fault, platform),
                None => Some(format!("no link leads to {}", fault.port)),
            },
        };
        platform.faults.iter().enumerate().map(injected_fault).collect()
    }
}

impl Armed {
    /// Returns why the fault has had no effect so far; `None` if it had one.
    fn because_not(&self, now: Ticks, fault: &Fault, platform: &Platform) -> Option<String> {
        let (port, tlp) = (&fault.port, fault.tlp.value);
        match self.since {
            Some(_) if self.is_noticed => None,
            Some(_) if self.is_eclipsed => Some("another fault affected its TLP".to_owned()),
            Some(since) if self.kind.is_of_link() && since <= now => {
                Some("nothing was sent over that link while it was down".to_owned())
            }
            Some(_) if self.kind.is_of_link() => Some(format!("the run ended at {now}")),
            Some(_) => None,
            None => {
                let (came, whats) = (tlp - self.left, self.whats());
                let from = if self.from > Ticks::ZERO { format!(" from {} on", self.from) } else { String::new() };
                let until = format!("until the end of the run at {now}");
                let [one, more] = whats;
                if self.kind == FaultKind::Unpinnable {
                    return Some(format!("no core pinned more than {came} pages for {port}{from} {until}"));
                }
                // Translated requests are not looked up, hence not counted.
                let entries = platform.dma.as_ref().map_or(0, |dma| dma.ats_entries.value);
                let is_looked_up = matches!(self.kind, FaultKind::Unmapped | FaultKind::ReadOnly);
                let how = if is_looked_up && platform.has_ats() {
                    format!(" untranslated (dma.ats_entries is {entries})")
                } else {
                    String::new()
                };
                Some(match came {
                    0 => format!("no {one} came{how} to {port}{from} {until}"),
                    1 => format!("only 1 {one} came{how} to {port}{from} {until}"),
                    _ => format!("only {came} {more} came{how} to {port}{from} {until}"),
                })
            }
        }
    }

    /// Returns the name of the TLPs that it can affect, singular and plural.
    const fn whats(&self) -> [&'static str; 2] {
        match self.kind {
            FaultKind::UnsupportedRequest | FaultKind::CompleterAbort | FaultKind::Unmapped => ["request", "requests"],
            FaultKind::Poisoned => ["TLP with data", "TLPs with data"],
            FaultKind::NoCompletion => ["read", "reads"],
            FaultKind::ReadOnly => ["write", "writes"],
            FaultKind::StuckInvalidation => ["invalidation", "invalidations"],
            FaultKind::Unpinnable => ["page", "pages"],
            FaultKind::Ecrc | FaultKind::CreditStarvation | FaultKind::LinkDown | FaultKind::SurpriseRemoval => {
                ["TLP", "TLPs"]
            }
        }
    }
}
