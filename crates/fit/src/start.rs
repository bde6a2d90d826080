//! The platform of a file whose unknown numbers have the values at which a fit starts.

use crate::data_error::FitDataError;
use crate::mechanism::{IOMMU, is_of_iommu, start_of};
use lanemark_platform::{Draft, Origin, Platform};

/// The platform with the start values of its unknown numbers, and an IOMMU that passes addresses through; `None` if the file
/// has one.
pub(crate) fn with_hidden_iommu(draft: &Draft) -> Option<Platform> {
    let section =
        format!("{IOMMU}pass_through = {{ value = true, assumed = \"the file says nothing of an IOMMU\" }}\n");
    let has_iommu = draft.values().iter().any(|value| is_of_iommu(&value.key));
    started(&draft.with_section(&section).ok().filter(|_| !has_iommu)?).ok()
}

/// The platform with the start values of its unknown numbers.
pub(crate) fn started(draft: &Draft) -> Result<Platform, FitDataError> {
    let unknowns = draft.unknowns();
    if unknowns.is_empty() {
        return Err(FitDataError::NothingUnknown { platform: draft.name().to_owned() });
    }
    let origin = Origin::Assumed("the start of the search".to_owned());
    let started = unknowns.iter().try_fold(draft.clone(), |draft, row| draft.fill(&row.key, start_of(row), &origin));
    started.and_then(Draft::complete).map_err(|error| FitDataError::Start(error.to_string()))
}
