//! The numeric parameters of a platform, and the same parameters made better or worse by a factor.

use crate::key::{Kind, Raw};
use crate::platform::Platform;

/// A number of a platform that can be changed alone.
#[derive(Clone, PartialEq, Debug)]
pub struct Parameter {
    /// Its path, as in [`Platform::with`]: `dma.tags`, `region.sram.read_ns`.
    pub key: String,
    /// Its value in the unit of the key.
    pub value: f64,
    kind: Kind,
}

/// Keys that say where something is, which one it is, or how long a file or a clock counts: they have no better value.
pub(crate) const NAMES: [&str; 10] = [
    "index",
    "bar",
    "address_bytes",
    "offset_bytes",
    "parent",
    "socket",
    "port",
    "vendor_id",
    "device_id",
    "rcb_bytes",
];

impl Platform {
    /// The numeric parameters of this platform in the order of its file, without zeros, which switch something off.
    ///
    /// ```
    /// use lanemark_platform::preset;
    /// let card = preset("card-gen5-x16").unwrap()?;
    /// let tags = card.parameters().into_iter().find(|parameter| parameter.key == "dma.tags").unwrap();
    /// assert_eq!((tags.scaled(2.0), tags.scaled(0.5)), (Some(tags.value * 2.0), Some(tags.value / 2.0)));
    /// # Ok::<(), lanemark_platform::PlatformError>(())
    /// ```
    #[must_use]
    pub fn parameters(&self) -> Vec<Parameter> {
        let mut parameters = Vec::new();
        self.each_value(&mut |key, kind, raw, _| {
            let Some(value) = number(&raw).filter(|value| *value > 0.0) else { return };
            let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
            if !section.starts_with("fault") && !NAMES.contains(&name) {
                parameters.push(Parameter { key: key.to_owned(), value, kind });
            }
        });
        parameters
    }
}

fn number(raw: &Raw) -> Option<f64> {
    match *raw {
        Raw::Number(number) => Some(number),
        Raw::Whole(whole) => Some(whole as f64),
        Raw::Word(_) | Raw::Flag(_) => None,
    }
}

impl Parameter {
    /// The values that the key takes, if they are a list.
    #[must_use]
    pub const fn listed(&self) -> Option<&'static [u64]> {
        match self.kind {
            Kind::OneOf(listed) => Some(listed),
            _ => None,
        }
    }

    /// The value times `factor`, as the key takes it: rounded if it is a whole number, the next listed one if it is one
    /// of several; the next generation of a link is the next rate. `None` if that is out of range or the same.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Option<f64> {
        let wanted = self.value * factor;
        let to = match self.kind {
            Kind::Ns(max) => (wanted <= max).then_some(wanted),
            Kind::Number(min, max) | Kind::ZeroOrNumber(min, max) => (min..=max).contains(&wanted).then_some(wanted),
            Kind::Count(min, max) | Kind::Size(min, max) => {
                let whole = wanted.round();
                (min as f64..=max as f64).contains(&whole).then_some(whole)
            }
            Kind::OneOf(listed) => {
                let is_listed = listed.iter().any(|one| *one as f64 == wanted) && !self.key.ends_with("generation");
                let mut listed = listed.iter().map(|one| *one as f64);
                if is_listed {
                    Some(wanted)
                } else if factor > 1.0 {
                    listed.find(|one| *one > self.value)
                } else {
                    listed.rfind(|one| *one < self.value)
                }
            }
            Kind::Choice(_) | Kind::Flag => None,
        };
        to.filter(|to| (to - self.value).abs() > f64::EPSILON * self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset;

    fn parameter(key: &str) -> Parameter {
        let card = preset("card-gen5-x16").unwrap().unwrap();
        card.parameters().into_iter().find(|parameter| parameter.key == key).unwrap()
    }

    #[test]
    fn a_scaled_parameter_is_within_its_range_or_absent() {
        let generation = parameter("link.generation");
        assert_eq!((generation.value, generation.scaled(2.0), generation.scaled(0.5)), (5.0, Some(6.0), Some(4.0)));
        let lanes = parameter("link.width_lanes");
        assert_eq!((lanes.scaled(2.0), lanes.scaled(0.5)), (Some(32.0), Some(8.0)));
        assert_eq!(parameter("link.mps_bytes").scaled(100.0), Some(1024.0), "the next listed one");
        assert_eq!(parameter("dma.tags").scaled(1e9), None);
        assert_eq!((generation.listed(), parameter("dma.tags").listed()), (Some(&[1, 2, 3, 4, 5, 6][..]), None));
    }

    #[test]
    fn every_parameter_can_be_read_at_its_key() {
        for name in crate::PRESETS.iter().map(|preset| preset.name) {
            let platform = preset(name).unwrap().unwrap();
            let parameters = platform.parameters();
            assert!(parameters.len() > 20, "{name}");
            for Parameter { key, value, .. } in parameters {
                assert_eq!(platform.number(&key).map(|(value, _)| value), Some(value), "{name}: {key}");
            }
        }
    }
}
