//! Tests of the pictures on one small table.

use super::{Selection, SweepPictureError, heat_map, lines, pareto, sensitivities, tornado};
use lanemark_record::{SweepRow, SweepTable, SweptBy};
use std::collections::BTreeMap;

/// Tags 8 to 64 by a payload of 128 and 256 bytes; the rate grows with both. One point has no figure.
fn table() -> SweepTable {
    let mut rows = Vec::new();
    for tags in [8_u32, 16, 32, 64] {
        for mps in [128_u32, 256] {
            let varied = [("dma.tags", tags), ("link.mps_bytes", mps)];
            let varied: BTreeMap<String, String> =
                varied.into_iter().map(|(key, value)| (key.to_owned(), value.to_string())).collect();
            let has_figure = (tags, mps) != (64, 256);
            let row = SweepRow::without_figure(
                rows.len().to_string(),
                "<card>".to_owned(),
                "dma_read_bandwidth".to_owned(),
                SweptBy::Formulas,
            );
            rows.push(SweepRow {
                varied,
                size_bytes: Some(4096),
                delivered_rate_bytes_per_s: has_figure.then_some(f64::from(tags) * 1e8 + f64::from(mps)),
                because: (!has_figure).then(|| "too many".to_owned()),
                ..row
            });
        }
    }
    SweepTable::of(&rows)
}

fn select(x: Option<&str>, only: &[(&str, &str)]) -> Selection {
    let text = |text: &&str| (*text).to_owned();
    Selection {
        x: x.as_ref().map(text),
        only: only.iter().map(|(name, value)| (text(name), text(value))).collect(),
        ..Selection::default()
    }
}

fn assert_drawn(svg: &str) {
    assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"), "{svg}");
    assert!(!svg.contains("NaN") && !svg.contains("inf") && svg.contains("&lt;card&gt;"), "{svg}");
}

#[test]
fn there_is_a_line_per_combination_of_the_other_columns() {
    let svg = lines(&table(), &Selection::default()).unwrap();
    assert_drawn(&svg);
    assert_eq!((svg.matches("<circle").count(), svg.matches("class=\"line\"").count()), (7, 4));
    assert!(svg.contains(">link.mps_bytes 128<") && svg.contains(">dma.tags<"));
    let svg = lines(&table(), &select(Some("link.mps_bytes"), &[("dma.tags", "16")])).unwrap();
    assert_eq!(svg.matches("<circle").count(), 2);
}

#[test]
fn a_heat_map_has_a_cell_per_point_with_a_figure() {
    let svg = heat_map(&table(), &Selection::default()).unwrap();
    assert_drawn(&svg);
    assert_eq!(svg.matches("<rect x=").count(), 7);
    assert!(svg.contains(">6.40 GB/s<") && svg.contains("upwards: link.mps_bytes"));
}

#[test]
fn a_front_and_a_tornado_are_drawn_from_the_same_points() {
    let svg = pareto(&table(), &Selection::default()).unwrap();
    assert_drawn(&svg);
    assert_eq!(svg.matches("class=\"front\"").count(), 4);
    let (title, effects) = sensitivities(&table(), &Selection::default()).unwrap();
    assert!(title.contains("dma.tags 32, link.mps_bytes 256"), "{title}");
    let of = |key: &str| effects.iter().filter(|effect| effect.key == key).collect::<Vec<_>>();
    assert_eq!(of("dma.tags").iter().map(|effect| effect.change.as_str()).collect::<Vec<_>>(), ["0.25x", "0.5x"]);
    assert!((of("dma.tags")[1].effect_percent + 50.0).abs() < 0.1 && of("link.mps_bytes").len() == 1);
    let svg = tornado(&title, &effects);
    assert_drawn(&svg);
    assert!(svg.find("dma.tags</text>") < svg.find("link.mps_bytes</text>") && svg.contains("0.25x -75.0 %"), "{svg}");
}

#[test]
fn a_picture_that_cannot_be_drawn_says_which_option_helps() {
    let refused = |selection: &Selection| lines(&table(), selection).unwrap_err();
    assert!(matches!(refused(&select(Some("dma.tag"), &[])), SweepPictureError::NoColumn { .. }));
    assert!(matches!(refused(&select(None, &[("dma.tags", "9")])), SweepPictureError::NoPoint { .. }));
    let one = select(None, &[("dma.tags", "8"), ("link.mps_bytes", "128")]);
    assert!(matches!(refused(&one), SweepPictureError::NoAxis { option: "--x", .. }));
    let error = heat_map(&table(), &select(None, &[("dma.tags", "8")])).unwrap_err();
    assert!(matches!(error, SweepPictureError::NoAxis { option: "--y", .. }), "{error}");
    let size = Selection { y: Some("size_bytes".to_owned()), ..select(Some("dma.tags"), &[]) };
    let error = heat_map(&table(), &size).unwrap_err().to_string();
    assert!(error.contains("--only link.mps_bytes=128"), "{error}");
    assert!(lines(&SweepTable::of(&[]), &Selection::default()).is_err());
}
