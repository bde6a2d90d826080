//! The keys that a page can change, with the values that each takes.

use lanemark_platform::{Origin, Parameter, Platform};
use serde::Serialize;

/// One key with the values that it can take.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Slider {
    /// The key, such as `link.mps_bytes`, or the name of a change of methods.
    pub key: String,
    /// Its name for readers; `None` for a key that is not among the most important ones.
    pub label: Option<&'static str>,
    /// The possible values as text, in ascending order.
    pub values: Vec<String>,
    /// Index of the record's value; `None` if answers differ in it.
    pub place: Option<usize>,
}

/// The most important keys, with their names.
const NAMED: [(&str, &str); 12] = [
    ("link.generation", "link generation"),
    ("link.width_lanes", "link width, lanes"),
    ("link.mps_bytes", "MPS, bytes"),
    ("link.mrrs_bytes", "MRRS, bytes"),
    ("link.latency_ns", "link latency, ns"),
    ("dma.tags", "tags of the DMA engine"),
    ("memory.read_ns", "host memory read, ns"),
    ("root_complex.core_round_trip_ns", "core to root complex and back, ns"),
    ("core.wc_buffers", "write-combining buffers"),
    ("iommu.page_bytes", "IOMMU page size, bytes"),
    ("iommu.iotlb_entries", "IOTLB entries"),
    ("runtime.submit_ns", "submission by the runtime, ns"),
];

/// Positions per doubling of a value.
const STEPS_PER_DOUBLING: i32 = 4;
/// Doublings and halvings on either side of the record's value.
const DOUBLINGS: i32 = 5;
/// Significant digits of a position.
const DIGITS: i32 = 3;

impl Slider {
    /// A change of methods, which has no value of the record.
    pub(crate) fn of_methods(key: &str, label: &'static str, values: Vec<String>) -> Slider {
        Slider { key: key.to_owned(), label: Some(label), values, place: None }
    }
}

/// The sliders of a platform: the most important keys, and the others. A key that takes no other value has none.
pub(crate) fn of_platform(platform: &Platform) -> (Vec<Slider>, Vec<Slider>) {
    let sliders: Vec<Slider> =
        platform.parameters().iter().filter_map(|parameter| of_parameter(platform, parameter)).collect();
    let (mut named, others): (Vec<_>, Vec<_>) = sliders.into_iter().partition(|slider| slider.label.is_some());
    let rank = |slider: &Slider| NAMED.iter().position(|(key, _)| *key == slider.key);
    named.sort_by_key(rank);
    (named, others)
}

fn of_parameter(platform: &Platform, parameter: &Parameter) -> Option<Slider> {
    let own = platform.value_text(&parameter.key)?;
    let mut values: Vec<f64> = match parameter.listed() {
        Some(listed) => listed.iter().map(|value| *value as f64).collect(),
        None => around(parameter.value),
    };
    let is_possible = |value: &f64| {
        *value == parameter.value
            || platform.with(&parameter.key, *value, Origin::Assumed("a slider".to_owned())).is_ok()
    };
    values.retain(is_possible);
    let place = values.iter().position(|value| *value == parameter.value)?;
    let values: Vec<String> = (values.iter().enumerate())
        .map(|(at, value)| if at == place { own.clone() } else { value.to_string() })
        .collect();
    let label = NAMED.iter().find(|(key, _)| *key == parameter.key).map(|(_, label)| *label);
    (values.len() > 1).then_some(Slider { key: parameter.key.clone(), label, values, place: Some(place) })
}

/// The value and rounded ones around it, in ascending order.
fn around(value: f64) -> Vec<f64> {
    let steps = STEPS_PER_DOUBLING * DOUBLINGS;
    let others =
        (-steps..=steps).map(|step| rounded(value * 2_f64.powf(f64::from(step) / f64::from(STEPS_PER_DOUBLING))));
    let mut values: Vec<f64> = others.chain([value]).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

/// A value with few significant digits; from 100 on it is a whole number.
fn rounded(value: f64) -> f64 {
    let digits = DIGITS - 1 - value.abs().log10().floor() as i32;
    let factor = 10_f64.powi(digits.max(0));
    (value * factor).round() / factor
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card() -> Platform {
        lanemark_platform::preset("card-gen5-x16").unwrap().unwrap()
    }

    #[test]
    fn every_value_of_a_slider_is_possible_and_ascends_through_that_of_the_record() {
        let card = card();
        let (named, others) = of_platform(&card);
        assert!(named.len() >= 8 && others.len() > 20, "{} and {}", named.len(), others.len());
        assert_eq!(named[0].key, "link.generation");
        for slider in named.iter().chain(&others) {
            let numbers: Vec<f64> = slider.values.iter().map(|value| value.parse().unwrap()).collect();
            assert!(numbers.is_sorted_by(|one, next| one < next), "{slider:?}");
            assert_eq!(card.value_text(&slider.key).as_ref(), slider.place.map(|place| &slider.values[place]));
            for value in &slider.values {
                card.with_text(&slider.key, value, Origin::Assumed("a test".to_owned())).unwrap();
            }
        }
    }

    #[test]
    fn a_slider_ends_before_a_value_that_the_platform_refuses() {
        let card = card();
        let (named, _) = of_platform(&card);
        let lanes = named.iter().find(|slider| slider.key == "link.width_lanes").unwrap();
        assert_eq!(lanes.values, ["1", "2", "4", "8", "12", "16", "32"]);
        let generation = named.iter().find(|slider| slider.key == "link.generation").unwrap();
        let refused =
            |value: &str| card.with_text("link.generation", value, Origin::Assumed("a test".to_owned())).is_err();
        assert!(refused("7") && !generation.values.contains(&"7".to_owned()));
    }

    #[test]
    fn positions_have_three_digits_and_the_value_itself_all() {
        let values = around(123.456);
        assert!(values.contains(&123.456) && values.contains(&247.0) && values.contains(&61.7), "{values:?}");
        assert_eq!(values.len(), 42, "20 positions on either side, and the rounded value beside the value itself");
    }
}
