//! The list of promises.

use super::{Subject, bodies};

/// A promise of the `Machine` trait.
pub struct Promise {
    /// The promise, as a sentence.
    pub name: &'static str,
    /// Whether it is about samples, which formulas do not take.
    pub of_samples: bool,
    /// Tests a machine; an error contains the action and its result.
    pub body: fn(&dyn Subject) -> Result<(), String>,
}

/// Every promise.
pub const PROMISES: &[Promise] = &[
    Promise { name: "facts are sound and never change", of_samples: false, body: bodies::facts },
    Promise { name: "supports agrees with run", of_samples: false, body: bodies::agreement },
    Promise { name: "a refused plan has no effect", of_samples: false, body: bodies::refusal },
    Promise { name: "a span outside every region is refused by name", of_samples: true, body: bodies::outside },
    Promise { name: "as many samples are taken as are wanted", of_samples: true, body: bodies::count },
    Promise { name: "nothing is delivered before it is issued", of_samples: true, body: bodies::order },
    Promise { name: "claimed bytes are changed, and no others", of_samples: true, body: bodies::bytes },
    Promise { name: "a timeout ends a run and leaves the machine usable", of_samples: true, body: bodies::timeout },
    Promise {
        name: "an interrupt ends a run and leaves the machine usable",
        of_samples: true,
        body: bodies::interruption,
    },
    Promise { name: "runs do not influence each other", of_samples: false, body: bodies::independence },
];

/// Result of a promise on a machine.
pub struct Verdict {
    /// Name of the promise.
    pub promise: &'static str,
    /// Reason why it is broken; `None` if it is kept.
    pub broken: Option<String>,
}

/// Tests a machine against every applicable promise.
pub fn held_against(subject: &dyn Subject) -> Vec<Verdict> {
    let concern = |promise: &&Promise| subject.takes_samples() || !promise.of_samples;
    let verdict = |promise: &Promise| {
        let broken = (promise.body)(subject).err().map(|why| format!("{}: {why}", subject.name()));
        Verdict { promise: promise.name, broken }
    };
    PROMISES.iter().filter(concern).map(verdict).collect()
}
