//! Utilization of the resources that a critical path can name, except links.

use crate::{Cause, Direction};
use lanemark_units::Ticks;

/// Use of a resource while samples were taken, without warm-up.
///
/// The observed time is that of [`LinkUse`](crate::LinkUse). A resource in use all the time is a bottleneck only if it
/// is also on the critical path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResourceUse {
    /// Place of the resource, as in [`PathShare::place`](crate::PathShare::place).
    pub place: String,
    /// Cause of its work, as in [`PathShare::cause`](crate::PathShare::cause).
    pub cause: Cause,
    /// Direction of the data from the host, if it has a path for each direction.
    pub direction: Option<Direction>,
    /// Number of alike parts that work at the same time, such as walkers; at least 1.
    pub servers: u32,
    /// Observed time, over all samples.
    pub span: Ticks,
    /// Time in which its parts were occupied, summed over them.
    pub busy: Ticks,
}

impl ResourceUse {
    /// Fraction of the time in which it was occupied, 0 to 1: the mean over its parts; 0 without any observed time.
    ///
    /// ```
    /// use lanemark_machine::{Cause, ResourceUse};
    /// use lanemark_units::Ticks;
    /// let place = "IOMMU".to_owned();
    /// let walkers = ResourceUse {
    ///     place,
    ///     cause: Cause::Translation,
    ///     direction: None,
    ///     servers: 4,
    ///     span: Ticks(100),
    ///     busy: Ticks(200),
    /// };
    /// assert_eq!(walkers.share(), 0.5);
    /// ```
    #[must_use]
    pub fn share(&self) -> f64 {
        let all = self.span.as_ns() * f64::from(self.servers.max(1));
        if all > 0.0 { self.busy.as_ns() / all } else { 0.0 }
    }
}
