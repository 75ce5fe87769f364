//! Number and block formats of tensors: one row per format, with its GGUF type number and block size.
//!
//! The list covers every type number that ggml defines, so that any file can be inspected and sized;
//! which of them have arithmetic is for a backend to say.

use planner::Bytes;

/// Declares the formats: name, GGUF type number, values per block, bytes per block.
macro_rules! formats {
    ($($name:ident = $id:literal: $values:literal values in $bytes:literal bytes),* $(,)?) => {
        /// How the values of a tensor are stored. Names and numbers are those of the GGUF format.
        #[allow(non_camel_case_types, missing_docs, reason = "the format's own names")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum DType { $($name),* }

        impl DType {
            /// Every known format.
            pub const ALL: &[DType] = &[$(DType::$name),*];

            /// The format with this GGUF type number.
            pub const fn from_gguf(id: u32) -> Option<DType> {
                match id { $($id => Some(DType::$name),)* _ => None }
            }

            /// The GGUF type number.
            pub const fn gguf_id(self) -> u32 {
                match self { $(DType::$name => $id),* }
            }

            /// The format's name, as GGUF tools write it.
            pub const fn name(self) -> &'static str {
                match self { $(DType::$name => stringify!($name)),* }
            }

            /// The unit in which values are stored.
            pub const fn block(self) -> Block {
                match self { $(DType::$name => Block { values: $values, bytes: $bytes }),* }
            }
        }
    };
}

formats! {
    F32 = 0: 1 values in 4 bytes,
    F16 = 1: 1 values in 2 bytes,
    Q4_0 = 2: 32 values in 18 bytes,
    Q4_1 = 3: 32 values in 20 bytes,
    Q5_0 = 6: 32 values in 22 bytes,
    Q5_1 = 7: 32 values in 24 bytes,
    Q8_0 = 8: 32 values in 34 bytes,
    Q8_1 = 9: 32 values in 36 bytes,
    Q2_K = 10: 256 values in 84 bytes,
    Q3_K = 11: 256 values in 110 bytes,
    Q4_K = 12: 256 values in 144 bytes,
    Q5_K = 13: 256 values in 176 bytes,
    Q6_K = 14: 256 values in 210 bytes,
    Q8_K = 15: 256 values in 292 bytes,
    IQ2_XXS = 16: 256 values in 66 bytes,
    IQ2_XS = 17: 256 values in 74 bytes,
    IQ3_XXS = 18: 256 values in 98 bytes,
    IQ1_S = 19: 256 values in 50 bytes,
    IQ4_NL = 20: 32 values in 18 bytes,
    IQ3_S = 21: 256 values in 110 bytes,
    IQ2_S = 22: 256 values in 82 bytes,
    IQ4_XS = 23: 256 values in 136 bytes,
    I8 = 24: 1 values in 1 bytes,
    I16 = 25: 1 values in 2 bytes,
    I32 = 26: 1 values in 4 bytes,
    I64 = 27: 1 values in 8 bytes,
    F64 = 28: 1 values in 8 bytes,
    IQ1_M = 29: 256 values in 56 bytes,
    BF16 = 30: 1 values in 2 bytes,
    TQ1_0 = 34: 256 values in 54 bytes,
    TQ2_0 = 35: 256 values in 66 bytes,
    MXFP4 = 39: 32 values in 17 bytes,
    NVFP4 = 40: 64 values in 36 bytes,
    Q1_0 = 41: 128 values in 18 bytes,
}

/// The unit of storage of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Values in one block.
    pub values: u32,
    /// Bytes of one block.
    pub bytes: u32,
}

impl DType {
    /// The name of a GGUF type number that the format once had and gave up; such tensors cannot be sized.
    pub const fn retired_name(id: u32) -> Option<&'static str> {
        Some(match id {
            4 => "Q4_2",
            5 => "Q4_3",
            31 => "Q4_0_4_4",
            32 => "Q4_0_4_8",
            33 => "Q4_0_8_8",
            36 => "IQ4_NL_4_4",
            37 => "IQ4_NL_4_8",
            38 => "IQ4_NL_8_8",
            _ => return None,
        })
    }

    /// Bytes of a row of `n_values`; `None` when the row is not a whole number of blocks or overflows.
    pub fn row_bytes(self, n_values: u64) -> Option<Bytes> {
        let block = self.block();
        if !n_values.is_multiple_of(u64::from(block.values)) {
            return None;
        }
        Bytes::new(u64::from(block.bytes)).checked_mul(n_values / u64::from(block.values))
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_numbers_go_both_ways() {
        for &dtype in DType::ALL {
            assert_eq!(DType::from_gguf(dtype.gguf_id()), Some(dtype));
        }
        assert_eq!(DType::from_gguf(4), None, "a number the format retired");
        for id in 0..64 {
            let named = DType::from_gguf(id).is_some() && DType::retired_name(id).is_some();
            assert!(!named, "number {id} is retired or not");
        }
    }

    #[test]
    fn rows_are_whole_blocks() {
        assert_eq!(DType::Q4_K.row_bytes(512), Some(Bytes::new(288)));
        assert_eq!(DType::Q4_K.row_bytes(500), None);
        assert_eq!(DType::F64.row_bytes(u64::MAX), None);
    }
}
