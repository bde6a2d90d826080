//! A question of an experiment to this machine, as `experiment.toml` has it under `here`.

use crate::metric::Metric;
use lanemark_method::Method;
use serde::Deserialize;

/// A question to this machine, which is not the paper's.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Table")]
pub struct LocalQuestion {
    /// Description of the measured quantity.
    pub what: String,
    /// The targets that can answer.
    pub of: LocalTarget,
    /// Name of the value in `derive`; by default the ID of the figure.
    pub name: Option<String>,
    /// Source of the value.
    pub source: LocalSource,
    /// Published value in the unit of the answer, if it is no row of `published.csv`.
    pub published: Option<f64>,
}

/// Source of a value of this machine.
#[derive(Clone, Debug, PartialEq)]
pub enum LocalSource {
    /// A measurement.
    Measure(Measurement),
    /// Arithmetic over earlier values.
    Derive {
        /// The expression. `NAME` is a value of the same device, and `opencl:NAME` of the device with the same name in OpenCL.
        expression: String,
        /// Unit of the result; by default that of the figure.
        unit: Option<String>,
    },
}

/// A question of the catalogue, its method, and the metric of its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Name in the catalogue of questions.
    pub question: String,
    /// The method, as records have it.
    pub method: Method,
    /// Size in bytes; by default all sizes of the question.
    pub size: Option<u64>,
    /// Metric of the answer; by default the latency in ns.
    pub metric: Metric,
}

/// Targets of this machine that can answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LocalTarget {
    /// Memory and processor.
    #[default]
    Host,
    /// Every device of a runtime.
    Runtimes,
    /// Every SYCL device.
    Sycl,
}

/// One table of the key `here`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    what: String,
    #[serde(default)]
    of: LocalTarget,
    name: Option<String>,
    published: Option<f64>,
    question: Option<String>,
    method: Option<Method>,
    size: Option<u64>,
    figure: Option<Metric>,
    derive: Option<String>,
    unit: Option<String>,
}

impl TryFrom<Table> for LocalQuestion {
    type Error = String;

    fn try_from(table: Table) -> Result<LocalQuestion, String> {
        let Table { what, of, name, published, question, method, size, figure, derive, unit } = table;
        let is_measured = method.is_some() || size.is_some() || figure.is_some();
        let source = match (question, method, derive, unit) {
            (Some(question), Some(method), None, None) => {
                LocalSource::Measure(Measurement { question, method, size, metric: figure.unwrap_or_default() })
            }
            (None, _, Some(expression), unit) if !is_measured => LocalSource::Derive { expression, unit },
            _ => {
                return Err(format!(
                    "'{what}': needs either question and method (optional: size, figure), or derive (optional: unit)"
                ));
            }
        };
        Ok(LocalQuestion { what, of, name, source, published })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<LocalQuestion, String> {
        toml::from_str(&format!("what = \"w\"\n{text}")).map_err(|error| error.to_string())
    }

    #[test]
    fn keys_of_a_measurement_and_of_an_expression_exclude_each_other() {
        let LocalSource::Measure(measurement) =
            read("question = \"q\"\nmethod = { kind = \"wake\", by = \"eventfd\" }").unwrap().source
        else {
            panic!()
        };
        assert_eq!((measurement.metric, measurement.size), (Metric::LatencyNs, None));
        let derived = read("derive = \"A/B\"\nunit = \"%\"").unwrap().source;
        assert_eq!(derived, LocalSource::Derive { expression: "A/B".to_owned(), unit: Some("%".to_owned()) });
        for wrong in [
            "",
            "question = \"q\"",
            "method = { kind = \"wake\", by = \"eventfd\" }",
            "question = \"q\"\nmethod = { kind = \"wake\", by = \"eventfd\" }\nunit = \"%\"",
            "question = \"q\"\nmethod = { kind = \"wake\", by = \"eventfd\" }\nderive = \"A\"",
            "derive = \"A\"\nfigure = \"whole_run_s\"",
            "derive = \"A\"\nsize = 4",
        ] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains("'w': needs either question and method"), "{wrong}: {error}");
        }
        assert!(read("derive = \"A\"\nother = 1").unwrap_err().contains("unknown field"));
    }
}
