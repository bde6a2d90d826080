//! A page with sliders in headless Chromium: its size, the time until its sliders work, and the time of a move.

use super::{ROUNDS, row};
use lanemark_checks::browser::{Browser, is_here};
use lanemark_checks::live_page::{module, predicted};
use lanemark_report::html;
use serde_json::Value;

/// Questions whose curves the sliders move.
const QUESTIONS: [&str; 2] = ["dma_read_bandwidth", "mmio_read_latency"];

/// Moves a slider by one step forth and back, each time from the begin of a frame until the layout after the plot was drawn.
const MOVES: &str = r#"(async () => {
    const slider = document.querySelector('[name="link.width_lanes"]');
    const taken = [];
    for (const step of [-1, 1, -1, 1, -1, 1, -1, 1]) {
        taken.push(await new Promise((done) => {
            let begun;
            requestAnimationFrame(() => { begun = performance.now(); });
            slider.value = Number(slider.value) + step;
            slider.dispatchEvent(new Event("input", { bubbles: true }));
            requestAnimationFrame(() => { document.body.offsetHeight; done(performance.now() - begun); });
        }));
    }
    return taken;
})()"#;

pub fn page() {
    if let Err(because) = taken() {
        println!("  skipped: the page in a browser, {because}");
    }
}

fn taken() -> Result<(), String> {
    is_here().map_err(|missing| format!("because {missing}"))?;
    let page = html(&predicted("card-gen5-x16", &QUESTIONS, &[])?, &[]).map_err(|error| error.to_string())?;
    if module(&page).is_none() {
        return Err("because this build has no live part: LANEMARK_LIVE=1".to_owned());
    }
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = folder.path().join("page.html");
    std::fs::write(&file, &page).map_err(|error| error.to_string())?;
    row("page with sliders, kB (target: 3000)", vec![page.len() as f64 / 1e3]);
    let mut browser = Browser::start(1200, false);
    let opened = (0..ROUNDS).map(|_| 1e3 * browser.open(&file, "").as_secs_f64()).collect();
    row("  opened from file:// until its sliders work, ms (target: 1000)", opened);
    let moves = browser.value(MOVES);
    let moves = moves.as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    row("  a slider moved by one step, all curves and tables, ms (target: 16)", moves);
    Ok(())
}
