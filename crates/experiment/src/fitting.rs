//! The fits of a paper, as least-squares problems.

use crate::computed::{Means, computed_by};
use crate::error::ExperimentError;
use crate::experiment::{Experiment, FigureQuery, FitSpec, Published, platform_of, size_of};
use crate::paper::Paper;
use lanemark_platform::{Origin, Platform};

/// A set of parameters that are fitted together, with the figures that they are fitted to.
#[derive(Clone, Debug)]
pub struct Fitting {
    platform: Platform,
    spec: FitSpec,
    data: Vec<(FigureQuery, Option<u64>, f64)>,
}

/// The fits of a paper.
///
/// # Errors
/// [`ExperimentError`] if a file is invalid, or a fit names a figure without a question or a value.
pub fn fittings(paper: &Paper) -> Result<Vec<Fitting>, ExperimentError> {
    let experiment = Experiment::read(paper.name, paper.experiment, paper.published)?;
    let Some(platform) = platform_of(paper.name, &experiment)? else { return Ok(Vec::new()) };
    let fits = experiment.fits.iter().map(|spec| {
        let data = spec.to.iter().map(|id| datum(paper.name, &experiment, id)).collect::<Result<Vec<_>, _>>()?;
        Ok(Fitting { platform: platform.clone(), spec: spec.clone(), data })
    });
    fits.collect()
}

fn datum(paper: &str, experiment: &Experiment, id: &str) -> Result<(FigureQuery, Option<u64>, f64), ExperimentError> {
    let target = experiment.published.get(id).and_then(Published::target);
    let of_column = experiment
        .columns
        .iter()
        .find_map(|column| size_of(&column.id, id).map(|size| (column.ask.clone(), Some(size))));
    let of_figure = || {
        let figure = experiment.figures.iter().find(|figure| figure.id == id)?;
        figure.ask.clone().map(|ask| (ask, None))
    };
    match (of_column.or_else(of_figure), target) {
        (Some((ask, size)), Some(target)) => Ok((ask, size, target)),
        _ => Err(ExperimentError::Figure {
            paper: paper.to_owned(),
            id: id.to_owned(),
            message: "a fit needs a figure with a published value and a question".to_owned(),
        }),
    }
}

impl Fitting {
    /// Key, present value in the platform, lower and upper bound of each parameter.
    #[must_use]
    pub fn parameters(&self) -> Vec<(String, f64, f64, f64)> {
        self.spec
            .parameters
            .iter()
            .map(|parameter| {
                let now = self.platform.number(&parameter.key).map_or(f64::NAN, |found| found.0);
                (parameter.key.clone(), now, parameter.low, parameter.high)
            })
            .collect()
    }

    /// IDs of the figures that the parameters are fitted to.
    #[must_use]
    pub fn data(&self) -> &[String] {
        &self.spec.to
    }

    /// The platform of the parameters.
    #[must_use]
    pub fn platform(&self) -> &Platform {
        &self.platform
    }

    /// The natural logarithm of simulated over published value of each figure, for parameter values `values`.
    ///
    /// A factor of two too high then has the same weight as a factor of two too low, unlike a relative error.
    ///
    /// # Errors
    /// The error of the platform or the simulation for these values.
    pub fn residuals(&self, values: &[f64]) -> Result<Vec<f64>, String> {
        let mut platform = self.platform.clone();
        for (parameter, value) in self.spec.parameters.iter().zip(values) {
            let origin = Origin::FittedTo(self.spec.to.clone());
            platform = platform.with(&parameter.key, *value, origin).map_err(|error| error.to_string())?;
        }
        let simulated = |ask, size| computed_by(Means::Simulation, &platform, ask, size);
        self.data.iter().map(|(ask, size, target)| Ok((simulated(ask, *size)? / target).ln())).collect()
    }
}
