//! The pattern of the errors that are left after a fit, and the keys that make such a pattern.

use lanemark_record::Residual;

/// A pattern in the errors of one question.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// Question and method of the figures.
    pub of: String,
    /// The shape of the errors.
    pub shape: Shape,
    /// Share of the squares of the errors that the shape explains, in percent.
    pub explained_percent: f64,
    /// Keys that make such a pattern.
    pub keys: &'static [&'static str],
}

/// The shape of errors over the sizes of a curve. Positive values: the real transfers take longer than the fitted ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// Each transfer takes this much longer, in nanoseconds.
    PerTransfer(f64),
    /// Each part of `bytes` bytes takes `ns` nanoseconds longer, the last one even if it is shorter.
    Steps {
        /// Size of a part.
        bytes: u64,
        /// Time of a part, in nanoseconds.
        ns: f64,
    },
    /// All sizes take this much longer, in percent.
    Everywhere(f64),
}

/// Figure of a curve for this purpose.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    /// Question with its options: one curve.
    pub(crate) curve: String,
    /// Name of the question.
    pub(crate) question: &'static str,
    pub(crate) size_bytes: u64,
    /// Whether the figure is a rate.
    pub(crate) is_rate: bool,
}

/// Sizes of parts that are tried.
const PARTS: [u64; 7] = [64, 128, 256, 512, 1024, 2048, 4096];

/// Fewest figures of a curve in which a pattern is sought.
const LEAST_FIGURES: usize = 5;

/// Root mean square of errors below which they count as noise, in percent.
const NOISE_PERCENT: f64 = 2.5;

/// Share of the squares that a shape must explain.
const EXPLAINED: f64 = 0.7;

/// The patterns of the curves whose errors are larger than noise. `points` are the figures of `residuals`.
pub(crate) fn patterns(points: &[Point], residuals: &[Residual]) -> Vec<Pattern> {
    let mut curves: Vec<&str> = Vec::new();
    for point in points {
        if !curves.contains(&point.curve.as_str()) {
            curves.push(&point.curve);
        }
    }
    curves.into_iter().filter_map(|curve| pattern(curve, points, residuals)).collect()
}

fn pattern(curve: &str, points: &[Point], residuals: &[Residual]) -> Option<Pattern> {
    let of_curve = points.iter().zip(residuals).filter(|(point, _)| point.curve == curve);
    // Size, relative error of the time, and fitted time of a transfer in nanoseconds.
    let errors: Vec<(u64, f64, f64)> = of_curve
        .clone()
        .filter(|(_, residual)| residual.measured > 0.0 && residual.simulated > 0.0)
        .map(|(point, residual)| {
            let size = point.size_bytes as f64;
            let time = |figure: f64| if point.is_rate { 1e9 * size / figure } else { figure };
            let fitted = time(residual.simulated);
            (point.size_bytes, time(residual.measured) / fitted - 1.0, fitted)
        })
        .collect();
    let squares: f64 = errors.iter().map(|(_, error, _)| error * error).sum();
    if errors.len() < LEAST_FIGURES || (squares / errors.len() as f64).sqrt() * 100.0 < NOISE_PERCENT {
        return None;
    }
    // Least squares of the errors by one factor of a shape.
    let explained = |shape: &dyn Fn(u64, f64) -> f64| {
        let (mut product, mut norm) = (0.0, 0.0);
        for (size, error, fitted) in &errors {
            let of_it = shape(*size, *fitted);
            product += error * of_it;
            norm += of_it * of_it;
        }
        let factor = if norm > 0.0 { product / norm } else { 0.0 };
        (factor, factor * product / squares)
    };
    let mut found: Vec<(Shape, f64)> = Vec::new();
    let (percent, share) = explained(&|_, _| 1.0);
    found.push((Shape::Everywhere(100.0 * percent), share));
    let (ns, share) = explained(&|_, fitted| 1.0 / fitted);
    found.push((Shape::PerTransfer(ns), share));
    for bytes in PARTS {
        let (ns, share) = explained(&|size, fitted| size.div_ceil(bytes) as f64 / fitted);
        found.push((Shape::Steps { bytes, ns }, share));
    }
    // Of equally good shapes the first, which is the simplest.
    let best = found.into_iter().reduce(|best, next| if next.1 > best.1 + 1e-3 { next } else { best })?;
    let (point, _) = of_curve.clone().next()?;
    (best.1 >= EXPLAINED).then(|| Pattern {
        of: curve.to_owned(),
        shape: best.0,
        explained_percent: 100.0 * best.1,
        keys: keys(point.question, best.0),
    })
}

/// Keys that make this pattern.
fn keys(question: &str, shape: Shape) -> &'static [&'static str] {
    match (question, shape) {
        ("dma_read_write_mix", _) => &["dma.full_duplex", "dma.shared_request_ns", "memory.loaded_completion_bytes"],
        ("dma_write_bandwidth", Shape::Steps { .. }) => &[
            "dma_write.chunk_bytes",
            "dma_write.segment_bytes",
            "dma.write_boundary_bytes",
            "dma.write_bytes",
            "dma_write.segment_link_ns",
        ],
        (_, Shape::Steps { .. }) => &[
            "dma_read.chunk_bytes",
            "dma_read.segment_bytes",
            "dma.read_boundary_bytes",
            "dma.read_bytes",
            "memory.completion_bytes",
        ],
        (_, Shape::PerTransfer(_)) => &["dma.descriptor_ns", "dma.start_ns"],
        ("dma_read_latency", Shape::Everywhere(_)) => &["memory.read_ns", "link.latency_ns"],
        (_, Shape::Everywhere(_)) => &["dma.beat_ns", "link.generation", "link.width_lanes", "link.mps_bytes"],
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let longer = |value: f64| if value < 0.0 { "shorter" } else { "longer" };
        write!(f, "{}: ", self.of)?;
        match self.shape {
            Shape::PerTransfer(ns) => write!(f, "each transfer takes {:.1} ns {} than fitted", ns.abs(), longer(ns))?,
            Shape::Steps { bytes, ns } => {
                write!(f, "steps every {bytes} B, each {:.1} ns {} than fitted", ns.abs(), longer(ns))?;
            }
            Shape::Everywhere(percent) => {
                write!(f, "every size takes {:.1} % {} than fitted", percent.abs(), longer(percent))?;
            }
        }
        write!(
            f,
            " ({:.0} % of the errors); such a pattern is made by {}",
            self.explained_percent,
            self.keys.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Residuals of a curve of rates, fitted at 1 B/ns plus 50 ns; the real time of a size is `real`.
    fn curve(question: &'static str, real: impl Fn(u64) -> f64) -> (Vec<Point>, Vec<Residual>) {
        let sizes = [64_u64, 128, 192, 256, 320, 512, 1024, 4096];
        let of = |size: &u64| {
            let (fitted, real) = (*size as f64 + 50.0, real(*size));
            let rate = |ns: f64| 1e9 * *size as f64 / ns;
            let residual = Residual {
                what: String::new(),
                unit: "B/s".to_owned(),
                measured: rate(real),
                simulated: rate(fitted),
                formula: None,
                error_percent: 0.0,
            };
            let point = Point { curve: question.to_owned(), question, size_bytes: *size, is_rate: true };
            (point, residual)
        };
        sizes.iter().map(of).unzip()
    }

    fn found(question: &'static str, real: impl Fn(u64) -> f64) -> Option<Pattern> {
        let (points, residuals) = curve(question, real);
        patterns(&points, &residuals).pop()
    }

    #[test]
    fn steps_are_found_with_their_size_and_their_time() {
        let real = |size: u64| size as f64 + 50.0 + 30.0 * size.div_ceil(256) as f64;
        let pattern = found("dma_write_bandwidth", real).unwrap();
        let Shape::Steps { bytes: 256, ns } = pattern.shape else { panic!("{pattern:?}") };
        assert!((ns - 30.0).abs() < 1e-6 && pattern.explained_percent > 99.9, "{pattern:?}");
        let text = pattern.to_string();
        assert!(text.starts_with("dma_write_bandwidth: steps every 256 B, each 30.0 ns longer than fitted"), "{text}");
        assert!(text.ends_with("dma.write_boundary_bytes, dma.write_bytes, dma_write.segment_link_ns"), "{text}");
    }

    #[test]
    fn a_time_for_each_transfer_and_a_factor_are_told_apart() {
        let pattern = found("dma_read_bandwidth", |size| size as f64 + 90.0).unwrap();
        assert!(matches!(pattern.shape, Shape::PerTransfer(ns) if (ns - 40.0).abs() < 1e-6), "{pattern:?}");
        let pattern = found("dma_read_bandwidth", |size| 0.9 * (size as f64 + 50.0)).unwrap();
        assert!(matches!(pattern.shape, Shape::Everywhere(percent) if (percent + 10.0).abs() < 1e-6), "{pattern:?}");
        assert!(pattern.to_string().contains("every size takes 10.0 % shorter than fitted"), "{pattern}");
    }

    #[test]
    fn errors_without_a_shape_and_noise_have_no_pattern() {
        let alternating = |size: u64| (size as f64 + 50.0) * if size.is_power_of_two() { 1.1 } else { 0.9 };
        assert_eq!(found("dma_read_bandwidth", alternating), None);
        assert_eq!(found("dma_read_bandwidth", |size| 1.024 * (size as f64 + 50.0)), None);
        assert!(found("dma_read_bandwidth", |size| 1.026 * (size as f64 + 50.0)).is_some());
    }
}
