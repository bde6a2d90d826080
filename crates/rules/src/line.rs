//! A line of a picture, and the published figures that pictures read.

use lanemark_record::PictureLine;

/// Lookup of a published figure by ID, or the reason why it is absent.
pub(crate) type Figures<'a> = &'a dyn Fn(&str) -> Result<f64, String>;

/// A line of a picture, with a value per parameter value.
pub(crate) fn line(name: impl Into<String>, values: Result<Vec<Option<f64>>, String>) -> Result<PictureLine, String> {
    Ok(PictureLine { name: name.into(), values: values? })
}
