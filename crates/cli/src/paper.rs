//! `reproduce` and `fit`: reproduction of published figures, and fits of platform parameters to them.

use crate::args::{FitArgs, ReproduceArgs};
use crate::failure::Failure;
use crate::input;
use crate::interrupt;
use crate::output::{self, command_line, terminal_width, write_html};
use crate::progress::progress;
use crate::unknown;
use lanemark_experiment::{ExperimentError, Fitting, LocalValues, PAPERS, Paper, fittings, paper};
use lanemark_fit::{Fit, FitData, Parameter, fit_with_progress as solve_told};
use lanemark_record::{Record, Reproduction, Verdict, file};
use lanemark_runner::{Cancel, OpenTarget, Runtimes, Setup, Target, platform, runtimes};
use lanemark_units::did_you_mean;
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Largest relative difference between a fitted number and the one in its platform file: the digits of the file.
const SAME: f64 = 2e-3;

/// Names of all papers.
fn paper_names() -> String {
    PAPERS.iter().map(|paper| paper.name).collect::<Vec<_>>().join(", ")
}

/// A suggestion of similar names of papers, or the list of all.
fn paper_hint(name: &str) -> String {
    let hint = did_you_mean(name, PAPERS.iter().map(|paper| paper.name));
    let hint = hint.map(|hint| format!("{hint} ")).unwrap_or_default();
    format!("{hint}use one of {}", paper_names())
}

fn papers(names: &[String]) -> Result<Vec<&'static Paper>, Failure> {
    if names.is_empty() {
        return Ok(PAPERS.iter().collect());
    }
    let mut found: Vec<&'static Paper> = Vec::new();
    for name in names {
        let paper =
            paper(name).ok_or_else(|| Failure::Usage(format!("'{name}' is not a paper: {}", paper_hint(name))))?;
        if found.iter().all(|other| other.name != paper.name) {
            found.push(paper);
        }
    }
    Ok(found)
}

/// `lanemark reproduce`
pub fn reproduce(args: &ReproduceArgs) -> Result<(), Failure> {
    let cancel = interrupt::cancel()?;
    let is_over = || cancel.is_cancelled();
    let papers = papers(&args.papers)?;
    if args.dependencies {
        return dependencies(&papers, &cancel);
    }
    output::check(&args.html.iter().map(PathBuf::as_path).collect::<Vec<_>>(), &[])?;
    let (mut here, silent) = if args.host { this_machine(&papers, &cancel)? } else { (Vec::new(), Vec::new()) };
    let mut found = Vec::new();
    for paper in papers {
        let bar = progress(0);
        bar.set_message(paper.name);
        let reproduction = lanemark_experiment::reproduce(paper, &mut |done, of| {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
            !is_over()
        });
        bar.finish_and_clear();
        let mut reproduction = match reproduction {
            // A partial reproduction would look like a complete one without these figures; it is discarded.
            Err(ExperimentError::Stopped { .. }) => break,
            reproduction => reproduction.map_err(|error| Failure::Check(error.to_string()))?,
        };
        let mut earlier = LocalValues::default();
        for target in here.iter_mut().take_while(|_| !is_over()) {
            let bar = progress(0);
            bar.set_message(format!("{} on {}", paper.name, target.facts().name));
            let rows = lanemark_experiment::measure_locally(paper, target.machine(), &mut earlier, &mut |done, of| {
                bar.set_length(of as u64);
                bar.set_position(done as u64);
            });
            bar.finish_and_clear();
            reproduction.here.extend(rows.map_err(|error| Failure::Check(error.to_string()))?);
        }
        found.push(reproduction);
    }
    if let Some(path) = &args.html {
        write_html(&Record::new(command_line()), &found, path)?;
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", file::to_json(&json!({ "reproductions": found, "not_asked": silent })))?;
    } else {
        for reproduction in &found {
            out.write_all(lanemark_report::reproduction_table(reproduction, terminal_width()).as_bytes())?;
        }
        for because in &silent {
            writeln!(out, "not measured here: {because}")?;
        }
    }
    if is_over() {
        return Err(Failure::Interrupted);
    }
    let disagreements: Vec<String> = found.iter().flat_map(disagreements).collect();
    if disagreements.is_empty() {
        Ok(())
    } else {
        Err(Failure::Check(format!("disagrees: {}", disagreements.join(", "))))
    }
}

/// Prints the dependencies of the rows of one paper.
fn dependencies(papers: &[&Paper], cancel: &Cancel) -> Result<(), Failure> {
    let [paper] = papers else {
        return Err(Failure::Usage(format!("--dependencies needs one paper: one of {}", paper_names())));
    };
    let bar = progress(0);
    bar.set_message(paper.name);
    let found = lanemark_experiment::dependencies(paper, &mut |done, of| {
        bar.set_length(of as u64);
        bar.set_position(done as u64);
        !cancel.is_cancelled()
    });
    bar.finish_and_clear();
    match found {
        Err(ExperimentError::Stopped { .. }) => Err(Failure::Interrupted),
        found => {
            let found = found.map_err(|error| Failure::Check(error.to_string()))?;
            let table = lanemark_experiment::dependency_table(&found);
            std::io::stdout().lock().write_all(table.as_bytes())?;
            Ok(())
        }
    }
}

/// This machine, and its runtime devices if one of `papers` has questions for them; with reasons for skipped devices.
fn this_machine(papers: &[&Paper], cancel: &Cancel) -> Result<(Vec<OpenTarget>, Vec<String>), Failure> {
    let mut found = vec![Target::Host.open(&Setup::default(), cancel)?];
    let mut not_asked = Vec::new();
    let mut asks_runtimes = false;
    for paper in papers {
        let asks = lanemark_experiment::measures_runtimes(paper);
        asks_runtimes |= asks.map_err(|error| Failure::Check(error.to_string()))?;
    }
    if asks_runtimes {
        let Runtimes { targets, refused } = runtimes(cancel);
        found.extend(targets);
        not_asked = refused;
    }
    Ok((found, not_asked))
}

fn disagreements(reproduction: &Reproduction) -> Vec<String> {
    let rows = reproduction.rows.iter().filter(|row| row.verdict == Verdict::Disagrees).map(|row| row.id.clone());
    let bounds = reproduction.bounds.iter().filter(|bound| !bound.met);
    rows.chain(bounds.map(|bound| format!("{} of {}", bound.statistic, bound.name))).collect()
}

/// The result of one fit and its source.
struct Solved {
    /// The paper or record.
    from: String,
    /// The platform.
    platform: String,
    /// The figures that the residuals belong to.
    data: Vec<String>,
    /// Present values in the platform, by parameter.
    now: Vec<f64>,
    /// Whether the platform file declares that it was fitted to these data.
    claimed: bool,
    fit: Fit,
}

/// Returns an error for an option that does not apply, because every argument is a paper.
fn check_options_of_papers(args: &FitArgs) -> Result<(), Failure> {
    let given = [
        ("--from", args.from.is_some()),
        ("--on", args.on.is_some()),
        ("--parameter", !args.parameters.is_empty()),
        ("--of", args.of.is_some()),
        ("--assume", !args.assume.is_empty()),
        ("--assume-rest", args.assume_rest),
        ("--write", args.write.is_some()),
    ];
    let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given) else { return Ok(()) };
    if args.papers.iter().any(|name| paper(name).is_none()) {
        return Ok(());
    }
    let papers = args.papers.join(", ");
    let message = format!("{option} is for records and tables; the platform and parameters of {papers} are fixed");
    Err(Failure::Usage(message))
}

/// `lanemark fit`
pub fn fit(args: &FitArgs) -> Result<(), Failure> {
    interrupt::exit_on_ctrl_c()?;
    check_options_of_papers(args)?;
    if let Some(draft) = unknown::wanted(args)? {
        return unknown::fit(args, draft);
    }
    let mut solved = Vec::new();
    for name in &args.papers {
        match paper(name) {
            Some(paper) => fit_paper(paper, &mut solved)?,
            None if Path::new(name).exists() => solved.push(fit_record(args, name)?),
            None => {
                let hint = did_you_mean(name, PAPERS.iter().map(|paper| paper.name));
                let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                let message = format!("'{name}' is neither a paper ({}) nor an existing file{hint}", paper_names());
                return Err(Failure::Usage(message));
            }
        }
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        let fits: Vec<_> = solved.iter().map(Solved::to_json).collect();
        writeln!(out, "{}", file::to_json(&json!({ "fits": fits })))?;
    } else {
        solved.iter().try_for_each(|solved| solved.print(&mut out))?;
    }
    let differences: Vec<String> =
        solved.iter().filter(|solved| solved.claimed).flat_map(Solved::differences).collect();
    if differences.is_empty() {
        Ok(())
    } else {
        Err(Failure::Check(format!("the platform file differs from the fit: {}", differences.join("; "))))
    }
}

/// Solves `parameters` and shows progress.
fn solve_watched(
    what: String,
    parameters: &[Parameter],
    residuals: impl FnMut(&[f64]) -> Result<Vec<f64>, String>,
) -> Result<Fit, Failure> {
    let bar = progress(0);
    bar.set_message(what);
    let fit = solve_told(parameters, residuals, &mut |done, of| {
        bar.set_length(of as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    fit.map_err(|error| Failure::Check(error.to_string()))
}

fn fit_paper(paper: &Paper, solved: &mut Vec<Solved>) -> Result<(), Failure> {
    for problem in fittings(paper).map_err(|error| Failure::Check(error.to_string()))? {
        let what = format!("{}: {}", paper.name, problem.data().join(", "));
        let fit = solve_watched(what, &parameters(&problem), |values| problem.residuals(values))?;
        solved.push(Solved {
            from: paper.name.to_owned(),
            platform: problem.platform().name.clone(),
            data: problem.data().to_vec(),
            now: problem.parameters().iter().map(|parameter| parameter.1).collect(),
            claimed: true,
            fit,
        });
    }
    Ok(())
}

fn fit_record(args: &FitArgs, name: &str) -> Result<Solved, Failure> {
    let usage = |message: String| Failure::Usage(format!("{name}: {message}"));
    let (Some(on), false) = (&args.on, args.parameters.is_empty()) else {
        let message = "a fit to a record needs the platform and its parameters: --on PLATFORM --parameter KEY; \
                       or a platform file with unknown numbers";
        return Err(usage(message.to_owned()));
    };
    if input::is_table(Path::new(name)) {
        let message = "--parameter does not apply to tables: use --on with a platform file that has unknown numbers";
        return Err(usage(message.to_owned()));
    }
    let record = input::record(Path::new(name))?;
    let platform = platform(on)?;
    let problem = FitData::new(&record, args.of.as_deref(), &platform, &args.parameters)
        .map_err(|error| usage(error.to_string()))?;
    let parameters = problem.parameters();
    let what = format!("{name}: {}", args.parameters.join(", "));
    let fit = solve_watched(what, &parameters, |values| problem.residuals(values))?;
    Ok(Solved {
        from: name.to_owned(),
        platform: platform.name,
        data: problem.data().map(str::to_owned).collect(),
        now: parameters.iter().map(|parameter| parameter.start).collect(),
        claimed: false,
        fit,
    })
}

fn parameters(problem: &Fitting) -> Vec<Parameter> {
    let parameter = |(name, start, low, high)| Parameter { name, start, low, high, step_share: 1e-4 };
    problem.parameters().into_iter().map(parameter).collect()
}

/// Converts a residual (logarithm of simulated over published) to a difference in percent.
fn percent(residual: f64) -> f64 {
    residual.exp_m1() * 100.0
}

impl Solved {
    fn differences(&self) -> Vec<String> {
        let pairs = self.fit.found.iter().zip(&self.now);
        pairs
            .filter(|(found, now)| (found.value / *now - 1.0).abs() > SAME)
            .map(|(found, now)| format!("{} is {now:.5} in the file, the best fit is {:.5}", found.name, found.value))
            .collect()
    }

    fn print(&self, out: &mut impl Write) -> Result<(), Failure> {
        writeln!(out, "{} on {}: fitted to {}", self.from, self.platform, self.data.join(", "))?;
        for (found, now) in self.fit.found.iter().zip(&self.now) {
            let (least, most) = found.leave_one_out;
            let bound = if found.at_bound { ", at its bound: the best value is outside" } else { "" };
            let (name, value) = (&found.name, found.value);
            writeln!(
                out,
                "  {name} = {value:.5} (the file has {now:.5}; {least:.5} to {most:.5} leaving one out{bound})"
            )?;
        }
        for (id, residual) in self.data.iter().zip(&self.fit.residuals) {
            writeln!(out, "  {id}: {:+.2} % left", percent(*residual))?;
        }
        for (one, other) in &self.fit.inseparable {
            writeln!(out, "  the data do not determine {one} and {other} separately")?;
        }
        for name in &self.fit.unseen {
            writeln!(out, "  no datum depends on {name}")?;
        }
        Ok(())
    }

    fn to_json(&self) -> serde_json::Value {
        json!({
            "from": self.from,
            "platform": self.platform,
            "fitted_to": self.data,
            "parameters": self.fit.found.iter().zip(&self.now).map(|(found, now)| json!({
                "key": found.name,
                "value": found.value,
                "platform_value": now,
                "at_bound": found.at_bound,
                "leave_one_out": [found.leave_one_out.0, found.leave_one_out.1],
            })).collect::<Vec<_>>(),
            "residuals_percent": self.fit.residuals.iter().copied().map(percent).collect::<Vec<_>>(),
            "inseparable": self.fit.inseparable,
            "unseen": self.fit.unseen,
        })
    }
}
