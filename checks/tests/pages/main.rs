//! Do the pages of several records, of a sweep and of a trace work in a browser? (`make test-browser`)

mod made;
mod picture;

use lanemark_checks::browser::{Browser, is_here};
use lanemark_checks::trials;
use lanemark_checks::trials::{Available, run};
use lanemark_units::figures::{Unit, rate};
use made::{Made, RECORDS};
use picture::is_drawn_as_stored;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Largest page, in bytes.
const MOST_BYTES: usize = 3_000_000;

fn main() -> ExitCode {
    let available =
        Available::unless("LANEMARK_SKIPPED_BROWSER").and(&Available::new(is_here(), "LANEMARK_REQUIRE_BROWSER"));
    run(trials!(available;
        every_page_opens_without_an_error_or_a_request,
        every_page_is_drawn_as_stored_and_a_blank_one_is_not,
        every_page_fits_a_phone_and_names_its_controls,
        every_page_prints_its_tables,
        machines_have_the_medians_of_their_files,
        a_table_is_copied_as_csv,
        cells_of_a_map_have_the_figures_of_the_log,
        axes_of_a_map_are_exchanged_and_coloured_by_bottleneck,
        a_map_shows_the_points_of_one_value_of_a_third_column,
        keys_move_from_cell_to_cell_of_a_map,
        a_waterfall_has_the_tlps_of_the_trace,
        a_waterfall_is_moved_by_keys_buttons_and_wheel,
        picture::a_blank_picture_is_refused,
    )
    .into())
}

fn opened(made: &Made, width: u32) -> Browser {
    let mut browser = Browser::start(width, false);
    browser.open_until(&made.file, "", made.is_ready);
    browser
}

/// The texts of all cells of a table, by row, without its head.
fn rows(browser: &mut Browser, selector: &str) -> Vec<Vec<String>> {
    let cells = browser.value(&format!(
        "Array.from(document.querySelector({}).tBodies[0].rows, (row) => Array.from(row.cells, (cell) => cell.textContent))",
        json!(selector)
    ));
    serde_json::from_value(cells).unwrap()
}

fn every_page_opens_without_an_error_or_a_request() {
    for made in Made::all() {
        let page = std::fs::read_to_string(&made.file).unwrap();
        assert!(page.len() < MOST_BYTES, "{}: {} bytes", made.name, page.len());
        let browser = opened(&made, 1200);
        assert_eq!(browser.complaints(), [""; 0], "{}", made.name);
        assert_eq!(browser.requests(), [format!("file://{}", made.file.display())], "{}", made.name);
    }
}

fn every_page_is_drawn_as_stored_and_a_blank_one_is_not() {
    for made in Made::all() {
        let mut browser = opened(&made, 1200);
        is_drawn_as_stored(&mut browser, &made);
    }
}

fn every_page_fits_a_phone_and_names_its_controls() {
    for made in Made::all() {
        let mut browser = opened(&made, 360);
        assert_eq!(browser.value("document.documentElement.scrollWidth"), 360, "{}", made.name);
        let tree = browser.call("Accessibility.getFullAXTree", &json!({}));
        let mut controls = 0;
        for node in tree["nodes"].as_array().unwrap() {
            let role = node["role"]["value"].as_str().unwrap_or_default();
            if ["combobox", "button", "checkbox"].contains(&role) {
                controls += 1;
                assert!(!node["name"]["value"].as_str().unwrap_or_default().is_empty(), "{}: {node}", made.name);
            }
        }
        assert!(controls > 1, "{}: {controls}", made.name);
    }
}

fn every_page_prints_its_tables() {
    for made in Made::all() {
        let mut browser = opened(&made, 1200);
        let printed = browser.call("Page.printToPDF", &json!({}));
        // `%PDF-` in base64.
        assert!(printed["data"].as_str().unwrap().starts_with("JVBERi0"), "{}", made.name);
        browser.call("Emulation.setEmulatedMedia", &json!({"media": "print"}));
        let hidden = browser.value(
            "Array.from(document.querySelectorAll('table')).filter((table) => \
             !table.checkVisibility({contentVisibilityAuto: true}) || table.getBoundingClientRect().height < 20 || \
             table.parentElement.scrollHeight > table.parentElement.clientHeight + 1).length",
        );
        assert_eq!(hidden, 0, "{}: tables that are hidden or cut", made.name);
        let tools =
            browser.value("Array.from(document.querySelectorAll('.tools')).filter((one) => one.offsetHeight).length");
        assert_eq!(tools, 0, "{}: buttons on paper", made.name);
    }
}

fn machines_have_the_medians_of_their_files() {
    let made = Made::machines();
    let mut browser = opened(&made, 1200);
    let question = "dma_read_bandwidth";
    let section = browser.value(&format!(
        "Array.from(document.querySelectorAll('.panel')).find((one) => one.querySelector('.legend code').textContent === '{question}').id"
    ));
    let section = section.as_str().unwrap();
    let shown = rows(&mut browser, &format!("#{section} details table"));
    let head = browser.value(&format!(
        "Array.from(document.querySelector('#{section} details table').tHead.rows[0].cells, (cell) => cell.textContent)"
    ));
    let mut compared = 0;
    for (place, (name, record)) in made::records().iter().enumerate() {
        let of_question = record.answers.iter().filter(|answer| answer.question == question);
        let Some(column) = head.as_array().unwrap().iter().position(|head| *head == format!("{name}, GB/s")) else {
            assert_eq!(of_question.count(), 0, "{name}");
            continue;
        };
        for answer in of_question {
            let figure = Unit::GigabytesPerSecond.figure(answer.delivered_rate_bytes_per_s.unwrap().median);
            let method = answer.method.to_string();
            let size = lanemark_units::figures::size(answer.size_bytes);
            let row = shown.iter().find(|row| row[0] == method && row[1] == size);
            assert_eq!(row.map(|row| row[column].as_str()), Some(&*figure), "{}: {method}, {size}", RECORDS[place]);
            compared += 1;
        }
    }
    assert!(compared > 10, "{compared}");
    let medians = rows(&mut browser, &format!("#{section} .medians table"));
    assert_eq!(
        medians.iter().map(|row| row.last().unwrap().as_str()).collect::<Vec<_>>()[..2],
        ["fastest", "nearest to it"]
    );
}

fn a_table_is_copied_as_csv() {
    for made in Made::all() {
        let mut browser = opened(&made, 1200);
        let permissions = json!({"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]});
        browser.call("Browser.grantPermissions", &permissions);
        browser.call("Emulation.setFocusEmulationEnabled", &json!({"enabled": true}));
        browser.value("document.querySelector('button.copy').click()");
        browser.value("new Promise((done) => setTimeout(() => done(true), 300))");
        assert_eq!(browser.value("document.querySelector('button.copy').textContent"), "copied", "{}", made.name);
        let text = browser.value("navigator.clipboard.readText()");
        let lines: Vec<&str> = text.as_str().unwrap().lines().collect();
        assert!(lines[0].starts_with(made.csv_head), "{}: {}", made.name, lines[0]);
        assert!(lines.len() > 2, "{}: {lines:?}", made.name);
    }
}

/// The cells of the map, as their texts when they have the focus.
fn cells(browser: &mut Browser) -> Vec<String> {
    let words = browser.value("Array.from(document.querySelectorAll('.map td'), (cell) => cell.dataset.words)");
    serde_json::from_value(words).unwrap()
}

fn cells_of_a_map_have_the_figures_of_the_log() {
    let made = Made::map();
    let mut browser = opened(&made, 1200);
    let shown = cells(&mut browser);
    let swept = made::swept();
    assert_eq!(shown.len(), swept.len());
    for row in &swept {
        let place = format!("dma.tags {}, link.mps_bytes {} B: ", row.varied["dma.tags"], row.varied["link.mps_bytes"]);
        let cell = shown.iter().find(|cell| cell.starts_with(&place)).unwrap_or_else(|| panic!("{place} {shown:?}"));
        match row.delivered_rate_bytes_per_s {
            Some(figure) => assert_eq!(*cell, format!("{place}{}; bound by {}", rate(figure), made::bound(row))),
            None => assert_eq!(*cell, format!("{place}no figure; 1 point without a figure: {}", made::REASON)),
        }
    }
    let csv = browser.value("document.querySelector('.map').csvOf()");
    let medians: Vec<f64> =
        csv.as_str().unwrap().lines().skip(1).filter_map(|line| line.split(',').nth(3)?.parse().ok()).collect();
    let mut expected: Vec<f64> = swept.iter().filter_map(|row| row.delivered_rate_bytes_per_s).collect();
    expected.sort_by(f64::total_cmp);
    let mut medians = medians;
    medians.sort_by(f64::total_cmp);
    assert_eq!(medians, expected);
}

fn chosen(browser: &mut Browser, select: &str, value: &str) {
    browser.value(&format!(
        "(() => {{ const one = document.getElementById('{select}'); \
         one.value = Array.from(one.options).find((option) => option.textContent === '{value}').value; \
         one.dispatchEvent(new Event('change', {{bubbles: true}})); }})()"
    ));
}

fn axes_of_a_map_are_exchanged_and_coloured_by_bottleneck() {
    let mut browser = opened(&Made::map(), 1200);
    let head = "document.querySelector('.map thead th').textContent";
    assert_eq!(browser.value(head), "link.mps_bytes ↓ dma.tags →");
    let mut before = cells(&mut browser);
    chosen(&mut browser, "map-x", "link.mps_bytes");
    assert_eq!(browser.value(head), "dma.tags ↓ link.mps_bytes →");
    let turned = |cell: &String| {
        let (place, rest) = cell.split_once(": ").unwrap();
        let (one, other) = place.split_once(", ").unwrap();
        format!("{other}, {one}: {rest}")
    };
    let mut after: Vec<String> = cells(&mut browser).iter().map(turned).collect();
    before.sort();
    after.sort();
    assert_eq!(after, before, "the same cells");
    assert_eq!(browser.value("document.querySelectorAll('.map td[class^=cause]').length"), 0);
    chosen(&mut browser, "map-by", "bottleneck");
    let with_figure = made::swept().iter().filter(|row| row.delivered_rate_bytes_per_s.is_some()).count();
    assert_eq!(browser.value("document.querySelectorAll('.map td[class^=cause]').length"), with_figure);
    assert_eq!(browser.complaints(), [""; 0]);
}

fn keys_move_from_cell_to_cell_of_a_map() {
    let mut browser = opened(&Made::map(), 1200);
    let info = "document.getElementById('map-info').textContent";
    browser.value("document.querySelector('.map td').focus()");
    let first = browser.value(info);
    assert!(first.as_str().unwrap().starts_with("dma.tags 8, link.mps_bytes 512 B: "), "the largest is above: {first}");
    browser.press("ArrowRight", 39);
    browser.press("ArrowDown", 40);
    let moved = browser.value(info);
    assert!(moved.as_str().unwrap().starts_with("dma.tags 16, link.mps_bytes 256 B: "), "{moved}");
    browser.press("ArrowLeft", 37);
    browser.press("ArrowUp", 38);
    assert_eq!(browser.value(info), first);
    browser.press("ArrowUp", 38);
    assert_eq!(browser.value(info), first, "there is nothing above");
}

fn a_map_shows_the_points_of_one_value_of_a_third_column() {
    let mut browser = opened(&Made::map_of_three(), 1200);
    chosen(&mut browser, "map-x", "dma.tags");
    chosen(&mut browser, "map-y", "link.mps_bytes");
    let words = "document.querySelector('.map td').dataset.words";
    let of_both = browser.value(words);
    assert!(of_both.as_str().unwrap().contains("(median of 2 points, "), "{of_both}");
    // The first cell has 8 tags and 512 B.
    for (latency, figure) in [("1", 1.312e9), ("2", 0.656e9)] {
        chosen(&mut browser, "map-only", &format!("link.latency_ns {latency}"));
        let one = browser.value(words);
        assert!(one.as_str().unwrap().contains(&rate(figure)) && !one.as_str().unwrap().contains("median"), "{one}");
        let caption = browser.value("document.querySelector('.map caption').textContent");
        assert!(caption.as_str().unwrap().ends_with(&format!(", link.latency_ns {latency} only")), "{caption}");
    }
    let csv = browser.value("document.querySelector('.map').csvOf()");
    assert!(csv.as_str().unwrap().starts_with("dma.tags,link.mps_bytes,link.latency_ns,points,"), "{csv}");
    // The third column becomes an axis: its value is not selected any more.
    chosen(&mut browser, "map-y", "link.latency_ns");
    assert_eq!(browser.value("document.getElementById('map-only').value"), "");
    assert_eq!(browser.complaints(), [""; 0]);
}

fn a_waterfall_has_the_tlps_of_the_trace() {
    let made = Made::waterfall();
    let mut browser = opened(&made, 1200);
    let trace = made::traced().trace;
    let shown = rows(&mut browser, ".tlps table");
    assert_eq!(shown.len(), trace.frames.len());
    for (row, frame) in shown.iter().zip(&trace.frames) {
        assert_eq!(row[0], format!("{:.1}", frame.starts.as_ns()));
        assert_eq!(row[4], frame.direction.name());
    }
    let drawn = browser.value("document.querySelectorAll('.waterfall rect.tlp').length");
    assert_eq!(drawn, trace.frames.len());
}

/// The time that a waterfall shows, in nanoseconds.
fn shown_time(browser: &mut Browser) -> [f64; 2] {
    let shown = browser
        .value("(({from, until}) => [Number(from), Number(until)])(document.querySelector('.waterfall').dataset)");
    serde_json::from_value::<[f64; 2]>(shown).unwrap()
}

fn assert_time(browser: &mut Browser, expected: [f64; 2]) {
    let shown = shown_time(browser);
    let is_near = shown.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-6);
    assert!(is_near, "{shown:?} is shown instead of {expected:?}");
}

fn a_waterfall_is_moved_by_keys_buttons_and_wheel() {
    let mut browser = opened(&Made::waterfall(), 1200);
    let [from, until] = shown_time(&mut browser);
    assert!(from == 0.0 && until > 1000.0, "{from} {until}");
    browser.value("document.querySelector('.waterfall').focus()");
    browser.press("+", 187);
    assert_time(&mut browser, [until / 4.0, until * 3.0 / 4.0]);
    browser.press("ArrowRight", 39);
    assert_time(&mut browser, [until * 3.0 / 8.0, until * 7.0 / 8.0]);
    browser.value("document.querySelector('[data-act=out]').click()");
    // No time outside the trace is shown.
    assert_time(&mut browser, [0.0, until]);
    let top = browser.value("document.querySelector('.waterfall').getBoundingClientRect().top + 20");
    let wheel = json!({"type": "mouseWheel", "x": 700, "y": top, "deltaX": 0, "deltaY": -100});
    browser.call("Input.dispatchMouseEvent", &wheel);
    browser.press("F1", 112);
    let [from, until_zoomed] = shown_time(&mut browser);
    assert!((until_zoomed - from - 0.8 * until).abs() < 1e-6, "{from} {until_zoomed}");
    browser.value("document.querySelector('.waterfall').focus()");
    browser.press("n", 78);
    browser.press("n", 78);
    let info = browser.value("document.querySelector('.waterfall-info').textContent");
    let info = info.as_str().unwrap();
    for fact in ["TLP 2 of", "MRd 4096 B at 0x", "tag 1", "on the link", "card up"] {
        assert!(info.contains(fact), "{fact}: {info}");
    }
    let selected: Value = browser.value("document.querySelectorAll('.waterfall .selected').length");
    assert_eq!(selected, 1);
    assert_eq!(browser.complaints(), [""; 0]);
}
