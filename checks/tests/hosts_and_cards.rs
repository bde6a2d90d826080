//! Every built-in host with every built-in card answers questions, by simulation and by formula.

use lanemark_bench::{Axes, Effort};
use lanemark_platform::{CARDS, HOSTS, host_with_card};
use lanemark_record::Record;
use lanemark_runner::{Answerer, Cancel, Request, RunError, Target, question, run};

/// Cheap questions, and their sizes.
const QUESTIONS: [(&str, &[u64]); 3] =
    [("dma_read_bandwidth", &[4096]), ("dma_write_bandwidth", &[64, 4096]), ("mmio_read_latency", &[8])];

fn record(targets: &[Target], answerer: Answerer, asked: (&str, &[u64])) -> Result<Record, RunError> {
    let (name, sizes) = asked;
    let request = Request {
        targets: targets.to_vec(),
        questions: vec![question(name)?],
        axes: Axes { sizes: Some(sizes.to_vec()), ..Axes::default() },
        effort: Effort { simulated_passes: Some(3), ..Effort::default() },
        answerer,
        ..Request::default()
    };
    run(&request, &mut |_| {}, &Cancel::new())?.into_result()
}

#[test]
fn every_pair_answers_by_simulation_and_by_formula() {
    let pair = |host: &str, card: &str| -> Target { format!("{host}+{card}").parse().unwrap() };
    let pairs = || HOSTS.iter().flat_map(|host| CARDS.iter().map(move |card| (host.name, card.name)));
    let targets: Vec<Target> = pairs().map(|(host, card)| pair(host, card)).collect();
    assert!(targets.len() >= 25);
    for asked in QUESTIONS {
        for answerer in [Answerer::Machines, Answerer::Formulas] {
            let record = record(&targets, answerer, asked).unwrap_or_else(|error| panic!("{asked:?}: {error}"));
            for (host, card) in pairs() {
                let name = format!("{host}+{card}");
                let answers: Vec<_> = record.answers.iter().filter(|answer| answer.target == name).collect();
                assert!(!answers.is_empty(), "{name}: {asked:?} by {answerer:?}");
                for answer in answers {
                    let of_samples = [&answer.delivered_rate_bytes_per_s, &answer.latency_ns].into_iter().flatten();
                    let of_samples: Vec<f64> = of_samples.map(|summary| summary.median).collect();
                    let formula = answer.formula.as_ref().unwrap_or_else(|| panic!("{name}: {answer:?}"));
                    let of_formula = formula.delivered_rate_bytes_per_s.or(formula.latency_ns);
                    let is_simulated = answerer == Answerer::Machines;
                    assert_eq!(of_samples.iter().any(|figure| *figure > 0.0), is_simulated, "{name}: {answer:?}");
                    assert!(of_formula.is_some_and(|figure| figure > 0.0), "{name}: {answer:?}");
                    assert!(answer.share_of_ceiling_percent.is_none_or(|share| share <= 100.0), "{name}: {answer:?}");
                }
            }
        }
    }
}

#[test]
fn every_pair_trains_at_what_both_ends_support() {
    let own = |host: &str, card: &str| host_with_card(host, card).unwrap().complete().unwrap().link;
    // The fastest card shows what a host supports, the fastest host what a card supports.
    for host in HOSTS {
        for card in CARDS {
            let (link, of_host, of_card) =
                (own(host.name, card.name), own(host.name, "gpu-h100"), own("epyc-genoa", card.name));
            assert_eq!(link.generation.value, of_host.generation.value.min(of_card.generation.value));
            assert_eq!(link.width_lanes.value, of_host.width_lanes.value.min(of_card.width_lanes.value));
        }
    }
}

#[test]
fn what_is_not_verified_is_assumed_and_what_is_given_names_its_document() {
    for part in HOSTS.iter().chain(CARDS) {
        for line in part.text.lines().filter(|line| line.contains("source = ")) {
            assert!(!line.contains("not verified") && !line.contains("not found"), "{}: {line}", part.file);
            let (_, source) = line.split_once("source = \"").unwrap();
            assert!(source.len() > 20, "{}: {line}", part.file);
        }
    }
}
