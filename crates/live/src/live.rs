//! A platform whose formulas are asked again.

use crate::change::{Change, MEMORY_TYPE, OUTSTANDING, OfMethods};
use crate::error::LiveError;
use crate::point::{Figure, Point};
use crate::slider::{self, Slider};
use lanemark_model::FormulaMachine;
use lanemark_platform::{Origin, Platform};
use serde_json::Value;

/// A platform as a record has it.
#[derive(Clone, Debug)]
pub struct Live {
    platform: Platform,
    facts: lanemark_machine::Facts,
    machine: FormulaMachine,
    methods: OfMethods,
    changes: Vec<Change>,
    changed: Platform,
}

impl Live {
    /// The formulas of a platform in the form of [`Platform::to_json`].
    ///
    /// # Errors
    /// [`LiveError`] if it is not a complete platform.
    pub fn of(platform: &Value) -> Result<Live, LiveError> {
        let table: toml::Value = serde_json::from_value(platform.clone())?;
        let platform = Platform::parse("the platform of the record", &toml::to_string(&table)?)?;
        let facts = lanemark_sim::facts(&platform);
        let machine = FormulaMachine::new(&platform, &facts);
        let changed = platform.clone();
        Ok(Live { platform, facts, machine, methods: OfMethods::default(), changes: Vec::new(), changed })
    }

    /// The sliders: the most important keys first, and then all others.
    #[must_use]
    pub fn sliders(&self) -> Vec<Slider> {
        let types = self.facts.memory_types.iter().map(ToString::to_string).collect();
        let outstanding = (0..=10).map(|power| (1_u32 << power).to_string()).collect();
        let of_methods = [
            Slider::of_methods(MEMORY_TYPE, "memory type of loads and stores", types),
            Slider::of_methods(OUTSTANDING, "outstanding DMA transfers", outstanding),
        ];
        let (named, others) = slider::of_platform(&self.platform);
        named.into_iter().chain(of_methods).chain(others).collect()
    }

    /// Changes the platform of the record to this; changes made before are undone.
    ///
    /// # Errors
    /// [`LiveError`] if the changed platform is none. It then stays as it is.
    pub fn change(&mut self, changes: &[Change]) -> Result<(), LiveError> {
        if changes == self.changes {
            return Ok(());
        }
        let (methods, keys) = OfMethods::split(changes)?;
        let origin = || Origin::Assumed("a slider".to_owned());
        let next = self.platform.with_texts(keys.iter().map(|Change(key, value)| (&**key, &**value, origin())))?;
        if next != self.changed {
            self.facts = lanemark_sim::facts(&next);
            self.machine = FormulaMachine::new(&next, &self.facts);
            self.changed = next;
        }
        self.methods = methods;
        self.changes = changes.to_vec();
        Ok(())
    }

    /// The figure of a point on the changed platform.
    ///
    /// # Errors
    /// A clause with the reason why there is none.
    pub fn figure(&mut self, point: &Point) -> Result<Figure, String> {
        point.figure(&self.changed, &mut self.machine, &self.facts, self.methods)
    }

    /// The figures of `points` after `changes`.
    ///
    /// # Errors
    /// As for [`Live::change`].
    pub fn figures<'p>(
        &mut self,
        changes: &[Change],
        points: impl IntoIterator<Item = &'p Point>,
    ) -> Result<Vec<Result<Figure, String>>, LiveError> {
        self.change(changes)?;
        Ok(points.into_iter().map(|point| self.figure(point)).collect())
    }
}
