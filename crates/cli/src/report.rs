//! `report`: the HTML page of a record.

use crate::args::ReportArgs;
use crate::failure::{Failure, say};
use crate::input;
use crate::output::{self, write_html, write_svg};
use lanemark_record::gate::judge;
use std::path::{Path, PathBuf};

/// `lanemark report`
pub fn report(args: &ReportArgs) -> Result<(), Failure> {
    let record = input::record(&args.record)?;
    let outputs: Vec<&Path> = std::iter::once(&args.html).chain(&args.svg).map(PathBuf::as_path).collect();
    output::check(&outputs, &[&args.record])?;
    let judged = judge(&record);
    let news = judged.impossible.iter().chain(&judged.others).filter(|text| !record.warnings.contains(text));
    let news: Vec<String> = news.cloned().collect();
    let mut shown = record.clone();
    shown.warnings.extend(news);
    write_html(&shown, &[], &args.html)?;
    if let Some(path) = &args.svg {
        write_svg(&record, path)?;
    }
    for path in outputs {
        say(&format!("wrote {}", path.display()));
    }
    judged.others.iter().for_each(|text| say(text));
    if judged.impossible.is_empty() { Ok(()) } else { Err(Failure::impossible(&judged.impossible)) }
}
