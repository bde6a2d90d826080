//! Does a table name the bottleneck of saturated traffic, and not the queue in front of it?

use crate::folder::Folder;

/// The row of 4 MiB reads, and whether the report offers more tags as a remedy.
fn reads(folder: &Folder, with: &str) -> (String, bool) {
    let asked = ["bench", "--on", "card-gen5-x16", "--question", "dma_read_bandwidth", "--sizes", "4MiB"];
    let out = folder.good(&[&asked[..], &["--with", with, "--html", "page.html"]].concat());
    let row = out.lines().find(|line| line.contains("by DMA")).expect("a row of reads").to_owned();
    let page = std::fs::read_to_string(folder.path("page.html")).unwrap();
    (row, page.contains(lanemark_machine::Cause::Tag.remedy()))
}

#[test]
fn saturated_reads_are_bound_by_what_drains_their_tags() {
    let folder = Folder::new();
    // 256 tags of 512 B reads cover the round trip several times over: the link or the data path is the bottleneck.
    for with in ["dma.tags=256", "dma.tags=256,dma.beat_ns=4"] {
        let (row, offers_tags) = reads(&folder, with);
        assert!(!row.contains("tag") && !row.contains("stalls"), "{with}: {row}");
        assert!(!offers_tags, "{with}: more tags bring nothing");
    }
}

#[test]
fn reads_with_too_few_tags_are_offered_more_of_them() {
    let (_, offers_tags) = reads(&Folder::new(), "dma.tags=4");
    assert!(offers_tags);
}
