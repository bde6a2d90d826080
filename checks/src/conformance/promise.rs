//! The promises by name.

use super::{Subject, bodies};

/// One promise.
pub struct Promise {
    /// What holds, as a sentence.
    pub name: &'static str,
    /// Whether it speaks of samples, which formulas do not take.
    pub of_samples: bool,
    /// Holds a machine against it; an error says what was done and what came of it.
    pub body: fn(&dyn Subject) -> Result<(), String>,
}

/// Every promise.
pub const PROMISES: &[Promise] = &[
    Promise { name: "facts are sound and never change", of_samples: false, body: bodies::facts },
    Promise { name: "supports says what run does", of_samples: false, body: bodies::agreement },
    Promise { name: "what is refused touches nothing", of_samples: false, body: bodies::refusal },
    Promise { name: "a span outside every region is refused by its name", of_samples: true, body: bodies::outside },
    Promise { name: "as many samples are taken as are wanted", of_samples: true, body: bodies::count },
    Promise { name: "nothing is delivered before it is issued", of_samples: true, body: bodies::order },
    Promise { name: "bytes claimed are there, and no others", of_samples: true, body: bodies::bytes },
    Promise { name: "a timeout ends a run and not the machine", of_samples: true, body: bodies::timeout },
    Promise { name: "a flag ends a run and not the machine", of_samples: true, body: bodies::interruption },
    Promise { name: "runs do not influence each other", of_samples: false, body: bodies::independence },
];

/// What became of one promise.
pub struct Verdict {
    /// Its name.
    pub promise: &'static str,
    /// Why it is broken; `None` if it is kept.
    pub broken: Option<String>,
}

/// Holds a machine against every promise that speaks of it.
pub fn held_against(subject: &dyn Subject) -> Vec<Verdict> {
    let concern = |promise: &&Promise| subject.takes_samples() || !promise.of_samples;
    let verdict = |promise: &Promise| {
        let broken = (promise.body)(subject).err().map(|why| format!("{}: {why}", subject.name()));
        Verdict { promise: promise.name, broken }
    };
    PROMISES.iter().filter(concern).map(verdict).collect()
}
