//! Imported figures as a record: answers where a question has them, and all figures with their provenance.

use lanemark_method::{Flow, Method, Peer, Reach, Verb};
use lanemark_record::{
    Answer, BytePath, Ceiling, CeilingKind, Finding, Imported, ImportedFigure, Quantity, Record, Summary, Target,
    TargetKind,
};
use std::collections::BTreeMap;

/// A record of imported figures. A figure of DMA with a size is also an answer, so that it can be shown and compared; the
/// others are in [`Record::imported`] only. `written_unix_s` stays unknown, because no tool says when it measured.
#[must_use]
pub fn record(imported: Imported, command: Vec<String>) -> Record {
    let mut record = Record::new(command);
    let unnamed = imported.tool.clone();
    for figure in &imported.figures {
        let Some(answer) = answer(figure, &unnamed) else { continue };
        if !record.targets.iter().any(|target| target.name == answer.target) {
            record.targets.push(target(&answer.target, &imported));
        }
        record.answers.push(answer);
    }
    record.findings.extend(imported.findings.iter().map(|finding| Finding {
        question: finding.test.clone(),
        target: unnamed.clone(),
        text: format!("{}; {}", finding.text, finding.try_this),
    }));
    record.warnings.push(format!(
        "imported from the output of {}: one number per figure, without samples; unknown: {}",
        imported.tool,
        imported.unknown.join("; ")
    ));
    record.imported = Some(imported);
    record
}

fn target(name: &str, imported: &Imported) -> Target {
    let version = imported.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    Target {
        name: name.to_owned(),
        summary: format!("figures of {}{version}", imported.tool),
        kind: TargetKind::Imported,
        memcpy: String::new(),
        platform: None,
        origins: None,
        card: None,
        links: Vec::new(),
        runtime: None,
        design: None,
    }
}

/// The answer of a figure; `None` if no question has it, or if its size is unknown.
fn answer(figure: &ImportedFigure, unnamed: &str) -> Option<Answer> {
    let flow = |verb| Flow { card: 0, verb, peer: Peer::Host };
    let (question, flows) = match figure.path {
        // Other devices move bytes at the same time: no question about one card has that.
        _ if figure.is_concurrent => return None,
        BytePath::ToDevice => ("dma_read_bandwidth", vec![flow(Verb::Load)]),
        BytePath::FromDevice => ("dma_write_bandwidth", vec![flow(Verb::Store)]),
        BytePath::Both => ("dma_read_write_mix", vec![flow(Verb::Store), flow(Verb::Load)]),
        _ => return None,
    };
    let (rate, size_bytes) = (figure.value.rate()?, figure.size_bytes.filter(|bytes| *bytes > 0)?);
    let mut answer = Answer {
        question: question.to_owned(),
        target: figure.device.clone().unwrap_or_else(|| unnamed.to_owned()),
        method: Method::Dma { flows, outstanding: figure.outstanding, reach: Reach::default() },
        varied: BTreeMap::new(),
        size_bytes,
        alignment_bytes: 0,
        quantity: Quantity::Bandwidth,
        latency_ns: None,
        issue_rate_bytes_per_s: None,
        delivered_rate_bytes_per_s: Summary::of(&[rate]),
        ceiling: unknown(),
        share_of_ceiling_percent: None,
        waits: Vec::new(),
        critical_path: Vec::new(),
        sensitivities: Vec::new(),
        formula: None,
        twin: None,
        tlps: None,
        links: Vec::new(),
        resources: Vec::new(),
        corrected: Vec::new(),
        delivery: None,
        bytes: None,
        timer_cost_ns: 0.0,
        passes: 1,
        samples_ns: vec![size_bytes as f64 * 1e9 / rate],
        raw: Vec::new(),
        dropped: None,
        doubts: Vec::new(),
        steady: None,
        fit: None,
        detail: None,
    };
    if let Some(limit) = figure.limit_bytes_per_s {
        let because = "the link that was given for the imported figures".to_owned();
        let kind = CeilingKind::Computed;
        answer.set_ceiling(Ceiling { kind, rate_bytes_per_s: Some(limit), because });
    }
    Some(answer)
}

fn unknown() -> Ceiling {
    let because = "the tool does not say the link: name it with --on".to_owned();
    Ceiling { kind: CeilingKind::Unknown, rate_bytes_per_s: None, because }
}
