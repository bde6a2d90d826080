use super::*;
use crate::fixture;

fn faster() -> Record {
    let mut record = fixture::record();
    for answer in &mut record.answers {
        if let Some(rate) = &mut answer.delivered_rate_bytes_per_s {
            rate.median *= 2.0;
        }
    }
    record
}

fn compared<'a>(records: &'a [(&'a str, Record)]) -> Vec<ComparedRecord<'a>> {
    let of = |(file, record): &'a (&str, Record)| ComparedRecord { file: Path::new(file), record, neighbours: None };
    records.iter().map(of).collect()
}

#[test]
fn each_question_has_a_curve_per_machine_with_a_mark_of_its_own() {
    let records = [("slow.json", fixture::record()), ("fast.json", faster())];
    let compared = compared(&records);
    let machines = machines(&compared);
    let names: Vec<&str> = machines.iter().map(|machine| machine.name.as_str()).collect();
    assert_eq!(names, ["slow: card-gen5-x16", "slow: host", "fast: card-gen5-x16", "fast: host"]);
    let panels: Vec<Vec<Panel>> = compared.iter().map(|one| Panel::of(one.record)).collect();
    let questions = Question::of(&machines, &panels);
    let plot = questions[0].plot(&machines);
    let lines = plot["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 2, "hosts answer no question of cards");
    assert_ne!(lines[0]["mark"], lines[1]["mark"]);
    assert_eq!(lines[0]["values"], json!([8.0, 30.0, 51.0]), "the best method of each size");
    assert_eq!(lines[1]["values"], json!([16.0, 60.0, 102.0]));
}

#[test]
fn medians_have_the_spread_the_share_of_the_limit_and_the_fastest() {
    let records = [("slow.json", fixture::record()), ("fast.json", faster())];
    let compared = compared(&records);
    let machines = machines(&compared);
    let panels: Vec<Vec<Panel>> = compared.iter().map(|one| Panel::of(one.record)).collect();
    let grid = Question::of(&machines, &panels)[0].medians(&machines, Some(4 << 20));
    let heads: Vec<&str> = grid.columns.iter().map(|column| column.head.as_str()).collect();
    let place = |head: &str| heads.iter().position(|one| *one == head).unwrap();
    let column = |head: &str| grid.rows.iter().map(|row| row[place(head)].as_str()).collect::<Vec<_>>();
    assert_eq!(column("machine"), ["fast: card-gen5-x16", "slow: card-gen5-x16"]);
    assert_eq!(column("median, GB/s"), ["102", "51.0"]);
    assert_eq!(column("of the fastest"), ["100 %", "50.0 %"]);
    assert_eq!(column("of its limit")[1], "94.4 %");
    assert_eq!(column("rank"), ["fastest", "nearest to it"]);
    assert!(column("±MAD, GB/s").iter().all(|mad| !mad.is_empty()));
}

#[test]
fn emulated_times_are_labelled_and_have_no_rank() {
    let mut emulated = faster();
    emulated.targets[0].kind = TargetKind::Emulated;
    let records = [("a.json", fixture::record()), ("b.json", emulated), ("c.json", fixture::record())];
    let page = machines_html(&compared(&records)).unwrap();
    assert!(page.contains("emulated: timings are not meaningful"), "labelled");
    assert!(page.contains("not ranked: emulated"));
    let compared = compared(&records);
    let machines = machines(&compared);
    let panels: Vec<Vec<Panel>> = compared.iter().map(|one| Panel::of(one.record)).collect();
    let glance = glance(&Question::of(&machines, &panels), &machines);
    assert_eq!(glance.rows[0][2], "a: card-gen5-x16", "the faster one is emulated");
}

#[test]
fn only_facts_that_differ_are_shown() {
    let mut other = fixture::record();
    other.targets[0].platform = Some(json!({"link": {"mps_bytes": {"value": 512}, "mrrs_bytes": {"value": 512}}}));
    let mut one = fixture::record();
    one.targets[0].platform = Some(json!({"link": {"mps_bytes": {"value": 256}, "mrrs_bytes": {"value": 512}}}));
    for record in [&mut one, &mut other] {
        record.targets.truncate(1);
        record.answers.retain(|answer| answer.target == "card-gen5-x16");
    }
    let records = [("one.json", one), ("other.json", other)];
    let compared = compared(&records);
    let facts = facts(&compared, &machines(&compared));
    assert_eq!(facts.rows, [["MPS", "256 B", "512 B"]]);
}

#[test]
fn no_text_of_a_record_becomes_markup() {
    let mut record = fixture::record();
    record.targets[0].summary = "</script><b>".to_owned();
    let records = [("</title>.json", record), ("b.json", fixture::record())];
    let page = machines_html(&compared(&records)).unwrap();
    assert!(!page.contains("</script><b>") && !page.contains("</title>:"));
}
