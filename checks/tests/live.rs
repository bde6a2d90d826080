//! Do the sliders of a page move its numbers to those of `lanemark predict --with`?

use lanemark_checks::live_page::{data, formula, module, predicted};
use lanemark_checks::on_all_cores;
use lanemark_checks::trials;
use lanemark_checks::trials::{Available, Trial, run};
use lanemark_live::{Change, Live, Point, Slider};
use lanemark_record::Record;
use lanemark_report::html;
use lanemark_units::figures::Unit;
use serde_json::{Value, json};
use std::process::ExitCode;
use wasmi::{Engine, Instance, Linker, Module, Store};

const PLATFORM: &str = "card-gen5-x16-iommu";
const QUESTIONS: [&str; 4] = ["dma_read_bandwidth", "dma_read_latency", "mmio_write_latency", "doorbell_to_completion"];

fn main() -> ExitCode {
    let page = html(&base(), &[]).unwrap();
    let has_module = module(&page).map(|_| ()).ok_or_else(|| "the live part of pages: LANEMARK_LIVE=1".to_owned());
    let mut tests: Vec<Trial> =
        trials!(Available::ALWAYS; every_slider_predicts_what_predict_does, an_absent_module_is_explained).into();
    let with_module = Available::new(has_module, "LANEMARK_REQUIRE_LIVE");
    tests.extend(trials!(with_module; the_module_moves_numbers_to_those_of_predict, a_whole_page_is_below_3_mb));
    run(tests)
}

fn base() -> Record {
    predicted(PLATFORM, &QUESTIONS, &[]).unwrap()
}

fn points(record: &Record) -> Vec<Point> {
    record.answers.iter().map(|answer| Point::of(answer, None, None)).collect()
}

/// Some positions of each slider that has a place: both ends, and every `step`-th between.
fn moves(sliders: &[Slider], step: usize) -> Vec<Change> {
    let placed = sliders.iter().filter(|slider| slider.place.is_some());
    placed
        .flat_map(|slider| {
            let mut values: Vec<&String> = slider.values.iter().step_by(step).chain(slider.values.last()).collect();
            values.dedup();
            values.into_iter().map(|value| Change(slider.key.clone(), value.clone()))
        })
        .collect()
}

/// The record of `lanemark predict --with`.
fn predicted_with(Change(key, value): &Change) -> Record {
    predicted(PLATFORM, &QUESTIONS, &[(key.clone(), value.clone())])
        .unwrap_or_else(|error| panic!("{key}={value}: {error}"))
}

fn every_slider_predicts_what_predict_does() {
    let base = base();
    let (points, mut live) = (points(&base), Live::of(base.targets[0].platform.as_ref().unwrap()).unwrap());
    let changes = moves(&live.sliders(), 20);
    let records = on_all_cores(&changes, predicted_with);
    let (mut compared, mut moved) = (0, 0);
    for (Change(key, value), record) in changes.iter().zip(records) {
        let figures = live.figures(&[Change(key.clone(), value.clone())], &points).unwrap();
        for ((point, figure), before) in points.iter().zip(figures).zip(&base.answers) {
            let same = record.answers.iter().find(|answer| {
                (&answer.question, &answer.method, answer.size_bytes)
                    == (&point.question, &point.method, point.size_bytes)
            });
            let what = format!("{key}={value}: {} {}", point.question, point.method);
            assert_eq!(figure.as_ref().ok().map(|figure| figure.value), same.and_then(formula), "{what}");
            compared += 1;
            moved += usize::from(same.and_then(formula) != formula(before));
        }
    }
    assert!(compared > 10_000 && moved > 500, "{moved} of {compared} figures moved");
}

fn an_absent_module_is_explained() {
    let page = html(&base(), &[]).unwrap();
    assert_eq!(module(&page).is_some(), page.contains("data-live=\""), "sliders without a module do nothing");
    assert_eq!(module(&page).is_none(), page.contains("There are no sliders; this program was built without them"));
}

/// A module with its memory.
struct Loaded {
    store: Store<()>,
    instance: Instance,
}

impl Loaded {
    fn of(module: &[u8]) -> Loaded {
        let engine = Engine::default();
        let module = Module::new(&engine, module).unwrap();
        assert_eq!(module.imports().count(), 0, "the page gives the module nothing");
        let mut store = Store::new(&engine, ());
        let instance = Linker::new(&engine).instantiate_and_start(&mut store, &module).unwrap();
        Loaded { store, instance }
    }

    fn call(&mut self, name: &str, message: &Value) -> Value {
        let (store, text) = (&mut self.store, message.to_string());
        let memory = self.instance.get_memory(&*store, "memory").unwrap();
        let room = self.instance.get_typed_func::<u32, u32>(&*store, "room").unwrap();
        let at = room.call(&mut *store, text.len() as u32).unwrap();
        memory.write(&mut *store, at as usize, text.as_bytes()).unwrap();
        let len = self.instance.get_typed_func::<(), u32>(&*store, name).unwrap().call(&mut *store, ()).unwrap();
        let at = self.instance.get_typed_func::<(), u32>(&*store, "reply").unwrap().call(&mut *store, ()).unwrap();
        let mut bytes = vec![0; len as usize];
        memory.read(&*store, at as usize, &mut bytes).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }
}

fn the_module_moves_numbers_to_those_of_predict() {
    let page = html(&base(), &[]).unwrap();
    let (mut loaded, all) = (Loaded::of(&module(&page).unwrap()), data(&page).unwrap());
    let data = &all[0];
    let panels = data["panels"].as_array().unwrap();
    assert_eq!(panels.len(), QUESTIONS.len());
    assert_eq!(loaded.call("ask", &json!({"panel": 0, "points": [], "changes": []}))["problem"], "no page is open");
    assert_eq!(loaded.call("open_page", &json!({"platform": data["platform"], "panels": panels})), json!({}));
    let named = data["sliders"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|slider| !slider["label"].is_null() && !slider["place"].is_null());
    let mut compared = 0;
    for slider in named {
        let (key, values) = (slider["key"].as_str().unwrap(), slider["values"].as_array().unwrap());
        for value in values.iter().step_by(48).chain(values.last()) {
            let value = value.as_str().unwrap();
            let record = predicted(PLATFORM, &QUESTIONS, &[(key.to_owned(), value.to_owned())]).unwrap();
            for (number, panel) in panels.iter().enumerate() {
                let points = panel["points"].as_array().unwrap();
                let wanted: Vec<usize> = (0..points.len()).collect();
                let reply = loaded.call("ask", &json!({"panel": number, "points": wanted, "changes": [[key, value]]}));
                let unit = Unit::ALL.into_iter().find(|unit| unit.symbol() == panel["unit"]).unwrap();
                for (point, figure) in points.iter().zip(reply["figures"].as_array().unwrap()) {
                    let method = serde_json::from_value(point["method"].clone()).unwrap();
                    let is_same = |answer: &&lanemark_record::Answer| {
                        (&*answer.question, &answer.method) == (point["question"].as_str().unwrap(), &method)
                            && answer.size_bytes == point["size_bytes"].as_u64().unwrap()
                    };
                    let wanted = record.answers.iter().find(is_same).and_then(formula);
                    let text = wanted.map(|wanted| unit.figure(wanted));
                    assert_eq!(figure["text"].as_str(), text.as_deref(), "{key}={value}: {point}");
                    assert_eq!(figure["value"].as_f64(), wanted.map(|wanted| wanted / unit.in_base()));
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 1000, "{compared}");
    let refused = loaded.call("ask", &json!({"panel": 0, "points": [0], "changes": [["link.width_lanes", "3"]]}));
    assert!(refused["problem"].as_str().unwrap().contains("link.width_lanes: is 3; must be one of"), "{refused}");
    let beyond = loaded.call("ask", &json!({"panel": 4, "points": [0], "changes": []}));
    assert_eq!(beyond["problem"], "panel 4 is asked, and the page has 4");
}

fn a_whole_page_is_below_3_mb() {
    let names: Vec<&str> = lanemark_bench::CATALOGUE.iter().filter(|row| row.is_usual).map(|row| row.name).collect();
    let page = html(&predicted("card-gen5-x16", &names, &[]).unwrap(), &[]).unwrap();
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
}
