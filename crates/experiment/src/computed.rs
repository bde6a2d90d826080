//! A figure of an experiment, computed by simulation and by formula.

use crate::experiment::FigureQuery;
use lanemark_bench::{Axes, BenchError, Case, Cores, Effort, Question};
use lanemark_config_space::{ConfigWrite, NoConfigWrite};
use lanemark_method::{AccessPath, CoreAccess, Method};
use lanemark_platform::{Origin, Platform};
use lanemark_record::{Answer, Reach};
use lanemark_runner::{Changes, OpenTarget, question};

/// A figure by both methods, in the unit of its metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Computed {
    /// Result of the simulation.
    pub(crate) simulated: f64,
    /// Result of the formula; `None` if the question has none for this case.
    pub(crate) formula: Option<f64>,
}

/// Computes the figure that `ask` describes on `platform`, by a new simulation and by its formula.
///
/// `size` replaces the size in `ask`.
pub(crate) fn computed(platform: &Platform, ask: &FigureQuery, size: Option<u64>) -> Result<Computed, String> {
    let mut target = OpenTarget::of_platform(&changed(platform, ask)?).map_err(|error| error.to_string())?;
    let (question, case, effort) = case(&target, ask, size)?;
    let simulated = metric(target.ask(question, &case, &effort), ask)?;
    Ok(Computed { simulated, formula: metric(target.ask_formulas(question, &case, &effort), ask).ok() })
}

/// Means of computing a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Means {
    /// The formula of the question.
    Formula,
    /// A new simulation.
    Simulation,
}

/// Computes the figure that `ask` describes on `platform` by one of the two means.
pub(crate) fn computed_by(
    means: Means,
    platform: &Platform,
    ask: &FigureQuery,
    size: Option<u64>,
) -> Result<f64, String> {
    let mut target = OpenTarget::of_platform(&changed(platform, ask)?).map_err(|error| error.to_string())?;
    let (question, case, effort) = case(&target, ask, size)?;
    let answer = match means {
        Means::Formula => target.ask_formulas(question, &case, &effort),
        Means::Simulation => target.ask(question, &case, &effort),
    };
    metric(answer, ask)
}

/// The metric of `ask` in an answer.
fn metric(answer: Result<Answer, BenchError>, ask: &FigureQuery) -> Result<f64, String> {
    let answer = answer.map_err(|error| error.to_string())?;
    ask.figure.value(&answer).ok_or_else(|| format!("the answer of {} has no {:?}", ask.question, ask.figure))
}

/// The platform with the changed keys of the figure and after its register writes.
fn changed(platform: &Platform, ask: &FigureQuery) -> Result<Platform, String> {
    let platform = with_keys(platform, ask)?;
    let writes = ask.setpci.iter().map(|text| text.parse()).collect::<Result<Vec<ConfigWrite>, NoConfigWrite>>();
    let changes = Changes { setpci: writes.map_err(|error| error.to_string())?, ..Changes::default() };
    changes.apply(&platform).map(|(platform, _)| platform).map_err(|error| error.to_string())
}

/// The platform with the changed keys of the figure.
fn with_keys(platform: &Platform, ask: &FigureQuery) -> Result<Platform, String> {
    ask.with.iter().try_fold(platform.clone(), |platform, (key, value)| {
        let origin = Origin::Given("the figure's own condition".to_owned());
        platform.with(key, *value, origin).map_err(|error| error.to_string())
    })
}

/// Selection of cases by their method.
type MethodFilter = Box<dyn Fn(&Method) -> bool>;

/// The filter for the method, kind of method or path of `ask`.
fn method_filter(ask: &FigureQuery) -> Result<MethodFilter, String> {
    match (ask.method.clone(), ask.kind, ask.path) {
        (Some(method), None, None) => Ok(Box::new(move |other| *other == method)),
        (None, Some(kind), None) => Ok(Box::new(move |other| other.kind() == kind)),
        (None, None, path) => {
            let wanted = path.unwrap_or(AccessPath::Pointer);
            Ok(Box::new(move |other| matches!(other, Method::Core(CoreAccess { path, .. }) if *path == wanted)))
        }
        _ => Err(format!("{}: accepts at most one of the keys method, kind and path", ask.question)),
    }
}

/// The only case that `ask` describes, with its question and effort.
fn case(
    target: &OpenTarget,
    ask: &FigureQuery,
    size: Option<u64>,
) -> Result<(&'static Question, Case, Effort), String> {
    let question = question(&ask.question).map_err(|error| error.to_string())?;
    let fence = match ask.fence.as_deref() {
        None => None,
        Some("none") => Some(vec![None]),
        Some(name) => Some(vec![Some(name.parse().map_err(|error: lanemark_machine::UnknownName| error.to_string())?)]),
    };
    let is_wanted = method_filter(ask)?;
    let size = size.or(ask.size);
    let is_by_driver = matches!(ask.path, Some(AccessPath::Driver | AccessPath::DriverPoll | AccessPath::Mmap));
    let axes = Axes {
        // The default cases of a driver question include the sizes that papers have figures for.
        sizes: if is_by_driver { None } else { size.map(|size| vec![size]) },
        memory_types: ask.memory_type.map(|memory_type| vec![memory_type]),
        accesses: ask.access.map(|access| vec![access]),
        fences: fence,
        alignments: None,
        region: ask.region.clone(),
        flows: ask
            .flows
            .as_ref()
            .map(|flows| flows.iter().map(|flow| flow.parse()).collect::<Result<_, _>>())
            .transpose()
            .map_err(|error: lanemark_machine::UnknownName| error.to_string())?,
        reach: Reach::default(),
        matrices: None,
        // All simulated cores give the same result.
        cores: Some(Cores::These(vec![0])),
    };
    let fits = |case: &Case| is_wanted(&case.method) && size.is_none_or(|size| case.size == size);
    let case = target.one_case(question, &axes, fits).map_err(|error| error.to_string())?;
    let passes = ask.passes.map(|passes| match ask.at_most_bytes {
        Some(most) => passes.min((most / case.size.max(1)).max(1)),
        None => passes,
    });
    Ok((question, case, Effort { simulated_passes: passes, ..Effort::default() }))
}
