//! How many pages an IOTLB reaches, and what is behind its reach.

use lanemark_method::Method;
use lanemark_record::{Answer, Finding, Record, Summary, Target, TargetKind};
use lanemark_units::format_size;
use std::fmt::Write as _;

/// The question whose answers show it.
const QUESTION: &str = "iotlb_reach";
/// A latency that is more than this above the one before is a step, in percent, unless the two scatter more than that.
const STEP_PERCENT: f64 = 2.0;
/// How many times the median distances of both from their medians it must be above them.
const MADS: f64 = 3.0;

/// For each target, length and distance of reads: up to how many pages a device waits alike, and how much longer beyond. Of an emulated
/// target nothing is said, and of fewer than two windows neither.
pub(crate) fn reaches(record: &Record) -> Vec<Finding> {
    let is_emulated =
        |name: &str| record.targets.iter().any(|target| target.name == name && target.kind == TargetKind::Emulated);
    let asked = |answer: &&Answer| {
        answer.question == QUESTION && !is_emulated(&answer.target) && answer.method.reach().stride_bytes.is_some()
    };
    // What differs by the window alone, as it was asked.
    let alike = |one: &Answer, other: &Answer| {
        anywhere(one) == anywhere(other)
            && (&one.target, one.size_bytes, one.alignment_bytes)
                == (&other.target, other.size_bytes, other.alignment_bytes)
    };
    let mut groups: Vec<Vec<&Answer>> = Vec::new();
    for answer in record.answers.iter().filter(asked) {
        match groups.iter_mut().find(|group| group.first().is_some_and(|first| alike(first, answer))) {
            Some(group) => group.push(answer),
            None => groups.push(vec![answer]),
        }
    }
    let found = groups.iter().filter_map(|group| {
        let first = group.first()?;
        let mut windows: Vec<(u64, Summary)> =
            group.iter().filter_map(|answer| Some((answer.method.reach().window_bytes?, answer.latency_ns?))).collect();
        windows.sort_by_key(|window| window.0);
        let target = record.targets.iter().find(|target| target.name == first.target);
        let stride = first.method.reach().stride_bytes?;
        let kept_bytes = target.and_then(|target| kept_bytes(target, stride));
        let text = in_words(&windows, first.size_bytes, stride, kept_bytes)?;
        Some(Finding { question: QUESTION.to_owned(), target: first.target.clone(), text })
    });
    found.collect()
}

/// The method of an answer without its window.
fn anywhere(answer: &Answer) -> Method {
    let mut method = answer.method.clone();
    if let Some(reach) = method.reach_mut() {
        reach.window_bytes = None;
    }
    method
}

/// Where latency leaves one level, where it has reached the next, and how much higher that is.
struct Step {
    last_alike: u64,
    first_higher: u64,
    rise_ns: f64,
}

/// Rises behind each other are one step: where sets are not filled evenly, it takes several windows.
fn steps(windows: &[(u64, Summary)]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut is_rising = false;
    for pair in windows.windows(2) {
        let [(before, low), (after, high)] = pair else { continue };
        let rise_ns = high.median - low.median;
        let rises = rise_ns > low.median * STEP_PERCENT / 100.0 && rise_ns > MADS * (low.mad + high.mad);
        match steps.last_mut().filter(|_| is_rising) {
            Some(step) if rises => {
                step.rise_ns += rise_ns;
                step.first_higher = *after;
            }
            _ if rises => steps.push(Step { last_alike: *before, first_higher: *after, rise_ns }),
            _ => {}
        }
        is_rising = rises;
    }
    steps
}

/// Up to which window, of which something is read every `stride`, devices of this target know all pages themselves; `None` if they
/// keep none, and of a machine that is not described, of which nobody knows.
fn kept_bytes(target: &Target, stride: u64) -> Option<u64> {
    let platform = target.platform.as_ref()?;
    let number = |key| platform.pointer(key)?.as_u64();
    let entries = number("/dma/ats_entries/value").filter(|entries| *entries > 0)?;
    Some(entries.saturating_mul(number("/iommu/page_bytes/value")?.max(stride)))
}

fn in_words(windows: &[(u64, Summary)], bytes: u64, stride: u64, kept_bytes: Option<u64>) -> Option<String> {
    let [(shortest, first), .., (longest, _)] = windows else { return None };
    let keeps = kept_bytes.is_some();
    // Where not all pages of the smallest window are kept, each is asked for from the beginning on.
    let is_shown = kept_bytes.is_some_and(|kept| kept >= *shortest);
    let pages = |window: u64| {
        let count = window / stride.max(1);
        format!("{count} page{} ({})", if count == 1 { "" } else { "s" }, format_size(window))
    };
    let every = format!("{} read every {}", format_size(bytes), format_size(stride));
    let steps = steps(windows);
    let Some(step) = steps.first() else {
        return Some(format!(
            "{every}, {} take {:.0} ns as few do: what translates reaches further, or nothing is translated",
            pages(*longest),
            first.median
        ));
    };
    let (by, why) = if is_shown {
        (" by the device", "what asking the IOMMU takes, and a walk if that knows no more")
    } else if keeps {
        (" by the IOMMU", "what a walk takes that is waited for")
    } else {
        ("", "what a walk takes that is waited for")
    };
    let mut text = format!(
        "{every}, up to {} are translated at hand{by}, {:.0} ns; from {} on a read takes {:.0} ns more, {why}",
        pages(step.last_alike),
        first.median,
        pages(step.first_higher),
        step.rise_ns,
    );
    for (nth, step) in steps.iter().enumerate().skip(1) {
        let (from, rise_ns) = (pages(step.first_higher), step.rise_ns);
        let why = if is_shown && nth == 1 {
            "the IOMMU has to walk, or less of its table is at hand"
        } else {
            "less of the table is at hand"
        };
        // Writing to a string does not fail.
        let _ = write!(text, "; from {from} on another {rise_ns:.0} ns: {why}");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{answer, dma, record, target};
    use lanemark_platform::Origin;
    use lanemark_record::{Quantity, Reach};

    fn texts(levels: &[&[f64]]) -> Vec<String> {
        reaches(&of_levels(levels)).into_iter().map(|finding| finding.text).collect()
    }

    /// Answers over 1, 2, 4, ... pages.
    fn of_levels(levels: &[&[f64]]) -> Record {
        let answers = levels.iter().enumerate().map(|(place, samples)| {
            let mut answer = answer("8", 64, None);
            QUESTION.clone_into(&mut answer.question);
            let window_bytes = Some(4096 << place);
            answer.method = dma(Reach { window_bytes, stride_bytes: Some(4096), ..Reach::default() });
            (answer.quantity, answer.latency_ns) = (Quantity::RoundTripLatency, Summary::of(samples));
            answer
        });
        record(answers.collect())
    }

    #[test]
    fn the_last_window_that_is_alike_and_the_first_that_is_not_are_named_with_what_lies_between() {
        let found = texts(&[&[600.0], &[600.0], &[612.0], &[612.0], &[700.0], &[700.0]]);
        assert_eq!(found.len(), 1);
        let text = &found[0];
        assert!(
            text.contains("up to 8 pages (32KiB) are") && text.contains("600 ns; from 16 pages (64KiB) on"),
            "{text}"
        );
        assert!(text.contains("takes 88 ns more"), "12 ns are 2 % and no step: {text}");
    }

    #[test]
    fn rises_behind_each_other_are_one_step_and_after_a_level_another() {
        let found = texts(&[&[600.0], &[640.0], &[680.0], &[680.0], &[920.0]]);
        assert!(
            found[0].contains("up to 1 page (4KiB)")
                && found[0].contains("from 4 pages (16KiB) on a read takes 80 ns more")
        );
        assert!(
            found[0].ends_with("from 16 pages (64KiB) on another 240 ns: less of the table is at hand"),
            "{found:?}"
        );
    }

    #[test]
    fn where_the_device_keeps_translations_it_is_named_and_what_is_behind_it_is_another_step() {
        let levels: [&[f64]; 6] = [&[600.0], &[600.0], &[960.0], &[960.0], &[1040.0], &[1040.0]];
        let mut record = of_levels(&levels);
        let preset = lanemark_platform::preset("card-gen5-x16-iommu").unwrap().unwrap();
        for (entries, has_ats) in [("0", false), ("2", true)] {
            let origin = Origin::Assumed("a test".to_owned());
            let platform = Some(preset.with_text("dma.ats_entries", entries, origin).unwrap().to_json());
            record.targets = vec![Target { platform, ..target(TargetKind::Simulated) }];
            let text = &reaches(&record)[0].text;
            assert_eq!(text.contains("up to 2 pages (8KiB) are translated at hand by the device"), has_ats, "{text}");
            assert_eq!(text.contains("on a read takes 360 ns more, what asking the IOMMU takes"), has_ats, "{text}");
            assert!(text.contains("from 16 pages (64KiB) on another 80 ns"), "{text}");
            assert_eq!(text.contains("the IOMMU has to walk"), has_ats, "{text}");
        }
    }

    #[test]
    fn where_the_device_keeps_fewer_than_the_smallest_window_has_only_the_iommu_is_named() {
        let mut record = of_levels(&[&[600.0], &[600.0], &[680.0], &[680.0]]);
        record.answers.retain(|answer| answer.method.reach().window_bytes != Some(4096));
        let preset = lanemark_platform::preset("card-gen5-x16-iommu").unwrap().unwrap();
        for (entries, is_shown) in [("1", false), ("2", true)] {
            let origin = Origin::Assumed("a test".to_owned());
            let platform = Some(preset.with_text("dma.ats_entries", entries, origin).unwrap().to_json());
            record.targets = vec![Target { platform, ..target(TargetKind::Simulated) }];
            let text = &reaches(&record)[0].text;
            assert_eq!(text.contains("up to 2 pages (8KiB) are translated at hand by the device"), is_shown, "{text}");
            assert_eq!(text.contains("up to 2 pages (8KiB) are translated at hand by the IOMMU"), !is_shown, "{text}");
            assert_eq!(text.contains("takes 80 ns more, what a walk takes"), !is_shown, "{text}");
        }
    }

    #[test]
    fn what_scatters_as_much_as_it_rises_is_no_step() {
        let noisy = |at: f64| [at - 10.0, at, at + 10.0];
        let (low, high) = (noisy(600.0), noisy(659.0));
        assert!(texts(&[&low, &high])[0].contains("reaches further, or nothing is translated"));
        let higher = noisy(661.0);
        assert!(texts(&[&low, &higher])[0].contains("takes 61 ns more"));
    }

    #[test]
    fn reads_of_another_length_are_another_finding() {
        let of = |bytes: u64, window: u64, ns: f64| {
            let mut answer = answer("8", bytes, None);
            QUESTION.clone_into(&mut answer.question);
            answer.method = dma(Reach { window_bytes: Some(window), stride_bytes: Some(4096), ..Reach::default() });
            answer.latency_ns = Summary::of(&[ns]);
            answer
        };
        let answers = [4096, 8192].map(|window| [of(64, window, 600.0), of(4096, window, 680.0)]);
        let found = reaches(&record(answers.concat()));
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|finding| finding.text.contains("reaches further")), "{found:?}");
    }

    #[test]
    fn of_one_window_and_of_an_emulated_target_nothing_is_said() {
        assert!(texts(&[&[600.0]]).is_empty());
        let mut answers = Vec::new();
        for window in [4096, 8192] {
            let mut answer = answer("8", 64, None);
            QUESTION.clone_into(&mut answer.question);
            answer.method = dma(Reach { window_bytes: Some(window), stride_bytes: Some(4096), ..Reach::default() });
            answer.latency_ns = Summary::of(&[600.0 + window as f64]);
            answers.push(answer);
        }
        let mut record = record(answers);
        assert_eq!(reaches(&record).len(), 1);
        record.targets = vec![target(TargetKind::Emulated)];
        assert!(reaches(&record).is_empty());
    }
}
