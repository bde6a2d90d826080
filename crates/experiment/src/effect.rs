//! Effects of the values of a platform on the rows of an experiment, and the file that keeps them.

use crate::error::ExperimentError;
use crate::paper::Paper;
use lanemark_platform::Step;
use lanemark_record::Class;
use std::fmt::Write;

/// Class of a row, and what it depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct Dependency {
    /// ID of the row.
    pub id: String,
    /// Class that follows from the dependencies.
    pub class: Class,
    /// Rows that this row repeats; empty for a distinct row.
    pub same_as: Vec<String>,
    /// Value by formula, or by simulation where there is none, in the unit of the row; `None` if it has none.
    pub value: Option<f64>,
    /// Steps that change the row.
    pub effects: Vec<Effect>,
}

/// Effect of one step of a platform on a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// The changed value, as an argument of `--with`: `dma.tags=2`.
    pub step: String,
    /// Relative change of the time over relative change of the value; `None` if the row cannot be computed after the step.
    pub size: Option<f64>,
}

/// Name of a step, as in [`Effect::step`].
pub(crate) fn name(step: &Step) -> String {
    format!("{}={}", step.key, step.to)
}

/// Head of the file.
const HEAD: &str = "id,class,same as,value,effects";

/// Writes `dependencies` in the format of `dependencies.csv`.
#[must_use]
pub fn dependency_table(dependencies: &[Dependency]) -> String {
    let mut text = format!("{HEAD}\n");
    for Dependency { id, class, same_as, value, effects } in dependencies {
        let value = value.map(|value| value.to_string()).unwrap_or_default();
        let effects: Vec<String> = effects
            .iter()
            .map(|effect| match effect.size {
                Some(size) => format!("{} {size:+.3}", effect.step),
                None => format!("{} none", effect.step),
            })
            .collect();
        let _ = writeln!(text, "{id},{},{},{value},{}", class.name(), same_as.join("; "), effects.join("; "));
    }
    text
}

/// Reads the dependencies of `paper` from its `dependencies.csv`.
///
/// # Errors
/// [`ExperimentError::File`] for a malformed line.
pub fn known_dependencies(paper: &Paper) -> Result<Vec<Dependency>, ExperimentError> {
    let wrong = |message| ExperimentError::File { paper: paper.name.to_owned(), file: "dependencies.csv", message };
    let mut lines = paper.dependencies.lines();
    if lines.next() != Some(HEAD) {
        return Err(wrong(format!("the first line must be '{HEAD}'")));
    }
    lines.map(|line| read(line).ok_or_else(|| wrong(format!("malformed line: '{line}'")))).collect()
}

fn read(line: &str) -> Option<Dependency> {
    let mut cells = line.splitn(5, ',');
    let mut cell = || cells.next();
    let (id, class, same_as, value, effects) = (cell()?, cell()?, cell()?, cell()?, cell()?);
    let parts =
        |text: &str| -> Vec<String> { text.split("; ").filter(|part| !part.is_empty()).map(str::to_owned).collect() };
    let effect = |text: &String| {
        let (step, size) = text.rsplit_once(' ')?;
        let size = if size == "none" { None } else { Some(size.parse().ok()?) };
        Some(Effect { step: step.to_owned(), size })
    };
    Some(Dependency {
        id: id.to_owned(),
        class: Class::from_name(class)?,
        same_as: parts(same_as),
        value: if value.is_empty() { None } else { Some(value.parse().ok()?) },
        effects: parts(effects).iter().map(effect).collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let effects = vec![
            Effect { step: "dma.tags=2".to_owned(), size: Some(-0.481) },
            Effect { step: "core.memcpy=rep".to_owned(), size: None },
        ];
        let row = |id: &str, class, same_as: &[&str], value, effects: &[Effect]| Dependency {
            id: id.to_owned(),
            class,
            same_as: same_as.iter().map(|id| (*id).to_owned()).collect(),
            value,
            effects: effects.to_vec(),
        };
        let written =
            [row("A:1", Class::Identity, &["B", "C"], Some(0.1), &effects), row("B", Class::Rule, &[], None, &[])];
        let text = dependency_table(&written);
        assert!(text.contains("\nA:1,identity,B; C,0.1,dma.tags=2 -0.481; core.memcpy=rep none\n"), "{text}");
        let paper =
            |text: &str| Paper { name: "x", experiment: "", published: "", dependencies: text.to_owned().leak() };
        assert_eq!(known_dependencies(&paper(&text)).unwrap(), written);
        for wrong in [
            "",
            "id\n",
            &text.replace("identity", "guess"),
            &text.replace("-0.481", "less"),
            &text.replace(",0.1,", ","),
        ] {
            assert!(known_dependencies(&paper(wrong)).is_err(), "{wrong}");
        }
    }
}
