use super::*;
use lanemark_record::{SweepRow, SweptBy};

/// A point with two varied keys; every point with `rate` 0 has no figure.
fn row(number: usize, method: &str, tags: usize, mps: usize, rate: f64) -> SweepRow {
    let row = SweepRow::without_figure(
        number.to_string(),
        "card".to_owned(),
        "dma_read_bandwidth".to_owned(),
        SweptBy::Formulas,
    );
    let varied = [("dma.tags", tags), ("link.mps_bytes", mps)];
    SweepRow {
        varied: varied.map(|(key, value)| (key.to_owned(), value.to_string())).into(),
        method: method.to_owned(),
        size_bytes: Some(4096),
        delivered_rate_bytes_per_s: (rate > 0.0).then_some(rate),
        bound_by: (rate > 0.0).then(|| format!("link busy {tags} % (card up)")),
        because: (rate <= 0.0).then(|| "too </script> many".to_owned()),
        ..row
    }
}

fn cells(map: &Map, view: usize) -> &Vec<Value> {
    &map.views[view].maps[0].2
}

#[test]
fn a_cell_is_the_median_of_its_points_and_counts_them() {
    let rates = [1e9, 2e9, 9e9];
    let mut rows: Vec<SweepRow> = rates.iter().enumerate().map(|(at, rate)| row(at, "DMA", 8, 128, *rate)).collect();
    rows.push(row(3, "DMA", 16, 128, 4e9));
    rows.push(row(4, "DMA", 16, 256, 0.0));
    let map = Map::of(&SweepTable::of(&rows));
    assert_eq!(map.views[0].title, "dma_read_bandwidth, DMA (formulas)");
    let cells = cells(&map, 0);
    assert_eq!(cells.len(), 3, "8 tags with 256 B has no point");
    assert_eq!(cells[0], json!([0, 0, 3, 2e9, "2.00 GB/s", "1.00 GB/s to 9.00 GB/s", 0, 0, null]));
    assert_eq!(cells[2], json!([1, 1, 0, null, null, "", null, 1, 1]));
    assert_eq!(map.words, ["link busy (card up)", "too </script> many"]);
    let page = map_html(&SweepTable::of(&rows), "<log>").unwrap();
    assert!(!page.contains("too </script>") && page.contains("&#60;log&#62;: 5 points, 1 of them without a figure"));
}

#[test]
fn the_columns_with_most_values_are_the_axes_and_methods_are_maps_of_their_own() {
    let mut rows = Vec::new();
    for method in ["read", "write"] {
        for (tags, mps) in [(8, 128), (16, 128), (32, 256)] {
            rows.push(row(rows.len(), method, tags, mps, 1e9));
        }
    }
    let map = Map::of(&SweepTable::of(&rows));
    let titles: Vec<&str> = map.views.iter().map(|view| view.title.as_str()).collect();
    let of = |what: &str| format!("dma_read_bandwidth, {what} (formulas)");
    assert_eq!(titles, [of("read"), of("write"), of("all methods")]);
    let names = |view: usize| map.views[view].axes.iter().map(|axis| map.axes[*axis].name.as_str()).collect::<Vec<_>>();
    assert_eq!(names(0), ["dma.tags", "link.mps_bytes"]);
    assert_eq!(names(2), ["dma.tags", "link.mps_bytes", "method"]);
    assert_eq!(map.views[2].maps.len(), 3, "each pair of columns");
}

#[test]
fn a_large_sweep_has_a_small_page_that_counts_every_point() {
    let mut rows = Vec::new();
    for tags in 0..250 {
        for mps in 0..200 {
            rows.push(row(rows.len(), "DMA", tags + 1, mps + 1, (tags + 1) as f64 * 1e6));
        }
    }
    let table = SweepTable::of(&rows);
    let map = Map::of(&table);
    let counted: u64 = cells(&map, 0).iter().filter_map(|cell| cell[2].as_u64()).sum();
    assert_eq!((cells(&map, 0).len(), counted), (1600, 50_000));
    let axis = map.axes.iter().find(|axis| axis.name == "dma.tags").unwrap();
    assert_eq!((axis.labels[0].as_str(), axis.labels.len(), axis.count), ("1 to 7", 40, 250));
    assert!(map_html(&table, "log").unwrap().len() < 400_000);
}

#[test]
fn maps_that_do_not_fit_are_counted_and_left_out() {
    // 700 methods with at least 6 x 6 cells each.
    let rows = (0..700).flat_map(|method| (0..36).map(move |place| (method, place)));
    let rows: Vec<SweepRow> = rows
        .enumerate()
        .map(|(number, (method, place))| row(number, &format!("m{method}"), place / 6 + 1, place % 6 + 1, 1e9))
        .collect();
    let map = Map::of(&SweepTable::of(&rows));
    assert_eq!(map.views.len(), 666, "24,000 cells of 36 per map");
    assert_eq!(map.left_out, 35, "34 methods, and all methods together");
}

#[test]
fn one_column_is_a_map_of_one_row_and_none_is_no_map() {
    let rows: Vec<SweepRow> = (1..4).map(|tags| row(tags, "DMA", tags * 8, 128, 1e9)).collect();
    let map = Map::of(&SweepTable::of(&rows));
    assert_eq!(map.views[0].maps[0].2.len(), 3);
    assert!(Map::of(&SweepTable::of(&rows[..1])).views.is_empty());
    assert!(map_html(&SweepTable::of(&rows[..1]), "log").unwrap().contains("nothing to map"));
}

#[test]
fn shares_are_no_part_of_a_bottleneck() {
    assert_eq!(bound_alone("link busy 99 % (card down)"), "link busy (card down)");
    assert_eq!(bound_alone("wc buffers 100 %"), "wc buffers");
    assert_eq!(bound_alone("bytes on the link"), "bytes on the link");
}

#[test]
fn cells_of_three_columns_have_the_points_of_one_value_of_each() {
    let mut rows = Vec::new();
    for (tags, mps) in [(8, 128), (8, 256), (16, 128), (16, 256)] {
        for latency in 1..=3_usize {
            let mut one = row(rows.len(), "DMA", tags, mps, (tags * mps * latency) as f64 * 1e6);
            one.varied.insert("link.latency_ns".to_owned(), latency.to_string());
            rows.push(one);
        }
    }
    let map = Map::of(&SweepTable::of(&rows));
    let view = &map.views[0];
    let name = |place: &usize| map.axes[*place].name.as_str();
    let [(axes, cells)] = view.cubes.as_slice() else { panic!("{} cubes", view.cubes.len()) };
    assert_eq!(axes.each_ref().map(name), ["link.latency_ns", "dma.tags", "link.mps_bytes"]);
    assert_eq!(cells.len(), 12);
    // The second latency, 16 tags, 256 B: one point, where the map without the latency has the median of three.
    let one = cells.iter().find(|cell| [&cell[0], &cell[1], &cell[2]] == [1, 1, 1]).unwrap();
    assert_eq!((&one[3], &one[4]), (&json!(1), &json!(16.0 * 256.0 * 2.0 * 1e6)));
    let page = map_html(&SweepTable::of(&rows), "log").unwrap();
    assert!(page.contains("id=\"map-only\""));
}

#[test]
fn cells_of_three_columns_that_do_not_fit_are_left_out() {
    let mut rows = Vec::new();
    for (tags, mps, latency) in (0..30).flat_map(|a| (0..30).flat_map(move |b| (0..30).map(move |c| (a, b, c)))) {
        let mut one = row(rows.len(), "DMA", tags + 1, mps + 1, 1e9);
        one.varied.insert("link.latency_ns".to_owned(), latency.to_string());
        rows.push(one);
    }
    let map = Map::of(&SweepTable::of(&rows));
    assert_eq!((map.views[0].maps.len(), map.views[0].cubes.len()), (3, 0), "27,000 cells");
}
