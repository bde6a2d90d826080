//! Simulated figures at some values of a fit's keys.

use crate::datum::{Datum, Iotlb};
use crate::memo::{By, Dependence, Memo, NEAR, NEAR_OF_BOTH};
use lanemark_platform::Platform;
use lanemark_runner::{Cancel, OpenTarget};

/// A simulation at some values. It is built when the first figure is not known yet.
pub(crate) struct Simulation<'a> {
    memo: &'a Memo,
    dependence: Dependence<'a>,
    platform: &'a dyn Fn() -> Result<Platform, String>,
    /// Whether a transfer may depend on earlier ones, and the IOTLB of an IOMMU that translates.
    has_memory: (bool, Option<Iotlb>),
    /// The simulation of every transfer, and the one that skips steady states.
    targets: [Option<OpenTarget>; 2],
}

impl<'a> Simulation<'a> {
    /// `dependence` are the values of `platform`. `has_memory`: whether a transfer may depend on earlier
    /// ones, and the IOTLB of an IOMMU that translates.
    pub(crate) fn new(
        memo: &'a Memo,
        dependence: Dependence<'a>,
        platform: &'a dyn Fn() -> Result<Platform, String>,
        has_memory: (bool, Option<Iotlb>),
    ) -> Simulation<'a> {
        Simulation { memo, dependence, platform, has_memory, targets: [None, None] }
    }

    /// The simulated figure; `None` for an answer without a figure.
    ///
    /// # Errors
    /// That of the platform or of the simulation.
    pub(crate) fn figure(&mut self, datum: &Datum) -> Result<Option<f64>, String> {
        let Simulation { memo, dependence, platform, has_memory, targets } = self;
        memo.figure(By::Simulation, datum.number, dependence.of(datum.verb()), || {
            datum.simulated(*has_memory, &mut |is_short, passes| {
                let target = match &mut targets[usize::from(!is_short)] {
                    Some(target) => target,
                    none => {
                        let platform = platform()?;
                        none.insert(if is_short {
                            in_detail(&platform, &memo.cancel)?
                        } else {
                            opened(&platform, &memo.cancel)?
                        })
                    }
                };
                datum.asked(target, passes)
            })
        })
    }

    /// As [`figure`](Simulation::figure), and keeps its ratio to the formula.
    ///
    /// # Errors
    /// As [`figure`](Simulation::figure).
    pub(crate) fn compared(&mut self, datum: &Datum) -> Result<Option<f64>, String> {
        let simulated = self.figure(datum)?;
        self.memo.compare(datum.number, self.dependence.of(datum.verb()));
        Ok(simulated)
    }

    /// The figure of the formula, as earlier comparisons with the simulation correct it; `None` if they do not apply.
    pub(crate) fn known_by_formula(&self, datum: &Datum) -> Option<f64> {
        let near = if datum.is_of_both() { NEAR_OF_BOTH } else { NEAR };
        self.memo.like_simulated(datum.number, self.dependence.of(datum.verb()), near)
    }
}

fn in_detail(platform: &Platform, cancel: &Cancel) -> Result<OpenTarget, String> {
    OpenTarget::in_detail(platform, cancel).map_err(|error| error.to_string())
}

/// The simulation of a platform, which `cancel` ends early.
///
/// # Errors
/// A platform that cannot be simulated.
pub(crate) fn opened(platform: &Platform, cancel: &Cancel) -> Result<OpenTarget, String> {
    OpenTarget::cancelled_by(platform, cancel).map_err(|error| error.to_string())
}
