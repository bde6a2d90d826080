//! Recovery of the structure of drawn cards: mechanisms of which the platform file says nothing.

mod drawn;

use drawn::{Curve, Draw, LATENCIES, figures, measured, unknown};
use lanemark_fit::{Contender, FillOptions, Filled, Measured, Reopened, Table, Verdict, fill_in};
use lanemark_platform::{Draft, Origin, Platform};
use lanemark_sim::SimulatedMachine;

/// Measured sizes of a direction.
const SIZES: [u64; 11] = [64, 128, 192, 256, 320, 512, 768, 1 << 10, 1 << 12, 1 << 14, 1 << 17];

/// Sizes that are predicted, without noise, and never measured.
const OTHER_SIZES: [u64; 8] = [96, 160, 384, 448, 640, 1536, 3 << 10, 1 << 16];

const DIRECTIONS: [&str; 2] = ["dma_read_bandwidth", "dma_write_bandwidth"];

const CURVES: [Curve<'_>; 3] = [LATENCIES, (DIRECTIONS[0], &SIZES), (DIRECTIONS[1], &SIZES)];

/// Seed of the draw.
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

/// Numbers that the file marks unknown, with the bounds of the draw.
const UNKNOWN: [(&str, f64, f64); 5] = [
    ("memory.read_ns", 300.0, 900.0),
    ("dma.tags", 24.0, 64.0),
    ("dma.beat_ns", 2.0, 5.0),
    ("dma.write_request_ns", 4.0, 20.0),
    ("dma.descriptor_ns", 5.0, 40.0),
];

fn one_of(draw: &mut Draw, these: &[f64]) -> f64 {
    these[(draw.share() * these.len() as f64) as usize]
}

type Hidden = Vec<(&'static str, f64)>;

/// A structure that the file does not state.
fn hidden(draw: &mut Draw) -> Hidden {
    match (draw.share() * 8.0) as u32 {
        0 => vec![
            ("dma_read.chunk_bytes", one_of(draw, &[64.0, 128.0, 256.0])),
            ("dma_read.chunk_ns", draw.between(8.0, 30.0)),
        ],
        1 => vec![
            ("dma_write.chunk_bytes", one_of(draw, &[64.0, 128.0])),
            ("dma_write.chunk_ns", draw.between(8.0, 30.0)),
        ],
        2 => vec![("memory.completion_bytes", one_of(draw, &[64.0, 128.0]))],
        3 => vec![("dma.write_bytes", one_of(draw, &[64.0, 128.0]))],
        4 => vec![("dma.read_bytes", one_of(draw, &[128.0, 256.0]))],
        5 => vec![
            ("dma_write.segment_bytes", one_of(draw, &[1024.0, 4096.0])),
            ("dma_write.segment_link_ns", draw.between(60.0, 200.0)),
        ],
        6 => vec![("dma.read_request_ns", draw.between(15.0, 50.0))],
        _ => Vec::new(),
    }
}

/// The preset's file with another link and engine, and the unknown numbers as `entry` writes them.
fn text(generation: u32, entry: &dyn Fn(&str) -> String) -> String {
    let text = drawn::text(UNKNOWN.iter().map(|(key, ..)| *key), entry);
    text.replace("generation = { value = 5,", &format!("generation = {{ value = {generation},"))
}

/// A drawn card: its hidden structure, the fit, and the errors of two curves at sizes that were never measured.
struct Tried {
    hidden: Hidden,
    filled: Filled,
    errors_percent: [Vec<f64>; 2],
}

/// A card with drawn numbers and this structure.
fn card(generation: u32, hidden: &Hidden, draw: &mut Draw) -> Platform {
    let low = |key: &str| UNKNOWN.iter().find(|(other, ..)| *other == key).map_or(0.0, |(_, low, _)| *low);
    let entry = |key: &str| format!("{{ value = {}, assumed = \"replaced later\" }}", low(key));
    let origin = Origin::Given("drawn".to_owned());
    let mut card = Platform::parse("truth", &text(generation, &entry)).unwrap();
    for (key, low, high) in UNKNOWN {
        let value = draw.between(low, high);
        let value = if key == "dma.tags" { value.round() } else { value };
        card = card.with(key, value, origin.clone()).unwrap();
    }
    for (key, value) in hidden {
        card = card.with(key, *value, origin.clone()).unwrap();
    }
    card
}

fn tried(draw: &mut Draw, hidden: impl Fn(&mut Draw) -> Hidden) -> Tried {
    let generation = if draw.share() < 0.5 { 3 } else { 4 };
    let hidden = hidden(draw);
    let card = card(generation, &hidden, draw);
    let mut machine = SimulatedMachine::new(&card).unwrap();
    let table = Table::parse("card.csv", &measured(&mut machine, &CURVES, draw, 0.01)).unwrap();
    let draft = Draft::parse("card.toml", &text(generation, &unknown)).unwrap();
    let options = FillOptions { assume_rest: true, ..FillOptions::default() };
    let filled = fill_in("card.csv", &Measured::Table(&table), &draft, options).unwrap();
    let mut twin = SimulatedMachine::new(&filled.draft.clone().complete().unwrap()).unwrap();
    let errors_percent = DIRECTIONS.map(|name| errors_percent(&mut machine, &mut twin, name));
    Tried { hidden, filled, errors_percent }
}

/// Absolute errors of the twin, in percent, at sizes that were not measured: compared with the card's figures without noise.
fn errors_percent(card: &mut SimulatedMachine, twin: &mut SimulatedMachine, name: &str) -> Vec<f64> {
    let (truth, found) = (figures(card, (name, &OTHER_SIZES)), figures(twin, (name, &OTHER_SIZES)));
    truth.iter().zip(&found).map(|(truth, found)| 100.0 * (found.1 / truth.1 - 1.0).abs()).collect()
}

impl Tried {
    fn chosen(&self) -> &Contender {
        self.filled.contenders.iter().find(|contender| contender.is_chosen).unwrap()
    }

    /// Whether each curve has a median error below 1 % and a mean error below 2.5 %.
    fn is_within_limits(&self) -> bool {
        self.errors().iter().all(|(median, mean)| *median < 1.0 && *mean < 2.5)
    }

    fn in_words(&self) -> String {
        let (chosen, errors) = (self.chosen(), self.errors());
        let (set, fitted) = (&chosen.set, &chosen.fitted);
        format!("hidden {:?}, found {set:?} {fitted:?}, median and mean errors {errors:.2?}", self.hidden)
    }

    /// Whether the search chose exactly the hidden mechanism.
    fn is_right(&self) -> bool {
        let chosen = self.chosen();
        let times = self.hidden.iter().filter(|(key, _)| key.ends_with("_ns")).map(|(key, _)| (*key).to_owned());
        let set = self.hidden.iter().filter(|(key, _)| !key.ends_with("_ns"));
        let set: Vec<(String, f64)> = set.map(|(key, value)| ((*key).to_owned(), *value)).collect();
        chosen.set == set && chosen.fitted == times.collect::<Vec<_>>()
    }

    /// Whether the hidden mechanism is among those that the search chose, or in a structure that gives the same figures.
    fn is_found(&self) -> bool {
        let all = self.filled.contenders.iter().filter(|contender| contender.is_chosen || contender.is_like_chosen);
        all.into_iter().any(|Contender { set, fitted, .. }| {
            self.hidden.iter().all(|(key, value)| {
                if key.ends_with("_ns") {
                    fitted.iter().any(|other| other == key)
                } else {
                    set.contains(&((*key).to_owned(), *value))
                }
            })
        })
    }

    /// Median and mean of the errors of each curve, in percent.
    fn errors(&self) -> [(f64, f64); 2] {
        self.errors_percent.clone().map(|mut errors| {
            errors.sort_by(f64::total_cmp);
            let middle = errors.len() / 2;
            let mean = errors.iter().sum::<f64>() / errors.len() as f64;
            (f64::midpoint(errors[middle - 1], errors[middle]), mean)
        })
    }
}

#[test]
fn a_fit_that_is_called_good_predicts_sizes_that_were_not_measured() {
    let mut draw = Draw(SEED);
    let mut good = 0;
    for number in 0..3 {
        let tried = tried(&mut draw, hidden);
        let (_, _, verdict) = tried.filled.halves().unwrap();
        if verdict == Verdict::Predicts {
            // As the verdict says, and the mean that the forty cards below must have.
            for (errors, (_, mean)) in tried.errors_percent.iter().zip(tried.errors()) {
                assert!(
                    errors.iter().all(|error| *error < 10.0) && mean < 2.5,
                    "card {number}: {}: {errors:?}",
                    tried.in_words()
                );
            }
            good += 1;
        }
        assert_eq!(tried.filled.draft.unknowns(), []);
    }
    assert!(good >= 2, "{good} of 3");
}

#[test]
#[ignore = "takes a quarter of an hour on one core: make structures"]
fn the_structure_of_nine_in_ten_of_forty_cards_is_right() {
    let mut draw = Draw(SEED);
    let (mut right, mut within) = (0, 0);
    for number in 0..40 {
        let tried = tried(&mut draw, hidden);
        right += u32::from(tried.is_right());
        within += u32::from(tried.is_within_limits());
        println!("card {number}: {}; so far {right} right, {within} within", tried.in_words());
    }
    assert!(
        right >= 36 && within == 40,
        "{right} of 40 structures are right, {within} of 40 cards are within the limits"
    );
}

#[test]
fn reads_and_writes_of_a_real_gpu_are_predicted_between_measured_sizes() {
    follows_a_gpu("h100");
}

#[test]
#[ignore = "takes a minute: make structures"]
fn reads_and_writes_of_another_real_gpu_are_predicted_between_measured_sizes() {
    follows_a_gpu("h200");
}

fn follows_a_gpu(name: &str) {
    // As `lanemark doctor --as-platform` wrote it for the H100; the H200 has the same link, sizes and tags. It has no
    // boundaries of requests, which today's drafts have: the fit must find them.
    let draft = Draft::parse("gpu-h100.toml", include_str!("drawn/gpu-h100.toml")).unwrap();
    let path = format!("{}/../../records/{name}-dma-cuda.json", env!("CARGO_MANIFEST_DIR"));
    let mut record = lanemark_record::read(std::path::Path::new(&path)).unwrap();
    // Known gap: no mechanism describes what both directions share.
    record.answers.retain(|answer| answer.question != "dma_read_write_mix");
    let options = FillOptions { assume_rest: true, ..FillOptions::default() };
    let filled = fill_in("a record", &Measured::Record(&record, None), &draft, options).unwrap();
    let (_, held_out, _) = filled.halves().unwrap();
    println!("{name}: {held_out:?}");
    assert!(!filled.is_cut_short && held_out.count == 18, "{name}: {held_out:?}");
    assert!(held_out.median_percent < 1.0 && held_out.mean_percent < 2.5, "{name}: {held_out:?}");
}

#[test]
fn a_half_duplex_card_is_fitted_as_such_although_the_file_assumes_full_duplex() {
    let mut draw = Draw(SEED);
    let card = card(4, &Vec::new(), &mut draw);
    let sizes = [64, 256, 512, 1 << 10, 1 << 12, 1 << 14];
    let mixed: Curve<'_> = ("dma_read_write_mix", &[1 << 10, 1 << 12, 1 << 14]);
    let curves = [LATENCIES, (DIRECTIONS[0], &sizes[..]), (DIRECTIONS[1], &sizes[..]), mixed];
    let table = measured(&mut SimulatedMachine::new(&card).unwrap(), &curves, &mut draw, 0.01);
    // Two numbers are unknown; the others are those of the card.
    let entry = |key: &str| match key {
        "dma.tags" | "dma.beat_ns" => unknown(key),
        key => format!("{{ value = {}, source = \"a manual\" }}", card.number(key).unwrap().0),
    };
    let assumed = "[dma]\nfull_duplex = { value = true, assumed = \"as most engines\" }\n";
    let text = text(4, &entry).replace("[dma]\n", assumed);
    let text = text.replace("beat_bytes = { value = 32, assumed", "beat_bytes = { value = 32, source");
    let (table, draft) = (Table::parse("card.csv", &table).unwrap(), Draft::parse("card.toml", &text).unwrap());
    let filled = fill_in("card.csv", &Measured::Table(&table), &draft, FillOptions::default()).unwrap();
    let key = "dma.full_duplex".to_owned();
    assert_eq!(
        filled.reopened,
        [Reopened { key: key.clone(), assumed: 1.0, chosen: 0.0, is_flag: true, is_compared: true }]
    );
    let chosen = filled.contenders.iter().find(|contender| contender.is_chosen).unwrap();
    assert!(chosen.set.contains(&(key, 0.0)), "{chosen:?}");
    let (_, held_out, verdict) = filled.halves().unwrap();
    assert!(held_out.mean_percent < 2.5 && verdict == Verdict::Predicts, "{held_out:?}");
    let line = filled.draft.text().lines().find(|line| line.starts_with("full_duplex")).unwrap();
    assert!(line.starts_with("full_duplex = { value = false, fitted_to = [\"card.csv: dma_read_latency"), "{line}");
}

#[test]
fn figures_of_both_directions_that_nothing_describes_are_left_out_and_the_others_are_predicted() {
    let mut draw = Draw(SEED);
    let card = card(4, &Vec::new(), &mut draw);
    let sizes = [64, 256, 512, 1 << 10, 1 << 12, 1 << 14];
    let curves = [LATENCIES, (DIRECTIONS[0], &sizes[..]), (DIRECTIONS[1], &sizes[..])];
    let table = measured(&mut SimulatedMachine::new(&card).unwrap(), &curves, &mut draw, 0.01);
    let entry = |key: &str| match key {
        "dma.tags" | "dma.beat_ns" | "dma.write_request_ns" => unknown(key),
        key => format!("{{ value = {}, source = \"a manual\" }}", card.number(key).unwrap().0),
    };
    let text = text(4, &entry).replace("beat_bytes = { value = 32, assumed", "beat_bytes = { value = 32, source");
    let draft = Draft::parse("card.toml", &text).unwrap();
    let filled = |both: &str| {
        let table = Table::parse("card.csv", &format!("{table}{both}")).unwrap();
        fill_in("card.csv", &Measured::Table(&table), &draft, FillOptions::default()).unwrap()
    };
    // A rate that falls to a hundredth while the size grows.
    let mixed = ["4096,2 GB/s", "8192,0.2 GB/s", "16384,0.02 GB/s"].map(|row| format!("dma_read_write_mix,{row}\n"));
    let (alone, with_both) = (filled(""), filled(&mixed.concat()));
    assert!(alone.left_out.is_none());
    let left_out = with_both.left_out.as_ref().unwrap();
    let what: Vec<&str> = left_out.residuals.iter().map(|residual| residual.what.as_str()).collect();
    assert!(what.len() == 3 && what.iter().all(|what| what.starts_with("dma_read_write_mix")), "{what:?}");
    assert!(left_out.held_out_with_them.mean_percent > 5.0, "{left_out:?}");
    assert!(left_out.residuals[2].error_percent > 1000.0, "{left_out:?}");
    // The rest is as if they had not been measured.
    assert_eq!(with_both.draft.text(), alone.draft.text());
    assert_eq!((with_both.residuals, with_both.held_out), (alone.residuals, alone.held_out));
}

#[test]
fn figures_of_both_directions_stay_where_the_others_alone_are_too_few() {
    let mut draw = Draw(SEED);
    let sizes = [64, 256, 512, 1 << 10, 1 << 12, 1 << 14];
    let card = card(4, &Vec::new(), &mut draw);
    let table = measured(&mut SimulatedMachine::new(&card).unwrap(), &[(DIRECTIONS[0], &sizes[..])], &mut draw, 0.01);
    let row = |power: u32| format!("dma_read_write_mix,{},{} GB/s\n", 1 << power, 14 - power);
    let mixed = (6..14).map(row).collect::<Vec<String>>().concat();
    let keys = UNKNOWN.iter().map(|(key, ..)| *key).chain(["dma.read_request_ns", "dma.start_ns"]);
    let draft = Draft::parse("card.toml", &drawn::text(keys, &unknown)).unwrap();
    let table = Table::parse("card.csv", &format!("{table}{mixed}")).unwrap();
    let options = FillOptions { keep_structure: true, ..FillOptions::default() };
    let filled = fill_in("card.csv", &Measured::Table(&table), &draft, options).unwrap();
    assert_eq!(filled.questions, [(DIRECTIONS[0], 6), ("dma_read_write_mix", 8)]);
    assert!(filled.left_out.is_none() && filled.halves().unwrap().2 != Verdict::Predicts, "{:?}", filled.halves());
    let missed: Vec<(&str, f64)> =
        filled.missed.iter().map(|missed| (&missed.what[..], missed.error_percent)).collect();
    let held_out = filled.held_out.iter().map(|residual| (&residual.what[..], residual.error_percent));
    assert_eq!(missed, held_out.filter(|(_, error)| error.abs() > 10.0).collect::<Vec<_>>());
    let is_end = |what: &str| {
        [" 64 B", "_bandwidth host-to-device by DMA 16384 B", " 8192 B"].iter().any(|end| what.ends_with(end))
    };
    assert!(filled.missed.iter().all(|missed| missed.is_end == is_end(&missed.what)), "{:?}", filled.missed);
    assert!(filled.missed.iter().any(|missed| missed.is_end) && filled.missed.iter().any(|missed| !missed.is_end));
}

#[test]
fn a_card_with_narrower_beats_than_the_file_assumes_is_fitted_with_its_own() {
    let tried = tried(&mut Draw(SEED), |_| vec![("dma.beat_bytes", 16.0)]);
    assert!(tried.is_right() && tried.is_within_limits(), "{}", tried.in_words());
    let [reopened] = &tried.filled.reopened[..] else { panic!("{:?}", tried.filled.reopened) };
    assert_eq!((reopened.key.as_str(), reopened.assumed, reopened.chosen), ("dma.beat_bytes", 32.0, 16.0));
    let line = tried.filled.draft.text().lines().find(|line| line.starts_with("beat_bytes")).unwrap();
    assert!(line.starts_with("beat_bytes = { value = 16, fitted_to = [\"card.csv: dma_read_latency"), "{line}");
}

#[test]
fn a_width_that_the_measured_sizes_do_not_show_is_told_by_the_figure_that_is_named() {
    // All measured sizes are multiples of 64 B, and the file assumes 32 B.
    let mut draw = Draw(SEED ^ 2);
    let hidden = vec![("dma.beat_bytes", 64.0)];
    let truth = card(3, &hidden, &mut draw);
    let mut machine = SimulatedMachine::new(&truth).unwrap();
    let table = Table::parse("card.csv", &measured(&mut machine, &CURVES, &mut draw, 0.01)).unwrap();
    let draft = Draft::parse("card.toml", &text(3, &unknown)).unwrap();
    let filled = fill_in("card.csv", &Measured::Table(&table), &draft, FillOptions::default()).unwrap();
    let is_true = |contender: &Contender| contender.set == [("dma.beat_bytes".to_owned(), 64.0)];
    let chosen = filled.contenders.iter().find(|contender| contender.is_chosen).unwrap();
    assert!(!is_true(chosen), "another card must be drawn: the figures show the width of this one");
    let found = filled.contenders.iter().find(|contender| is_true(contender) && contender.is_as_likely).unwrap();
    let told = found.distinction.as_ref().unwrap();
    let figure = figures(&mut machine, (told.question, &[told.size_bytes]))[0].1;
    let [far, near] = [told.chosen, told.other].map(|predicted| (predicted / figure).ln().abs());
    assert!(near < 0.02 && far > 2.0 * near, "{told:?}, and the card has {figure}");
}

/// Keys of `[dma_read]` that act on data after the link or outside of the tags: one mechanism each.
fn hidden_of_data(kind: u32, draw: &mut Draw) -> Hidden {
    match kind {
        0 => vec![
            ("dma_read.push_bytes", one_of(draw, &[64.0, 128.0, 256.0])),
            ("dma_read.many_pushes_ns", draw.between(80.0, 200.0)),
        ],
        1 => vec![
            ("dma_read.store_bytes", one_of(draw, &[64.0, 128.0])),
            ("dma_read.store_ns", draw.between(150.0, 400.0)),
        ],
        _ => vec![("dma_read.signal_ns", draw.between(200.0, 500.0))],
    }
}

/// Fits this card by its reads, and returns the search's result and the errors of latencies and bandwidths at sizes that were
/// not measured. The tags are known: a small count replaces a time outside of the tags.
fn tried_reads(kind: u32, draw: &mut Draw) -> Tried {
    const MISSING: [&str; 3] = ["memory.read_ns", "dma.beat_ns", "dma.descriptor_ns"];
    let hidden = hidden_of_data(kind, draw);
    let card = card(4, &hidden, draw);
    let entry = |key: &str| {
        let known = || format!("{{ value = {}, source = \"a manual\" }}", card.number(key).unwrap().0);
        if MISSING.contains(&key) { unknown(key) } else { known() }
    };
    let mut machine = SimulatedMachine::new(&card).unwrap();
    let table = Table::parse("card.csv", &measured(&mut machine, &CURVES[..2], draw, 0.01)).unwrap();
    let draft = Draft::parse("card.toml", &text(4, &entry)).unwrap();
    let options = FillOptions { assume_rest: true, ..FillOptions::default() };
    let filled = fill_in("card.csv", &Measured::Table(&table), &draft, options).unwrap();
    let mut twin = SimulatedMachine::new(&filled.draft.clone().complete().unwrap()).unwrap();
    let errors_percent = [LATENCIES.0, DIRECTIONS[0]].map(|name| errors_percent(&mut machine, &mut twin, name));
    Tried { hidden, filled, errors_percent }
}

#[test]
fn costs_of_the_data_of_reads_are_found_behind_the_link() {
    let mut draw = Draw(SEED);
    for kind in 0..2 {
        let tried = tried_reads(kind, &mut draw);
        assert!(tried.is_within_limits() && tried.is_right(), "{}", tried.in_words());
    }
}

#[test]
fn a_latency_after_the_tag_is_named_beside_one_before_the_start_that_gives_the_same_figures() {
    // Rates of long runs show neither.
    let tried = tried_reads(2, &mut Draw(SEED));
    let alike = tried.filled.contenders.iter().filter(|contender| contender.is_chosen || contender.is_like_chosen);
    let alike: Vec<&[String]> = alike.map(|contender| &contender.fitted[..]).collect();
    assert!(alike.contains(&&["dma.start_ns".to_owned()][..]), "{alike:?}");
    assert!(tried.is_within_limits() && tried.is_found(), "{alike:?}");
}

#[test]
#[ignore = "takes minutes: make structures"]
fn costs_of_the_data_of_reads_are_found_on_twelve_cards() {
    let mut draw = Draw(SEED ^ 1);
    let (mut right, mut found, mut within) = (0, 0, 0);
    for number in 0..12 {
        let tried = tried_reads(number % 3, &mut draw);
        right += u32::from(tried.is_right());
        found += u32::from(tried.is_found());
        within += u32::from(tried.is_within_limits());
        println!("card {number}: {}; so far {right} right, {found} found, {within} within", tried.in_words());
    }
    assert!(found == 12 && within == 12, "{found} of 12 are found, {within} cards are within the limits");
    // A latency after the tag gives the same figures as one before the start, which is chosen: four cards.
    assert!(right >= 8, "{right} of 12 structures are exactly right");
}
