//! Percentiles of values.

/// Median of `values`; NaN without values.
pub(crate) fn median(values: Vec<f64>) -> f64 {
    if values.is_empty() { f64::NAN } else { percentile(&sorted(values), 50.0) }
}

pub(crate) fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// The percentile of sorted values, with linear interpolation.
pub(crate) fn percentile(sorted: &[f64], percent: f64) -> f64 {
    let place = percent / 100.0 * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}
