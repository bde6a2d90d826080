//! Does a page with sliders work in a browser? (`make test-browser`)

use lanemark_checks::browser::{Browser, is_here};
use lanemark_checks::live_page::{formula, from_base64, module, predicted};
use lanemark_checks::root;
use lanemark_checks::trials;
use lanemark_checks::trials::{Available, run};
use lanemark_record::Answer;
use lanemark_report::{AnswerTrace, Traced, answers_to_trace, html, html_with_traces};
use lanemark_runner::{Cancel, TracedCase, platform, trace_again};
use lanemark_units::figures::Unit;
use std::path::PathBuf;
use std::process::ExitCode;
use tempfile::TempDir;

const PLATFORM: &str = "card-gen5-x16";
/// Questions of the reference record whose answers are traced.
const TRACED: [&str; 2] = ["dma_read_bandwidth", "dma_write_bandwidth"];
const QUESTIONS: [&str; 2] = ["dma_read_bandwidth", "mmio_read_latency"];

fn main() -> ExitCode {
    let (_folder, page) = page();
    let has_module = module(&std::fs::read_to_string(page).unwrap()).is_some();
    let live = if has_module { Ok(()) } else { Err("the live part of pages: LANEMARK_LIVE=1".to_owned()) };
    let available = Available::unless("LANEMARK_SKIPPED_BROWSER")
        .and(&Available::new(live, "LANEMARK_REQUIRE_BROWSER"))
        .and(&Available::new(is_here(), "LANEMARK_REQUIRE_BROWSER"));
    run(trials!(available;
        a_page_opens_without_an_error_or_a_request,
        a_key_moves_the_numbers_to_those_of_predict,
        a_link_restores_the_sliders_and_refuses_what_they_cannot_be,
        limits_move_with_a_key_to_those_of_predict,
        a_slider_redraws_the_plot_in_light_and_dark,
        the_page_of_a_record_has_waterfalls_to_zoom,
        a_page_is_dark_where_the_system_is,
        a_printed_page_lists_its_tlps_and_folded_tables_and_has_no_buttons,
        nothing_is_wider_than_a_phone,
        every_control_has_a_name_for_a_screen_reader,
        the_picture_of_the_readme_shows_the_page_of_this_build,
    )
    .into())
}

fn page() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    std::fs::write(&file, html(&predicted(PLATFORM, &QUESTIONS, &[]).unwrap(), &[]).unwrap()).unwrap();
    (folder, file)
}

/// The figures of the formulas of the first question, as `lanemark predict` prints them.
fn expected(with: &[(&str, &str)]) -> Vec<String> {
    let with: Vec<(String, String)> =
        with.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let record = predicted(PLATFORM, &QUESTIONS, &with).unwrap();
    let of_first = record.answers.iter().filter(|answer| answer.question == QUESTIONS[0]);
    let text = |answer: &Answer| Unit::GigabytesPerSecond.figure(formula(answer).unwrap());
    of_first.map(text).collect()
}

/// The changed figures in the table of the page.
fn shown(browser: &mut Browser) -> Vec<String> {
    let cells = browser
        .value("Array.from(document.querySelectorAll('.live-figures tbody tr'), (row) => row.cells[4].textContent)");
    cells.as_array().unwrap().iter().map(|cell| cell.as_str().unwrap().to_owned()).collect()
}

fn a_page_opens_without_an_error_or_a_request() {
    let (_folder, file) = page();
    let mut browser = Browser::start(1200, false);
    browser.open(&file, "");
    assert_eq!(browser.complaints(), [""; 0]);
    assert_eq!(browser.requests(), [format!("file://{}", file.display())]);
    assert_eq!(shown(&mut browser), expected(&[]));
}

fn a_key_moves_the_numbers_to_those_of_predict() {
    let (_folder, file) = page();
    let mut browser = Browser::start(1200, false);
    browser.open(&file, "");
    browser.value("document.querySelector('[name=\"link.width_lanes\"]').focus()");
    for lanes in ["12", "8", "4"] {
        browser.press("ArrowLeft", 37);
        assert_eq!(shown(&mut browser), expected(&[("link.width_lanes", lanes)]), "{lanes} lanes");
    }
    browser.press("Tab", 9);
    browser.press("ArrowLeft", 37);
    assert_eq!(shown(&mut browser), expected(&[("link.width_lanes", "4"), ("link.mps_bytes", "256")]));
    browser.value("document.querySelector('.reset').click()");
    assert_eq!(shown(&mut browser), expected(&[]));
    assert_eq!(browser.complaints(), [""; 0]);
}

/// The limits of the answers of the first question, as figures.
fn limits(with: &[(&str, &str)]) -> Vec<String> {
    let with: Vec<(String, String)> =
        with.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let record = predicted(PLATFORM, &QUESTIONS, &with).unwrap();
    let of_first = record.answers.iter().filter(|answer| answer.question == QUESTIONS[0]);
    of_first.map(|answer| Unit::GigabytesPerSecond.figure(answer.ceiling.rate_bytes_per_s.unwrap())).collect()
}

fn limits_move_with_a_key_to_those_of_predict() {
    let (_folder, file) = page();
    let mut browser = Browser::start(1200, false);
    browser.open(&file, "");
    let shown = |browser: &mut Browser| {
        let cells = browser.value(
            "Array.from(document.querySelectorAll('.live-figures tbody tr'), (row) => row.cells[7].textContent)",
        );
        cells.as_array().unwrap().iter().map(|cell| cell.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(shown(&mut browser), limits(&[]));
    browser.value("document.querySelector('[name=\"link.width_lanes\"]').focus()");
    browser.press("ArrowLeft", 37);
    browser.press("ArrowLeft", 37);
    assert_eq!(shown(&mut browser), limits(&[("link.width_lanes", "8")]));
    assert_ne!(limits(&[("link.width_lanes", "8")]), limits(&[]));
    assert_eq!(browser.complaints(), [""; 0]);
}

/// The page of a reference record, with sliders and waterfalls.
fn written() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    let mut record = lanemark_record::read(&root().join("records/simulated-card-gen5-x16.json")).unwrap();
    record.answers.retain(|answer| TRACED.contains(&answer.question.as_str()));
    let platform = platform(PLATFORM).unwrap();
    let cases: Vec<(usize, TracedCase)> = answers_to_trace(&record)
        .into_iter()
        .map(|answer| {
            let traced = trace_again(&platform, &record.answers[answer], None, &Cancel::default()).unwrap();
            (answer, traced.unwrap())
        })
        .collect();
    let traces: Vec<AnswerTrace> = cases
        .iter()
        .map(|(answer, case)| AnswerTrace {
            answer: *answer,
            traced: Traced {
                target: &case.target,
                question: &record.answers[*answer].question,
                method: &case.case.method,
                size_bytes: case.case.size,
                passes: case.passes,
                case: (case.nth, case.cases),
                sample: case.sample,
                trace: &case.trace,
                error: None,
            },
        })
        .collect();
    assert_eq!(traces.len(), TRACED.len());
    std::fs::write(&file, html_with_traces(&record, &[], &traces).unwrap()).unwrap();
    (folder, file)
}

fn the_page_of_a_record_has_waterfalls_to_zoom() {
    let (_folder, file) = written();
    let mut browser = Browser::start(1200, false);
    browser.open_until(&file, "", "document.querySelectorAll('.trace').length > 0");
    assert_eq!(browser.value("document.querySelectorAll('details.trace').length"), TRACED.len());
    browser.value("document.querySelectorAll('details.trace').forEach((one) => { one.open = true; })");
    // Drawn when its size is known, and listed when it is unfolded.
    browser.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
    browser.press("F1", 112);
    let drawn =
        "Array.from(document.querySelectorAll('details.trace'), (one) => one.querySelectorAll('rect.tlp').length)";
    let listed =
        "Array.from(document.querySelectorAll('details.trace'), (one) => one.querySelectorAll('tbody tr').length)";
    let (drawn, listed) = (browser.value(drawn), browser.value(listed));
    assert_eq!(drawn, listed);
    assert!(drawn.as_array().unwrap().iter().all(|count| count.as_u64() > Some(1)), "{drawn}");
    let until = "Number(document.querySelector('.waterfall').dataset.until)";
    let whole = browser.value(until).as_f64().unwrap();
    browser.value("document.querySelector('.waterfall').focus()");
    browser.press("+", 187);
    assert!((browser.value(until).as_f64().unwrap() - 0.75 * whole).abs() < 1e-6 * whole);
    assert_eq!(browser.complaints(), [""; 0]);
    assert_eq!(browser.requests(), [format!("file://{}", file.display())]);
}

fn a_page_is_dark_where_the_system_is() {
    let (_folder, file) = written();
    let luminance = "(() => { const of = (colour) => { const [r, g, b] = colour.match(/[0-9.]+/g).map(Number); \
        return (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255; }; \
        const style = getComputedStyle(document.body); return [of(style.backgroundColor), of(style.color)]; })()";
    for is_dark in [false, true] {
        let mut browser = Browser::start(1200, is_dark);
        browser.open_until(&file, "", "document.querySelectorAll('.plot canvas').length > 0");
        let [ground, ink] = serde_json::from_value::<[f64; 2]>(browser.value(luminance)).unwrap();
        assert_eq!(ground < ink, is_dark, "ground {ground}, ink {ink}");
        assert!((ground - ink).abs() > 0.5, "too little contrast: ground {ground}, ink {ink}");
    }
}

fn a_printed_page_lists_its_tlps_and_folded_tables_and_has_no_buttons() {
    let (_folder, file) = written();
    let mut browser = Browser::start(1200, false);
    browser.open_until(&file, "", "document.querySelectorAll('.plot canvas').length > 0");
    let printed = |browser: &mut Browser| {
        let document = browser.call("Page.printToPDF", &serde_json::json!({}));
        let document = document["data"].as_str().unwrap().to_owned();
        // `%PDF-` in base64.
        assert!(document.starts_with("JVBERi0"));
        document.len()
    };
    let whole = printed(&mut browser);
    let folded = "details:not([open])::details-content { content-visibility: hidden !important; }";
    browser.value(&format!(
        "document.head.append(Object.assign(document.createElement('style'), {{textContent: '{folded}'}}))"
    ));
    let without = printed(&mut browser);
    assert!(whole > without, "folded tables are not printed: {whole} characters, {without} without them");
    let listed = browser.value("document.querySelectorAll('details.trace tbody tr').length");
    assert!(listed.as_u64().unwrap() > 2, "the TLPs are listed for the paper: {listed}");
    browser.call("Emulation.setEmulatedMedia", &serde_json::json!({"media": "print"}));
    let tools =
        browser.value("Array.from(document.querySelectorAll('.tools')).filter((one) => one.offsetHeight).length");
    assert_eq!(tools, 0, "buttons on paper");
}

fn a_link_restores_the_sliders_and_refuses_what_they_cannot_be() {
    let (_folder, file) = page();
    let mut browser = Browser::start(1200, false);
    browser.open(&file, "#what-if:card-gen5-x16:link.width_lanes=2,dma.send_buffers=1");
    assert_eq!(shown(&mut browser), expected(&[("link.width_lanes", "2"), ("dma.send_buffers", "1")]));
    browser.value(
        "document.querySelector('[name=\"link.width_lanes\"]').dispatchEvent(new Event('change', {bubbles: true}))",
    );
    assert_eq!(browser.value("location.hash"), "#what-if:card-gen5-x16:link.width_lanes=2,dma.send_buffers=1");
    browser.open(&file, "#what-if:card-gen5-x16:link.width_lanes=3,nothing=1");
    let state = browser.value("document.querySelector('.live-state').textContent");
    assert!(
        state.as_str().unwrap().ends_with("values that this page does not: link.width_lanes=3, nothing=1"),
        "{state}"
    );
    assert_eq!(shown(&mut browser), expected(&[]));
    browser.open(&file, "#what-if:%");
    assert_eq!(browser.complaints(), [""; 0], "a broken link is ignored");
}

/// A hash of the pixels of the first plot, and the number of colours in it.
const PIXELS: &str = "(() => {
    const canvas = document.querySelector('.plot canvas');
    const pixels = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer);
    return [pixels.reduce((hash, pixel) => (Math.imul(hash, 31) + pixel) | 0, 7), new Set(pixels).size];
})()";

fn a_slider_redraws_the_plot_in_light_and_dark() {
    let (_folder, file) = page();
    for is_dark in [false, true] {
        let mut browser = Browser::start(1200, is_dark);
        browser.open(&file, "");
        let before = browser.value(PIXELS);
        assert!(before[1].as_u64().unwrap() > 20, "the plot is blank: {before}");
        browser.value("document.querySelector('[name=\"link.width_lanes\"]').focus()");
        browser.press("ArrowLeft", 37);
        let moved = browser.value(PIXELS);
        assert_ne!(moved, before, "no curve has moved");
        browser.press("ArrowRight", 39);
        assert_eq!(browser.value(PIXELS), before, "the curve has not moved back");
    }
}

fn nothing_is_wider_than_a_phone() {
    let (_folder, file) = page();
    let mut browser = Browser::start(360, true);
    browser.open(&file, "");
    assert_eq!(browser.value("document.documentElement.scrollWidth"), 360);
    let (_folder, file) = written();
    browser.open_until(&file, "", "document.querySelectorAll('.plot canvas').length > 0");
    browser.value("document.querySelectorAll('details').forEach((one) => { one.open = true; })");
    browser.press("F1", 112);
    assert_eq!(browser.value("document.documentElement.scrollWidth"), 360, "with everything unfolded");
}

fn every_control_has_a_name_for_a_screen_reader() {
    let (_folder, file) = page();
    let mut browser = Browser::start(1200, false);
    browser.open(&file, "");
    let tree = browser.call("Accessibility.getFullAXTree", &serde_json::json!({}));
    let mut controls = 0;
    for node in tree["nodes"].as_array().unwrap() {
        let role = node["role"]["value"].as_str().unwrap_or_default();
        if ["slider", "combobox", "button", "checkbox"].contains(&role) {
            controls += 1;
            assert!(!node["name"]["value"].as_str().unwrap_or_default().is_empty(), "{node}");
        }
    }
    assert!(controls > 15, "{controls}");
}

/// The picture, from the repository's root, and the address of the state that it shows.
const PICTURE: &str = "docs/report.png";
const STATE: &str = "#what-if:card-gen5-x16:link.width_lanes=8";
/// Largest picture, in bytes.
const MOST_BYTES: usize = 200 << 10;
/// Largest sum of differences of coarse cells, as a share of the sum of the picture's: fonts and rounding.
const TOLERANCE: f64 = 0.2;

fn difference(one: &[Vec<u32>], other: &[Vec<u32>]) -> f64 {
    let sum: u32 = one.iter().flatten().sum();
    let pairs = one.iter().flatten().zip(other.iter().flatten());
    f64::from(pairs.map(|(one, other)| one.abs_diff(*other)).sum::<u32>()) / f64::from(sum)
}

fn the_picture_of_the_readme_shows_the_page_of_this_build() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    let mut record = lanemark_record::read(&root().join("records/simulated-card-gen5-x16.json")).unwrap();
    record.answers.retain(|answer| answer.question == QUESTIONS[0]);
    std::fs::write(&file, html(&record, &[]).unwrap()).unwrap();
    let mut browser = Browser::start(1000, false);
    browser.open(&file, STATE);
    let place = browser.value(
        "(() => { const [from, to] = ['.live', '.panel .plot'].map((one) => document.querySelector(one).getBoundingClientRect()); \
         return [0, from.top + scrollY, 1000, to.bottom - from.top + 10]; })()",
    );
    let shown = browser.screenshot(serde_json::from_value(place).unwrap());
    let path = root().join(PICTURE);
    if std::env::var_os("LANEMARK_BLESS").is_some() {
        std::fs::write(&path, from_base64(&shown)).unwrap();
    }
    let stored = std::fs::read(&path).unwrap();
    assert!(stored.len() < MOST_BYTES, "{PICTURE}: {} bytes", stored.len());
    let stored = to_base64(&stored);
    let (stored, shown) = (browser.cells_of(&stored, 24, 24), browser.cells_of(&shown, 24, 24));
    let found = difference(&stored, &shown);
    assert!(
        found < TOLERANCE,
        "{PICTURE} shows another page than the program, {found:.2}; draw it again by: make picture"
    );
    let blank = vec![vec![0; 24]; 24];
    assert!(difference(&stored, &blank) > TOLERANCE, "the picture is blank");
}

fn to_base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let word = three.iter().fold(0, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for digit in 0..4 {
            let place = (word >> (18 - 6 * digit) & 63) as usize;
            text.push(if digit <= three.len() { char::from(DIGITS[place]) } else { '=' });
        }
    }
    text
}
