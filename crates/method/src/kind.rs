//! The kinds of methods.

use crate::Method;

/// Declares [`MethodKind`]. One row has a variant of [`Method`] and its name in files.
macro_rules! kinds {
    ($($kind:ident: $name:literal,)*) => {
        /// Variant of a [`Method`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum MethodKind {
            $(
                #[doc = concat!("[`Method::", stringify!($kind), "`].")]
                $kind,
            )*
        }

        impl MethodKind {
            /// All kinds.
            pub const ALL: [MethodKind; [$(MethodKind::$kind),*].len()] = [$(MethodKind::$kind),*];

            /// Value of the key `kind` in files.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(MethodKind::$kind => $name,)*
                }
            }
        }

        impl Method {
            /// The kind of this method.
            #[must_use]
            pub const fn kind(&self) -> MethodKind {
                match self {
                    $(Method::$kind { .. } => MethodKind::$kind,)*
                }
            }
        }
    };
}

kinds! {
    Core: "core",
    Fence: "fence",
    Clock: "clock",
    KernelCall: "kernel_call",
    Wake: "wake",
    CacheLines: "cache_lines",
    LineLoad: "line_load",
    Dma: "dma",
    DmaPages: "dma_pages",
    DmaUnderLoad: "dma_under_load",
    DmaCall: "dma_call",
    Relay: "relay",
    RuntimeCopy: "runtime_copy",
    SmallCopies: "small_copies",
    Launch: "launch",
    Argument: "argument",
    Compute: "compute",
    MapUnmap: "map_unmap",
    SharedBuffer: "shared_buffer",
}

crate::name::from_name!(MethodKind, "a kind of method");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_kinds_are_the_tags_of_methods_in_files() {
        let schema = serde_json::to_value(schemars::schema_for!(Method)).unwrap();
        let variants = schema["oneOf"].as_array().unwrap();
        let tags: Vec<&str> =
            variants.iter().map(|variant| variant["properties"]["kind"]["const"].as_str().unwrap()).collect();
        assert_eq!(tags, MethodKind::ALL.map(MethodKind::name));
    }
}
