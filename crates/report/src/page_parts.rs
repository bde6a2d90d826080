//! Parts that all pages share: scripts, styles and names of files.

use std::path::Path;

/// Scripts and styles of a page.
pub(crate) struct PageParts {
    pub uplot_script: &'static str,
    pub uplot_style: &'static str,
    pub uplot_licence: &'static str,
    /// Draws plots.
    pub script: &'static str,
    /// Copies tables.
    pub copy_script: &'static str,
    pub style: &'static str,
}

impl PageParts {
    pub fn new() -> PageParts {
        PageParts {
            uplot_script: include_str!("../assets/uplot-1.6.32/uPlot.iife.min.js"),
            uplot_style: include_str!("../assets/uplot-1.6.32/uPlot.min.css"),
            uplot_licence: include_str!("../assets/uplot-1.6.32/LICENSE"),
            script: include_str!("../assets/report.js"),
            copy_script: include_str!("../assets/live.js"),
            style: include_str!("../assets/report.css"),
        }
    }
}

/// Short names of files: without folder and extension, and the whole path of those that would be equal.
pub(crate) fn unique_names(files: &[&Path]) -> Vec<String> {
    let short = |file: &Path| file.file_stem().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
    let name = |file: &&Path| {
        let is_unique = files.iter().filter(|other| short(other) == short(file)).count() == 1;
        if is_unique { short(file) } else { file.display().to_string() }
    };
    files.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_equal_names_keep_their_folders() {
        let files = ["a/card.json", "b/card.json", "b/host.json"].map(Path::new);
        assert_eq!(unique_names(&files), ["a/card.json", "b/card.json", "host"]);
    }
}
