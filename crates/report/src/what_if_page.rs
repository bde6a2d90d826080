//! The live part of a page: sliders, and the answers whose formulas follow them.

use crate::figures;
use crate::panel::{Panel, Point};
use lanemark_live::{Live, Slider};
use lanemark_record::{Record, Target};
use serde_json::{Value, json};

/// The formulas as WebAssembly, compressed and as text; empty if this program was built without them.
pub(crate) const MODULE: &str = include_str!(concat!(env!("OUT_DIR"), "/live.txt"));

/// Reason why this program was built without [`MODULE`]; empty if it has it.
const NO_MODULE: &str = env!("LANEMARK_NO_LIVE");

/// Largest relative difference between a formula of the record and the same one computed again: only rounding.
const SAME: f64 = 1e-9;

/// The sliders of one target.
pub(crate) struct WhatIfPage {
    /// Number of the target on the page.
    pub(crate) place: usize,
    pub(crate) target: String,
    /// The most important keys.
    pub(crate) sliders: Vec<Slider>,
    /// The other keys.
    pub(crate) others: Vec<Slider>,
    /// Panel numbers and titles.
    pub(crate) panels: Vec<(usize, String)>,
    /// Number of formulas of the record that cannot be computed again.
    pub(crate) left_out: usize,
    /// Reason why there are no sliders.
    pub(crate) because: Option<String>,
    /// Input of the script of the page: the platform and the points of its panels.
    data: Value,
}

impl WhatIfPage {
    /// The sliders of a target whose platform is in the record; `None` for other targets, and without formulas.
    pub(crate) fn of(record: &Record, place: usize, target: &Target, panels: &[Panel]) -> Option<WhatIfPage> {
        let platform = target.platform.as_ref()?;
        let own = || panels.iter().enumerate().filter(|(_, panel)| panel.target == target.name);
        own()
            .flat_map(|(_, panel)| &panel.lines)
            .flat_map(|line| &line.points)
            .find(|point| point.formula().is_some())?;
        let mut page = WhatIfPage {
            place,
            target: target.name.clone(),
            sliders: Vec::new(),
            others: Vec::new(),
            panels: Vec::new(),
            left_out: 0,
            because: None,
            data: Value::Null,
        };
        if MODULE.is_empty() {
            let because = format!("this program was built without them: {NO_MODULE}");
            return Some(WhatIfPage { because: Some(because), ..page });
        }
        let mut live = match Live::of(platform) {
            Ok(live) => live,
            Err(error) => return Some(WhatIfPage { because: Some(error.to_string()), ..page }),
        };
        let region = requested_region(&record.command);
        let mut opened = Vec::new();
        for (number, panel) in own() {
            let (points, rows) = page.points(&mut live, panel, region);
            if !points.is_empty() {
                page.panels.push((number, panel.title()));
                let limiting = limiting(panel, &rows);
                opened.push(json!({
                    "place": number, "unit": panel.unit.symbol(), "points": points, "rows": rows, "limiting": limiting
                }));
            }
        }
        if opened.is_empty() {
            let because = "none of the formulas of the record is one of this program";
            return Some(WhatIfPage { because: Some(because.to_owned()), ..page });
        }
        let sliders = live.sliders();
        page.data = json!({"target": target.name, "platform": platform, "panels": opened, "sliders": sliders});
        (page.sliders, page.others) = sliders.into_iter().partition(|slider| slider.label.is_some());
        Some(page)
    }

    /// The points of a panel that are computed again, and of each its line, size and figures.
    fn points(
        &mut self,
        live: &mut Live,
        panel: &Panel,
        region: Option<&str>,
    ) -> (Vec<lanemark_live::Point>, Vec<Value>) {
        let sizes = panel.sizes();
        let (mut points, mut rows) = (Vec::new(), Vec::new());
        for (place, line) in panel.lines.iter().enumerate() {
            for point in &line.points {
                let Some(formula) = point.formula() else { continue };
                let Some(again) = again(live, point, formula, region) else {
                    self.left_out += 1;
                    continue;
                };
                let size = point.answer.size_bytes;
                rows.push(json!({
                    "line": place,
                    "size": sizes.iter().position(|other| *other == size),
                    "name": line.name,
                    "size_name": figures::size(size),
                    "figure": point.value.map(|value| panel.unit.figure(value)),
                    "formula": formula / panel.unit.in_base(),
                    "formula_text": panel.unit.figure(formula),
                }));
                points.push(again);
            }
        }
        (points, rows)
    }
}

/// The row with the highest limit at each size: the line of limits in the plot is that of these answers.
fn limiting(panel: &Panel, rows: &[Value]) -> Vec<usize> {
    let limit = |row: &Value| {
        let line = panel.lines.get(usize::try_from(row["line"].as_u64()?).ok()?)?;
        let size = panel.sizes().get(usize::try_from(row["size"].as_u64()?).ok()?).copied()?;
        line.at(size)?.answer.ceiling.rate_bytes_per_s
    };
    let mut highest: Vec<(&Value, usize, f64)> = Vec::new();
    for (place, row) in rows.iter().enumerate().filter(|_| panel.is_rate()) {
        let Some(limit) = limit(row) else { continue };
        match highest.iter_mut().find(|(size, ..)| **size == row["size"]) {
            Some((_, at, most)) if limit > *most => (*at, *most) = (place, limit),
            Some(_) => {}
            None => highest.push((&row["size"], place, limit)),
        }
    }
    highest.into_iter().map(|(_, place, _)| place).collect()
}

/// The point of an answer, if its formula can be computed again.
fn again(live: &mut Live, point: &Point, formula: f64, region: Option<&str>) -> Option<lanemark_live::Point> {
    let answer = point.answer;
    let possible = [None, Some(answer.passes)].into_iter();
    let mut points = possible.map(|iterations| lanemark_live::Point::of(answer, iterations, region.map(str::to_owned)));
    points.find(|point| live.figure(point).is_ok_and(|figure| (figure.value / formula - 1.0).abs() <= SAME))
}

/// The region that a command requested: the text after `--region`.
#[must_use]
pub fn requested_region(command: &[String]) -> Option<&str> {
    let mut words = command.iter();
    while let Some(word) = words.next() {
        if word == "--region" {
            return words.next().map(String::as_str);
        }
        if let Some(name) = word.strip_prefix("--region=") {
            return Some(name);
        }
    }
    None
}

/// The data of all targets with sliders.
pub(crate) fn data(pages: &[Option<WhatIfPage>]) -> Value {
    pages.iter().flatten().filter(|page| page.because.is_none()).map(|page| page.data.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_region_of_a_command_is_the_word_after_its_option() {
        let region = |line: &str| {
            let command: Vec<String> = line.split(' ').map(str::to_owned).collect();
            requested_region(&command).map(str::to_owned)
        };
        assert_eq!(region("lanemark bench --region sram --json"), Some("sram".to_owned()));
        assert_eq!(region("lanemark bench --region=ddr"), Some("ddr".to_owned()));
        assert_eq!(region("lanemark bench --regions sram"), None);
        assert_eq!(region("lanemark bench --region"), None);
    }

    #[test]
    fn a_platform_that_is_none_has_no_sliders_and_says_why() {
        let mut record = fixture::record();
        let panels = Panel::of(&record);
        let of = |place: usize| WhatIfPage::of(&record, place, &record.targets[place], &panels);
        let page = of(0).unwrap();
        assert!(page.because.is_some() && page.sliders.is_empty());
        assert!(of(1).is_none(), "a target without a platform has no section");
        drop(panels);
        record.answers.iter_mut().for_each(|answer| answer.formula = None);
        let panels = Panel::of(&record);
        assert!(WhatIfPage::of(&record, 0, &record.targets[0], &panels).is_none(), "nor has one without formulas");
    }
}
