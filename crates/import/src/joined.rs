//! Several files of one tool as one, such as those of the nodes of a cluster.

use lanemark_record::Imported;

/// Files of different tools, whose figures are not joined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file} is output of {tool}, and {other_file} of {other_tool}: import the files of each tool by themselves")]
pub struct SeveralTools {
    file: String,
    tool: String,
    other_file: String,
    other_tool: String,
}

/// Joins the figures of several files of one tool. Each device gets the name of its file, so that two nodes have no device
/// in common; a fact that is not the same in all files has its file too. One file stays as it is.
///
/// # Errors
/// [`SeveralTools`].
///
/// ```
/// use lanemark_import::{ImportTool, joined};
/// let read = |file| ImportTool::WcPerf.read(file, "./wc_perf -i 1024\nBandwidth 0.03 GB/s\n");
/// let both = joined(vec![read("one.txt")?, read("two.txt")?])?;
/// assert_eq!((both.file.as_str(), both.figures.len()), ("one.txt, two.txt", 2));
/// assert_eq!(both.figures[1].device.as_deref(), Some("two.txt"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn joined(mut files: Vec<Imported>) -> Result<Imported, SeveralTools> {
    let Some(first) = files.first() else { return Ok(Imported::default()) };
    if files.len() == 1 {
        return Ok(files.remove(0));
    }
    if let Some(other) = files.iter().find(|file| file.tool != first.tool) {
        let (file, tool) = (first.file.clone(), first.tool.clone());
        return Err(SeveralTools { file, tool, other_file: other.file.clone(), other_tool: other.tool.clone() });
    }
    let version =
        first.version.clone().filter(|version| files.iter().all(|file| file.version.as_ref() == Some(version)));
    let names: Vec<&str> = files.iter().map(|file| file.file.as_str()).collect();
    let mut all = Imported { tool: first.tool.clone(), version, file: names.join(", "), ..Imported::default() };
    let common = |fact: &String, of: fn(&Imported) -> &Vec<String>| files.iter().all(|file| of(file).contains(fact));
    for file in &files {
        let own = |text: &str| format!("{}: {text}", file.file);
        let facts = |of: fn(&Imported) -> &Vec<String>| {
            of(file).iter().map(move |fact| if common(fact, of) { fact.clone() } else { own(fact) })
        };
        all.unknown.extend(facts(|file| &file.unknown));
        all.notes.extend(facts(|file| &file.notes));
        if all.version.is_none() {
            all.notes.extend(file.version.as_ref().map(|version| own(&format!("version {version}"))));
        }
        all.figures.extend(file.figures.iter().cloned().map(|mut figure| {
            figure.device = Some(figure.device.as_deref().map_or_else(|| file.file.clone(), own));
            figure
        }));
        all.left_out.extend(file.left_out.iter().cloned().map(|mut left| {
            left.because = own(&left.because);
            left
        }));
        all.skipped_lines += file.skipped_lines;
    }
    for facts in [&mut all.unknown, &mut all.notes] {
        let mut seen: Vec<String> = Vec::new();
        facts.retain(|fact| {
            let is_new = !seen.contains(fact);
            seen.push(fact.clone());
            is_new
        });
    }
    Ok(all)
}
