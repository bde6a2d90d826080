//! Result data and its file formats.
//!
//! A [`Record`] holds one run: targets, questions, answers, and skipped cases with reasons. It is
//! plain data with units at the end of keys, written as JSON completely or not at all ([`file`]),
//! and described by a JSON Schema generated from these types ([`schema`]). A [`Capture`] holds the
//! TLPs that passed one point, in a file format that other tools read.
//!
//! Without the feature `files` there are the types of answers only, for programs without files.

#![forbid(unsafe_code)]

mod answer;
#[cfg(feature = "files")]
mod answers_file;
#[cfg(feature = "files")]
mod baselines;
#[cfg(feature = "files")]
mod capture;
mod card;
mod comparison;
pub mod corpus;
mod corrected;
mod delivery;
mod design;
mod detail;
pub mod diagnosis;
mod doubt;
mod dropped;
mod experiment;
#[cfg(feature = "files")]
pub mod file;
#[cfg(test)]
mod fixture;
pub mod fleet;
pub mod gate;
pub mod guidance;
mod host;
mod imported;
mod impossible;
mod interval;
mod link;
mod percentile;
mod record;
#[cfg(feature = "files")]
mod record_folder;
pub mod recovery;
pub mod reference;
mod repeated;
mod residual;
mod runtime;
#[cfg(feature = "files")]
mod samples_file;
mod summary;
#[cfg(feature = "files")]
mod sweep;
#[cfg(feature = "files")]
mod table;
mod tool;

pub use answer::{
    Answer, Bytes, Ceiling, CeilingKind, Formula, LineFit, PathPart, Quantity, RawSamples, Sensitivity, Steady, Tlps,
    Twin, WaitShare,
};
#[cfg(feature = "files")]
pub use answers_file::answers_table;
#[cfg(feature = "files")]
pub use baselines::{BaselineError, Baselines};
#[cfg(feature = "files")]
pub use capture::{Capture, CaptureError, Exchange, Exchanges, Passed, RequesterLatency, Unread};
pub use card::{Card, CardLink, CardMapping, CardPeer, CardRange};
pub use comparison::{Alone, Change, Comparison, Criteria, Pair, Side};
pub use corrected::CorrectedErrors;
pub use delivery::{Delivery, KnownBy};
pub use design::Design;
pub use detail::{BounceBuffer, Buffers, CallerCores, CorePair, CpuSamples, CurvePoint, Detail, FlowRate, Flows, Runs};
pub use doubt::{Doubt, DoubtKind, TwoHumps, doubts, drift, two_humps};
pub use dropped::{Dropped, DroppedSample};
pub use experiment::{Bound, Class, Here, Picture, PictureLine, Reproduction, Row, Verdict};
#[cfg(feature = "files")]
pub use file::{RecordError, read, write};
pub use host::{Governor, Host, IdleState, Load, SocketCpus};
pub use imported::{BytePath, ImportFinding, ImportFindingKind, Imported, ImportedFigure, LeftOut, Measured};
pub use interval::{Interval, LEAST_SAMPLES};
pub use lanemark_method::{CacheState, Method, Reach, Socket};
pub use link::{Direction, Link, LinkUse, ResourceUse};
pub use record::{Advice, Finding, Inherited, Origins, Record, SCHEMA, Skipped, Target, TargetKind, schema};
#[cfg(feature = "files")]
pub use record_folder::{check_folder, records_in, write_folder};
pub use repeated::Repeated;
pub use residual::Residual;
pub use runtime::{DeviceKind, Runtime, Software};
#[cfg(feature = "files")]
pub use samples_file::samples_table;
pub use summary::Summary;
#[cfg(feature = "files")]
pub use sweep::{
    SweepLog, SweepRow, SweepTable, SweepTableBuilder, SweptBy, is_sweep_log, read_sweep_log, sweep_log_schema,
};
#[cfg(feature = "files")]
pub use table::{Cell, Column, Table, Values};
pub use tool::Tool;
