//! The steps that recover a card, for a terminal: as a plan, and as performed on a simulated
//! machine.

use crate::figures;
use crate::grid::{clean, wrap};
use lanemark_record::recovery::{CarriedOut, Changed, Done, Recovery, Step};

/// Renders the steps for a terminal of `width` characters; commands never wrap.
#[must_use]
pub fn recovery(recovery: &Recovery, width: Option<u16>) -> String {
    let (functions, ports) = (recovery.functions.join(", "), recovery.ports.join(", "));
    let mut blocks = vec![
        wrap(&format!("{}: card {functions}, below {ports}", recovery.source), width, 2),
        format!(
            "{}, in this order, as root; nothing was changed, and no command was run",
            figures::counted(recovery.steps.len(), "step")
        ),
    ];
    blocks.extend(recovery.steps.iter().enumerate().map(|(place, step)| head(place, step, width)));
    if !recovery.notes.is_empty() {
        let notes = recovery.notes.iter().map(|note| wrap(&format!("  - {note}"), width, 4));
        blocks.push(std::iter::once("besides:".to_owned()).chain(notes).collect::<Vec<_>>().join("\n"));
    }
    blocks.join("\n\n") + "\n"
}

/// Renders the steps performed on a simulated machine, and their results, for a terminal of `width`
/// characters.
#[must_use]
pub fn carried_out(all: &CarriedOut, width: Option<u16>) -> String {
    let mut first = vec![wrap(&format!("{}, simulated, initial state", all.machine), width, 2)];
    first.extend(all.at_first.iter().map(|(function, look)| wrap(&format!("  {function}: {look}"), width, 4)));
    first.push(wrap(&format!("  a load from the card: {}", all.first_load), width, 4));
    first.extend(all.reported_at_first.iter().map(|reported| log(reported, width)));
    let mut blocks = vec![first.join("\n")];
    blocks.extend(all.done.iter().enumerate().map(|(place, done)| done_step(place, done, width)));
    let mut last =
        vec!["final state".to_owned(), wrap(&format!("  a load from the card: {}", all.last_load), width, 4)];
    if all.differences.is_empty() {
        last.push("  links, BARs and masks are restored, and no error bit is set".to_owned());
    }
    last.extend(all.differences.iter().map(|what| wrap(&format!("  not restored: {what}"), width, 4)));
    blocks.push(last.join("\n"));
    blocks.join("\n\n") + "\n"
}

/// Number, name, reason and commands of a step.
fn head(place: usize, Step { kind, commands, why, .. }: &Step, width: Option<u16>) -> String {
    let mut lines = vec![wrap(&format!("{}. {}: {why}", place + 1, kind.name()), width, 3)];
    lines.extend(commands.iter().map(|command| format!("     {}", clean(command))));
    lines.join("\n")
}

fn done_step(place: usize, done: &Done, width: Option<u16>) -> String {
    let mut lines = vec![head(place, &done.step, width)];
    lines.extend(done.left_out.iter().map(|why| format!("   skipped because of {why}")));
    lines.extend(done.failures.iter().map(|failure| wrap(&format!("   failed: {failure}"), width, 5)));
    for Changed { function, before, after } in &done.changes {
        lines.push(wrap(&format!("   {function} was: {before}"), width, 5));
        lines.push(wrap(&format!("   {function} is:  {after}"), width, 5));
    }
    lines.extend(done.reported.iter().map(|reported| log(reported, width)));
    lines.join("\n")
}

fn log(reported: &str, width: Option<u16>) -> String {
    wrap(&format!("   log: {reported}"), width, 5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_record::recovery::StepKind;

    fn step(kind: StepKind) -> Step {
        Step { kind, commands: vec!["do it".to_owned()], acts: Vec::new(), why: "it must be".to_owned() }
    }

    #[test]
    fn steps_are_rendered_with_reasons_and_commands() {
        let steps = Recovery {
            source: "this machine".to_owned(),
            functions: vec!["0000:01:00.0".to_owned()],
            ports: vec!["0000:00:01.0".to_owned()],
            steps: vec![step(StepKind::Mask), step(StepKind::Remove)],
            notes: vec!["look".to_owned()],
        };
        let expected = "\
this machine: card 0000:01:00.0, below 0000:00:01.0

2 steps, in this order, as root; nothing was changed, and no command was run

1. mask: it must be
     do it

2. remove: it must be
     do it

besides:
  - look
";
        assert_eq!(recovery(&steps, None), expected);
    }

    #[test]
    fn performed_steps_are_rendered_with_changes_and_reports() {
        let done = |failure: &str| Done {
            step: step(StepKind::Program),
            left_out: None,
            failures: vec![failure.to_owned()],
            changes: vec![Changed { function: "f".to_owned(), before: "a".to_owned(), after: "b".to_owned() }],
            reported: vec!["an error".to_owned()],
        };
        let all = CarriedOut {
            machine: "m".to_owned(),
            at_first: vec![("f".to_owned(), "a".to_owned())],
            first_load: "nothing".to_owned(),
            reported_at_first: Vec::new(),
            done: vec![Done { left_out: Some("--without program".to_owned()), ..done("no\u{1b}") }],
            last_load: "1".to_owned(),
            differences: vec!["all".to_owned()],
        };
        let expected = "\
m, simulated, initial state
  f: a
  a load from the card: nothing

1. program: it must be
     do it
   skipped because of --without program
   failed: no
   f was: a
   f is:  b
   log: an error

final state
  a load from the card: 1
  not restored: all
";
        assert_eq!(carried_out(&all, None), expected);
        let sound = CarriedOut { differences: Vec::new(), ..all };
        assert!(carried_out(&sound, None).ends_with("masks are restored, and no error bit is set\n"));
    }
}
