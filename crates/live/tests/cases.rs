//! Is the case of an answer found again, and does its formula stay the same?

use lanemark_bench::{Axes, CATALOGUE, case_again};
use lanemark_live::{Change, Live, MEMORY_TYPE, Point};
use lanemark_method::{HostWait, LaunchBy, Method};
use lanemark_platform::{PRESETS, preset};

#[test]
fn every_case_of_every_question_is_found_again_by_its_method_and_size() {
    let mut found = 0;
    for name in PRESETS.iter().map(|row| row.name) {
        let facts = lanemark_sim::facts(&preset(name).unwrap().unwrap());
        for question in CATALOGUE {
            for case in (question.cases)(&facts, &Axes::default()) {
                let again = case_again(question, &facts, None, &case.method, case.size, case.alignment)
                    .unwrap_or_else(|| panic!("{name}: {} {} {}", question.name, case.method, case.size));
                // Answers do not say which cores took part.
                assert_eq!(lanemark_bench::Case { caller: case.caller, ..again }, case, "{name}: {}", question.name);
                found += 1;
            }
            let launches = Method::Launch {
                kernels: 12_345,
                by: LaunchBy::Calls,
                wait: HostWait::Finish,
                arguments: None,
                pinned: true,
            };
            let none = case_again(question, &facts, None, &launches, 3, 0);
            assert_eq!(none, None, "{name}: {}", question.name);
        }
    }
    assert!(found > 5000, "{found}");
}

/// The formula of 64 B stores to write-combining memory.
fn point() -> Point {
    let facts = lanemark_sim::facts(&preset("card-gen5-x16").unwrap().unwrap());
    let question = lanemark_bench::question("mmio_write_bandwidth").unwrap();
    let cases = (question.cases)(&facts, &Axes::default());
    let method = cases.into_iter().find(|case| case.method.to_string() == "WC 8").unwrap().method;
    Point {
        question: "mmio_write_bandwidth".to_owned(),
        method,
        size_bytes: 1 << 20,
        alignment_bytes: 0,
        iterations: None,
        region: None,
    }
}

fn live() -> Live {
    Live::of(&preset("card-gen5-x16").unwrap().unwrap().to_json()).unwrap()
}

#[test]
fn a_change_moves_a_figure_and_undoing_it_moves_it_back() {
    let (mut live, point) = (live(), point());
    let one = |live: &mut Live, key: &str, value: &str| {
        let changes = [Change(key.to_owned(), value.to_owned())];
        live.figures(&changes, [&point]).unwrap().remove(0).unwrap()
    };
    let before = live.figure(&point).unwrap();
    assert!(one(&mut live, "core.wc_buffers", "1").value < before.value);
    assert!(one(&mut live, MEMORY_TYPE, "uc").value < before.value);
    assert_eq!(live.figures(&[], [&point]).unwrap().remove(0).unwrap(), before);
}

#[test]
fn a_refused_change_names_the_key_and_leaves_the_platform_as_it_was() {
    let (mut live, point) = (live(), point());
    let before = live.figure(&point).unwrap();
    let error = live.change(&[Change("link.width_lanes".to_owned(), "3".to_owned())]).unwrap_err().to_string();
    assert!(error.contains("link.width_lanes: is 3; must be one of 1, 2, 4"), "{error}");
    assert_eq!(live.figure(&point).unwrap(), before);
}

#[test]
fn a_point_without_a_case_or_a_formula_says_why() {
    let mut live = live();
    let unknown = Point { question: "nonsense".to_owned(), ..point() };
    assert_eq!(live.figure(&unknown).unwrap_err(), "this program has no question nonsense");
    let odd = Point { question: "dma_read_latency".to_owned(), ..point() };
    assert_eq!(live.figure(&odd).unwrap_err(), "the question has no such case on this platform");
    let large = Point { size_bytes: 1 << 40, ..point() };
    assert_eq!(live.figure(&large).unwrap_err(), "it does not fit the memory that it accesses");
}
