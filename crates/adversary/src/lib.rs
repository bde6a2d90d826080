//! A partner for a device under test: a root complex with host memory, legal but demanding, or with injected faults.
//!
//! The device is a [`Dut`]: one stream of TLPs in each direction, clock by clock. A [`Case`] is
//! computed from a seed: transfers, and a [`Situation`] around each. [`run`] makes the transfers as a
//! device file says ([`Target`]), answers the reads of the device, and checks every TLP, every byte and
//! the end of every transfer. A broken rule is a [`Finding`]. [`campaign`] runs many seeds on all cores,
//! and shortens the first case of each broken rule.
//!
//! | module | contents |
//! | --- | --- |
//! | `situation` | the table of situations, and how often each was created |
//! | `rule` | the table of rules |
//! | `case` | a case from a seed |
//! | `case_file` | a case as a file, to run it again |
//! | `bench` | root complex and host memory, clock by clock |
//! | `partner` | root complex and host memory for a test bench of the user |
//! | `completer`, `twist` | completions, legal and illegal |
//! | `ledger` | credits |
//! | `stream` | TLPs as beats |
//! | `trial` | a run of a case |
//! | `shrink`, `campaign` | the shortest case; many seeds |
//!
//! Not implemented: replays and link retraining (they end below the stream of TLPs), I/O and atomic
//! requests, descriptor rings, several engines.
#![forbid(unsafe_code)]

mod bench;
mod campaign;
mod case;
mod case_file;
mod completer;
mod finding;
mod ledger;
mod partner;
mod rule;
mod shrink;
mod situation;
mod stream;
mod target;
mod trial;
mod twist;

pub use campaign::{Failure, Request, Summary, campaign};
pub use case::{Case, Step};
pub use case_file::CaseFile;
pub use finding::Finding;
pub use lanemark_devices::Direction;
pub use partner::{Partner, PartnerSettings};
pub use rule::{RULES, Rule, RuleRow};
pub use situation::{Coverage, SITUATIONS, Situation, SituationRow};
pub use target::{Target, TargetError};
pub use trial::{Outcome, run};
