//! Drawn cards: numbers from a fixed seed, the file of a card that does not know them, and a table of its figures.

use lanemark_bench::{Axes, Case, Effort, ask, question};
use lanemark_fit::HEADER;
use lanemark_machine::Machine;
use lanemark_sim::SimulatedMachine;
use std::fmt::Write;

pub const PRESET: &str = include_str!("../../../../platforms/card-gen5-x16.toml");

/// A curve of a table: its question and sizes.
pub type Curve<'a> = (&'a str, &'a [u64]);

/// The latency curve of every table.
pub const LATENCIES: Curve<'static> = ("dma_read_latency", &[8, 64, 128, 256, 512, 1024, 4096]);

/// Pseudo-random numbers from a fixed seed: xorshift.
pub struct Draw(pub u64);

impl Draw {
    /// Uniform from 0 to 1.
    pub fn share(&mut self) -> f64 {
        for shift in [13, -7, 17] {
            self.0 ^= if shift > 0 { self.0 << shift } else { self.0 >> -shift };
        }
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.share())
    }

    /// A factor with a normal error of `deviation`.
    fn noise(&mut self, deviation: f64) -> f64 {
        let sum: f64 = (0..12).map(|_| self.share()).sum();
        (deviation * (sum - 6.0)).exp()
    }
}

/// The preset's file with an engine of 32 B per beat, requests of 512 B, and `keys` with the entries that `entry` gives.
pub fn text<'a>(keys: impl Iterator<Item = &'a str>, entry: &dyn Fn(&str) -> String) -> String {
    let mut text = PRESET.replace("beat_bytes = { value = 128,", "beat_bytes = { value = 32,");
    text = text.replace("mrrs_bytes = { value = 4096,", "mrrs_bytes = { value = 512,");
    for key in keys {
        let (section, name) = key.split_once('.').unwrap();
        let from = text.find(&format!("[{section}]")).unwrap();
        let end = text[from + 1..].find("\n[").map_or(text.len(), |at| from + 1 + at);
        let line = text[from..end].find(&format!("\n{name} =")).map(|at| from + at + 1);
        let entry = format!("{name} = {}\n", entry(key));
        match line {
            Some(start) => {
                let stop = start + text[start..].find('\n').unwrap() + 1;
                text.replace_range(start..stop, &entry);
            }
            None => text.insert_str(text[from..].find('\n').unwrap() + from + 1, &entry),
        }
    }
    text
}

/// The entry of a number that the fit is to find.
pub fn unknown(_: &str) -> String {
    "{ unknown = \"fitted\" }".to_owned()
}

/// Noise-free figures of a curve: bytes per second, or nanoseconds.
pub fn figures(machine: &mut SimulatedMachine, (name, sizes): Curve<'_>) -> Vec<(u64, f64)> {
    let question = question(name).unwrap();
    let axes = Axes { sizes: Some(sizes.to_vec()), ..Axes::default() };
    let cases = (question.cases)(machine.facts(), &axes);
    let figure = |case: &Case| {
        let answer = ask(question, machine, case, &Effort::default()).unwrap();
        let figure = answer.delivered_rate_bytes_per_s.or(answer.latency_ns).unwrap().median;
        (case.size, figure)
    };
    cases.iter().map(figure).collect()
}

/// A table of measurements of these curves, with a relative error of `deviation` each.
pub fn measured(machine: &mut SimulatedMachine, curves: &[Curve<'_>], draw: &mut Draw, deviation: f64) -> String {
    let mut text = format!("{HEADER}\n");
    for curve in curves {
        let (name, is_latency) = (curve.0, curve.0 == LATENCIES.0);
        for (size, figure) in figures(machine, *curve) {
            let figure = figure * draw.noise(deviation);
            let _ = if is_latency {
                writeln!(text, "{name},{size},{figure:.3} ns")
            } else {
                writeln!(text, "{name},{size},{:.4} MB/s", figure / 1e6)
            };
        }
    }
    text
}
