//! Data of the plots in a page: every answer of every panel.

use crate::figures;
use crate::panel::{Panel, Point, words};
use serde_json::{Value, json};

/// The plots of `panels`, by panel index: unit, sizes and limits, and per method its figures,
/// formula figures and tips. Everything is computed here; the script only draws.
pub(crate) fn charts(panels: &[Panel]) -> Value {
    panels.iter().map(chart).collect()
}

fn chart(panel: &Panel) -> Value {
    let sizes = panel.sizes();
    let scaled = |value: Option<f64>| value.map(|value| value / panel.unit.in_base());
    let lines: Vec<Value> = panel
        .lines
        .iter()
        .map(|line| {
            let points: Vec<Option<Point>> = sizes.iter().map(|size| line.at(*size)).collect();
            json!({
                "name": line.name,
                "largest": line.largest().value.map(|value| panel.unit.figure(value)),
                "values": points.iter().map(|point| scaled(point.and_then(|p| p.value))).collect::<Vec<_>>(),
                "formulas": points.iter().map(|point| scaled(point.and_then(|p| p.formula()))).collect::<Vec<_>>(),
                "tips": points.iter().map(|point| point.map(|p| tip(panel, p))).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "unit": panel.unit.symbol(),
        "quantity": panel.quantity_in_words(),
        "more_is_better": panel.is_rate(),
        "only_formulas": panel.kind == Some(lanemark_record::TargetKind::Formula),
        "sizes": sizes,
        "size_names": sizes.iter().map(|size| figures::size(*size)).collect::<Vec<_>>(),
        "limits": sizes.iter().map(|size| scaled(limit(panel, *size))).collect::<Vec<_>>(),
        "limit_name": panel.lines.first().and_then(|line| line.largest().answer.ceiling.rate_bytes_per_s)
            .map(|rate| format!("limit {}", figures::rate(rate))),
        "lines": lines,
    })
}

/// The highest limit of any method at `size`; the tips of other methods name their own limits.
fn limit(panel: &Panel, size: u64) -> Option<f64> {
    let points = panel.lines.iter().filter_map(|line| line.at(size));
    points.filter_map(|point| point.answer.ceiling.rate_bytes_per_s).reduce(f64::max).filter(|_| panel.is_rate())
}

/// The lines of a point's tip, the figure first.
fn tip(panel: &Panel, point: Point) -> Vec<String> {
    let answer = point.answer;
    let unit = panel.unit;
    let mut lines = vec![match (point.value, point.mad()) {
        (None, _) => "no figure".to_owned(),
        (Some(value), Some(mad)) => {
            format!("{} (median, MAD {})", unit.figure_with_symbol(value), unit.figure(mad))
        }
        (Some(value), None) => unit.figure_with_symbol(value),
    }];
    if let Some(interval) = point.ci95_in(unit) {
        lines.push(format!("ci95 of the median: {interval} {}", unit.symbol()));
    }
    lines.extend(answer.doubts.iter().map(|doubt| format!("doubtful: {}", doubt.text)));
    if let Some(issue) = answer.issue_rate_bytes_per_s {
        lines.push(format!("issue rate {}", figures::rate(issue.median)));
    }
    if let (Some(share), Some(limit)) = (answer.share_of_ceiling_percent, answer.ceiling.rate_bytes_per_s) {
        lines.push(format!("{} of the limit, {}", figures::percent(share), figures::rate(limit)));
    }
    if let (Some(formula), Some(difference)) = (point.formula(), point.formula_difference_percent()) {
        lines.push(format!("formula {} ({})", unit.figure_with_symbol(formula), figures::difference(difference)));
    }
    if let Some(bound) = answer.formula.as_ref().and_then(|formula| formula.bound.as_ref()) {
        lines.push(format!("bound by: {bound}"));
    }
    for wait in answer.waits.iter().take(2) {
        lines.push(format!("stalls: {} {}", words(&wait.cause), figures::whole_percent(wait.share_percent)));
    }
    lines
}

/// `value` as JSON that is safe inside a `<script>`: without `<`, no string of a record can close
/// the element or open a comment.
///
/// # Errors
/// If `value` cannot be written as JSON.
pub(crate) fn embeddable(value: &Value) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string(value)?.replace('<', "\\u003c"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn every_answer_is_a_point() {
        let record = fixture::record();
        let charts = charts(&Panel::of(&record));
        let mut values: Vec<f64> = Vec::new();
        let mut tips = 0;
        for line in charts.as_array().unwrap().iter().flat_map(|chart| chart["lines"].as_array().unwrap()) {
            values.extend(line["values"].as_array().unwrap().iter().filter_map(Value::as_f64));
            tips += line["tips"].as_array().unwrap().iter().filter(|tip| tip.is_array()).count();
        }
        assert_eq!(tips, record.answers.len());
        let mut expected: Vec<f64> = record
            .answers
            .iter()
            .map(|answer| match answer.delivered_rate_bytes_per_s {
                Some(rate) => rate.median / 1e9,
                None => answer.latency_ns.unwrap().median,
            })
            .collect();
        values.sort_by(f64::total_cmp);
        expected.sort_by(f64::total_cmp);
        assert_eq!(values, expected);
    }

    #[test]
    fn embedded_json_cannot_close_the_script_element() {
        let value = json!(["</script><script>alert(1)</script>", "<!--"]);
        let text = embeddable(&value).unwrap();
        assert!(!text.contains('<'), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn latency_plots_have_no_limit() {
        let mut record = fixture::record();
        for answer in &mut record.answers {
            answer.ceiling.rate_bytes_per_s = Some(1e9);
        }
        let charts = charts(&Panel::of(&record));
        assert_eq!(charts[1]["limits"], json!([null, null]));
        assert_eq!(charts[0]["limits"], json!([1.0, 1.0, 1.0]));
    }
}
