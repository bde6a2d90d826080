//! What a request would touch on a card, with nothing of it done.

use crate::error::RunError;
use crate::open_target::OpenTarget;
use crate::request::Request;
use crate::target::Target;
use crate::tasks::{Task, work};
use lanemark_bench::{BenchError, Effort};
use lanemark_hw::linux_sysfs::{Attachment, Notes, Rehearsal};
use lanemark_machine::MachineError;

/// The accesses to a card that a request would make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DryRun {
    /// The card's address.
    pub device: String,
    /// Its vendor and device.
    pub id: String,
    /// Why the card would be refused as things are.
    pub refusals: Vec<String>,
    /// The ranges that may be touched.
    pub ranges: Vec<RangeCheck>,
    /// The accesses of each case, in the order of asking.
    pub cases: Vec<CaseAccesses>,
}

/// A range of a BAR, and how it would be mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeCheck {
    /// The range, as options write it.
    pub range: String,
    /// Storage, or which kind of registers.
    pub kind: String,
    /// Whether the kind is that of the BAR because the user named none.
    pub is_kind_assumed: bool,
    /// The BAR.
    pub bar: String,
    /// For each memory type the file that would be mapped, or why there is none.
    pub mappings: Vec<(String, Result<String, String>)>,
}

/// The accesses of one case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseAccesses {
    /// The question's name.
    pub question: &'static str,
    /// The most iterations of one sample.
    pub most_passes: u64,
    /// One sentence for each series of accesses.
    pub touched: Vec<String>,
    /// Why the case would not be answered.
    pub problem: Option<String>,
}

/// Lists every range, mapping and access of `request`, whose only target is a card, and touches nothing.
///
/// # Errors
/// [`RunError`] if the request is wrong or the card is not there.
pub fn dry_run(request: &Request) -> Result<DryRun, RunError> {
    let (targets, access) = (&request.targets, &request.setup.card);
    targets.iter().try_for_each(|target| request.setup.changes.check(target))?;
    access.check(targets)?;
    let address = match targets.as_slice() {
        [Target::Card(address)] => *address,
        others if others.iter().any(|target| matches!(target, Target::Card(_))) => {
            return Err(RunError::DryRunOfOthers);
        }
        _ => return Err(RunError::NoCard { field: "dry_run" }),
    };
    let attachment = Attachment::rehearsed(&access.system(), address, &access.bars, access.consent);
    let rehearsal = attachment.and_then(Rehearsal::new)?;
    let mut found = DryRun {
        device: rehearsal.attachment().device.address().to_string(),
        id: rehearsal.attachment().device.id()?,
        refusals: rehearsal.refusals().iter().map(ToString::to_string).collect(),
        ranges: ranges(&rehearsal),
        cases: Vec::new(),
    };
    let notes = rehearsal.notes();
    let mut targets = vec![OpenTarget::of_memory(Box::new(rehearsal))];
    let work = work(&request.named_or_usual(), &targets, &request.axes)?;
    found.cases = work.tasks.iter().map(|task| accesses(&mut targets[0], &notes, task)).collect();
    Ok(found)
}

fn ranges(rehearsal: &Rehearsal) -> Vec<RangeCheck> {
    let mappings = |number: usize| {
        let of_range = rehearsal.mappings().iter().filter(move |mapping| mapping.place == number);
        let each = of_range.map(|mapping| {
            let file = mapping.outcome.as_ref().map(|_| mapping.file.display().to_string());
            (mapping.memory_type.to_string(), file.map_err(ToString::to_string))
        });
        each.collect()
    };
    let places = rehearsal.attachment().places.iter().enumerate();
    let check = |(number, place): (usize, &lanemark_hw::linux_sysfs::Place)| RangeCheck {
        range: place.range.to_string(),
        kind: place.kind.to_string(),
        is_kind_assumed: place.is_kind_assumed(),
        bar: place.bar.to_string(),
        mappings: mappings(number),
    };
    places.map(check).collect()
}

fn accesses(target: &mut OpenTarget, notes: &Notes, task: &Task) -> CaseAccesses {
    let Task { question, case, .. } = task;
    let asked = target.ask(question, case, &Effort::default());
    CaseAccesses {
        question: question.name,
        most_passes: (question.most_passes)(case),
        touched: notes.take().iter().map(ToString::to_string).collect(),
        problem: match asked {
            Ok(_) | Err(BenchError::Machine(MachineError::Unsupported(_))) => None,
            Err(error) => Some(format!("{}, {}: {error}", question.name, case.method)),
        },
    }
}
