//! The reach of translation caches in pages, and the cost of misses beyond it.

use lanemark_method::Method;
use lanemark_record::{Answer, Finding, Record, Summary, Target, TargetKind};
use lanemark_units::format_size;
use std::fmt::Write as _;

/// The question with the answers.
const QUESTION: &str = "iotlb_reach";
/// Smallest rise of latency that counts as a step, in percent of the latency before it.
const STEP_PERCENT: f64 = 2.0;
/// Smallest rise that counts as a step, in sums of the two median absolute deviations.
const MADS: f64 = 3.0;

/// Reports, for each target, length and stride of reads, the number of pages with hits and the
/// extra latency beyond. Emulated targets and groups with fewer than two windows are ignored.
pub(crate) fn reaches(record: &Record) -> Vec<Finding> {
    let is_emulated =
        |name: &str| record.targets.iter().any(|target| target.name == name && target.kind == TargetKind::Emulated);
    let asked = |answer: &&Answer| {
        answer.question == QUESTION && !is_emulated(&answer.target) && answer.method.reach().stride_bytes.is_some()
    };
    // Members of a group differ only by their window.
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

/// A step of latency: the last window before it, the first window after it, and its height.
struct Step {
    last_alike: u64,
    first_higher: u64,
    rise_ns: f64,
}

/// Finds steps. Consecutive rises are one step: if sets are filled unevenly, a step takes several
/// windows.
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

/// Bytes at a stride of `stride` whose pages fit into the device's translation cache. `None`
/// without such a cache, and for a target without a platform description.
fn kept_bytes(target: &Target, stride: u64) -> Option<u64> {
    let platform = target.platform.as_ref()?;
    let number = |key| platform.pointer(key)?.as_u64();
    let entries = number("/dma/ats_entries/value").filter(|entries| *entries > 0)?;
    Some(entries.saturating_mul(number("/iommu/page_bytes/value")?.max(stride)))
}

fn in_words(windows: &[(u64, Summary)], bytes: u64, stride: u64, kept_bytes: Option<u64>) -> Option<String> {
    let [(shortest, first), .., (longest, _)] = windows else { return None };
    let keeps = kept_bytes.is_some();
    // If the smallest window exceeds the device's cache, every window needs translation requests.
    let is_shown = kept_bytes.is_some_and(|kept| kept >= *shortest);
    let pages = |window: u64| {
        let count = window / stride.max(1);
        format!("{count} page{} ({})", if count == 1 { "" } else { "s" }, format_size(window))
    };
    let every = format!("{} read every {}", format_size(bytes), format_size(stride));
    let steps = steps(windows);
    let Some(step) = steps.first() else {
        return Some(format!(
            "{every}, {} take {:.0} ns, as few pages do: the IOTLB reaches further, or nothing is translated",
            pages(*longest),
            first.median
        ));
    };
    let (cache, why) = if is_shown {
        (
            "the translation cache of the device",
            "the time of a translation request, and of a page walk if the IOTLB misses",
        )
    } else if keeps {
        ("the IOTLB of the IOMMU", "the time of a page walk")
    } else {
        ("the IOTLB", "the time of a page walk")
    };
    let mut text = format!(
        "{every}, up to {} hit {cache}, {:.0} ns; from {} on a read takes {:.0} ns more, {why}",
        pages(step.last_alike),
        first.median,
        pages(step.first_higher),
        step.rise_ns,
    );
    for (nth, step) in steps.iter().enumerate().skip(1) {
        let (from, rise_ns) = (pages(step.first_higher), step.rise_ns);
        let why = if is_shown && nth == 1 {
            "page walks, or less of the page table is cached"
        } else {
            "less of the page table is cached"
        };
        // Writing to a string cannot fail.
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
    fn the_windows_before_and_after_a_step_are_named_with_its_height() {
        let found = texts(&[&[600.0], &[600.0], &[612.0], &[612.0], &[700.0], &[700.0]]);
        assert_eq!(found.len(), 1);
        let text = &found[0];
        assert!(
            text.contains("up to 8 pages (32KiB) hit") && text.contains("600 ns; from 16 pages (64KiB) on"),
            "{text}"
        );
        assert!(text.contains("takes 88 ns more"), "12 ns are 2 % and no step: {text}");
    }

    #[test]
    fn consecutive_rises_are_one_step_and_a_level_separates_steps() {
        let found = texts(&[&[600.0], &[640.0], &[680.0], &[680.0], &[920.0]]);
        assert!(
            found[0].contains("up to 1 page (4KiB)")
                && found[0].contains("from 4 pages (16KiB) on a read takes 80 ns more")
        );
        assert!(
            found[0].ends_with("from 16 pages (64KiB) on another 240 ns: less of the page table is cached"),
            "{found:?}"
        );
    }

    #[test]
    fn the_device_cache_is_named_and_the_iotlb_is_another_step() {
        let levels: [&[f64]; 6] = [&[600.0], &[600.0], &[960.0], &[960.0], &[1040.0], &[1040.0]];
        let mut record = of_levels(&levels);
        let preset = lanemark_platform::preset("card-gen5-x16-iommu").unwrap().unwrap();
        for (entries, has_ats) in [("0", false), ("2", true)] {
            let origin = Origin::Assumed("a test".to_owned());
            let platform = Some(preset.with_text("dma.ats_entries", entries, origin).unwrap().to_json());
            record.targets = vec![Target { platform, ..target(TargetKind::Simulated) }];
            let text = &reaches(&record)[0].text;
            assert_eq!(
                text.contains("up to 2 pages (8KiB) hit the translation cache of the device"),
                has_ats,
                "{text}"
            );
            assert_eq!(
                text.contains("on a read takes 360 ns more, the time of a translation request"),
                has_ats,
                "{text}"
            );
            assert!(text.contains("from 16 pages (64KiB) on another 80 ns"), "{text}");
            assert_eq!(text.contains("page walks, or"), has_ats, "{text}");
        }
    }

    #[test]
    fn a_device_cache_below_the_smallest_window_is_not_named() {
        let mut record = of_levels(&[&[600.0], &[600.0], &[680.0], &[680.0]]);
        record.answers.retain(|answer| answer.method.reach().window_bytes != Some(4096));
        let preset = lanemark_platform::preset("card-gen5-x16-iommu").unwrap().unwrap();
        for (entries, is_shown) in [("1", false), ("2", true)] {
            let origin = Origin::Assumed("a test".to_owned());
            let platform = Some(preset.with_text("dma.ats_entries", entries, origin).unwrap().to_json());
            record.targets = vec![Target { platform, ..target(TargetKind::Simulated) }];
            let text = &reaches(&record)[0].text;
            assert_eq!(
                text.contains("up to 2 pages (8KiB) hit the translation cache of the device"),
                is_shown,
                "{text}"
            );
            assert_eq!(text.contains("up to 2 pages (8KiB) hit the IOTLB of the IOMMU"), !is_shown, "{text}");
            assert_eq!(text.contains("takes 80 ns more, the time of a page walk"), !is_shown, "{text}");
        }
    }

    #[test]
    fn a_rise_within_the_spread_is_no_step() {
        let noisy = |at: f64| [at - 10.0, at, at + 10.0];
        let (low, high) = (noisy(600.0), noisy(659.0));
        assert!(texts(&[&low, &high])[0].contains("reaches further, or nothing is translated"));
        let higher = noisy(661.0);
        assert!(texts(&[&low, &higher])[0].contains("takes 61 ns more"));
    }

    #[test]
    fn each_length_of_reads_has_its_own_finding() {
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
    fn one_window_or_an_emulated_target_gives_no_finding() {
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
