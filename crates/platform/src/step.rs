//! Every value of a platform changed by one small step, and the origin of every value.

use crate::key::{Kind, Raw};
use crate::param::Origin;
use crate::parameter::NAMES;
use crate::platform::Platform;
use crate::sections::label;

/// Factor of a step of a number.
const FACTOR: f64 = 1.01;

/// One value of a platform, changed by one step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Path of the value, as in [`Platform::with_text`].
    pub key: String,
    /// The changed value, as in [`Platform::with_text`].
    pub to: String,
    /// Changed over present value; `None` for a word or a flag.
    pub ratio: Option<f64>,
    /// The platform with this value.
    pub platform: Platform,
}

impl Platform {
    /// Every value of this platform changed alone by one step, in the order of its file.
    ///
    /// A number is raised by 1 %, or lowered if that is out of range. A whole number changes to both of its neighbours:
    /// by 1 and at least 1 %, by a factor of 2 if it counts bytes, or to the next listed value. A word and a flag change
    /// to every other value. Left out: zeros, which switch something off; faults; keys that only name or locate
    /// something; and values that are inconsistent with the rest of the platform.
    ///
    /// ```
    /// use lanemark_platform::preset;
    /// let card = preset("card-gen5-x16").unwrap()?;
    /// let steps = card.steps();
    /// let tags = card.number("dma.tags").unwrap().0;
    /// let to: Vec<f64> = steps.iter().filter(|step| step.key == "dma.tags").filter_map(|step| step.ratio).collect();
    /// assert!(to[0] * tags >= tags + 1.0 && to[1] * tags <= tags - 1.0);
    /// # Ok::<(), lanemark_platform::PlatformError>(())
    /// ```
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        self.each_value(&mut |key, kind, raw, _| {
            let (_, name) = key.rsplit_once('.').unwrap_or(("", key));
            if NAMES.contains(&name) || key.starts_with("fault") {
                return;
            }
            let mut changed = texts(name, kind, raw).into_iter().filter_map(|(to, ratio)| {
                let origin = Origin::Given("one step of this value".to_owned());
                let platform = self.with_text(key, &to, origin).ok()?;
                Some(Step { key: key.to_owned(), to, ratio, platform })
            });
            if kind.is_whole() || !matches!(raw, Raw::Number(_)) {
                steps.extend(changed);
            } else {
                steps.extend(changed.next());
            }
        });
        steps
    }

    /// Path and origin of every value of this platform, in the order of its file.
    #[must_use]
    pub fn value_origins(&self) -> Vec<(String, Origin)> {
        let mut origins = Vec::new();
        self.each_value(&mut |key, _, _, origin| origins.push((key.to_owned(), origin.clone())));
        origins
    }

    /// Calls `visit` with path, kind, value and origin of every value.
    pub(crate) fn each_value(&self, visit: &mut dyn FnMut(&str, Kind, Raw, &Origin)) {
        for (row, sections) in self.sections() {
            for section in sections {
                let prefix = match label(section) {
                    Some(name) if row.is_repeated => format!("{}.{name}", row.path),
                    _ => row.path.to_owned(),
                };
                section.each(&mut |name, raw, origin| {
                    if let Some(key) = row.keys.iter().find(|key| key.name == name) {
                        visit(&format!("{prefix}.{name}"), key.kind, raw, origin);
                    }
                });
            }
        }
    }
}

/// The values next to `raw` as text, each with its ratio to `raw`; the preferred one first.
fn texts(name: &str, kind: Kind, raw: Raw) -> Vec<(String, Option<f64>)> {
    let numbers = |value: f64, next: [f64; 2]| {
        let next = if value > 0.0 { next.to_vec() } else { Vec::new() };
        next.into_iter().map(|to| (to.to_string(), Some(to / value))).collect()
    };
    match (kind, raw) {
        (Kind::Choice(words), Raw::Word(word)) => {
            words.iter().filter(|other| **other != word).map(|other| ((*other).to_owned(), None)).collect()
        }
        (_, Raw::Flag(flag)) => vec![((!flag).to_string(), None)],
        (_, Raw::Number(value)) => numbers(value, [value * FACTOR, value / FACTOR]),
        (Kind::OneOf(listed), Raw::Whole(whole)) if whole > 0 => {
            let next = [listed.iter().find(|one| **one > whole), listed.iter().rfind(|one| **one < whole)];
            next.into_iter().flatten().map(|to| (to.to_string(), Some(*to as f64 / whole as f64))).collect()
        }
        (Kind::Size(..), Raw::Whole(whole)) => numbers(whole as f64, [whole as f64 * 2.0, (whole / 2) as f64]),
        (_, Raw::Whole(whole)) if name.ends_with("_bytes") => {
            numbers(whole as f64, [whole as f64 * 2.0, (whole / 2) as f64])
        }
        (_, Raw::Whole(whole)) => {
            let (value, by) = (whole as f64, (whole as f64 * (FACTOR - 1.0)).round().max(1.0));
            numbers(value, [value + by, value - by])
        }
        (_, Raw::Word(_)) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset;

    fn steps(name: &str, key: &str) -> Vec<(String, Option<f64>)> {
        let platform = preset(name).unwrap().unwrap();
        let steps = platform.steps().into_iter().filter(|step| step.key == key);
        steps
            .map(|step| {
                // A time is rounded to a tick.
                let number = |text: &str| text.parse::<f64>().ok();
                let found = step.platform.value_text(key).unwrap();
                match (number(&found), number(&step.to)) {
                    (Some(found), Some(to)) => assert!((found - to).abs() <= 0.001 * to.abs(), "{key}: {found}, {to}"),
                    _ => assert_eq!(found, step.to),
                }
                (step.to, step.ratio)
            })
            .collect()
    }

    #[test]
    fn a_number_has_one_step_and_a_whole_number_both_neighbours() {
        let [(_, Some(ratio))] = &steps("rosta-virtex7", "dma.descriptor_ns")[..] else { panic!() };
        assert!((ratio - FACTOR).abs() < 1e-12, "{ratio}");
        let to = |key| steps("rosta-virtex7", key).into_iter().map(|step| step.0).collect::<Vec<_>>();
        assert_eq!(to("link.nonposted_header_credits"), ["13", "11"]);
        assert_eq!(to("link.posted_data_credits"), ["441", "433"]);
        assert_eq!(to("dma.tags"), ["2"], "0 tags are refused");
        assert_eq!(to("link.generation"), ["3", "1"]);
        assert_eq!(to("dma.descriptor_bytes"), ["8192"], "2048 is no listed value");
    }

    #[test]
    fn a_word_and_a_flag_change_to_every_other_value() {
        assert_eq!(steps("rosta-virtex7", "link.skp"), [("false".to_owned(), None)]);
        let words: Vec<String> = steps("aws-f1", "core.memcpy").into_iter().map(|step| step.0).collect();
        assert!(!words.is_empty() && !words.contains(&"glibc-2.20-avx-unaligned".to_owned()), "{words:?}");
    }

    #[test]
    fn names_places_and_zeros_have_no_step() {
        for preset in crate::PRESETS {
            let platform = crate::preset(preset.name).unwrap().unwrap();
            for step in platform.steps() {
                let name = step.key.rsplit_once('.').unwrap().1;
                assert!(!NAMES.contains(&name) && platform.value_text(&step.key).unwrap() != "0", "{}", step.key);
            }
        }
    }

    #[test]
    fn every_value_has_its_origin() {
        let origins = preset("rosta-virtex7").unwrap().unwrap().value_origins();
        let of = |key: &str| origins.iter().find(|(other, _)| other == key).map(|(_, origin)| origin.clone());
        assert_eq!(of("dma.tags"), Some(Origin::FittedTo(vec!["R9:1".to_owned()])));
        assert!(matches!(of("bar.0.address_bytes"), Some(Origin::Assumed(_))));
    }
}
