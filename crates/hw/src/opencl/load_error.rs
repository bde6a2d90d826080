//! Messages of libraries that failed to load.

/// Message of the system for a library that failed to load: the source of `error`.
pub(crate) fn load_error(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}
