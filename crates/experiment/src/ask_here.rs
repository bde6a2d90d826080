//! What of an experiment the machine this runs on is asked, as its file says it.

use crate::figure::Wanted;
use lanemark_method::Method;
use serde::Deserialize;

/// A question to the machine this runs on, which is another than the paper's.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Written")]
pub struct AskHere {
    /// The question, in words.
    pub what: String,
    /// The machines that can answer.
    pub of: Whom,
    /// What `derive` calls the answer; the figure's ID if it is not said.
    pub name: Option<String>,
    /// How.
    pub how: How,
    /// What the paper says in the unit of the answer, where that is no row of `published.csv`.
    pub published: Option<f64>,
}

/// How there comes to be an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum How {
    /// By a question.
    Ask(Asking),
    /// By arithmetic over what the same device said before, and, as `opencl:NAME`, what a device of the same name said behind OpenCL.
    Derive {
        /// The arithmetic.
        expression: String,
        /// Its unit; that of the figure if it is not said.
        unit: Option<String>,
    },
}

/// A question, and what is wanted of its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Asking {
    /// By catalogue name.
    pub question: String,
    /// The method, as records have it.
    pub method: Method,
    /// Of how many bytes; of all that the question asks for if it is not said.
    pub size: Option<u64>,
    /// Which figure of the answer; a latency in ns if it is not said.
    pub figure: Wanted,
}

/// The part of this machine that answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whom {
    /// Its memory and its processor.
    #[default]
    Host,
    /// Each device behind a runtime.
    Runtimes,
    /// Each device behind SYCL.
    Sycl,
}

/// One table of `here`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    what: String,
    #[serde(default)]
    of: Whom,
    name: Option<String>,
    published: Option<f64>,
    question: Option<String>,
    method: Option<Method>,
    size: Option<u64>,
    figure: Option<Wanted>,
    derive: Option<String>,
    unit: Option<String>,
}

impl TryFrom<Written> for AskHere {
    type Error = String;

    fn try_from(written: Written) -> Result<AskHere, String> {
        let Written { what, of, name, published, question, method, size, figure, derive, unit } = written;
        let is_asked = method.is_some() || size.is_some() || figure.is_some();
        let how = match (question, method, derive, unit) {
            (Some(question), Some(method), None, None) => {
                How::Ask(Asking { question, method, size, figure: figure.unwrap_or_default() })
            }
            (None, _, Some(expression), unit) if !is_asked => How::Derive { expression, unit },
            _ => {
                return Err(format!(
                    "'{what}': needs question and method, with size and figure where they are wanted, or derive, with its unit"
                ));
            }
        };
        Ok(AskHere { what, of, name, how, published })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<AskHere, String> {
        toml::from_str(&format!("what = \"w\"\n{text}")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_question_has_a_method_and_what_is_derived_has_neither() {
        let How::Ask(asking) = read("question = \"q\"\nmethod = { kind = \"wake\", by = \"eventfd\" }").unwrap().how
        else {
            panic!()
        };
        assert_eq!((asking.figure, asking.size), (Wanted::LatencyNs, None));
        let derived = read("derive = \"A/B\"\nunit = \"%\"").unwrap().how;
        assert_eq!(derived, How::Derive { expression: "A/B".to_owned(), unit: Some("%".to_owned()) });
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
            assert!(error.contains("'w': needs question and method"), "{wrong}: {error}");
        }
        assert!(read("derive = \"A\"\nother = 1").unwrap_err().contains("unknown field"));
    }
}
