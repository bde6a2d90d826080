//! The corpus: machines of reference records in compact form, and the neighbours of a record among them.
//!
//! A machine of the corpus has one median time per case and the described facts, no samples. So the corpus is small enough
//! to be part of the program; the records themselves are in `records/`.

use crate::{Answer, Method, Quantity, Record, Summary, Target, TargetKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the compact form that this code reads and writes.
pub const SCHEMA: u32 = 1;

/// Machines to which a record can be compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Corpus {
    /// Version of this format.
    pub schema: u32,
    /// The machines, in the order of their files.
    pub machines: Vec<CorpusMachine>,
}

/// A target of a reference record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CorpusMachine {
    /// File of the record, without its folder.
    pub file: String,
    /// Name of the target in the record.
    pub target: String,
    /// Summary of the target in one line.
    pub summary: String,
    /// Kind of its answers.
    pub kind: TargetKind,
    /// Time of writing, in seconds since 1970-01-01 UTC; absent for simulations.
    pub written_unix_s: Option<u64>,
    /// Described facts.
    pub facts: MachineFacts,
    /// The cases with a time.
    pub cases: Vec<TimedCase>,
}

/// Facts of a machine that explain its times; absent if the record does not have them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MachineFacts {
    /// Generation of the card's link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
    /// Width of the card's link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width_lanes: Option<u32>,
    /// `Max_Payload_Size`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mps_bytes: Option<u32>,
    /// `Max_Read_Request_Size`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mrrs_bytes: Option<u32>,
    /// The processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The card or device; of a simulation, the platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<String>,
}

/// A case and its median time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimedCase {
    /// The question.
    pub question: String,
    /// The method.
    pub method: Method,
    /// The cores; empty if it is not about particular cores.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<u32>,
    /// Size.
    pub size_bytes: u64,
    /// Offset from a 64 B boundary.
    pub alignment_bytes: u64,
    /// Quantity of the answer.
    pub quantity: Quantity,
    /// Median of the samples, per iteration or access.
    pub median_ns: f64,
}

impl TimedCase {
    /// The case of an answer; `None` without samples, or if their median is not above 0.
    #[must_use]
    pub fn of(answer: &Answer) -> Option<TimedCase> {
        let median_ns = Summary::of(&answer.samples_ns)?.median;
        (median_ns > 0.0 && median_ns.is_finite()).then(|| TimedCase {
            question: answer.question.clone(),
            method: answer.method.clone(),
            cores: answer.cores(),
            size_bytes: answer.size_bytes,
            alignment_bytes: answer.alignment_bytes,
            quantity: answer.quantity,
            median_ns,
        })
    }

    /// Whether both are the same case: question, method, cores, size, alignment and quantity.
    #[must_use]
    pub fn is_same_case(&self, other: &TimedCase) -> bool {
        let TimedCase { question, method, cores, size_bytes, alignment_bytes, quantity, median_ns: _ } = self;
        *question == other.question
            && *size_bytes == other.size_bytes
            && *alignment_bytes == other.alignment_bytes
            && *quantity == other.quantity
            && *cores == other.cores
            && *method == other.method
    }
}

impl Corpus {
    /// The compact form of records with their file names. Targets without times are left out.
    #[must_use]
    pub fn of_records<'a>(records: impl IntoIterator<Item = (&'a str, &'a Record)>) -> Corpus {
        let mut machines = Vec::new();
        for (file, record) in records {
            let of_target = record.targets.iter().map(|target| CorpusMachine::of(file, record, target));
            machines.extend(of_target.filter(|machine| !machine.cases.is_empty()));
        }
        Corpus { schema: SCHEMA, machines }
    }

    /// The compact form as JSON text with one line per machine and case, and a final newline.
    #[must_use]
    pub fn to_text(&self) -> String {
        let line = |value: serde_json::Value| value.to_string();
        let mut machines = Vec::new();
        for machine in &self.machines {
            let mut head = serde_json::to_value(CorpusMachine { cases: Vec::new(), ..machine.clone() });
            if let Ok(serde_json::Value::Object(members)) = &mut head {
                members.remove("cases");
            }
            let head = head.map(line).unwrap_or_default();
            let cases: Vec<String> = machine.cases.iter().filter_map(|case| serde_json::to_string(case).ok()).collect();
            let head = head.strip_suffix('}').unwrap_or(&head);
            machines.push(format!("{head}, \"cases\": [\n{}\n]}}", cases.join(",\n")));
        }
        format!("{{\"schema\": {}, \"machines\": [\n{}\n]}}\n", self.schema, machines.join(",\n"))
    }

    /// Reads the compact form.
    ///
    /// # Errors
    /// The position and the problem, or the version that this program does not read.
    pub fn from_text(text: &str) -> Result<Corpus, String> {
        let corpus: Corpus = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if corpus.schema == SCHEMA {
            Ok(corpus)
        } else {
            Err(format!("the corpus has schema {}, and this program reads {SCHEMA}", corpus.schema))
        }
    }
}

impl CorpusMachine {
    /// The compact form of one target of a record.
    #[must_use]
    pub fn of(file: &str, record: &Record, target: &Target) -> CorpusMachine {
        let of_target = record.answers.iter().filter(|answer| answer.target == target.name);
        CorpusMachine {
            file: file.to_owned(),
            target: target.name.clone(),
            summary: target.summary.clone(),
            kind: target.kind,
            written_unix_s: record.written_unix_s.filter(|_| target.kind != TargetKind::Simulated),
            facts: MachineFacts::of(record, target),
            cases: of_target.filter_map(TimedCase::of).collect(),
        }
    }
}

impl MachineFacts {
    /// The facts of a target: from its platform, its links, its card, or the sentences of its ceilings.
    #[must_use]
    pub fn of(record: &Record, target: &Target) -> MachineFacts {
        let mut facts = MachineFacts::default();
        if let Some(platform) = &target.platform {
            let number = |pointer: &str| platform.pointer(pointer).and_then(serde_json::Value::as_u64);
            let link = |key: &str| number(&format!("/link/{key}/value")).and_then(|value| u32::try_from(value).ok());
            facts.generation = link("generation");
            facts.width_lanes = link("width_lanes");
            facts.mps_bytes = link("mps_bytes");
            facts.mrrs_bytes = link("mrrs_bytes");
            let text = |pointer: &str| platform.pointer(pointer).and_then(serde_json::Value::as_str).map(str::to_owned);
            facts.host = text("/core/name");
            facts.card = text("/name");
            return facts;
        }
        // Links of switches come first, so that the last one is that of the card.
        if let Some(link) = target.links.last() {
            (facts.generation, facts.width_lanes) = (Some(link.generation), Some(link.width_lanes));
        }
        if let Some(link) = target.card.as_ref().and_then(|card| card.links.first()) {
            facts.generation = Some(u32::from(link.generation));
            facts.width_lanes = Some(u32::from(link.width_lanes));
        }
        let of_target = record.answers.iter().filter(|answer| answer.target == target.name);
        for because in of_target.map(|answer| answer.ceiling.because.as_str()) {
            let Some((generation, width_lanes, payload)) = link_of_ceiling(because) else { continue };
            facts.generation.get_or_insert(generation);
            facts.width_lanes.get_or_insert(width_lanes);
            // Small transfers have smaller payloads.
            facts.mps_bytes = facts.mps_bytes.max(payload);
        }
        facts.host = record.host.as_ref().and_then(|host| host.processor.value().cloned());
        let device = target.runtime.as_ref().and_then(|runtime| runtime.software.as_ref());
        let card = device.map(|software| software.device_name.clone());
        facts.card = card.or_else(|| target.card.as_ref().map(|card| card.id.clone()));
        facts
    }
}

/// Generation, width and payload of a ceiling's sentence: `Gen5 x16, payloads of 256 B; ...`. `None` for other sentences.
fn link_of_ceiling(because: &str) -> Option<(u32, u32, Option<u32>)> {
    let rest = because.strip_prefix("Gen")?;
    let (generation, rest) = rest.split_once(" x")?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let payload = rest.split_once("payloads of ").and_then(|(_, rest)| rest.split_once(" B")?.0.parse().ok());
    Some((generation.parse().ok()?, rest[..end].parse().ok()?, payload))
}

/// The neighbours of every target of a record, among the machines of a corpus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Neighbourhood {
    /// Number of machines of the corpus.
    pub machines: u64,
    /// Least number of common cases of a neighbour.
    pub least_cases: u64,
    /// The targets, in the order of the record.
    pub targets: Vec<TargetNeighbours>,
}

/// A target of a record, and the machines of the corpus by their distance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetNeighbours {
    /// Name of the target.
    pub target: String,
    /// Kind of its answers.
    pub kind: TargetKind,
    /// Its described facts.
    pub facts: MachineFacts,
    /// Number of its cases with a time.
    pub cases: u64,
    /// Files of the corpus that are this record itself; they are no neighbours.
    pub itself: Vec<String>,
    /// Neighbours of the same kind, nearest first; then measured ones, then simulated ones, nearest first.
    pub neighbours: Vec<Neighbour>,
    /// Machines with some common cases, and too few for a distance.
    pub too_few: Vec<TooFew>,
    /// Differences from the first neighbour; absent without one.
    pub differences: Option<Differences>,
}

/// A machine of the corpus, and its distance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Neighbour {
    /// File of its record.
    pub file: String,
    /// Name of its target.
    pub target: String,
    /// Summary of its target.
    pub summary: String,
    /// Kind of its answers.
    pub kind: TargetKind,
    /// Number of common cases.
    pub cases: u64,
    /// Number of questions of the common cases.
    pub questions: u64,
    /// Typical factor between the times of both, at least 1: the median of a question's cases, and the geometric mean of
    /// all questions.
    pub distance: f64,
    /// Median over the common cases of the record's time over that of the machine.
    pub ratio_median: f64,
    /// First quartile of these ratios.
    pub ratio_low: f64,
    /// Third quartile of these ratios.
    pub ratio_high: f64,
}

/// A machine with too few common cases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TooFew {
    /// File of its record.
    pub file: String,
    /// Kind of its answers.
    pub kind: TargetKind,
    /// Number of common cases.
    pub cases: u64,
    /// Number of common cases that were needed.
    pub needed: u64,
}

/// Differences between a record and its nearest machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Differences {
    /// File of the nearest machine.
    pub file: String,
    /// Differences by question, the largest first.
    pub questions: Vec<QuestionDifference>,
    /// Described facts that differ, or that only one side has.
    pub facts: Vec<FactDifference>,
}

/// Differences of the answers to one question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuestionDifference {
    /// The question.
    pub question: String,
    /// Number of common cases.
    pub cases: u64,
    /// Median of the record's time over that of the machine.
    pub ratio_median: f64,
    /// Smallest of these ratios.
    pub ratio_min: f64,
    /// Largest of these ratios.
    pub ratio_max: f64,
    /// The case whose ratio is farthest from 1.
    pub farthest: TimedCase,
    /// The time of that case on the nearest machine.
    pub farthest_there_ns: f64,
}

/// A described fact that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FactDifference {
    /// Name of the fact.
    pub name: String,
    /// The record's; absent if unknown.
    pub here: Option<String>,
    /// That of the nearest machine; absent if unknown.
    pub there: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{answer, target};
    use crate::{Ceiling, CeilingKind, Link};

    fn timed(access: &str, samples_ns: &[f64]) -> Answer {
        Answer { samples_ns: samples_ns.to_vec(), ..answer(access, 64, Some(1e9)) }
    }

    fn record(answers: Vec<Answer>) -> Record {
        let mut record = crate::fixture::record(answers);
        record.targets.push(target(TargetKind::Real));
        record
    }

    #[test]
    fn the_compact_form_has_the_median_of_each_case_and_reads_back() {
        let record = record(vec![timed("8", &[3.0, 1.0, 2.0]), timed("4", &[]), timed("2", &[-1.0])]);
        let corpus = Corpus::of_records([("r.json", &record)]);
        let [machine] = corpus.machines.as_slice() else { panic!("{corpus:?}") };
        assert_eq!((machine.file.as_str(), machine.cases.len(), machine.cases[0].median_ns), ("r.json", 1, 2.0));
        let text = corpus.to_text();
        assert_eq!(Corpus::from_text(&text).unwrap(), corpus);
        assert_eq!(text.lines().count(), 5, "a line for the case: {text}");
        let newer = text.replace("\"schema\": 1", "\"schema\": 2");
        assert!(Corpus::from_text(&newer).unwrap_err().contains("schema 2"));
    }

    #[test]
    fn a_target_without_times_is_no_machine() {
        assert_eq!(Corpus::of_records([("r.json", &record(vec![timed("8", &[])]))]).machines, []);
    }

    #[test]
    fn the_link_of_a_ceiling_is_read_from_its_sentence() {
        let read = link_of_ceiling("Gen5 x16, payloads of 256 B; the slowest link on the path");
        assert_eq!(read, Some((5, 16, Some(256))));
        assert_eq!(link_of_ceiling("Gen3 x8, MWr of 128 B upstream"), Some((3, 8, None)));
        for other in ["latencies have no ceiling", "General", "Genx x16", "Gen5 x, 1"] {
            assert_eq!(link_of_ceiling(other), None, "{other}");
        }
    }

    #[test]
    fn facts_are_taken_from_links_and_the_largest_payload() {
        let with = |because: &str| Answer {
            ceiling: Ceiling { kind: CeilingKind::Computed, rate_bytes_per_s: Some(1e9), because: because.to_owned() },
            ..timed("8", &[1.0])
        };
        let mut record = record(vec![with("Gen5 x16, payloads of 64 B"), with("Gen5 x16, payloads of 256 B")]);
        let facts = MachineFacts::of(&record, &record.targets[0]);
        assert_eq!((facts.generation, facts.width_lanes, facts.mps_bytes), (Some(5), Some(16), Some(256)));
        assert_eq!((facts.mrrs_bytes, facts.host, facts.card), (None, None, None));
        let link = Link { name: "card".to_owned(), above: "root".to_owned(), generation: 3, width_lanes: 4 };
        record.targets[0].links.push(link);
        let facts = MachineFacts::of(&record, &record.targets[0]);
        assert_eq!((facts.generation, facts.width_lanes), (Some(3), Some(4)), "what the record states comes first");
    }
}
