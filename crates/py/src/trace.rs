//! `trace` for Python.

use crate::error::{self, Kind, raised};
use crate::run::Named;
use crate::wait::interruptible;
use lanemark_cli::options;
use lanemark_machine::Frame;
use lanemark_record::{Column, Table, Values};
use lanemark_report::{Traced, probe, viewer_trace, waterfall};
use lanemark_runner::{RunError, TracedCase, question};
use pyo3::prelude::*;

/// The TLPs and stalls of one case.
#[pyclass(module = "lanemark._lanemark", frozen)]
pub struct Trace {
    question: &'static str,
    traced: TracedCase,
}

impl Trace {
    fn shown(&self) -> Traced<'_> {
        let TracedCase { target, case, cases, nth, passes, sample, trace, error, .. } = &self.traced;
        Traced {
            target,
            question: self.question,
            method: &case.method,
            size_bytes: case.size,
            passes: *passes,
            case: (*nth, *cases),
            sample: *sample,
            trace,
            error: error.as_deref(),
        }
    }
}

#[pymethods]
impl Trace {
    /// Names of the links, by the component below each.
    #[getter]
    fn links(&self) -> Vec<String> {
        self.traced.trace.links.clone()
    }

    /// The error that ended it; None without one.
    #[getter]
    fn error(&self) -> Option<&str> {
        self.traced.error.as_deref()
    }

    /// The waterfall of the command.
    fn text(&self) -> String {
        waterfall(&self.shown())
    }

    /// JSON for the viewers of Perfetto and Chrome.
    fn viewer_json(&self) -> String {
        viewer_trace(&self.shown())
    }

    /// TLPs of one link as the bytes of a pcapng file; without a name, of the card's link.
    #[pyo3(signature = (link=None))]
    fn pcapng(&self, link: Option<&str>) -> PyResult<Vec<u8>> {
        let (name, links) = (link.unwrap_or(&self.traced.card_link), &self.traced.trace.links);
        let Some(number) = links.iter().position(|link| link == name) else {
            let message = format!("link: there is no link '{name}'; use one of {}", links.join(", "));
            return Err(raised(Kind::Usage, &message));
        };
        let capture = probe(&self.shown(), number).map_err(|problem| raised(Kind::Failed, &problem.to_string()))?;
        Ok(capture.to_pcapng())
    }

    /// One row per TLP and link, in order of their start.
    fn table(&self) -> crate::table::Table {
        let trace = &self.traced.trace;
        let frames = &trace.frames;
        let text = |name: &str, of: &dyn Fn(&Frame) -> Option<String>| {
            let mut words: Vec<String> = Vec::new();
            let mut cells = Vec::new();
            for frame in frames {
                cells.push(of(frame).map_or(0, |text| {
                    let place = words.iter().position(|word| *word == text).unwrap_or_else(|| {
                        words.push(text.clone());
                        words.len() - 1
                    });
                    place as u32 + 1
                }));
            }
            Column { name: name.to_owned(), values: Values::Text { words, cells } }
        };
        let whole = |name: &str, of: &dyn Fn(&Frame) -> i64| {
            let values = frames.iter().map(|frame| Some(of(frame))).collect();
            Column { name: name.to_owned(), values: Values::Whole(values) }
        };
        let time = |name: &str, of: &dyn Fn(&Frame) -> f64| {
            let values = frames.iter().map(|frame| Some(of(frame))).collect();
            Column { name: name.to_owned(), values: Values::Number(values) }
        };
        let columns = vec![
            text("link", &|frame| trace.links.get(frame.link).cloned()),
            text("direction", &|frame| Some(frame.direction.name().to_owned())),
            whole("request", &|frame| i64::try_from(frame.request).unwrap_or(i64::MAX)),
            text("tlp", &|frame| Some(lanemark_report::tlp_in_words(&frame.tlp))),
            whole("tlp_bytes", &|frame| i64::try_from(frame.tlp.len()).unwrap_or(i64::MAX)),
            time("ready_ns", &|frame| frame.ready.as_ns()),
            time("starts_ns", &|frame| frame.starts.as_ns()),
            time("ends_ns", &|frame| frame.ends.as_ns()),
            time("arrives_ns", &|frame| frame.arrives.as_ns()),
            text("because", &|frame| frame.because.map(|cause| cause.name().to_owned())),
        ];
        crate::table::Table(Table::of(columns))
    }
}

/// Traces the first supported case of a question on a simulated target.
#[pyfunction]
pub fn trace(py: Python<'_>, target: Named<'_>, asked: &str, words: Vec<String>) -> PyResult<Trace> {
    let question = question(asked).map_err(|problem: RunError| error::run(&problem))?;
    let request = options::trace_request(&words, target.target()?, question);
    let request = request.map_err(|failure| error::failure(&failure))?;
    let (traced, stopped) = interruptible(py, None, move |cancel, _| lanemark_runner::trace(&request, cancel))?;
    match (traced, stopped) {
        (_, Some(stopped)) => Err(stopped),
        (Ok(traced), None) => Ok(Trace { question: question.name, traced }),
        (Err(problem), None) => Err(error::run(&problem)),
    }
}
