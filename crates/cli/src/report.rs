//! `report`: the page of a record.

use crate::args::ReportArgs;
use crate::failure::{Failure, say};
use crate::input;
use crate::output::{self, write_html};
use lanemark_record::gate::judge;

/// `lanemark report`
pub fn report(args: &ReportArgs) -> Result<(), Failure> {
    let record = input::record(&args.record)?;
    output::check(&[&args.html], &[&args.record])?;
    let judged = judge(&record);
    let news = judged.impossible.iter().chain(&judged.others).filter(|text| !record.warnings.contains(text));
    let news: Vec<String> = news.cloned().collect();
    let mut shown = record.clone();
    shown.warnings.extend(news);
    write_html(&shown, &[], &args.html)?;
    say(&format!("wrote {}", args.html.display()));
    judged.others.iter().for_each(|text| say(text));
    if judged.impossible.is_empty() { Ok(()) } else { Err(Failure::impossible(&judged.impossible)) }
}
