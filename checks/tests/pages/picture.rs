//! Pictures of pages as coarse cells, compared with stored ones.

use crate::made::Made;
use lanemark_checks::browser::Browser;
use lanemark_checks::root;

const COLUMNS: u32 = 24;
const ROWS: u32 = 12;
/// Largest sum of differences, as a share of the sum of the stored cells. A blank picture differs by all of it.
const TOLERANCE: f64 = 0.25;

/// Compares the picture of a page with `checks/tests/pages/<name>.txt`; `LANEMARK_BLESS=1` stores it.
pub fn is_drawn_as_stored(browser: &mut Browser, made: &Made) {
    let cells = browser.cells(made.picture, COLUMNS, ROWS);
    let file = root().join(format!("checks/tests/pages/{}.txt", made.name));
    let line = |row: &Vec<u32>| row.iter().map(|cell| format!("{cell:2}")).collect::<Vec<_>>().join(" ");
    let text = cells.iter().map(line).collect::<Vec<_>>().join("\n") + "\n";
    if std::env::var_os("LANEMARK_BLESS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let stored = std::fs::read_to_string(&file).unwrap();
    let stored: Vec<Vec<u32>> =
        stored.lines().map(|line| line.split_whitespace().map(|cell| cell.parse().unwrap()).collect()).collect();
    let difference = difference(&stored, &cells);
    assert!(difference < TOLERANCE, "{} is drawn differently, {difference:.2}:\n{text}", made.name);
    browser.value(&format!("document.querySelector('{}').replaceChildren()", made.picture));
    browser.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))");
    let height = browser.value(&format!("document.querySelector('{}').getBoundingClientRect().height", made.picture));
    if height.as_f64().is_some_and(|height| height > 1.0) {
        let blank = browser.cells(made.picture, COLUMNS, ROWS);
        assert!(self::difference(&stored, &blank) > 0.9, "{}: a blank picture is not noticed", made.name);
    }
}

/// Sum of all differences over the sum of the stored cells.
fn difference(stored: &[Vec<u32>], cells: &[Vec<u32>]) -> f64 {
    let all = |cells: &[Vec<u32>]| cells.iter().flatten().copied().collect::<Vec<u32>>();
    let (stored, cells) = (all(stored), all(cells));
    assert_eq!(stored.len(), cells.len());
    let sum: u32 = stored.iter().sum();
    let differences: u32 = stored.iter().zip(&cells).map(|(one, other)| one.abs_diff(*other)).sum();
    f64::from(differences) / f64::from(sum)
}

pub fn a_blank_picture_is_refused() {
    for name in ["machines", "map", "waterfall"] {
        let stored = std::fs::read_to_string(root().join(format!("checks/tests/pages/{name}.txt"))).unwrap();
        let stored: Vec<Vec<u32>> =
            stored.lines().map(|line| line.split_whitespace().map(|cell| cell.parse().unwrap()).collect()).collect();
        assert!(difference(&stored, &stored) < TOLERANCE);
        let blank: Vec<Vec<u32>> = stored.iter().map(|row| vec![0; row.len()]).collect();
        assert!(difference(&stored, &blank) > TOLERANCE, "{name}");
        // Nothing but axes and text: half of what the stored picture has.
        let half: Vec<Vec<u32>> = stored.iter().map(|row| row.iter().map(|cell| cell / 2).collect()).collect();
        assert!(difference(&stored, &half) > TOLERANCE, "{name}");
    }
}
