//! Recovery of the numbers of a card's DMA engine from about ten sizes per direction.

mod drawn;

use drawn::{Curve, Draw, LATENCIES, PRESET, unknown};
use lanemark_fit::{FillError, FillOptions, Filled, HEADER, Measured, Table, Verdict, fill_in};
use lanemark_platform::{Draft, Origin, Platform};
use lanemark_runner::Cancel;
use lanemark_sim::SimulatedMachine;

/// Sizes of the bandwidth curves: eleven, of which five are held out.
const SIZES: [u64; 11] = [64, 128, 192, 256, 384, 512, 1 << 10, 1 << 11, 1 << 13, 1 << 15, 1 << 17];

const CURVES: [Curve<'_>; 3] = [LATENCIES, ("dma_read_bandwidth", &SIZES), ("dma_write_bandwidth", &SIZES)];

/// Randomly chosen keys with their bounds, in the units of the keys.
const RANDOM_KEYS: [(&str, f64, f64); 6] = [
    ("memory.read_ns", 200.0, 900.0),
    ("dma.tags", 12.0, 40.0),
    ("dma.beat_ns", 2.0, 6.0),
    ("dma.read_request_ns", 4.0, 20.0),
    ("dma.write_request_ns", 4.0, 40.0),
    ("dma.descriptor_ns", 5.0, 40.0),
];

/// A card with random numbers.
fn card(draw: &mut Draw) -> Platform {
    let low = |key: &str| RANDOM_KEYS.iter().find(|(other, ..)| *other == key).map_or(0.0, |(_, low, _)| *low);
    let entry = |key: &str| format!("{{ value = {}, assumed = \"replaced later\" }}", low(key));
    let platform = Platform::parse("truth", &text(&entry)).unwrap();
    RANDOM_KEYS.iter().fold(platform, |platform, (key, low, high)| {
        let value = draw.between(*low, *high);
        let value = if *key == "dma.tags" { value.round() } else { value };
        platform.with(key, value, Origin::Given("random".to_owned())).unwrap()
    })
}

/// The card's file with the random keys as `entry` writes them.
fn text(entry: &dyn Fn(&str) -> String) -> String {
    drawn::text(RANDOM_KEYS.iter().map(|(key, ..)| *key), entry)
}

/// The draft with the random keys unknown.
fn draft() -> Draft {
    Draft::parse("card.toml", &text(&unknown)).unwrap()
}

/// A table of measurements of the card, with a relative error of `deviation` each.
fn measured(card: &Platform, draw: &mut Draw, deviation: f64) -> String {
    drawn::measured(&mut SimulatedMachine::new(card).unwrap(), &CURVES, draw, deviation)
}

fn filled(table: &str, draft: &Draft) -> Filled {
    let table = Table::parse("card.csv", table).unwrap();
    fill_in("card.csv", &Measured::Table(&table), draft, FillOptions::default()).unwrap()
}

/// For each random key: its name, the true value, the fitted value.
fn pairs<'a>(card: &Platform, filled: &'a Filled) -> Vec<(&'a str, f64, f64)> {
    let pair = |found: &'a lanemark_fit::Found| (found.name.as_str(), card.number(&found.name).unwrap().0, found.value);
    filled.fit.found.iter().map(pair).collect()
}

#[test]
fn numbers_of_random_cards_are_recovered_or_reported_as_open() {
    let mut draw = Draw(0x9E37_79B9_7F4A_7C15);
    for _ in 0..2 {
        let card = card(&mut draw);
        let filled = filled(&measured(&card, &mut draw, 0.0), &draft());
        let unknown = filled.draft.unknowns().iter().map(|unknown| unknown.key.as_str());
        let conditional = filled.conditional.iter().map(|(key, _)| key.as_str());
        let open: Vec<&str> = unknown.chain(conditional).collect();
        assert!(open.len() <= 2, "{open:?}");
        for (name, wanted, value) in pairs(&card, &filled).into_iter().filter(|pair| !open.contains(&pair.0)) {
            assert!((value / wanted - 1.0).abs() < 0.01, "{name}: {value}, expected {wanted}");
            assert!(name != "dma.tags" || value == wanted, "{value} tags, expected {wanted}");
        }
        let (fitted, held_out, verdict) = filled.halves().unwrap();
        assert_eq!((fitted.count, held_out.count, verdict), (29, 29, Verdict::Predicts));
        // A number that has its default, because it is not determined, may be wrong.
        let is_determined = filled.at_default.is_empty() && filled.conditional.is_empty();
        let error = if is_determined { held_out.worst_percent } else { held_out.mean_percent };
        assert!(error < 0.5 && held_out.median_percent < 0.1, "{held_out:?}");
    }
}

#[test]
fn with_errors_of_two_percent_intervals_contain_the_true_values() {
    let mut draw = Draw(0x2545_F491_4F6C_DD1D);
    let (mut told, mut within) = (0, 0);
    for _ in 0..3 {
        let card = card(&mut draw);
        let filled = filled(&measured(&card, &mut draw, 0.02), &draft());
        for found in &filled.fit.found {
            let (Some((least, most)), Some((wanted, _))) = (found.within_95, card.number(&found.name)) else {
                continue;
            };
            told += 1;
            within += u32::from(least <= wanted && wanted <= most);
        }
        let (_, held_out, verdict) = filled.halves().unwrap();
        assert_eq!(verdict, Verdict::Predicts, "{held_out:?}");
        assert!(held_out.median_percent < 3.0, "{held_out:?}");
    }
    assert!(told >= 8, "{told} numbers of 18 are determined");
    assert!(within * 4 >= told * 3, "{within} of {told} intervals contain the true value");
}

#[test]
fn reads_determine_only_the_sum_of_link_and_memory_latency() {
    let card = card(&mut Draw(1));
    let text = text(&|key| match key {
        "memory.read_ns" => unknown(key),
        key => format!("{{ value = {}, source = \"known\" }}", card.number(key).unwrap().0),
    });
    let text = text.replace("latency_ns = { value = 120, assumed", "latency_ns = { unknown");
    let filled = filled(&measured(&card, &mut Draw(1), 0.0), &Draft::parse("card.toml", &text).unwrap());
    let [open] = filled.fit.loose.as_slice() else { panic!("{:?}", filled.fit.loose) };
    assert_eq!(
        (open.names.as_slice(), open.free),
        (["memory.read_ns", "link.latency_ns"].map(str::to_owned).as_slice(), 1)
    );
    let value = |name: &str| filled.fit.found.iter().find(|found| found.name == name).unwrap().value;
    let wanted = card.number("memory.read_ns").unwrap().0 + 2.0 * 120.0;
    let sum = value("memory.read_ns") + 2.0 * value("link.latency_ns");
    assert!((sum / wanted - 1.0).abs() < 0.01, "{sum}, expected {wanted}");
    assert!(filled.fit.found.iter().all(|found| found.within_95.is_none()), "{:?}", filled.fit.found);
    assert_eq!(filled.draft.unknowns().len(), 2);
}

#[test]
fn a_card_outside_the_model_is_reported_as_wrong() {
    let card = card(&mut Draw(1));
    let mut lines: Vec<String> = measured(&card, &mut Draw(1), 0.0).lines().map(str::to_owned).collect();
    // Two sizes at a third of the speed, which no modelled engine does.
    for line in lines
        .iter_mut()
        .filter(|line| line.starts_with("dma_write_bandwidth,192") || line.starts_with("dma_write_bandwidth,1024"))
    {
        let (head, rate) = line.trim_end_matches(" MB/s").rsplit_once(',').unwrap();
        *line = format!("{head},{} MB/s", rate.parse::<f64>().unwrap() / 3.0);
    }
    let filled = filled(&lines.join("\n"), &draft());
    assert_eq!(filled.halves().unwrap().2, Verdict::LacksSomething);
}

#[test]
fn a_platform_without_a_dma_engine_cannot_be_fitted_to_a_table() {
    let table = Table::parse("card.csv", &format!("{HEADER}\n\ndma_read_latency,64,1 us\n")).unwrap();
    let (before, after) = PRESET.split_once("[dma]").unwrap();
    let text = format!("{before}{}", &after[after.find("[[bar]]").unwrap()..]);
    let text = text.replace("latency_ns = { value = 120, assumed", "latency_ns = { unknown");
    let draft = Draft::parse("card.toml", &text).unwrap();
    let error = fill_in("card.csv", &Measured::Table(&table), &draft, FillOptions::default()).unwrap_err().to_string();
    assert!(error.starts_with("card.csv:3: dma_read_latency of 64 B is not possible on card-gen5-x16"), "{error}");
}

#[test]
fn a_cancelled_fit_ends_soon_with_that_reason() {
    let mut draw = Draw(7);
    let card = card(&mut draw);
    let table = Table::parse("card.csv", &measured(&card, &mut draw, 0.05)).unwrap();
    let fill = |cancel: &Cancel| {
        let options = FillOptions { cancel: Some(cancel), ..FillOptions::default() };
        fill_in("card.csv", &Measured::Table(&table), &draft(), options)
    };
    let cancel = Cancel::new();
    cancel.cancel();
    assert!(matches!(fill(&cancel), Err(FillError::Cancelled)));
    // In the middle of the search.
    let cancel = Cancel::new();
    let begun = std::time::Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(200));
            cancel.cancel();
        });
        assert!(matches!(fill(&cancel), Err(FillError::Cancelled)));
    });
    assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{:?}", begun.elapsed());
}
