//! `reproduce` and `fit`: papers asked again, and their parameters fitted again.

use crate::args::{FitArgs, ReproduceArgs};
use crate::ask::{progress, terminal_width};
use crate::failure::Failure;
use lanemark_experiment::{Fitting, PAPERS, Paper, fittings, paper};
use lanemark_fit::{Fit, Parameter, fit as solve};
use lanemark_record::{Reproduction, Verdict, file};
use serde_json::json;
use std::io::Write;

/// How far a fitted number may be from the one in its platform file, as a share: the file's digits.
const SAME: f64 = 2e-3;

fn papers(names: &[String]) -> Result<Vec<&'static Paper>, Failure> {
    if names.is_empty() {
        return Ok(PAPERS.iter().collect());
    }
    let known = PAPERS.iter().map(|paper| paper.name).collect::<Vec<_>>().join(", ");
    names
        .iter()
        .map(|name| paper(name).ok_or_else(|| Failure::Usage(format!("'{name}' is no paper: use one of {known}"))))
        .collect()
}

/// `lanemark reproduce`
pub fn reproduce(args: &ReproduceArgs) -> Result<(), Failure> {
    let mut found = Vec::new();
    for paper in papers(&args.papers)? {
        let bar = progress(0);
        bar.set_message(paper.name);
        let reproduction = lanemark_experiment::reproduce(paper, &mut |done, of| {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
        });
        bar.finish_and_clear();
        found.push(reproduction.map_err(|error| Failure::Check(error.to_string()))?);
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", file::to_json(&json!({ "reproductions": found })))?;
    } else {
        for reproduction in &found {
            out.write_all(lanemark_report::reproduction_table(reproduction, terminal_width()).as_bytes())?;
        }
    }
    let wrong: Vec<String> = found.iter().flat_map(wrong).collect();
    if wrong.is_empty() { Ok(()) } else { Err(Failure::Check(format!("disagrees: {}", wrong.join(", ")))) }
}

fn wrong(reproduction: &Reproduction) -> Vec<String> {
    let rows = reproduction.rows.iter().filter(|row| row.verdict == Verdict::Disagrees).map(|row| row.id.clone());
    let bounds = reproduction.bounds.iter().filter(|bound| !bound.met);
    rows.chain(bounds.map(|bound| format!("{} of {}", bound.statistic, bound.name))).collect()
}

/// `lanemark fit`
pub fn fit(args: &FitArgs) -> Result<(), Failure> {
    let mut fits = Vec::new();
    for paper in papers(&args.papers)? {
        let problems = fittings(paper).map_err(|error| Failure::Check(error.to_string()))?;
        for problem in problems {
            let bar = progress(0);
            bar.set_message(format!("{}: {}", paper.name, problem.data().join(", ")));
            bar.enable_steady_tick(std::time::Duration::from_millis(100));
            let found = solve(&parameters(&problem), |values| problem.residuals(values));
            bar.finish_and_clear();
            fits.push((paper, problem, found.map_err(|error| Failure::Check(error.to_string()))?));
        }
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        let fits: Vec<_> = fits.iter().map(|(paper, problem, fit)| as_json(paper, problem, fit)).collect();
        writeln!(out, "{}", file::to_json(&json!({ "fits": fits })))?;
    } else {
        for (paper, problem, fit) in &fits {
            print(&mut out, paper, problem, fit)?;
        }
    }
    let moved: Vec<String> = fits.iter().flat_map(|(_, problem, fit)| moved(problem, fit)).collect();
    if moved.is_empty() { Ok(()) } else { Err(Failure::Check(format!("the platform file says otherwise: {}", moved.join("; ")))) }
}

fn parameters(problem: &Fitting) -> Vec<Parameter> {
    problem.parameters().into_iter().map(|(name, start, low, high)| Parameter { name, start, low, high }).collect()
}

fn moved(problem: &Fitting, fit: &Fit) -> Vec<String> {
    let now = problem.parameters();
    let pairs = fit.found.iter().zip(&now).filter(|(found, now)| (found.value / now.1 - 1.0).abs() > SAME);
    pairs.map(|(found, now)| format!("{} is {:.5} there and fits best at {:.5}", now.0, now.1, found.value)).collect()
}

fn print(out: &mut impl Write, paper: &Paper, problem: &Fitting, fit: &Fit) -> Result<(), Failure> {
    writeln!(out, "{} on {}: fitted to {}", paper.name, problem.platform().name, problem.data().join(", "))?;
    for (found, now) in fit.found.iter().zip(problem.parameters()) {
        let (least, most) = found.leave_one_out;
        let bound = if found.at_bound { ", at its bound: the data want it beyond" } else { "" };
        writeln!(out, "  {} = {:.5} (the file has {:.5}; {least:.5} to {most:.5} leaving one out{bound})", found.name, found.value, now.1)?;
    }
    for (id, residual) in problem.data().iter().zip(&fit.residuals) {
        writeln!(out, "  {id}: {:+.2} % left", residual * 100.0)?;
    }
    for (one, other) in &fit.inseparable {
        writeln!(out, "  the data cannot tell {one} from {other}")?;
    }
    for name in &fit.unseen {
        writeln!(out, "  no datum depends on {name}")?;
    }
    Ok(())
}

fn as_json(paper: &Paper, problem: &Fitting, fit: &Fit) -> serde_json::Value {
    let now = problem.parameters();
    json!({
        "paper": paper.name,
        "platform": problem.platform().name,
        "fitted_to": problem.data(),
        "parameters": fit.found.iter().zip(&now).map(|(found, now)| json!({
            "key": found.name,
            "value": found.value,
            "platform_value": now.1,
            "at_bound": found.at_bound,
            "leave_one_out": [found.leave_one_out.0, found.leave_one_out.1],
        })).collect::<Vec<_>>(),
        "residuals_percent": fit.residuals.iter().map(|residual| residual * 100.0).collect::<Vec<_>>(),
        "inseparable": fit.inseparable,
        "unseen": fit.unseen,
    })
}
