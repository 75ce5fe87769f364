//! Storage formats of weights: what a machine profile is keyed by, and how many bytes values take.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// Declares the formats: name, values per block, bytes per block.
macro_rules! formats {
    ($($name:ident: $values:literal values in $bytes:literal bytes),* $(,)?) => {
        /// How weights are stored. Names are those of the GGUF format.
        #[allow(non_camel_case_types, missing_docs, reason = "the format's own names")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Format { $($name),* }

        impl Format {
            /// Every format that an engine computes with.
            pub const ALL: &[Format] = &[$(Format::$name),*];

            /// The format's name.
            pub const fn name(self) -> &'static str {
                match self { $(Format::$name => stringify!($name)),* }
            }

            /// Values and bytes of one block.
            const fn block(self) -> (u64, u64) {
                match self { $(Format::$name => ($values, $bytes)),* }
            }
        }
    };
}

formats! {
    F32: 1 values in 4 bytes,
    F16: 1 values in 2 bytes,
    BF16: 1 values in 2 bytes,
    Q4_0: 32 values in 18 bytes,
    Q4_1: 32 values in 20 bytes,
    Q5_0: 32 values in 22 bytes,
    Q5_1: 32 values in 24 bytes,
    Q8_0: 32 values in 34 bytes,
    Q2_K: 256 values in 84 bytes,
    Q3_K: 256 values in 110 bytes,
    Q4_K: 256 values in 144 bytes,
    Q5_K: 256 values in 176 bytes,
    Q6_K: 256 values in 210 bytes,
    IQ4_NL: 32 values in 18 bytes,
    IQ4_XS: 256 values in 136 bytes,
    MXFP4: 32 values in 17 bytes,
}

impl Format {
    /// The format with this name.
    pub fn named(name: &str) -> Option<Format> {
        Format::ALL.iter().copied().find(|format| format.name() == name)
    }

    /// Bytes of `n_values` in whole blocks.
    pub fn bytes(self, n_values: u64) -> Bytes {
        let (values, bytes) = self.block();
        Bytes::new(n_values.div_ceil(values)) * bytes
    }

    /// Bits that a value takes on average.
    pub fn bits_per_value(self) -> f64 {
        let (values, bytes) = self.block();
        8.0 * bytes as f64 / values as f64
    }

    /// Of `known` formats this one, or else the one that stores values most alike, by size.
    pub(crate) fn nearest(self, known: impl Iterator<Item = Format>) -> Option<Format> {
        let distance = |other: &Format| (other.bits_per_value() / self.bits_per_value()).ln().abs();
        known.min_by(|a, b| {
            let itself = (*b == self).cmp(&(*a == self));
            itself.then(distance(a).total_cmp(&distance(b))).then(a.cmp(b))
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_take_whole_blocks() {
        assert_eq!(Format::Q4_0.bytes(64), Bytes::new(36));
        assert_eq!(Format::Q6_K.bytes(257), Bytes::new(420));
        assert_eq!(Format::F16.bytes(3), Bytes::new(6));
    }

    #[test]
    fn names_are_read_back() {
        assert!(Format::ALL.iter().all(|format| Format::named(format.name()) == Some(*format)));
        assert_eq!(Format::named("Q9"), None);
    }

    #[test]
    fn the_most_alike_is_found() {
        let known = [Format::F16, Format::Q4_0, Format::Q6_K];
        assert_eq!(Format::IQ4_XS.nearest(known.into_iter()), Some(Format::Q4_0));
        assert_eq!(Format::BF16.nearest(known.into_iter()), Some(Format::F16));
        let as_large = [Format::Q4_0, Format::Q4_K];
        assert_eq!(Format::Q4_K.nearest(as_large.into_iter()), Some(Format::Q4_K));
    }
}
