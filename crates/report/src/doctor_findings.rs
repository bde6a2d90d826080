//! Findings and invisible facts of a diagnosis, as text.

use crate::figures;
use crate::grid::{clean, wrap};
use lanemark_record::diagnosis::{End, Finding, Gain, Severity, Unit, Unseen};

/// The findings, numbered, each with its reason, gain and fix.
pub(crate) fn findings(findings: &[Finding], width: Option<u16>) -> String {
    if findings.is_empty() {
        return "no findings in the visible settings".to_owned();
    }
    let count = figures::counted(findings.len(), "finding");
    let order = if findings.len() > 1 { ", the costliest first" } else { "" };
    let mut blocks = vec![wrap(&format!("{count}{order}; nothing was changed, and no command was run"), width, 2)];
    blocks.extend(findings.iter().enumerate().map(|(place, finding)| block(place + 1, finding, width)));
    blocks.join("\n\n")
}

fn block(number: usize, finding: &Finding, width: Option<u16>) -> String {
    let severity = match finding.severity {
        Severity::Broken => "BROKEN",
        Severity::Costly => "costly",
        Severity::Minor => "minor",
        Severity::Hint => "hint",
    };
    let place = match finding.functions.as_slice() {
        [] => "of the machine".to_owned(),
        functions => format!("at {}", some(functions)),
    };
    let end = match finding.end {
        None => "",
        Some(End::Upper) => ", upper end",
        Some(End::Lower) => ", lower end",
        Some(End::Both) => ", both ends",
    };
    let mut lines = vec![
        wrap(&format!("{number}. {severity}: {} {place}{end}", finding.check), width, 3),
        wrap(&format!("   {}", finding.reason), width, 3),
        wrap(&format!("   gain: {}", gain(&finding.gain)), width, 9),
    ];
    match &finding.fix.command {
        // Commands are copied by readers, so they are never wrapped.
        Some(command) => {
            lines.push(format!("   fix: {}", clean(command)));
            if !finding.fix.words.is_empty() {
                lines.push(wrap(&format!("        {}", finding.fix.words), width, 8));
            }
        }
        None => lines.push(wrap(&format!("   fix: {}", finding.fix.words), width, 8)),
    }
    lines.join("\n")
}

fn gain(gain: &Gain) -> String {
    match gain {
        Gain::Unknown { because } => format!("unknown, because {because}"),
        Gain::Computed { quantity, now, then, unit, assumes } => {
            let figure = match unit {
                Unit::BytesPerS => figures::rate,
                Unit::Ns => figures::time,
            };
            let times = gain.factor().map_or_else(String::new, |factor| format!(" ({})", figures::times(factor)));
            format!("{quantity} {} now, {} then{times}; assumes {assumes}", figure(*now), figure(*then))
        }
    }
}

/// The first addresses of a long list, and the number of the others.
fn some(functions: &[String]) -> String {
    const MOST: usize = 6;
    match functions.len() {
        0..=MOST => functions.join(", "),
        count => format!("{} and {} more", functions[..MOST].join(", "), count - MOST),
    }
}

/// Facts that were not visible, grouped by the way to make them visible. The JSON has the reason of
/// each.
pub(crate) fn unseen(unseen: &[Unseen], width: Option<u16>) -> String {
    let mut groups: Vec<(&str, Vec<&Unseen>)> = Vec::new();
    for one in unseen {
        match groups.iter_mut().find(|(enable, _)| *enable == one.enable) {
            Some((_, group)) => group.push(one),
            None => groups.push((&one.enable, vec![one])),
        }
    }
    let line = |(enable, group): &(&str, Vec<&Unseen>)| {
        let whats: Vec<String> = group.iter().map(|one| what(one)).collect();
        let because = &group[0].because;
        let alike = group.iter().all(|one| one.because == *because);
        let because = if alike { format!(": {because}") } else { String::new() };
        wrap(&format!("  - {}{because}; to make it visible: {enable}", whats.join(", ")), width, 4)
    };
    std::iter::once("not visible:".to_owned()).chain(groups.iter().map(line)).collect::<Vec<_>>().join("\n")
}

fn what(unseen: &Unseen) -> String {
    match unseen.functions.as_slice() {
        [] => unseen.what.clone(),
        [one] => format!("{} of {one}", unseen.what),
        several => format!("{} of {}", unseen.what, figures::counted(several.len(), "function")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_to_six_addresses_are_listed_and_the_rest_are_counted() {
        let addresses: Vec<String> = (0..7).map(|number| number.to_string()).collect();
        assert_eq!(some(&addresses[..6]), "0, 1, 2, 3, 4, 5");
        assert_eq!(some(&addresses), "0, 1, 2, 3, 4, 5 and 1 more");
    }
}
