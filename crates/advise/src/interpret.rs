//! Adds advice and findings to a record.

use crate::crossover::crossovers;
use crate::launches::launches;
use crate::methods::{best_methods, buffers, cliffs};
use crate::reach::reaches;
use crate::runtime::{accessors, own_memory, runs};
use lanemark_record::gate::{Judged, judge};
use lanemark_record::{Finding, Record};

/// The families of findings, in the order of a record.
const FAMILIES: [fn(&Record) -> Vec<Finding>; 8] =
    [cliffs, buffers, crossovers, reaches, accessors, own_memory, runs, launches];

/// Adds advice, findings and the judgements of the limit gate to a record without any. Call it once
/// for each new record.
///
/// Returns the judgements, which are also added to the warnings of the record.
pub fn interpret(record: &mut Record) -> Judged {
    record.advice = best_methods(record);
    record.findings = FAMILIES.iter().flat_map(|family| family(record)).collect();
    let judged = judge(record);
    record.warnings.extend(judged.impossible.iter().chain(&judged.others).cloned());
    judged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{answer, record};
    use lanemark_record::{Ceiling, CeilingKind};

    #[test]
    fn advice_and_impossible_figures_are_added() {
        let ceiling =
            Ceiling { kind: CeilingKind::Computed, rate_bytes_per_s: Some(1e9), because: "a test".to_owned() };
        let slower = answer("4", 4096, Some(1e9));
        let mut record = record(vec![lanemark_record::Answer { ceiling, ..answer("8", 4096, Some(2e9)) }, slower]);
        let judged = interpret(&mut record);
        assert_eq!((judged.impossible.len(), judged.others.len()), (1, 0));
        assert_eq!(record.warnings, judged.impossible);
        assert!(!record.advice.is_empty());
    }
}
