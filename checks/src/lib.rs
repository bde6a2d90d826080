//! Tests that cross rooms live in `tests/`.
