//! Data of a fit: the answers of a record or the figures of a table, compared with a platform.

use crate::data_error::FitDataError;
use crate::datum::{Datum, Iotlb, data, figure, point, selected};
use crate::held_out::{Half, halves, halves_of_windows};
use crate::mechanism::{
    ENTRIES, MECHANISMS, PASS_THROUGH, WALK_READ_NS, WALK_READS, is_of_iommu, is_structure, start_of,
};
use crate::memo::{By, Dependence, Memo, Valued};
use crate::pattern::Point;
use crate::simulation::{Simulation, opened};
use crate::start::{started, with_hidden_iommu};
use crate::whole::{Grid, between, grid};
use crate::{Parameter, Row, Table, parameter};
use lanemark_machine::Facts;
use lanemark_method::Method;
use lanemark_model::FormulaMachine;
use lanemark_platform::{Draft, Limits, Origin, Platform, Unknown, default_of};
use lanemark_record::{Answer, Quantity, Record, Residual};
use lanemark_runner::{Cancel, OpenTarget};
use std::cell::RefCell;
use std::rc::Rc;

/// Data of a fit: answers of one target of a record, or figures of a table. Each is simulated again on a platform while
/// some of its numbers vary.
#[derive(Clone)]
pub struct FitData {
    platform: Platform,
    keys: Vec<String>,
    /// Allowed values of each key that takes integers only.
    grids: Vec<Grid>,
    /// Lower bound, start and upper bound of each key; `None`: derived from the platform's own values.
    searched: Option<Vec<(f64, f64, f64)>>,
    data: Vec<Datum>,
    /// The half of its curve in which each datum is; `None` if its curve is too short. Each half is predicted by a fit to
    /// the other data.
    halves: Vec<Option<Half>>,
    /// Keys that a search over structures may change, each with its value before that and its limits: no file states them,
    /// or they are flags that a file assumes.
    open: Vec<(&'static str, f64, Limits)>,
    /// Values that a search over structures has changed.
    changed: Vec<(String, f64)>,
    memo: Memo,
    corrections: Corrections,
}

/// Residuals of the simulation less those of the formula, for figures of both directions at once: by `dma.full_duplex`, for the
/// number of each datum; shared by all copies of a fit.
type Corrections = Rc<RefCell<Vec<(bool, Vec<(usize, f64)>)>>>;

/// Relative step of derivatives for loads and stores by cores.
const STEP_SHARE: f64 = 1e-4;

/// Relative step of derivatives for DMA. Transfers overlap and times are whole ticks, so their sum jumps by some
/// hundredths of a percent; the step must exceed these jumps.
const TRANSFERS_STEP_SHARE: f64 = 0.02;

impl FitData {
    /// The name of the target: `target`, or the only target of the record.
    fn target(record: &Record, target: Option<&str>) -> Result<String, FitDataError> {
        let mut targets: Vec<&str> = Vec::new();
        for answer in &record.answers {
            if !targets.contains(&answer.target.as_str()) {
                targets.push(&answer.target);
            }
        }
        let target = match (target, targets.as_slice()) {
            (Some(name), names) if names.contains(&name) => name,
            (None, [only]) => only,
            (_, []) => return Err(FitDataError::NoAnswers),
            _ => return Err(FitDataError::WhichTarget { targets: targets.join(", ") }),
        };
        Ok(target.to_owned())
    }

    /// Prepares a fit of `keys` of `platform` to the answers of `target`, or of the only target.
    ///
    /// # Errors
    /// [`FitDataError`] if target or key are unknown, or if the platform supports no answer.
    pub fn new(
        record: &Record,
        target: Option<&str>,
        platform: &Platform,
        keys: &[String],
    ) -> Result<FitData, FitDataError> {
        let target = Self::target(record, target)?;
        let mut distinct: Vec<String> = Vec::new();
        for key in keys {
            let (name, key) = (platform.name.clone(), key.clone());
            match platform.number(&key) {
                None => {
                    let hint = platform.similar_keys(&key);
                    return Err(FitDataError::Key { platform: name, key, hint });
                }
                Some((now, origin)) if platform.with(&key, now + now.max(1.0) / 8192.0, origin.clone()).is_err() => {
                    return Err(FitDataError::Whole { platform: name, key });
                }
                Some(_) if distinct.contains(&key) => {}
                Some(_) => distinct.push(key),
            }
        }
        let answers: Vec<&Answer> = record.answers.iter().filter(|answer| answer.target == target).collect();
        let mut data = data(platform, &answers)?;
        data.iter_mut().zip(0..).for_each(|(datum, number)| datum.number = number);
        let grids = vec![None; distinct.len()];
        let (halves, open, changed) = (vec![None; data.len()], Vec::new(), Vec::new());
        let (platform, memo, corrections) = (platform.clone(), Memo::default(), Corrections::default());
        let keys = distinct;
        Ok(FitData { platform, keys, grids, searched: None, data, halves, open, changed, memo, corrections })
    }

    /// Prepares a fit of every unknown number of `draft` to the answers of `target`, or of the only target.
    ///
    /// All DMA answers are used. Of a question about cores, at most 12 answers up to 4 KiB are used, evenly spread.
    ///
    /// # Errors
    /// [`FitDataError`] if the target is unknown, the draft has no unknown number, or the platform supports no answer.
    pub fn of_draft(record: &Record, target: Option<&str>, draft: &Draft) -> Result<FitData, FitDataError> {
        let target = Self::target(record, target)?;
        let started = started(draft)?;
        let answers: Vec<&Answer> = record.answers.iter().filter(|answer| answer.target == target).collect();
        let data = data(&started, &selected(&answers))?;
        Ok(Self::of_data(draft, started, data))
    }

    /// Prepares a fit of every unknown number of `draft` to the figures of a table.
    ///
    /// # Errors
    /// [`FitDataError`] if the draft has no unknown number, or the platform does not support a figure.
    pub fn of_table(table: &Table, draft: &Draft) -> Result<FitData, FitDataError> {
        let started = started(draft)?;
        let target = OpenTarget::of_platform(&started).map_err(|error| FitDataError::Start(error.to_string()))?;
        let mut data = Vec::new();
        for row in &table.rows {
            let datum = point(&target, row).ok_or_else(|| FitDataError::NotAsked {
                place: format!("{}:{}", table.file, row.line),
                question: row.question,
                size_bytes: row.size_bytes,
                platform: started.name.clone(),
            })?;
            data.push(datum);
        }
        Ok(Self::of_data(draft, started, data))
    }

    fn of_data(draft: &Draft, started: Platform, mut data: Vec<Datum>) -> FitData {
        // An IOMMU of which the file says nothing passes addresses through, until the search makes it translate them.
        let hidden = if several_windows(&data) { with_hidden_iommu(draft) } else { None };
        let has_hidden = hidden.is_some();
        let started = hidden.unwrap_or(started);
        data.iter_mut().zip(0..).for_each(|(datum, number)| datum.number = number);
        let curves: Vec<String> = data.iter().map(Datum::curve).collect();
        let sizes =
            curves.iter().zip(&data).map(|(curve, datum)| (curve.as_str(), datum.case.size, datum.is_of_both()));
        let mut halves = halves(sizes);
        let others = halves.iter().zip(&data).map(|(half, datum)| datum.of_window().filter(|_| half.is_none()));
        let others: Vec<Option<(String, u64)>> = others.collect();
        for (half, of_window) in halves.iter_mut().zip(halves_of_windows(&others)) {
            *half = half.or(of_window);
        }
        let unknowns: Vec<&Unknown> = draft.unknowns().iter().filter(|row| !is_structure(row)).collect();
        let unknown = |key: &str| draft.unknowns().iter().find(|row| row.key == key && is_structure(row));
        let choices = MECHANISMS.iter().flat_map(|one| one.choices.iter().map(|(key, _)| *key));
        let times = MECHANISMS.iter().filter_map(|one| Some(one.time?.0));
        let mut open: Vec<(&'static str, f64, Limits)> = Vec::new();
        let is_open =
            |key: &&str| unknown(key).is_some() || draft.has_default(key) && (has_hidden || !is_of_iommu(key));
        for key in choices.chain(times).filter(is_open) {
            let limits = unknown(key).map_or(Limits::default(), |row| row.limits);
            let before = match key {
                PASS_THROUGH => Some(1.0),
                key if is_of_iommu(key) => started.number(key).map(|(value, _)| value),
                key => unknown(key).map(start_of).or_else(|| default_of(key)),
            };
            if let Some(before) = before.filter(|_| open.iter().all(|(other, ..)| *other != key)) {
                open.push((key, before, limits));
            }
        }
        FitData {
            keys: unknowns.iter().map(|row| row.key.clone()).collect(),
            grids: unknowns.iter().map(|row| row.is_whole.then(|| grid(&started, &row.key, row.bounds))).collect(),
            searched: Some(unknowns.iter().map(|row| (row.bounds.0, row.start, row.bounds.1)).collect()),
            platform: started,
            data,
            halves,
            open,
            changed: Vec::new(),
            memo: Memo::default(),
            corrections: Corrections::default(),
        }
    }

    /// The same fit, whose evaluations fail once `cancel` is set.
    pub(crate) fn cancelled_by(mut self, cancel: &Cancel) -> FitData {
        self.memo.cancel = cancel.clone();
        self
    }

    /// The same fit in which a search over structures may change `key`, which has the value `now`.
    pub(crate) fn with_open(&self, key: &'static str, now: f64) -> FitData {
        let mut next = self.clone();
        next.open.push((key, now, Limits::default()));
        next
    }

    /// The keys as parameters of a fit. Bounds: the search range of a draft, or a tenth to ten times the platform's value.
    #[must_use]
    pub fn parameters(&self) -> Vec<Parameter> {
        let step_share = if self.is_about_transfers() { TRANSFERS_STEP_SHARE } else { STEP_SHARE };
        let parameter = |(place, key): (usize, &String)| {
            let name = key.clone();
            if let Some((low, start, high)) = self.searched.as_ref().map(|searched| searched[place]) {
                let low = parameter::least(&name, low);
                return Parameter { name, start, low, high, step_share };
            }
            let start = self.platform.number(key).map_or(0.0, |number| number.0);
            Parameter { name, start, low: start / 10.0, high: start * 10.0, step_share }
        };
        self.keys.iter().enumerate().map(parameter).collect()
    }

    /// The questions of the data, each with its number of answers.
    #[must_use]
    pub fn questions(&self) -> Vec<(&'static str, usize)> {
        let mut counts: Vec<(&'static str, usize)> = Vec::new();
        for datum in &self.data {
            match counts.iter_mut().find(|(name, _)| *name == datum.question.name) {
                Some((_, count)) => *count += 1,
                None => counts.push((datum.question.name, 1)),
            }
        }
        counts
    }

    /// Number of predictions by formulas so far, of all copies of this fit.
    pub(crate) fn predictions(&self) -> u64 {
        self.memo.predictions()
    }

    /// The allowed values of each key; `None` for a continuous key.
    pub(crate) fn grids(&self) -> &[Grid] {
        &self.grids
    }

    /// Whether the data contain DMA transfers. A DMA transfer has several possible bottlenecks, and a search that
    /// starts at the wrong one may not leave it; such a search needs several starting points.
    pub(crate) fn is_about_transfers(&self) -> bool {
        self.data.iter().any(|datum| matches!(datum.case.method, Method::Dma { .. }))
    }

    /// Whether the data contain figures of several stated windows, so that they may show a cache or an IOTLB.
    pub(crate) fn has_windows(&self) -> bool {
        several_windows(&self.data)
    }

    /// Number of data that are predicted by a fit to the other half of their curve.
    #[must_use]
    pub fn held_out(&self) -> usize {
        self.halves.iter().flatten().count()
    }

    /// The curve, question and size of each datum.
    pub(crate) fn points(&self) -> Vec<Point> {
        let point = |datum: &Datum| Point {
            curve: datum.curve(),
            question: datum.question.name,
            size_bytes: datum.case.size,
            is_rate: datum.question.quantity == Quantity::Bandwidth,
        };
        self.data.iter().map(point).collect()
    }

    /// Places of the data in this half of their curve.
    pub(crate) fn half(&self, is_second: bool) -> Vec<usize> {
        self.of_halves(|half| half.is_second == is_second)
    }

    /// As [`half`](FitData::half), without the ends of curves.
    pub(crate) fn inner_half(&self, is_second: bool) -> Vec<usize> {
        self.of_halves(|half| half.is_second == is_second && !half.is_end)
    }

    fn of_halves(&self, is_wanted: impl Fn(&Half) -> bool) -> Vec<usize> {
        (0..self.data.len()).filter(|place| self.halves[*place].as_ref().is_some_and(&is_wanted)).collect()
    }

    /// The same fit to a part of the data.
    pub(crate) fn part(&self, keep: impl Fn(usize) -> bool) -> FitData {
        let places = || (0..self.data.len()).filter(|place| keep(*place));
        let data = places().map(|place| self.data[place].clone()).collect();
        FitData { data, halves: places().map(|place| self.halves[place]).collect(), ..self.clone() }
    }

    /// The same fit without figures whose formulas take long behind an IOMMU: bandwidths at random places of a stated window. With
    /// them, if these are most of the figures, or if it `needs_windows` and the others have none.
    pub(crate) fn of_quick_figures(&self, needs_windows: bool) -> FitData {
        let is_slow = |datum: &Datum| {
            let reach = datum.case.reach();
            datum.question.quantity == Quantity::Bandwidth && reach.is_random && reach.window_bytes.is_some()
        };
        let others = self.part(|place| !is_slow(&self.data[place]));
        let is_enough = 2 * others.data.len() > self.data.len() && (!needs_windows || others.has_windows());
        if is_enough { others } else { self.clone() }
    }

    /// This fit with the data of `other`; each datum keeps its number.
    pub(crate) fn with_data_of(&self, other: &FitData) -> FitData {
        FitData { data: other.data.clone(), halves: other.halves.clone(), ..self.clone() }
    }

    /// This fit without the results of earlier formulas and simulations.
    pub(crate) fn afresh(&self) -> FitData {
        FitData { memo: self.memo.emptied(), corrections: Corrections::default(), ..self.clone() }
    }

    /// Whether the datum at this place is of both directions at once.
    pub(crate) fn is_of_both(&self, place: usize) -> bool {
        self.data[place].is_of_both()
    }

    /// The same fit to these figures instead; without those that the platform does not support.
    pub(crate) fn asked(&self, rows: &[Row]) -> Option<FitData> {
        let target = opened(&self.platform, &self.memo.cancel).ok()?;
        let mut data: Vec<Datum> = rows.iter().filter_map(|row| point(&target, row)).collect();
        data.iter_mut().zip(0..).for_each(|(datum, number)| datum.number = number);
        let (memo, halves, corrections) = (self.memo.emptied(), vec![None; data.len()], Corrections::default());
        Some(FitData { data, halves, memo, corrections, ..self.clone() })
    }

    /// Whether `key` is fitted.
    pub(crate) fn has_key(&self, key: &str) -> bool {
        self.keys.iter().any(|other| other == key)
    }

    /// Whether a search over structures may change `key`.
    pub(crate) fn is_open(&self, key: &str) -> bool {
        self.open.iter().any(|(other, ..)| *other == key)
    }

    /// Whether the file allows this value of an open key.
    pub(crate) fn allows(&self, key: &str, value: f64) -> bool {
        self.open.iter().all(|(other, _, limits)| *other != key || limits.allow(value))
    }

    /// The same fit with another value of a key that is not fitted.
    ///
    /// # Errors
    /// The error of the platform.
    pub(crate) fn with_value(&self, key: &str, value: f64) -> Result<FitData, String> {
        let origin = Origin::Assumed("chosen by the search over structures".to_owned());
        let platform = self.platform.with(key, value, origin).map_err(|error| error.to_string())?;
        let mut next = FitData { platform, ..self.clone() };
        next.changed.retain(|(other, _)| other != key);
        next.changed.push((key.to_owned(), value));
        next.changed.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(next)
    }

    /// The same fit with the value that an open key had before the search.
    ///
    /// # Errors
    /// The error of the platform; a key that is not open.
    pub(crate) fn with_value_before(&self, key: &str) -> Result<FitData, String> {
        self.with_value(key, self.before(key).ok_or("the key is stated")?)
    }

    /// The value that an open key had before the search.
    pub(crate) fn before(&self, key: &str) -> Option<f64> {
        self.open.iter().find(|(other, ..)| *other == key).map(|(_, before, _)| *before)
    }

    /// The value of a number of the platform before it is fitted.
    pub(crate) fn number(&self, key: &str) -> Option<f64> {
        self.platform.number(key).map(|(value, _)| value)
    }

    /// The same fit with one more key, between the bounds of its search.
    ///
    /// # Errors
    /// The error of the platform; a key that cannot be unknown.
    pub(crate) fn with_free(&self, key: &str, start: f64) -> Result<FitData, String> {
        let (low, high) = lanemark_platform::search_bounds(key).ok_or("the key must be known")?;
        // A paging-structure cache leaves one read of a walk, whose time is then divided among all reads of the model.
        let reads = self.number(WALK_READS).filter(|_| key == WALK_READ_NS);
        let low = reads.map_or(low, |reads| low / reads);
        // The platform has the starts of the other numbers, which this start may contradict; their values do not.
        let mut next = self.with_value(key, start).or_else(|_| self.with_value(key, low))?;
        next.keys.push(key.to_owned());
        next.grids.push(None);
        next.searched.get_or_insert_default().push((low.min(start), start, high));
        Ok(next)
    }

    /// The same fit without a key, which has its default, or the value `fixed`; and the place of the key.
    ///
    /// # Errors
    /// The error of the platform; a key that is not fitted.
    pub(crate) fn without_free(&self, key: &str, fixed: Option<f64>) -> Result<(FitData, usize), String> {
        let place = self.keys.iter().position(|other| other == key).ok_or("the key is not fitted")?;
        let fixed = fixed.or_else(|| default_of(key)).or_else(|| self.before(key)).ok_or("the key has no default")?;
        let mut next = self.with_value(key, fixed)?;
        next.keys.remove(place);
        next.grids.remove(place);
        if let Some(searched) = &mut next.searched {
            searched.remove(place);
        }
        Ok((next, place))
    }

    /// Compares each answer with simulation and formula at `values` of the keys.
    ///
    /// # Errors
    /// The error of the platform or the simulation for these values.
    pub fn compare(&self, values: &[f64]) -> Result<Vec<Residual>, String> {
        self.compared(&self.data, values)
    }

    fn compared(&self, data: &[Datum], values: &[f64]) -> Result<Vec<Residual>, String> {
        let platform = || self.platform_with(values);
        let mut simulation = self.simulation(values, &platform);
        let mut target = opened(&platform()?, &self.memo.cancel)?;
        let mut row = |datum: &Datum| {
            let simulated = simulation.figure(datum)?.ok_or("the simulation gave no figure")?;
            // A missing closed form is not an error.
            let formula = datum.predicted(&mut target, self.iotlb()).ok().flatten();
            Ok(Residual {
                what: datum.name.clone(),
                unit: datum.unit().to_owned(),
                measured: datum.measured,
                simulated,
                formula,
                error_percent: 100.0 * (simulated / datum.measured - 1.0),
            })
        };
        data.iter().map(&mut row).collect()
    }

    /// Question, method and size of each residual.
    pub fn data(&self) -> impl Iterator<Item = &str> {
        self.data.iter().map(|datum| datum.name.as_str())
    }

    /// Natural logarithm of simulated over measured at `values` of the keys, for each fitted answer. The logarithm
    /// gives twice and half of a figure the same weight. Keys that take integers only are interpolated between allowed
    /// values.
    ///
    /// # Errors
    /// The error of the platform or the simulation for these values.
    pub fn residuals(&self, values: &[f64]) -> Result<Vec<f64>, String> {
        between(&self.grids, values, |values| {
            let platform = || self.platform_with(values);
            let mut simulation = self.simulation(values, &platform);
            self.residuals_by(|datum| simulation.figure(datum))
        })
    }

    /// As [`FitData::residuals`], with the formulas' figures where one bound clearly leads and the simulation of the same
    /// figure has been compared with it. Formulas must have been evaluated at `values`.
    pub(crate) fn residuals_of_both(&self, values: &[f64]) -> Result<Vec<f64>, String> {
        between(&self.grids, values, |values| {
            let platform = || self.platform_with(values);
            let mut simulation = self.simulation(values, &platform);
            self.residuals_by(|datum| match simulation.known_by_formula(datum) {
                Some(known) => Ok(Some(known)),
                None => simulation.compared(datum),
            })
        })
    }

    /// Residuals of the formulas, like [`FitData::residuals`], with the corrections of [`FitData::correct_both`].
    ///
    /// # Errors
    /// As [`FitData::residuals`]; also for an answer without a closed form.
    pub(crate) fn formula_residuals(&self, facts: &Facts, values: &[f64]) -> Result<Vec<f64>, String> {
        let mut left = between(&self.grids, values, |values| {
            // No simulation is built: most evaluations of a search use the formulas only. A search asks often for figures
            // that do not depend on what it has changed.
            let (dependence, mut formulas) = (self.dependence(values), None);
            self.residuals_by(|datum| {
                let on = dependence.of(datum.verb());
                self.memo.figure(By::Formula, datum.number, on, || {
                    let machine = match &mut formulas {
                        Some(machine) => machine,
                        none => none.insert(FormulaMachine::new(&self.platform_with(values)?, facts)),
                    };
                    let effort = datum.effort(self.iotlb());
                    let given = figure(lanemark_bench::ask(datum.question, machine, &datum.case, &effort));
                    if let Some(prediction) = machine.last() {
                        self.memo.judge(datum.number, on, prediction);
                    }
                    given
                })
            })
        })?;
        let kind = self.is_full_duplex();
        if let Some((_, of_kind)) = self.corrections.borrow().iter().find(|(of, _)| *of == kind) {
            for (left, datum) in left.iter_mut().zip(&self.data) {
                *left += of_kind.iter().find(|(number, _)| *number == datum.number).map_or(0.0, |(_, more)| *more);
            }
        }
        Ok(left)
    }

    /// The simulation at `values`, with this platform.
    fn simulation<'a>(&'a self, values: &[f64], platform: &'a dyn Fn() -> Result<Platform, String>) -> Simulation<'a> {
        let has_memory = (self.has_memory(), self.iotlb());
        Simulation::new(&self.memo, self.dependence(values), platform, has_memory)
    }

    /// Whether a transfer may depend on earlier ones: by a cache, or by translations that are kept.
    fn has_memory(&self) -> bool {
        self.platform.memory.as_ref().is_some_and(|memory| memory.cached_lines() > 0) || self.translates()
    }

    /// Whether an IOMMU translates addresses.
    pub(crate) fn translates(&self) -> bool {
        self.iotlb().is_some()
    }

    /// The IOTLB of an IOMMU that translates addresses.
    fn iotlb(&self) -> Option<Iotlb> {
        let iommu = self.platform.iommu.as_ref().filter(|iommu| iommu.translates())?;
        let entries = if self.has_key(ENTRIES) { u64::MAX } else { iommu.iotlb_entries.value.into() };
        Some(Iotlb { page_bytes: iommu.page_bytes.value, entries })
    }

    fn is_full_duplex(&self) -> bool {
        self.platform.dma.as_ref().is_some_and(|dma| dma.full_duplex.value)
    }

    /// Corrects the formulas of both directions at once by the simulation at `values`, once for each kind of engine: without
    /// full duplex they are bounds only. Returns whether it did.
    ///
    /// # Errors
    /// As [`FitData::formula_residuals`].
    pub(crate) fn correct_both(&self, facts: &Facts, values: &[f64]) -> Result<bool, String> {
        let (kind, both) = (self.is_full_duplex(), self.part(|place| self.data[place].is_of_both()));
        if both.data.is_empty() || self.corrections.borrow().iter().any(|(of, _)| *of == kind) {
            return Ok(false);
        }
        let (simulated, formula) = (both.residuals(values)?, both.formula_residuals(facts, values)?);
        let more = simulated.iter().zip(formula).map(|(simulated, formula)| simulated - formula);
        let of_kind = both.data.iter().map(|datum| datum.number).zip(more).collect();
        self.corrections.borrow_mut().push((kind, of_kind));
        Ok(true)
    }

    /// What figures depend on at `values` of the keys: all values but those before the search and the defaults.
    fn dependence<'a>(&'a self, values: &[f64]) -> Dependence<'a> {
        let of_keys = self.keys.iter().zip(&self.grids).zip(values);
        let of_keys = of_keys.map(|((key, grid), value)| Valued { key, value: *value, is_continuous: grid.is_none() });
        let changed = self.changed.iter().map(|(key, value)| Valued { key, value: *value, is_continuous: false });
        let before = |key: &str| self.before(key).or_else(|| default_of(key));
        let all = changed.filter(|valued| !self.has_key(valued.key)).chain(of_keys);
        Dependence::on(all.filter(|valued| before(valued.key) != Some(valued.value)).collect())
    }

    /// As [`FitData::correct_both`], with new corrections of this kind of engine at `values`.
    ///
    /// # Errors
    /// As [`FitData::correct_both`].
    pub(crate) fn correct_both_again(&self, facts: &Facts, values: &[f64]) -> Result<bool, String> {
        let kind = self.is_full_duplex();
        self.corrections.borrow_mut().retain(|(of, _)| *of != kind);
        self.correct_both(facts, values)
    }

    /// Facts of the simulated machine with the start values; they do not depend on the keys.
    pub(crate) fn facts(&self) -> Result<Facts, String> {
        Ok(opened(&self.platform, &self.memo.cancel)?.facts().clone())
    }

    fn residuals_by(&self, mut ask: impl FnMut(&Datum) -> Result<Option<f64>, String>) -> Result<Vec<f64>, String> {
        let mut residual = |datum: &Datum| {
            if self.memo.cancel.is_cancelled() {
                return Err("the fit is cancelled".to_owned());
            }
            let given = ask(datum)?.ok_or_else(|| format!("there is no figure of {}", datum.name))?;
            Ok((given / datum.measured).ln())
        };
        self.data.iter().map(&mut residual).collect()
    }

    fn platform_with(&self, values: &[f64]) -> Result<Platform, String> {
        let changes = self.keys.iter().map(String::as_str).zip(values.iter().copied());
        let origin = Origin::FittedTo(vec!["a record".to_owned()]);
        self.platform.with_numbers(changes, &origin).map_err(|error| error.to_string())
    }
}

/// Whether the data contain figures of several stated windows.
fn several_windows(data: &[Datum]) -> bool {
    let mut windows = data.iter().filter_map(|datum| datum.case.reach().window_bytes);
    let first = windows.next();
    windows.any(|window| Some(window) != first)
}
